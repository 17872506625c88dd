package store

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// A migration that is blocked by a lock is retried for five minutes; other failures are not retried.
func TestMigrationIsRetriedAfterLockTimeout(t *testing.T) {
	t.Parallel()
	waits, deadlock, wrong := &pgconn.PgError{
		Code: lockNotAvailable,
	}, &pgconn.PgError{
		Code: deadlockDetected,
	}, errors.New(
		"wrong",
	)
	for name, c := range map[string]struct {
		ends []error // of each try; the last of them is that of all others
		want error
		took time.Duration
	}{
		"it is done":                      {[]error{nil}, nil, 0},
		"it waits, then it is in the way": {[]error{waits, deadlock, nil}, nil, 2 * migrateInterval},
		"it is wrong":                     {[]error{deadlock, wrong}, wrong, migrateInterval},
		"the lock is never released":      {[]error{waits}, waits, migrateTimeout + migrateInterval},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun, try := time.Now(), -1
				err := retryMigration(t.Context(), func() error {
					try++
					return c.ends[min(try, len(c.ends)-1)]
				})
				if took := time.Since(begun); !errors.Is(err, c.want) || took != c.took {
					t.Errorf("after %s: %v; expected %v after %s", took, err, c.want, c.took)
				}
			})
		})
	}
}
