package console_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// visitor is a browser without JavaScript and with the session of a role.
type visitor struct {
	*bed
	t    *testing.T
	role domain.Role
}

func (b *bed) as(t *testing.T, role domain.Role) visitor { return visitor{b, t, role} }

// page is a response to a visitor.
type seen struct {
	status int
	header http.Header
	text   string
}

// send requests a page, and does not follow redirects.
func (v visitor) send(method, address string, form url.Values) seen {
	v.t.Helper()
	r, err := http.NewRequest(method, address, strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	token, _ := v.session(v.t, v.role)
	r.AddCookie(&http.Cookie{Name: "deviceaccess", Value: token})
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return seen{resp.StatusCode, resp.Header, string(text)}
}

// open requests a page of the workspace, which must exist.
func (v visitor) open(path string) seen {
	v.t.Helper()
	got := v.send(http.MethodGet, v.page(path), nil)
	if got.status != http.StatusOK {
		v.t.Fatalf("%s: status %d: %.500s", path, got.status, got.text)
	}
	return got
}

// submit sends a form with pairs of names and values.
func (v visitor) submit(path string, pairs ...string) seen {
	v.t.Helper()
	_, secret := v.session(v.t, v.role)
	form := url.Values{"csrf": {secret}}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return v.send(http.MethodPost, v.page(path), form)
}

// act submits a form that must redirect, and returns where to.
func (v visitor) act(path string, pairs ...string) (location string) {
	v.t.Helper()
	got := v.submit(path, pairs...)
	if got.status != http.StatusSeeOther {
		v.t.Fatalf("%s: status %d: %s", path, got.status, alertIn(got.text))
	}
	return got.header.Get("Location")
}

// alertIn returns the part of a page that says what is wrong.
func alertIn(text string) string {
	_, after, _ := strings.Cut(text, `role="alert"`)
	return after[:min(len(after), 600)]
}

func (s seen) shows(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(s.text, text) {
			t.Errorf("the page does not show %q", text)
		}
	}
}

func (s seen) hides(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(s.text, text) {
			t.Errorf("the page shows %q", text)
		}
	}
}

// receiver is the endpoint of webhooks.
type receiver struct {
	*httptest.Server
	status   atomic.Int32
	echo     atomic.Bool // repeat the request
	received atomic.Int32
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.status.Store(http.StatusOK)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.received.Add(1)
		w.WriteHeader(int(r.status.Load()))
		if r.echo.Load() {
			_, _ = io.Copy(w, q.Body)
		} else {
			fmt.Fprint(w, "<b>thanks</b>")
		}
	}))
	t.Cleanup(r.Close)
	return r
}

var secretPattern = regexp.MustCompile(`whsec_[A-Za-z0-9+/=]+`)

// newWebhook creates a webhook with the form.
func (v visitor) newWebhook(address string, types ...string) (id string, created seen) {
	v.t.Helper()
	pairs := []string{"url", address}
	for _, t := range types {
		pairs = append(pairs, "type", t)
	}
	created = v.submit("/webhooks", pairs...)
	found := regexp.MustCompile(`/webhooks/([0-9a-f-]{36})"`).FindStringSubmatch(created.text)
	if created.status != http.StatusOK || found == nil {
		v.t.Fatalf("create a webhook: status %d: %s", created.status, alertIn(created.text))
	}
	return found[1], created
}

// emitCode creates a code with plantedPIN, which emits access_code.created and access_code.set_on_device.
func (b *bed) emitCode(t *testing.T) (id string) {
	t.Helper()
	var out struct {
		Code struct {
			ID string `json:"access_code_id"`
		} `json:"access_code"`
	}
	in := map[string]any{"device_id": b.Device(t, "august"), "name": "Guest", "code": plantedPIN}
	if status := b.Post(t, "/access_codes/create", in, &out); status != http.StatusOK {
		t.Fatalf("create a code: %d", status)
	}
	return out.Code.ID
}

func TestWebhooks_CreateTestRotateDelete(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("august"))
	v, r := b.as(t, domain.RoleAdmin), newReceiver(t)
	v.open("/webhooks").shows(t, "No webhook yet", "New webhook")
	v.open("/webhooks/new").shows(t, "access_code.set_on_device")
	if got := v.submit("/webhooks", "url", r.URL); got.status != http.StatusUnprocessableEntity {
		t.Errorf("without types: status %d", got.status)
	}
	id, created := v.newWebhook(r.URL+"/in?token=hush-hush", "access_code.created")
	secret := secretPattern.FindString(created.text)
	if secret == "" || created.header.Get("Cache-Control") != "no-store" {
		t.Errorf("the secret is not shown, or the page is stored: %q", created.header.Get("Cache-Control"))
	}
	created.hides(t, "hush-hush")

	list := v.open("/webhooks")
	list.shows(t, r.URL+"/in?…", "access_code.created", "Nothing sent yet")
	one := v.open("/webhooks/" + id)
	for _, page := range []seen{list, one} {
		page.hides(t, "hush-hush", secret)
	}
	v.open("/webhooks?type=device.added").shows(t, "No webhook matches")

	test := v.submit("/webhooks/" + id + "/test")
	test.shows(t, "accepted the test event", "200 OK")
	r.status.Store(http.StatusInternalServerError)
	test = v.submit("/webhooks/" + id + "/test")
	test.shows(t, "500 Internal Server Error", "The receiver failed")

	rotated := v.submit("/webhooks/" + id + "/rotate")
	if again := secretPattern.FindString(rotated.text); again == "" || again == secret {
		t.Error("the page does not show a new secret")
	}
	rotated.shows(t, "Both secrets sign until")
	v.act("/webhooks/"+id+"/types", "all", "yes")
	v.open("/webhooks/"+id).shows(t, "all events", "Old secret")
	v.act("/webhooks/" + id + "/disable")
	v.open("/webhooks/"+id).shows(t, "An operator disabled it in the console.", "Enable")
	v.act("/webhooks/" + id + "/enable")
	v.act("/webhooks/" + id + "/delete")
	if got := b.get(t, domain.RoleAdmin, b.page("/webhooks/"+id)); got != http.StatusNotFound {
		t.Errorf("after its deletion: status %d", got)
	}
	if got := b.as(t, domain.RoleOperator).
		submit("/webhooks", "url", r.URL, "all", "yes"); got.status != http.StatusForbidden {
		t.Errorf("as an operator: status %d", got.status)
	}
	b.as(t, domain.RoleViewer).open("/webhooks").hides(t, "/webhooks/new")
}

const plantedPIN = "735192"

func TestWebhooks_DeliveriesWithoutPINs(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("august"))
	v, r := b.as(t, domain.RoleAdmin), newReceiver(t)
	r.echo.Store(true)
	id, _ := v.newWebhook(r.URL, "access_code.created", "access_code.set_on_device")
	b.emitCode(t)
	apptest.Until(t, "both events are delivered", func() bool { return r.received.Load() >= 2 })
	link := regexp.MustCompile(`/webhooks/` + id + `(/deliveries/[0-9a-f-]{36})"[^>]*>access_code.set_on_device<`)
	var path string
	apptest.Until(t, "the delivery is listed", func() bool {
		found := link.FindStringSubmatch(v.open("/webhooks/" + id + "?state=delivered").text)
		if found != nil {
			path = "/webhooks/" + id + found[1]
		}
		return found != nil
	})
	v.open("/webhooks/"+id+"?status=4").shows(t, "No delivery matches")
	v.open("/webhooks/"+id+"?status=2&type=access_code.set_on_device").shows(t, "200 OK")

	one := v.open(path)
	one.hides(t, plantedPIN)
	one.shows(t, "Attempt 1", "200 OK", "Start of the response", "The PIN is hidden here", "curl -X POST")
	one.shows(t, "&#34;code&#34;: &#34;hidden&#34;")
	before := r.received.Load()
	v.act(path + "/send")
	apptest.Until(t, "it is sent again", func() bool { return r.received.Load() > before })
	apptest.Until(t, "the attempt is listed", func() bool { return strings.Contains(v.open(path).text, "Attempt 2") })
	v.open("/webhooks").shows(t, "Working", "successful and 0 failed attempts")
}

func TestWebhooks_Replay(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("august"))
	v, r := b.as(t, domain.RoleAdmin), newReceiver(t)
	r.status.Store(http.StatusGone)
	id, _ := v.newWebhook(r.URL, "access_code.created")
	b.emitCode(t)
	apptest.Until(t, "the delivery is held", func() bool {
		return strings.Contains(v.open("/webhooks/"+id+"?state=held").text, "/deliveries/")
	})
	v.open("/webhooks?state=disabled").shows(t, "Disabled", "1 held")
	v.open("/webhooks/"+id+"/replay").shows(t, "<strong>1</strong>", "1 Held", "Enable the webhook first")
	v.open("/webhooks/"+id+"/replay?type=device.added").shows(t, "nothing to send")
	if got := v.submit("/webhooks/" + id + "/replay"); got.status != http.StatusConflict {
		t.Errorf("without enabling: status %d", got.status)
	}
	r.status.Store(http.StatusOK)
	v.act("/webhooks/"+id+"/replay", "enable", "yes")
	apptest.Until(t, "it is delivered", func() bool {
		return strings.Contains(v.open("/webhooks/"+id+"?state=delivered").text, "/deliveries/")
	})
}

func TestActivity_FiltersAndExports(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("august"))
	v := b.as(t, domain.RoleAdmin)
	code := b.emitCode(t)
	r := newReceiver(t)
	hook, _ := v.newWebhook(r.URL, "device.added")
	apptest.Until(t, "the code is set", func() bool {
		return strings.Contains(v.open("/activity?kind=event&subject="+code).text, "Access code set on device")
	})
	all := v.open("/activity")
	all.shows(t, "Created access code", "Access code created", "Created webhook", "admin@example.com", "/codes/"+code)
	changes := v.open("/activity?kind=audit&subject=" + code)
	changes.shows(t, "Created access code")
	changes.hides(t, "Created webhook", "Access code created")
	v.open("/activity?actor=admin@example").shows(t, "/webhooks/"+hook)
	v.open("/activity?what=/webhooks").hides(t, "Created access code")
	v.open("/activity?subject=nonsense").shows(t, "Nothing matches")
	v.open("/activity?since=2020-01-01T00:00&until=2020-01-02T00:00").shows(t, "Nothing matches")
	request := regexp.MustCompile(`\?request=([0-9a-f-]{36})`).FindStringSubmatch(changes.text)
	if request == nil {
		t.Fatal("the change has no request id")
	}
	v.open("/activity?request="+request[1]).shows(t, "Created access code")

	table := v.open("/activity/export?format=csv")
	if !strings.HasPrefix(table.header.Get("Content-Disposition"), "attachment") {
		t.Error("the export is no download")
	}
	rows, err := csv.NewReader(strings.NewReader(table.text)).ReadAll()
	if err != nil || len(rows) < 4 || rows[0][0] != "at" {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	lines := v.open("/activity/export?format=ndjson&kind=audit&subject=" + code)
	var row struct{ What, Kind string }
	if err := json.Unmarshal(
		[]byte(strings.Split(lines.text, "\n")[0]),
		&row,
	); err != nil ||
		row.What != "/access_codes/create" {
		t.Errorf("%+v: %v", row, err)
	}
	for _, page := range []seen{all, changes, table, lines} {
		page.hides(t, plantedPIN)
	}
}

func TestActivity_PagesHaveEachRowOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("august"))
	v := b.as(t, domain.RoleViewer)
	b.Exec(
		t,
		`insert into audit_log (audit_id, workspace_id, actor_kind, actor_name, operation, subject_kinds, subject_ids, outcome)
		select gen_random_uuid(), $1, 'api_key', '=cmd()', '/devices/update', '{}', '{}', 'done' from generate_series(1, 1200)`,
		b.WorkspaceID,
	)
	export := v.open("/activity/export?format=csv&what=/devices/update")
	rows, err := csv.NewReader(strings.NewReader(export.text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, row := range rows[1:] {
		known[row[2]] = true
		if row[5] != "'=cmd()" {
			t.Fatalf("a spreadsheet takes the cell %q for a formula", row[5])
		}
	}
	if len(known) != 1200 || len(rows) != 1201 {
		t.Errorf("%d rows, of which %d are different", len(rows)-1, len(known))
	}
	first := v.open("/activity?what=/devices/update")
	if n := strings.Count(first.text, "Changed device"); n != 50 {
		t.Errorf("the first page has %d rows", n)
	}
	first.shows(t, "Next page")
}
