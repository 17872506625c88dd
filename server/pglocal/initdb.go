package pglocal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// initialise creates the data directory unless it exists. It builds the directory next to its place and renames it, so
// that an incomplete directory is never used.
func (c *Cluster) initialise(ctx context.Context) error {
	switch _, err := os.Stat(filepath.Join(c.data.path, "PG_VERSION")); {
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("look for a database in %s: %w", c.opt.Dir, err)
	}
	began := time.Now()
	half := c.data.path + ".incomplete"
	if err := killLeftovers(ctx, half); err != nil {
		return err
	}
	if err := os.RemoveAll(half); err != nil {
		return fmt.Errorf("remove incomplete database: %w", err)
	}
	if err := c.account.mkdirAll(filepath.Dir(half)); err != nil {
		return err
	}
	if err := c.makeDataDir(half); err != nil {
		return err
	}
	if err := c.initdb(ctx, half); err != nil {
		return err
	}
	if err := os.Rename(half, c.data.path); err != nil {
		return fmt.Errorf("move data directory into place: %w", err)
	}
	if err := c.syncDir(filepath.Dir(c.data.path)); err != nil {
		return fmt.Errorf("move data directory into place: %w", err)
	}
	c.opt.Log.Info(
		"database initialized",
		"version",
		c.bin.Version,
		"data",
		c.data.path,
		"user",
		c.account.name,
		"duration",
		time.Since(began),
	)
	return nil
}

// makeDataDir creates a directory that only the server's user can read.
func (c *Cluster) makeDataDir(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil {
		return fmt.Errorf("create data directory: %w", err)
	}
	return c.account.chown(path)
}

func (c *Cluster) initdb(ctx context.Context, dir string) error {
	// The data directory's own pg_hba.conf is for a server that is started by hand.
	args := []string{"-D", dir, "-U", "postgres", "-A", "peer", "-E", "UTF8", "--no-instructions"}
	args = append(args, localeArgs(c.bin.Major)...)
	if c.opt.NoSync {
		args = append(args, "--no-sync")
	}
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin.Dir, "initdb"), args...)
	cmd.Dir = dir
	cmd.Env = childEnv()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.account.cred, Setpgid: true}
	cmd.WaitDelay = time.Second
	dieWithParent(cmd.SysProcAttr, syscall.SIGKILL)

	// The parent-death signal depends on the thread that forked.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf(
			"initialize database with %s: %w\n%s",
			cmd.Path,
			errors.Join(err, ctx.Err()),
			strings.TrimSpace(string(out)),
		)
	}
	return nil
}

// localeArgs selects Unicode characters and byte order, which is the same on every machine and does not change with
// system upgrades.
func localeArgs(major int) []string {
	switch {
	case major >= 17:
		return []string{"--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"}
	case runtime.GOOS == "darwin":
		return []string{"--locale=C", "--lc-ctype=UTF-8"}
	default:
		return []string{"--locale=C.UTF-8"}
	}
}

func (c *Cluster) syncDir(path string) error {
	if c.opt.NoSync {
		return nil
	}
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
