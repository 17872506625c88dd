package main

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// The exit code says why a command failed.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.ok("migrate")
	const id = "00000000-0000-7000-8000-000000000000"
	for command, want := range map[string]int{
		"version":                       0,
		"--version":                     0,
		"keys list":                     0,
		"migrate --database-url x":      exitFailed,
		"backup -":                      exitFailed,
		"serv":                          exitUsage,
		"keys":                          exitUsage,
		"accounts connect":              exitUsage,
		"accounts connect devicecloud":  exitUsage,
		"keys list more":                exitUsage,
		"keys list --nonsense":          exitUsage,
		"accounts push-url igloohome":   exitUsage,
		"keys revoke key":               exitUsage,
		"keys list --config /nowhere":   exitUsage,
		"webhooks deliveries --since x": exitUsage,
		"workspaces create":             exitUsage,
		"keys revoke " + id:             exitNotFound,
		"accounts disconnect " + id:     exitNotFound,
		"webhooks test " + id:           exitNotFound,
		"webhooks deliveries " + id:     exitNotFound,
		"accounts connect devicecloud --url http://127.0.0.1:1 --workspace " + id: exitNotFound,
		"accounts connect devicecloud --url nonsense --workspace":                 exitUsage,
		"keys create": exitRefused,
	} {
		_, err := p.command(strings.Fields(command)...).Output()
		code := 0
		if e, ok := errors.AsType[*exec.ExitError](err); ok {
			code = e.ExitCode()
			if len(e.Stderr) == 0 {
				t.Errorf("%s: says nothing", command)
			}
		}
		if code != want {
			t.Errorf("%s: exit code %d, want %d: %v", command, code, want, err)
		}
	}
	if help := p.ok("--help"); !strings.Contains(help, "Exit codes: 0 done") {
		t.Errorf("the help does not explain them: %s", help)
	}
}
