package main

import (
	"bufio"
	"encoding/json"
	"os/user"
	"strings"
	"testing"
)

// Commands that change something are in the audit log with their user; read-only commands are not.
func TestCommandsAreAudited(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	url, token := cloud(t)
	home := p.ok("workspaces", "create", "Home")
	other := p.ok("workspaces", "create", "Other")
	p.ok("keys", "create", "--workspace", home, "--name", "lobby")
	p.ok("keys", "create", "--kind", "pat", "--workspace", home, "--workspace", other)
	list := p.ok("keys", "list")
	key, _, _ := strings.Cut(list[strings.Index(list, "\n")+1:], " ")
	p.ok("keys", "revoke", key)
	account := p.ok(
		"accounts",
		"connect",
		"devicecloud",
		"--workspace",
		home,
		"--url",
		url,
		"--token-file",
		p.file("token", token),
	)
	p.ok("accounts", "update", "--name", "Cloud", account)
	p.ok("accounts", "disconnect", "--yes", account)
	if _, err := p.run("keys", "revoke", key); err == nil {
		t.Error("a key is revoked twice")
	}

	type line struct {
		Workspace string              `json:"workspace_id"`
		Kind      string              `json:"actor_kind"`
		Name      string              `json:"actor_name"`
		Operation string              `json:"operation"`
		Subjects  map[string][]string `json:"subjects"`
	}
	read := func(args ...string) (lines []line) {
		t.Helper()
		scan := bufio.NewScanner(strings.NewReader(p.ok(append([]string{"audit", "--output", "json"}, args...)...)))
		for scan.Scan() {
			var l line
			if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, l)
		}
		return lines
	}
	want := []line{
		{Workspace: home, Operation: "workspaces create"},
		{Workspace: other, Operation: "workspaces create"},
		{Workspace: home, Operation: "keys create"},
		{
			Workspace: home,
			Operation: "keys create",
		},
		{Workspace: other, Operation: "keys create"},
		{Workspace: home, Operation: "keys revoke"},
		{
			Workspace: home,
			Operation: "accounts connect devicecloud",
		},
		{Workspace: home, Operation: "accounts update"},
		{Workspace: home, Operation: "accounts disconnect"},
	}
	got := read("--oldest-first")
	if len(got) != len(want) {
		t.Fatalf("%d entries, want %d: %+v", len(got), len(want), got)
	}
	inWorkspace := map[[2]string]int{}
	for i, l := range got {
		if l.Kind != "command_line" || l.Name != me.Username || l.Operation != want[i].Operation {
			t.Errorf("entry %d: %+v, want %+v by %s", i, l, want[i], me.Username)
		}
		if l.Operation != "workspaces create" && len(l.Subjects) == 0 {
			t.Errorf("%s names nothing", l.Operation)
		}
		inWorkspace[[2]string{l.Workspace, l.Operation}]++
	}
	for _, w := range want {
		if inWorkspace[[2]string{w.Workspace, w.Operation}]--; inWorkspace[[2]string{w.Workspace, w.Operation}] < 0 {
			t.Errorf("no entry in workspace %s of %s", w.Workspace, w.Operation)
		}
	}
	if newest := read(
		"--limit",
		"1",
	); len(newest) != 1 || newest[0].Operation != "accounts disconnect" ||
		newest[0].Subjects["connected_account_id"][0] != account {
		t.Errorf("the newest: %+v", newest)
	}
	for want, args := range map[int][]string{
		3:         {"--subject", account},
		2:         {"--workspace", other},
		4:         {"--operation", "keys"},
		len(want): {"--actor", me.Username},
		0:         {"--actor", "unknown"},
	} {
		if got := read(args...); len(got) != want {
			t.Errorf("%v finds %d entries, want %d: %+v", args, len(got), want, got)
		}
	}
	if got := read("--until", "1h"); len(got) != 0 {
		t.Errorf("an hour ago there was %+v", got)
	}
	table := p.ok("audit", "--since", "1h")
	if strings.Count(table, "\n") != len(want) || !strings.Contains(table, "connected_account_id="+account) ||
		strings.Contains(table, token) {
		t.Errorf("the table:\n%s", table)
	}
	for _, bad := range [][]string{
		{"--since", "yesterday"},
		{"--subject", "lobby"},
		{"--output", "xml"},
		{"--limit", "-1"},
	} {
		if _, err := p.run(append([]string{"audit"}, bad...)...); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}

// audit shows the newest entries and says if there are more.
func TestAudit_Limit(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.ok("workspaces", "create", "Home")
	if out := p.ok("audit", "--actor", "unknown"); out != "No entries match." {
		t.Errorf("nothing: %s", out)
	}
	if out := p.ok("audit", "--actor", "unknown", "--output", "json"); out != "" {
		t.Errorf("nothing, as JSON: %s", out)
	}
	p.ok("workspaces", "create", "Other")
	if all, few := p.ok(
		"audit",
	), p.ok(
		"audit",
		"--limit",
		"1",
	); strings.Contains(all, "--limit") || strings.Count(all, "\n") != 2 ||
		strings.Count(few, "\n") != 1 {
		t.Errorf("all: %s\none: %s", all, few)
	}
	cmd := p.command("audit", "--limit", "1")
	var more strings.Builder
	cmd.Stderr = &more
	if err := cmd.Run(); err != nil || !strings.Contains(more.String(), "There are more; --limit 0 shows all.") {
		t.Errorf("%v: %s", err, more.String())
	}
	for _, f := range auditCommand().Flags {
		if f.Names()[0] == "limit" && !strings.Contains(f.String(), "(default: 50)") {
			t.Errorf("%s", f)
		}
	}
	if said := p.said(
		"accounts",
		"connect",
		"devicecloud",
		"--url",
		"http://127.0.0.1:1",
	); !strings.Contains(
		said,
		"there are 2 workspaces for real devices: choose one",
	) {
		t.Errorf("%s", said)
	}
	if said := p.said(
		"keys",
		"revoke",
		"00000000-0000-7000-8000-000000000000",
	); !strings.Contains(
		said,
		"There is no such credential, or it is already revoked.",
	) {
		t.Errorf("%s", said)
	}
}
