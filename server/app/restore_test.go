package app

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/backup"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// backedUp returns a backup of a new installation with a simulated lock, and a data directory to restore it to.
func backedUp(t *testing.T) (file []byte, to Database) {
	t.Helper()
	if _, err := pglocal.Locate(t.Context(), pglocal.Options{}); err != nil {
		storetest.Missing(t, "%v", err)
	}
	file, err := installation()
	must(t, err)
	root, err := readable()
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(root)) })
	return file, Database{DataDir: filepath.Join(root, "to"), NoSync: true}
}

// readable creates a directory that the user of a private database can read.
func readable() (string, error) {
	root, err := os.MkdirTemp("", "deviceaccess-test-")
	if err != nil {
		return "", err
	}
	return root, os.Chmod(root, 0o755)
}

// installation is the backup of all tests.
var installation = sync.OnceValues(func() (file []byte, err error) {
	root, err := readable()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	from := Database{DataDir: root, NoSync: true}
	if err := Migrate(context.Background(), from, discard); err != nil {
		return nil, err
	}
	lock := filepath.Join(root, sandboxName, "lock")
	if err := errors.Join(os.Mkdir(filepath.Dir(lock), 0o700), os.WriteFile(lock, []byte("{}"), 0o600)); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	_, err = Backup(context.Background(), from, &out, false, "test", discard)
	return out.Bytes(), err
})

var discard = slog.New(slog.DiscardHandler)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// holds fails the test unless a data directory has exactly these entries.
func holds(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s holds %q, want %q", dir, got, want)
	}
}

// No server starts in a directory during a restore.
func TestRestore_BlocksServers(t *testing.T) {
	t.Parallel()
	file, to := backedUp(t)
	c := to
	c.verified = func() {
		for name, open := range map[string]func() error{
			"serve":   func() error { _, err := Start(t.Context(), Config{Database: to, Listen: "127.0.0.1:0"}); return err },
			"migrate": func() error { return Migrate(t.Context(), to, discard) },
		} {
			if err := open(); err == nil || !strings.Contains(err.Error(), "is being restored") {
				t.Errorf("%s: %v", name, err)
			}
		}
		holds(t, to.DataDir, restoreLock, stagingName)
	}
	_, err := Restore(t.Context(), c, bytes.NewReader(file), discard)
	must(t, err)
	holds(t, to.DataDir, keyName, postgresName, sandboxName)
	must(t, Migrate(t.Context(), to, discard))
}

// A server that starts just before the restore takes its lock loses neither its key nor other data.
func TestRestore_ConcurrentServerKeepsData(t *testing.T) {
	t.Parallel()
	file, to := backedUp(t)
	for name, begun := range map[string]func(dir string) []string{
		"a key": func(dir string) []string {
			must(t, os.WriteFile(filepath.Join(dir, keyName), []byte("another\n"), 0o600))
			return []string{keyName}
		},
		"a database": func(dir string) []string {
			must(t, os.MkdirAll(filepath.Join(dir, postgresName, "15"), 0o755))
			return []string{postgresName}
		},
		"locks": func(dir string) []string {
			must(t, os.Mkdir(filepath.Join(dir, sandboxName), 0o755))
			return []string{sandboxName}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := to
			c.DataDir = filepath.Join(filepath.Dir(to.DataDir), strings.ReplaceAll(name, " ", "-"))
			var made []string
			c.verified = func() { made = begun(c.DataDir) }
			_, err := Restore(t.Context(), c, bytes.NewReader(file), discard)
			if err == nil || !strings.Contains(err.Error(), "never overwritten") ||
				!strings.Contains(err.Error(), "nothing was changed") {
				t.Errorf("it is restored all the same: %v", err)
			}
			holds(t, c.DataDir, made...)
			key, err := os.ReadFile(filepath.Join(c.DataDir, keyName))
			if err != nil && !errors.Is(err, os.ErrNotExist) || len(key) > 0 && string(key) != "another\n" {
				t.Errorf("the key has been replaced (%v)", err)
			}
		})
	}
}

// After a failed first start, the error names the directory to remove.
func TestRestore_NamesObstacle(t *testing.T) {
	t.Parallel()
	file, to := backedUp(t)
	dir := filepath.Join(to.DataDir, postgresName)
	must(t, os.MkdirAll(dir, 0o755))
	if _, err := Restore(
		t.Context(),
		to,
		bytes.NewReader(file),
		discard,
	); err == nil || !strings.Contains(err.Error(), dir+" has no database and") ||
		strings.Contains(err.Error(), "there is data in") {
		t.Errorf("%v", err)
	}
}

// A file name that leads out of its directory is rejected.
func TestRestore_HostileFileNames(t *testing.T) {
	t.Parallel()
	file, to := backedUp(t)
	for _, name := range []string{
		"sandbox/../postgres/15/data/planted",
		"sandbox/../lock",
		"sandbox/./lock",
		"sandbox//lock",
		"./sandbox/lock",
		"sandbox",
		"/sandbox/lock",
		"../sandbox/lock",
		"postgres/../sandbox/lock",
		"postgres/15/../../lock",
		"postgres",
		"master.key/lock",
		"elsewhere/lock",
		"",
	} {
		r, err := backup.NewReader(bytes.NewReader(file))
		must(t, err)
		var out bytes.Buffer
		w, err := backup.NewWriter(&out, r.Manifest)
		must(t, err)
		for _, name := range []string{"sandbox/first", name} {
			must(
				t,
				w.Put(&tar.Header{
					Typeflag: tar.TypeReg,
					Name:     name,
					Mode:     0o600,
					Size:     2,
				}, strings.NewReader("{}")),
			)
		}
		must(t, w.Close())
		_, err = Restore(t.Context(), to, &out, discard)
		if !errors.Is(err, backup.ErrDamaged) || !strings.Contains(err.Error(), "(unknown file "+name+")") {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := os.Lstat(to.DataDir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%q: files are left (%v)", name, err)
			must(t, os.RemoveAll(to.DataDir))
		}
	}
}
