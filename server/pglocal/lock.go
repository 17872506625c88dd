package pglocal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// ErrInUse reports that another process holds a lock, and so uses what it protects.
var ErrInUse = errors.New("another process is using it")

// Lock is an exclusive or shared lock on a file, between processes. It ends with its process.
type Lock struct{ file *os.File }

// TryLock creates the file at path if necessary and locks it. It returns ErrInUse if another process holds the lock.
func TryLock(path string) (*Lock, error) { return tryLock(path, syscall.LOCK_EX) }

// WaitLock is TryLock, but waits for the lock until ctx ends.
func WaitLock(ctx context.Context, path string) (*Lock, error) {
	return waitLock(ctx, path, syscall.LOCK_EX)
}

// WaitSharedLock waits for a shared lock, which excludes exclusive locks only.
func WaitSharedLock(ctx context.Context, path string) (*Lock, error) {
	return waitLock(ctx, path, syscall.LOCK_SH)
}

// IsLocked reports whether a process holds a lock on the file at path. It does not create the file.
func IsLocked(path string) (bool, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open lock: %w", err)
	}
	defer file.Close()
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("lock %s: %w", path, err)
	}
	return false, unlock(file)
}

// Release releases the lock. The file remains, unless its holder has removed it.
func (l *Lock) Release() error {
	if err := errors.Join(unlock(l.file), l.file.Close()); err != nil {
		return fmt.Errorf("release lock: %w", err)
	}
	return nil
}

// unlock ends a lock also for the descriptors that a child process has inherited and closes only when it runs its
// program.
func unlock(file *os.File) error { return syscall.Flock(int(file.Fd()), syscall.LOCK_UN) }

func waitLock(ctx context.Context, path string, kind int) (*Lock, error) {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		lock, err := tryLock(path, kind)
		if !errors.Is(err, ErrInUse) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", err, ctx.Err())
		case <-time.After(wait):
		}
	}
}

func tryLock(path string, kind int) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	switch err := syscall.Flock(int(file.Fd()), kind|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		_ = file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, ErrInUse)
	case err != nil:
		_ = file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if removed(file) { // by the previous holder
		_ = file.Close()
		return tryLock(path, kind)
	}
	return &Lock{file: file}, nil
}

// removed reports whether a file's name is gone or belongs to another file.
func removed(file *os.File) bool {
	own, err := file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(file.Name())
	return errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(own, there)
}

// writeNote replaces the content of the locked file.
func (l *Lock) writeNote(text string) error {
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err := l.file.WriteAt([]byte(text), 0)
	return err
}

// readNote returns what the last holder wrote.
func (l *Lock) readNote() (string, error) {
	b, err := os.ReadFile(l.file.Name())
	return string(b), err
}
