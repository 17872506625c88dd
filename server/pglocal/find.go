package pglocal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// MinMajor is the oldest supported major version of PostgreSQL.
const MinMajor = 14

// ErrNoBinaries reports that this machine has no suitable PostgreSQL and that none could be fetched.
var ErrNoBinaries = errors.New("no PostgreSQL 14 or newer found")

// Binaries is an installed PostgreSQL.
type Binaries struct {
	// Dir contains initdb and postgres.
	Dir string
	// Version is the reported version, such as "15.13".
	Version string
	// Major is the major version.
	Major int
}

// usualDirs are the patterns of the directories that packages install to.
var usualDirs = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/usr/local/pgsql/bin",
	"/opt/homebrew/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql@*/bin",
	"/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

// Locate returns the binaries that Start would use with opt: BinDir, else those on PATH, else the newest in the usual
// directories, else fetched ones. If Dir contains data, only its major version is suitable. Locate returns
// ErrNoBinaries, a *MajorError, or an *UnreachableError.
func Locate(ctx context.Context, opt Options) (Binaries, error) {
	data, acct, err := survey(opt.Dir)
	if err != nil {
		return Binaries{}, err
	}
	return locate(ctx, opt, acct, data)
}

func locate(ctx context.Context, opt Options, acct account, data dataDir) (Binaries, error) {
	if opt.BinDir != "" {
		return locateIn(ctx, opt.BinDir, acct, data)
	}
	found := installed(ctx, acct)
	if err := ctx.Err(); err != nil { // the list may be incomplete
		return Binaries{}, fmt.Errorf("look for PostgreSQL: %w", err)
	}
	for _, bin := range found {
		if data.canOpenWith(bin) {
			return bin, nil
		}
	}
	if data.major != 0 && data.major != pinnedMajor {
		return Binaries{}, data.mismatch(found)
	}
	return fetch(ctx, opt, acct)
}

func locateIn(ctx context.Context, dir string, acct account, data dataDir) (Binaries, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Binaries{}, fmt.Errorf("find PostgreSQL: %w", err)
	}
	if err := acct.checkReachable(dir); err != nil {
		return Binaries{}, err
	}
	bin, err := inspect(ctx, dir)
	if err != nil {
		return Binaries{}, err
	}
	if bin.Major < MinMajor {
		return Binaries{}, fmt.Errorf(
			"%s contains PostgreSQL %s: version %d or newer is required",
			dir,
			bin.Version,
			MinMajor,
		)
	}
	if !data.canOpenWith(bin) {
		return Binaries{}, data.mismatch([]Binaries{bin})
	}
	return bin, nil
}

// canOpenWith reports whether bin can open the data. Every version can open no data.
func (d dataDir) canOpenWith(bin Binaries) bool { return d.major == 0 || d.major == bin.Major }

func (d dataDir) mismatch(found []Binaries) error {
	return &MajorError{Path: d.path, Major: d.major, Found: found}
}

// MajorError reports that data was written by a version of PostgreSQL that this machine does not have.
type MajorError struct {
	// Path is the data directory.
	Path string
	// Major is the version that wrote the data.
	Major int
	// Found are the installed versions.
	Found []Binaries
}

// Error implements error.
func (e *MajorError) Error() string {
	return fmt.Sprintf("the data in %s was written by PostgreSQL %d, and only this version can open it; %s: "+
		"install PostgreSQL %[2]d, or upgrade the data with pg_upgrade, or choose another directory with "+
		"--data-dir; the data was not changed",
		e.Path, e.Major, e.Have())
}

// Have describes the installed versions.
func (e *MajorError) Have() string {
	have := "no PostgreSQL is installed"
	for i, bin := range e.Found {
		if i == 0 {
			have = "installed is"
		}
		have += fmt.Sprintf(" %s in %s", bin.Version, bin.Dir)
	}
	return have
}

// installed returns the usable binaries of this machine, best first: those on PATH, then the newest.
func installed(ctx context.Context, acct account) []Binaries {
	var found []Binaries
	for _, pattern := range usualDirs {
		dirs, _ := filepath.Glob(pattern) // fails only on a bad pattern
		for _, dir := range dirs {
			if bin, ok := usable(ctx, dir, acct); ok {
				found = append(found, bin)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b Binaries) int { return cmp.Compare(b.Major, a.Major) })
	if path, err := exec.LookPath("postgres"); err == nil {
		if resolved, err := filepath.EvalSymlinks(path); err == nil {
			if bin, ok := usable(ctx, filepath.Dir(resolved), acct); ok {
				found = slices.Insert(found, 0, bin)
			}
		}
	}
	return found
}

func usable(ctx context.Context, dir string, acct account) (Binaries, bool) {
	bin, err := inspect(ctx, dir)
	return bin, err == nil && bin.Major >= MinMajor && acct.checkReachable(dir) == nil
}

// versionOutput matches output such as "postgres (PostgreSQL) 15.13 (Debian 15.13-0+deb12u1)" or "… 18beta1".
var versionOutput = regexp.MustCompile(`PostgreSQL\) ((\d+)\S*)`)

// inspect runs the binaries in dir for their version.
func inspect(ctx context.Context, dir string) (Binaries, error) {
	for _, name := range []string{"initdb", "postgres"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			return Binaries{}, fmt.Errorf("%s does not contain PostgreSQL: there is no program %s", dir, name)
		}
	}
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version")
	cmd.Env = childEnv()
	out, err := cmd.Output()
	if err != nil {
		return Binaries{}, fmt.Errorf("ask PostgreSQL in %s for its version: %w", dir, err)
	}
	match := versionOutput.FindStringSubmatch(string(out))
	if match == nil {
		return Binaries{}, fmt.Errorf("ask PostgreSQL in %s for its version: its output is %q", dir, out)
	}
	major, err := strconv.Atoi(match[2])
	if err != nil {
		return Binaries{}, fmt.Errorf("ask PostgreSQL in %s for its version: %w", dir, err)
	}
	return Binaries{Dir: dir, Version: match[1], Major: major}, nil
}
