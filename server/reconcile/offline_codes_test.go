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
