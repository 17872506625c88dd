package pglocal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// Owner is the user that owns a directory. Root makes this user the owner of files it creates there. The zero value is
// none: files keep their owner.
type Owner struct{ account account }

// OwnerOf returns the owner of a directory if we are root and the owner is another user.
func OwnerOf(dir string) (Owner, error) {
	if os.Geteuid() != 0 {
		return Owner{}, nil
	}
	owner, exists, err := ownerOf(dir)
	if err != nil || !exists || owner.Uid == 0 {
		return Owner{}, err
	}
	return Owner{account{name: userName(owner.Uid), cred: &owner}}, nil
}

// Name returns the user name, and "" for the zero value.
func (o Owner) Name() string { return o.account.name }

// CanRead reports whether the owner can read a file. It is true for the zero value, and if the system cannot try it. The
// system decides, because groups and access control lists matter as well as owners and modes.
func (o Owner) CanRead(ctx context.Context, file string) bool {
	file, err := filepath.Abs(file)
	if err != nil || o.account.cred == nil {
		return true
	}
	cmd := exec.CommandContext(ctx, "test", "-r", file)
	cmd.Dir = "/" // the owner may not enter ours
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: o.account.login()}
	exit, ok := errors.AsType[*exec.ExitError](cmd.Run())
	return !ok || exit.ExitCode() != 1
}

// login returns the credential of a process of the account, with the account's groups.
func (a account) login() *syscall.Credential {
	cred := &syscall.Credential{Uid: a.cred.Uid, Gid: a.cred.Gid}
	u, err := user.LookupId(strconv.FormatUint(uint64(cred.Uid), 10))
	if err != nil {
		return cred // a number without a user has no groups
	}
	if gid, err := strconv.ParseUint(u.Gid, 10, 32); err == nil {
		cred.Gid = uint32(gid)
	}
	groups, _ := u.GroupIds()
	for _, group := range groups {
		if gid, err := strconv.ParseUint(group, 10, 32); err == nil {
			cred.Groups = append(cred.Groups, uint32(gid))
		}
	}
	return cred
}

// Chown makes the owner the owner of name in dir, with all it contains. It does not leave dir, because the owner may
// create links there meanwhile.
func (o Owner) Chown(dir, name string) error {
	if o.account.cred == nil {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err == nil {
		defer root.Close() //nolint:errcheck // a directory handle
		err = fs.WalkDir(root.FS(), name, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return root.Lchown(path, int(o.account.cred.Uid), int(o.account.cred.Gid))
		})
	}
	if err != nil {
		return fmt.Errorf("change the owner of %s to user %s: %w", name, o.account.name, err)
	}
	return nil
}
