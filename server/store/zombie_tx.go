package store

import (
	"context"
	"fmt"
)

// EndStandstills ends the sessions of servers that have stood still for heldIdle in the middle of what they send to the database
// in a transaction, or that take no answer, and says how many: idle_in_transaction_session_timeout does not count for these, and
// what they have locked is kept from others until their machine is found to be gone, two hours later. Where that limit is
// off, nobody is ended. Our statements begin with their name, so dumps are let be. It waits for none of the connections that work is
// done with: all of them may wait for what such a session has locked.
func (db *DB) EndStandstills(ctx context.Context) (ended int64, err error) {
	done, err := db.beside.Exec(ctx, `select pg_terminate_backend(pid) from pg_stat_activity, (select current_setting('idle_in_transaction_session_timeout')::interval as span) l
		where datname = current_database() and usename = current_user and pid <> pg_backend_pid() and state = 'active' and xact_start is not null
		and query like '-- name: %' and wait_event in ('ClientRead', 'ClientWrite') and l.span > interval '0' and state_change < now() - l.span`)
	if err != nil {
		return 0, fmt.Errorf("end sessions that stand still: %w", err)
	}
	return done.RowsAffected(), nil
}
