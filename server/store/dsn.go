package store

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// notConnected says why there is no connection, without the connection string and without what is quoted from it: where a
// password stands in one that cannot be read, nobody knows for sure.
func notConnected(err error) error {
	unread, ok := errors.AsType[*pgconn.ParseConfigError](err)
	if !ok {
		return fmt.Errorf("connect to the database: %w", err)
	}
	why := unread.Error()
	const end = "`: " // of the string
	if i := strings.LastIndex(why, end); i >= 0 {
		return fmt.Errorf("connect to the database: its URL cannot be read: %s", quoted.ReplaceAllLiteralString(why[i+len(end):], `"…"`))
	}
	return errors.New("connect to the database: its URL cannot be read")
}
