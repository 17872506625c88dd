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

// as has a command run as another user, who cannot reach the folder that go test keeps the program in.
func (p *program) as(who *syscall.Credential, cmd *exec.Cmd) *exec.Cmd {
	p.Helper()
	path := filepath.Join(p.dir, "program")
	if _, err := os.Stat(path); err != nil {
		// cp, and not we, since a file that we write could still be open in a process that another test is forking
		if out, err := exec.CommandContext(p.Context(), "cp", cmd.Path, path).CombinedOutput(); err != nil {
			p.Fatalf("copy the program: %v: %s", err, out)
		}
		if err := os.Chmod(path, 0o755); err != nil {
			p.Fatal(err)
		}
	}
	cmd.Path, cmd.Dir = path, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	return cmd
}

// What root restores to another user's directory is that user's: all of it, also the key that was there before.
func TestRootRestoresForTheOwner(t *testing.T) {
	t.Parallel()
	owner := nobody(t)
	p := newProgram(t)
	at := func(name string) string { return filepath.Join(p.dir, name) }
	home := p.ok("workspaces", "create", "Home")
	if err := errors.Join(os.Mkdir(at("data/sandbox"), 0o700), os.WriteFile(at("data/sandbox/lock"), []byte("{}"), 0o600)); err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(at("data/master.key"))
	if err != nil {
		t.Fatal(err)
	}
	for dir, args := range map[string][]string{at("with-key"): nil, at("keyless"): {"--without-key"}} {
		p.ok(append([]string{"backup", dir + ".tar.gz"}, args...)...)
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, int(owner.Uid), int(owner.Gid))); err != nil {
			t.Fatal(err)
		}
		if args != nil {
			if err := os.WriteFile(filepath.Join(dir, "master.key"), key, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if out := p.ok("restore", "--data-dir", dir, dir+".tar.gz"); !strings.Contains(out, "belongs to user nobody") {
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
		if out, err := p.as(owner, p.command("workspaces", "list", "--data-dir", dir)).CombinedOutput(); err != nil || !strings.Contains(string(out), home) {
			t.Errorf("%s is of no use to its owner: %v: %s", dir, err, out)
		}
	}
	if out := p.ok("restore", "--data-dir", at("new"), at("with-key.tar.gz")); !strings.Contains(out, "chown -R") {
		t.Errorf("it does not say who can run it: %s", out)
	}
	if out := p.ok("workspaces", "list", "--data-dir", at("new")); !strings.Contains(out, home) {
		t.Errorf("root cannot run it: %s", out)
	}
	if out, err := exec.CommandContext(t.Context(), "chown", "-R", "nobody:", at("new")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := p.as(owner, p.command("workspaces", "list", "--data-dir", at("new"))).CombinedOutput(); err != nil || !strings.Contains(string(out), home) {
		t.Errorf("given to a user it is of no use to that: %v: %s", err, out)
	}
}
