package webhook_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// alone is an undisputed lease.
type alone struct{}

func (alone) Check(context.Context, store.Tx) error { return nil }

// happen writes the given number of events for each of the accounts, account by account. A nil
// account means none.
func (b *bed) happen(n int, accounts ...*uuid.UUID) {
	b.Helper()
	for _, account := range accounts {
		_, err := b.db.Pool.Exec(
			b.Context(),
			`insert into events (event_id, workspace_id, event_type, connected_account_id, payload)
			select gen_random_uuid(), $1, 'device.connected', $2, jsonb_build_object('n', i) from generate_series(1, $3::integer) i`,
			b.p.WorkspaceID,
			account,
			n,
		)
		b.must(err)
	}
}

func accountOf() *uuid.UUID {
	id := domain.NewID()
	return &id
}

// manyAccounts returns 249 accounts and nil.
func manyAccounts() []*uuid.UUID {
	all := []*uuid.UUID{nil}
	for range 249 {
		all = append(all, accountOf())
	}
	return all
}

// idle returns a bed without an engine.
func idle(t *testing.T) *bed {
	t.Helper()
	b := start(t, quick())
	b.stop(0)
	return b
}

// fanOut fans out one batch and returns the number of events.
func (b *bed) fanOut(events int32) int {
	b.Helper()
	const waiting = "events where fanned_out_at is null"
	before := b.count(waiting)
	_, last, err := b.access.Webhooks.FanOutEvents(b.Context(), alone{}, b.p.WorkspaceID, b.last, events)
	b.must(err)
	b.last = last
	return before - b.count(waiting)
}

// take fans out events with at most the given number of deliveries, and returns the last account.
func (b *bed) take(after uuid.UUID, deliveries int32) (last uuid.UUID) {
	b.Helper()
	b.must(b.db.InTx(b.Context(), func(tx store.Tx) error {
		taken, err := tx.TakeEvents(b.Context(), dbsqlc.TakeEventsParams{
			WorkspaceID:   b.p.WorkspaceID,
			After:         after,
			MaxRows:       50,
			MaxDeliveries: deliveries,
		})
		if err == nil {
			last = taken[0].Last
		}
		return err
	}))
	return last
}

// An account with thousands of events does not delay the events of others.
func TestFanOut_AccountsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	b := idle(t)
	b.hook("https://example.com")
	lively, quiet := accountOf(), accountOf()
	b.happen(1000, lively)
	b.happen(1, quiet, nil)
	if n := b.fanOut(90); n != 32 {
		t.Errorf("%d events, want 30 of one account and all of the other and of none", n)
	}
	const given = "events e where exists (select from deliveries d where d.event_id = e.event_id) and "
	if n := b.count(given+"connected_account_id = $1 and (payload->>'n')::int <= 30", lively); n != 30 {
		t.Errorf("%d of the oldest 30 events of the busy account were fanned out", n)
	}
	if n := b.count(given+"connected_account_id = $1", quiet); n != 1 {
		t.Errorf("%d events of the other account were fanned out, want 1", n)
	}
	if n := b.count(given + "connected_account_id is null"); n != 1 {
		t.Errorf("%d events of no account were fanned out, want 1", n)
	}
	if n := b.fanOut(90); n != 90 {
		t.Errorf("%d events of the remaining account, want a full batch", n)
	}
}

// Each of many accounts gets a turn before any account gets a second one.
func TestFanOut_RoundRobinOfManyAccounts(t *testing.T) {
	t.Parallel()
	b := idle(t)
	b.hook("https://example.com")
	b.happen(30, manyAccounts()...)
	const told = "(select connected_account_id from events group by 1 having count(fanned_out_at) = $1) x"
	for lap := range 2 {
		for range 5 {
			if n := b.fanOut(50); n != 50 {
				t.Fatalf("%d events, want 50", n)
			}
		}
		if n := b.count(told, lap+1); n != 250 {
			t.Fatalf("after five batches of 50, %d of 250 accounts had a turn", n)
		}
	}
	const second = `select connected_account_id, (payload->>'n')::int as n, fanned_out_at from events`
	if n := b.count(
		"(" + second + ") e join (" + second + ") f on f.connected_account_id is not distinct from e.connected_account_id and f.n < e.n where e.fanned_out_at is not null and f.fanned_out_at is null",
	); n != 0 {
		t.Errorf("%d events were fanned out before an older one of their account", n)
	}
}

// A batch ends when it has the maximum number of deliveries. Webhooks without the event type do not
// count.
func TestFanOut_BatchIsBoundedByDeliveries(t *testing.T) {
	t.Parallel()
	b := idle(t)
	for range 4 {
		b.hook("https://example.com", "device.connected")
	}
	b.hook("https://example.com", "device.disconnected")
	lively, quiet := accountOf(), accountOf()
	b.happen(20, lively)
	b.happen(3, quiet)
	if last := b.take(uuid.Nil, 29); last != *lively {
		t.Error("the last turn was not that of the busy account")
	}
	if n := b.count("events where fanned_out_at is not null and connected_account_id = $1", quiet); n != 3 {
		t.Errorf("%d events of the small account were fanned out, want all 3", n)
	}
	if n := b.count(
		"events where fanned_out_at is not null and connected_account_id = $1 and (payload->>'n')::int <= 5",
		lively,
	); n != 5 {
		t.Errorf("%d of the oldest 5 events of the busy account were fanned out", n)
	}
	if n := b.count("events where fanned_out_at is not null"); n != 8 {
		t.Errorf("%d events, want 8 with 32 deliveries", n)
	}
}

// Each account gets a turn, even if one event fills a batch.
func TestFanOut_RoundRobinWithOneEventPerBatch(t *testing.T) {
	t.Parallel()
	b := idle(t)
	b.hook("https://example.com")
	b.happen(4, accountOf(), nil, accountOf(), accountOf())
	last := uuid.Nil
	for n := range 16 {
		last = b.take(last, 1)
		if least := b.count(
			"(select connected_account_id from events group by 1 having count(fanned_out_at) < $1) x",
			(n+1)/4,
		); least != 0 {
			t.Fatalf("after %d events, %d accounts had too few turns", n+1, least)
		}
	}
}

// A batch continues after the last account of the previous one.
func TestFanOut_BatchesContinue(t *testing.T) {
	t.Parallel()
	b := idle(t)
	b.hook("https://example.com", "device.disconnected")
	b.happen(10, manyAccounts()...)
	b.engine(quick())
	b.until("all events are fanned out", func() bool { return b.count("events where fanned_out_at is null") == 0 })
	const first = "(select distinct fanned_out_at from events order by 1 limit 3)"
	if n := b.count(
		"(select distinct connected_account_id from events where fanned_out_at in " + first + ") x",
	); n != 250 {
		t.Errorf("in the first three batches of 100 accounts, %d had a turn, want all 250", n)
	}
}

// The age of the oldest event is found in any partition.
func TestBacklog_OldestEvent(t *testing.T) {
	t.Parallel()
	b := idle(t)
	b.hook("https://example.com")
	first, second := accountOf(), accountOf()
	b.happen(5, nil, first, second)
	theirs := b.workspace("theirs")
	began := time.Now()
	for minutes, of := range []struct {
		workspace uuid.UUID
		account   *uuid.UUID
	}{{b.p.WorkspaceID, nil}, {b.p.WorkspaceID, second}, {b.p.WorkspaceID, first}, {theirs.WorkspaceID, nil}} {
		_, err := b.db.Pool.Exec(
			t.Context(),
			`insert into events (event_id, workspace_id, event_type, connected_account_id, payload, created_at)
			values (gen_random_uuid(), $1, 'device.connected', $2, '{}', now() - make_interval(mins => $3))`,
			of.workspace,
			of.account,
			minutes+1,
		)
		b.must(err)
		backlog, err := b.access.Health.Backlog(t.Context())
		b.must(err)
		late, err := b.access.Health.Lateness(t.Context())
		b.must(err)
		want := time.Duration(minutes+1) * time.Minute
		for _, got := range []time.Duration{backlog.OldestOutbox, late.Events} {
			if got < want || got > want+time.Since(began) {
				t.Errorf("oldest event: %s, want %s", got, want)
			}
		}
	}
}
