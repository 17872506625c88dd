package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The script of the package records a backup only after its verification, and leaves no backup that fails it.
func TestBackupScript_RecordsVerifiedBackups(t *testing.T) {
	t.Parallel()
	p := newPrivate(t)
	_, serving := p.serve()
	script, err := filepath.Abs("../../../packaging/scripts/backup.sh")
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(p.dir, name) }
	// The program, which damages a backup before its verification while a file is there.
	const program = `#!/bin/sh
if [ "$1" = restore ] && [ -e "$DAMAGE" ]; then
	for file; do :; done
	echo damaged >"$file"
fi
exec "$PROGRAM" "$@"
`
	if err := errors.Join(
		os.Mkdir(at("bin"), 0o755),
		os.WriteFile(at("bin/deviceaccess-server"), []byte(program), 0o755), //nolint:gosec // a program
		os.WriteFile(at("damage"), nil, 0o600),
		os.Mkdir(at("backups"), 0o711), //nolint:gosec // the database may run as another user
	); err != nil {
		t.Fatal(err)
	}
	backUp := func() (string, error) {
		run := p.command()
		cmd := exec.CommandContext(t.Context(), "sh", script, at("backups"))
		cmd.Env = append(
			run.Env,
			"PATH="+at("bin")+":"+os.Getenv("PATH"),
			"PROGRAM="+run.Path,
			"DAMAGE="+at("damage"),
		)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	left := func() (names []string) {
		entries, err := os.ReadDir(at("backups"))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}

	if out, err := backUp(); err == nil {
		t.Errorf("a damaged backup is accepted: %s", out)
	}
	if names := left(); len(names) > 0 {
		t.Errorf("a damaged backup leaves %v", names)
	}
	p.untilYes("(select count(*) = 0 from last_backup)")

	if err := os.Remove(at("damage")); err != nil {
		t.Fatal(err)
	}
	out, err := backUp()
	if err != nil || !strings.Contains(out, "Verified") {
		t.Fatalf("a backup: %v: %s", err, out)
	}
	if names := left(); len(names) != 1 || !strings.HasSuffix(names[0], ".tar.gz") {
		t.Errorf("a backup leaves %v", names)
	}
	p.untilYes("(select count(*) = 1 from last_backup)")

	if code, out := p.exits(
		"backup",
		"--record",
		at("file"),
	); code != exitUsage ||
		!strings.Contains(out, "omit FILE") {
		t.Errorf("--record with a FILE: exit code %d: %s", code, out)
	}
	p.stop(serving)
	if code, out := p.exits("backup", "--record", "--data-dir", at("nothing")); code == 0 {
		t.Errorf("--record without a database: %s", out)
	}
	if _, err := os.Stat(at("nothing")); !os.IsNotExist(err) {
		t.Errorf("--record creates a data directory: %v", err)
	}
}
