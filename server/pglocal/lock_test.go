package pglocal_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
)

// A process that another goroutine starts has the lock's descriptor for a moment. A released lock is free all the same.
func TestLock_IsFreeWhileAChildHasItsDescriptor(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := pglocal.TryLock(path)
	ok(t, err)
	child, err := lock.Duplicate()
	ok(t, err)
	t.Cleanup(func() { ok(t, syscall.Close(child)) })
	ok(t, lock.Release())
	again, err := pglocal.TryLock(path)
	if err != nil {
		t.Fatalf("TryLock after the release = %v", err)
	}
	if held, err := pglocal.IsLocked(path); err != nil || !held {
		t.Errorf("IsLocked = %v, %v, want true", held, err)
	}
	ok(t, again.Release())
}
