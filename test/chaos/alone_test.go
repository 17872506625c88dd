package chaos_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// soon is how long after the start of a server that was killed what it had in hand may wait: its own leases, which last 15 s, a
// sweep of 2 s, and the recovery of its database.
const soon = 30 * time.Second

// ballast is what the database has to go through again when it was killed: some 100 MB of its log.
const ballast = "create table ballast as select n, repeat('x', 80) as text from generate_series(1, 600000) n"

// A server with a database of its own is killed with codes and deliveries in hand, and started again; its database is killed, too.
// Each lock and each endpoint that it was at is worked on again, and in the end each code is on its lock once and each event has
// arrived. The long form (CHAOS_RESTARTS) also kills the server alone, gives the database much to recover, and fails unless that
// takes less than 30 s.
func TestALoneServerGoesOnSoon(t *testing.T) {
	t.Parallel()
	storetest.NeedPostgres(t)
	program, long := build(t), isLong("CHAOS_RESTARTS")
	victims := []string{"the server and its database"}
	if long {
		victims = append(victims, "the server")
	}
	for _, who := range victims {
		t.Run(who, func(t *testing.T) {
			f := newField(t)
			a := newAlone(t, program)
			a.start()
			a.connect(f)
			if long {
				if _, err := a.database().Exec(t.Context(), ballast); err != nil {
					t.Fatal(err)
				}
			}
			f.holds()
			names := a.makeCodes(3)
			until(t, "a request is in the air to every lock and every endpoint", func() bool { return f.inTheAir() == len(f.all()) })
			a.kill(who != "the server")
			f.letsGo()
			begun := a.start()
			ready := time.Since(begun)
			until(t, "it goes on with every lock and every endpoint", func() bool { return len(f.seen()) == len(f.all()) })
			seen := f.seen()
			for of, at := range seen {
				if took := at.Sub(begun); long && took > soon {
					t.Errorf("%s was worked on %s after the start", of, took)
				}
			}
			times := slices.SortedFunc(maps.Values(seen), time.Time.Compare)
			t.Logf("%d locks and %d endpoints were being worked on when it was killed; requests are answered %s after the start, and the locks and endpoints were worked on again %s to %s after it",
				len(f.locks), len(f.paths), ready.Round(time.Millisecond), times[0].Sub(begun).Round(time.Millisecond), times[len(times)-1].Sub(begun).Round(time.Millisecond))
			a.allIsDone(f, names)
		})
	}
}

// connect has the server work on the field: it makes a workspace, and connects the vendor's account and the endpoints.
func (a *alone) connect(f *field) {
	a.Helper()
	workspace := a.run("workspaces", "create", "Home")
	a.key = a.run("keys", "create", "--workspace", workspace)
	token := a.dir + "/token"
	if err := os.WriteFile(token, []byte(f.token), 0o600); err != nil {
		a.Fatal(err)
	}
	a.run("accounts", "connect", "devicecloud", "--url", f.vendor.URL, "--token-file", token)
	for _, path := range f.paths {
		a.ask("/webhooks/create", map[string]any{"url": f.endpoints.URL + path})
	}
	until(a, "the locks have been read", func() bool {
		var n int
		err := a.database().QueryRow(a.Context(), "select count(*) from devices where last_good_read_at is not null and (due_at is null or due_at > now())").Scan(&n)
		return err == nil && n == len(f.locks)
	})
}

// makeCodes has some codes be made on each lock, and names them.
func (a *alone) makeCodes(each int) (names []string) {
	a.Helper()
	devices, _ := a.ask("/devices/list", map[string]any{}).body["devices"].([]any)
	for _, d := range devices {
		d, _ := d.(map[string]any)
		for range each {
			name := fmt.Sprintf("Guest %d", len(names))
			a.ask("/access_codes/create", map[string]any{"device_id": d["device_id"], "name": name})
			names = append(names, name)
		}
	}
	return names
}

// kill ends the server as kill -9 does, and its database.
func (a *alone) kill(database bool) {
	a.Helper()
	lines, _ := filepath.Glob(filepath.Join(a.dir, "data/postgres/*/data/postmaster.pid"))
	if len(lines) != 1 {
		a.Fatalf("there are %d databases", len(lines))
	}
	text, err := os.ReadFile(lines[0])
	if err != nil {
		a.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		a.Fatal(err)
	}
	_ = a.cmd.Process.Kill()
	if database {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = a.cmd.Wait()
}

// allIsDone checks that each code is on a lock once and each event has arrived at each endpoint.
func (a *alone) allIsDone(f *field, names []string) {
	a.Helper()
	until(a, "all codes are on their locks", func() bool {
		var n int
		err := a.database().QueryRow(a.Context(), "select count(*) from access_codes where is_managed and status <> 'set'").Scan(&n)
		return err == nil && n == 0
	})
	on := f.onLocks()
	for _, name := range names {
		if on[name] != 1 {
			a.Errorf("%q was made once and is on locks %d times", name, on[name])
		}
	}
	until(a, "nothing is to be delivered any more", func() bool {
		var n int
		err := a.database().QueryRow(a.Context(), "select (select count(*) from events where fanned_out_at is null) + (select count(*) from deliveries where state = 'pending')").Scan(&n)
		return err == nil && n == 0
	})
	rows, err := a.database().Query(a.Context(), "select event_id from events e where created_at >= (select max(created_at) from webhooks w where w.workspace_id = e.workspace_id)")
	if err != nil {
		a.Fatal(err)
	}
	events, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		a.Fatal(err)
	}
	if len(events) < len(names) {
		a.Errorf("%d codes were made, and %d events written", len(names), len(events))
	}
	for _, id := range events {
		for _, path := range f.paths {
			if !f.has(path, id) {
				a.Errorf("event %s has not arrived at %s", id, path)
			}
		}
	}
}
