package webhook_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// alone is a holder whom nobody disputes anything.
type alone struct{}

func (alone) Check(context.Context, store.Tx) error { return nil }

// happen writes that many events of each of the accounts, of the first all before those of the second. Nil is no account.
func (b *bed) happen(n int, accounts ...*uuid.UUID) {
	b.Helper()
	for _, account := range accounts {
		_, err := b.db.Pool.Exec(b.Context(), `insert into events (event_id, workspace_id, event_type, connected_account_id, payload)
			select gen_random_uuid(), $1, 'device.connected', $2, jsonb_build_object('n', i) from generate_series(1, $3::integer) i`, b.p.WorkspaceID, account, n)
		b.must(err)
	}
}

func account() *uuid.UUID {
	id := access.NewID()
	return &id
}

// manyAccounts are 249, and none.
func manyAccounts() []*uuid.UUID {
	all := []*uuid.UUID{nil}
	for range 249 {
		all = append(all, account())
	}
	return all
}

// idle is a bed where nobody works.
func idle(t *testing.T) *bed {
	t.Helper()
	b := start(t, quick())
	b.stop(0)
	return b
}

// fanOut does one batch, and says how many events it has handed out.
func (b *bed) fanOut(events int32) int {
	b.Helper()
	const waiting = "events where fanned_out_at is null"
	before := b.count(waiting)
	_, last, err := b.access.FanOut(b.Context(), alone{}, b.p.WorkspaceID, b.last, events)
	b.must(err)
	b.last = last
	return before - b.count(waiting)
}

// take takes events with so many deliveries at most, and says whose turn was the last.
func (b *bed) take(after uuid.UUID, deliveries int32) (last uuid.UUID) {
	b.Helper()
	b.must(b.db.InTx(b.Context(), func(tx store.Tx) error {
		taken, err := tx.TakeEvents(b.Context(), dbsqlc.TakeEventsParams{WorkspaceID: b.p.WorkspaceID, After: after, MaxRows: 50, MaxDeliveries: deliveries})
		if err == nil {
			last = taken[0].Last
		}
		return err
	}))
	return last
}

// An account that tells of thousands of codes at once does not have the events of others wait.
func TestEventsOfAnAccountDoNotWaitForThoseOfAnother(t *testing.T) {
	t.Parallel()
	b := idle(t)
	b.hook("https://example.com")
	lively, quiet := account(), account()
	b.happen(1000, lively)
	b.happen(1, quiet, nil)
	if n := b.fanOut(90); n != 32 {
		t.Errorf("%d events, want 30 of one account, and each one there is of the other and of none", n)
	}
	const given = "events e where exists (select from deliveries d where d.event_id = e.event_id) and "
	if n := b.count(given+"connected_account_id = $1 and (payload->>'n')::int <= 30", lively); n != 30 {
		t.Errorf("%d of the oldest 30 of the account with many were handed out", n)
	}
	if n := b.count(given+"connected_account_id = $1", quiet); n != 1 {
		t.Errorf("%d events of the other account were handed out, want the one there is", n)
	}
	if n := b.count(given + "connected_account_id is null"); n != 1 {
		t.Errorf("%d events of no account were handed out, want the one there is", n)
	}
	if n := b.fanOut(90); n != 90 {
		t.Errorf("%d events of the only account that is left, want a whole batch", n)
	}
}

// However many accounts have something to tell, each has its turn, and none twice before another has it.
func TestEventsOfEachOfManyAccountsHaveTheirTurn(t *testing.T) {
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
			t.Fatalf("after five batches of 50 of 250 accounts %d have had their turn", n)
		}
	}
	const second = `select connected_account_id, (payload->>'n')::int as n, fanned_out_at from events`
	if n := b.count("(" + second + ") e join (" + second + ") f on f.connected_account_id is not distinct from e.connected_account_id and f.n < e.n where e.fanned_out_at is not null and f.fanned_out_at is null"); n != 0 {
		t.Errorf("%d times an event was handed out before an older one of its account", n)
	}
}

// A batch ends with what is as many deliveries as it may have, in turns of the accounts. Webhooks that do not ask for an event do not count.
func TestBatchHasAsManyDeliveriesAsItMayHave(t *testing.T) {
	t.Parallel()
	b := idle(t)
	for range 4 {
		b.hook("https://example.com", "device.connected")
	}
	b.hook("https://example.com", "device.disconnected")
	lively, quiet := account(), account()
	b.happen(20, lively)
	b.happen(3, quiet)
	if last := b.take(uuid.Nil, 29); last != *lively {
		t.Error("the last turn, which was that of the account with many, is said to be another's")
	}
	if n := b.count("events where fanned_out_at is not null and connected_account_id = $1", quiet); n != 3 {
		t.Errorf("%d events of the account with few were handed out, want all 3", n)
	}
	if n := b.count("events where fanned_out_at is not null and connected_account_id = $1 and (payload->>'n')::int <= 5", lively); n != 5 {
		t.Errorf("%d of the oldest 5 events of the account with many were handed out", n)
	}
	if n := b.count("events where fanned_out_at is not null"); n != 8 {
		t.Errorf("%d events, want 8, whose deliveries are 32", n)
	}
}

// Where the deliveries of one event are all that a batch may have, each account has its turn, too.
func TestEachAccountHasItsTurnWhereABatchIsOneEvent(t *testing.T) {
	t.Parallel()
	b := idle(t)
	b.hook("https://example.com")
	b.happen(4, account(), nil, account(), account())
	last := uuid.Nil
	for n := range 16 {
		last = b.take(last, 1)
		if least := b.count("(select connected_account_id from events group by 1 having count(fanned_out_at) < $1) x", (n+1)/4); least != 0 {
			t.Fatalf("after %d events %d accounts have had too few turns", n+1, least)
		}
	}
}

// Whoever works on an outbox goes on where the batch before has ended.
func TestBatchesOfAnOutboxGoOnAfterOneAnother(t *testing.T) {
	t.Parallel()
	b := idle(t)
	b.hook("https://example.com", "device.disconnected")
	b.happen(10, manyAccounts()...)
	b.engine(quick())
	b.until("all is handed out", func() bool { return b.count("events where fanned_out_at is null") == 0 })
	const first = "(select distinct fanned_out_at from events order by 1 limit 3)"
	if n := b.count("(select distinct connected_account_id from events where fanned_out_at in " + first + ") x"); n != 250 {
		t.Errorf("in the first three batches, each of 100 accounts, %d had their turn, want all 250", n)
	}
}

// The oldest event is found wherever it waits.
func TestTheOldestEventOfAllIsToldOf(t *testing.T) {
	t.Parallel()
	b := idle(t)
	b.hook("https://example.com")
	first, second := account(), account()
	b.happen(5, nil, first, second)
	theirs := b.workspace("theirs")
	began := time.Now()
	for minutes, of := range []struct {
		workspace uuid.UUID
		account   *uuid.UUID
	}{{b.p.WorkspaceID, nil}, {b.p.WorkspaceID, second}, {b.p.WorkspaceID, first}, {theirs.WorkspaceID, nil}} {
		_, err := b.db.Pool.Exec(t.Context(), `insert into events (event_id, workspace_id, event_type, connected_account_id, payload, created_at)
			values (gen_random_uuid(), $1, 'device.connected', $2, '{}', now() - make_interval(mins => $3))`, of.workspace, of.account, minutes+1)
		b.must(err)
		backlog, err := b.access.Backlog(t.Context())
		b.must(err)
		late, err := b.access.Lateness(t.Context())
		b.must(err)
		want := time.Duration(minutes+1) * time.Minute
		for _, got := range []time.Duration{backlog.OldestOutbox, late.Events} {
			if got < want || got > want+time.Since(began) {
				t.Errorf("the oldest event waits for %s, want %s", got, want)
			}
		}
	}
}
