// Package fuzz_test sends valid, nearly valid, and hostile requests for every operation of the contract to the whole
// server on a real database.
package fuzz_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest"
)

func TestMain(m *testing.M) { apptest.Main(m) }

// FuzzOperation checks that no request causes a 5xx, a panic, or a response that violates the contract for its status.
// `go test -fuzz FuzzOperation ./test/fuzz` searches for more; testdata keeps what it finds.
func FuzzOperation(f *testing.F) {
	b := newBed(f)
	for seed := range seeds {
		for _, path := range b.paths {
			f.Add(path, stream(path, seed))
		}
	}
	f.Fuzz(func(t *testing.T, path string, input []byte) {
		item := b.doc.Paths.Value(path)
		if item == nil { // the fuzzer has changed the path
			path = b.paths[int(crc32.ChecksumIEEE([]byte(path)))%len(b.paths)]
			item = b.doc.Paths.Value(path)
		}
		g := generator{&choices{input}, func(name string) []string { return b.known(path, name) }}
		b.try(t, g.request(path, item), item)
	})
	for _, path := range b.paths {
		// if few, the operation may need a hint
		f.Logf("%5d requests to %s succeeded", b.ok[path], path)
		if flag.Lookup("test.fuzz").Value.String() == "" && b.tried[path] >= seeds && b.ok[path] == 0 &&
			!slices.Contains(neverGranted, path) {
			f.Errorf("none of %d requests to %s succeeded, so its success case was not tested", b.tried[path], path)
		}
	}
}

// neverGranted are operations on resources that do not exist here.
var neverGranted = []string{
	"/networks/get",
	"/user_identities/unmanaged/get",
	"/user_identities/unmanaged/update",
}

// seeds is the number of requests per operation in each test run.
const seeds = 64

// stream returns bytes that are the same in every run.
func stream(path string, seed int) []byte {
	state := crc32.ChecksumIEEE([]byte(path)) + uint32(seed)*2654435761
	out := make([]byte, 48)
	for i := range out {
		state ^= state << 13
		state ^= state >> 17
		state ^= state << 5
		out[i] = byte(state >> 11)
	}
	if seed == 0 {
		return nil // the plainest request
	}
	out[1] = byte(seed % manners) // every manner
	return out
}

type bed struct {
	doc   *openapi3.T
	paths []string
	url   string
	keys  map[string]string // by path; "" for all others
	log   *alarm

	mu sync.Mutex
	// ids are identifiers from responses, the newest last. Keys with a path are for requests to that path only. Keys
	// with "kept" are not used.
	ids map[string][]string
	ok  map[string]int // successful requests by path

	tried map[string]int // all requests by path
	// use counts the uses of spoilable resources by path.
	use map[string]int
}

// spoilers are operations that destroy resources of other requests. They get separate resources.
var spoilers = []string{
	"/devices/simulate/remove",
	"/devices/simulate/disconnect",
	"/devices/delete",
	"/connected_accounts/delete",
	"/connected_accounts/simulate/disconnect",
	"/acs/access_groups/delete",
}

func newBed(f *testing.F) *bed {
	doc, err := rest.Document()
	if err != nil {
		f.Fatal(err)
	}
	b := &bed{
		doc:   doc,
		paths: slices.Sorted(maps.Keys(doc.Paths.Map())),
		ids:   map[string][]string{},
		ok:    map[string]int{},
		tried: map[string]int{},
		use:   map[string]int{},
		keys:  map[string]string{},
		log:   &alarm{},
	}
	s := apptest.Start(
		f,
		apptest.WithProfiles("august", "smartthings", "igloohome", "minut", "nest", "noiseaware"),
		apptest.WithAttemptTimeout(2*time.Second),
		func(c *app.Config) {
			c.Log = slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelError}))
		},
	)
	b.url, b.keys[""] = s.URL, s.APIKey
	for _, profile := range []string{"nest", "minut", "noiseaware"} { // no other operation changes them
		b.learnAs("kept device_id", s.Device(f, profile))
	}
	ctx := f.Context()
	spare, err := s.App.Access.Accounts.CreateWorkspace(ctx, "Spare", "", true)
	if err != nil {
		f.Fatal(err)
	}
	issue := func(kind domain.CredentialKind, id uuid.UUID) string {
		token, _, err := s.App.Access.Auth.IssueCredential(ctx, auth.NewCredential{
			Kind:         kind,
			WorkspaceIDs: []uuid.UUID{id},
		})
		if err != nil {
			f.Fatal(err)
		}
		return token
	}
	b.keys["/workspaces/reset_sandbox"] = issue(domain.APIKey, spare.ID)
	b.keys["/workspaces/update"] = b.keys["/workspaces/reset_sandbox"] // it may suspend the workspace
	b.keys["/workspaces/create"] = issue(domain.PAT, spare.ID)
	connect := func(name, profile string, locks int, seeOnly bool) {
		if _, err := s.App.Access.Accounts.ConnectAccount(ctx, account.NewAccount{
			WorkspaceID: uuid.MustParse(s.WorkspaceID),
			Adapter:     account.SandboxAdapter,
			DisplayName: name,
			Unmanaged:   seeOnly,
			Config: fmt.Appendf(
				nil,
				`{"key":%q,"profiles":[%q],"locks_per_profile":%d}`,
				uuid.NewString(),
				profile,
				locks,
			),
		}); err != nil {
			f.Fatal(err)
		}
	}
	connect("Seen only", "kwikset", 2, true)
	connect("Spoilable locks", "schlage", 12, false)
	for range 6 {
		connect("Spoilable account", "nuki", 1, false)
	}
	apptest.Until(f, "the spoilable resources exist", func() bool {
		var out map[string]any
		s.Post(f, "/devices/list", map[string]any{"device_types": []string{"nuki_lock", "schlage_lock"}}, &out)
		devices, _ := out["devices"].([]any)
		for _, d := range devices {
			d := d.(map[string]any)
			if d["device_type"] == "nuki_lock" {
				b.learnAs("spoilt connected_account_id", d["connected_account_id"].(string))
			} else {
				b.learnAs("spoilt device_id", d["device_id"].(string))
			}
		}
		return len(devices) == 18
	})
	var groups api.AcsAccessGroupsResponse
	s.Post(f, "/acs/access_groups/list", map[string]any{"acs_system_id": s.AccessSystem(f).ID}, &groups)
	for _, g := range groups.AcsAccessGroups {
		b.learnAs("spoilt acs_access_group_id", g.AcsAccessGroupID)
	}
	b.learnAs("acs_system_id", s.AccessSystem(f).ID)
	for _, path := range []string{
		"/acs/access_groups/list",
		"/acs/entrances/list",
		"/acs/users/unmanaged/list",
		"/devices/list",
		"/devices/unmanaged/list",
		"/events/list",
		"/workspaces/list",
		"/connected_accounts/list",
	} {
		var out any
		s.Post(f, path, map[string]any{"since": "2020-01-01", "exclude_if": nil}, &out)
		b.learn(out)
	}
	var unmanaged api.DevicesResponse
	s.Post(f, "/devices/unmanaged/list", map[string]any{}, &unmanaged)
	for _, d := range unmanaged.Devices {
		b.learnAs("/devices/unmanaged/get device_id", d.DeviceID)
	}
	b.link(f, s)
	b.back(f, s)
	b.measure(f, s)
	b.heat(f, s)
	b.learnAs("/access_codes/report_device_constraints device_id", s.Device(f, "smartthings"))
	for _, profile := range []string{"august", "smartthings", "igloohome"} {
		b.learnAs("/devices/report_provider_metadata device_id", s.Device(f, profile))
	}
	var out any
	s.Post(f, "/access_codes/unmanaged/list", map[string]any{"device_id": s.Device(f, "august")}, &out)
	b.learn(out)
	for i, id := range b.ids["access_code_id"][1:] { // the first is converted or deleted
		b.learnAs("/access_codes/unmanaged/"+[]string{"get", "update"}[i%2]+" access_code_id", id)
	}
	return b
}

// link creates a user of the access system and phones for a user identity, and a client session.
func (b *bed) link(f *testing.F, s *apptest.Server) {
	var person api.UserIdentityResponse
	s.Post(f, "/user_identities/create", map[string]any{"full_name": "Jane"}, &person)
	var user api.AcsUserResponse
	s.Post(f, "/acs/users/create", map[string]any{
		"acs_system_id":    b.ids["acs_system_id"][0],
		"full_name":        "Jane",
		"user_identity_id": person.UserIdentity.UserIdentityID,
	}, &user)
	for name, id := range map[string]string{
		"user_identity_id": person.UserIdentity.UserIdentityID,
		"acs_user_id":      user.AcsUser.AcsUserID,
	} {
		b.learnAs("kept "+name, id)
		b.learnAs("/user_identities/remove_acs_user "+name, id)
	}
	b.learnAs("/acs/users/get acs_user_id", user.AcsUser.AcsUserID)
	b.learnAs("/acs/access_groups/add_user acs_user_id", user.AcsUser.AcsUserID)
	for _, path := range []string{"/user_identities/grant_access_to_device", "/user_identities/merge"} {
		b.learnAs(path+" user_identity_id", person.UserIdentity.UserIdentityID)
	}
	b.learnAs("/user_identities/grant_access_to_device device_id", s.Device(f, "august"))
	for range 2 {
		var duplicate api.UserIdentityResponse
		s.Post(f, "/user_identities/create", map[string]any{}, &duplicate)
		b.learnAs("/user_identities/merge merged_user_identity_id", duplicate.UserIdentity.UserIdentityID)
	}
	for _, path := range []string{"/phones/get", "/phones/deactivate", "/phones/deactivate", "/phones/deactivate"} {
		var phone api.PhoneResponse
		s.Post(f, "/phones/simulate/create_sandbox_phone", map[string]any{
			"user_identity_id": person.UserIdentity.UserIdentityID,
		}, &phone)
		b.learnAs("kept device_id", phone.Phone.DeviceID)
		b.learnAs(path+" device_id", phone.Phone.DeviceID)
	}
	var session api.ClientSessionResponse
	s.Post(f, "/client_sessions/create", map[string]any{}, &session)
	b.learnAs("/client_sessions/grant_access client_session_id", session.ClientSession.ClientSessionID)
	b.learnAs("/client_sessions/grant_access user_identity_id", person.UserIdentity.UserIdentityID)
}

// measure lets requests about noise sensors know them and their thresholds. Those of Minut are fixed, and one of them
// always holds.
func (b *bed) measure(f *testing.F, s *apptest.Server) {
	minut, aware := s.Device(f, "minut"), s.Device(f, "noiseaware")
	for path, device := range map[string]string{
		"/noise_sensors/noise_thresholds/create":          aware,
		"/noise_sensors/noise_thresholds/delete":          aware,
		"/noise_sensors/noise_thresholds/list":            aware,
		"/noise_sensors/noise_thresholds/update":          minut,
		"/noise_sensors/simulate/trigger_noise_threshold": minut,
	} {
		b.learnAs(path+" device_id", device)
	}
	for _, device := range []string{minut, aware} {
		var out api.NoiseThresholdsResponse
		s.Post(f, "/noise_sensors/noise_thresholds/list", map[string]any{"device_id": device}, &out)
		for _, one := range out.NoiseThresholds {
			for _, of := range []string{"get", "update"} {
				if device == minut {
					b.learnAs("/noise_sensors/noise_thresholds/"+of+" noise_threshold_id", one.NoiseThresholdID)
				}
			}
			if device == aware {
				b.learnAs("/noise_sensors/noise_thresholds/delete noise_threshold_id", one.NoiseThresholdID)
			}
		}
	}
}

// back creates a code with backup codes, one of which can be pulled.
func (b *bed) back(f *testing.F, s *apptest.Server) {
	now := time.Now()
	var made api.AccessCodeCreatedResponse
	s.Post(f, "/access_codes/create", map[string]any{
		"device_id":                   s.Device(f, "august"),
		"use_backup_access_code_pool": true,
		"starts_at":                   now,
		"ends_at":                     now.Add(5 * time.Hour),
	}, &made)
	id := made.AccessCode.AccessCodeID
	apptest.Until(f, "a code can be pulled", func() bool {
		var out api.AccessCodeResponse
		s.Post(f, "/access_codes/get", map[string]any{"access_code_id": id}, &out)
		return out.AccessCode.IsBackupAccessCodeAvailable
	})
	b.learnAs("kept access_code_id", id)
	for _, path := range []string{
		"/access_codes/pull_backup_access_code",
		"/access_codes/get",
		"/access_codes/update",
	} {
		b.learnAs(path+" access_code_id", id)
	}
}

// heat creates what a thermostat has.
func (b *bed) heat(f *testing.F, s *apptest.Server) {
	device := s.Device(f, "nest")
	for _, path := range b.paths {
		if strings.HasPrefix(path, "/thermostats/") {
			b.learnAs(path+" device_id", device)
			b.learnAs(strings.Replace(path, "create_", "", 1)+" climate_preset_key", "eco")
		}
	}
	for _, key := range []string{"kept", "updated", "deleted"} {
		s.Post(f, "/thermostats/create_climate_preset", map[string]any{
			"device_id": device, "climate_preset_key": key, "hvac_mode_setting": "off",
		}, nil)
		b.learnAs("/thermostats/"+strings.TrimSuffix(key, "d")+"_climate_preset climate_preset_key", key)
	}
	for i := range 20 {
		b.learnAs("/thermostats/create_climate_preset climate_preset_key", fmt.Sprint("new ", i))
	}
	var program map[string]any
	s.Post(f, "/thermostats/daily_programs/create", map[string]any{
		"device_id": device,
		"name":      "Day",
		"periods":   []any{map[string]any{"starts_at_time": "00:00:00", "climate_preset_key": "eco"}},
	}, &program)
	b.learn(program)
	var schedule map[string]any
	s.Post(f, "/thermostats/schedules/create", map[string]any{
		"device_id": device, "climate_preset_key": "eco", "starts_at": "2098-01-01", "ends_at": "2098-01-02",
	}, &schedule)
	b.learn(schedule)
}

// known returns identifiers that a request may use.
func (b *bed) known(path, name string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if spoilt := b.ids["spoilt "+name]; len(spoilt) > 0 && slices.Contains(spoilers, path) {
		i := slices.Index(spoilers, path) + b.use[path]*len(spoilers)
		b.use[path]++
		return spoilt[i%len(spoilt):][:1]
	}
	if particular := b.ids[path+" "+name]; len(particular) > 0 {
		name = path + " " + name
	}
	return slices.Clone(b.ids[name])
}

// learn stores the identifiers of a response.
func (b *bed) learn(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			b.learn(item)
		}
	case map[string]any:
		for name, item := range v {
			if id, ok := item.(string); ok && (strings.HasSuffix(name, "_id") || strings.HasSuffix(name, "_key")) {
				b.learnAs(name, id)
				continue
			}
			b.learn(item)
		}
	}
}

func (b *bed) learnAs(name, id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.Contains(b.ids[name], id) || slices.Contains(b.ids["spoilt "+name], id) ||
		slices.Contains(b.ids["kept "+name], id) {
		return
	}
	list := append(b.ids[name], id)
	if len(list) > 24 {
		// the first stay, because they are permanently on a lock
		list = slices.Delete(list, 4, 5)
	}
	b.ids[name] = list
}

// try sends a request and checks the response.
func (b *bed) try(t *testing.T, q request, item *openapi3.PathItem) {
	t.Helper()
	b.mu.Lock()
	b.tried[q.path]++
	b.mu.Unlock()
	r, err := http.NewRequestWithContext(t.Context(), q.method, b.url+q.path, strings.NewReader(q.body))
	if err != nil {
		t.Fatal(err)
	}
	r.URL.RawQuery = q.query
	if q.contentType != "" {
		r.Header["Content-Type"] = []string{q.contentType}
	}
	key := b.keys[q.path]
	if key == "" {
		key = b.keys[""]
	}
	r.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		if strings.Contains(err.Error(), "invalid header field value") {
			return // cannot be sent
		}
		t.Fatalf("%s: %v", q.show(), err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s: %v", q.show(), err)
	}
	if cause := b.log.take(); cause != "" {
		t.Errorf("%s is logged as an error: %s", q.show(), cause)
	}
	if res.StatusCode == http.StatusRequestHeaderFieldsTooLarge { // sent by net/http, before our code
		return
	}
	var out any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatalf("%s: status %s and %q, which is not JSON: %v", q.show(), res.Status, raw, err)
	}
	if uuid.Validate(res.Header.Get("seam-request-id")) != nil {
		t.Errorf("%s: the response has no seam-request-id", q.show())
	}
	promised := item.GetOperation(q.method).Responses.Status(res.StatusCode)
	if promised == nil || res.StatusCode >= 500 {
		t.Fatalf("%s: status %s is not in the contract: %s", q.show(), res.Status, raw)
	}
	schema := promised.Value.Content.Get("application/json").Schema.Value
	if err := schema.VisitJSON(out, openapi3.VisitAsResponse(), openapi3.EnableFormatValidation()); err != nil {
		t.Errorf("%s: status %s and %.2000s violate the contract: %v", q.show(), res.Status, raw, err)
	}
	if answer, ok := out.(map[string]any); !ok || answer["ok"] != (res.StatusCode == http.StatusOK) {
		t.Errorf("%s: status %s and %.2000s", q.show(), res.Status, raw)
	}
	if res.StatusCode == http.StatusOK {
		b.learn(out)
		b.mu.Lock()
		b.ok[q.path]++
		b.mu.Unlock()
	}
}

// show returns a short text of the request.
func (q request) show() string {
	short := func(s string) string {
		if len(s) > 700 {
			return s[:700] + "…"
		}
		return s
	}
	return q.method + " " + q.path + "?" + short(q.query) + " " + short(q.body)
}

// errorLog keeps error log records.
type alarm struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (a *alarm) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.b.Write(p)
}

func (a *alarm) take() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.b.Reset()
	return a.b.String()
}
