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

// prepared is created once per test process and copied or read by the tests that need it.
var prepared struct {
	installing, backing sync.Once
	installation        string // a data directory after its first start
	backups             backups
}

// backups are backups of one installation with the workspace Home and a file of a simulated lock.
type backups struct {
	data             string // the data directory, which tests must not change
	key              string
	home             string // id of the workspace
	with, withoutKey string // files
}

// install creates a migrated data directory. Its database does not sync to disk.
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
		p.Fatal("the installation was not created")
	}
	p.copy(prepared.installation, data)
}

// copy copies a data directory and preserves file owners.
func (p *program) copy(from, to string) {
	p.Helper()
	if out, err := exec.CommandContext(p.Context(), "cp", "-a", from, to).CombinedOutput(); err != nil {
		p.Fatalf("copy %s: %v: %s", from, err, out)
	}
}

// backedUp returns backups that the backup command has created.
func backedUp(t *testing.T) backups {
	t.Helper()
	dir := storetest.Dir(t) // skips the test if PostgreSQL is missing
	prepared.backing.Do(func() {
		p := &program{T: t, dir: dir}
		b := backups{
			data: filepath.Join(p.dir, "data"),
			with: filepath.Join(p.dir, "with.tar.gz"), withoutKey: filepath.Join(p.dir, "without.tar.gz"),
		}
		p.install(b.data)
		b.home = p.ok("workspaces", "create", "Home")
		simulated := filepath.Join(b.data, "sandbox")
		if err := errors.Join(
			os.Mkdir(simulated, 0o700),
			os.WriteFile(filepath.Join(simulated, "lock"), []byte("{}"), 0o600),
		); err != nil {
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
		t.Fatal("the backups were not created")
	}
	return prepared.backups
}

// as makes a command run as another user, who cannot read the directory where go test keeps the program.
func (p *program) as(who *syscall.Credential, cmd *exec.Cmd) *exec.Cmd {
	p.Helper()
	if p.copied == "" {
		dir, err := os.MkdirTemp("", "deviceaccess-test-")
		if err != nil {
			p.Fatal(err)
		}
		p.Cleanup(func() { os.RemoveAll(dir) })
		p.copied = filepath.Join(dir, "program")
		// cp instead of writing the file here: a concurrent fork of another test could keep it open for writing
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
