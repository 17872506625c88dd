package devicecloud_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/devicecloud"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

const (
	pin   = "482135"
	token = "a-very-secret-token"
)

// vendor returns an adapter for a vendor that uses the handler, and the log of the adapter.
func vendor(t *testing.T, answer http.HandlerFunc) (*devicecloud.Adapter, *bytes.Buffer) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	logged := &bytes.Buffer{}
	a := devicecloud.New(devicecloud.Config{
		BaseURL:  server.URL + "/",
		Token:    token,
		Provider: "acme",
		PushURL:  "https://here.example/push",
		Log:      slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	t.Cleanup(func() { _ = a.Close() })
	return a, logged
}

// guide is a vendor that implements only the guide: one lock, and answer for all other requests.
func guide(answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.Path == "/locks/l1" {
			_, _ = io.WriteString(
				w,
				`{"lock_id":"l1","name":"Office","model":"example_model","address":"123 Amy Lane"}`,
			)
			return
		}
		answer(w, r)
	}
}

func says(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	const html = "<html>no</html>"
	for _, c := range []struct {
		name        string
		status      int
		body        string
		read, write adapter.Class
	}{
		{"no token", 401, `{"error_code":"UNAUTHORIZED","message":"m"}`, adapter.AuthRevoked, adapter.AuthRevoked},
		{"no token, in the vendor's own words", 401, html, adapter.AuthRevoked, adapter.AuthRevoked},
		{"forbidden", 403, `{"message":"m"}`, adapter.NotSupported, adapter.NotSupported},
		{"a firewall's page", 403, html, adapter.Transient, adapter.Transient},
		{"gone", 404, `{"error_code":"LOCK_NOT_FOUND","message":"m"}`, adapter.NotFound, adapter.NotFound},
		{"gone, without a code", 404, `{}`, adapter.NotFound, adapter.NotFound},
		{"gone, without a body", 410, ``, adapter.NotFound, adapter.NotFound},
		{"a proxy's page", 404, html, adapter.Transient, adapter.Transient},
		{"no such method", 405, ``, adapter.NotSupported, adapter.NotSupported},
		{"not there yet", 501, `{}`, adapter.NotSupported, adapter.NotSupported},
		{"offline", 409, `{"error_code":"DEVICE_OFFLINE","message":"m"}`, adapter.Offline, adapter.Offline},
		{"offline with another status", 503, `{"error_code":"DEVICE_OFFLINE"}`, adapter.Offline, adapter.Offline},
		{"conflict", 409, `{"error_code":"PIN_CONFLICT"}`, adapter.Duplicate, adapter.Duplicate},
		{"unknown conflict", 409, `{"error_code":"OTHER"}`, adapter.Transient, adapter.Transient},
		{"full", 409, `{"error_code":"DEVICE_FULL"}`, adapter.Full, adapter.Full},
		{"invalid", 422, `{"error_code":"INVALID_PIN"}`, adapter.Transient, adapter.Invalid},
		{"invalid, without a code", 400, `{}`, adapter.Transient, adapter.Invalid},
		{"a request that a proxy does not take", 400, html, adapter.Transient, adapter.Transient},
		{"jammed", 409, `{"error_code":"LOCK_JAMMED"}`, adapter.Transient, adapter.Transient},
		{"busy", 423, `{"error_code":"DEVICE_BUSY"}`, adapter.Transient, adapter.Transient},
		{"too many", 429, ``, adapter.Transient, adapter.Transient},
		{"broken", 500, html, adapter.Transient, adapter.Transient},
		{"down", 503, html, adapter.Transient, adapter.Transient},
		{"lost behind a proxy", 502, html, adapter.Transient, adapter.Unconfirmed},
		{"late behind a proxy", 504, html, adapter.Transient, adapter.Unconfirmed},
		{"late", 408, ``, adapter.Transient, adapter.Unconfirmed},
		{"moved", 302, ``, adapter.Transient, adapter.Transient},
		{"not JSON", 200, html, adapter.Transient, adapter.Unconfirmed},
		{"something else", 200, `{"ok":true}`, adapter.Transient, adapter.Unconfirmed},
		{"too large", 200, `"` + strings.Repeat("x", 9<<20) + `"`, adapter.Transient, adapter.Unconfirmed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, _ := vendor(t, guide(says(c.status, c.body, "Location", "/elsewhere")))
			_, err := a.Codes(t.Context(), "l1", true)
			classIs(t, "Codes", err, c.read)
			_, err = a.PutCode(t.Context(), "l1", adapter.CodeSpec{PIN: pin})
			classIs(t, "PutCode", err, c.write)
		})
	}
}

func classIs(t *testing.T, what string, err error, want adapter.Class) {
	t.Helper()
	if _, ok := errors.AsType[*adapter.Error](err); !ok || adapter.ClassOf(err) != want {
		t.Errorf("%s: %v, want class %s", what, err, want)
	}
}

// After an upgrade the connection belongs to its caller, and neither a timeout nor a context ends its reading.
func TestUpgradedResponseIsNotRead(t *testing.T) {
	t.Parallel()
	a, _ := vendor(t, guide(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { _ = c.Close() })
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: chess\r\n\r\n")
	}))
	for what, c := range map[string]struct {
		call func() error
		want adapter.Class
	}{
		"Codes": {func() error { _, err := a.Codes(t.Context(), "l1", true); return err }, adapter.Transient},
		"PutCode": {
			func() error { _, err := a.PutCode(t.Context(), "l1", adapter.CodeSpec{PIN: pin}); return err },
			adapter.Unconfirmed,
		},
	} {
		answer := make(chan error, 1)
		go func() { answer <- c.call() }()
		select {
		case err := <-answer:
			classIs(t, what, err, c.want)
		case <-time.After(testenv.Timeout(testenv.WaitTimeout)):
			t.Errorf("%s is still waiting", what)
		}
	}
}

func TestAnAccountIsRevokedOnlyByTheVendor(t *testing.T) {
	t.Parallel()
	for want, answer := range map[adapter.Class]http.HandlerFunc{
		adapter.AuthRevoked: says(403, `{"message":"no"}`),
		adapter.Transient:   says(404, `{"message":"no"}`),
	} {
		a, _ := vendor(t, answer)
		_, err := a.Devices(t.Context())
		classIs(t, "Devices", err, want)
	}
}

func TestRetryAfterIsRead(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC()
	for _, c := range []struct {
		name, header, date, body string
		want                     time.Duration
	}{
		{"none", "", "", ``, 0},
		{"seconds", "7", "", ``, 7 * time.Second},
		{"date", now.Add(20 * time.Second).Format(http.TimeFormat), now.Format(http.TimeFormat), ``, 20 * time.Second},
		{
			"date of a vendor whose clock is an hour off", now.Add(time.Hour + 20*time.Second).Format(http.TimeFormat),
			now.Add(time.Hour).Format(http.TimeFormat), ``, 20 * time.Second,
		},
		{"past date", now.Add(-time.Hour).Format(http.TimeFormat), now.Format(http.TimeFormat), ``, 0},
		{"body is more exact", "1", "", `{"retry_after_ms":15}`, 15 * time.Millisecond},
		{"negative", "-5", "", ``, 0},
		{"for ever", "99999999999", "", ``, time.Hour},
		{"nonsense", "soon", "", ``, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, _ := vendor(t, says(429, c.body, "Retry-After", c.header, "Date", c.date))
			_, err := a.Devices(t.Context())
			e, ok := errors.AsType[*adapter.Error](err)
			if !ok || e.RetryAfter != c.want {
				t.Errorf("%v, retry after %v, want %v", err, e.RetryAfter, c.want)
			}
		})
	}
}

func TestErrorsAndLogsContainNoSecret(t *testing.T) {
	t.Parallel()
	message := "PIN " + pin + " for " + token + " is in use, as is 9753\nsecond line" + strings.Repeat("!", 500)
	for name, answer := range map[string]http.HandlerFunc{
		"refused": says(409, `{"error_code":"PIN_CONFLICT","message":"`+strings.ReplaceAll(message, "\n", `\n`)+`"}`),
		"failed":  says(201, `{"access_code_id":"c1","status":"failed","error_code":"PIN_CONFLICT","message":"PIN `+pin+` is in use, as is 9753"}`),
		"garbled": says(200, `{"access_code_id":"`+pin+token+`"`),
		"cut":     func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"long": says(409, `{"error_code":"PIN_CONFLICT","message":"`+strings.Repeat("1",
			4<<10-len("a-very"))+token+`"}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, logged := vendor(t, guide(answer))
			_, err := a.PutCode(t.Context(), "l1", adapter.CodeSpec{PIN: pin})
			if err == nil {
				t.Fatal("no error")
			}
			for _, secret := range []string{pin, token, "a-very", "9753", "\n"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error contains %q: %q", secret, err)
				}
				if secret != "\n" && strings.Contains(logged.String(), secret) {
					t.Errorf("the log contains %q: %s", secret, logged)
				}
			}
			if len(err.Error()) > 300 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestVendorOfTheGuideAlone(t *testing.T) {
	t.Parallel()
	var bodies []string
	a, _ := vendor(t, guide(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, r.Method+" "+r.URL.Path+" "+string(body))
		switch r.Method + " " + r.URL.Path {
		case "GET /locks":
			_, _ = io.WriteString(w, `{"locks":[
				{"lock_id":"l1","name":"Office","model":"example_model"},
				{"device_id":"l2","device_type":"smart_lock","device_model":"X200","online":false,"battery_level":72,"lock_state":"locked",
					"door_state":"open","keypad_battery_level":40,"capabilities":{"built_in_keypad":false,"accessory_keypad":true,"direct_power":true}},
				{"device_id":"b1","device_type":"bridge"}]}`)
		case "POST /locks/l1/access_codes":
			_, _ = io.WriteString(w, `{"access_code_id":"ac_1","status":"pending"}`)
		case "GET /locks/l1/access_codes":
			_, _ = io.WriteString(
				w,
				`{"access_codes":[{"access_code_id":"ac_1","lock_id":"l1","code":"4829","starts_at":null,"ends_at":null,"status":"active"}]}`,
			)
		case "DELETE /access_codes/ac_1":
			_, _ = io.WriteString(w, `{"access_code_id":"ac_1","status":"pending"}`)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	devices, err := a.Devices(t.Context())
	if err != nil || len(devices) != 2 {
		t.Fatalf("%v, %v", devices, err)
	}
	want := capability.Set{
		Lock:            true,
		Unlock:          true,
		OnlineCodes:     true,
		ListCodes:       true,
		DeleteUnmanaged: true,
		PINVisible:      true,
		Convert:         capability.ConvertAdopt,
		CodeLengths:     []int{4, 5, 6, 7, 8},
		Confirm:         capability.ConfirmReadBack,
	}
	first, second := devices[0], devices[1]
	if !reflect.DeepEqual(first.Capabilities, want) {
		t.Errorf("capabilities %+v", first.Capabilities)
	}
	if first.Provider != "acme" || first.Type != "acme_lock" || !first.Online || first.Locked != nil ||
		first.BatteryLevel != nil {
		t.Errorf("the first is %+v", first)
	}
	if second.Ref != "l2" || second.Online || !*second.Locked || *second.BatteryLevel != 0.72 ||
		second.Model != "X200" || !*second.DoorOpen || *second.KeypadBattery != 0.4 {
		t.Errorf("the second is %+v", second)
	}
	if c := second.Capabilities; *c.BuiltInKeypad || !*c.AccessoryKeypad || !*c.DirectPower || c.EntryEvents != nil {
		t.Errorf("capabilities of the second: %+v", c)
	}
	result, err := a.PutCode(t.Context(), "l1", adapter.CodeSpec{Key: "k1", Name: "Jane", PIN: "4829"})
	if err != nil || result != (adapter.PutResult{Ref: "ac_1", State: adapter.Accepted}) {
		t.Errorf("PutCode: %+v, %v", result, err)
	}
	codes, err := a.Codes(t.Context(), "l1", false)
	if err != nil || len(codes.Codes) != 1 || codes.Codes[0].PIN != "4829" ||
		codes.Codes[0].State != adapter.Confirmed {
		t.Errorf("Codes: %+v, %v", codes, err)
	}
	if state, err := a.DeleteCode(t.Context(), "l1", "ac_1"); err != nil || state != adapter.Accepted {
		t.Errorf("DeleteCode: %q, %v", state, err)
	}
	if state, err := a.DeleteCode(t.Context(), "l1", "ac_2"); err != nil || state != adapter.Confirmed {
		t.Errorf("DeleteCode without a status: %q, %v", state, err)
	}
	if want := `POST /locks/l1/access_codes {"name":"Jane","code":"4829","custom_id":"k1"}`; bodies[1] != want {
		t.Errorf("sent %s, want %s", bodies[1], want)
	}
	for what, put := range map[string]adapter.CodeSpec{
		"a change in place": {Ref: "ac_1", PIN: "4829"},
		"a time frame":      {PIN: "4829", StartsAt: new(time.Time), EndsAt: new(time.Time)},
	} {
		_, err := a.PutCode(t.Context(), "l1", put)
		classIs(t, what, err, adapter.NotSupported)
	}
	err = a.SetOnline(t.Context(), "l1", true)
	if err != nil {
		t.Errorf("a vendor that responds 2xx to a control: %v", err)
	}
}

func TestACodeThatCannotBeSentIsNotSent(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, c := range []struct {
		name, caps string
		spec       adapter.CodeSpec
		want       adapter.Class
	}{
		{"no PIN", `{}`, adapter.CodeSpec{}, adapter.Invalid},
		{"a PIN that the vendor chooses", `{"provider_pin":true}`, adapter.CodeSpec{PIN: pin}, adapter.Invalid},
		{"a long key", `{}`, adapter.CodeSpec{PIN: pin, Key: strings.Repeat("k", 65)}, adapter.Invalid},
		{"half a time frame", `{"native_schedule":true}`, adapter.CodeSpec{PIN: pin, StartsAt: &now}, adapter.Invalid},
		{
			"a time frame", `{"native_schedule":false}`,
			adapter.CodeSpec{PIN: pin, StartsAt: &now, EndsAt: &now},
			adapter.NotSupported,
		},
		{"a change", `{"modify_codes":false}`, adapter.CodeSpec{PIN: pin, Ref: "c1"}, adapter.NotSupported},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, _ := vendor(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet {
					t.Errorf("%s %s was sent", r.Method, r.URL.Path)
				}
				_, _ = io.WriteString(w, `{"lock_id":"l1","capabilities":`+c.caps+`}`)
			})
			_, err := a.PutCode(t.Context(), "l1", c.spec)
			classIs(t, "PutCode", err, c.want)
		})
	}
}

func TestARealVendorHasNoControls(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"no path": says(404, "404 page not found"), "no path, in JSON": says(404, `{"detail":"Not Found"}`),
		"no method": says(405, ""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, _ := vendor(t, answer)
			classIs(t, "SetOnline", a.SetOnline(t.Context(), "l1", false), adapter.NotSupported)
			classIs(t, "RemoveDevice", a.RemoveDevice(t.Context(), "l1"), adapter.NotSupported)
			_, err := a.AddCode(t.Context(), "l1", "Guest", pin, "")
			classIs(t, "AddCode", err, adapter.NotSupported)
		})
	}
}

func TestListsWithoutIdentifiersAreRejected(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{}`, `{"locks":[{"name":"Office"}]}`, `[]`} {
		a, _ := vendor(t, says(200, body))
		_, err := a.Devices(t.Context())
		classIs(t, body, err, adapter.Transient)
	}
	a, _ := vendor(t, guide(says(200, `{"access_codes":[{"name":"Guest"}]}`)))
	_, err := a.Codes(t.Context(), "l1", false)
	classIs(t, "Codes", err, adapter.Transient)
}

func TestResponseAboutAnotherLockIsRejected(t *testing.T) {
	t.Parallel()
	a, _ := vendor(t, guide(says(200, `{"lock_id":"l1","name":"Office"}`)))
	_, err := a.Device(t.Context(), "l2")
	classIs(t, "Device", err, adapter.Transient)
}

func TestResponseSizeIsLimited(t *testing.T) {
	t.Parallel()
	a, _ := vendor(t, says(200, `{"locks":[]}`+strings.Repeat(" ", 9<<20)))
	_, err := a.Devices(t.Context())
	if err == nil || !strings.Contains(err.Error(), "larger than 8 MiB") {
		t.Errorf("Devices: %v", err)
	}
}

func TestDuplicateNamesTheConflict(t *testing.T) {
	t.Parallel()
	const conflict = `"error_code":"PIN_CONFLICT","message":"m","conflicting_access_code_id":"c2"`
	for name, answer := range map[string]http.HandlerFunc{
		"refused": says(409, `{`+conflict+`}`),
		"failed":  says(200, `{"access_code_id":"c1","status":"failed",`+conflict+`}`),
	} {
		a, _ := vendor(t, guide(answer))
		_, err := a.PutCode(t.Context(), "l1", adapter.CodeSpec{PIN: pin})
		if e, ok := errors.AsType[*adapter.Error](err); !ok || e.Class != adapter.Duplicate || e.Conflict != "c2" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestADeviceThatWasListedIsNotReadAgain(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	a, _ := vendor(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, `{"locks":[{"lock_id":"l1"}],"access_codes":[]}`)
	})
	if _, err := a.Devices(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Codes(t.Context(), "l1", false); err != nil || asked.Load() != 2 {
		t.Errorf("%v after %d requests, want 2", err, asked.Load())
	}
}

func TestATokenDoesNotFollowARedirect(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the redirect was followed")
	}))
	t.Cleanup(elsewhere.Close)
	a, _ := vendor(t, says(307, "", "Location", elsewhere.URL))
	_, err := a.Devices(t.Context())
	classIs(t, "Devices", err, adapter.Transient)
}
