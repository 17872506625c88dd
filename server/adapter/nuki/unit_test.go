package nuki_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/nuki"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/nuki/nukitest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
)

func TestPINsAndNames(t *testing.T) {
	t.Parallel()
	cloud := nukitest.Start(t, nukitest.Options{})
	a := open(t, cloud)
	for _, test := range []struct {
		pin, name string
		accepted  bool
		says      string
	}{
		{pin: "583926", name: "Guest", accepted: true},
		{pin: "212345", name: strings.Repeat("é", 20), accepted: true},
		{pin: "999999", name: "G", accepted: true},
		{pin: "123456", name: "Guest", says: "start with 12"},
		{pin: "503926", name: "Guest", says: "1 to 9"},
		{pin: "58392", name: "Guest", says: "six digits"},
		{pin: "5839267", name: "Guest", says: "six digits"},
		{pin: "58392x", name: "Guest", says: "six digits"},
		{pin: "+58392", name: "Guest", says: "six digits"},
		{pin: "", name: "Guest", says: "six digits"},
		{pin: "738495", name: "", says: "20 characters"},
		{pin: "738495", name: strings.Repeat("n", 21), says: "20 characters"},
	} {
		spec := adapter.CodeSpec{Key: test.pin + test.name, PIN: test.pin, Name: test.name}
		_, err := a.PutCode(t.Context(), deviceRef(cloud.Lock()), spec)
		switch {
		case test.accepted && err != nil:
			t.Errorf("%s is refused: %v", test.pin, err)
		case test.accepted:
		case adapter.ClassOf(err) != adapter.Invalid || !strings.Contains(err.Error(), test.says):
			t.Errorf("%q, %q: %v", test.pin, test.name, err)
		case test.pin != "" && strings.Contains(err.Error(), test.pin):
			t.Error("the error shows the PIN")
		}
	}
}

const (
	lockJSON = `{"smartlockId":17616872448,"accountId":4711,"type":4,"name":"Door","config":{"keypadPaired":true},` +
		`"advancedConfig":{"autoLock":true,"autoLockTimeout":300},"state":{"state":1,"batteryCharge":80,"doorState":2},` +
		`"serverState":0,"virtualDevice":false}`
	lockPath = "/smartlock/17616872448"
	codeJSON = `{"id":"5f0000000000000000000001","smartlockId":17616872448,"authId":1,"code":583926,"type":13,` +
		`"name":"Guest","enabled":true,"allowedFromDate":"2026-01-01T00:00:00.000Z",` +
		`"allowedUntilDate":"2026-01-02T00:00:00.000Z","allowedWeekDays":127,"operationId":{"id":"1"}}`
	logJSON = `{"id":"5f0000000000000000000009","smartlockId":17616872448,"action":1,"trigger":255,"state":0,` +
		`"authId":"5f0000000000000000000001","date":"2026-01-01T00:00:00.000Z","source":1}`
)

// No answer makes the adapter panic, or return an error without a class.
func TestAbsurdAnswers(t *testing.T) {
	t.Parallel()
	answers := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, answers[r.URL.Path])
	}))
	t.Cleanup(server.Close)
	timing := quick()
	timing.ReadBack = []time.Duration{0}
	a := nuki.New(nuki.Config{BaseURL: server.URL, Token: "token", HTTP: vendorhttp.New(adapter.Env{}), Timing: timing})
	t.Cleanup(func() { _ = a.Close() })
	typed := func(what, name string, err error) {
		if err != nil && adapter.AsError(err) == nil {
			t.Errorf("%s, when %s: %v", what, name, err)
		}
	}
	for name, text := range adaptertest.Twists(t, `[`+lockJSON+`]`) {
		answers["/smartlock"] = text
		devices, err := a.Devices(t.Context())
		typed("Devices", name, err)
		for _, d := range devices {
			if d.Ref == "" || d.Name == "" || d.BatteryLevel != nil && (*d.BatteryLevel < 0 || *d.BatteryLevel > 1) {
				t.Errorf("when %s, the device is %+v", name, d)
			}
		}
	}
	answers[lockPath], answers["/smartlock"] = lockJSON, `[`+lockJSON+`]`
	confirm := adapter.WithPriority(t.Context(), adapter.PriorityConfirm)
	for name, text := range adaptertest.Twists(t, `[`+codeJSON+`]`) {
		answers[lockPath+"/auth"] = text
		codes, err := a.Codes(confirm, "17616872448", true)
		typed("Codes", name, err)
		if slices.ContainsFunc(codes.Codes, func(c adapter.Code) bool { return c.Ref == "" }) {
			t.Errorf("when %s, a code has no ref", name)
		}
		made, err := a.PutCode(t.Context(), "17616872448", adapter.CodeSpec{Key: name, Name: "n", PIN: "738495"})
		typed("PutCode", name, err)
		if err == nil && made.Ref == "" {
			t.Errorf("PutCode, when %s: no ref", name)
		}
	}
	for name, text := range adaptertest.Twists(t, `[`+logJSON+`]`) {
		answers["/smartlock/log"] = text
		_, _, err := a.ReadLog(t.Context(), "2026-01-01T00:00:00Z")
		typed("the log", name, err)
	}
}

func TestLog_Operations(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text   string // replaces a part of logJSON
		kind   adapter.EventKind
		method adapter.Method
		code   bool
	}{
		"a code":               {"", adapter.LockOperated, adapter.ByKeycode, true},
		"a fingerprint":        {`"source":1>"source":2`, adapter.LockOperated, adapter.ByUnknown, false},
		"the app":              {`255,"state":0>5,"state":0|"source":1>"source":0`, adapter.LockOperated, adapter.Remotely, false},
		"the knob":             {`255,"state":0>1,"state":0|"source":1>"source":0`, adapter.LockOperated, adapter.ByHand, false},
		"auto lock":            {`255,"state":0>6,"state":0|"source":1>"source":0`, adapter.LockOperated, adapter.Automatically, false},
		"a numeric identifier": {`"5f0000000000000000000001">7`, adapter.LockOperated, adapter.ByKeycode, false},
		"a blocked motor":      {`"state":0>"state":1`, adapter.Jammed, "", false},
		"a wrong PIN":          {`"state":0>"state":224`, adapter.AccessDenied, "", false},
		"another failure":      {`"state":0>"state":3`, "", "", false},
		"a door sensor":        {`"action":1>"action":240`, "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := logJSON
			for change := range strings.SplitSeq(test.text, "|") {
				from, to, _ := strings.Cut(change, ">")
				text = strings.Replace(text, from, to, 1)
			}
			e, ok := nuki.LogEvent(t, text)
			if ok != (test.kind != "") || ok && e.Kind != test.kind || e.Operation.Method != test.method ||
				(e.Code != "") != test.code {
				t.Errorf("the event is %+v", e)
			}
		})
	}
}

func TestConnection(t *testing.T) {
	t.Parallel()
	cloud := nukitest.Start(t, nukitest.Options{})
	v := nuki.VendorAt(cloud.URL)
	env := adapter.Env{Log: slog.New(slog.DiscardHandler)}
	c := v.New()
	if err := c.Apply(adapter.Settings{"api-token": " "}); err == nil {
		t.Error("no token is accepted")
	}
	if err := c.Apply(adapter.Settings{"api-token": " " + nukitest.Token + "\n"}); err != nil {
		t.Fatal(err)
	}
	found, err := c.Check(t.Context(), env)
	if err != nil || found.Username != "4711" || c.Address() != cloud.URL+" account 4711" {
		t.Errorf("Check: %+v, %v; the address is %s", found, err, c.Address())
	}
	wrong, err := v.Login.Connect(map[string]string{"api_token": "wrong"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wrong.Check(t.Context(), env); adapter.ClassOf(err) != adapter.AuthRevoked {
		t.Errorf("a wrong token: %v", err)
	}
	cloud.Lock().Remove()
	if _, err := c.Check(t.Context(), env); adapter.ClassOf(err) != adapter.Invalid {
		t.Errorf("an account without locks: %v", err)
	}
}

// Only Nuki's refusal of the refresh token asks for another login.
func TestLogin_RefusedRefresh(t *testing.T) {
	t.Parallel()
	client := adapter.Client{ID: "our-id", Secret: "our-secret"}
	cloud := nukitest.Start(t, nukitest.Options{Client: client})
	good := cloud.LogIn()
	for _, test := range []struct {
		name    string
		client  adapter.Client
		refresh string
		want    adapter.Class
	}{
		{"another client", adapter.Client{ID: "our-id", Secret: "wrong"}, good.Refresh, adapter.GatewayDown},
		{"no client", adapter.Client{}, good.Refresh, adapter.GatewayDown},
		{"a used token", client, "refresh-token-0", adapter.AuthRevoked},
		{"no token", client, "", adapter.AuthRevoked},
		{"a token that works", client, good.Refresh, ""},
	} {
		c, err := cloud.Vendor(quick()).Login.OAuth.Connect(adapter.Tokens{})
		if err != nil {
			t.Fatal(err)
		}
		stored := &adaptertest.Secrets{}
		expired, err := json.Marshal(adapter.Tokens{Access: "old", Refresh: test.refresh, ExpiresAt: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		if err := stored.Store(t.Context(), adapter.CredentialsSecret, expired); err != nil {
			t.Fatal(err)
		}
		env := adapter.Env{Client: test.client, Secrets: stored, Log: slog.New(slog.DiscardHandler)}
		_, err = c.Check(t.Context(), env)
		if test.want == "" && err != nil || test.want != "" && adapter.ClassOf(err) != test.want {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
