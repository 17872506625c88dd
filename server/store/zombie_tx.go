package store

import (
	"context"
	"fmt"
)

// EndHungSessions terminates sessions that have stopped sending or receiving for idleTxTimeout in the middle of a statement of
// a transaction, and returns their number. idle_in_transaction_session_timeout does not cover these, and their locks
// would last until the TCP connection times out, two hours later. If that setting is off, no session is terminated.
// Statements of the server start with their name, so dumps are not affected. It uses a connection outside of the pool,
// whose connections may all wait for such a session.
func (db *DB) EndHungSessions(ctx context.Context) (ended int64, err error) {
	done, err := db.side.Exec(
		ctx,
		`select pg_terminate_backend(pid) from pg_stat_activity, (select current_setting('idle_in_transaction_session_timeout')::interval as span) l
		where datname = current_database() and usename = current_user and pid <> pg_backend_pid() and state = 'active' and xact_start is not null
		and query like '-- name: %' and wait_event in ('ClientRead', 'ClientWrite') and l.span > interval '0' and state_change < now() - l.span`,
	)
	if err != nil {
		return 0, fmt.Errorf("end sessions that stand still: %w", err)
	}
	return done.RowsAffected(), nil
}
