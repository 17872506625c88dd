package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// The lines that `make server` prints stay valid after a restart.
func TestMakeServer_KeepsItsKey(t *testing.T) {
	t.Parallel()
	p := newEmpty(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(p.dir, "made")
	p.install(data)
	start := func() (r ready, stop func()) {
		cmd := exec.CommandContext(t.Context(), "../../../test/server.sh", "--listen", "127.0.0.1:0")
		cmd.Env = append(
			os.Environ(),
			"DEVICEACCESS_TEST_RUN_MAIN=1",
			"MAKE_SERVER_PROGRAM="+exe,
			"MAKE_SERVER_DATA_DIR="+data,
			"DEVICEACCESS_DATA_DIR="+p.dir,
			"DEVICEACCESS_DATABASE_URL=postgres://127.0.0.1:1/production",
			"DATABASE_URL=postgres://127.0.0.1:1/production",
			"DEVICEACCESS_LISTEN=nowhere",
		)
		var out said
		cmd.Stdout, cmd.Stderr = &out, &out
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		p.until(
			"it prints how to stop it",
			func() bool { return strings.Contains(out.String(), "Stop it with Ctrl-C") },
		)
		for name, to := range map[string]*string{"ENDPOINT": &r.URL, "API_KEY": &r.APIKey} {
			if m := regexp.MustCompile(`export DEVICEACCESS_` + name + `=(\S+)`).
				FindStringSubmatch(out.String()); m != nil {
				*to = m[1]
			}
		}
		if !strings.Contains(out.String(), "rm -r '"+data+"'") {
			t.Errorf("it does not say how to start over: %s", withoutKeys([]byte(out.String())))
		}
		return r, func() {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			if err := cmd.Wait(); err != nil {
				t.Errorf("SIGTERM ends it with %v", err)
			}
		}
	}
	first, stop := start()
	stop()
	again, stop := start()
	if first.APIKey == "" || first.APIKey != again.APIKey {
		t.Error("the key of the first start is not that of the second")
	}
	if status := p.post(again, first.APIKey, "/devices/list", "{}", nil); status != http.StatusOK {
		t.Errorf("a request with the key of the first start: %d", status)
	}
	if st, err := os.Stat(filepath.Join(data, "make-server.key")); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("others may read the key: %v %v", st, err)
	}
	stop()
}
