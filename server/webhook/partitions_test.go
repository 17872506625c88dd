package webhook_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/retention"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// A server drops expired partitions and creates upcoming ones automatically.
func TestPartitions_AreMaintained(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	b.stop(patience)
	w := b.hook(newSink(t, nil).URL)
	from, to := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2020, 1, 8, 0, 0, 0, 0, time.UTC)
	for _, table := range []string{"events", "deliveries", "delivery_attempts"} {
		_, err := b.db.Pool.Exec(
			t.Context(),
			fmt.Sprintf(
				"create table %[1]s_old (like %[1]s including all); alter table %[1]s attach partition %[1]s_old for values from ('%[2]s') to ('%[3]s')",
				table,
				store.MinIDAt(from),
				store.MinIDAt(to),
			),
		)
		b.must(err)
	}
	inside := store.MinIDAt(from.Add(time.Hour))
	_, err := b.db.Pool.Exec(
		t.Context(),
		`with e as (insert into events (event_id, workspace_id, event_type, payload, created_at, fanned_out_at) values ($1, $2, 'device.added', '{}', $3, $3) returning event_id)
		insert into deliveries (webhook_id, event_id, state, finished_at) select $4, event_id, 'delivered', $3::timestamptz from e`,
		inside,
		b.p.WorkspaceID,
		from.Add(time.Hour),
		w.ID,
	)
	b.must(err)
	all, err := b.db.Partitions(t.Context())
	b.must(err)
	last := all[len(all)-1]
	_, err = b.db.Pool.Exec(t.Context(),
		fmt.Sprintf("drop table events_%[1]s, deliveries_%[1]s, delivery_attempts_%[1]s", last.Name))
	b.must(err)

	o := quick()
	keep := retention.Options{Events: 30 * 24 * time.Hour}
	b.engine(o, keep)
	b.engine(o, keep) // a second instance
	b.until("the old partition is gone, and the next one is there", func() bool {
		all, err := b.db.Partitions(t.Context())
		b.must(err)
		return len(all) > 0 && all[0].Name != "old" &&
			all[len(all)-1].To.After(time.Now().Add(retention.PartitionWidth(keep.Events)))
	})
	if events, deliveries := b.count(
		"events where event_id = $1",
		inside,
	), b.count(
		"deliveries where event_id = $1",
		inside,
	); events+deliveries != 0 {
		t.Errorf("%d events and %d deliveries left", events, deliveries)
	}
}

func TestPartitionsAreAQuarterOfTheRetention(t *testing.T) {
	t.Parallel()
	for keep, want := range map[time.Duration]time.Duration{
		time.Hour: store.Day, 7 * store.Day: store.Day, 30 * store.Day: 7 * store.Day,
		90 * store.Day: 22 * store.Day, 3650 * store.Day: 91 * store.Day, 0: 91 * store.Day,
	} {
		if got := retention.PartitionWidth(keep); got != want {
			t.Errorf("%s: %s, want %s", keep, got, want)
		}
	}
}
