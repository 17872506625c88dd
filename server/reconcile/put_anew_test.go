package reconcile_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
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
				a, err := b.access.UpdateCode(t.Context(), b.p, access.CodeChange{ID: code.ID.String(), PIN: pin})
				b.must(err)
				b.succeeded(a)
				b.onlyOnce(pin)
				if b.onLock(pins[i]) {
					t.Errorf("the old PIN is still on the lock")
				}
				if got := b.code(code.ID); got.Status != access.StatusSet || *got.PIN != pin ||
					len(got.Errors)+len(got.Mutations)+len(got.Warnings) > 0 {
					t.Errorf("status %s, errors %v, warnings %v, mutations %v", got.Status, got.Errors, got.Warnings, got.Mutations)
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
	d, err := b.access.GetDevice(b.Context(), b.p, b.device, "")
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
	a, err := b.access.UpdateCode(t.Context(), b.p, access.CodeChange{ID: code.ID.String(), Name: &name})
	b.must(err)
	b.succeeded(a)
	got := b.code(code.ID)
	if got.Status != access.StatusSet || got.PIN == nil || *got.PIN == before || *got.Name != name ||
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
		if got := b.code(c.ID); got.Status != access.StatusSet || *got.PIN != pins[(i+1)%len(pins)] ||
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
	b.update(access.CodeChange{ID: c.ID.String(), PIN: "2591"})
	for range 2 { // the second time, the deletion has started
		w := b.work(c)
		if w.Action != access.Delete || !w.Aside {
			t.Fatalf("planned action %q", w.Action)
		}
		if still, err := b.access.RecordDeleteStarted(t.Context(), holder{}, b.id(), w); err != nil || !still {
			t.Fatal("the deletion is not wanted", err)
		}
		b.read(found("k1", "2580"))
	}
	w := b.work(c)
	b.must(b.access.RecordDelete(t.Context(), holder{}, b.id(), w, true, nil))
	b.read()
	w = b.work(c)
	if w.Action != access.Put || !w.New || w.PIN != "2591" {
		t.Fatalf("planned action %q", w.Action)
	}
	b.begin(w)
	b.end(w, access.PutOutcome{Failure: &access.Failure{Class: access.FailedForNow, Message: "no answer"}})
	b.read(access.Found{Ref: "k2", Key: c.ID.String(), PIN: "2591"}) // pending
	if w := b.work(c); w.Action != access.Await {
		t.Fatalf("planned action %q for a pending code", w.Action)
	}
	b.read(access.Found{
		Ref:       "k2",
		Key:       c.ID.String(),
		PIN:       "2591",
		Confirmed: true,
	})
	if got := b.code(c.ID); got.Status != access.StatusSet || len(got.Errors) > 0 ||
		b.work(c).Action != access.Nothing {
		t.Errorf("status %s, errors %v", got.Status, got.Errors)
	}
}

// A briefly empty list does not lose a code that waits for recreation.
func TestRecreation_EmptyListKeepsCode(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august", vendor: rigid(t, saysSo)})
	c := b.on("2580", "k1")
	b.update(access.CodeChange{ID: c.ID.String(), PIN: "2591"})
	b.read()
	if w := b.work(c); w.Action != access.Delete || w.Ref != "k1" {
		t.Errorf("planned action %q of %q", w.Action, w.Ref)
	}
}

// A drifted code is repaired in the same way.
func TestRecreation_RepairsDrift(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august", vendor: rigid(t, saysSo), access: access.Options{ListLag: 1}})
	c := b.on("2580", "k1")
	b.read(found("k1", "9999"))
	if w := b.work(c); w.Action != access.Delete || w.Ref != "k1" {
		t.Errorf("planned action %q of %q", w.Action, w.Ref)
	}
	b.read(found("k1", "2580")) // repaired by another party
	if w := b.work(c); w.Action != access.Nothing || b.code(c.ID).Status != access.StatusSet {
		t.Errorf("planned action %q of %q", w.Action, w.Ref)
	}
}

// A change refused because the vendor's limits were unknown succeeds once they are known.
func TestRecreation_AfterRefusedInPlaceChange(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	c := b.on("2580", "k1")
	b.update(access.CodeChange{ID: c.ID.String(), PIN: "2591"})
	w := b.work(c)
	b.begin(w)
	b.end(w, access.PutOutcome{Failure: &access.Failure{Class: access.FailedUnsupported, Message: "not in place"}})
	if w := b.work(c); w.Action != access.Nothing {
		t.Fatalf("planned action %q", w.Action)
	}
	_, err := b.db.Pool.Exec(t.Context(), `update devices set capabilities = capabilities || '{"put_anew": true}'`)
	b.must(err)
	if w := b.work(c); w.Action != access.Delete {
		t.Errorf("planned action %q", w.Action)
	}
}
