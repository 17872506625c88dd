package rest_test

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/audit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// Operations without GET change something, except these, which may find nothing to change.
var mayChangeNothing = []string{
	"/client_sessions/get_or_create",
	"/devices/report_provider_metadata",
	"/deviceaccess/webhooks/send_test", // changes nothing in any case
}

// The server discovers what these create later.
var foundLater = []string{"/access_codes/simulate/create_unmanaged_access_code"}

func changes(doc *openapi3.T, path string) bool {
	item := doc.Paths.Value(path)
	return item != nil && item.Get == nil && !public(item.Post)
}

func public(op *openapi3.Operation) bool {
	return op.Security != nil &&
		slices.ContainsFunc(*op.Security, func(r openapi3.SecurityRequirement) bool { return len(r) == 0 })
}

func auditEntries(t *testing.T, s *apptest.Server, f audit.Filter) (all []audit.Entry) {
	t.Helper()
	for e, err := range s.App.Access.Audit.Audit(t.Context(), f) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// idsIn are the identifiers of what an answer is about.
func idsIn(out in) (ids []audit.Subject) {
	for name, value := range out {
		object, _ := value.(in)
		text, _ := object[name+"_id"].(string)
		if id, err := uuid.Parse(text); err == nil && audit.IsSubject(name+"_id") {
			ids = append(ids, audit.Subject{Kind: name + "_id", ID: id})
		}
	}
	return ids
}

// isAudited checks that each request that changed something has one entry in the audit log, and that other requests
// have none. made has the identifiers from responses, by path.
func isAudited(t *testing.T, s *apptest.Server, doc *openapi3.T, made map[string][]audit.Subject) {
	t.Helper()
	credentials, err := s.App.Access.Auth.ListCredentials(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	actors := map[uuid.UUID]auth.Credential{}
	for _, c := range credentials {
		actors[c.ID] = c
	}
	entries, subjects := map[string][]audit.Entry{}, map[string][]audit.Subject{}
	for _, e := range auditEntries(t, s, audit.Filter{}) {
		if e.RequestID == nil {
			continue // the test has it from somewhere else
		}
		id := e.RequestID.String()
		entries[id], subjects[e.Operation] = append(entries[id], e), append(subjects[e.Operation], e.Subjects...)
	}
	tried := map[string]int{}
	for _, r := range s.Requests() {
		got := entries[r.ID]
		delete(entries, r.ID)
		if !changes(doc, r.Path) || r.Replayed || r.Status != http.StatusOK {
			if len(got) > 0 {
				t.Errorf("%s %s, with status %d, has left %+v", r.Method, r.Path, r.Status, got)
			}
			continue
		}
		tried[r.Path]++
		switch {
		case len(got) == 0 && slices.Contains(mayChangeNothing, r.Path):
			continue
		case len(got) != 1:
			t.Errorf(
				"%s %s has left %d entries in the audit log, want one. Is it changed outside of a transaction, or with another context? %+v",
				r.Method,
				r.Path,
				len(got),
				got,
			)
			continue
		}
		e := got[0]
		c, known := actors[*cmpID(e.ActorID)]
		if !known || e.ActorKind != string(c.Kind) || e.ActorName != c.Name || e.Operation != r.Path ||
			e.WorkspaceID == nil ||
			e.At.IsZero() {
			t.Errorf("%s %s has left %+v", r.Method, r.Path, e)
		}
		if len(e.Subjects) == 0 && !strings.HasPrefix(r.Path, "/workspaces/") {
			t.Errorf("%s %s names nothing that it has changed", r.Method, r.Path)
		}
	}
	if len(entries) > 0 {
		t.Errorf("no request belongs to %+v", entries)
	}
	for path := range doc.Paths.Map() {
		if changes(doc, path) && tried[path] == 0 && !slices.Contains(findNothing, path) {
			t.Errorf("%s was not carried out: try it in TestResponsesMatchContract", path)
		}
		for _, id := range made[path] {
			if changes(doc, path) && !slices.Contains(foundLater, path) && !slices.Contains(subjects[path], id) {
				t.Errorf("no entry of %s names the %s that it has answered with", path, id.Kind)
			}
		}
	}
}

// A request is found by its identifier, and its changes by theirs.
func TestAuditLogNamesCaller(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("schlage"))
	device, workspace := s.Device(t, "schlage"), uuid.MustParse(s.WorkspaceID)
	issue := func(kind domain.CredentialKind, name string) (string, uuid.UUID) {
		token, c, err := s.App.Access.Auth.IssueCredential(
			t.Context(),
			auth.NewCredential{Kind: kind, Name: name, WorkspaceIDs: []uuid.UUID{workspace}},
		)
		if err != nil {
			t.Fatal(err)
		}
		return token, c.ID
	}
	last := func() *uuid.UUID { // the request before
		t.Helper()
		all := s.Requests()
		id, err := uuid.Parse(all[len(all)-1].ID)
		if err != nil {
			t.Fatal(err)
		}
		return &id
	}
	one := func(kind string, actor uuid.UUID, name, operation string) audit.Entry {
		t.Helper()
		got := auditEntries(t, s, audit.Filter{RequestID: last()})
		if len(got) != 1 || got[0].ActorKind != kind || *cmpID(got[0].ActorID) != actor || got[0].ActorName != name ||
			got[0].Operation != operation ||
			*cmpID(got[0].WorkspaceID) != workspace {
			t.Fatalf("%s by %s %s has left %+v", operation, kind, actor, got)
		}
		return got[0]
	}

	key, keyID := issue(domain.APIKey, "front desk")
	as := &apptest.Server{URL: s.URL, APIKey: key}
	code := must(t, as, "/access_codes/create", "access_code", in{"device_id": device, "code": "4711", "name": "Jane Doe"})["access_code_id"].(string)
	e := one("api_key", keyID, "front desk", "/access_codes/create")
	if e.Outcome != "pending" ||
		!slices.ContainsFunc(
			e.Subjects,
			func(x audit.Subject) bool { return x.Kind == "device_id" && x.ID.String() == device },
		) {
		t.Errorf("creating a code logged %+v", e)
	}
	must(
		t,
		as,
		"/devices/report_provider_metadata",
		"",
		in{"devices": []any{in{"device_id": device, "schlage_metadata": in{"time_zone": "Europe/Zurich"}}}},
	)
	if e := one("api_key", keyID, "front desk", "/devices/report_provider_metadata"); e.Outcome != "done" {
		t.Errorf("what was done at once has left %+v", e)
	}

	end, endID := issue(domain.ConsoleSession, "")
	pat, patID := issue(domain.PAT, "terraform")
	for token, want := range map[string]uuid.UUID{end: endID, pat: patID} {
		kind, name := "console_session", ""
		if token == pat {
			kind, name = "pat", "terraform"
		}
		var answer in
		header := http.Header{"Authorization": {"Bearer " + token}, "Seam-Workspace": {s.WorkspaceID}}
		if res := s.Send(
			t,
			http.MethodPost,
			"/access_codes/update",
			header,
			`{"access_code_id":"`+code+`","name":"By `+kind[:3]+`"}`,
			&answer,
		); res.StatusCode != http.StatusOK {
			t.Fatalf("update with a %s: %v", kind, answer)
		}
		one(kind, want, name, "/access_codes/update")
	}
	session := must(
		t,
		as,
		"/client_sessions/create",
		"client_session",
		in{"user_identifier_key": "jane@example.com", "connected_account_ids": []any{accountID(t, s)}},
	)
	if status := s.PostAs(
		t,
		session["token"].(string),
		"/access_codes/delete",
		in{"access_code_id": code},
		nil,
	); status != http.StatusOK {
		t.Fatalf("delete with a client session: status %d", status)
	}
	one("client_session", uuid.MustParse(session["client_session_id"].(string)), "", "/access_codes/delete")

	id := uuid.MustParse(code)
	var told []string
	for _, e := range auditEntries(t, s, audit.Filter{SubjectID: &id, OldestFirst: true}) {
		told = append(told, e.Operation)
	}
	if want := []string{
		"/access_codes/create",
		"/access_codes/update",
		"/access_codes/update",
		"/access_codes/delete",
	}; !slices.Equal(
		told,
		want,
	) {
		t.Errorf("of the code is told %v, want %v", told, want)
	}
	others := must(
		t,
		s,
		"/client_sessions/create",
		"client_session",
		in{"user_identifier_key": "joe@example.com", "connected_account_ids": []any{accountID(t, s)}},
	)
	if status := s.PostAs(
		t,
		others["token"].(string),
		"/devices/update",
		in{"device_id": device, "name": "Back Door"},
		nil,
	); status != http.StatusOK {
		t.Fatalf("update with a client session: status %d", status)
	}
	must(t, as, "/client_sessions/revoke", "", in{"client_session_id": others["client_session_id"]})
	told = nil
	for _, e := range auditEntries(t, s, audit.Filter{Actor: strings.ToUpper(keyID.String()), OldestFirst: true}) { // with the sessions that it has made
		told = append(told, e.Operation)
	}
	if want := []string{
		"/access_codes/create",
		"/devices/report_provider_metadata",
		"/client_sessions/create",
		"/access_codes/delete",
		"/client_sessions/revoke",
	}; !slices.Equal(
		told,
		want,
	) {
		t.Errorf("of the key is told %v, want %v", told, want)
	}
	for _, e := range auditEntries(t, s, audit.Filter{}) { // no people
		if text := fmt.Sprintf("%+v", e); strings.Contains(text, "Jane Doe") || strings.Contains(text, "jane@") {
			t.Errorf("an entry tells too much: %s", text)
		}
	}
	for name, f := range map[string]audit.Filter{
		"actor": {Actor: keyID.String()}, "name": {Actor: "terraform"}, "kind": {Actor: "client_session"}, "operation": {Operation: "/access_codes/"},
		"workspace": {WorkspaceID: &workspace}, "until": {Until: time.Now().Add(time.Hour)},
	} {
		some := len(auditEntries(t, s, f))
		if all := len(
			auditEntries(t, s, audit.Filter{}),
		); some == 0 ||
			name != "until" && name != "workspace" && some >= all {
			t.Errorf("by %s %d of %d entries are found", name, some, all)
		}
	}
	if n := len(auditEntries(t, s, audit.Filter{Since: time.Now().Add(time.Hour)})); n != 0 {
		t.Errorf("%d entries are from the future", n)
	}
}

func accountID(t *testing.T, s *apptest.Server) any {
	t.Helper()
	_, out := call(t, s, http.MethodPost, "/connected_accounts/list", in{})
	return out["connected_accounts"].([]any)[0].(in)["connected_account_id"]
}

// A change whose audit entry cannot be written is not made.
func TestChangesNeedAuditEntry(t *testing.T) {
	t.Parallel()
	dsn := storetest.New(t)
	s := apptest.Start(t, apptest.WithProfiles("august"), func(c *app.Config) { c.DatabaseURL = dsn })
	db, err := store.Open(t.Context(), dsn, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	hook := must(t, s, "/webhooks/create", "webhook", in{"url": "https://hooks.example/x"})["webhook_id"]
	if _, err := db.Pool.Exec(
		t.Context(),
		"alter table audit_log add constraint full_disk check (operation = '') not valid",
	); err != nil {
		t.Fatal(err)
	}
	before := len(auditEntries(t, s, audit.Filter{}))
	for path, params := range map[string]in{
		"/webhooks/create": {"url": "https://hooks.example/y"}, "/webhooks/delete": {"webhook_id": hook}, "/webhooks/update": {"webhook_id": hook, "event_types": []string{"device.added"}},
		"/deviceaccess/webhooks/rotate_secret": {"webhook_id": hook},
		"/access_codes/create":                 {"device_id": s.Device(t, "august"), "code": "4711"}, "/connect_webviews/create": {},
	} {
		for _, key := range []string{"", uuid.NewString()} {
			if status, out, _ := callWith(
				t,
				s,
				http.MethodPost,
				path,
				params,
				key,
			); status != http.StatusInternalServerError {
				t.Errorf("%s: status %d: %v", path, status, out)
			}
		}
	}
	_, hooks := call(t, s, http.MethodPost, "/webhooks/list", in{})
	_, codes := call(t, s, http.MethodPost, "/access_codes/list", in{"device_id": s.Device(t, "august")})
	_, pages := call(t, s, http.MethodPost, "/connect_webviews/list", in{})
	if len(hooks["webhooks"].([]any)) != 1 || len(codes["access_codes"].([]any)) != 0 ||
		len(pages["connect_webviews"].([]any)) != 0 ||
		!reflect.DeepEqual(hooks["webhooks"].([]any)[0].(in)["event_types"], []any{"*"}) {
		t.Errorf("something was changed: %v %v %v", hooks, codes, pages)
	}
	if _, err := db.Pool.Exec(t.Context(), "alter table audit_log drop constraint full_disk"); err != nil {
		t.Fatal(err)
	}
	if after := len(auditEntries(t, s, audit.Filter{})); after != before {
		t.Errorf("%d entries of what did not happen", after-before)
	}
	for _, missing := range []string{
		"/webhooks/delete", "/webhooks/update", "/deviceaccess/webhooks/rotate_secret",
	} {
		if status, _ := call(
			t,
			s,
			http.MethodPost,
			missing,
			in{"webhook_id": uuid.NewString(), "event_types": []string{"*"}},
		); status != http.StatusNotFound {
			t.Errorf("%s of no webhook: status %d", missing, status)
		}
	}
	if after := len(auditEntries(t, s, audit.Filter{})); after != before {
		t.Errorf("%d entries of what was not found", after-before)
	}
}

func cmpID(id *uuid.UUID) *uuid.UUID {
	if id == nil {
		return &uuid.Nil
	}
	return id
}
