package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A server without real devices logs the next commands at each start until they were used. Empty lists say what fills
// them.
func TestFirstSteps(t *testing.T) {
	t.Parallel()
	p := newPrivate(t)
	steps := []string{
		"deviceaccess-server workspaces create ",
		"deviceaccess-server keys create ",
		"accounts connect --help",
	}
	for _, started := range []struct {
		use  []string
		done int
	}{
		{[]string{"workspaces", "create", "Home"}, 0},
		{[]string{"keys", "create"}, 1},
		{nil, 2},
	} {
		_, cmd := p.serve("--sandbox=false")
		log, err := os.ReadFile(filepath.Join(p.dir, "server.log"))
		for i, step := range steps {
			if err != nil || strings.Contains(string(log), step) != (i >= started.done) {
				t.Errorf("%d steps are done: %s %v", started.done, log, err)
			}
		}
		if started.done == 0 {
			out := p.ok("serve", "--check-config")
			if !strings.Contains(out, "private, running, schema") || !strings.Contains(out, "opens the database") {
				t.Errorf("the check of a running server says %s", out)
			}
			for list, want := range map[string]string{
				"workspaces": "workspaces create NAME",
				"keys":       "keys create",
				"accounts":   "accounts connect",
				"webhooks":   "POST /webhooks/create",
			} {
				said, err := p.command(list, "list").CombinedOutput()
				if err != nil || !strings.Contains(string(said), want) {
					t.Errorf("%s list: %v: %s", list, err, said)
				}
			}
		}
		if started.use != nil {
			p.ok(started.use...)
		}
		p.stop(cmd)
	}
	said, err := p.command("keys", "list", "--quiet").CombinedOutput()
	if err != nil || strings.Contains(string(said), "level=INFO") {
		t.Errorf("a quiet command: %v: %s", err, said)
	}
}
