package store

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Any number of read-only connections cause one reset per interval.
func TestFailover_ResetsOncePerInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &pgconn.Config{OnPgError: func(*pgconn.PgConn, *pgconn.PgError) bool { return true }}
		f, resets := detectFailover(c), 0
		const step = resetInterval / 10
		for range 30 {
			epoch := f.epoch
			if !c.OnPgError(nil, &pgconn.PgError{Code: readOnlyTransaction}) {
				t.Error("the connection is closed before its transaction ends")
			}
			if epoch.Err() != nil {
				resets++
			}
			time.Sleep(step) // of the bubble's clock
		}
		if resets != 3 {
			t.Errorf("%d resets in three intervals", resets)
		}
		f.end()
	})
}

// Transactions are retried if that can help.
func TestRetryDeadlocks(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]int{
		deadlockDetected:     maxTries,
		serializationFailure: maxTries,
		lockNotAvailable:     maxTries,
		readOnlyTransaction:  2, // on a new connection
		diskFull:             1,
		undefinedTable:       1,
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tries, failed := 0, fmt.Errorf("write: %w", &pgconn.PgError{Code: code})
				err := retryDeadlocks(t.Context(), func() error { tries++; return failed })
				if !errors.Is(err, failed) || tries != want {
					t.Errorf("%d tries, want %d: %v", tries, want, err)
				}
			})
		})
	}
}

// Poolers in transaction mode cause either code.
func TestExplain(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"42P05": "set it to session mode",
		"26000": "set it to session mode",
		"42501": "connect as the owner of the schema",
		"53300": "lower --database-connections",
		"42703": "",
	} {
		if got := Explain(&pgconn.PgError{Code: code}); (got == nil) != (want == "") ||
			got != nil && !strings.Contains(got.Error(), want) {
			t.Errorf("%s is explained as %v", code, got)
		}
	}
}

// A caller may try again later after these errors only.
func TestIsUnavailable(t *testing.T) {
	t.Parallel()
	code := func(c string) error { return &pgconn.PgError{Code: c} }
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":                 {nil, false},
		"read-only":               {code("25006"), true},
		"serialization failure":   {code("40001"), true},
		"deadlock":                {code("40P01"), true},
		"disk full":               {code("53100"), true},
		"too many connections":    {code("53300"), true},
		"lock timeout":            {code("55P03"), true},
		"stops":                   {code("57P01"), true},
		"has crashed":             {code("57P02"), true},
		"starts":                  {code("57P03"), true},
		"refuses the connection":  {&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, true},
		"resets the connection":   {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, true},
		"is killed":               {io.ErrUnexpectedEOF, true},
		"not connected":           {notConnected(errors.New("no")), true},
		"unique violation":        {code("23505"), false},
		"syntax error":            {code("42601"), false},
		"canceled by an operator": {code("57014"), false},
		"another fault":           {errors.New("wrong"), false},
		"end of an input":         {io.EOF, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.err
			if err != nil {
				err = fmt.Errorf("read the device: %w", err)
			}
			if got := IsUnavailable(err); got != c.want {
				t.Errorf("IsUnavailable(%v) = %t", err, got)
			}
		})
	}
}

// Facts that a test's PostgreSQL cannot have.
func TestFacts(t *testing.T) {
	t.Parallel()
	fits := facts{
		version:   MinPostgres,
		encoding:  "UTF8",
		user:      "u",
		database:  "d",
		schema:    "public",
		mayCreate: true,
	}
	old, standby := fits, fits
	old.version--
	standby.isStandby, standby.isReadOnly = true, true
	for _, c := range []struct {
		facts facts
		want  string
	}{
		{fits, ""},
		{old, "the database is PostgreSQL 13; version 14 or newer is needed"},
		{standby, "the database is a standby, which takes no writes: name the primary"},
	} {
		err := c.facts.check()
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
