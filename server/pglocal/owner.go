package pglocal

import (
	"fmt"
	"io/fs"
	"os"
)

// Owner is the user to whom root leaves what it makes in that user's directory. The zero value is nobody: what is made
// stays whose it is.
type Owner struct{ account account }

// OwnerOf is the owner of a directory if we are root and that is another user.
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

// Name is empty for nobody.
func (o Owner) Name() string { return o.account.name }

// Give gives the owner what is called name in dir, with all that is in it. It goes nowhere else: the owner may put links there
// meanwhile.
func (o Owner) Give(dir, name string) error {
	if o.account.cred == nil {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err == nil {
		defer root.Close() //nolint:errcheck // a handle of a directory
		err = fs.WalkDir(root.FS(), name, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return root.Lchown(path, int(o.account.cred.Uid), int(o.account.cred.Gid))
		})
	}
	if err != nil {
		return fmt.Errorf("give %s to user %s: %w", name, o.account.name, err)
	}
	return nil
}
