package storetest

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// writeTar keeps the folders and files of dir, and who owns them, in an archive that appears when it is whole.
func writeTar(archive, dir string) (err error) {
	file, err := os.CreateTemp(filepath.Dir(archive), "making-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	if err := errors.Join(writeEntries(file, dir), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), archive)
}

func writeEntries(file io.Writer, dir string) error {
	buffered := bufio.NewWriterSize(file, 1<<20)
	out := tar.NewWriter(buffered)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return writeEntry(out, name, path, entry)
	})
	return errors.Join(err, out.Close(), buffered.Flush())
}

func writeEntry(out *tar.Writer, name, path string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	stat := info.Sys().(*syscall.Stat_t)
	header := &tar.Header{
		Name: filepath.ToSlash(name),
		Mode: int64(info.Mode().Perm()),
		Uid:  int(stat.Uid),
		Gid:  int(stat.Gid),
	}
	switch {
	case info.IsDir():
		header.Typeflag = tar.TypeDir
		return out.WriteHeader(header)
	case info.Mode().IsRegular():
		header.Typeflag, header.Size = tar.TypeReg, info.Size()
	default:
		return fmt.Errorf("%s is neither a folder nor a file", path)
	}
	if err := out.WriteHeader(header); err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, file)
	return errors.Join(err, file.Close())
}

// readTar makes dir from an archive of writeTar's. Owners are given as they were when we are root.
func readTar(archive, dir string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	entries := tar.NewReader(bufio.NewReaderSize(file, 1<<20))
	for {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := readEntry(filepath.Join(dir, header.Name), header, entries); err != nil {
			return err
		}
	}
}

func readEntry(path string, header *tar.Header, content io.Reader) error {
	mode := fs.FileMode(header.Mode)
	if header.Typeflag == tar.TypeDir {
		if err := os.Mkdir(path, mode); err != nil {
			return err
		}
	} else if err := readFile(path, mode, content); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		if err := os.Lchown(path, header.Uid, header.Gid); err != nil {
			return err
		}
	}
	return os.Chmod(path, mode) // whatever our umask
}

func readFile(path string, mode fs.FileMode, content io.Reader) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
