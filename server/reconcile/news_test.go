package reconcile_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// halted is a clock that stands still until it is put forward.
type halted struct {
	at    time.Time
	ahead atomic.Int64
}

func (c *halted) now() time.Time           { return c.at.Add(time.Duration(c.ahead.Load())) }
func (c *halted) forward(by time.Duration) { c.ahead.Add(int64(by)) }

func some(name string, n int) (all []access.Found) {
	for i := range n {
		all = append(all, found(fmt.Sprint(name, i), fmt.Sprint(100_000+len(name)*1000+i)))
	}
	return all
}

// A vendor that never lists the same codes twice has its account's told at a pace. What has left goes first, and what is
// ours waits for nothing.
func TestCodesOfOthersThatComeWithoutAnEndAreTakenInAtAPace(t *testing.T) {
	t.Parallel()
	c := &halted{at: time.Now()}
	b := hand(t, options{profile: "august", access: access.Options{Now: c.now, NewsPerSecond: 10, NewsAtOnce: 150}})
	c.forward(time.Minute) // what the bed has told of is forgotten
	ours := b.on("7531", "ours")
	again := func() time.Duration {
		t.Helper()
		due := b.look().Due
		if due == nil {
			t.Fatal("the device is not read again")
		}
		return due.Sub(c.now())
	}

	c.forward(time.Minute)
	first := append(some("k", 400), found("ours", "7531"))
	b.read(first...)
	if n := len(b.unmanaged()); n != 150 {
		t.Fatalf("%d codes were taken in, want the 150 that may be at once", n)
	}
	if wait := again(); wait < 900*time.Millisecond || wait > 10*time.Second {
		t.Errorf("the rest is read in %s", wait)
	}
	c.forward(10 * time.Second)
	if w := b.look(); !w.ReadNeeded {
		t.Error("after ten seconds the rest is not read")
	}
	b.read(first...)
	if n := len(b.unmanaged()); n != 250 {
		t.Errorf("%d codes were taken in, want the 100 of ten seconds more", n)
	}

	c.forward(time.Minute) // room for 150 again
	before := len(b.told("access_code.unmanaged.removed"))
	b.read(some("other", 400)...)
	if left, n := len(b.told("access_code.unmanaged.removed"))-before, len(b.unmanaged()); left != 150 || n != 100 {
		t.Errorf("%d were told of as gone, and %d are kept", left, n)
	}
	if trouble := b.told("access_code.deleted_external_to_seam"); len(trouble) != 1 {
		t.Errorf("a code of ours that has left: %v", trouble)
	}
	if got := b.code(ours.ID); got.Status != access.StatusSetting {
		t.Errorf("it is %s, want it to be put back", got.Status)
	}
	c.forward(time.Hour)
	b.read(some("other", 20)...)
	if n := len(b.unmanaged()); n != 20 {
		t.Errorf("in the end %d codes are kept of 20", n)
	}
	if w := b.look(); w.ReadNeeded {
		t.Error("there is nothing left, and yet the device is read again")
	}
}

// What we are asked for, and do, waits for no room and takes none.
func TestWhatIsOursNeitherWaitsForRoomNorTakesIt(t *testing.T) {
	t.Parallel()
	c := &halted{at: time.Now()}
	b := hand(t, options{profile: "august", access: access.Options{Now: c.now, NewsPerSecond: 0.001, NewsAtOnce: 20}})
	c.forward(100_000 * time.Second)
	for i := range 4 {
		ours, _ := b.create(fmt.Sprint(7530 + i))
		_, err := b.access.DeleteCode(t.Context(), b.p, ours.ID.String(), "")
		b.must(err)
	}
	b.look()
	b.read(some("k", 25)...)
	codes := b.unmanaged()
	if len(codes) != 20 {
		t.Fatalf("%d codes were taken in, want the 20 there is room for", len(codes))
	}
	full, _ := b.create("7538")
	put := b.work(full)
	b.begin(put)
	b.end(put, access.PutOutcome{Failure: &access.Failure{Class: access.FailedFull, Message: "There is no room."}})
	if got := b.code(full.ID); got.Status == access.StatusSetting || len(got.Errors) == 0 {
		t.Fatalf("it is %s, with %v", got.Status, got.Errors)
	}
	b.read(some("k", 10)...)
	if got := b.code(full.ID); got.Status != access.StatusSetting || len(b.unmanaged()) != 20 {
		t.Errorf("what has left has made room for ours, whether that is told yet or not: it is %s", got.Status)
	}
	_, err := b.access.DeleteUnmanagedCode(t.Context(), b.p, codes[0].ID.String())
	b.must(err)
	_, err = b.db.Pool.Exec(t.Context(),
		"update action_attempts set deadline_at = now() - interval '1 minute' where status = 'pending'")
	b.must(err)
	b.look() // nobody waits for that any more
	b.read()
	c.forward(time.Minute)
	b.taken(b.work(codes[0]))
	b.read() // an empty list is believed the second time
	kept := b.unmanaged()
	if len(kept) != 19 {
		t.Errorf("%d codes are kept: all of 20 but the one that was to leave", len(kept))
	}
	ours, _ := b.create("7539")
	w := b.work(ours)
	b.begin(w)
	b.must(b.access.RecordPlace(t.Context(), holder{}, b.id(), w, "k4"))
	if n := len(b.unmanaged()); n != 18 {
		t.Errorf("%d codes are kept: one is said to be where ours is put", n)
	}
}

// An account of which there has been too much to tell is not listed again until that is paid for.
func TestAccountsThatOweAreNotListed(t *testing.T) {
	t.Parallel()
	c := &halted{at: time.Now()}
	var lists atomic.Int32
	b := start(
		t,
		options{
			profile: "august",
			access:  access.Options{Now: c.now, NewsPerSecond: 1, NewsAtOnce: 30},
			vendor: func(_ http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodGet && r.URL.Path == "/locks" {
					lists.Add(1)
				}
				return false
			},
		},
	)
	if owing := b.access.Owing(b.account); owing > 0 {
		t.Errorf("it owes %s", owing)
	}
	var locks []access.FoundDevice
	for i := range 200 {
		locks = append(locks, access.FoundDevice{Ref: fmt.Sprint("x", i), Name: "A door", Online: true})
	}
	b.must(b.access.RecordDevices(t.Context(), holder{}, b.account, locks)) // each is added and connected
	owing := b.access.Owing(b.account)
	if owing < 370*time.Second || owing > 400*time.Second {
		t.Fatalf("after 400 events of 30 it owes %s", owing)
	}
	if lists.Load() == 0 {
		t.Fatal("it has never been listed")
	}
	before := lists.Load()
	b.must(b.access.Hint(t.Context(), b.account, ""))
	b.until("it is put off", func() (off bool) {
		b.must(
			b.db.Pool.QueryRow(t.Context(), "select due_at > now() + interval '30 seconds' from connected_accounts where connected_account_id = $1", b.account).
				Scan(&off),
		)
		return off
	})
	if n := lists.Load() - before; n > 0 {
		t.Errorf("it was listed %d times", n)
	}
	_, err := b.db.Pool.Exec(t.Context(),
		"update connected_accounts set error_code = 'account_disconnected', error_message = '', error_at = now()")
	b.must(err)
	b.must(b.access.Hint(t.Context(), b.account, ""))
	b.until("whether it works again is looked at all the same", func() bool { return lists.Load() > before })
	if c.forward(owing + time.Hour); b.access.Owing(b.account) > 0 {
		t.Error("it is never paid")
	}
}
