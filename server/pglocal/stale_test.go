package pglocal_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

func TestServerDiesWithItsParent(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux signals a process when its parent dies")
	}
	dir := seeded(t)
	h := startHelper(t, "serve", dir, nil)
	pidFile := globOne(t, filepath.Join(dir, "*", "data", "postmaster.pid"))
	text, err := os.ReadFile(pidFile)
	ok(t, err)
	socket := strings.Split(string(text), "\n")[4]
	ok(t, h.cmd.Process.Kill())
	testenv.Until(t, "the server has shut down", func() bool { return !exists(pidFile) })
	if !exists(socket) {
		t.Fatalf("the socket's directory %s is missing, so this test proves nothing", socket)
	}

	c := start(t, pglocal.Options{Dir: dir})
	if got := notes(t, c); !slices.Equal(got, []string{"helper"}) {
		t.Errorf("rows = %q, want what was committed before the kill", got)
	}
	if exists(socket) {
		t.Errorf("the socket's directory %s remains", socket)
	}
}

// abandon releases the lock of a running cluster. A process that another test is starting may hold it until its exec.
func abandon(t *testing.T, c *pglocal.Cluster, dir string) {
	t.Helper()
	ok(t, c.DropLock())
	testenv.Until(t, "the lock is free", func() bool {
		held, err := pglocal.IsLocked(filepath.Join(dir, "lock"))
		return err == nil && !held
	})
}

func TestOrphanIsStoppedFirst(t *testing.T) {
	t.Parallel()
	dir := seeded(t)
	orphan := start(t, pglocal.Options{Dir: dir})
	ok(t, insert(t.Context(), orphan.DSN("postgres"), "of the orphan"))
	abandon(t, orphan, dir)

	c := start(t, pglocal.Options{Dir: dir})
	waitDone(t, orphan)
	if err := orphan.Err(); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("Err of the orphan = %v, want that another process has stopped it", err)
	}
	if got := notes(t, c); !slices.Equal(got, []string{"of the orphan"}) {
		t.Errorf("rows = %q, want those of the orphan", got)
	}
}

// A copy of a directory, or a snapshot of its disk, has the note of the server that runs on the original.
func TestCopyOfDirectory_LeavesOtherServerAlone(t *testing.T) {
	t.Parallel()
	dir, again := seeded(t), seeded(t)
	c := start(t, pglocal.Options{Dir: dir})
	note, err := os.ReadFile(filepath.Join(dir, "lock"))
	ok(t, err)
	copied := func() {
		ok(t, os.WriteFile(filepath.Join(again, "lock"), note, 0o600))
	}
	copied()
	// A process that another test starts holds a copy of the lock between its fork and its exec.
	whenFree := func(do func() error) {
		var err error
		testenv.Until(t, "the directory is not locked", func() bool {
			err = do()
			return err == nil || !strings.Contains(err.Error(), "another process is using it")
		})
		ok(t, err)
	}
	whenFree(func() error {
		h, err := pglocal.Open(t.Context(), pglocal.Options{Dir: again, NoSync: true})
		if err != nil {
			return err
		}
		return h.Close(t.Context())
	})
	copied()
	whenFree(func() error { return pglocal.Reap(t.Context(), again) })
	ok(t, insert(t.Context(), c.DSN("postgres"), "by a new connection"))
	if !exists(c.Socket()) {
		t.Error("the socket's directory is missing")
	}
}

func TestReapStopsAnOrphan(t *testing.T) {
	t.Parallel()
	dir := seeded(t)
	orphan := start(t, pglocal.Options{Dir: dir})
	abandon(t, orphan, dir)
	ok(t, pglocal.Reap(t.Context(), dir))
	waitDone(t, orphan)
	if exists(orphan.Socket()) {
		t.Errorf("the socket's directory %s remains", orphan.Socket())
	}
	ok(t, pglocal.Reap(t.Context(), scratch(t)))
}

func TestPidFile_LeftoverDoesNotPreventStart(t *testing.T) {
	t.Parallel()
	other := exec.Command("sleep", "600")
	if os.Geteuid() == 0 {
		// PostgreSQL considers only processes of its own user
		acct, err := pglocal.ServerAccount("")
		ok(t, err)
		other.SysProcAttr = &syscall.SysProcAttr{Credential: acct.Credential()}
	}
	ok(t, other.Start())
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	gone := exec.Command("true")
	ok(t, gone.Run())

	for name, content := range map[string]string{
		"process id reused by another program": fmt.Sprintf("%d\n/elsewhere\n1700000000\n5432\n/tmp\n\n  5432001   "+
			"      1\nready   \n", other.Process.Pid),
		"unused process id": fmt.Sprintf("%d\n/elsewhere\n", gone.Process.Pid),
		"empty":             "",
		"garbage":           "\x00\x00\x00",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := seeded(t)
			path := filepath.Join(
				filepath.Dir(globOne(t, filepath.Join(dir, "*", "data", "PG_VERSION"))),
				"postmaster.pid",
			)
			ok(t, os.WriteFile(path, []byte(content), 0o600))
			if os.Geteuid() == 0 {
				acct, err := pglocal.ServerAccount("")
				ok(t, err)
				ok(t, os.Chown(path, int(acct.Credential().Uid), int(acct.Credential().Gid)))
			}
			c := start(t, pglocal.Options{Dir: dir})
			notes(t, c)
		})
	}
}

func TestIncompleteCluster_IsCreatedAgain(t *testing.T) {
	t.Parallel()
	need(t)
	bin, err := pglocal.Locate(t.Context(), pglocal.Options{})
	ok(t, err)
	dir := scratch(t)
	half := filepath.Join(dir, fmt.Sprint(bin.Major), "data.incomplete")
	ok(t, os.MkdirAll(half, 0o755))
	ok(t, os.WriteFile(filepath.Join(half, "PG_VERSION"), []byte("15\n"), 0o600))
	c := start(t, pglocal.Options{Dir: dir})
	ok(t, execute(t.Context(), c.DSN("postgres"), "select 1"))
	if exists(half) {
		t.Errorf("%s remains", half)
	}
}

func globOne(t *testing.T, pattern string) string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	ok(t, err)
	if len(paths) != 1 {
		t.Fatalf("%s matches %q, want one", pattern, paths)
	}
	return paths[0]
}
