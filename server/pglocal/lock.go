package pglocal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// ErrInUse says that another process holds a lock, and so uses what it guards.
var ErrInUse = errors.New("another process is using it")

// Lock is a lock on a file, held between processes. It ends with the process that holds it.
type Lock struct{ file *os.File }

// TryLock makes the file at path if need be and locks it. It fails with ErrInUse when another holder has it.
func TryLock(path string) (*Lock, error) { return tryLock(path, syscall.LOCK_EX) }

// WaitLock is TryLock that waits for the other holder until ctx ends.
func WaitLock(ctx context.Context, path string) (*Lock, error) {
	return waitLock(ctx, path, syscall.LOCK_EX)
}

// WaitSharedLock waits for a lock that any number of readers hold together, and nobody with one of the
// other kind.
func WaitSharedLock(ctx context.Context, path string) (*Lock, error) {
	return waitLock(ctx, path, syscall.LOCK_SH)
}

// Held is whether somebody has the lock on the file at path. It makes no file.
func Held(path string) (bool, error) {
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
	return false, nil
}

// Release lets others have the lock. The file stays, unless its holder has removed it before.
func (l *Lock) Release() error {
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("release lock: %w", err)
	}
	return nil
}

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
	if removed(file) { // by whoever has held it before
		_ = file.Close()
		return tryLock(path, kind)
	}
	return &Lock{file: file}, nil
}

// removed is whether a file has lost its name, or another one has it.
func removed(file *os.File) bool {
	own, err := file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(file.Name())
	return errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(own, there)
}

// note replaces what is written in the locked file.
func (l *Lock) note(text string) error {
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err := l.file.WriteAt([]byte(text), 0)
	return err
}

// noted is what the last holder wrote.
func (l *Lock) noted() (string, error) {
	b, err := os.ReadFile(l.file.Name())
	return string(b), err
}
