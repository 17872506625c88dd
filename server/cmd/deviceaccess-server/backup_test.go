package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/backup"
)

// inventory is what a client sees of a workspace.
type inventory struct {
	Codes map[string]string // PIN by identifier
	Hooks map[string]string // secret by identifier
	Locks map[string]bool
}

func (p *program) inventory(r ready, key string) inventory {
	p.Helper()
	var out struct {
		Devices []struct {
			ID string `json:"device_id"`
		}
		Codes []struct {
			ID  string `json:"access_code_id"`
			PIN string `json:"code"`
		} `json:"access_codes"`
		Hooks []struct {
			ID     string `json:"webhook_id"`
			Secret string
		} `json:"webhooks"`
	}
	seen := inventory{map[string]string{}, map[string]string{}, map[string]bool{}}
	for _, path := range []string{"/devices/list", "/webhooks/list"} {
		if status := p.post(r, key, path, "{}", &out); status != http.StatusOK {
			p.Fatalf("%s: %d", path, status)
		}
	}
	for _, d := range out.Devices {
		seen.Locks[d.ID] = true
		p.post(r, key, "/access_codes/list", fmt.Sprintf(`{"device_id":%q}`, d.ID), &out)
		for _, c := range out.Codes {
			seen.Codes[c.ID] = c.PIN
		}
	}
	for _, h := range out.Hooks {
		seen.Hooks[h.ID] = h.Secret
	}
	return seen
}

// furnish puts a code and a webhook into the sandbox.
func (p *program) furnish(r ready, pin string) (device string) {
	p.Helper()
	var devices struct {
		Devices []struct {
			ID string `json:"device_id"`
		} `json:"devices"`
	}
	p.until("the August lock appears", func() bool {
		p.post(r, r.APIKey, "/devices/list", `{"device_type":"august_lock"}`, &devices)
		return len(devices.Devices) == 1
	})
	device = devices.Devices[0].ID
	p.code(r, device, pin)
	if status := p.post(r, r.APIKey, "/webhooks/create", `{"url":"https://hooks.example/x"}`, nil); status != http.StatusOK {
		p.Fatalf("create a webhook: %d", status)
	}
	return device
}

func (p *program) code(r ready, device, pin string) {
	p.Helper()
	if status := p.post(r, r.APIKey, "/access_codes/create", fmt.Sprintf(`{"device_id":%q,"code":%q,"sync":true}`, device, pin), nil); status != http.StatusOK {
		p.Fatalf("create a code: %d", status)
	}
}

func (i inventory) holds(older inventory) error {
	for id, pin := range older.Codes {
		if i.Codes[id] != pin {
			return fmt.Errorf("code %s is not there, or has another PIN", id)
		}
	}
	for id, secret := range older.Hooks {
		if i.Hooks[id] != secret || secret == "" {
			return fmt.Errorf("webhook %s is not there, or has another secret", id)
		}
	}
	for id := range older.Locks {
		if !i.Locks[id] {
			return fmt.Errorf("lock %s is not there", id)
		}
	}
	return nil
}

// What is backed up, while the server works or when it is stopped, is there again elsewhere.
func TestABackupIsRestored(t *testing.T) {
	t.Parallel()
	p := newPrivate(t)
	at := func(name string) string { return filepath.Join(p.dir, name) }
	r, cmd := p.serve("--sandbox-speed", "100")
	device := p.furnish(r, "258013")
	before := p.inventory(r, r.APIKey)

	running := p.command("backup", at("running.tar.gz"))
	var said bytes.Buffer
	running.Stdout, running.Stderr = &said, &said
	if err := running.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- running.Wait() }()
	for n := 0; n < 50 && len(done) == 0; n++ {
		p.code(r, device, fmt.Sprint(500000+n))
	}
	if err := <-done; err != nil {
		t.Fatalf("backup: %v: %s", err, said.String())
	}
	if !strings.Contains(said.String(), "gives access to every PIN") {
		t.Errorf("it does not say that the key is in it: %s", said.String())
	}
	if st, err := os.Stat(at("running.tar.gz")); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("others may read the backup: %v %v", st.Mode(), err)
	}
	if _, err := p.run("backup", at("running.tar.gz")); err == nil || !strings.Contains(err.Error(), "never overwritten") {
		t.Errorf("over another backup: %v", err)
	}
	after := p.inventory(r, r.APIKey)
	p.stop(cmd)
	if out := p.ok("backup", "--without-key", at("stopped.tar.gz")); !strings.Contains(out, "without the key") {
		t.Errorf("it does not say that the key is missing: %s", out)
	}

	if _, err := p.run("restore", "--data-dir", at("keyless"), at("stopped.tar.gz")); err == nil || !strings.Contains(err.Error(), "set --master-key") {
		t.Errorf("without the key: %v", err)
	}
	wrong := "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	if _, err := p.run("restore", "--data-dir", at("with-key"), "--master-key", wrong, at("running.tar.gz")); err == nil || !strings.Contains(err.Error(), "leave out --master-key") {
		t.Errorf("with its own key, and another one: %v", err)
	}
	key, err := os.ReadFile(filepath.Join(p.dir, "data", "master.key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(at("keyless"), 0o755), os.WriteFile(at("keyless/master.key"), key, 0o600)); err != nil {
		t.Fatal(err)
	}
	for dir, c := range map[string]struct {
		file string
		want inventory
	}{"with-key": {"running.tar.gz", before}, "keyless": {"stopped.tar.gz", after}} {
		p.ok("restore", "--data-dir", at(dir), at(c.file))
		r, cmd := p.serve("--data-dir", at(dir), "--sandbox-speed", "100")
		if err := p.inventory(r, r.APIKey).holds(c.want); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
		if memory := p.ok("sandbox", "memory", "--data-dir", at(dir), "--endpoint", r.URL, device); strings.Count(memory, "258013") != 1 {
			t.Errorf("%s: the lock has forgotten the code, or has it twice", dir)
		}
		p.code(r, device, "777123") // all goes on
		p.stop(cmd)
		if _, err := p.run("restore", "--data-dir", at(dir), at(c.file)); err == nil || !strings.Contains(err.Error(), "never overwritten") {
			t.Errorf("over data: %v", err)
		}
	}
	if left, _ := filepath.Glob(at("*/restor*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// all stands for all files of a backup but its manifest.
const all = "*"

// rewrite copies a backup with another manifest, or with one file overwritten, or without any.
func rewrite(t *testing.T, from, to string, change func(*backup.Manifest), instead string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	r, err := backup.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	m := r.Manifest
	change(&m)
	w, err := backup.NewWriter(out, m)
	for err == nil && instead != all {
		h, content, next := r.Next()
		if errors.Is(next, io.EOF) {
			break
		}
		if err = next; err == nil && h.Name == instead {
			err = w.PutBytes(h.Name, make([]byte, h.Size))
		} else if err == nil {
			err = w.Put(h, content)
		}
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestABackupThatIsNoGoodIsRefused(t *testing.T) {
	t.Parallel()
	made := backedUp(t)
	p := newEmpty(t)
	at := func(name string) string { return filepath.Join(p.dir, name) }
	if _, err := p.run("backup", at("none.tar.gz")); err == nil || !strings.Contains(err.Error(), "there is no database in") {
		t.Errorf("of nothing: %v", err)
	}
	if _, err := os.Stat(filepath.Join(p.dir, "data", "postgres")); err == nil {
		t.Error("a database was made in order to be backed up")
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
		"changed": "damaged", "newer": "a newer version of this program", "other schema": "damaged",
		"other machine": "made on plan9/mips", "other postgres": "install PostgreSQL 99", "broken database": "does not recover", "nowhere": "no such file",
	} {
		if _, err := p.run("restore", "--data-dir", at("new"), at(name)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; expected a word on %q", name, err, want)
		}
		if left, _ := filepath.Glob(at("new/*")); len(left) > 0 {
			t.Errorf("%s: left behind: %v", name, left)
		}
	}
	for _, args := range [][]string{{"backup", at("x")}, {"restore", made.with}} {
		if _, err := p.run(append(args, "--database-url", "postgres://somewhere/else")...); err == nil || !strings.Contains(err.Error(), "pg_") || strings.Contains(err.Error(), "somewhere") {
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
		return // this system has none
	}
	defer disk.Close()
	var said bytes.Buffer
	full.Stdout, full.Stderr = disk, &said
	if err := full.Run(); err == nil || !strings.Contains(said.String(), "the disk is full and the output is incomplete") {
		t.Errorf("to a full disk: %v %s", err, said.String())
	}
	out := p.ok("restore", "--data-dir", at("new"), made.with)
	for _, want := range []string{"Restored " + at("new"), "deleted", "revoked", "client sessions", "suspended", "disconnected", "webhooks rotate-secret", "--overlap 0"} {
		if !strings.Contains(out, want) {
			t.Errorf("no word of %q in what a restore says: %s", want, out)
		}
	}
	p.ok("workspaces", "create", "Made since")
	audit := regexp.MustCompile(`deviceaccess-server (audit --data-dir BEFORE --since .*)`).FindStringSubmatch(out)
	if audit == nil {
		t.Fatalf("a restore does not say how to see what was done since: %s", out)
	}
	args := strings.Fields(strings.Replace(audit[1], "BEFORE", at("data"), 1))
	if since := p.ok(args...); !strings.Contains(since, "workspaces create") {
		t.Errorf("%v does not tell what was done since: %s", args, since)
	}
}

// A restore that is killed leaves no database, which can be restored then, or the whole one.
func TestAKilledRestoreIsStartedAgain(t *testing.T) {
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
	for _, stage := range []string{filepath.Join(dir, "restore.lock"), filepath.Join(staged, "base", "*", "*"), filepath.Join(staged, "pg_wal", "0*"),
		filepath.Join(staged, "postmaster.pid"), filepath.Join(staged, "backup_label.old"), filepath.Join(dir, "restoring", "placing"), filepath.Join(dir, "sandbox")} {
		if left, _ := filepath.Glob(stage); len(left) > 0 { // the one before was killed later than it was to be
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
		restore := p.command("restore", "--data-dir", dir, at("b.tar.gz")) // over what the one before has left
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
	p.ok("restore", "--data-dir", dir, at("b.tar.gz")) // which looks whether it has recovered
	holds()
}

// killAt waits until a file of that pattern is there, and kills the program unless it has ended before.
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
