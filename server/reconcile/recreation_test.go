package reconcile_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
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
