package pglocal

import (
	"fmt"
	"io/fs"
	"os"
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
