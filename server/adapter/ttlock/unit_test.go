package ttlock_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/ttlock"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/ttlock/ttlocktest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
)

// Applied settings are checked, and the password is not stored.
func TestConnection_Apply(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		url, user string
		want      string // base URL; empty: refused
	}{
		"Europe":      {ttlock.DefaultURL, "owner@example.com", ttlock.DefaultURL},
		"white label": {"https://API.example.com/", "+4915112345678", "https://api.example.com"},
		"in clear":    {"http://api.example.com", "owner@example.com", ""},
		"no URL":      {"api", "owner@example.com", ""},
		"no user":     {ttlock.DefaultURL, " ", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &ttlock.Connection{}
			err := c.Apply(adapter.Settings{"url": test.url, "username": test.user, "password": "hunter22"})
			if (err == nil) != (test.want != "") || err == nil && c.BaseURL != test.want {
				t.Errorf("%q, %v", c.BaseURL, err)
			}
			stored, err := json.Marshal(c)
			text := string(stored)
			if err != nil || strings.Contains(text, "hunter22") || strings.Contains(text, "assword") {
				t.Errorf("the connection stores %s", stored)
			}
		})
	}
}

// A login completes the connection, and says what is wrong with it otherwise.
func TestConnection_Check(t *testing.T) {
	t.Parallel()
	cloud := ttlocktest.Start(t, ttlocktest.Options{})
	env := adapter.Env{Client: client}
	c := connection(t, cloud)
	found, err := c.Check(t.Context(), env)
	if err != nil || c.Address() != cloud.URL+" user 2340" || found.Email != ttlocktest.Username ||
		found.Credentials == nil {
		t.Fatalf("%q, %+v, %v", c.Address(), found, err)
	}
	check := func(env adapter.Env, set adapter.Settings) error {
		c := connection(t, cloud)
		if err := c.Apply(set); err != nil {
			t.Fatal(err)
		}
		_, err := c.Check(t.Context(), env)
		return err
	}
	fails(t, check(env, adapter.Settings{"password": "wrong"}), adapter.AuthRevoked, "user name or the password")
	fails(t, check(adapter.Env{}, nil), adapter.Invalid, "--vendor-client")
	fails(t, check(adapter.Env{Client: adapter.Client{ID: ttlocktest.ClientID, Secret: "x"}}, nil), adapter.Invalid,
		"--vendor-client-secret-file")
	cloud.RefuseAll(30008)
	fails(t, check(env, nil), adapter.Invalid, "another region")
	stored := &ttlock.Connection{BaseURL: cloud.URL, Username: ttlocktest.Username}
	_, err = stored.Check(t.Context(), env)
	fails(t, err, adapter.Invalid, "--password-file")
}

// A push names a lock and what to read there. Its PINs stay outside.
func TestAppPush(t *testing.T) {
	t.Parallel()
	records := func(text string) url.Values {
		return url.Values{"notifyType": {"1"}, "lockId": {"163377"}, "records": {text}}
	}
	for name, c := range map[string]struct {
		form url.Values
		want adapter.EventKind // empty: no event
		bad  bool
	}{
		"the keypad was used": {
			form: records(`[{"recordType":1,"lockDate":1628522539000},` +
				`{"recordType":4,"keyboardPwd":"814297","lockDate":1628522538000}]`),
			want: adapter.CodesChanged,
		},
		"the door was locked":  {form: records(`[{"recordType":45,"lockDate":1628522538000}]`), want: adapter.StatusChanged},
		"no records":           {form: records(`[]`), want: adapter.StatusChanged},
		"unreadable records":   {form: records(`[{"keyboardPwd":"814297"`), bad: true},
		"records are missing":  {form: url.Values{"notifyType": {"1"}, "lockId": {"1"}}, bad: true},
		"a gateway is offline": {form: url.Values{"notifyType": {"2"}, "gatewayId": {"78979"}, "isOnline": {"0"}}},
		"a lock is offline": {
			form: url.Values{"notifyType": {"3"}, "lockId": {"163377"}, "isOnline": {"0"}},
			want: adapter.DeviceOffline,
		},
		"a lock is online": {
			form: url.Values{"notifyType": {"3"}, "lockId": {"163377"}, "isOnline": {"1"}},
			want: adapter.DeviceOnline,
		},
		"a passcode failed": {
			form: url.Values{"notifyType": {"4"}, "lockId": {"163377"}, "objectType": {"2"}, "errcode": {"-3009"}},
			want: adapter.CodesChanged,
		},
		"a card failed":   {form: url.Values{"notifyType": {"4"}, "lockId": {"163377"}, "objectType": {"3"}}},
		"a door sensor":   {form: url.Values{"notifyType": {"7"}, "doorSensorId": {"7"}}},
		"an unknown type": {form: url.Values{"notifyType": {"99"}, "lockId": {"163377"}}},
		"no type":         {form: url.Values{"lockId": {"163377"}}, bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(c.form.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			push, err := ttlock.Vendor().AppPush(r)
			if (err != nil) != c.bad {
				t.Fatalf("the error is %v", err)
			}
			if strings.Contains(fmt.Sprintf("%+v %v", push, err), "814297") {
				t.Error("the result contains the PIN")
			}
			var got adapter.EventKind
			for _, e := range push.Events {
				if got = e.Event.Kind; e.Event.Device != "163377" {
					t.Errorf("the device is %q", e.Event.Device)
				}
			}
			if got != c.want || push.Response != "success" {
				t.Errorf("the event is %q, the response %q", got, push.Response)
			}
		})
	}
}

const (
	lockJSON = `{"lockId":7,"lockName":"n","lockAlias":"Door","lockMac":"m","electricQuantity":55,"autoLockTime":5,` +
		`"featureValue":"1000000000591","hasGateway":1,"modelNum":"M"}`
	codeJSON = `{"keyboardPwdId":9,"lockId":7,"keyboardPwd":"4829","keyboardPwdName":"Guest","keyboardPwdType":"3",` +
		`"startDate":1528878944000,"endDate":1628878944000,"isCustom":1,"status":4}`
	pageJSON = `"pageNo":1,"pageSize":20,"pages":1,"total":1`
)

// No answer makes the adapter panic, or return an error without a class.
func TestAbsurdAnswers(t *testing.T) {
	t.Parallel()
	answers := map[string]string{
		"/v3/gateway/list":        `{"list":[{"gatewayId":3,"isOnline":1}],` + pageJSON + `}`,
		"/v3/gateway/listLock":    `{"list":[{"lockId":7,"rssi":-65}]}`,
		"/v3/gateway/listByLock":  `{"list":[{"gatewayId":3,"rssi":-65}]}`,
		"/v3/lock/queryOpenState": `{"state":0}`,
		"/v3/lock/detail":         lockJSON,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, answers[r.URL.Path])
	}))
	t.Cleanup(server.Close)
	a := ttlock.New(ttlock.Config{
		BaseURL: server.URL,
		Secrets: &adaptertest.Secrets{Values: map[string][]byte{adapter.CredentialsSecret: []byte(`{"access":"a"}`)}},
		HTTP:    vendorhttp.New(adapter.Env{}),
	})
	t.Cleanup(func() { _ = a.Close() })
	twist := func(path, text string, call func() error) {
		t.Helper()
		right := answers[path]
		for name, twisted := range adaptertest.Twists(t, text) {
			answers[path] = twisted
			if err := call(); err != nil && adapter.AsError(err) == nil {
				t.Errorf("%s, when %s: %v", path, name, err)
			}
		}
		answers[path] = right
	}
	devices := func() error {
		all, err := a.Devices(t.Context())
		for _, d := range all {
			if d.Name == "" || d.BatteryLevel != nil && (*d.BatteryLevel < 0 || *d.BatteryLevel > 1) {
				t.Errorf("the device is %+v", d)
			}
		}
		return err
	}
	device := func() error { _, err := a.Device(t.Context(), "7"); return err }
	twist("/v3/lock/list", `{"list":[`+lockJSON+`],`+pageJSON+`}`, devices)
	answers["/v3/lock/list"] = `{"list":[` + lockJSON + `],` + pageJSON + `}`
	twist("/v3/gateway/list", answers["/v3/gateway/list"], devices)
	twist("/v3/gateway/listLock", answers["/v3/gateway/listLock"], devices)
	twist("/v3/lock/detail", lockJSON, device)
	twist("/v3/gateway/listByLock", answers["/v3/gateway/listByLock"], device)
	if err := device(); err != nil {
		t.Fatal(err)
	}
	twist("/v3/lock/listKeyboardPwd", `{"list":[`+codeJSON+`],`+pageJSON+`}`, func() error {
		_, err := a.Codes(t.Context(), "7", true)
		return err
	})
	twist("/v3/keyboardPwd/add", `{"keyboardPwdId":9}`, func() error {
		made, err := a.PutCode(t.Context(), "7", adapter.CodeSpec{Name: "n", PIN: "4829"})
		if err == nil && made.Ref == "" {
			t.Error("a code without a ref is created")
		}
		return err
	})
}
