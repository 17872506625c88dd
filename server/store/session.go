package store

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// ownSettings replaces defaults of the database or the role that the server does not work with. It keeps
// default_transaction_read_only: operators and hosting services set it to protect a database, such as the primary before a
// failover, from writes.
const ownSettings = "set client_encoding = 'UTF8'; set default_transaction_isolation = 'read committed'; " +
	"set default_transaction_deferrable = off"

// byIndex disables sequential scans if there is an index. PostgreSQL plans one for tables with few rows and for
// partitions that were analyzed while empty, and keeps that plan for up to a minute after the table has started to grow.
// It also disables JIT compilation, which the inflated cost of a sequential scan would trigger.
const byIndex = "set enable_seqscan = off; set jit = off"

// idleTxTimeout is how long a transaction may be idle. A server that hangs or is cut off in a transaction would otherwise
// keep its row locks, while other servers take over its leases and wait for the rows.
const idleTxTimeout = 15 * time.Second

// lockTimeout is how long a statement waits for a lock before its transaction is retried. Statements of a hung server would
// otherwise get a row one after another, and each keep it for idleTxTimeout.
//
// A statement may wait twice for a row: for its place at the head of the queue, and for the row. Both waits together
// must be shorter than idleTxTimeout. So a row is free after idleTxTimeout if the hung server held it, and after twice queued plus
// idleTxTimeout if the server was waiting for it. A part of WithAmbientTx that times out keeps the locks of the earlier parts for
// idleTxTimeout.
const lockTimeout = 5 * time.Second

// timeouts are the timeouts of a session, unless the database URL sets them. 0: none.
var timeouts = map[string]time.Duration{
	"idle_in_transaction_session_timeout": idleTxTimeout,
	"idle_session_timeout":                0,
	"lock_timeout":                        lockTimeout,
	"statement_timeout":                   0,
}

// sessionSettings returns the statements that set up a connection of the pool. given has the parameters of the URL.
func sessionSettings(given map[string]string) string {
	var b strings.Builder
	b.WriteString("-- name: SetUpConnection :exec\n" + ownSettings + "; " + byIndex)
	for _, name := range slices.Sorted(maps.Keys(timeouts)) {
		if _, set := given[name]; !set {
			fmt.Fprintf(&b, "; set %s = %d", name, timeouts[name].Milliseconds())
		}
	}
	return b.String()
}
