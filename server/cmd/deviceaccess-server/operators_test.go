package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Operators are created, listed, reset, and deleted on the server's machine, while the server runs.
func TestOperators_Commands(t *testing.T) {
	t.Parallel()
	p := newPrivate(t)
	_, cmd := p.serve("--sandbox=false")
	defer p.stop(cmd)
	log := func() string {
		text, err := os.ReadFile(filepath.Join(p.dir, "server.log"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	setup := regexp.MustCompile(`open=http://127\.0\.0\.1:\d+/console/setup/[\w-]{43}\b`)
	if !setup.MatchString(log()) {
		t.Errorf("the log has no link for the first operator: %s", log())
	}
	link := strings.TrimSpace(
		p.ok("operators", "create", "--public-url", "https://locks.example.com/", "jane@example.com"),
	)
	invite := regexp.MustCompile(`^https://locks\.example\.com/console/invite/[\w-]{43}$`)
	if !invite.MatchString(link) {
		t.Errorf("the link is %q", link)
	}
	if said := p.said(
		"operators",
		"create",
		"jane@example.com",
	); !strings.Contains(
		said,
		"There is an operator with this email",
	) {
		t.Errorf("a second one: %s", said)
	}
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("correct horse battery\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	workspace := strings.TrimSpace(p.ok("workspaces", "create", "Home"))
	p.ok(
		"operators",
		"create",
		"--password-file",
		file,
		"--role",
		"viewer",
		"--workspace",
		workspace,
		"joe@example.com",
	)
	var listed []operatorRecord
	if err := json.Unmarshal([]byte(p.ok("operators", "list", "--output", "json")), &listed); err != nil {
		t.Fatal(err)
	}
	if len(listed) != 2 || listed[0].State != "invited" || listed[0].Roles[0].Role != "admin" ||
		listed[1].State != "active" || listed[1].Roles[0].Workspace.ID != workspace {
		t.Errorf("%+v", listed)
	}
	if table := p.ok("operators", "list"); !strings.Contains(table, "viewer in Home") {
		t.Errorf("%s", table)
	}
	if again := strings.TrimSpace(p.ok("operators", "reset", "jane@example.com")); again == link ||
		!strings.HasPrefix(again, "http://127.0.0.1:8500/console/invite/") {
		t.Errorf("reset: %s", again)
	}
	p.ok("operators", "delete", "joe@example.com")
	if said := p.said("operators", "delete", "joe@example.com"); !strings.Contains(said, "There is no such operator") {
		t.Errorf("deleted twice: %s", said)
	}
	if strings.Contains(log(), "correct horse") {
		t.Error("the log has a password")
	}
}

// A container creates its first operator from settings, once.
func TestServe_CreatesFirstOperator(t *testing.T) {
	t.Parallel()
	p := newPrivate(t)
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("correct horse battery"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, cmd := p.serve("--admin-email", "jane@example.com", "--admin-password-file", file)
		p.stop(cmd)
	}
	if ids := strings.Fields(p.ok("operators", "list", "--output", "id")); len(ids) != 1 {
		t.Errorf("%d operators", len(ids))
	}
	log, err := os.ReadFile(filepath.Join(p.dir, "server.log"))
	if err != nil || strings.Contains(string(log), "/console/setup/") ||
		strings.Contains(string(log), "correct horse") {
		t.Errorf("%v: %s", err, log)
	}
}

func TestServe_RefusesIncompleteConsoleSettings(t *testing.T) {
	t.Parallel()
	for want, flags := range map[string][]string{
		"belong together: set both or none":     {"--oidc-issuer", "https://id.example.com"},
		"need --oidc-issuer":                    {"--oidc-role-claim", "groups=admin:ops"},
		"--console-local-sign-in=false needs":   {"--console-local-sign-in=false"},
		"--admin-email and --admin-password":    {"--admin-email", "jane@example.com"},
		"at least 12 characters":                {"--admin-email", "jane@example.com", "--admin-password", "short"},
		"is not a role: write admin, operator":  {"--oidc-role-claim", "groups=owner:ops"},
		"does not start with the name of a cla": {"--oidc-role-claim", "admin:ops"},
	} {
		said := newPrivate(t).said(append([]string{"serve"}, flags...)...)
		if !strings.Contains(said, want) {
			t.Errorf("%v: %s, want %s", flags, said, want)
		}
	}
}
