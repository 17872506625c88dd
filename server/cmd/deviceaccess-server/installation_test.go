package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// prepared is what is made once in a test process, and copied or read by the tests that need it.
var prepared struct {
	installing, backing sync.Once
	installation        string // a data directory after its first start
	backups             backups
}

// backups are those of one installation, which has the workspace Home, and a file of a simulated lock.
type backups struct {
	data             string // the data directory, which must not be changed: key is its master key
	key              string
	home             string // identifier of the workspace
	with, withoutKey string // files
}

// install makes a data directory like migrate does, except that its database does not wait for the disk.
func (p *program) install(data string) {
	p.Helper()
	prepared.installing.Do(func() {
		q := &program{T: p.T, dir: storetest.Dir(p)}
		q.ok("migrate")
		made := filepath.Join(q.dir, "data")
		configurations, err := filepath.Glob(filepath.Join(made, "postgres", "*", "data", "postgresql.auto.conf"))
		if err != nil || len(configurations) != 1 {
			p.Fatalf("the configuration of the database is %v: %v", configurations, err)
		}
		file, err := os.OpenFile(configurations[0], os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			p.Fatal(err)
		}
		defer file.Close()
		const quick = "fsync = off\nautovacuum = off\nwal_init_zero = off\nshared_buffers = 32MB"
		if _, err := fmt.Fprintln(file, quick); err != nil {
			p.Fatal(err)
		}
		prepared.installation = made
	})
	if prepared.installation == "" {
		p.Fatal("no installation could be made")
	}
	p.copy(prepared.installation, data)
}

// copy copies a data directory, with the owners of all that is in it.
func (p *program) copy(from, to string) {
	p.Helper()
	if out, err := exec.CommandContext(p.Context(), "cp", "-a", from, to).CombinedOutput(); err != nil {
		p.Fatalf("copy %s: %v: %s", from, err, out)
	}
}

// backedUp are backups that were made by commands.
func backedUp(t *testing.T) backups {
	t.Helper()
	dir := storetest.Dir(t) // which skips the test where there is no PostgreSQL
	prepared.backing.Do(func() {
		p := &program{T: t, dir: dir}
		b := backups{
			data: filepath.Join(p.dir, "data"),
			with: filepath.Join(p.dir, "with.tar.gz"), withoutKey: filepath.Join(p.dir, "without.tar.gz"),
		}
		p.install(b.data)
		b.home = p.ok("workspaces", "create", "Home")
		simulated := filepath.Join(b.data, "sandbox")
		if err := errors.Join(os.Mkdir(simulated, 0o700), os.WriteFile(filepath.Join(simulated, "lock"), []byte("{}"), 0o600)); err != nil {
			t.Fatal(err)
		}
		p.ok("backup", b.with)
		if out := p.ok("backup", "--without-key", b.withoutKey); !strings.Contains(out, "without the key") {
			t.Errorf("it does not say that the key is missing: %s", out)
		}
		key, err := os.ReadFile(filepath.Join(b.data, "master.key"))
		if err != nil {
			t.Fatal(err)
		}
		b.key = strings.TrimSpace(string(key))
		prepared.backups = b
	})
	if prepared.backups.key == "" {
		t.Fatal("no backups could be made")
	}
	return prepared.backups
}

// as has a command run as another user, who cannot reach the folder that go test keeps the program in.
func (p *program) as(who *syscall.Credential, cmd *exec.Cmd) *exec.Cmd {
	p.Helper()
	if p.copied == "" {
		dir, err := os.MkdirTemp("", "deviceaccess-test-")
		if err != nil {
			p.Fatal(err)
		}
		p.Cleanup(func() { os.RemoveAll(dir) })
		p.copied = filepath.Join(dir, "program")
		// cp, and not we, since a file that we write could still be open in a process that another test is forking
		if out, err := exec.CommandContext(p.Context(), "cp", cmd.Path, p.copied).CombinedOutput(); err != nil {
			p.Fatalf("copy the program: %v: %s", err, out)
		}
		if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(p.copied, 0o755)); err != nil {
			p.Fatal(err)
		}
	}
	cmd.Path, cmd.Dir = p.copied, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	return cmd
}
