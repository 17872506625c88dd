package main

import (
	"strings"
	"testing"
)

// workspaces create prints the id on standard output and the command for a key on standard error.
func TestWorkspacesCreate_SaysHowToGetKey(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	cmd := p.command("workspaces", "create", "Home")
	var said strings.Builder
	cmd.Stderr = &said
	id, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	command := "keys create --workspace " + strings.TrimSpace(string(id))
	if strings.Count(string(id), "\n") != 1 || !strings.Contains(said.String(), "deviceaccess-server "+command) {
		t.Errorf("the id is %q, and it says %s", id, said.String())
	}
	if key := p.ok(strings.Fields(command)...); !strings.HasPrefix(key, "seam_") {
		t.Error("the printed command creates no key")
	}
}
