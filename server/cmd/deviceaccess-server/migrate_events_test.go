package main

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const ofAccounts = "events_outbox_of_accounts"

// partitions returns the partitions of the events in the order of their index builds.
func (c *crowded) partitions() []string {
	c.Helper()
	return c.all("select inhrelid::regclass::text from pg_inherits where inhparent = 'events'::regclass")
}

// whole returns the OIDs of the valid indexes by partition.
func (c *crowded) whole() map[string]int {
	c.Helper()
	found := map[string]int{}
	for _, partition := range c.partitions() {
		index := ofAccounts + "_" + partition
		if oid := one[int](
			c,
			"select coalesce((select indexrelid::int from pg_index where indexrelid = to_regclass($1) and indisvalid and "+
				"indisready and indislive), 0)",
			index,
		); oid != 0 {
			found[partition] = oid
		}
	}
	return found
}

// seeds returns a checksum of the initial events.
func (c *crowded) seeds() string {
	c.Helper()
	return one[string](
		c,
		"select count(*) || ' ' || sum(hashtextextended(e::text, 0)) from events e where workspace_id = $1",
		theirs,
	)
}

// shape returns the relations of the database and its applied migrations.
func (c *crowded) shape() []string {
	c.Helper()
	return append(
		c.all(
			"select format('%s %s %s', oid, relname, relfilenode) from pg_class where relnamespace = 'public'::regnamespace "+
				"order by oid",
		),
		c.all("select g::text from goose_db_version g union all select r::text from river_migration r order by 1")...)
}

// upgraded checks the database after the upgrade. written is the number of events that the writers have written.
func (c *crowded) upgraded(seeds string, written int64) {
	c.Helper()
	if now := c.seeds(); now != seeds {
		c.Errorf("the events that were there are %s now, and were %s", now, seeds)
	}
	if n := one[int64](c, "select count(*) from events where workspace_id <> $1", theirs); n != written {
		c.Errorf("%d events were written meanwhile, and %d are there", written, n)
	}
	if odd := c.all(
		"select indexrelid::regclass::text from pg_index where not (indisvalid and indisready and indislive)",
	); len(
		odd,
	) > 0 {
		c.Errorf("these indexes are not whole: %v", odd)
	}
	partitions := c.partitions()
	joined := c.all(
		"select x.indrelid::regclass::text from pg_inherits i join pg_index x on x.indexrelid = i.inhrelid where "+
			"i.inhparent = $1::regclass",
		ofAccounts,
	)
	slices.Sort(partitions)
	slices.Sort(joined)
	if !slices.Equal(joined, partitions) || len(c.whole()) != len(partitions) {
		c.Errorf("the index is of %v, and the partitions are %v", joined, partitions)
	}
	c.serves()
	before := c.shape()
	c.ok("migrate")
	if diff := cmp.Diff(before, c.shape()); diff != "" {
		c.Errorf("another run has changed something: %s", diff)
	}
}

// serves checks that a query that uses only the index finds the same number of waiting events as a sequential scan.
func (c *crowded) serves() {
	c.Helper()
	const waits = "select workspace_id, created_at from events where fanned_out_at is null order by workspace_id, " +
		"coalesce(connected_account_id, '00000000-0000-0000-0000-000000000000'), created_at"
	c.exec("set enable_indexscan = off; set enable_bitmapscan = off; set enable_indexonlyscan = off")
	want := one[int](c, "select count(*) from ("+waits+" offset 0) w")
	c.exec("reset enable_indexscan; set enable_seqscan = off; set enable_sort = off; set enable_incremental_sort = off")
	plan := strings.Join(c.all("explain "+waits), "\n")
	if got := one[int](c, "select count(*) from ("+waits+" offset 0) w"); got != want {
		c.Errorf("the index has %d events that wait, and the table %d", got, want)
	}
	c.exec("reset all")
	for _, partition := range c.partitions() {
		if !strings.Contains(plan, ofAccounts+"_"+partition+" ") {
			c.Errorf("the index of %s is not used: %s", partition, plan)
		}
	}
}

// Migrating a database with many events does not block writers for long and loses no event. Every partition gets a
// valid index, even if the build had to wait for a transaction.
func TestMigrate_WhileEventsAreWritten(t *testing.T) {
	t.Parallel()
	c := newCrowded(t, 5_000)
	seeds, partitions := c.seeds(), c.partitions()
	slow := c.held(partitions[len(partitions)/2])
	ended := make(chan error, 1)
	go func() {
		_, err := c.run("migrate")
		ended <- err
	}()
	c.isMaking(partitions[len(partitions)/2])
	c.goOn()
	c.must(slow.Commit(t.Context()))
	c.must(<-ended)
	c.goOn()
	c.upgraded(seeds, c.end())
}

// A killed migration is completed by the next one, which rebuilds only the unfinished index. This also works while the
// database has not noticed that the killed client is gone.
func TestMigrate_KilledAndStartedAgain(t *testing.T) {
	t.Parallel()
	for name, noticed := range map[string]bool{
		"the database notices":                true,
		"the database goes on with the index": false,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrowded(t, 5_000)
			seeds, partitions := c.seeds(), c.partitions()
			last := partitions[len(partitions)-1]
			slow := c.held(last)
			first := c.command("migrate")
			c.must(first.Start())
			pid := c.isMaking(last)
			c.must(first.Process.Kill())
			if err := first.Wait(); exitOf(err) != "signal: killed" {
				t.Fatalf("it has ended before it was killed: %v", err)
			}
			made := c.whole()
			if len(made) != len(partitions)-1 {
				t.Fatalf("the index of %s is the last one, but the valid ones are %v", last, made)
			}
			half := one[int](
				c,
				"select indexrelid::int from pg_index where indexrelid = $1::regclass and not indisvalid",
				ofAccounts+"_"+last,
			)
			if noticed {
				c.exec("select pg_terminate_backend($1, 60000)", pid)
			}
			ended := make(chan error, 1)
			go func() {
				_, err := c.run("migrate")
				ended <- err
			}()
			c.reach("the second run waits for the transaction on the partition, or for the first run", func() bool {
				return one[bool](c, `select exists (select from pg_stat_activity where datname = current_database()
					and (wait_event_type = 'Lock' and query like 'drop index concurrently%' or state = 'idle' and query like '%pg_try_advisory_lock%'))`)
			})
			c.goOn()
			c.must(slow.Commit(t.Context()))
			c.must(<-ended)
			now := c.whole()
			if (now[last] != half) != noticed {
				t.Errorf("the unfinished index was rebuilt: %t", now[last] != half)
			}
			delete(now, last)
			if diff := cmp.Diff(made, now); diff != "" {
				t.Errorf("valid indexes were rebuilt: %s", diff)
			}
			c.upgraded(seeds, c.end())
		})
	}
}

// exitOf describes the exit of a process.
func exitOf(err error) string {
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return exit.String()
	}
	return fmt.Sprint(err)
}
