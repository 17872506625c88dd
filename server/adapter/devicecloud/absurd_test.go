package devicecloud_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
)

// Given a broken or malicious vendor, the adapter rejects a response or returns plausible locks and codes.
func TestAbsurdResponses(t *testing.T) {
	t.Parallel()
	const (
		lock = `{"lock_id":"l1","device_id":"l1","name":"Door","manufacturer":"Yale","model":"YRD","serial_number":"7","online":true,"lock_state":"locked","battery_level":77,"hub_online":true,"subscription_active":true,
			"auto_lock":{"enabled":true,"delay_seconds":30},"capabilities":{"provider":"yale","device_type":"yale_lock","remote_lock":true,"online_codes":true,"list_codes":true,"pin_visible":true,"convert":"adopt",
			"code_lengths":[4,6],"max_codes":100,"constraints":[{"constraint_type":"no_zeros","min_length":1,"max_length":2}],"auto_lock":true,"confirm":"sync","min_write_gap_ms":5}}`
		codes = `{"access_codes":[{"access_code_id":"c1","name":"Guest","code":"864209","status":"active","starts_at":"2026-01-01T00:00:00Z","ends_at":"2026-01-02T00:00:00Z","created_at":"2026-01-01T00:00:00Z"}]}`
	)
	for name, answer := range map[string]string{
		"/locks": `{"locks":[` + lock + `]}`, "/locks/l1": lock,
		"/access_codes": codes,
	} {
		t.Run(strings.TrimPrefix(name, "/"), func(t *testing.T) {
			t.Parallel()
			text := ""
			a, _ := vendor(t, guide(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.HasSuffix(r.URL.Path, name):
					says(http.StatusOK, text)(w, r)
				case strings.HasSuffix(r.URL.Path, "/access_codes"):
					says(http.StatusOK, codes)(w, r)
				case strings.HasSuffix(r.URL.Path, "/locks"):
					says(http.StatusOK, `{"locks":[`+lock+`]}`)(w, r)
				default:
					says(http.StatusOK, lock)(w, r)
				}
			}))
			n, taken := 0, 0
			look := func(twist string) {
				devices, err := a.Devices(t.Context())
				one, failed := a.Device(t.Context(), "l1")
				if failed == nil {
					devices = append(devices, one)
				}
				for _, d := range devices {
					if problem := unlike(d); problem != "" {
						t.Errorf("%s: %s", twist, problem)
					}
				}
				codes, unread := a.Codes(t.Context(), "l1", true)
				for _, c := range codes.Codes {
					if c.Ref == "" || len(c.PIN) > 32 {
						t.Errorf("%s: a code is %+v", twist, c)
					}
				}
				if err == nil && failed == nil && unread == nil {
					taken++
				}
			}
			for twist, twisted := range adaptertest.Twists(t, answer) {
				text = twisted
				look(twist)
				n++
			}
			text, taken = answer, 0
			if look("nothing"); n < 100 || taken != 1 {
				t.Errorf("after %d absurd responses, a good response is accepted: %v", n, taken == 1)
			}
		})
	}
}

// unlike returns what is implausible about a lock.
func unlike(d adapter.Device) string {
	lengths := d.Capabilities.CodeLengths
	switch {
	case d.Ref == "" || d.Type == "" || d.Provider == "":
		return fmt.Sprintf("a lock is %+v", d)
	case d.BatteryLevel != nil && !(*d.BatteryLevel >= 0 && *d.BatteryLevel <= 1):
		return fmt.Sprint("the battery level is ", *d.BatteryLevel)
	case d.KeypadBattery != nil && !(*d.KeypadBattery >= 0 && *d.KeypadBattery <= 1):
		return fmt.Sprint("the battery level of the keypad is ", *d.KeypadBattery)
	case d.Capabilities.MaxCodes < 0 || d.Capabilities.MinWriteGap < 0 || d.AutoLock != nil && d.AutoLock.Delay < 0:
		return fmt.Sprintf("numbers are negative: %+v", d.Capabilities)
	case len(lengths) == 0 || !slices.IsSorted(lengths) || lengths[0] < 1 || lengths[len(lengths)-1] > 32:
		return fmt.Sprint("PINs have lengths of ", lengths)
	}
	return ""
}
