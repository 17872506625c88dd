package pglocal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// account is the user that the server runs as. PostgreSQL refuses to run as root.
type account struct {
	name string
	cred *syscall.Credential // nil for our own user
}

// UnreachableError reports that the user the server runs as cannot enter a directory.
type UnreachableError struct {
	// Path is what the server needs.
	Path string
	// Barrier is the directory that User may not enter.
	Barrier string
	// User is the name of the server's user.
	User string
}

// Error implements error.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf(
		"the database cannot run as root, so it runs as user %q, which may not enter %s on the way to %s:  "+
			"choose a directory outside of it (--data-dir for the data, such as /var/lib/deviceaccess)",
		e.User,
		e.Barrier,
		e.Path,
	)
}

// ownUser is the user that is only for this server, if the machine has it. sharedUsers are users that every machine or
// every machine with PostgreSQL has.
const ownUser = "deviceaccess"

var sharedUsers = []string{"postgres", "nobody"}

// serverAccount returns our own user. As root it returns the owner of the data directory, else ownUser, else the user
// postgres, else the unprivileged system account. Data is empty or absent before the first start.
func serverAccount(data string) (account, error) {
	owner, exists, err := ownerOf(data)
	if err != nil {
		return account{}, err
	}
	if euid := uint32(os.Geteuid()); euid != 0 {
		if exists && owner.Uid != euid {
			return account{}, fmt.Errorf("start database: %s belongs to user %s: run as that user or as root: %w",
				data, userName(owner.Uid), fs.ErrPermission)
		}
		return account{name: userName(euid)}, nil
	}
	if exists && owner.Uid == 0 {
		return account{}, fmt.Errorf("start database: %s belongs to root, and PostgreSQL refuses to run as root:  "+
			"change its owner with chown -R", data)
	}
	if exists {
		return account{name: userName(owner.Uid), cred: &owner}, nil
	}
	for _, name := range append([]string{ownUser}, sharedUsers...) {
		if u, err := user.Lookup(name); err == nil {
			return unprivileged(u)
		}
	}
	return account{}, errors.New(
		"start database: PostgreSQL refuses to run as root, and there is no user postgres to run it as: " +
			"create one, or run this program as another user",
	)
}

// warnOfSharedUser warns the operator of a server, but not of a command, if other programs may run as its user.
func (c *Cluster) warnOfSharedUser() {
	if c.account.cred == nil || !slices.Contains(sharedUsers, c.account.name) ||
		c.opt.Settings["cluster_name"] == commandClusterName {
		return
	}
	c.opt.Log.Warn(
		"the database runs as a user that other programs share, and they can read and change all of it; stop "+
			"the server, create a user for it (useradd --system "+ownUser+"), and make it the owner of the data (chown -R)",
		"user",
		c.account.name,
		"data",
		filepath.Dir(c.data.path),
		"owner",
		ownUser,
	)
}

func unprivileged(u *user.User) (account, error) {
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return account{}, fmt.Errorf("read id of user %s: %w", u.Username, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return account{}, fmt.Errorf("read group of user %s: %w", u.Username, err)
	}
	return account{name: u.Username, cred: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}

func ownerOf(path string) (owner syscall.Credential, exists bool, err error) {
	if path == "" {
		return owner, false, nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return owner, false, nil
	}
	if err != nil {
		return owner, false, err
	}
	stat := info.Sys().(*syscall.Stat_t)
	return syscall.Credential{Uid: stat.Uid, Gid: stat.Gid}, true, nil
}

func userName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}

// chown makes the account the owner of path.
func (a account) chown(path string) error {
	if a.cred == nil {
		return nil
	}
	if err := os.Chown(path, int(a.cred.Uid), int(a.cred.Gid)); err != nil {
		return fmt.Errorf("give %s to user %s: %w", path, a.name, err)
	}
	return nil
}

// mkdirAll creates dir and its missing parents, and lets the account enter those it creates. It returns an
// *UnreachableError, before it creates any, if the account cannot get there.
func (a account) mkdirAll(dir string) error {
	if a.cred == nil {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("create directory: %w", err)
		}
		return nil
	}
	if err := a.checkReachable(dir); err != nil {
		return err
	}
	var missing []string
	for d := dir; !exists(d); d = filepath.Dir(d) {
		missing = append(missing, d)
	}
	for i := len(missing) - 1; i >= 0; i-- {
		if err := os.Mkdir(missing[i], 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("create directory: %w", err)
		}
		// root's umask may be too strict for the server's user
		if err := os.Chmod(missing[i], 0o755); err != nil {
			return fmt.Errorf("create directory: %w", err)
		}
	}
	return nil
}

// checkReachable returns an *UnreachableError if path, or a directory on the way to it, exists and the account may not
// enter it.
func (a account) checkReachable(path string) error {
	if a.cred == nil {
		return nil
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	at := "/"
	for _, part := range append([]string{""}, strings.Split(strings.Trim(path, "/"), "/")...) {
		at = filepath.Join(at, part)
		info, err := os.Stat(at)
		if err != nil || !info.IsDir() {
			return nil //nolint:nilerr // a missing directory is created later, and that reports its own errors
		}
		if !a.mayEnter(info) {
			return &UnreachableError{Path: path, Barrier: at, User: a.name}
		}
	}
	return nil
}

func (a account) mayEnter(info fs.FileInfo) bool {
	stat := info.Sys().(*syscall.Stat_t)
	switch mode := info.Mode().Perm(); {
	case stat.Uid == a.cred.Uid:
		return mode&0o100 != 0
	case stat.Gid == a.cred.Gid:
		return mode&0o010 != 0
	default:
		return mode&0o001 != 0
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
