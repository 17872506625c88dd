package main

import (
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// The output of a service ends up in a log. The new key of the sandbox must not.
func TestServe_NoSandboxKeyInLog(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	cmd := p.command("serve", "--sandbox", "--listen", "127.0.0.1:0")
	var out said
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	hint := regexp.MustCompile("`deviceaccess-server (keys create --workspace [0-9a-f-]{36})`")
	p.until("it says how to create a key", func() bool { return hint.MatchString(out.String()) })
	if shownKeys.MatchString(out.String()) {
		t.Errorf("the output has a key: %s", withoutKeys([]byte(out.String())))
	}
	if key := p.ok(strings.Fields(hint.FindStringSubmatch(out.String())[1])...); !shownKeys.MatchString(key) {
		t.Error("the command that it names prints no key")
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil || !ends(cmd) {
		t.Errorf("the server does not end: %v", err)
	}
}
