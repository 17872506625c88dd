package secretscan_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/seam"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/login"
)

// planted is a vendor whose answers and pushes quote its credentials and PINs.
type planted struct {
	adapter.Adapter
	events *adapter.EventQueue
	secret string
}

const plantedToken = "planted-refresh-token"

// digits are what may be PINs in messages of the vendor.
var digits = regexp.MustCompile(`\d{4,}`)

func plantedVendor(secret string) adapter.Vendor {
	blank := func() adapter.Connection { return &plantedConnection{} }
	return adapter.Vendor{
		Adapter:     "planted",
		Name:        "tedee",
		DisplayName: "Planted",
		NeedsClient: true,
		Categories:  []string{adapter.CategoryBeta},
		Accepts:     []string{adapter.Locks},
		New:         blank,
		Login: &adapter.Login{
			Fields: []login.Field{{Name: "password", Label: "Password", Kind: "password"}},
			Connect: func(entered map[string]string) (adapter.Connection, error) {
				return &plantedConnection{Password: entered["password"], right: secret}, nil
			},
			SecretField: "password",
		},
		AppPush: func(r *http.Request) (push adapter.AppPush, err error) {
			body, err := io.ReadAll(r.Body)
			if err == nil && !json.Valid(body) {
				err = fmt.Errorf("no push: %s", body)
			}
			push.Events = []adapter.AppEvent{{Event: adapter.Event{Kind: adapter.Resync}}}
			return push, err
		},
	}
}

type plantedConnection struct {
	Password string `json:"password"`
	right    string
}

func (c *plantedConnection) Adapter() string { return "planted" }

func (c *plantedConnection) Address() string { return "planted jane" }

func (c *plantedConnection) Apply(adapter.Settings) error { return nil }

func (c *plantedConnection) Check(context.Context, adapter.Env) (adapter.Checked, error) {
	if c.Password != c.right {
		return adapter.Checked{}, adapter.Errorf(adapter.AuthRevoked, "%s",
			adapter.SafeMessage("The vendor refuses "+c.Password, c.Password))
	}
	return adapter.Checked{Username: "jane", Credentials: []byte(plantedToken)}, nil
}

func (c *plantedConnection) Open(context.Context, adapter.Env) (adapter.Adapter, error) {
	return &planted{events: adapter.NewEventQueue(), secret: c.Password}, nil
}

func (p *planted) Devices(context.Context) ([]adapter.Device, error) {
	return nil, adapter.Errorf(adapter.AuthRevoked, "%s",
		adapter.SafeMessage("The vendor refuses "+p.secret+" and PIN 039199", p.secret, digits))
}

func (p *planted) Events() <-chan adapter.Event { return p.events.Events() }

func (p *planted) ReceiveEvent(e adapter.Event) bool { return p.events.Send(e) }

func (p *planted) Close() error {
	p.events.Close()
	return nil
}

// quotingProxy passes requests to an upstream server, but refuses creations of codes. The refusal quotes the credential
// and the PIN.
func quotingProxy(t *testing.T, upstream string) string {
	t.Helper()
	to, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	next := httputil.NewSingleHostReverseProxy(to)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/access_codes/create" {
			next.ServeHTTP(w, r)
			return
		}
		var body struct {
			Code string `json:"code"`
		}
		_ = json.NewDecoder(r.Body).Decode(&body)
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"type":"no_space_for_access_code_on_device","message":"%s may not set %s"}}`,
			r.Header.Get("Authorization"), body.Code)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// vendorTrial is a workspace for accounts of vendors.
type vendorTrial struct {
	*trial
	key   string
	pages bytes.Buffer // the connect pages, without their own tokens
}

func newVendorTrial(t *testing.T, connecting app.Connecting) *vendorTrial {
	t.Helper()
	r := &vendorTrial{trial: newTrial(t, apptest.WithConnecting(connecting))}
	for _, client := range connecting.Clients {
		r.run.Learn("client_secret", client.Secret)
	}
	_, r.key = r.RealWorkspace(t)
	return r
}

func (r *vendorTrial) post(path string, body map[string]any, out any) {
	r.Helper()
	if status := r.PostAs(r.T, r.key, path, body, out); status != http.StatusOK {
		r.Fatalf("%s: %d", path, status)
	}
}

// logIn enters values on a new connect page of a vendor, and requires a status.
func (r *vendorTrial) logIn(vendor string, values map[string]string, want int) {
	r.Helper()
	at, form := r.connectPage()+"/"+vendor, url.Values{}
	for field, value := range values {
		form.Set(field, value)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.PostForm(at, form)
	if err != nil {
		r.Fatal(err)
	}
	r.keepPage(at, res, want)
}

// connectPage returns the URL of a new connect page of the workspace.
func (r *vendorTrial) connectPage() string {
	r.Helper()
	var page api.ConnectWebviewResponse
	r.post("/connect_webviews/create", map[string]any{}, &page)
	return page.ConnectWebview.URL
}

// keepPage requires a status, and keeps the page for the scan.
func (r *vendorTrial) keepPage(at string, res *http.Response, want int) {
	r.Helper()
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		r.Fatal(err)
	}
	token, _, _ := strings.Cut(strings.TrimPrefix(at, r.URL+"/connect/"), "/")
	r.pages.Write(bytes.ReplaceAll(body, []byte(token), []byte("…")))
	if res.StatusCode != want {
		r.Errorf("log in: %d, want %d", res.StatusCode, want)
	}
}

// check scans what the server leaves behind, the connect pages, the events, and the accounts, which it returns. Clients
// may read the PINs of codes that the server knows in events.
func (r *vendorTrial) check(known ...string) (accounts json.RawMessage) {
	r.Helper()
	var events json.RawMessage
	r.post("/events/list", map[string]any{"since": "2020-01-01T00:00:00Z"}, &events)
	r.post("/connected_accounts/list", map[string]any{}, &accounts)
	for _, pin := range known {
		events = bytes.ReplaceAll(events, []byte(`"code":"`+pin+`"`), []byte(`"code":"…"`))
	}
	r.learned("code", r.pins)
	r.run.Check(r.T, r.App, map[string][]byte{
		"the events":   events,
		"the accounts": accounts,
		"the pages":    r.pages.Bytes(),
	})
	return accounts
}

// svixSigned returns the headers of a push that is signed by Standard Webhooks.
func (r *vendorTrial) svixSigned(secret, body string) http.Header {
	r.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		r.Fatal("the webhook has no secret of Standard Webhooks")
	}
	sent := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "m.%s.%s", sent, body)
	return http.Header{
		"Content-Type":   {"application/json"},
		"Svix-Id":        {"m"},
		"Svix-Timestamp": {sent},
		"Svix-Signature": {"v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))},
	}
}

var isJSON = http.Header{"Content-Type": {"application/json"}}

// push sends a push of a vendor, and requires a status.
func (r *vendorTrial) push(to, body string, header http.Header, want int) {
	r.Helper()
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, to, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	req.Header = header.Clone()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != want {
		r.Errorf("a push: %d, want %d", res.StatusCode, want)
	}
}

// Neither the credentials of accounts at vendors, nor the secrets of pushes, nor PINs in pushes and refusals of vendors
// appear anywhere.
func TestVendorsRevealNothing(t *testing.T) {
	t.Parallel()
	up := apptest.Shared(t, apptest.WithProfiles("august"))
	upKey, _ := up.NewKey(t, "downstream")
	base, upstream := quotingProxy(t, up.URL), seam.Vendor()
	upstream.Login.Connect = func(entered map[string]string) (adapter.Connection, error) {
		return &seam.Connection{BaseURL: base, APIKey: entered["api_key"]}, nil
	}
	const password, clientSecret = "planted-password", "planted-client-secret"
	connecting := app.Connecting{
		Vendors: []adapter.Vendor{upstream, plantedVendor(password)},
		Clients: map[string]adapter.Client{"planted": {ID: "client", Secret: clientSecret}},
	}
	r := newVendorTrial(t, connecting)
	for secret, kind := range map[string]string{
		upKey:        "api_key",
		password:     "password",
		plantedToken: "refresh_token",
		"039199":     "code",
	} {
		r.run.Learn(kind, secret)
	}
	r.logIn(seam.Name, map[string]string{"api_key": "seam_mistyped_by_a_person"}, http.StatusUnprocessableEntity)
	r.logIn(seam.Name, map[string]string{"api_key": upKey}, http.StatusSeeOther)
	r.logIn("tedee", map[string]string{"password": "planted-mistyped"}, http.StatusUnprocessableEntity)
	r.logIn("tedee", map[string]string{"password": password}, http.StatusSeeOther)
	r.pushes(up)
	r.refusedCode()

	admin := app.Admin{Access: r.App.Access, Connecting: connecting}
	to, err := admin.AppPushURL(t.Context(), "planted", r.URL)
	if err != nil {
		t.Fatal(err)
	}
	r.push(to, `{"lock":"front","code":"`+r.pin()+`"}`, isJSON, http.StatusOK)
	r.push(to, `{"lock":"front","code":"`+r.pin()+`"`, isJSON, http.StatusBadRequest)
	r.push(to+"x", `{"lock":"front","code":"`+r.pin()+`"}`, isJSON, http.StatusNotFound)

	if accounts := r.check(); !bytes.Contains(accounts, []byte("The vendor refuses")) {
		t.Errorf("no account has the refusal of the planted vendor: %s", accounts)
	}
}

// pushes sends pushes to the webhook of the upstream account: signed, unsigned, and cut off.
func (r *vendorTrial) pushes(up *apptest.Server) {
	r.Helper()
	var created struct {
		Webhooks []struct {
			URL    string `json:"url"`
			Secret string `json:"secret"`
		} `json:"webhooks"`
	}
	apptest.Until(r.T, "the webhook upstream", func() bool {
		up.Post(r.T, "/webhooks/list", map[string]any{}, &created)
		return len(created.Webhooks) == 1
	})
	to := created.Webhooks[0].URL
	secret := r.pushSecret(to)
	event := func() string {
		return `{"event_id":"e","event_type":"access_code.set_on_device","code":"` + r.pin() + `"}`
	}
	send := func(at, body string, want int) { r.push(at, body, r.svixSigned(secret, body), want) }
	send(to, event(), http.StatusNoContent)
	send(to, strings.TrimSuffix(event(), "}"), http.StatusBadRequest)
	send(to+"x", event(), http.StatusNotFound)
	r.push(to, event(), isJSON, http.StatusUnauthorized)
	r.learned("signature", 3)
}

// pushSecret waits for the secret that signs pushes to a URL, and learns it.
func (r *vendorTrial) pushSecret(to string) string {
	r.Helper()
	var stored struct {
		Secret string `json:"secret"`
	}
	r.stored(to, adapter.SubscriptionSecret, func(data []byte) bool {
		return json.Unmarshal(data, &stored) == nil && stored.Secret != ""
	})
	if !r.run.Learn("secret", stored.Secret) {
		r.Fatal("the subscription has no secret")
	}
	return stored.Secret
}

// accountOf returns the account with a push URL.
func (r *vendorTrial) accountOf(to string) string {
	id, _, _ := strings.Cut(strings.TrimPrefix(to, r.URL+"/vendors/"), "/")
	return id
}

// stored waits for a secret of the account with a push URL.
func (r *vendorTrial) stored(to, name string, is func(data []byte) bool) {
	r.Helper()
	account := uuid.MustParse(r.accountOf(to))
	apptest.Until(r.T, "the stored "+name, func() bool {
		data, err := r.App.Access.Accounts.LoadSecret(r.Context(), account, name)
		return err == nil && is(data)
	})
}

// refusedCode creates a code that the upstream server refuses, and waits for its error, which must not show the PIN.
func (r *vendorTrial) refusedCode() {
	r.Helper()
	var devices api.DevicesResponse
	apptest.Until(r.T, "the lock of the upstream workspace", func() bool {
		r.post("/devices/list", map[string]any{}, &devices)
		return len(devices.Devices) == 1
	})
	var made api.AccessCodeResponse
	pin := r.pin()
	r.post("/access_codes/create", map[string]any{"device_id": devices.Devices[0].DeviceID, "code": pin}, &made)
	apptest.Until(r.T, "the refusal of the code", func() bool {
		r.post("/access_codes/get", map[string]any{"access_code_id": made.AccessCode.AccessCodeID}, &made)
		return len(made.AccessCode.Errors) > 0
	})
	for _, e := range made.AccessCode.Errors {
		for _, found := range r.run.Find([]byte(e.Message)) {
			r.Errorf("the error of the code: %s", found)
		}
	}
}
