package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// begun starts a backup to a file and waits for its temporary file. The backup then waits for the locked database.
func (p *program) begun(path string, wrap ...string) (cmd *exec.Cmd, said *bytes.Buffer) {
	p.Helper()
	cmd, said = p.command("backup", path), &bytes.Buffer{}
	if len(wrap) > 0 {
		shell, err := exec.LookPath(wrap[0])
		if err != nil {
			p.Fatal(err)
		}
		cmd.Args = append(append(wrap, cmd.Path), cmd.Args[1:]...)
		cmd.Path = shell
	}
	cmd.Stdout, cmd.Stderr = said, said
	before := p.incomplete(path)
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	p.until("the file is begun", func() bool {
		return slices.ContainsFunc(p.incomplete(path), func(one string) bool { return !slices.Contains(before, one) })
	})
	return cmd, said
}

func (p *program) incomplete(path string) []string {
	p.Helper()
	found, err := filepath.Glob(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".incomplete-*"))
	if err != nil {
		p.Fatal(err)
	}
	return found
}

// A backup that SIGHUP stops leaves no partial file, which might contain the master key. With nohup, the backup
// completes.
func TestBackup_HangupLeavesNothing(t *testing.T) {
	t.Parallel()
	p := newPrivate(t)
	path := filepath.Join(p.dir, "b.tar.gz")
	lock, err := pglocal.TryLock(filepath.Join(p.dir, "data", "postgres", "lock"))
	if err != nil {
		t.Fatal(err)
	}
	cmd, said := p.begun(path)
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	var exited *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exited) || !exited.Exited() {
		t.Errorf("it ends with %v: %s", err, said)
	}
	if left := p.incomplete(path); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	cmd, said = p.begun(path, "sh", "-c", `trap "" HUP; exec "$0" "$@"`)
	if err := errors.Join(cmd.Process.Signal(syscall.SIGHUP), lock.Release()); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("nohup does not help: %v: %s", err, said)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

// A backup removes the temporary files of killed backups of the same name, but not those of running ones.
func TestBackup_RemovesFilesOfKilledBackup(t *testing.T) {
	t.Parallel()
	p := newPrivate(t)
	path := filepath.Join(p.dir, "b.tar.gz")
	lock, err := pglocal.TryLock(filepath.Join(p.dir, "data", "postgres", "lock"))
	if err != nil {
		t.Fatal(err)
	}
	killed, _ := p.begun(path)
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	left := p.incomplete(path)
	if len(left) != 1 {
		t.Fatalf("the killed backup has left %v", left)
	}
	other := p.file(".b.tar.gz.old.incomplete-1", "of another name")
	two := [2]*exec.Cmd{}
	for i := range two {
		two[i], _ = p.begun(path)
		if now := p.incomplete(path); slices.Contains(now, left[0]) || len(now) != i+1 {
			t.Errorf("with %d that write there is %v", i+1, now)
		}
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if one, other := two[0].Wait(), two[1].Wait(); (one == nil) == (other == nil) {
		t.Errorf("not exactly one of two concurrent backups succeeded: %v, %v", one, other)
	}
	if now := p.incomplete(path); len(now) > 0 {
		t.Errorf("left behind: %v", now)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}

// A file that a command reports as written is on disk, including its directory entry: a backup, and a master key.
func TestFileNamesAreSynced(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		storetest.Missing(t, "strace, which shows what is synced")
	}
	keyless, p := newProgram(t), newPrivate(t)
	for _, c := range []struct {
		*program
		file string
		args []string
	}{
		{keyless, filepath.Join(keyless.dir, "data", "master.key"), []string{"migrate"}},
		{p, filepath.Join(p.dir, "b.tar.gz"), []string{"backup", filepath.Join(p.dir, "b.tar.gz")}},
	} {
		trace := filepath.Join(c.dir, "trace")
		cmd := c.command(c.args...)
		cmd.Args = append(
			[]string{
				strace,
				"--follow-forks",
				"--seccomp-bpf",
				"--trace=link,linkat,fsync",
				"--decode-fds=path",
				"--output=" + trace,
				cmd.Path,
			},
			cmd.Args[1:]...)
		cmd.Path = strace
		if out, err := cmd.CombinedOutput(); err != nil {
			storetest.Missing(t, "a strace that can trace here: %v: %s", err, out)
		}
		b, err := os.ReadFile(trace)
		if err != nil {
			t.Fatal(err)
		}
		_, named, there := strings.Cut(string(b), `"`+c.file+`"`)
		if synced := regexp.MustCompile(
			`fsync\(\d+<` + regexp.QuoteMeta(filepath.Dir(c.file)) + `>`,
		); !there ||
			!synced.MatchString(named) {
			t.Errorf(
				"%v: the name of the file may be lost with the power: after it has one, there is only\n%.300s",
				c.args,
				named,
			)
		}
	}
}
