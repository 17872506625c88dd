package pglocal

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// unpack writes the files of an npm package to dir, without their common directory "package", and creates the links
// they need. It fails if the archive would write outside of dir.
func unpack(archive, dir string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	zipped, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	// os.Root rejects every name that leads out of it, by ".." or by a link.
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // a directory handle
	if err := root.Chmod(".", 0o755); err != nil {
		return err
	}
	for entries := tar.NewReader(zipped); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := unpackEntry(root, header, entries); err != nil {
			return fmt.Errorf("%q: %w", header.Name, err)
		}
	}
	return createLinks(root)
}

func unpackEntry(root *os.Root, header *tar.Header, content io.Reader) error {
	name, ok := strings.CutPrefix(header.Name, "package/")
	if !ok {
		return errors.New("the entry is not in the directory \"package\"")
	}
	if !filepath.IsLocal(name) {
		return errors.New("the path leads out of the package")
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return makeDirs(root, path.Clean(name))
	case tar.TypeReg:
		if err := makeDirs(root, path.Dir(name)); err != nil {
			return err
		}
		// for all users: the server's user reads what root has unpacked
		return writeFile(root, name, content, 0o644|header.FileInfo().Mode().Perm()&0o111)
	default:
		return fmt.Errorf("the entry has type %q, but npm packages contain only files", header.Typeflag)
	}
}

// makeDirs creates the directory name, which is local, and its parents with mode 0755, regardless of our umask.
func makeDirs(root *os.Root, name string) error {
	if name == "." {
		return nil
	}
	if err := makeDirs(root, path.Dir(name)); err != nil {
		return err
	}
	if err := root.Mkdir(name, 0o755); errors.Is(err, fs.ErrExist) {
		return nil
	} else if err != nil {
		return err
	}
	return root.Chmod(name, 0o755)
}

func writeFile(root *os.Root, name string, content io.Reader, mode fs.FileMode) (err error) {
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := io.Copy(file, content); err != nil {
		return err
	}
	return file.Chmod(mode)
}

// createLinks creates the links that an npm package cannot contain, as listed in its native/pg-symlinks.json.
func createLinks(root *os.Root) error {
	const list = "native/pg-symlinks.json"
	text, err := root.ReadFile(list)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(text, &links); err != nil {
		return fmt.Errorf("read %s: %w", list, err)
	}
	for _, l := range links {
		if !filepath.IsLocal(l.Source) || !filepath.IsLocal(l.Target) {
			return fmt.Errorf("%s: link from %q to %q leads out of the package", list, l.Target, l.Source)
		}
		source, err := filepath.Rel(path.Dir(l.Target), l.Source)
		if err != nil {
			return fmt.Errorf("%s: %w", list, err)
		}
		if err := makeDirs(root, path.Dir(l.Target)); err != nil {
			return err
		}
		if err := root.Symlink(source, l.Target); err != nil {
			return err
		}
	}
	return nil
}
