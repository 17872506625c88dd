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

// soon is how long after its start a killed server may need for the work it had in hand: leases of 15 s, a sweep of 2
// s, and the recovery of the database.
const soon = 30 * time.Second

// ballast is some 100 MB of WAL that the database must recover after a kill.
const ballast = "create table ballast as select n, repeat('x', 80) as text from generate_series(1, 600000) n"

// A server with a private database is killed with codes and deliveries in flight, and started again. Its database is
// killed, too. All locks and endpoints with work in flight get work again, each code is on its lock once, and each
// event arrives. The long form (CHAOS_RESTARTS) also kills the server alone and gives the database much to recover. It
// fails unless recovery takes less than 30 s.
func TestSingleServer_RecoversSoon(t *testing.T) {
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
			until(
				t,
				"a request is in the air to every lock and every endpoint",
				func() bool { return f.inTheAir() == len(f.all()) },
			)
			a.kill(who != "the server")
			f.letsGo()
			begun := a.start()
			ready := time.Since(begun)
			until(
				t,
				"it goes on with every lock and every endpoint",
				func() bool { return len(f.seen()) == len(f.all()) },
			)
			seen := f.seen()
			for of, at := range seen {
				if took := at.Sub(begun); long && took > soon {
					t.Errorf("%s was worked on %s after the start", of, took)
				}
			}
			times := slices.SortedFunc(maps.Values(seen), time.Time.Compare)
			t.Logf(
				"%d locks and %d endpoints had work in flight at the kill; the server answers requests %s after the start, and "+
					"continued the work %s to %s after it",
				len(
					f.locks,
				),
				len(f.paths),
				ready.Round(time.Millisecond),
				times[0].Sub(begun).Round(time.Millisecond),
				times[len(times)-1].Sub(begun).Round(time.Millisecond),
			)
			a.allIsDone(f, names)
		})
	}
}

// connect gives the server work on the field: a workspace, the vendor's account, and the endpoints.
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
	a.subscribed = databaseTime(a, a.database())
	until(a, "the locks have been read", func() bool {
		var n int
		err := a.database().
			QueryRow(a.Context(), "select count(*) from devices where last_good_read_at is not null and (due_at is null or "+
				"due_at > now())").
			Scan(&n)
		return err == nil && n == len(f.locks)
	})
}

// makeCodes creates codes on each lock and returns their names.
func (a *alone) makeCodes(each int) (names []string) {
	a.Helper()
	devices, _ := a.ask("/locks/list", map[string]any{}).body["devices"].([]any)
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

// kill ends the server, and optionally its database, like kill -9.
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
		err := a.database().
			QueryRow(a.Context(), "select count(*) from access_codes where is_managed and status <> 'set'").
			Scan(&n)
		return err == nil && n == 0
	})
	on := f.onLocks()
	for _, name := range names {
		if on[name] != 1 {
			a.Errorf("%q was created once and is on locks %d times", name, on[name])
		}
	}
	until(a, "no delivery is pending", func() bool {
		var n int
		err := a.database().
			QueryRow(a.Context(), "select (select count(*) from events where fanned_out_at is null) + (select count(*) from "+
				"deliveries where state = 'pending')").
			Scan(&n)
		return err == nil && n == 0
	})
	rows, err := a.database().
		Query(a.Context(), "select event_id from events where created_at >= $1", a.subscribed)
	if err != nil {
		a.Fatal(err)
	}
	events, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		a.Fatal(err)
	}
	if len(events) < len(names) {
		a.Errorf("%d codes were created, and %d events written", len(names), len(events))
	}
	for _, id := range events {
		for _, path := range f.paths {
			if !f.has(path, id) {
				a.Errorf("event %s has not arrived at %s", id, path)
			}
		}
	}
}
