package pglocal

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestLocateInBinDir(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		// output of postgres --version; empty: no such program
		answer string
		// major version of the data; empty: no data
		data    string
		version string
		major   int
		err     string // part of the error
	}{
		"a release": {answer: "postgres (PostgreSQL) 16.2", version: "16.2", major: 16},
		"a distribution's": {
			answer:  "postgres (PostgreSQL) 15.13 (Debian 15.13-0+deb12u1)",
			version: "15.13",
			major:   15,
		},
		"a beta": {answer: "postgres (PostgreSQL) 19beta1", version: "19beta1", major: 19},
		"the data's": {
			answer:  "postgres (PostgreSQL) 16.2",
			data:    "16",
			version: "16.2",
			major:   16,
		},
		"too old": {
			answer: "postgres (PostgreSQL) 13.20",
			err:    "contains PostgreSQL 13.20: version 14 or newer is required",
		},
		"newer than the data": {
			answer: "postgres (PostgreSQL) 16.2",
			data:   "15",
			err:    "was written by PostgreSQL 15, and only this version can open it; installed is 16.2 in ",
		},
		"older than the data":      {answer: "postgres (PostgreSQL) 14.1", data: "15", err: "install PostgreSQL 15"},
		"something else":           {answer: "postgres of another kind", err: "its output is"},
		"nothing of that name":     {err: "there is no program postgres"},
		"data of no known version": {answer: "postgres (PostgreSQL) 16.2", data: "x", err: "PG_VERSION"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bin, dir := openTempDir(t), openTempDir(t)
			script(t, filepath.Join(bin, "initdb"), "exit 1")
			if test.answer != "" {
				script(t, filepath.Join(bin, "postgres"), "echo '"+test.answer+"'")
			}
			if test.data != "" {
				writeData(t, dir, "77", test.data)
			}
			got, err := Locate(t.Context(), Options{Dir: dir, BinDir: bin})
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("Locate = %v, want an error with %q", err, test.err)
				}
				return
			}
			if want := (Binaries{Dir: bin, Version: test.version, Major: test.major}); err != nil || got != want {
				t.Errorf("Locate = %+v, %v, want %+v", got, err, want)
			}
		})
	}
}

func TestStart_DataOfMissingVersionStaysUnchanged(t *testing.T) {
	t.Parallel()
	dir := openTempDir(t)
	data := writeData(t, dir, "9", "9")
	_, err := Start(t.Context(), Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "was written by PostgreSQL 9,") ||
		!strings.Contains(err.Error(), "the data was not changed") {
		t.Errorf("Start = %v, want an error that names the version", err)
	}
	if _, err := os.Stat(filepath.Join(data, "PG_VERSION")); err != nil {
		t.Errorf("the data is missing: %v", err)
	}
}

func TestNewestDataIsUsed(t *testing.T) {
	t.Parallel()
	dir := openTempDir(t)
	writeData(t, dir, "9", "9")
	want := dataDir{path: writeData(t, dir, "16", "16"), major: 16}
	writeData(t, dir, "15", "15")
	if err := os.MkdirAll(filepath.Join(dir, "17"), 0o755); err != nil { // not initialized
		t.Fatal(err)
	}
	if got, err := findDataDir(dir); err != nil || got != want {
		t.Errorf("findDataDir = %+v, %v, want %+v", got, err, want)
	}
}

func TestStart_RejectsDataDirectoryItself(t *testing.T) {
	t.Parallel()
	dir := openTempDir(t)
	if err := os.WriteFile(filepath.Join(dir, "PG_VERSION"), []byte("15\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(
		t.Context(),
		Options{Dir: dir},
	); err == nil ||
		!strings.Contains(err.Error(), "is itself the data directory") {
		t.Errorf("Start = %v, want an error about the directory", err)
	}
}

func TestStartNeedsADirectory(t *testing.T) {
	t.Parallel()
	if _, err := Start(t.Context(), Options{}); err == nil {
		t.Error("Start without a directory succeeded")
	}
}

func TestUnreachableDirectoryOfBinaries(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root runs the server as another user")
	}
	bin := filepath.Join(openTempDir(t), "closed")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	var unreachable *UnreachableError
	if _, err := Locate(
		t.Context(),
		Options{BinDir: bin},
	); !errors.As(err, &unreachable) ||
		unreachable.Barrier != bin {
		t.Errorf("Locate = %v, want an UnreachableError that names %s", err, bin)
	}
}

// openTempDir creates a directory that other users can enter.
func openTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pglocal-test-")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// script writes a program. A shell writes it, because a file that we have open for writing could still be open in a
// process that another test is forking, and could not be run then.
func script(t *testing.T, path, body string) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", `cat >"$0" && chmod 755 "$0"`, path)
	cmd.Env = []string{"PATH=/bin:/usr/bin"}
	cmd.Stdin = strings.NewReader("#!/bin/sh\n" + body + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("write %s: %v: %s", path, err, out)
	}
}

// writeData creates what looks like a data directory of the user that the server runs as.
func writeData(t *testing.T, dir, folder, version string) string {
	t.Helper()
	acct, err := serverAccount("")
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, folder, "data")
	if err := os.MkdirAll(data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte(version+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := acct.chown(data); err != nil {
		t.Fatal(err)
	}
	return data
}
