package pglocal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestReach(t *testing.T) {
	t.Parallel()
	const stranger = 1<<31 - 7
	uid, gid := uint32(os.Geteuid()), uint32(os.Getegid())
	for name, test := range map[string]struct {
		mode     fs.FileMode
		uid, gid uint32
		want     bool
	}{
		"owner may": {
			mode: 0o700,
			uid:  uid,
			gid:  stranger,
			want: true,
		},
		"owner may not": {mode: 0o677, uid: uid, gid: gid},
		"group may": {
			mode: 0o710,
			uid:  stranger,
			gid:  gid,
			want: true,
		},
		"group may not": {mode: 0o707, uid: stranger, gid: gid},
		"others may": {
			mode: 0o711,
			uid:  stranger,
			gid:  stranger,
			want: true,
		},
		"others may only list it": {mode: 0o774, uid: stranger, gid: stranger},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := openTempDir(t)
			// created before the mode is set, for an unprivileged test run
			dir, deep := filepath.Join(root, "dir"), filepath.Join(root, "dir", "deep")
			if err := errors.Join(
				os.MkdirAll(deep, 0o755),
				os.Chmod(deep, 0o755),
				os.Chmod(dir, test.mode),
			); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
			acct := account{name: "x", cred: &syscall.Credential{Uid: test.uid, Gid: test.gid}}
			for _, path := range []string{dir, deep, filepath.Join(deep, "not", "there")} {
				err := acct.checkReachable(path)
				var unreachable *UnreachableError
				if test.want && err != nil {
					t.Errorf("reach(%s) = %v, want nil", path, err)
				}
				if !test.want && (!errors.As(err, &unreachable) || unreachable.Barrier != dir) {
					t.Errorf("reach(%s) = %v, want an UnreachableError that names %s", path, err, dir)
				}
			}
		})
	}
}
