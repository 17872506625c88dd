package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/backup"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
)

// otherUser is an unprivileged user of every system.
const otherUser = "nobody"

// unprivileged returns otherUser. Only root can become another user.
func unprivileged(t *testing.T) *syscall.Credential {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can run the server as another user")
	}
	u, err := user.Lookup(otherUser)
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

// Files that root restores to another user's directory belong to that user, including an existing key.
func TestRestore_AsRootKeepsOwner(t *testing.T) {
	t.Parallel()
	owner := unprivileged(t)
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
		if out := p.ok("restore", "--data-dir", dir, file); !strings.Contains(out, "belongs to user "+otherUser) {
			t.Errorf("it does not say whose it is: %s", out)
		}
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			st, err := os.Lstat(path)
			if err == nil &&
				(st.Sys().(*syscall.Stat_t).Uid != owner.Uid || st.Sys().(*syscall.Stat_t).Gid != owner.Gid) {
				t.Errorf("%s belongs to another user", path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if out, err := p.as(owner, p.command("workspaces", "list", "--data-dir", dir)).
			CombinedOutput(); err != nil ||
			!strings.Contains(string(out), b.home) {
			t.Errorf("%s is of no use to its owner: %v: %s", dir, err, out)
		}
	}
	if out := p.ok("restore", "--data-dir", at("new"), b.with); !strings.Contains(out, "chown -R") {
		t.Errorf("it does not say how to run it as another user: %s", out)
	}
	if out := p.ok("workspaces", "list", "--data-dir", at("new")); !strings.Contains(out, b.home) {
		t.Errorf("root cannot run it: %s", out)
	}
	if out, err := exec.CommandContext(t.Context(), "chown", "-R", otherUser+":", at("new")).
		CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := p.as(owner, p.command("workspaces", "list", "--data-dir", at("new"))).
		CombinedOutput(); err != nil ||
		!strings.Contains(string(out), b.home) {
		t.Errorf("the new owner cannot use it: %v: %s", err, out)
	}
}

// A failed restore says that nothing was changed, and leaves nothing behind.
func TestRestore_FailureChangesNothing(t *testing.T) {
	t.Parallel()
	b := backedUp(t)
	p := newEmpty(t)
	at := func(name string) string { return filepath.Join(p.dir, name) }
	whole, err := os.ReadFile(b.withoutKey)
	if err != nil {
		t.Fatal(err)
	}
	p.file("cut", string(whole[:len(whole)*2/3]))
	p.file("end", string(whole[:len(whole)-9]))
	p.file("text", "nonsense")
	wrong := "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	for want, args := range map[string][]string{
		"the backup is damaged":     {at("cut"), "--master-key", wrong},
		"it is truncated":           {at("end"), "--master-key", wrong},
		"is another kind of file":   {at("text"), "--master-key", wrong},
		"is the master key the one": {b.withoutKey, "--master-key", wrong},
		"openssl rand -base64 32":   {b.withoutKey, "--master-key", "abc"},
	} {
		said := p.said(append([]string{"restore", "--data-dir", at("new"), "--log-level", "error"}, args...)...)
		if !strings.Contains(said, want) || strings.Count(said, "nothing was changed") != 1 {
			t.Errorf("%s: %s", want, said)
		}
		if strings.Contains(said, "Restoring: 100") {
			t.Errorf("%s: all of it is said to be restored: %s", want, said)
		}
		if strings.Contains(want, "openssl") && strings.Contains(said, "Reading") {
			t.Errorf("a key that is none is refused late: %s", said)
		}
		if _, err := os.Stat(at("new")); !os.IsNotExist(err) {
			left, _ := filepath.Glob(at("new/*"))
			t.Errorf("%s: left behind: %v", want, left)
		}
	}
	if said := p.said(
		"backup",
		at("nowhere/b.tar.gz"),
	); !strings.Contains(
		said,
		"directory "+at("nowhere")+" does not exist: create it first",
	) {
		t.Errorf("to no directory: %s", said)
	}
}

// A backup from before a change of the master key needs the earlier key. If the backup contains it, the restore brings
// it back; else the error says which key is needed.
func TestRestore_AfterMasterKeyChange(t *testing.T) {
	t.Parallel()
	b := backedUp(t)
	p := newEmpty(t)
	at := func(name string) string { return filepath.Join(p.dir, name) }
	p.copy(b.data, at("data"))
	key := func(dir string) string {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(at(dir), "master.key"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(b))
	}
	put := func(dir, content string) {
		t.Helper()
		if err := os.MkdirAll(at(dir), 0o755); err == nil {
			err = os.WriteFile(filepath.Join(at(dir), "master.key"), []byte(content+"\n"), 0o600)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	earlier := b.key
	old, err := encryption.Parse(earlier)
	if err != nil {
		t.Fatal(err)
	}
	var newer string
	for err := errors.New("none yet"); err != nil; { // one in 256 keys has the id of the earlier one
		another := encryption.NewMaster()
		newer = base64.StdEncoding.EncodeToString(another)
		_, err = encryption.New(old[0], another)
	}
	put("data", newer+"\n"+earlier)
	p.ok("keys", "rotate-encryption")

	p.ok("restore", "--data-dir", at("with"), b.with)
	if key("with") != earlier {
		t.Error("the restore does not bring back the key of the backup")
	}
	put("newer", newer)
	for file, want := range map[string]string{
		b.with:       "another master key than the backup's",
		b.withoutKey: "If the key was changed after the backup, use the earlier key",
	} {
		if _, err := p.run(
			"restore",
			"--data-dir",
			at("newer"),
			file,
		); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "nothing was changed") {
			t.Errorf("%s with the newer key: %v", file, err)
		}
	}
	put("both", newer+"\n"+earlier)
	p.ok("restore", "--data-dir", at("both"), b.withoutKey)
}

func TestRestore_BadBackups(t *testing.T) {
	t.Parallel()
	made := backedUp(t)
	p := newEmpty(t)
	at := func(name string) string { return filepath.Join(p.dir, name) }
	if _, err := p.run(
		"backup",
		at("none.tar.gz"),
	); err == nil ||
		!strings.Contains(err.Error(), "there is no database in") {
		t.Errorf("of nothing: %v", err)
	}
	if _, err := os.Stat(filepath.Join(p.dir, "data", "postgres")); err == nil {
		t.Error("backup has created a database")
	}
	good, err := os.ReadFile(made.with)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(good)
	changed[len(good)/2] ^= 1
	p.file("changed", string(changed))
	rewrite(t, made.with, at("newer"), func(m *backup.Manifest) { m.Schema += 1000 }, all)
	rewrite(t, made.with, at("other schema"), func(m *backup.Manifest) { m.Schema-- }, "")
	rewrite(t, made.with, at("other machine"), func(m *backup.Manifest) { m.Platform = "plan9/mips" }, all)
	rewrite(t, made.with, at("other postgres"), func(m *backup.Manifest) { m.PostgresMajor = 99 }, all)
	rewrite(t, made.with, at("broken database"), func(*backup.Manifest) {}, "postgres/global/pg_control")
	for name, want := range map[string]string{
		"changed":         "damaged",
		"newer":           "a newer version of this program",
		"other schema":    "damaged",
		"other machine":   "made on plan9/mips",
		"other postgres":  "install PostgreSQL 99",
		"broken database": "does not recover",
		"nowhere":         "no such file",
	} {
		if _, err := p.run(
			"restore",
			"--data-dir",
			at("new"),
			at(name),
		); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; expected a word on %q", name, err, want)
		}
		if left, _ := filepath.Glob(at("new/*")); len(left) > 0 {
			t.Errorf("%s: left behind: %v", name, left)
		}
	}
	for _, args := range [][]string{{"backup", at("x")}, {"restore", made.with}} {
		if _, err := p.run(
			append(
				args,
				"--database-url",
				"postgres://somewhere/else",
			)...); err == nil || !strings.Contains(err.Error(), "pg_") ||
			strings.Contains(err.Error(), "somewhere") {
			t.Errorf("%v of another database: %v", args, err)
		}
		if _, err := p.run(args[0]); err == nil || !strings.Contains(err.Error(), "the FILE") {
			t.Errorf("%v of no file: %v", args, err)
		}
	}
	p.copy(made.data, at("data"))
	full := p.command("backup", "-")
	disk, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		return // this system has no /dev/full
	}
	defer disk.Close()
	var said bytes.Buffer
	full.Stdout, full.Stderr = disk, &said
	if err := full.Run(); err == nil ||
		!strings.Contains(said.String(), "the disk is full and the output is incomplete") {
		t.Errorf("to a full disk: %v %s", err, said.String())
	}
	out := p.ok("restore", "--data-dir", at("new"), made.with)
	for _, want := range []string{
		"Restored " + at("new"),
		"deleted",
		"revoked",
		"client sessions",
		"suspended",
		"disconnected",
		"webhooks rotate-secret",
		"--overlap 0",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output of restore lacks %q: %s", want, out)
		}
	}
	p.ok("workspaces", "create", "Made since")
	audit := regexp.MustCompile(`deviceaccess-server (audit --data-dir BEFORE --since .*)`).FindStringSubmatch(out)
	if audit == nil {
		t.Fatalf("restore does not say how to list later changes: %s", out)
	}
	args := strings.Fields(strings.Replace(audit[1], "BEFORE", at("data"), 1))
	if since := p.ok(args...); !strings.Contains(since, "workspaces create") {
		t.Errorf("%v does not list later changes: %s", args, since)
	}
}

// A killed restore leaves either no database, so that it can be started again, or the complete one.
func TestRestore_KilledAndStartedAgain(t *testing.T) {
	t.Parallel()
	p := newPrivate(t)
	at := func(name string) string { return filepath.Join(p.dir, name) }
	r, cmd := p.serve()
	p.furnish(r, "258013")
	want := p.inventory(r, r.APIKey)
	p.stop(cmd)
	p.ok("backup", at("b.tar.gz"))
	dir := at("new")
	holds := func() {
		again, cmd := p.serve("--data-dir", dir)
		if err := p.inventory(again, again.APIKey).holds(want); err != nil {
			t.Error(err)
		}
		p.stop(cmd)
	}
	kills, staged := 0, filepath.Join(dir, "restoring", "postgres", "*", "data")
	for _, stage := range []string{
		filepath.Join(dir, "restore.lock"),
		filepath.Join(staged, "base", "*", "*"),
		filepath.Join(staged, "pg_wal", "0*"),
		filepath.Join(staged, "postmaster.pid"),
		filepath.Join(staged, "backup_label.old"),
		filepath.Join(dir, "restoring", "placing"),
		filepath.Join(dir, "sandbox"),
	} {
		if left, _ := filepath.Glob(stage); len(left) > 0 { // the previous restore got further than intended
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
		restore := p.command("restore", "--data-dir", dir, at("b.tar.gz")) // over the files of the killed restore
		var said bytes.Buffer
		restore.Stderr = &said
		if err := restore.Start(); err != nil {
			t.Fatal(err)
		}
		killed := p.killAt(restore, stage)
		if killed {
			kills++
		} else if !restore.ProcessState.Success() {
			t.Errorf("before %s it has failed: %s", stage[len(dir):], said.String())
		}
		_, err := os.Stat(filepath.Join(dir, "postgres"))
		t.Logf("killed at %s: restored already: %t", stage[len(dir):], err == nil)
		if err == nil {
			holds()
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	if kills == 0 {
		t.Error("every restore ended before it could be killed")
	}
	p.ok("restore", "--data-dir", dir, at("b.tar.gz")) // verifies that the database recovers
	holds()
}

// killAt waits until a file matches pattern, and kills the program unless it has exited.
func (p *program) killAt(cmd *exec.Cmd, pattern string) (killed bool) {
	p.Helper()
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	for there := false; !there; {
		found, err := filepath.Glob(pattern)
		if err != nil {
			p.Fatal(err)
		}
		there = len(found) > 0
		select {
		case <-ended:
			return false
		case <-time.After(200 * time.Microsecond):
		}
	}
	killed = cmd.Process.Kill() == nil
	<-ended
	return killed && !cmd.ProcessState.Exited()
}
