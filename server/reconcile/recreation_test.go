package reconcile_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
)

// rigid returns a vendor without in-place changes. says states its reported capabilities.
func rigid(t *testing.T, says func(lock map[string]any)) func(w http.ResponseWriter, r *http.Request) bool {
	const passed = "X-Passed"
	return func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.Method == http.MethodPatch:
			t.Errorf("unexpected request %s %s", r.Method, r.URL.Path)
			w.WriteHeader(http.StatusMethodNotAllowed)
			return true
		case r.Method != http.MethodGet || r.Header.Get(passed) != "" || !strings.HasPrefix(r.URL.Path, "/locks") || strings.HasSuffix(r.URL.Path, "/access_codes"):
			return false
		}
		req, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+r.Host+r.URL.String(), nil)
		if err != nil {
			t.Error(err)
			return false
		}
		req.Header.Set("Authorization", r.Header.Get("Authorization"))
		req.Header.Set(passed, "true")
		res, err := http.DefaultClient.Do(req)
		if err != nil { // the test has ended
			return false
		}
		defer res.Body.Close()
		var answer map[string]any
		if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
			t.Error(err)
		}
		if locks, ok := answer["locks"].([]any); ok {
			for _, lock := range locks {
				says(lock.(map[string]any))
			}
		} else if answer["lock_id"] != nil {
			says(answer)
		}
		w.WriteHeader(res.StatusCode)
		_ = json.NewEncoder(w).Encode(answer)
		return true
	}
}

func saysSo(lock map[string]any) { lock["capabilities"].(map[string]any)["modify_codes"] = false }

// saysNothing is a vendor that follows the public guide literally.
func saysNothing(lock map[string]any) { delete(lock, "capabilities") }

// The old PIN leaves the lock before the new one is put.
func TestRecreation_ReplacesInPlaceChange(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		profile string
		says    func(map[string]any)
	}{
		"PINs are shown":           {"august", saysSo},
		"PINs are hidden":          {"smartthings", saysSo},
		"the list lags":            {"schlage", saysSo},
		"no reported capabilities": {"august", saysNothing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t, options{profile: c.profile, vendor: rigid(t, c.says)})
			others := len(b.memory())
			pins := []string{"2580", "2591", "2602"}
			if c.profile == "schlage" {
				pins = b.fitting(pins)
			}
			code, a := b.create(pins[0])
			b.succeeded(a)
			for i, pin := range pins[1:] {
				a, err := b.access.Devices.UpdateCode(
					t.Context(),
					b.p,
					device.CodeChange{ID: code.ID.String(), PIN: pin},
				)
				b.must(err)
				b.succeeded(a)
				b.onlyOnce(pin)
				if b.onLock(pins[i]) {
					t.Errorf("the old PIN is still on the lock")
				}
				if got := b.code(code.ID); got.Status != device.StatusSet || *got.PIN != pin ||
					len(got.Errors)+len(got.Mutations)+len(got.Warnings) > 0 {
					t.Errorf("status %s, errors %v, warnings %v, mutations %v", got.Status, got.Errors, got.Warnings,
						got.Mutations)
				}
			}
			if n := len(b.memory()); n != others+1 {
				t.Errorf("there are %d codes on the lock, want %d", n, others+1)
			}
			once := []string{
				"access_code.mutations_requested",
				"access_code.changed",
				"access_code.removed_from_device",
				"access_code.code_changed",
				"access_code.set_on_device",
			}
			want := append(
				[]string{"access_code.created", "access_code.mutations_requested", "access_code.set_on_device"},
				append(once, once...)...)
			if got := b.events(code.ID); !slices.Equal(sorted(got), sorted(want)) {
				t.Errorf("events %v", got)
			}
		})
	}
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

// fitting returns the PINs with an accepted length.
func (b *bed) fitting(pins []string) (out []string) {
	d, err := b.access.Devices.GetDevice(b.Context(), b.p, b.device, "")
	b.must(err)
	for _, pin := range pins {
		out = append(out, (pin + "1357")[:d.Capabilities.CodeLengths[0]])
	}
	return out
}

// A renamed code has another PIN.
func TestRecreation_ProviderPIN(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "salto_ks", vendor: rigid(t, saysSo)})
	code, a := b.create("")
	b.succeeded(a)
	before := *b.code(code.ID).PIN
	name := "Cleaner"
	a, err := b.access.Devices.UpdateCode(t.Context(), b.p, device.CodeChange{ID: code.ID.String(), Name: &name})
	b.must(err)
	b.succeeded(a)
	got := b.code(code.ID)
	if got.Status != device.StatusSet || got.PIN == nil || *got.PIN == before || *got.Name != name ||
		len(got.Errors) > 0 {
		t.Fatalf("status %s, errors %v", got.Status, got.Errors)
	}
	b.onlyOnce(*got.PIN)
	if b.onLock(before) {
		t.Error("the old PIN is still on the lock")
	}
}

func TestRecreation_SwappedPINs(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august", vendor: rigid(t, saysSo)})
	others, pins := len(b.memory()), []string{"25801", "25802", "25803"}
	codes, attempts := b.exchange(pins...)
	b.must(b.rec.SetOnline(t.Context(), b.p, b.device, true))
	for i, a := range attempts {
		b.succeeded(a)
		b.onlyOnce(pins[i])
	}
	for i, c := range codes {
		if got := b.code(c.ID); got.Status != device.StatusSet || *got.PIN != pins[(i+1)%len(pins)] ||
			len(got.Errors) > 0 {
			t.Errorf("code %d is %s with %v", i, got.Status, got.Errors)
		}
	}
	if n := len(b.memory()); n != others+len(pins) {
		t.Errorf("there are %d codes on the lock, want %d", n, others+len(pins))
	}
}

// The server dies before and after the code was removed from the lock.
func TestRecreation_SurvivesCrash(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august", vendor: rigid(t, saysSo)})
	c := b.on("2580", "k1")
	b.update(device.CodeChange{ID: c.ID.String(), PIN: "2591"})
	for range 2 { // the second time, the deletion has started
		w := b.work(c)
		if w.Action != lockstate.Delete || !w.TemporaryRemoval {
			t.Fatalf("planned action %q", w.Action)
		}
		if still, err := b.started(w); err != nil || !still {
			t.Fatal("the deletion is not wanted", err)
		}
		b.read(found("k1", "2580"))
	}
	w := b.work(c)
	b.must(b.removal(w, true, nil))
	b.read()
	w = b.work(c)
	if w.Action != lockstate.Put || !w.New || w.PIN != "2591" {
		t.Fatalf("planned action %q", w.Action)
	}
	b.begin(w)
	b.end(w, outcome{Failure: &lockstate.Failure{Class: lockstate.FailedForNow, Message: "no answer"}})
	b.read(shown{Ref: "k2", Key: c.ID.String(), PIN: "2591"}) // pending
	if w := b.work(c); w.Action != lockstate.Await {
		t.Fatalf("planned action %q for a pending code", w.Action)
	}
	b.read(shown{
		Ref:       "k2",
		Key:       c.ID.String(),
		PIN:       "2591",
		Confirmed: true,
	})
	if got := b.code(c.ID); got.Status != device.StatusSet || len(got.Errors) > 0 ||
		b.work(c).Action != lockstate.Nothing {
		t.Errorf("status %s, errors %v", got.Status, got.Errors)
	}
}

// A briefly empty list does not lose a code that waits for recreation.
func TestRecreation_EmptyListKeepsCode(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august", vendor: rigid(t, saysSo)})
	c := b.on("2580", "k1")
	b.update(device.CodeChange{ID: c.ID.String(), PIN: "2591"})
	b.read()
	if w := b.work(c); w.Action != lockstate.Delete || w.Ref != "k1" {
		t.Errorf("planned action %q of %q", w.Action, w.Ref)
	}
}

// A drifted code is repaired in the same way.
func TestRecreation_RepairsDrift(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august", vendor: rigid(t, saysSo), access: access.Options{ReadLag: 1}})
	c := b.on("2580", "k1")
	b.read(found("k1", "9999"))
	if w := b.work(c); w.Action != lockstate.Delete || w.Ref != "k1" {
		t.Errorf("planned action %q of %q", w.Action, w.Ref)
	}
	b.read(found("k1", "2580")) // repaired by another party
	if w := b.work(c); w.Action != lockstate.Nothing || b.code(c.ID).Status != device.StatusSet {
		t.Errorf("planned action %q of %q", w.Action, w.Ref)
	}
}

// A change refused because the vendor's limits were unknown succeeds once they are known.
func TestRecreation_AfterRefusedInPlaceChange(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	c := b.on("2580", "k1")
	b.update(device.CodeChange{ID: c.ID.String(), PIN: "2591"})
	w := b.work(c)
	b.begin(w)
	b.end(w, outcome{Failure: &lockstate.Failure{Class: lockstate.FailedUnsupported, Message: "not in place"}})
	if w := b.work(c); w.Action != lockstate.Nothing {
		t.Fatalf("planned action %q", w.Action)
	}
	_, err := b.db.Pool.Exec(
		t.Context(),
		`update devices set capabilities = capabilities || '{"modify_in_place": false}'`,
	)
	b.must(err)
	if w := b.work(c); w.Action != lockstate.Delete {
		t.Errorf("planned action %q", w.Action)
	}
}

// rigidByHand returns the capabilities of locks without in-place changes.
func rigidByHand(t *testing.T, profile string) (byHand, *testClock) {
	t.Helper()
	b, clock := timeBound(t, profile)
	_, err := b.db.Pool.Exec(
		t.Context(),
		`update devices set capabilities = capabilities || '{"modify_in_place": false}'`,
	)
	b.must(err)
	return b, clock
}

// A lock may wake up only every few minutes. A pending code in the vendor's queue is the desired
// one and must not be deleted.
func TestRecreation_PendingCodeIsKept(t *testing.T) {
	t.Parallel()
	b, clock := rigidByHand(t, "august")
	c, _ := b.create("2580")
	w := b.work(c)
	b.begin(w)
	b.end(w, outcome{Ref: "k1"})
	for range 10 {
		clock.pass(2 * time.Minute)
		if w := b.work(c); w.Action == lockstate.Delete || w.Action == lockstate.Put {
			t.Fatalf("planned action %q", w.Action)
		}
	}
	b.read(found("k1", "2580"))
	if got := b.code(c.ID); got.Status != device.StatusSet || len(got.Errors) > 0 {
		t.Errorf("status %s, errors %v", got.Status, got.Errors)
	}
	b.update(device.CodeChange{ID: c.ID.String(), PIN: "2591"})
	b.must(b.removal(b.work(c), true, nil))
	b.read(found("k9", "9999"))
	w = b.work(c)
	b.begin(w)
	b.end(w, outcome{Ref: "k2"})
	b.read(found("k9", "9999"), found("k2", "2580")) // not the code that was put, and it will not become it
	clock.pass(2 * time.Second)
	if w := b.work(c); w.Action != lockstate.Delete || w.Ref != "k2" {
		t.Errorf("planned action %q of %q", w.Action, w.Ref)
	}
}

// The same if the lock hides PINs: the reference of that put has no other code.
func TestRecreation_PendingHiddenCodeIsKept(t *testing.T) {
	t.Parallel()
	b, clock := rigidByHand(t, "august")
	c, _ := b.create("2580")
	w := b.work(c)
	b.begin(w)
	b.end(w, outcome{Ref: "k1"})
	for range 3 {
		clock.pass(2 * time.Minute)
		b.look()
	}
	b.read(found("k1", ""))
	if got := b.code(c.ID); got.Status != device.StatusSet || len(got.Errors) > 0 {
		t.Errorf("status %s, errors %v", got.Status, got.Errors)
	}
}

// If the device stores no time frames, a changed one is no reason to recreate the code.
func TestRecreation_NotForUnstoredTimeFrame(t *testing.T) {
	t.Parallel()
	b, clock := rigidByHand(t, "smartthings")
	c := b.between("2580", clock.now(), clock.now().Add(time.Hour))
	w := b.work(c)
	b.begin(w)
	b.end(w, outcome{Ref: "k1", Confirmed: true})
	a := b.update(device.CodeChange{ID: c.ID.String(), EndsAt: clock.now().Add(48 * time.Hour).Format(time.RFC3339)})
	if w := b.work(c); w.Action != lockstate.Nothing {
		t.Fatalf("planned action %q", w.Action)
	}
	a, err := b.access.Devices.GetAttempt(t.Context(), b.p, a.ID.String())
	b.must(err)
	if got := b.code(c.ID); a.Status != device.Succeeded || got.Status != device.StatusSet || len(got.Mutations) > 0 {
		t.Errorf("attempt %s, status %s, mutations %v", a.Status, got.Status, got.Mutations)
	}
	if countOf(b.events(c.ID), "access_code.time_frame_changed") != 1 {
		t.Errorf("events %v", b.events(c.ID))
	}
	// Two changes back to the first state, while the lock accepted the one in between.
	b.update(device.CodeChange{ID: c.ID.String(), PIN: "2591"})
	b.must(b.removal(b.work(c), true, nil))
	b.read(found("k9", "9999"))
	w = b.work(c)
	b.begin(w)
	b.update(device.CodeChange{ID: c.ID.String(), PIN: "2580"})
	b.end(w, outcome{Ref: "k2", Confirmed: true})
	if w := b.work(c); w.Action != lockstate.Delete || w.Ref != "k2" {
		t.Errorf("planned action %q of %q", w.Action, w.Ref)
	}
}

// A pulled backup code is in use by a person at the door.
func TestRecreation_PulledBackupIsKept(t *testing.T) {
	t.Parallel()
	b, clock := rigidByHand(t, "august")
	guest := b.filled(clock.now(), clock.now().Add(time.Hour))
	pulled, err := b.access.Devices.PullBackupCode(t.Context(), b.p, guest.ID.String())
	b.must(err)
	if w := b.work(pulled); w.Action != lockstate.Nothing {
		t.Fatalf("planned action %q", w.Action)
	}
	if got := b.code(pulled.ID); got.Status != device.StatusSet || len(got.Errors)+len(got.Warnings) > 0 {
		t.Errorf("status %s, errors %v, warnings %v", got.Status, got.Errors, got.Warnings)
	}
	clock.pass(time.Hour)
	if w := b.work(pulled); w.Action != lockstate.Delete {
		t.Errorf("after its end: planned action %q", w.Action)
	}
}

// A code with an unknown PIN could not be created again.
func TestRecreation_NotForUnknownPIN(t *testing.T) {
	t.Parallel()
	b, _ := rigidByHand(t, "august")
	b.read(shown{Ref: "k1", Name: "Owner", Confirmed: true})
	code := b.unmanaged()[0]
	_, err := b.access.Devices.ConvertCode(t.Context(), b.p, code.ID.String(), nil)
	b.must(err)
	b.read(shown{Ref: "k1", Name: "Owner", Confirmed: true})
	name := "Landlady"
	b.update(device.CodeChange{ID: code.ID.String(), Name: &name})
	if w := b.work(code); w.Action != lockstate.Put || w.Ref != "k1" {
		t.Errorf("planned action %q of %q", w.Action, w.Ref)
	}
}

// An operation that takes hours is not polled every few seconds.
func TestRecreation_PollsSlowWriteLessAndLess(t *testing.T) {
	t.Parallel()
	b, clock := rigidByHand(t, "august")
	c, _ := b.create("2580")
	w := b.work(c)
	b.begin(w)
	b.end(w, outcome{Ref: "k1"})
	end, looks := clock.now().Add(24*time.Hour), 0
	for ; clock.now().Before(end); looks++ {
		b.read(shown{Ref: "k1", Key: c.ID.String(), PIN: "2580"})
		due := b.look().Due
		if due == nil || due.Sub(clock.now()) > 15*time.Minute {
			t.Fatalf("next look at %v", due)
		}
		clock.to(*due)
	}
	if looks > 400 {
		t.Errorf("%d looks a day", looks)
	}
}

// A vendor that always shows another code than the one put does so again.
func TestRecreation_BacksOffIfNeverShownAsPut(t *testing.T) {
	t.Parallel()
	b, clock := rigidByHand(t, "august")
	c := b.between("2580", clock.now(), clock.now().Truncate(time.Minute).Add(48*time.Hour+30*time.Second))
	puts, on := 0, []shown{found("k9", "9999")}
	for end := clock.now().Add(6 * time.Hour); clock.now().Before(end); {
		b.read(on...)
		w := b.work(c)
		switch w.Action {
		case lockstate.Put:
			b.begin(w)
			b.end(w, outcome{Ref: "k1"})
			rounded := found("k1", "2580")
			rounded.StartsAt, rounded.EndsAt = w.StartsAt, new(w.EndsAt.Truncate(time.Minute))
			puts, on = puts+1, append(on[:1], rounded)
		case lockstate.Delete:
			b.taken(w)
			on = on[:1]
		default:
			due := b.look().Due
			if due == nil {
				t.Fatal("the code was given up")
			}
			clock.to(*due)
		}
		clock.pass(time.Second)
	}
	if puts < 5 || puts > 45 {
		t.Errorf("%d puts in six hours", puts)
	}
	if got := b.code(c.ID); len(got.Errors) != 1 || got.Errors[0].Code != "failed_to_set_on_device" {
		t.Errorf("errors %v", got.Errors)
	}
	if n := countOf(b.events(c.ID), "access_code.failed_to_set_on_device"); n != 1 {
		t.Errorf("%d events", n)
	}
}

// A vendor with idempotent creates answers a repeated create with the first code. If it hides PINs,
// the answer does not show which PIN the code has.
func TestRepeatedCreate_OtherPINHidden(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		more  string // additional capabilities
		doubt func(b byHand, c device.Code) outcome
		shown bool
	}{
		"confirmed": {`{}`, func(b byHand, c device.Code) outcome {
			return outcome{Ref: "r1", Confirmed: true}
		}, false},
		"accepted": {`{}`, func(b byHand, c device.Code) outcome { return outcome{Ref: "r1"} }, true},
		"confirmed and listed late, no in-place changes": {`{"modify_in_place": false}`, func(b byHand, c device.Code) outcome {
			return outcome{Ref: "r1", Confirmed: true}
		}, false},
		"accepted, no in-place changes": {`{"modify_in_place": false}`, func(b byHand, c device.Code) outcome { return outcome{Ref: "r1"} }, true},
		"second answer lost, too": {`{}`, func(b byHand, c device.Code) outcome {
			b.begin(b.work(c))
			b.read(found("k9", ""))
			return outcome{Ref: "r1", Confirmed: true}
		}, false},
		"without a code list": {`{"list_codes": false}`, func(b byHand, c device.Code) outcome { return outcome{Ref: "r1", Confirmed: true} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, clock := timeBound(t, "august")
			_, err := b.db.Pool.Exec(t.Context(),
				`update devices set capabilities = capabilities || '{"pin_visible": false}' || $1::jsonb`, c.more)
			b.must(err)
			code, _ := b.create("2580")
			b.begin(b.work(code)) // the answer is lost
			b.read(found("k9", ""))
			b.update(device.CodeChange{ID: code.ID.String(), PIN: "1357"})
			o := c.doubt(b, code)
			w := b.work(code)
			if w.Action != lockstate.Put || !w.New {
				t.Fatalf("planned action %q", w.Action)
			}
			b.begin(w)
			b.end(w, o)
			masked := shown{Ref: "r1", Key: code.ID.String(), Confirmed: true}
			if c.more != `{"list_codes": false}` {
				for _, list := range [][]shown{{found("k9", "")}, {found("k9", ""), masked}}[:1+map[bool]int{true: 1}[c.shown]] {
					clock.pass(time.Second)
					b.read(list...)
				}
			}
			if got := b.code(code.ID); got.Status != device.StatusSetting {
				t.Errorf("status %s", got.Status)
			}
			w = b.work(code)
			if want := map[bool]lockstate.Action{true: lockstate.Delete, false: lockstate.Put}[c.more == `{"modify_in_place": false}`]; w.Action != want ||
				w.Ref != "r1" {
				t.Fatalf("planned action %q of %q, want %q", w.Action, w.Ref, want)
			}
			if w.Action == lockstate.Delete {
				b.taken(w)
				clock.pass(30 * time.Second) // a stale list still shows the old code
				b.read(found("k9", ""))
				w = b.work(code)
			}
			b.begin(w)
			b.end(w, outcome{Ref: "r2", Confirmed: true})
			if got := b.code(code.ID); w.PIN != "1357" || got.Status != device.StatusSet {
				t.Errorf("after the second put: status %s", got.Status)
			}
		})
	}
}

// If the second answer is lost as well, the listed code may be either of the two.
func TestRepeatedCreate_TwoLostAnswersHiddenPIN(t *testing.T) {
	t.Parallel()
	for more, want := range map[string]lockstate.Action{`{}`: lockstate.Put, `{"modify_in_place": false}`: lockstate.Delete} {
		t.Run(string(want), func(t *testing.T) {
			t.Parallel()
			b := hand(t, options{profile: "august"})
			_, err := b.db.Pool.Exec(t.Context(),
				`update devices set capabilities = capabilities || '{"pin_visible": false}' || $1::jsonb`, more)
			b.must(err)
			code, _ := b.create("2580")
			b.begin(b.work(code))
			b.update(device.CodeChange{ID: code.ID.String(), PIN: "1357"})
			b.begin(b.work(code))
			for _, confirmed := range []bool{false, true, true} {
				b.read(shown{Ref: "r1", Key: code.ID.String(), Confirmed: confirmed})
			}
			if got, w := b.code(code.ID), b.work(code); got.Status != device.StatusSetting || w.Action != want ||
				w.Ref != "r1" {
				t.Errorf("status %s, planned action %q of %q", got.Status, w.Action, w.Ref)
			}
		})
	}
}

// Repeating a create with the same PIN yields the same code.
func TestRepeatedCreate_SamePIN(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	_, err := b.db.Pool.Exec(t.Context(), `update devices set capabilities = capabilities || '{"pin_visible": false}'`)
	b.must(err)
	code, _ := b.create("2580")
	b.begin(b.work(code))
	b.read(found("k9", ""))
	b.update(device.CodeChange{ID: code.ID.String(), Name: new("Friend")})
	w := b.work(code)
	b.begin(w)
	b.end(w, outcome{Ref: "r1", Confirmed: true})
	if got := b.code(code.ID); got.Status != device.StatusSet {
		t.Errorf("status %s", got.Status)
	}
}

// The same against a simulated vendor with a lagging list.
func TestRepeatedCreate_PINChangedMeanwhile(t *testing.T) {
	t.Parallel()
	var b *bed
	var posts atomic.Int32
	sent, changed := make(chan struct{}), make(chan struct{})
	b = start(t, options{profile: "smartthings", vendor: func(w http.ResponseWriter, r *http.Request) bool {
		const passed = "X-Passed"
		ofCodes := strings.HasPrefix(r.URL.Path, "/locks/") && strings.HasSuffix(r.URL.Path, "/access_codes")
		switch {
		case !ofCodes || r.Header.Get(passed) != "":
		case r.Method == http.MethodGet && posts.Load() == 1: // the list lags
			_, _ = io.WriteString(w, `{"access_codes":[]}`)
			return true
		case r.Method == http.MethodPost && posts.Add(1) == 1:
			req := r.Clone(r.Context())
			req.RequestURI, req.URL.Scheme, req.URL.Host = "", "http", r.Host
			req.Header.Set(passed, "true")
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Error(err)
			} else {
				_ = res.Body.Close()
			}
			close(sent)
			b.gate(changed)
			panic(http.ErrAbortHandler) // the answer is lost
		}
		return false
	}})
	code, _ := b.create("2580")
	b.gate(sent)
	_, err := b.access.Devices.UpdateCode(t.Context(), b.p, device.CodeChange{ID: code.ID.String(), PIN: "1357"})
	b.must(err)
	close(changed)
	b.until("it is set", func() bool { return b.code(code.ID).Status == device.StatusSet })
	if !b.opens("1357") || b.opens("2580") {
		t.Error("the code is set with a PIN that does not open")
	}
}
