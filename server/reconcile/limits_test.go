package reconcile_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
)

// halted is a clock that only moves when the test forwards it.
type halted struct {
	at    time.Time
	ahead atomic.Int64
}

func (c *halted) now() time.Time           { return c.at.Add(time.Duration(c.ahead.Load())) }
func (c *halted) forward(by time.Duration) { c.ahead.Add(int64(by)) }

func some(name string, n int) (all []shown) {
	for i := range n {
		all = append(all, found(fmt.Sprint(name, i), fmt.Sprint(100_000+len(name)*1000+i)))
	}
	return all
}

// A vendor lists different codes each time, so the account's events are rate-limited. Removals come
// first, and managed codes are exempt.
func TestEventRate_EndlessUnmanagedCodes(t *testing.T) {
	t.Parallel()
	c := &halted{at: time.Now()}
	b := hand(
		t,
		options{
			profile: "august",
			access:  access.Options{Now: c.now, InventoryEventRate: 10, InventoryEventBurst: 150},
		},
	)
	c.forward(time.Minute) // the events of the setup have left the budget
	ours := b.on("7531", "ours")
	again := func() time.Duration {
		t.Helper()
		due := b.look().Due
		if due == nil {
			t.Fatal("no further read is planned")
		}
		return due.Sub(c.now())
	}

	c.forward(time.Minute)
	first := append(some("k", 400), found("ours", "7531"))
	b.read(first...)
	if n := len(b.unmanaged()); n != 150 {
		t.Fatalf("%d codes stored, want the burst of 150", n)
	}
	if wait := again(); wait < 900*time.Millisecond || wait > 10*time.Second {
		t.Errorf("next read in %s", wait)
	}
	c.forward(10 * time.Second)
	if w := b.look(); !w.ReadNeeded {
		t.Error("no read after ten seconds")
	}
	b.read(first...)
	if n := len(b.unmanaged()); n != 250 {
		t.Errorf("%d codes stored, want 100 more after ten seconds", n)
	}

	c.forward(time.Minute) // refills the burst of 150
	before := len(b.told("access_code.unmanaged.removed"))
	b.read(some("other", 400)...)
	if left, n := len(b.told("access_code.unmanaged.removed"))-before, len(b.unmanaged()); left != 150 || n != 100 {
		t.Errorf("%d removal events, %d codes kept", left, n)
	}
	if trouble := b.told("access_code.deleted_external_to_seam"); len(trouble) != 1 {
		t.Errorf("a removed managed code: %v", trouble)
	}
	if got := b.code(ours.ID); got.Status != device.StatusSetting {
		t.Errorf("status %s, want setting", got.Status)
	}
	c.forward(time.Hour)
	b.read(some("other", 20)...)
	if n := len(b.unmanaged()); n != 20 {
		t.Errorf("%d of 20 codes kept at the end", n)
	}
	if w := b.look(); w.ReadNeeded {
		t.Error("nothing is left, but a read is planned")
	}
}

// Managed codes and requested operations neither wait for the event budget nor use it.
func TestEventRate_OwnWorkIsExempt(t *testing.T) {
	t.Parallel()
	c := &halted{at: time.Now()}
	b := hand(
		t,
		options{
			profile: "august",
			access:  access.Options{Now: c.now, InventoryEventRate: 0.001, InventoryEventBurst: 20},
		},
	)
	c.forward(100_000 * time.Second)
	for i := range 4 {
		ours, _ := b.create(fmt.Sprint(7530 + i))
		_, err := b.access.Devices.DeleteCode(t.Context(), b.p, ours.ID.String(), "")
		b.must(err)
	}
	b.look()
	b.read(some("k", 25)...)
	codes := b.unmanaged()
	if len(codes) != 20 {
		t.Fatalf("%d codes stored, want the 20 that fit", len(codes))
	}
	full, _ := b.create("7538")
	put := b.work(full)
	b.begin(put)
	b.end(put, outcome{Failure: &lockstate.Failure{Class: lockstate.FailedFull, Message: "There is no room."}})
	if got := b.code(full.ID); got.Status == device.StatusSetting || len(got.Errors) == 0 {
		t.Fatalf("status %s, errors %v", got.Status, got.Errors)
	}
	b.read(some("k", 10)...)
	if got := b.code(full.ID); got.Status != device.StatusSetting || len(b.unmanaged()) != 20 {
		t.Errorf("a removal must free the slot even before its event: status %s", got.Status)
	}
	_, err := b.access.Devices.DeleteUnmanagedCode(t.Context(), b.p, codes[0].ID.String())
	b.must(err)
	_, err = b.db.Pool.Exec(t.Context(),
		"update action_attempts set deadline_at = now() - interval '1 minute' where status = 'pending'")
	b.must(err)
	b.look() // the attempt has expired
	b.read()
	c.forward(time.Minute)
	b.taken(b.work(codes[0]))
	b.read() // the second empty list counts
	kept := b.unmanaged()
	if len(kept) != 19 {
		t.Errorf("%d codes kept, want 20 minus the removed one", len(kept))
	}
	ours, _ := b.create("7539")
	w := b.work(ours)
	b.begin(w)
	b.must(b.place(w, "k4"))
	if n := len(b.unmanaged()); n != 18 {
		t.Errorf("%d codes kept, although one has the slot of ours", n)
	}
}

// An account with too many events is not listed again until its event budget recovers.
func TestEventRate_AccountIsNotListed(t *testing.T) {
	t.Parallel()
	c := &halted{at: time.Now()}
	var lists atomic.Int32
	b := start(
		t,
		options{
			profile: "august",
			access:  access.Options{Now: c.now, InventoryEventRate: 1, InventoryEventBurst: 30},
			vendor: func(_ http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodGet && r.URL.Path == "/locks" {
					lists.Add(1)
				}
				return false
			},
		},
	)
	if owing := b.access.Devices.InventoryDelay(b.account); owing > 0 {
		t.Errorf("owing %s", owing)
	}
	var locks []device.FoundDevice
	for i := range 200 {
		locks = append(locks, device.FoundDevice{Ref: fmt.Sprint("x", i), Name: "A door", Online: true})
	}
	b.must(
		b.access.Devices.RecordDevices(t.Context(), holder{}, b.account, locks),
	) // each emits an added and a connected event
	owing := b.access.Devices.InventoryDelay(b.account)
	if owing < 370*time.Second || owing > 400*time.Second {
		t.Fatalf("after 400 of 30 events: owing %s", owing)
	}
	if lists.Load() == 0 {
		t.Fatal("the account was never listed")
	}
	before := lists.Load()
	b.must(b.access.Accounts.Hint(t.Context(), b.account, ""))
	b.until("the listing is postponed", func() (off bool) {
		b.must(
			b.db.Pool.QueryRow(t.Context(), "select due_at > now() + interval '30 seconds' from connected_accounts where connected_account_id = $1", b.account).
				Scan(&off),
		)
		return off
	})
	if n := lists.Load() - before; n > 0 {
		t.Errorf("%d listings", n)
	}
	_, err := b.db.Pool.Exec(t.Context(),
		"update connected_accounts set error_code = 'account_disconnected', error_message = '', error_at = now()")
	b.must(err)
	b.must(b.access.Accounts.Hint(t.Context(), b.account, ""))
	b.until("a failing account is listed anyway", func() bool { return lists.Load() > before })
	if c.forward(owing + time.Hour); b.access.Devices.InventoryDelay(b.account) > 0 {
		t.Error("the account still owes")
	}
}

// crowding makes responses for a path wait too long for memory once it is on.
type crowding struct {
	path  string
	on    atomic.Bool
	times atomic.Int64
}

func (c *crowding) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.on.Load() && r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, c.path) {
		c.times.Add(1)
		return adaptertest.Saturated().Transport.RoundTrip(r)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// A read that failed for lack of memory is retried soon and does not count as a vendor failure.
func TestMemoryShortage_ReadIsRetried(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ path, wake, state string }{
		"codes": {
			"/access_codes", "update devices set due_at = now(), wake_seq = wake_seq + 1, read_needed = true",
			"select failures > 0 or not online, due_at is not null and due_at between now() and now() + interval '5 s' and read_needed from devices",
		},
		"locks": {
			"/locks", "update connected_accounts set due_at = now(), wake_seq = wake_seq + 1",
			"select error_code is not null, due_at is not null and due_at between now() and now() + interval '5 s' from connected_accounts",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &crowding{path: test.path}
			b := start(t, options{profile: "august", http: &http.Client{Transport: c}})
			b.until("no work is due", func() (rests bool) {
				b.must(
					b.db.Pool.QueryRow(t.Context(), `select not exists (select from leases where held_until > now()) and not exists (select from devices where due_at <= now())
					and not exists (select from connected_accounts where due_at <= now())`).
						Scan(&rests),
				)
				return rests
			})
			c.on.Store(true)
			_, err := b.db.Pool.Exec(t.Context(), test.wake)
			b.must(err)
			var silent bool
			b.until("the work is postponed", func() (put bool) {
				b.must(b.db.Pool.QueryRow(t.Context(), test.state).Scan(&silent, &put))
				return put && c.times.Load() > 0
			})
			if silent {
				t.Error("the shortage counts as a vendor failure")
			}
		})
	}
}

// A large response keeps its memory until it is recorded, so other large responses wait.
func TestLargeResponses_WaitForEachOther(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ path, field, entry, written, wake string }{
		"of codes": {"/access_codes", "access_codes", `{"access_code_id":"c%d","status":"set","code":"%06[1]d","name":"` + strings.Repeat("n", 500) + `"}`, "access_codes", "update devices set due_at = now(), wake_seq = wake_seq + 1, read_needed = true"},
		"of locks": {"/locks", "locks", `{"lock_id":"l%d","name":"` + strings.Repeat("n", 500) + `"}`, "devices", "update connected_accounts set due_at = now(), wake_seq = wake_seq + 1"},
	} {
		t.Run(name, func(t *testing.T) { // they would wait for each other
			var large, served atomic.Bool
			b := start(t, options{profile: "august", vendor: func(w http.ResponseWriter, r *http.Request) bool {
				if !large.Load() || r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, test.path) {
					return false
				}
				fmt.Fprintf(w, `{%q:[`+test.entry, test.field, 0)
				for n := range 2500 {
					fmt.Fprintf(w, ","+test.entry, n+1)
				}
				served.Store(true)
				io.WriteString(w, "]}")
				return true
			}})
			b.until("no work is due", func() (rests bool) {
				b.must(
					b.db.Pool.QueryRow(t.Context(), `select not exists (select from leases where held_until > now()) and not exists (select from devices where due_at <= now())
					and not exists (select from connected_accounts where due_at <= now())`).
						Scan(&rests),
				)
				return rests
			})
			tx, err := b.db.Pool.Begin(t.Context())
			b.must(err)
			defer tx.Rollback(context.WithoutCancel(t.Context()))
			_, err = tx.Exec(t.Context(), "lock table "+test.written+" in share mode")
			b.must(err)
			large.Store(true)
			_, err = b.db.Pool.Exec(t.Context(), test.wake)
			b.must(err)
			b.until("the response is about to be recorded", func() (waits bool) {
				b.must(
					b.db.Pool.QueryRow(t.Context(), "select exists (select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database())").
						Scan(&waits),
				)
				return waits && served.Load()
			})
			if !adaptertest.LargeResponseWaits(t) {
				t.Error("another response was read meanwhile")
			}
		})
	}
}
