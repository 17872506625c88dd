package store

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// ErrNotConnected means that there is no connection to the database.
var ErrNotConnected = errors.New("connect to the database")

// notConnected explains a failed connection in one line. It omits the connection string and all quotations from it,
// since a malformed one may have its password anywhere.
func notConnected(err error) error {
	if unread, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
		why := unread.Error()
		const end = "`: " // of the string
		if i := strings.LastIndex(why, end); i >= 0 {
			return fmt.Errorf(
				"%w: its URL cannot be read: %s",
				ErrNotConnected,
				quoted.ReplaceAllLiteralString(why[i+len(end):], `"…"`),
			)
		}
		return fmt.Errorf("%w: its URL cannot be read", ErrNotConnected)
	}
	if failed, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return &connectError{
			fmt.Sprintf("%v: %s: %s", ErrNotConnected, failed.Config.Database, attempts(failed.Unwrap())),
			err,
		}
	}
	return &connectError{fmt.Sprintf("%v: %v", ErrNotConnected, err), err}
}

// connectError has a message of one line.
type connectError struct {
	line  string
	cause error
}

func (e *connectError) Error() string   { return e.line }
func (e *connectError) Unwrap() []error { return []error{ErrNotConnected, e.cause} }

// attempts lists the errors of all addresses without duplicates. The driver tries each with and without TLS.
func attempts(err error) string {
	var each []string
	for line := range strings.FieldsFuncSeq(err.Error(), func(r rune) bool { return r == '\n' }) {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(each, line) {
			each = append(each, line)
		}
	}
	return strings.Join(each, "; ")
}

// Location returns the host, or the directory of the socket, and the name of the database of a connection string.
func Location(dsn string) (host, name string, err error) {
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		return "", "", notConnected(err)
	}
	return c.Host, c.Database, nil
}
