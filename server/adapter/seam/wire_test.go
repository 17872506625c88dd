package seam

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

func TestEvents(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	used := adapter.Operation{ID: "e", At: at, Method: adapter.ByKeycode}
	for kind, test := range map[string]struct {
		event wireEvent
		want  adapter.Event
	}{
		"device.connected":          {wireEvent{}, adapter.Event{Kind: adapter.DeviceOnline, Device: "d"}},
		"device.disconnected":       {wireEvent{}, adapter.Event{Kind: adapter.DeviceOffline, Device: "d"}},
		"device.removed":            {wireEvent{}, adapter.Event{Kind: adapter.DeviceListed, Device: "d"}},
		"device.low_battery":        {wireEvent{}, adapter.Event{Kind: adapter.StatusChanged, Device: "d"}},
		"access_code.set_on_device": {wireEvent{CodeID: "c"}, adapter.Event{Kind: adapter.CodesChanged, Device: "d", Code: "c"}},
		"lock.unlocked": {
			wireEvent{CodeID: "c", Method: "keycode"},
			adapter.Event{Kind: adapter.LockOperated, Device: "d", Code: "c", Operation: used},
		},
		"lock.access_denied": {wireEvent{}, adapter.Event{
			Kind: adapter.AccessDenied, Device: "d", Operation: adapter.Operation{ID: "e", At: at},
		}},
		"connected_account.disconnected": {wireEvent{}, adapter.Event{Kind: adapter.DeviceListed}},
		"acs_user.created":               {},
	} {
		e := test.event
		e.ID, e.Type, e.DeviceID, e.OccurredAt = "e", kind, "d", at
		got, ok := e.event()
		if ok != (test.want.Kind != "") || ok && got != test.want {
			t.Errorf("%s is %+v, want %+v", kind, got, test.want)
		}
	}
	if got, _ := (wireEvent{ID: "e", Type: "access_code.created"}).event(); got.Kind != adapter.Resync {
		t.Errorf("an event without a device is %+v", got)
	}
}

func TestCodes_State(t *testing.T) {
	t.Parallel()
	a := New(Config{})
	t.Cleanup(func() { _ = a.Close() })
	now := time.Now()
	later, earlier := now.Add(time.Hour), now.Add(-time.Hour)
	problem := func(code string) adapter.List[wireProblem] { return adapter.List[wireProblem]{{Code: code}} }
	for name, test := range map[string]struct {
		code   wireCode
		state  adapter.State
		failed adapter.Class
	}{
		"set":               {wireCode{Status: "set"}, adapter.Confirmed, ""},
		"setting":           {wireCode{Status: "setting"}, adapter.Accepted, ""},
		"unknown":           {wireCode{Status: "unknown"}, adapter.Accepted, ""},
		"scheduled":         {wireCode{Status: "unset", StartsAt: &later, EndsAt: &later}, adapter.Confirmed, ""},
		"ended":             {wireCode{Status: "unset", StartsAt: &earlier, EndsAt: &earlier}, adapter.Confirmed, ""},
		"ongoing, unset":    {wireCode{Status: "unset"}, adapter.Accepted, ""},
		"changing":          {wireCode{Status: "set", Mutations: []wireMutation{{"updating_code"}}}, adapter.Accepted, ""},
		"full":              {wireCode{Status: "setting", Errors: problem("no_space_for_access_code_on_device")}, adapter.Accepted, adapter.Full},
		"unknown error":     {wireCode{Status: "setting", Errors: problem("new")}, adapter.Accepted, adapter.Transient},
		"offline device":    {wireCode{Status: "setting", Errors: problem("device_offline")}, adapter.Accepted, ""},
		"set with an error": {wireCode{Status: "set", Errors: problem("provider_issue")}, adapter.Confirmed, ""},
	} {
		test.code.Managed = new(true)
		got := a.code(test.code, false, now)
		class := adapter.Class("")
		if got.Failed != nil {
			class = got.Failed.Class
		}
		if got.State != test.state || class != test.failed {
			t.Errorf("%s: %s, failed %q", name, got.State, class)
		}
	}
}

func TestSignature(t *testing.T) {
	t.Parallel()
	now, body := time.Now(), []byte(`{"event_id":"e"}`)
	key := []byte("0123456789abcdef")
	secret := "whsec_" + base64.StdEncoding.EncodeToString(key)
	sign := func(prefix, id string, at time.Time, body []byte) http.Header {
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%d.%s", id, at.Unix(), body)
		h := http.Header{}
		h.Set(prefix+"id", id)
		h.Set(prefix+"timestamp", strconv.FormatInt(at.Unix(), 10))
		h.Set(prefix+"signature", "v1,AAAA v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		return h
	}
	for name, test := range map[string]struct {
		header http.Header
		secret string
		want   bool
	}{
		"Svix":           {sign("svix-", "m", now, body), secret, true},
		"standard":       {sign("webhook-", "m", now, body), secret, true},
		"another body":   {sign("svix-", "m", now, []byte("{}")), secret, false},
		"old":            {sign("svix-", "m", now.Add(-time.Hour), body), secret, false},
		"without secret": {sign("svix-", "m", now, body), "", false},
		"unsigned":       {http.Header{}, secret, false},
	} {
		if got := isSigned(test.header, body, test.secret, now); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestBudget(t *testing.T) {
	t.Parallel()
	var b budget
	start := time.Now()
	for i := range 10 {
		if wait := b.spend("d", creates, start.Add(time.Duration(i)*time.Second)); wait != 0 {
			t.Fatalf("creation %d waits %s", i, wait)
		}
	}
	if wait := b.spend("d", creates, start.Add(10*time.Second)); wait != 50*time.Second {
		t.Errorf("the eleventh creation waits %s", wait)
	}
	if wait := b.spend("d", deletes, start) + b.spend("other", creates, start); wait != 0 {
		t.Errorf("other writes wait %s", wait)
	}
	if wait := b.spend("d", creates, start.Add(window)); wait != 0 {
		t.Errorf("a minute later, a creation waits %s", wait)
	}
}
