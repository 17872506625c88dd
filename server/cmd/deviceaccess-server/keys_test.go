package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// Names that the database cannot store are rejected with a clear message.
func TestNames_Invalid(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	url, token := cloud(t)
	other, otherToken := cloud(t)
	secret, otherSecret := p.file("token", token), p.file("other", otherToken)
	p.ok("workspaces", "create", strings.Repeat("é", 255))
	account := p.ok("accounts", "connect", "devicecloud", "--url", url, "--token-file", secret)
	long, broken := strings.Repeat("x", 256), "a\xffb"
	for _, c := range []struct {
		want string
		args []string
	}{
		{"The name has 60000 characters. Use at most 255", []string{"workspaces", "create", strings.Repeat("x", 60_000)}},
		{"The name is not UTF-8", []string{"workspaces", "create", broken}},
		{"The name is blank", []string{"workspaces", "create", "  "}},
		{"The company name has 256 characters", []string{"workspaces", "create", "--company", long, "Home"}},
		{"The company name is not UTF-8", []string{"workspaces", "create", "--company", broken, "Home"}},
		{"The name has 256 characters", []string{"keys", "create", "--name", long}},
		{"The name is not UTF-8", []string{"keys", "create", "--name", broken}},
		{"The display name has 256 characters", []string{"accounts", "update", "--name", long, account}},
		{"The display name is not UTF-8", []string{"accounts", "update", "--name", broken, account}},
		{"The display name is blank", []string{"accounts", "update", "--name", "", account}},
		{"The display name is not UTF-8", []string{"accounts", "update", "--name", broken, "--token-file", secret, account}},
		{
			"The display name is not UTF-8",
			[]string{"accounts", "connect", "devicecloud", "--url", other, "--token-file", otherSecret, "--name", broken},
		},
		{"The actor is not UTF-8", []string{"audit", "--actor", broken}},
		{"The operation is not UTF-8", []string{"audit", "--operation", broken}},
	} {
		said := p.said(c.args...)
		if !strings.Contains(said, c.want) || strings.Contains(said, "SQLSTATE") {
			t.Errorf("%.80q: %.300s", c.args, said)
		}
	}
	if list := p.ok("workspaces", "list"); strings.Count(list, "\n") != 1 {
		t.Errorf("a workspace was created:\n%.2000s", list)
	}
	if list := p.ok("keys", "list"); strings.Count(list, "\n") != 0 {
		t.Errorf("a key was created:\n%.2000s", list)
	}
}

// A workspace that is named twice counts once.
func TestKeysCreate_DuplicateWorkspace(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	home := p.ok("workspaces", "create", "Home")
	for _, kind := range []string{"pat", "api_key"} {
		p.ok("keys", "create", "--kind", kind, "--workspace", home, "--workspace", strings.ToUpper(home))
	}
	if list := p.ok("keys", "list", "--output", "json"); strings.Count(list, home) != 2 {
		t.Errorf("the keys are\n%s", list)
	}
}

// A lifetime that a script computes as zero does not create a key without expiry.
func TestKeysCreate_NonPositiveLifetime(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.ok("workspaces", "create", "Home")
	for _, lifetime := range []string{"0", "0s", "0d", "-1ns"} {
		if said := p.said("keys", "create", "--lifetime", lifetime); !strings.Contains(said, "is not greater than 0") {
			t.Errorf("%s: %s", lifetime, said)
		}
	}
	if list := p.ok("keys", "list"); strings.Count(list, "\n") != 0 {
		t.Errorf("a key was created:\n%s", list)
	}
}

// If a new credential cannot be printed, the error says how to revoke it.
func TestKeysCreate_FullDisk(t *testing.T) {
	t.Parallel()
	disk, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no disk that is full")
	}
	defer disk.Close()
	p := newProgram(t)
	p.ok("workspaces", "create", "Home")
	create := p.command("keys", "create")
	var said bytes.Buffer
	create.Stdout, create.Stderr = disk, &said
	if err := create.Run(); err == nil || !strings.Contains(said.String(), "no space left on device") ||
		!strings.Contains(said.String(), "keys revoke ") {
		t.Errorf("%v: %s", err, said.String())
	}
}
