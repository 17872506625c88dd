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
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/operator"
)

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
func (v visitor) newWebhook(address string, types ...string) (id string, created answer) {
	v.t.Helper()
	pairs := []string{"url", address}
	for _, t := range types {
		pairs = append(pairs, "type", t)
	}
	created = v.submit("/webhooks", pairs...)
	found := regexp.MustCompile(`/webhooks/([0-9a-f-]{36})"`).FindStringSubmatch(created.body)
	if created.StatusCode != http.StatusOK || found == nil {
		v.t.Fatalf("create a webhook: status %d: %s", created.StatusCode, created.main())
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
	v.open("/webhooks").shows(t, http.StatusOK, "No webhook yet", "New webhook")
	v.open("/webhooks/new").shows(t, http.StatusOK, "access_code.set_on_device")
	if got := v.submit("/webhooks", "url", r.URL); got.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("without types: status %d", got.StatusCode)
	}
	id, created := v.newWebhook(r.URL+"/in?token=hush-hush", "access_code.created")
	secret := secretPattern.FindString(created.body)
	if secret == "" || created.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the secret is not shown, or the page is stored: %q", created.Header.Get("Cache-Control"))
	}
	created.hides(t, "hush-hush")

	list := v.open("/webhooks")
	list.shows(t, http.StatusOK, r.URL+"/in?…", "access_code.created", "Nothing sent yet")
	one := v.open("/webhooks/" + id)
	for _, page := range []answer{list, one} {
		page.hides(t, "hush-hush", secret)
	}
	v.open("/webhooks?type=device.added").shows(t, http.StatusOK, "No webhook matches")

	test := v.submit("/webhooks/" + id + "/test")
	test.shows(t, http.StatusOK, "accepted the test event", "200 OK")
	r.status.Store(http.StatusInternalServerError)
	test = v.submit("/webhooks/" + id + "/test")
	test.shows(t, http.StatusOK, "500 Internal Server Error", "The receiver failed")

	rotated := v.submit("/webhooks/" + id + "/rotate")
	if again := secretPattern.FindString(rotated.body); again == "" || again == secret {
		t.Error("the page does not show a new secret")
	}
	rotated.shows(t, http.StatusOK, "Both secrets sign until")
	v.act("/webhooks/"+id+"/types", "all", "yes")
	v.open("/webhooks/"+id).shows(t, http.StatusOK, "all events", "Old secret")
	v.act("/webhooks/" + id + "/disable")
	v.open("/webhooks/"+id).shows(t, http.StatusOK, "An operator disabled it in the console.", "Enable")
	v.act("/webhooks/" + id + "/enable")
	v.act("/webhooks/" + id + "/delete")
	if got := b.open(t, domain.RoleAdmin, "/webhooks/"+id).StatusCode; got != http.StatusNotFound {
		t.Errorf("after its deletion: status %d", got)
	}
	if got := b.as(t, domain.RoleOperator).
		submit("/webhooks", "url", r.URL, "all", "yes"); got.StatusCode != http.StatusForbidden {
		t.Errorf("as an operator: status %d", got.StatusCode)
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
		found := link.FindStringSubmatch(v.open("/webhooks/" + id + "?state=delivered").body)
		if found != nil {
			path = "/webhooks/" + id + found[1]
		}
		return found != nil
	})
	v.open("/webhooks/"+id+"?status=4").shows(t, http.StatusOK, "No delivery matches")
	v.open("/webhooks/"+id+"?status=2&type=access_code.set_on_device").shows(t, http.StatusOK, "200 OK")

	one := v.open(path)
	one.hides(t, plantedPIN)
	one.shows(
		t,
		http.StatusOK,
		"Attempt 1",
		"200 OK",
		"Start of the response",
		"The PIN is hidden here",
		"curl -X POST",
	)
	one.shows(t, http.StatusOK, "&#34;code&#34;: &#34;hidden&#34;")
	before := r.received.Load()
	v.act(path + "/send")
	apptest.Until(t, "it is sent again", func() bool { return r.received.Load() > before })
	apptest.Until(t, "the attempt is listed", func() bool { return strings.Contains(v.open(path).body, "Attempt 2") })
	v.open("/webhooks").shows(t, http.StatusOK, "Working", "successful and 0 failed attempts")
}

func TestWebhooks_Replay(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("august"))
	v, r := b.as(t, domain.RoleAdmin), newReceiver(t)
	r.status.Store(http.StatusGone)
	id, _ := v.newWebhook(r.URL, "access_code.created")
	b.emitCode(t)
	apptest.Until(t, "the delivery is held", func() bool {
		return strings.Contains(v.open("/webhooks/"+id+"?state=held").body, "/deliveries/")
	})
	v.open("/webhooks?state=disabled").shows(t, http.StatusOK, "Disabled", "1 held")
	v.open("/webhooks/"+id+"/replay").
		shows(t, http.StatusOK, "<strong>1</strong>", "1 Held", "Enable the webhook first")
	v.open("/webhooks/"+id+"/replay?type=device.added").shows(t, http.StatusOK, "nothing to send")
	if got := v.submit("/webhooks/"+id+"/replay", "enable", "yes"); got.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("without a period: status %d", got.StatusCode)
	}
	const since, until = "2020-01-01T00:00", "2099-01-01T00:00"
	got := v.submit("/webhooks/"+id+"/replay", "since", since, "until", until)
	if got.StatusCode != http.StatusConflict {
		t.Errorf("without enabling: status %d", got.StatusCode)
	}
	r.status.Store(http.StatusOK)
	v.act("/webhooks/"+id+"/replay", "enable", "yes", "since", since, "until", until)
	apptest.Until(t, "it is delivered", func() bool {
		return strings.Contains(v.open("/webhooks/"+id+"?state=delivered").body, "/deliveries/")
	})
}

// A replay counts and sends at most 10,000 deliveries of the period at a time, and the page has the rest.
func TestWebhooks_ReplayInParts(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("august"))
	v, r := b.as(t, domain.RoleAdmin), newReceiver(t)
	id, _ := v.newWebhook(r.URL, "device.removed")
	v.act("/webhooks/" + id + "/disable")
	b.Exec(t, `with made as (
			insert into events (event_id, workspace_id, event_type, payload, created_at, fanned_out_at)
			select overlay(overlay(md5(i::text) placing lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') from 1)
				placing '7' from 13)::uuid, $1, 'device.removed', '{}', at, at
			from generate_series(1, 10040) i cross join lateral (select now() - interval '1 h' + i * interval '1 ms' as at) x
			returning event_id)
		insert into deliveries (webhook_id, event_id, state, next_attempt_at) select $2, event_id, 'held', now() from made`,
		b.WorkspaceID, id)
	page := v.open("/webhooks/" + id + "/replay")
	page.shows(t, http.StatusOK, "More than 10,000 deliveries", "<strong>10000</strong>")
	v.open("/webhooks/"+id+"/replay?until=2020-01-01T00:00").shows(t, http.StatusOK, "nothing to send")
	v.open("/webhooks/"+id+"/replay?type=device.added").shows(t, http.StatusOK, "Search the rest")
	period := []string{"since", "2020-01-01T00:00", "until", "2099-01-01T00:00"}
	rest := v.submit("/webhooks/"+id+"/replay", append(period, "enable", "yes")...).Header.Get("Location")
	v.open("/webhooks/"+id+"/replay?state=held").shows(t, http.StatusOK, "<strong>40</strong>")
	_, query, _ := strings.Cut(rest, "?")
	v.open("/webhooks/"+id+"/replay?"+query).shows(t, http.StatusOK, "<strong>40</strong>", "This page has the rest")
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	v.act("/webhooks/"+id+"/replay", append(period, "after", values.Get("after"))...)
	v.open("/webhooks/"+id+"/replay?state=held").shows(t, http.StatusOK, "nothing to send")
}

func TestActivity_FiltersAndExports(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("august"))
	v := b.as(t, domain.RoleAdmin)
	code := b.emitCode(t)
	r := newReceiver(t)
	hook, _ := v.newWebhook(r.URL, "device.added")
	apptest.Until(t, "the code is set", func() bool {
		return strings.Contains(v.open("/activity?kind=event&subject="+code).body, "Access code set on device")
	})
	all := v.open("/activity")
	all.shows(
		t,
		http.StatusOK,
		"Created access code",
		"Access code created",
		"Created webhook",
		"admin@example.com",
		"/codes/"+code,
	)
	changes := v.open("/activity?kind=audit&subject=" + code)
	changes.shows(t, http.StatusOK, "Created access code")
	changes.hides(t, "Created webhook", "Access code created")
	v.open("/activity?actor=admin@example").shows(t, http.StatusOK, "/webhooks/"+hook)
	v.open("/activity?what=/webhooks").hides(t, "Created access code")
	v.open("/activity?subject=nonsense").shows(t, http.StatusOK, "Nothing matches")
	v.open("/activity?since=2020-01-01T00:00&until=2020-01-02T00:00").shows(t, http.StatusOK, "Nothing matches")
	request := regexp.MustCompile(`\?request=([0-9a-f-]{36})`).FindStringSubmatch(changes.body)
	if request == nil {
		t.Fatal("the change has no request id")
	}
	v.open("/activity?request="+request[1]).shows(t, http.StatusOK, "Created access code")

	table := v.open("/activity/export?format=csv")
	if !strings.HasPrefix(table.Header.Get("Content-Disposition"), "attachment") {
		t.Error("the export is no download")
	}
	rows, err := csv.NewReader(strings.NewReader(table.body)).ReadAll()
	if err != nil || len(rows) < 4 || rows[0][0] != "at" {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	lines := v.open("/activity/export?format=ndjson&kind=audit&subject=" + code)
	var row struct{ What, Kind string }
	if err := json.Unmarshal(
		[]byte(strings.Split(lines.body, "\n")[0]),
		&row,
	); err != nil ||
		row.What != "/access_codes/create" {
		t.Errorf("%+v: %v", row, err)
	}
	for _, page := range []answer{all, changes, table, lines} {
		page.hides(t, plantedPIN)
	}
}

// Changes of operators are entries of the whole installation: only its administrators see them, on the page and in the
// export.
func TestActivity_ShowsInstallationToItsAdmins(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	const local domain.Role = "admin of the workspace"
	b.sessions[local] = b.signUp(t, operator.NewOperator{
		Email: "local@example.com",
		Roles: map[uuid.UUID]domain.Role{uuid.MustParse(b.WorkspaceID): domain.RoleAdmin},
	})
	_, secret := b.session(t, domain.RoleAdmin)
	b.send(t, domain.RoleAdmin, http.MethodPost, b.console+"/console/access/operators", url.Values{
		"csrf":  {secret},
		"email": {"new@example.com"},
		"role":  {string(domain.RoleViewer)},
	}, nil).shows(t, http.StatusOK)
	for role, sees := range map[domain.Role]bool{domain.RoleAdmin: true, domain.RoleViewer: false, local: false} {
		for _, query := range []string{"", "?kind=audit", "?what=/console/access", "?actor=admin@example.com"} {
			if got := b.open(t, role, "/activity"+query); strings.Contains(got.body, "Console access: invite") != sees {
				t.Errorf("%s, page %q: shown %v, want %v: %s", role, query, !sees, sees, got.main())
			}
			got := b.open(t, role, "/activity/export"+query)
			if strings.Contains(got.body, "/console/access/invite") != sees {
				t.Errorf("%s, export %q: included %v, want %v: %s", role, query, !sees, sees, got.body)
			}
		}
	}
	export := b.open(t, domain.RoleAdmin, "/activity/export?what=/console/access")
	subject := regexp.MustCompile(`operator_id=([0-9a-f-]{36})`).FindStringSubmatch(export.body)
	if subject == nil {
		t.Fatalf("the entry has no subject: %s", export.body)
	}
	b.open(t, domain.RoleAdmin, "/activity?subject="+subject[1]).shows(t, http.StatusOK, "Console access: invite")
	b.open(t, local, "/activity?subject="+subject[1]).hides(t, "Console access: invite")
}

// An export has a period, by default the last 30 days, and says where it stopped at its limit.
func TestActivity_ExportIsBounded(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	v := b.as(t, domain.RoleViewer)
	b.Exec(
		t,
		`insert into audit_log (audit_id, workspace_id, actor_kind, operation, subject_kinds, subject_ids, outcome, occurred_at)
		select gen_random_uuid(), $1, 'api_key', case i when 1 then '/locks/old' else '/locks/many' end, '{}', '{}', 'done',
			now() - case i when 1 then interval '31 days' else i * interval '1 ms' end from generate_series(1, 100021) i`,
		b.WorkspaceID,
	)
	v.open("/activity/export?what=/locks/old").hides(t, "/locks/old")
	v.open("/activity/export?what=/locks/old&until=2099-01-01T00:00").hides(t, "/locks/old")
	v.open("/activity/export?what=/locks/old&since=2020-01-01T00:00").shows(t, http.StatusOK, "/locks/old")
	month := time.Now().AddDate(0, 0, -30).UTC().Format("2006-01-02")
	v.open("/activity").shows(t, http.StatusOK, "from "+month, "at most", "100,000", "since="+month)
	rows, err := csv.NewReader(strings.NewReader(v.open("/activity/export?kind=audit").body)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	last := rows[len(rows)-1]
	if len(rows) != 100_002 || last[1] != "limit" || !strings.Contains(last[6], "100,000 rows") {
		t.Fatalf("%d rows, the last is %q", len(rows), last)
	}
	rest := v.open("/activity/export?format=ndjson&kind=audit&until=" + last[0]).body
	if n := strings.Count(rest, "/locks/many"); n < 20 || n > 21 || strings.Contains(rest, "limit") {
		t.Errorf("the rest has %d rows: %s", n, rest)
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
	rows, err := csv.NewReader(strings.NewReader(export.body)).ReadAll()
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
	if n := strings.Count(first.body, "Changed device"); n != 50 {
		t.Errorf("the first page has %d rows", n)
	}
	first.shows(t, http.StatusOK, "Next page")
}
