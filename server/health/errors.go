package health

import "github.com/deviceaccess/terraform-provider-deviceaccess/server/store"

// WaitedTooLong reports whether an operation timed out on a database lock. It had no effect and can be retried.
func WaitedTooLong(err error) bool { return store.IsLockTimeout(err) }

// DatabaseUnavailable reports whether an operation failed because the database is unreachable, restarts, is full or
// read-only, or has too many connections. It can be retried later.
func DatabaseUnavailable(err error) bool { return store.IsUnavailable(err) }
