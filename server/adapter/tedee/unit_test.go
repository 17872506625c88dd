package tedee_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/tedee"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/tedee/tedeetest"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func body(text string) io.ReadCloser { return io.NopCloser(strings.NewReader(text)) }

// answering returns an adapter whose vendor gives answers by method and path without identifiers.
func answering(t *testing.T, answers map[string]string) *tedee.Adapter {
	t.Helper()
	transport := roundTripper(func(r *http.Request) (*http.Response, error) {
		key := r.Method + strings.TrimPrefix(r.URL.Path, "/api/"+tedee.APIVersion)
		resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r, Body: body(answers[key])}
		if _, there := answers[key]; !there {
			resp.StatusCode = http.StatusNotFound
		}
		return resp, nil
	})
	a := tedee.New(tedee.Config{Key: "k", HTTP: &http.Client{Transport: transport}, Secrets: &adaptertest.Secrets{}})
	t.Cleanup(func() { _ = a.Close() })
	return a
}

func envelope(result string) string {
	return `{"result":` + result + `,"success":true,"errorMessages":[],"statusCode":200}`
}

const (
	lockJSON = `{"id":1,"serialNumber":"s1","name":"Door","type":2,"accessLevel":2,"userIdentity":"u","revision":2,` +
		`"deviceRevision":2,"targetDeviceRevision":2,"connectedToId":7,"isConnected":true,"shareDetails":` +
		`{"remoteAccessDisabled":false},"deviceSettings":{"autoLockEnabled":true,"autoLockDelay":10,"isAsync":false},` +
		`"deviceState":{"state":6,"doorState":3,"batteryLevel":87,"stateChangeResult":0,` +
		`"lastStateChangedDate":"2026-01-01T00:00:00Z"},"accessories":[{"id":9,"deviceType":3}]}`
	pinJSON = `{"id":3,"alias":"Guest","pin":"48291","startDate":"2026-01-01T00:00:00.000Z",` +
		`"endDate":"2026-02-01T00:00:00","dayStartTime":null,"dayEndTime":null,"weekDays":1}`
)

// No answer makes the adapter panic, or return an error without a class.
func TestAbsurdAnswers(t *testing.T) {
	t.Parallel()
	typed := func(what, name string, err error) {
		t.Helper()
		if err != nil && adapter.AsError(err) == nil {
			t.Errorf("%s, when %s: %v", what, name, err)
		}
	}
	answers := map[string]string{}
	a := answering(t, answers)
	for name, text := range adaptertest.Twists(t, envelope("["+lockJSON+"]")) {
		answers["GET/my/lock"] = text
		devices, err := a.Devices(t.Context())
		typed("Devices", name, err)
		for _, d := range devices {
			if d.Ref == "" || d.Name == "" || d.BatteryLevel != nil && (*d.BatteryLevel < 0 || *d.BatteryLevel > 1) {
				t.Errorf("when %s, the device is %+v", name, d)
			}
		}
	}
	answers["GET/my/lock"] = envelope("[" + lockJSON + "]")
	if _, err := a.Devices(t.Context()); err != nil {
		t.Fatal(err)
	}
	answers["GET/my/lock/1/pin/3"] = envelope(pinJSON)
	list := envelope(`{"listVersion":2,"pins":[{"id":3,"alias":"Guest"}]}`)
	for name, text := range adaptertest.Twists(t, list) {
		answers["GET/my/lock/1/pin"] = text
		_, err := a.Codes(t.Context(), "s1", true)
		typed("Codes", name, err)
	}
	answers["GET/my/lock/1/pin"] = list
	for name, text := range adaptertest.Twists(t, envelope(pinJSON)) {
		fresh := answering(t, answers)
		answers["GET/my/lock/1/pin/3"] = text
		_, err := fresh.Codes(t.Context(), "s1", true)
		typed("Codes", name, err)
	}
	for name, text := range adaptertest.Twists(t, envelope(`{"id":4}`)) {
		answers["POST/my/lock/1/pin"] = text
		made, err := a.PutCode(t.Context(), "s1", adapter.CodeSpec{Name: "n", PIN: "48291"})
		typed("PutCode", name, err)
		if err == nil && made.Ref == "" {
			t.Errorf("PutCode, when %s: no ref", name)
		}
	}
}

// The rules of PINs are those of the documentation. The fake refuses the same PINs (adaptertest).
func TestPINRules(t *testing.T) {
	t.Parallel()
	a := answering(t, map[string]string{
		"GET/my/lock":        envelope("[" + lockJSON + "]"),
		"GET/my/lock/1/pin":  envelope(`{"listVersion":1,"pins":[]}`),
		"POST/my/lock/1/pin": envelope(`{"id":4}`),
	})
	for pin, fine := range map[string]bool{
		"48291": true, "48291730": true, "12354": true, "89012": true, "11123": true,
		"4829": false, "482917305": false, "": false, "48a91": false, "٤٨٢٩١": false,
		"11111": false, "12121": false, "12345": false, "98765": false, "12345678": false,
	} {
		_, err := a.PutCode(t.Context(), "s1", adapter.CodeSpec{Name: "Guest", PIN: pin})
		if fine != (err == nil) || err != nil && adapter.ClassOf(err) != adapter.Invalid {
			t.Errorf("a PIN of %d bytes, which is fine: %t: %v", len(pin), fine, err)
		}
		if err != nil && pin != "" && strings.Contains(err.Error(), pin) {
			t.Error("the error contains the PIN")
		}
	}
}

// The address of an account is its user, whatever the key and the version of the API.
func TestConnection_Check(t *testing.T) {
	t.Parallel()
	c := tedeetest.Start(t, tedeetest.Options{})
	c.EndKeyAt(time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC))
	v := tedee.VendorAt(c.URL)
	connect := func(key string) (*tedee.Connection, adapter.Checked, error) {
		connection, err := v.Login.Connect(map[string]string{"personal_key": key})
		if err != nil {
			t.Fatal(err)
		}
		found, err := connection.Check(t.Context(), adapter.Env{Log: slog.New(slog.DiscardHandler)})
		return connection.(*tedee.Connection), found, err
	}
	own, found, err := connect(" " + tedeetest.Key + "\n")
	if err != nil || found.Username != tedeetest.UserID || found.Provider != tedee.Name ||
		own.Address() != c.URL+" user "+tedeetest.UserID || own.KeyEnds.Year() != 2027 {
		t.Errorf("%+v, %+v, %v", own.Address(), found, err)
	}
	c.Change(tedeetest.Set{Level: new(1)}) // the user owns no lock
	shared, _, err := connect(tedeetest.Key)
	if err != nil || shared.Address() != c.URL+" user with key smnxaz" {
		t.Errorf("%+v, %v", shared.Address(), err)
	}
	_, _, err = connect("smnxaz.wrong")
	classIs(t, "a wrong key", err, adapter.AuthRevoked)
	if strings.Contains(err.Error(), "wrong") {
		t.Error("the error shows the key")
	}
	if _, err := v.Login.Connect(map[string]string{"personal_key": " "}); err == nil {
		t.Error("an empty key is accepted")
	}
}

func TestConnection_Apply(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		url, key string
		want     string // address; empty: refused
		stored   string
	}{
		"default":         {tedee.DefaultURL, "k", "https://api.tedee.com", ""},
		"another version": {"https://API.tedee.com./api/v38/", "k", "https://api.tedee.com", "https://api.tedee.com/api/v38"},
		"own machine":     {"http://127.0.0.1:80/api/v37", "k", "http://127.0.0.1", "http://127.0.0.1/api/v37"},
		"in clear":        {"http://example.com", "k", "", ""},
		"with user":       {"https://u:p@example.com", "k", "", ""},
		"no URL":          {"api.tedee.com", "k", "", ""},
		"no key":          {tedee.DefaultURL, " ", "", ""},
		"two lines":       {tedee.DefaultURL, "a\nb", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &tedee.Connection{}
			err := c.Apply(adapter.Settings{"url": test.url, "personal-key": test.key})
			if (err == nil) != (test.want != "") || err == nil && (c.Address() != test.want || c.URL != test.stored) {
				t.Errorf("%q at %q, %v", c.URL, c.Address(), err)
			}
			if err != nil && strings.Contains(err.Error(), "u:p") {
				t.Error("the error shows the password")
			}
		})
	}
}

// A login of the OAuth client names the user, and its tokens are renewed: each refresh token works once.
func TestOAuth(t *testing.T) {
	t.Parallel()
	c := tedeetest.Start(t, tedeetest.Options{})
	v := tedee.VendorAt(c.URL)
	env := adapter.Env{
		Log:    slog.New(slog.DiscardHandler),
		Client: adapter.Client{ID: tedeetest.ClientID, Secret: tedeetest.ClientSecret},
	}
	connection, err := v.Login.OAuth.Connect(c.NewTokens(time.Now().Add(4 * time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
	found, err := connection.Check(t.Context(), env)
	if err != nil || found.Email != tedeetest.Email || connection.Address() != c.URL+" user "+tedeetest.UserID {
		t.Fatalf("%s, %+v, %v", connection.Address(), found.Email, err)
	}
	stored, err := json.Marshal(connection)
	if err != nil || strings.Contains(string(stored), "refresh-token") {
		t.Errorf("the connection stores a token, %v", err)
	}
	kept := &adaptertest.Secrets{Values: map[string][]byte{adapter.CredentialsSecret: found.Credentials}}
	env.Secrets = kept
	reopened := v.New()
	if err := json.Unmarshal(stored, reopened); err != nil {
		t.Fatal(err)
	}
	opened, err := reopened.(adapter.DeviceConnection).Open(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	for n := 2; n <= 3; n++ {
		c.ExpireTokens()
		if _, err := opened.Devices(t.Context()); err != nil || c.Refreshes() != n {
			t.Errorf("%d tokens were issued, want %d: %v", c.Refreshes(), n, err)
		}
	}
	var tokens adapter.Tokens
	value, err := kept.Load(context.Background(), adapter.CredentialsSecret)
	if err != nil || json.Unmarshal(value, &tokens) != nil || tokens.Refresh != "refresh-token-3" ||
		time.Until(tokens.ExpiresAt) < 3*time.Hour {
		t.Errorf("the stored tokens end at %s, %v", tokens.ExpiresAt, err)
	}
	c.Revoke()
	_, err = opened.Devices(t.Context())
	classIs(t, "a revoked login", err, adapter.AuthRevoked)
}

// A login replaces the former one of the same account, in both directions.
func TestLogin_ReplacesAnother(t *testing.T) {
	t.Parallel()
	for name, keyLast := range map[string]bool{"a key after OAuth": true, "OAuth after a key": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := tedeetest.Start(t, tedeetest.Options{})
			v := tedee.VendorAt(c.URL)
			env := adapter.Env{Log: slog.New(slog.DiscardHandler), Client: adapter.Client{ID: tedeetest.ClientID}}
			byKey, err := v.Login.Connect(map[string]string{"personal_key": tedeetest.Key})
			if err != nil {
				t.Fatal(err)
			}
			byOAuth, err := v.Login.OAuth.Connect(c.NewTokens(time.Now().Add(time.Hour)))
			if err != nil {
				t.Fatal(err)
			}
			logins := []adapter.Connection{byKey, byOAuth}
			if keyLast {
				slices.Reverse(logins)
			}
			stored := map[string]json.RawMessage{} // the account keeps the fields that a login does not store
			var found adapter.Checked
			for _, login := range logins {
				if found, err = login.Check(t.Context(), env); err != nil {
					t.Fatal(err)
				}
				data, err := json.Marshal(login)
				if err != nil || json.Unmarshal(data, &stored) != nil {
					t.Fatal(err)
				}
			}
			if logins[0].Address() != logins[1].Address() {
				t.Errorf("the logins are of two accounts: %s, %s", logins[0].Address(), logins[1].Address())
			}
			env.Secrets = &adaptertest.Secrets{Values: map[string][]byte{adapter.CredentialsSecret: found.Credentials}}
			config, err := json.Marshal(stored)
			if err != nil {
				t.Fatal(err)
			}
			account := v.New().(*tedee.Connection)
			if err := json.Unmarshal(config, account); err != nil {
				t.Fatal(err)
			}
			if account.OAuth == keyLast || keyLast == (account.Key == "") {
				t.Errorf("the account has a key: %t, and uses OAuth: %t", account.Key != "", account.OAuth)
			}
			opened, err := account.Open(t.Context(), env)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = opened.Close() })
			if devices, err := opened.Devices(t.Context()); err != nil || len(devices) != 1 {
				t.Errorf("%d devices, %v", len(devices), err)
			}
		})
	}
}

// An operator sets a key for an account with OAuth. A change that keeps OAuth keeps the tokens.
func TestApply_KeyReplacesOAuth(t *testing.T) {
	t.Parallel()
	c := tedeetest.Start(t, tedeetest.Options{})
	account := tedee.VendorAt(c.URL).New().(*tedee.Connection)
	account.OAuth, account.UserID = true, tedeetest.UserID
	url := c.URL + "/api/" + tedee.APIVersion
	if err := account.Apply(adapter.Settings{"url": url}); err != nil {
		t.Fatal(err)
	}
	found, err := account.Check(t.Context(), adapter.Env{Log: slog.New(slog.DiscardHandler)})
	if err != nil || !found.KeepCredentials || !account.OAuth {
		t.Errorf("another URL: %+v, %v", found.KeepCredentials, err)
	}
	if err := account.Apply(adapter.Settings{"personal-key": tedeetest.Key}); err != nil {
		t.Fatal(err)
	}
	found, err = account.Check(t.Context(), adapter.Env{Log: slog.New(slog.DiscardHandler)})
	if err != nil || found.KeepCredentials || found.Credentials != nil || account.OAuth {
		t.Errorf("a key: %+v, %v", found.KeepCredentials, err)
	}
}

// The documentation names the version of the API and its earliest end.
func TestAPIVersion_IsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/connect-tedee.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"`" + tedee.APIVersion + "`", tedee.APIVersionEnds, tedee.DocumentationDate} {
		if !strings.Contains(string(text), want) {
			t.Errorf("server/docs/connect-tedee.md does not name %s", want)
		}
	}
}

// A list of locks that does not end, or is larger than any account, is refused.
func TestListLocks_Bounded(t *testing.T) {
	t.Parallel()
	for name, perPage := range map[string]int{"many pages": 20, "many locks": adapter.MaxListElements} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			transport := roundTripper(func(*http.Request) (*http.Response, error) {
				var list strings.Builder
				for n := range perPage {
					id := calls*perPage + n + 1
					fmt.Fprintf(&list, `,{"id":%d,"serialNumber":"s%d"}`, id, id)
				}
				calls++
				text := envelope("[" + list.String()[1:] + "]")
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body(text)}, nil
			})
			a := tedee.New(
				tedee.Config{Key: "k", HTTP: &http.Client{Transport: transport}, Secrets: &adaptertest.Secrets{}},
			)
			t.Cleanup(func() { _ = a.Close() })
			_, err := a.Devices(t.Context())
			classIs(t, "Devices", err, adapter.Transient)
			if !strings.Contains(err.Error(), "more than") || calls > 100 {
				t.Errorf("after %d calls: %v", calls, err)
			}
		})
	}
}

// Only reads report that other large responses are being read.
func TestSaturated(t *testing.T) {
	t.Parallel()
	a := tedee.New(tedee.Config{Key: "k", HTTP: adaptertest.Saturated(), Secrets: &adaptertest.Secrets{}})
	t.Cleanup(func() { _ = a.Close() })
	if _, err := a.Devices(t.Context()); !errors.Is(err, adapter.ErrSaturated) {
		t.Errorf("Devices: %v", err)
	}
	_, err := a.PutCode(t.Context(), "s1", adapter.CodeSpec{Name: "Guest", PIN: "48291"})
	classIs(t, "PutCode", err, adapter.Transient)
	_, err = a.DeleteCode(t.Context(), "s1", "1")
	classIs(t, "DeleteCode", err, adapter.Transient)
	_, err = a.Lock(t.Context(), "s1")
	classIs(t, "Lock", err, adapter.Transient)
}
