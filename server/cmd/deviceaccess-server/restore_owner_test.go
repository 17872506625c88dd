package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// nobody is an ordinary user. Only root can become one.
func nobody(t *testing.T) *syscall.Credential {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can run the server as somebody else")
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	gid, other := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(err, other); err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// What root restores to another user's directory is that user's: all of it, also the key that was there before.
func TestRootRestoresForTheOwner(t *testing.T) {
	t.Parallel()
	owner := nobody(t)
	b := backedUp(t)
	p := newEmpty(t)
	at := func(name string) string { return filepath.Join(p.dir, name) }
	for dir, file := range map[string]string{at("with-key"): b.with, at("keyless"): b.withoutKey} {
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, int(owner.Uid), int(owner.Gid))); err != nil {
			t.Fatal(err)
		}
		if file == b.withoutKey {
			if err := os.WriteFile(filepath.Join(dir, "master.key"), []byte(b.key+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if out := p.ok("restore", "--data-dir", dir, file); !strings.Contains(out, "belongs to user nobody") {
			t.Errorf("it does not say whose it is: %s", out)
		}
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			st, err := os.Lstat(path)
			if err == nil && (st.Sys().(*syscall.Stat_t).Uid != owner.Uid || st.Sys().(*syscall.Stat_t).Gid != owner.Gid) {
				t.Errorf("%s is somebody else's", path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if out, err := p.as(owner, p.command("workspaces", "list", "--data-dir", dir)).CombinedOutput(); err != nil || !strings.Contains(string(out), b.home) {
			t.Errorf("%s is of no use to its owner: %v: %s", dir, err, out)
		}
	}
	if out := p.ok("restore", "--data-dir", at("new"), b.with); !strings.Contains(out, "chown -R") {
		t.Errorf("it does not say who can run it: %s", out)
	}
	if out := p.ok("workspaces", "list", "--data-dir", at("new")); !strings.Contains(out, b.home) {
		t.Errorf("root cannot run it: %s", out)
	}
	if out, err := exec.CommandContext(t.Context(), "chown", "-R", "nobody:", at("new")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := p.as(owner, p.command("workspaces", "list", "--data-dir", at("new"))).CombinedOutput(); err != nil || !strings.Contains(string(out), b.home) {
		t.Errorf("given to a user it is of no use to that: %v: %s", err, out)
	}
}
