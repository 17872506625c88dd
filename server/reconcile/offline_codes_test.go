package reconcile_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
)

// The vendor issues one code per request, however often its response is lost.
func TestOfflineCode_LostResponse(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	b := start(t, options{profile: "igloohome", vendor: func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/offline_codes") {
			asked.Add(1)
		}
		return false
	}})
	b.control(http.MethodPut, "faults", map[string]any{"failure_rate": map[string]any{"unconfirmed": 1}})
	c, a, err := b.access.Devices.CreateCode(t.Context(), b.p, device.NewCode{
		DeviceID: b.device,
		Offline:  true,
		StartsAt: time.Now().Format(time.RFC3339),
		EndsAt:   time.Now().Add(5 * time.Hour).Format(time.RFC3339),
	})
	b.must(err)
	b.until("a response is lost and the request repeated", func() bool { return asked.Load() >= 2 })
	b.control(http.MethodPut, "faults", map[string]any{})
	b.succeeded(a)
	var memory struct {
		Offline []struct {
			Code string `json:"code"`
		} `json:"offline_codes"`
	}
	b.must(json.Unmarshal(b.control(http.MethodGet, "memory", nil), &memory))
	if len(memory.Offline) != 1 || memory.Offline[0].Code != *b.code(c.ID).PIN {
		t.Errorf("the vendor issued %d codes", len(memory.Offline))
	}
}

// A lock accepts a code that was issued for it, even if it left its account meanwhile.
func TestOfflineCode_OfReturnedDeviceCannotBeDeleted(t *testing.T) {
	t.Parallel()
	var failing atomic.Bool
	b := start(t, options{profile: "igloohome", vendor: func(w http.ResponseWriter, r *http.Request) bool {
		if !failing.Load() || r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/offline_codes") {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}})
	c, a, err := b.access.Devices.CreateCode(t.Context(), b.p, device.NewCode{
		DeviceID: b.device,
		Offline:  true,
		StartsAt: time.Now().Format(time.RFC3339),
		EndsAt:   time.Now().Add(5 * time.Hour).Format(time.RFC3339),
	})
	b.must(err)
	b.succeeded(a)
	failing.Store(true)
	b.must(b.access.Devices.RecordRemoved(t.Context(), holder{}, uuid.MustParse(b.device), false))
	b.until("the codes are handled", func() bool { return b.code(c.ID).Status == device.StatusUnknown })
	b.must(b.access.Accounts.Hint(t.Context(), b.account, ""))
	b.until("the device is back",
		func() bool { _, err := b.access.Devices.GetDevice(t.Context(), b.p, b.device, ""); return err == nil })
	if _, err := b.access.Devices.DeleteCode(t.Context(), b.p, c.ID.String(), ""); err == nil {
		t.Error("a code that opens is deleted")
	}
	if !b.opens(*b.code(c.ID).PIN) {
		t.Error("the code does not open")
	}
}

// offlineCode requests a code for the next five hours.
func (b byHand) offlineCode() device.Code {
	b.Helper()
	c, _, err := b.access.Devices.CreateCode(b.Context(), b.p, device.NewCode{
		DeviceID: b.device,
		Offline:  true,
		StartsAt: time.Now().Format(time.RFC3339),
		EndsAt:   time.Now().Add(5 * time.Hour).Format(time.RFC3339),
	})
	b.must(err)
	return c
}

// issued sets what the vendor returns for an offline code.
func (b byHand) issued(c device.Code, ref, pin string) {
	b.Helper()
	for _, w := range b.look().Issues {
		if w.Code == c.ID {
			b.end(b.toWork(w), outcome{Ref: ref, PIN: pin})
			return
		}
	}
	b.Fatal("the code is not due")
}

// A vendor may list its offline codes. One whose response was lost counts as unmanaged until the
// response arrives.
func TestOfflineCode_ListedBeforeResponse(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "igloohome")
	c := b.offlineCode()
	b.read(found("k1", "123456"), found("k2", "2580"))
	b.issued(c, "k1", "123456")
	others := func() int { return len(b.unmanaged()) }
	if got := b.code(c.ID); got.Status != device.StatusSet && got.Status != device.StatusUnset || len(got.Errors) > 0 ||
		others() != 1 {
		t.Fatalf("status %s, errors %v, %d unmanaged codes", got.Status, got.Errors, others())
	}
	clock.pass(time.Minute)
	listed := found("k1", "123456")
	listed.Name = "as the vendor calls it"
	b.read(listed, found("k2", "2580"))
	if got := b.code(c.ID); len(got.Errors)+len(got.Warnings) > 0 || len(b.look().Issues) > 0 || others() != 1 {
		t.Errorf("listed: errors %v, warnings %v, %d codes due", got.Errors, got.Warnings, len(b.look().Issues))
	}
}

// A vendor that derives codes from their hours returns the same code for two requests. Only the
// second one fails.
func TestOfflineCode_DuplicateFailsAlone(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "igloohome"})
	first, second := b.offlineCode(), b.offlineCode()
	online := b.on("2580", "k9")
	stranger := b.offlineCode()
	b.read(found("k9", "2580"), found("k7", "7777"))
	b.issued(first, "k1", "123456")
	b.issued(second, "k1", "123456")
	b.issued(stranger, "k7", "654321") // the listed one has another PIN
	for _, c := range []device.Code{second, stranger} {
		got := b.code(c.ID)
		if len(got.Errors) != 1 || got.Errors[0].Code != "failed_to_issue" ||
			!strings.Contains(got.Errors[0].Message, "another code") {
			t.Errorf("status %s, errors %v", got.Status, got.Errors)
		}
	}
	for _, c := range []device.Code{first, online} {
		if got := b.code(c.ID); len(got.Errors) > 0 {
			t.Errorf("other codes: %v", got.Errors)
		}
	}
	if w := b.look(); len(w.Issues) > 0 || len(b.unmanaged()) != 1 {
		t.Errorf("%d codes due, %d unmanaged codes", len(w.Issues), len(b.unmanaged()))
	}
}
