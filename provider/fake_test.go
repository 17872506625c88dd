package provider

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
)

const (
	fakeKey       = "seam_test2bMS_94SrGUXuNR2JmJkjtvBQDg5c"
	fakeWorkspace = "11111111-2222-4333-8444-555555555555"
	fakeSecret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

// fake is a server that is asked what no real one can be: which requests were made and which were not. And it
// is odd where other servers of this API are, or where the network is.
type fake struct {
	URL string

	mu       sync.Mutex
	calls    []fakeCall
	odd      map[string][]http.HandlerFunc // by path: answers the next requests instead
	webhooks map[string]*fakeWebhook
	codes    map[string]*fakeCode
	attempts map[string]*fakeAttempt
	effects  []fakeEffect
	devices  []map[string]any // nil: does not have those operations
	webviews map[string]map[string]any
	removed  map[string]bool // devices that the owner has removed from the account

	acsUsers, identities  fakeRecords
	schedules, thresholds fakeRecords

	expandsWildcard bool     // stores the list of all event types instead of "*"
	allTypes        []string // that list
	secretOnce      bool     // tells a webhook's secret only at creation
	noAttempts      bool     // answers without action_attempt
	forgetsAttempts bool     // knows no attempt once it has answered with it
	laterBy         int      // and takes effect only after so many more requests
	noPagination    bool     // answers lists without pagination
	noUnmanagedGet  bool     // does not have that operation
	plainNotFound   bool     // gives no reason for a 404
	listsAllDevices bool     // ignores device_id
	neverSet        bool     // leaves codes at "setting"
	lacks           []string // operations
	omits           []string // what it does not say of codes
	mixesCodes      bool     // has managed and unmanaged codes alike where the contract has managed ones only
	uniquePINs      bool     // refuses the PIN of another code on the lock
	namesNoHolder   bool     // and does not say which code has it
	anyID           bool     // takes identifiers that are no UUIDs
	strictIDs       bool     // refuses such identifiers of webhooks, too
	newID           func() string
	elsewhere       bool // does not know what a workspace is
	pageSize        int  // at most so many records on a page

	workspace string // of the key

	nextAttempt func(*fakeAttempt)               // changes the attempts to come
	front       atomic.Pointer[http.HandlerFunc] // stands before this server
}

type fakeCall struct {
	path string
	body map[string]any
}

type fakeWebhook struct {
	url        string
	eventTypes []string
	secret     string         // empty: fakeSecret
	more       map[string]any // what else it answers
}

// onceOnly leaves a test out where all are played against several instances of the server: its own server is one in
// any case.
func onceOnly(t *testing.T) {
	t.Helper()
	if os.Getenv("INSTANCES") != "" {
		t.Skip("it brings a server of its own")
	}
}

func startFake(t *testing.T) *fake {
	t.Helper()
	onceOnly(t)
	f := &fake{
		odd:        map[string][]http.HandlerFunc{},
		webhooks:   map[string]*fakeWebhook{},
		codes:      map[string]*fakeCode{},
		attempts:   map[string]*fakeAttempt{},
		webviews:   map[string]map[string]any{},
		removed:    map[string]bool{},
		acsUsers:   fakeRecords{},
		identities: fakeRecords{},
		schedules:  fakeRecords{},
		thresholds: fakeRecords{},
		pageSize:   1000,
		workspace:  fakeWorkspace,
		allTypes:   []string{"access_code.created", "device.connected", "device.disconnected"},
		newID:      uuid.NewString,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if front := f.front.Load(); front != nil {
			(*front)(w, r)
			return
		}
		f.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	f.URL = server.URL
	return f
}

// config is the provider block for this fake, and more configuration behind it.
func (f *fake) config(more string) string {
	return `provider "deviceaccess" {
  endpoint = "` + f.URL + `"
  api_key  = "` + fakeKey + `"
}
` + more
}

// then answers the next requests for path in odd ways, one each.
func (f *fake) then(path string, answers ...http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.odd[path] = append(f.odd[path], answers...)
}

// do changes what the server knows behind Terraform's back.
func (f *fake) do(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// count says how often an operation was asked for.
func (f *fake) count(path string) int { return len(f.bodies(path)) }

// bodies are the requests for an operation.
func (f *fake) bodies(path string) []map[string]any {
	f.mu.Lock()
	defer f.mu.Unlock()
	var bodies []map[string]any
	for _, call := range f.calls {
		if call.path == path {
			bodies = append(bodies, call.body)
		}
	}
	return bodies
}

// writes are the operations asked for that change something.
func (f *fake) writes() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var writes []string
	for _, call := range f.calls {
		if !strings.HasSuffix(call.path, "/get") && !strings.HasSuffix(call.path, "/list") {
			writes = append(writes, call.path)
		}
	}
	return writes
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Method != http.MethodPost {
		answerError(400, "invalid_input", "not a JSON body")(w, r)
		return
	}
	f.calls = append(f.calls, fakeCall{r.URL.Path, body})
	f.takeEffect()
	if odd := f.odd[r.URL.Path]; len(odd) > 0 {
		f.odd[r.URL.Path] = odd[1:]
		if odd[0] != nil {
			odd[0](w, r)
			return
		}
	}
	if r.Header.Get("Authorization") != "Bearer "+fakeKey {
		answerError(401, "unauthorized", "API Key not found")(w, r)
		return
	}
	if device, _ := body["device_id"].(string); f.removed[device] {
		answerError(http.StatusNotFound, "device_not_found", "Could not find a device")(w, r)
		return
	}
	f.route(r.URL.Path)(w, r, body)
}

type fakeHandler func(w http.ResponseWriter, r *http.Request, body map[string]any)

func (f *fake) route(path string) fakeHandler {
	routes := map[string]fakeHandler{
		"/workspaces/get": f.getWorkspace, "/devices/list": f.listDevices, "/action_attempts/get": f.getAttempt,
		"/webhooks/create": f.createWebhook, "/webhooks/get": f.getWebhook, "/webhooks/update": f.updateWebhook,
		"/webhooks/delete":     f.deleteWebhook,
		"/access_codes/create": f.createCode, "/access_codes/get": f.getCode, "/access_codes/update": f.updateCode,
		"/access_codes/delete": f.deleteCode, "/access_codes/unmanaged/list": f.listUnmanaged,
		converting: f.convertCode, oldConverting: f.convertCode, deleting: f.deleteCode,
	}
	if f.elsewhere {
		delete(routes, "/workspaces/get")
	}
	if !f.noUnmanagedGet {
		routes["/access_codes/unmanaged/get"] = f.getCode
	}
	maps.Copy(routes, f.lists())
	maps.Copy(routes, f.people())
	maps.Copy(routes, f.connectWebviews())
	maps.Copy(routes, f.climate())
	if f.devices == nil {
		delete(routes, "/devices/list")
		delete(routes, "/devices/get")
	}
	if handler, ok := routes[path]; ok && !f.isMissing(path) {
		return handler
	}
	return func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		http.Error(w, "404", http.StatusNotFound)
	}
}

func (f *fake) getWorkspace(w http.ResponseWriter, r *http.Request, _ map[string]any) {
	answer(map[string]any{"workspace": map[string]any{
		"workspace_id":         f.workspace,
		"name":                 "Sandbox",
		"company_name":         "Acme",
		"connect_partner_name": nil,
		"is_sandbox":           true,
	}})(w, r)
}

func (f *fake) listDevices(w http.ResponseWriter, r *http.Request, body map[string]any) {
	devices := slices.DeleteFunc(slices.Clone(f.devices), func(device map[string]any) bool {
		wanted, filtered := body["device_type"]
		return filtered && device["device_type"] != wanted
	})
	f.answerPage(w, r, "devices", devices, body)
}

// answerPage answers the page of records that the body asks for; a cursor is the index of its first record.
func (f *fake) answerPage(
	w http.ResponseWriter,
	r *http.Request,
	name string,
	records []map[string]any,
	body map[string]any,
) {
	if f.noPagination {
		answer(map[string]any{name: records})(w, r)
		return
	}
	start := 0
	if cursor, ok := body["page_cursor"].(string); ok {
		start = len(cursor)
	}
	end := min(start+f.pageSize, len(records))
	pagination := map[string]any{"has_next_page": false, "next_page_cursor": nil, "next_page_url": nil}
	if end < len(records) {
		pagination = map[string]any{
			"has_next_page":    true,
			"next_page_cursor": strings.Repeat("x", end),
			"next_page_url":    f.URL + "/wrong",
		}
	}
	answer(map[string]any{name: records[start:end], "pagination": pagination})(w, r)
}

func (f *fake) createWebhook(w http.ResponseWriter, r *http.Request, body map[string]any) {
	id := f.newID()
	f.webhooks[id] = &fakeWebhook{url: body["url"].(string)}
	f.setEventTypes(id, body)
	answer(map[string]any{"webhook": f.webhookJSON(id, true)})(w, r)
}

// answerNotFound is the 404 of this server.
func (f *fake) answerNotFound(errorType, message string) http.HandlerFunc {
	if f.plainNotFound {
		return answerRaw(http.StatusNotFound, "text/plain", "")
	}
	return answerError(http.StatusNotFound, errorType, message)
}

func (f *fake) setEventTypes(id string, body map[string]any) {
	var eventTypes []string
	for _, eventType := range body["event_types"].([]any) {
		eventTypes = append(eventTypes, eventType.(string))
	}
	if f.expandsWildcard && slices.Contains(eventTypes, "*") {
		eventTypes = slices.Clone(f.allTypes)
	}
	slices.Reverse(eventTypes) // its order must not matter
	f.webhooks[id].eventTypes = eventTypes
}

func (f *fake) webhookJSON(id string, created bool) map[string]any {
	webhook := map[string]any{"webhook_id": id, "url": f.webhooks[id].url, "event_types": f.webhooks[id].eventTypes}
	if created || !f.secretOnce {
		webhook["secret"] = cmp.Or(f.webhooks[id].secret, fakeSecret)
	}
	maps.Copy(webhook, f.webhooks[id].more)
	return webhook
}

// onWebhook answers 404 for webhooks there are not.
func (f *fake) onWebhook(
	w http.ResponseWriter,
	r *http.Request,
	body map[string]any,
	do func(id string) map[string]any,
) {
	id, _ := body["webhook_id"].(string)
	if f.strictIDs && uuid.Validate(id) != nil {
		answerError(http.StatusBadRequest, "invalid_input", "Invalid uuid for webhook_id")(w, r)
		return
	}
	if f.webhooks[id] == nil {
		f.answerNotFound("webhook_not_found", "Could not find webhook")(w, r)
		return
	}
	answer(do(id))(w, r)
}

func (f *fake) getWebhook(w http.ResponseWriter, r *http.Request, body map[string]any) {
	f.onWebhook(
		w,
		r,
		body,
		func(id string) map[string]any { return map[string]any{"webhook": f.webhookJSON(id, false)} },
	)
}

func (f *fake) updateWebhook(w http.ResponseWriter, r *http.Request, body map[string]any) {
	if body["event_types"] == nil {
		answerError(http.StatusBadRequest, "invalid_input", "event_types is required")(w, r)
		return
	}
	f.onWebhook(w, r, body, func(id string) map[string]any { f.setEventTypes(id, body); return map[string]any{} })
}

func (f *fake) deleteWebhook(w http.ResponseWriter, r *http.Request, body map[string]any) {
	f.onWebhook(w, r, body, func(id string) map[string]any { delete(f.webhooks, id); return map[string]any{} })
}

// answer is a success.
func answer(body map[string]any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		body["ok"] = true
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("seam-request-id", "req-1")
		_ = json.NewEncoder(w).Encode(body)
	}
}

// answerError is an error of the API.
func answerError(status int, errorType, message string) http.HandlerFunc {
	return answerRaw(status, "application/json; charset=utf-8",
		`{"ok": false, "error": {"type": "`+errorType+`", "message": "`+message+`"}}`)
}

// answerRaw is whatever else a network may answer with.
func answerRaw(status int, contentType, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("seam-request-id", "req-2")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}
