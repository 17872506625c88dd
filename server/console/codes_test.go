package console_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/console"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/operator"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// fakeOperators knows one operator per role, on any server. The token of a session is the role, with the suffix longAgo
// if the operator signed in an hour ago.
type fakeOperators struct{}

const longAgo = "-long-ago"

func (fakeOperators) Session(_ context.Context, token string) (operator.Session, error) {
	role, isOld := strings.CutSuffix(token, longAgo)
	signedIn := time.Now()
	if isOld {
		signedIn = signedIn.Add(-time.Hour)
	}
	return operator.Session{
		ID:         uuid.New(),
		CSRF:       "secret of " + token,
		SignedInAt: signedIn,
		Operator: operator.Operator{
			ID:    uuid.New(),
			Email: role + "@example.com",
			Roles: map[uuid.UUID]domain.Role{uuid.Nil: domain.Role(role)},
		},
	}, nil
}

func (o fakeOperators) FindSession(ctx context.Context, token string) (operator.Session, error) {
	return o.Session(ctx, token)
}

func (fakeOperators) Principal(s operator.Session, workspace uuid.UUID) (domain.Principal, bool) {
	return domain.Principal{
		WorkspaceID:  workspace,
		CredentialID: s.Operator.ID,
		Kind:         "operator",
		Role:         s.Operator.RoleIn(workspace),
		Name:         s.Operator.Email,
	}, true
}

// inFront returns a console with fakeOperators in front of a server.
func inFront(t *testing.T, s *apptest.Server, o console.Options) *bed {
	t.Helper()
	o.Access, o.ACS, o.Operators = s.App.Access, s.App.ACS, fakeOperators{}
	c := httptest.NewServer(console.New(o))
	t.Cleanup(c.Close)
	b := &bed{Server: s, console: c.URL, sessions: map[domain.Role]session{}}
	for _, role := range domain.Roles {
		for _, token := range []string{string(role), string(role) + longAgo} {
			b.sessions[domain.Role(token)] = session{token, "secret of " + token}
		}
	}
	return b
}

// pin is planted in tests: no page but the revealed one may contain it.
const pin = "739164"

// newCode creates a code through the API and waits until the lock has it.
func (b *bed) newCode(t *testing.T, fields map[string]any) string {
	t.Helper()
	var made api.AccessCodeCreatedResponse
	fields["sync"] = true
	if status := b.Post(t, "/access_codes/create", fields, &made); status != http.StatusOK {
		t.Fatalf("create a code: %d", status)
	}
	return made.AccessCode.AccessCodeID
}

// sharedBed is a console in front of the server that tests share.
func sharedBed(t *testing.T, profiles ...string) *bed {
	t.Helper()
	return inFront(t, apptest.Shared(t, apptest.WithProfiles(profiles...)), console.Options{Reveal: true})
}

func TestCodes_ListAndPage(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, "august", "yale")
	august, yale := b.Device(t, "august"), b.Device(t, "yale")
	until := time.Now().Add(48 * time.Hour).UTC().Format(time.RFC3339)
	one := b.newCode(t, map[string]any{"device_id": august, "code": pin, "name": "Gardener"})
	two := b.newCode(t, map[string]any{
		"device_id": yale,
		"name":      "Weekend",
		"starts_at": time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339),
		"ends_at":   until,
	})

	list := b.open(t, domain.RoleViewer, "/codes")
	list.shows(
		t,
		http.StatusOK,
		"Gardener",
		"Weekend",
		"Front Door",
		"Back Door",
		"Always",
		"From–to",
		"begins",
		"Key ",
	)
	list.hides(t, pin)
	for query, want := range map[string]string{
		"?q=gard":           "Gardener",
		"?kind=always":      "Gardener",
		"?status=set":       "Gardener",
		"?lock=" + august:   "Gardener",
		"?kind=time_bound":  "Weekend",
		"?status=unset":     "Weekend",
		"?lock=" + yale:     "Weekend",
		"?older=10m":        "No codes here",
		"?status=failing":   "No codes here",
		"?kind=one_time":    "No codes here",
		"?status=nonsense":  "Gardener",
		"?after=nonsense":   "Gardener",
		"?lock=no&q=week":   "Weekend",
		"?status=unset&q=G": "No codes here",
	} {
		page := b.open(t, domain.RoleViewer, "/codes"+query)
		page.shows(t, http.StatusOK, want)
		for _, name := range []string{"Gardener", "Weekend"} {
			if name != want && !strings.Contains(query, "nonsense") {
				page.hides(t, name)
			}
		}
	}

	page := b.open(t, domain.RoleOperator, "/codes/"+one)
	page.shows(t, http.StatusOK, "Gardener", "Front Door", "Reveal PIN", "Rename", "Remove", "The code opens.",
		"Set the code: done", "Created the code", "deviceaccess_access_code", "var.gardener_pin")
	page.hides(t, pin, "Change end", "Try again now")
	b.open(t, domain.RoleOperator, "/codes/"+two).shows(t, http.StatusOK, "Change end", "Begins", "Ends")
	viewed := b.open(t, domain.RoleViewer, "/codes/"+one)
	viewed.shows(t, http.StatusOK, "Gardener")
	viewed.hides(t, pin, "Reveal PIN", "Rename", "Remove")
	b.open(t, domain.RoleViewer, "/codes/"+august).shows(t, http.StatusNotFound)

	lock := b.open(t, domain.RoleViewer, "/locks/"+august)
	lock.shows(t, http.StatusOK, "Gardener", "unmanaged codes", "4 to 6 digits", "The code opens.", "Created the code")
	lock.hides(t, pin, "Refresh now", "Unlock</button>")
}

func TestCodes_Actions(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, "august")
	lock := b.Device(t, "august")
	starts, ends := time.Now().Add(time.Hour).UTC(), time.Now().Add(2*time.Hour).UTC()
	code := b.newCode(t, map[string]any{
		"device_id": lock,
		"code":      pin,
		"name":      "Guest",
		"starts_at": starts.Format(time.RFC3339),
		"ends_at":   ends.Format(time.RFC3339),
	})
	read := func() api.AccessCode {
		var out api.AccessCodeResponse
		b.Post(t, "/access_codes/get", map[string]any{"access_code_id": code}, &out)
		return out.AccessCode
	}
	path := "/codes/" + code
	for _, action := range []string{"/retry", "/extend", "/rename", "/remove", "/reveal"} {
		b.submit(t, domain.RoleViewer, path+action, nil).shows(t, http.StatusForbidden)
	}

	b.submit(t, domain.RoleOperator, path+"/rename", url.Values{"name": {"Guest of June"}}).
		redirects(t, b, path+"?done=code-renamed")
	b.submit(t, domain.RoleOperator, path+"/rename", nil).shows(t, http.StatusUnprocessableEntity, "Enter a name")
	later := ends.Add(time.Hour).Truncate(time.Minute)
	b.submit(t, domain.RoleOperator, path+"/extend", url.Values{"ends_at": {later.Format("2006-01-02T15:04")}}).
		redirects(t, b, path+"?done=code-extended")
	b.submit(t, domain.RoleOperator, path+"/extend", url.Values{"ends_at": {"soon"}}).
		shows(t, http.StatusUnprocessableEntity, "Enter a date and a time")
	b.submit(t, domain.RoleOperator, path+"/extend", url.Values{"ends_at": {"2001-01-01T10:00"}}).
		shows(t, http.StatusUnprocessableEntity)
	if c := read(); *c.Name != "Guest of June" || !c.EndsAt.Equal(later) || *c.Code != pin {
		t.Errorf("after the changes: %q until %v", *c.Name, c.EndsAt)
	}
	b.submit(t, domain.RoleOperator, path+"/retry", nil).redirects(t, b, path+"?done=code-retried")
	b.open(t, domain.RoleViewer, path).shows(t, http.StatusOK, "operator@example.com", "Changed the code")
	b.submit(t, domain.RoleOperator, path+"/remove", nil).redirects(t, b, "/locks/"+lock+"?done=code-removed")
	apptest.Until(t, "the code is removed", func() bool {
		return b.Post(t, "/access_codes/get", map[string]any{"access_code_id": code}, nil) == http.StatusNotFound
	})
	b.submit(t, domain.RoleOperator, path+"/remove", nil).shows(t, http.StatusNotFound)
}

// A code that the lock has refused is set once the cause is removed and an operator tries again.
func TestCodes_RetryOfRefusedCode(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, "august")
	device := b.Device(t, "august")
	lock := b.Lock(t, device)
	lock.Control(t, http.MethodPut, "/faults", sandbox.Faults{FailureRate: map[string]float64{"full": 1}})
	var made api.AccessCodeCreatedResponse
	b.Post(t, "/access_codes/create", map[string]any{"device_id": device, "code": pin, "name": "Guest"}, &made)
	apptest.Until(t, "the lock refuses the code", func() bool {
		return strings.Contains(b.open(t, domain.RoleViewer, "/codes?status=failing").body, "Guest")
	})
	path := "/codes/" + made.AccessCode.AccessCodeID
	page := b.open(t, domain.RoleOperator, path)
	page.shows(t, http.StatusOK, "Try again now", "Remove a code from the lock", "Set the code: failed")
	page.hides(t, pin)
	lock.Control(t, http.MethodPut, "/faults", sandbox.Faults{})
	b.submit(t, domain.RoleOperator, path+"/retry", nil).redirects(t, b, path+"?done=code-retried")
	apptest.Until(t, "the lock has the code", func() bool { return lock.Has(t, pin) })
}

func TestCodes_NewCodeForm(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, "august", "igloohome")
	lock := b.Device(t, "august")
	b.Post(t, "/devices/report_provider_metadata", map[string]any{
		"devices": []any{map[string]any{"device_id": lock, "time_zone": "Pacific/Auckland"}},
	}, nil)
	path := "/locks/" + lock + "/codes/new"
	form := b.open(t, domain.RoleOperator, path)
	form.shows(t, http.StatusOK, "Front Door", "4 to 6 digits", "Always", "From–to")
	form.hides(t, "Opens once</label>")
	b.open(t, domain.RoleOperator, "/locks/"+b.Device(t, "igloohome")+"/codes/new").
		shows(t, http.StatusOK, "Opens once", "29 to 367 days")
	b.submit(t, domain.RoleViewer, path, nil).shows(t, http.StatusForbidden)

	refused := b.submit(t, domain.RoleOperator, path, url.Values{
		"name":      {"Guest"},
		"kind":      {"time_bound"},
		"code":      {pin + "5"},
		"starts_at": {"2040-06-07T15:00"},
		"ends_at":   {"2040-06-06T15:00"},
	})
	refused.shows(
		t,
		http.StatusUnprocessableEntity,
		"This device takes codes of 4, 5 or 6 digits",
		"ends_at must be after",
		`value="Guest"`,
		`value="2040-06-07T15:00"`,
		`aria-invalid="true"`,
	)
	refused.hides(t, pin)
	b.submit(t, domain.RoleOperator, path, url.Values{"kind": {"time_bound"}, "starts_at": {"x"}}).
		shows(t, http.StatusUnprocessableEntity, "Enter a date and a time", "Enter when the code ends.")

	made := b.submit(t, domain.RoleOperator, path, url.Values{
		"name":      {"Guest"},
		"kind":      {"time_bound"},
		"code":      {pin},
		"starts_at": {"2040-06-07T15:00"},
		"ends_at":   {"2040-06-08T11:00"},
	})
	to := strings.TrimPrefix(made.Header.Get("Location"), "/console/w/"+b.WorkspaceID+"/codes/")
	id, _, _ := strings.Cut(to, "?")
	var out api.AccessCodeResponse
	b.Post(t, "/access_codes/get", map[string]any{"access_code_id": id}, &out)
	zone, err := time.LoadLocation("Pacific/Auckland")
	if err != nil {
		t.Fatal(err)
	}
	if c := out.AccessCode; c.StartsAt == nil || !c.StartsAt.Equal(time.Date(2040, 6, 7, 15, 0, 0, 0, zone)) ||
		*c.Code != pin {
		t.Errorf("the code starts at %v; the form leads to %q", c.StartsAt, to)
	}
	b.open(t, domain.RoleViewer, "/codes/"+id).
		shows(t, http.StatusOK, "Console (operator@example.com)", "2040-06-07 15:00:00 NZST")

	twin := b.submit(t, domain.RoleOperator, path, url.Values{"code": {pin}, "kind": {"always"}})
	twin.shows(t, http.StatusUnprocessableEntity, "input-error")
	twin.hides(t, pin)
}

func TestUnmanaged_ConvertAndImport(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, "august", "kwikset")
	lock := b.Device(t, "august")
	path := "/locks/" + lock + "/unmanaged"
	apptest.Until(t, "the codes are read", func() bool { return len(b.UnmanagedCodes(t, lock)) == 3 })
	codes := b.UnmanagedCodes(t, lock)
	page := b.open(t, domain.RoleOperator, path)
	page.shows(t, http.StatusOK, "Cleaner", "Owner", "Maintenance", "Manage here")
	for _, c := range codes {
		page.hides(t, *c.Code)
	}
	b.open(t, domain.RoleViewer, path).hides(t, "Manage here")
	b.submit(t, domain.RoleViewer, path+"/convert", nil).shows(t, http.StatusForbidden)
	b.submit(t, domain.RoleOperator, path+"/convert", nil).shows(t, http.StatusUnprocessableEntity, "Tick at least one")

	first, second := codes[0].AccessCodeID, codes[1].AccessCodeID
	terraform := b.open(t, domain.RoleViewer, path+"/import?code="+first+"&code="+second)
	terraform.shows(t, http.StatusOK, lock+"/"+first, lock+"/"+second)
	terraform.hides(t, *codes[0].Code, codes[2].AccessCodeID)

	b.submit(t, domain.RoleOperator, path+"/convert", url.Values{"code": {first, second}}).
		redirects(t, b, path+"?done=codes-converted")
	apptest.Until(t, "the codes are managed", func() bool { return len(b.UnmanagedCodes(t, lock)) == 1 })
	b.open(t, domain.RoleViewer, "/codes/"+first).shows(t, http.StatusOK, "Console (operator@example.com)")

	// Each conversion that fails is reported.
	b.Exec(t, "update access_codes set removing_since = now() where access_code_id = $1", codes[2].AccessCodeID)
	b.submit(t, domain.RoleOperator, path+"/convert", url.Values{"code": {codes[2].AccessCodeID}}).
		shows(t, http.StatusConflict, *codes[2].Name, "cannot be converted")
}

func TestReveal(t *testing.T) {
	t.Parallel()
	b := inFront(t, apptest.Start(t, apptest.WithProfiles("august")), console.Options{Reveal: true})
	code := b.newCode(t, map[string]any{"device_id": b.Device(t, "august"), "code": pin, "name": "Guest"})
	path := "/codes/" + code
	reveals := func() int {
		n := 0
		for _, r := range b.Rows(t)["audit_log"] {
			if r["operation"] == "pin.revealed" {
				n++
			}
		}
		return n
	}

	refused := b.submit(t, domain.RoleViewer, path+"/reveal", nil)
	refused.shows(t, http.StatusForbidden)
	refused.hides(t, pin)
	for _, role := range []domain.Role{domain.RoleOperator, domain.RoleAdmin} {
		late := b.submit(t, role+longAgo, path+"/reveal", nil)
		late.shows(t, http.StatusForbidden, "at most 10 minutes old", "/console/confirm?next=")
		late.hides(t, pin)
	}
	if n := reveals(); n != 0 {
		t.Fatalf("%d entries after refusals", n)
	}
	for n, role := range []domain.Role{domain.RoleOperator, domain.RoleAdmin} {
		shown := b.submit(t, role, path+"/reveal", nil)
		shown.shows(t, http.StatusOK, pin)
		if cache := shown.Header.Get("Cache-Control"); cache != "no-store" {
			t.Errorf("Cache-Control is %q", cache)
		}
		if to := shown.Header.Get(
			"Refresh",
		); !strings.HasPrefix(to, "15; url=/console/w/") ||
			!strings.HasSuffix(to, path) {
			t.Errorf("Refresh is %q", to)
		}
		if has := reveals(); has != n+1 {
			t.Errorf("%d entries after %d reveals", has, n+1)
		}
	}
	page := b.open(t, domain.RoleViewer, path)
	page.shows(t, http.StatusOK, "Saw the PIN", "admin@example.com")
	page.hides(t, pin)

	// Without an entry in the audit log, there is no PIN.
	b.Exec(t, "alter table audit_log add constraint no_reveals check (operation <> 'pin.revealed') not valid")
	failed := b.submit(t, domain.RoleAdmin, path+"/reveal", nil)
	failed.shows(t, http.StatusInternalServerError)
	failed.hides(t, pin)

	// Switched off, there is no button and no page.
	off := inFront(t, b.Server, console.Options{})
	off.open(t, domain.RoleAdmin, path).hides(t, "Reveal PIN")
	gone := off.submit(t, domain.RoleAdmin, path+"/reveal", nil)
	gone.shows(t, http.StatusNotFound)
	gone.hides(t, pin)
}

// An unreadable PIN looks different from a hidden one, and there is nothing to reveal.
func TestReveal_UnreadablePIN(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, "august")
	code := b.newCode(t, map[string]any{"device_id": b.Device(t, "august"), "code": pin})
	b.Exec(t, "update access_codes set pin_sealed = null, pin_mac = null where access_code_id = $1", code)
	page := b.open(t, domain.RoleAdmin, "/codes/"+code)
	page.shows(t, http.StatusOK, "Unreadable")
	page.hides(t, "Reveal PIN", "••••")
	b.submit(t, domain.RoleAdmin, "/codes/"+code+"/reveal", nil).shows(t, http.StatusConflict, "unreadable")
}
