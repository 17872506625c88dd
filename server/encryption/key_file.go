package encryption

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unicode"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/durable"
)

// Parse parses base64 master keys, separated by commas or white space. The first one seals.
func Parse(text string) (keys [][]byte, err error) {
	for _, one := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		b, err := base64.StdEncoding.DecodeString(one)
		if err != nil || len(b) != KeySize {
			return nil, malformed()
		}
		keys = append(keys, b)
	}
	if len(keys) == 0 {
		return nil, malformed()
	}
	return keys, nil
}

func malformed() error {
	return fmt.Errorf("a master key is %d bytes in base64; `openssl rand -base64 %d` creates one", KeySize, KeySize)
}

// NewMaster creates a random master key.
func NewMaster() []byte {
	b := make([]byte, KeySize)
	rand.Read(b)
	return b
}

// others are the permissions of other users than the owner and the group to read and write a file.
const others fs.FileMode = 0o006

// ReadFile reads the master keys in path; the first one seals. Its error matches fs.ErrNotExist if there is no file. It
// fails for a file that every user of the machine can read or write.
func ReadFile(path string) ([][]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the master key: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the master key: %w", err)
	}
	if mode := info.Mode().Perm(); mode&others != 0 && runtime.GOOS != "windows" { // which has no such permissions
		return nil, fmt.Errorf("every user of this machine can read or write the master key (mode %04o): run "+
			"`chmod 600 %s`, and rotate the key if another user may have read it", mode, path)
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("read the master key: %w", err)
	}
	k, err := Parse(string(b))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return k, nil
}

// ReadOrCreateFile is ReadFile, but creates a key if path does not exist. Only the owner can read the new file.
// Programs that start concurrently get the same key.
func ReadOrCreateFile(path string) ([][]byte, error) {
	k, err := ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	if err := createFile(path); err != nil {
		return nil, fmt.Errorf("write the master key: %w", err)
	}
	return ReadFile(path)
}

// createFile writes a new key to a temporary file and links it to path. A reader never sees half a key, and no existing
// key is replaced.
func createFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".key-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // linked by then
	if _, err := fmt.Fprintln(f, base64.StdEncoding.EncodeToString(NewMaster())); err != nil {
		f.Close()
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := durable.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return durable.SyncDir(filepath.Dir(filepath.Dir(path))) // the directory may be new, too
}
