package encryption

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/durable"
)

// Parse reads master keys in base64 with commas or white space between them, the one to use first.
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
	return fmt.Errorf("a master key is %d bytes in base64; `openssl rand -base64 %d` makes one", KeySize, KeySize)
}

// NewMaster makes a master key.
func NewMaster() []byte {
	b := make([]byte, KeySize)
	rand.Read(b)
	return b
}

// ReadFile reads the master keys in path, the one to use first. It fails with fs.ErrNotExist.
func ReadFile(path string) ([][]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the master key: %w", err)
	}
	k, err := Parse(string(b))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return k, nil
}

// File is ReadFile that makes a key readable by its owner only if there is none. Two programs that start at once end up with
// the same key.
func File(path string) ([][]byte, error) {
	k, err := ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	if err := create(path); err != nil {
		return nil, fmt.Errorf("write the master key: %w", err)
	}
	return ReadFile(path)
}

// create writes a new key beside its place and links it there, so that nobody ever reads half a key or
// replaces another's.
func create(path string) error {
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
	return durable.SyncDir(filepath.Dir(filepath.Dir(path))) // the directory may be as new
}
