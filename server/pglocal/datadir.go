package pglocal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// dataDir is an initialized data directory. The zero value is none.
type dataDir struct {
	path string
	// the version of PostgreSQL that wrote it; only this version can open it
	major int
}

func newDataDir(dir string, major int) dataDir {
	return dataDir{path: filepath.Join(dir, strconv.Itoa(major), "data"), major: major}
}

// survey returns the data directory in dir, if there is one, and the user that its server runs as.
func survey(dir string) (dataDir, account, error) {
	data, err := findDataDir(dir)
	if err != nil {
		return dataDir{}, account{}, fmt.Errorf("look for a database in %s: %w", dir, err)
	}
	acct, err := serverAccount(data.path)
	return data, acct, err
}

// findDataDir returns the data directory of the newest version in dir: a manual upgrade leaves the old one next to it.
// It returns the zero value if there is none.
func findDataDir(dir string) (dataDir, error) {
	if dir == "" {
		return dataDir{}, nil
	}
	if _, err := os.Stat(filepath.Join(dir, "PG_VERSION")); err == nil {
		return dataDir{}, errors.New(
			"it is itself the data directory of a PostgreSQL server: choose another with --data-dir",
		)
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return dataDir{}, nil
	}
	if err != nil {
		return dataDir{}, err
	}
	var found []dataDir
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		path := filepath.Join(dir, entry.Name(), "data")
		text, err := os.ReadFile(filepath.Join(path, "PG_VERSION"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return dataDir{}, err
		}
		major, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			return dataDir{}, fmt.Errorf("read PG_VERSION of %s: %w", path, err)
		}
		// A server shows its directory with links resolved.
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return dataDir{}, err
		}
		found = append(found, dataDir{path: path, major: major})
	}
	if len(found) == 0 {
		return dataDir{}, nil
	}
	return slices.MaxFunc(found, func(a, b dataDir) int { return cmp.Compare(a.major, b.major) }), nil
}
