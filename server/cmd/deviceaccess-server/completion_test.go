package main

import (
	"strings"
	"testing"
)

// The scripts for shells ask the program what comes next.
func TestCompletion(t *testing.T) {
	t.Parallel()
	p := newEmpty(t)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out := p.ok("completion", shell); !strings.Contains(out, "deviceaccess-server") ||
			!strings.Contains(out, "--generate-shell-completion") {
			t.Errorf("%s: %s", shell, out)
		}
	}
	for command, want := range map[string]string{
		"":               "status devices codes keys completion",
		"codes":          "list get create delete retry",
		"codes list --o": "--older-than --output",
		"keys create --": "--role --owner",
	} {
		out := p.ok(append(strings.Fields(command), "--generate-shell-completion")...)
		for one := range strings.FieldsSeq(want) {
			if !strings.Contains("\n"+out, "\n"+one) {
				t.Errorf("%q does not complete to %s: %s", command, one, out)
			}
		}
	}
	if code, out := p.exits("completion", "tcsh"); code != exitUsage {
		t.Errorf("another shell: %d: %s", code, out)
	}
	if code, out := p.exits("completion"); code != exitUsage {
		t.Errorf("no shell: %d: %s", code, out)
	}
}
