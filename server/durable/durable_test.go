package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestLink_ReplacesNoFile(t *testing.T) {
	t.Parallel()
	for name, hard := range map[string]func(from, to string) error{
		"links": os.Link,
		"no links": func(from, to string) error {
			return &os.LinkError{
				Op:  "link",
				Old: from,
				New: to,
				Err: syscall.EPERM,
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			one, other, to := filepath.Join(dir, "one"), filepath.Join(dir, "other"), filepath.Join(dir, "to")
			for _, path := range []string{one, other} {
				if err := os.WriteFile(path, []byte(filepath.Base(path)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := link(one, to, hard); err != nil {
				t.Fatal(err)
			}
			if err := link(other, to, hard); !errors.Is(err, fs.ErrExist) {
				t.Errorf("to an existing name: %v", err)
			}
			st, err := os.Stat(to)
			if err != nil || st.Mode().Perm() != 0o600 {
				t.Errorf("mode %v, %v", st.Mode(), err)
			}
			if b, err := os.ReadFile(to); err != nil || string(b) != "one" {
				t.Errorf("the file contains %q, %v", b, err)
			}
			if err := link(
				filepath.Join(dir, "none"),
				filepath.Join(dir, "new"),
				hard,
			); !errors.Is(
				err,
				fs.ErrNotExist,
			) {
				t.Errorf("from a missing file: %v", err)
			}
		})
	}
}
