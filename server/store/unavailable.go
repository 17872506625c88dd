package store

import (
	"errors"
	"io"
	"net"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
)

// Error codes of PostgreSQL, appendix A.
const (
	readOnlyTransaction   = "25006"
	undefinedStatement    = "26000"
	serializationFailure  = "40001"
	deadlockDetected      = "40P01"
	insufficientPrivilege = "42501"
	duplicateStatement    = "42P05"
	undefinedTable        = "42P01"
	diskFull              = "53100"
	outOfMemory           = "53200"
	tooManyConnections    = "53300"
	lockNotAvailable      = "55P03"
	adminShutdown         = "57P01"
	crashShutdown         = "57P02"
	cannotConnectNow      = "57P03"
	idleSessionTimeout    = "57P05"
)

// unavailable are the codes of IsUnavailable.
var unavailable = []string{
	readOnlyTransaction,
	serializationFailure,
	deadlockDetected,
	diskFull,
	outOfMemory,
	tooManyConnections,
	lockNotAvailable,
	adminShutdown,
	crashShutdown,
	cannotConnectNow,
	idleSessionTimeout,
}

// hasCode reports whether the database ended a statement, or refused a connection, with one of codes.
func hasCode(err error, codes ...string) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && slices.Contains(codes, e.Code)
}

// IsUnavailable reports whether the database is unreachable, stops, starts, or cannot do any work for now: its disk is
// full, it is read-only, or it has too many connections or conflicting transactions. The same statement may succeed later.
func IsUnavailable(err error) bool {
	_, notConnected := errors.AsType[*pgconn.ConnectError](err)
	if notConnected || errors.Is(err, ErrNotConnected) {
		return true
	}
	if e, refused := errors.AsType[*pgconn.PgError](err); refused {
		return slices.Contains(unavailable, e.Code)
	}
	_, lost := errors.AsType[*net.OpError](err)
	return lost || errors.Is(err, io.ErrUnexpectedEOF) || pgconn.SafeToRetry(err)
}
