package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/backup"
)

// inventory is what a client sees of a workspace.
type inventory struct {
	Codes map[string]string // PIN by id
	Hooks map[string]string // secret by id
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

// furnish creates a code and a webhook in the sandbox.
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
	if status := p.post(
		r,
		r.APIKey,
		"/webhooks/create",
		`{"url":"https://hooks.example/x"}`,
		nil,
	); status != http.StatusOK {
		p.Fatalf("create a webhook: %d", status)
	}
	return device
}

func (p *program) code(r ready, device, pin string) {
	p.Helper()
	if status := p.post(
		r,
		r.APIKey,
		"/access_codes/create",
		fmt.Sprintf(`{"device_id":%q,"code":%q,"sync":true}`, device, pin),
		nil,
	); status != http.StatusOK {
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

// A backup of a running or a stopped server can be restored to another directory.
func TestBackupAndRestore(t *testing.T) {
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
	if _, err := p.run(
		"backup",
		at("running.tar.gz"),
	); err == nil ||
		!strings.Contains(err.Error(), "never overwritten") {
		t.Errorf("over another backup: %v", err)
	}
	after := p.inventory(r, r.APIKey)
	p.stop(cmd)
	if out := p.ok("backup", "--without-key", at("stopped.tar.gz")); !strings.Contains(out, "without the key") {
		t.Errorf("it does not say that the key is missing: %s", out)
	}

	if _, err := p.run(
		"restore",
		"--data-dir",
		at("keyless"),
		at("stopped.tar.gz"),
	); err == nil ||
		!strings.Contains(err.Error(), "set --master-key") {
		t.Errorf("without the key: %v", err)
	}
	wrong := "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	if _, err := p.run(
		"restore",
		"--data-dir",
		at("with-key"),
		"--master-key",
		wrong,
		at("running.tar.gz"),
	); err == nil ||
		!strings.Contains(err.Error(), "leave out --master-key") {
		t.Errorf("with its own key, and another one: %v", err)
	}
	key, err := os.ReadFile(filepath.Join(p.dir, "data", "master.key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(
		os.Mkdir(at("keyless"), 0o755),
		os.WriteFile(at("keyless/master.key"), key, 0o600),
	); err != nil {
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
		if memory := p.ok(
			"sandbox",
			"codes",
			"--data-dir",
			at(dir),
			"--endpoint",
			r.URL,
			device,
		); strings.Count(
			memory,
			"258013",
		) != 1 {
			t.Errorf("%s: the lock has forgotten the code, or has it twice", dir)
		}
		p.code(r, device, "777123") // writes work
		p.stop(cmd)
		if _, err := p.run(
			"restore",
			"--data-dir",
			at(dir),
			at(c.file),
		); err == nil ||
			!strings.Contains(err.Error(), "never overwritten") {
			t.Errorf("over data: %v", err)
		}
	}
	if left, _ := filepath.Glob(at("*/restor*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// all stands for all files of a backup except its manifest.
const all = "*"

// rewrite copies a backup with a changed manifest, and without one file or all files.
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
