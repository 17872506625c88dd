package rest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/audit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest"
)

// TestMain names the tests whose result can depend on the number of servers.
func TestMain(m *testing.M) {
	apptest.Main(m, TestWithoutSyncTheAttemptIsPending,
		TestPagesOfCodesFollowNextPageURL,
		TestSimulatedCode_ListLags,
		TestWaitingSimulationsReleaseSlot)
}

// call makes a request with the sandbox key.
func call(t *testing.T, s *apptest.Server, method, path string, in any) (status int, out map[string]any) {
	t.Helper()
	status, out, _ = callWith(t, s, method, path, in, "")
	return status, out
}

// callWith is call with an Idempotency-Key, unless key is empty. It reports whether the response was replayed.
func callWith(
	t *testing.T, s *apptest.Server, method, path string, in any, key string,
) (status int, out map[string]any, replayed bool) {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.APIKey)
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatalf("%s %s answers %q: %v", method, path, raw, err)
	}
	return res.StatusCode, out, res.Header.Get("Idempotency-Replayed") == "true"
}

type in = map[string]any

// must calls a POST that must succeed, and returns the value of key.
func must(t *testing.T, s *apptest.Server, path, key string, params in) in {
	t.Helper()
	status, out := call(t, s, http.MethodPost, path, params)
	if status != http.StatusOK {
		t.Fatalf("%s: status %d: %v", path, status, out)
	}
	object, _ := out[key].(in)
	return object
}

// findNothing are the operations on what does not exist here.
var findNothing = []string{"/user_identities/unmanaged/get", "/user_identities/unmanaged/update"}

// Every operation, with every method, returns what the contract promises.
func TestResponsesMatchContract(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august", "smartthings", "nest", "minut", "noiseaware"))
	doc, err := rest.Document()
	if err != nil {
		t.Fatal(err)
	}
	device := s.Device(t, "august")
	pins := 300000       // longer than those that are made up here
	code := func() any { // a managed code that is on the device
		pins++
		made := must(t, s, "/access_codes/create", "access_code", in{
			"device_id": device, "code": fmt.Sprint(pins), "sync": true,
			"starts_at": time.Now(), "ends_at": time.Now().Add(time.Hour),
		})
		return made["access_code_id"]
	}
	unmanaged := func() any {
		pins++
		made := must(
			t,
			s,
			"/access_codes/simulate/create_unmanaged_access_code",
			"access_code",
			in{"device_id": device, "code": fmt.Sprint(pins), "name": "Found"},
		)
		return made["access_code_id"]
	}
	hook := func() any {
		return must(t, s, "/webhooks/create", "webhook", in{"url": "https://hooks.example/x"})["webhook_id"]
	}
	webview := func() any {
		return must(t, s, "/connect_webviews/create", "connect_webview", nil)["connect_webview_id"]
	}
	minut, seconds := s.Device(t, "minut"), 0
	threshold := func() in { // one to create
		seconds++
		return in{
			"device_id":           s.Device(t, "noiseaware"),
			"noise_threshold_nrs": 5,
			"sync":                true,
			"starts_daily_at": fmt.Sprintf(
				"23:00:%02d",
				seconds,
			),
			"ends_daily_at": fmt.Sprintf("23:00:%02d", seconds+1),
		}
	}
	madeThreshold := func() any {
		return must(t, s, "/noise_sensors/noise_thresholds/create", "noise_threshold", threshold())["noise_threshold_id"]
	}
	attempt := must(t, s, "/access_codes/create", "action_attempt", in{"device_id": device, "sync": true})["action_attempt_id"]
	hub := s.Device(t, "smartthings")
	account, spares := another(t, s, "devices", false)
	err = s.App.Access.Accounts.RecordGateway(t.Context(), uuid.MustParse(fmt.Sprint(account)), "home 1", false)
	if err != nil {
		t.Fatal(err)
	}
	spare := func() any { d := spares[0]; spares = spares[1:]; return d }
	_, seenOnly := another(t, s, "unmanaged", true)
	seen := seenOnly[0]
	key := must(t, s, "/access_codes/create", "access_code", in{"device_id": device, "common_code_key": "many", "sync": true})["common_code_key"]
	backed := must(t, s, "/access_codes/create", "access_code", in{
		"device_id": device, "use_backup_access_code_pool": true, "sync": true,
		"starts_at": time.Now(), "ends_at": time.Now().Add(time.Hour),
	})["access_code_id"]
	apptest.Until(t, "a backup code can be pulled", func() bool {
		return must(t, s, "/access_codes/get", "access_code", in{"access_code_id": backed})["is_backup_access_code_available"] == true
	})
	person := must(t, s, "/user_identities/create", "user_identity", in{})["user_identity_id"]
	phone := func() any {
		return must(t, s, "/phones/simulate/create_sandbox_phone", "phone", in{"user_identity_id": person})["device_id"]
	}
	ended := func() in { // a client session to be ended
		return in{
			"client_session_id": must(t, s, "/client_sessions/create", "client_session", in{"connected_account_ids": []any{account}})["client_session_id"],
		}
	}
	users := 0
	user := func() in { users++; return in{"user_identifier_key": fmt.Sprint("user ", users)} }
	roaming := &apptest.Server{URL: s.URL}
	if roaming.APIKey, _, err = s.App.Access.Auth.IssueCredential(
		t.Context(),
		auth.NewCredential{Kind: domain.PAT, WorkspaceIDs: []uuid.UUID{uuid.MustParse(s.WorkspaceID)}},
	); err != nil {
		t.Fatal(err)
	}
	inputs := map[string]func() in{
		"/client_sessions/create": user,
		"/client_sessions/get_or_create": func() in {
			return in{"user_identifier_key": user()["user_identifier_key"], "connected_account_ids": []any{account}}
		},
		"/client_sessions/get":  ended,
		"/client_sessions/list": func() in { return in{"limit": 1} },
		"/client_sessions/grant_access": func() in {
			return in{"client_session_id": ended()["client_session_id"], "connect_webview_ids": []any{webview()}}
		},
		"/client_sessions/revoke":          ended,
		"/client_sessions/delete":          ended,
		"/health":                          func() in { return nil },
		"/health/get_health":               func() in { return nil },
		"/workspaces/get":                  func() in { return nil },
		"/workspaces/create":               func() in { return in{"name": "New", "is_sandbox": true, "webview_logo_shape": "circle"} },
		"/workspaces/update":               func() in { return in{"name": "Renamed", "is_suspended": false} },
		"/workspaces/reset_sandbox":        func() in { return nil }, // below, because nothing is left after it
		"/workspaces/list":                 func() in { return nil },
		"/webhooks/create":                 func() in { return in{"url": "https://hooks.example/y", "event_types": []string{"device.connected"}} },
		"/webhooks/get":                    func() in { return in{"webhook_id": hook()} },
		"/webhooks/list":                   func() in { return nil },
		"/webhooks/update":                 func() in { return in{"webhook_id": hook(), "event_types": []string{"*"}} },
		"/webhooks/delete":                 func() in { return in{"webhook_id": hook()} },
		"/deviceaccess/webhooks/send_test": func() in { return in{"webhook_id": hook()} },
		"/deviceaccess/webhooks/rotate_secret": func() in {
			return in{"webhook_id": hook(), "overlap_seconds": 3600}
		},
		"/devices/list":                  func() in { return in{"limit": 1, "custom_metadata_has": in{}} },
		"/devices/get":                   func() in { return in{"device_id": device} },
		"/devices/list_device_providers": func() in { return in{"provider_category": "stable"} },
		"/devices/simulate/connect":      func() in { return in{"device_id": device} },
		"/devices/simulate/disconnect":   func() in { return nil }, // below, because it has to be undone
		"/devices/simulate/remove":       func() in { return nil }, // below, because it cannot be undone
		"/devices/update": func() in {
			return in{"device_id": device, "name": nil, "custom_metadata": in{"a": "b", "c": nil, "d": true}}
		},
		"/devices/delete":           func() in { return in{"device_id": spare()} },
		"/devices/unmanaged/list":   func() in { return in{"limit": 1} },
		"/devices/unmanaged/get":    func() in { return in{"device_id": seen} },
		"/devices/unmanaged/update": func() in { return in{"device_id": seen, "custom_metadata": in{"a": "b"}} },
		"/connected_accounts/get":   func() in { return in{"connected_account_id": account} },
		"/connected_accounts/list":  func() in { return in{"limit": 1} },
		"/connected_accounts/update": func() in {
			return in{"connected_account_id": account, "display_name": "New", "custom_metadata": in{"a": nil}}
		},
		"/connected_accounts/sync":                func() in { return in{"connected_account_id": account} },
		"/connected_accounts/delete":              func() in { return nil }, // below, because it cannot be undone
		"/connected_accounts/simulate/disconnect": func() in { return nil },
		"/connect_webviews/create": func() in {
			return in{
				"accepted_providers":  []string{"august"},
				"custom_metadata":     in{"a": "b"},
				"custom_redirect_url": "https://app.example/back",
			}
		},
		"/connect_webviews/get":                  func() in { return in{"connect_webview_id": webview()} },
		"/connect_webviews/list":                 func() in { return in{"limit": 1} },
		"/connect_webviews/delete":               func() in { return in{"connect_webview_id": webview()} },
		"/locks/list":                            func() in { return in{"custom_metadata_has": in{}} },
		"/noise_sensors/list":                    func() in { return in{"device_type": "minut_sensor"} },
		"/noise_sensors/noise_thresholds/create": threshold,
		"/noise_sensors/noise_thresholds/get": func() in {
			return in{"noise_threshold_id": madeThreshold()}
		},
		"/noise_sensors/noise_thresholds/list": func() in { return in{"device_id": minut, "is_programmed": true} },
		"/noise_sensors/noise_thresholds/update": func() in {
			return in{
				"device_id": s.Device(
					t,
					"noiseaware",
				),
				"noise_threshold_id": madeThreshold(),
				"name":               "New",
				"sync":               true,
			}
		},
		"/noise_sensors/noise_thresholds/delete": func() in {
			return in{"device_id": s.Device(t, "noiseaware"), "noise_threshold_id": madeThreshold(), "sync": true}
		},
		"/noise_sensors/simulate/trigger_noise_threshold": func() in { return in{"device_id": minut} },

		"/thermostats/list":  func() in { return in{"manufacturer": "nest", "limit": 1} },
		"/phones/list":       func() in { return in{"owner_user_identity_id": person} },
		"/phones/get":        func() in { return in{"device_id": phone()} },
		"/phones/deactivate": func() in { return in{"device_id": phone()} },
		"/phones/simulate/create_sandbox_phone": func() in {
			return in{"user_identity_id": person, "phone_metadata": in{"operating_system": "ios"}}
		},
		"/networks/list":     func() in { return nil },
		"/networks/get":      func() in { return in{"network_id": account} },
		"/locks/get":         func() in { return in{"device_id": device} },
		"/locks/lock_door":   func() in { return in{"device_id": device, "sync": true} },
		"/locks/unlock_door": func() in { return in{"device_id": device, "sync": true} },
		"/locks/configure_auto_lock": func() in {
			return in{"device_id": device, "auto_lock_enabled": true, "auto_lock_delay_seconds": 7, "sync": true}
		},
		"/devices/simulate/connect_to_hub":      func() in { return in{"device_id": device} },
		"/devices/simulate/disconnect_from_hub": func() in { return nil }, // below
		"/devices/simulate/paid_subscription":   func() in { return in{"device_id": spares[0], "is_expired": false} },
		"/devices/report_provider_metadata": func() in {
			return in{"devices": []any{in{"device_id": device, "omnitec_metadata": in{}}}}
		},
		"/locks/simulate/keypad_code_entry":      func() in { return in{"device_id": device, "code": "2999"} },
		"/locks/simulate/manual_lock_via_keypad": func() in { return in{"device_id": device} },
		"/access_codes/create":                   func() in { pins++; return in{"device_id": device, "code": fmt.Sprint(pins)} },
		"/access_codes/create_multiple": func() in {
			return in{
				"device_ids":                          []any{device, spares[0]},
				"name":                                "Many",
				"behavior_when_code_cannot_be_shared": "create_random_code",
			}
		},
		"/access_codes/get_timeline":              func() in { return in{"access_code_id": backed, "limit": 2} },
		"/access_codes/pull_backup_access_code":   func() in { return in{"access_code_id": backed} },
		"/access_codes/report_device_constraints": func() in { return in{"device_id": hub, "supported_code_lengths": []int{4, 6}} },
		"/access_codes/update_multiple": func() in {
			return in{"common_code_key": key, "name": "New"}
		},
		"/access_codes/get":              func() in { return in{"access_code_id": code()} },
		"/access_codes/list":             func() in { return in{"device_id": device, "limit": 1} },
		"/access_codes/update":           func() in { return in{"access_code_id": code(), "name": "New", "sync": true} },
		"/access_codes/delete":           func() in { return in{"access_code_id": code(), "sync": true} },
		"/access_codes/generate_code":    func() in { return in{"device_id": device} },
		"/access_codes/unmanaged/list":   func() in { return in{"device_id": device, "limit": 1} },
		"/access_codes/unmanaged/get":    func() in { return in{"access_code_id": unmanaged()} },
		"/access_codes/unmanaged/update": func() in { return in{"access_code_id": unmanaged(), "is_managed": true} },
		"/access_codes/unmanaged/delete": func() in { return in{"access_code_id": unmanaged(), "sync": true} },
		"/action_attempts/get":           func() in { return in{"action_attempt_id": attempt} },
		"/action_attempts/list":          func() in { return in{"device_id": device, "limit": 2} },
		"/events/get":                    func() in { return in{"device_id": device, "event_type": "access_code.created"} },
		"/events/list":                   func() in { return in{"since": "2020-01-01"} },
		"/access_codes/unmanaged/convert_to_managed": func() in {
			return in{"access_code_id": unmanaged(), "is_external_modification_allowed": true, "sync": true}
		},
		"/access_codes/simulate/create_unmanaged_access_code": func() in {
			pins++
			return in{"device_id": device, "code": fmt.Sprint(pins), "name": "Typed in"}
		},
	}
	maps.Copy(inputs, inputsOfAccessSystems(t, s))
	maps.Copy(inputs, inputsOfThermostats(t, s))
	made := map[string][]audit.Subject{}
	final := []string{
		"/devices/simulate/disconnect_from_hub",
		"/devices/simulate/disconnect",
		"/devices/simulate/remove",
		"/connected_accounts/simulate/disconnect",
		"/connected_accounts/delete",
		"/workspaces/reset_sandbox",
	}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
		input, known := inputs[path]
		if !known {
			t.Errorf("%s is not tried", path)
			continue
		}
		if slices.Contains(final, path) || slices.Contains(findNothing, path) {
			continue
		}
		for method, op := range doc.Paths.Value(path).Operations() {
			s := s
			if path == "/workspaces/create" { // for which a key of one workspace is too little
				s = roaming
			}
			status, out := repeated(t, s, op, method, path, input())
			conforms(t, method+" "+path, op, status, out)
			made[path] = append(made[path], idsIn(out)...)
		}
	}
	for _, path := range final {
		op := doc.Paths.Value(path).Post
		status, out := repeated(
			t,
			s,
			op,
			http.MethodPost,
			path,
			in{"device_id": device, "connected_account_id": account},
		)
		conforms(t, path, op, status, out)
	}
	if status, _ := call(
		t,
		s,
		http.MethodPost,
		"/devices/get",
		in{"device_id": device},
	); status != http.StatusNotFound {
		t.Errorf("a removed device: status %d", status)
	}
	isAudited(t, s, doc, made)
}

// keyRequest calls an operation twice with one key, if it accepts keys. The responses must be equal.
func repeated(
	t *testing.T, s *apptest.Server, op *openapi3.Operation, method, path string, params in,
) (status int, out in) {
	t.Helper()
	if op.Parameters.GetByInAndName(openapi3.ParameterInHeader, "Idempotency-Key") == nil {
		return call(t, s, method, path, params)
	}
	key := uuid.NewString()
	status, out, early := callWith(t, s, method, path, params, key)
	second, again, replayed := callWith(t, s, method, path, params, key)
	if early || !replayed || second != status || !reflect.DeepEqual(out, again) {
		t.Errorf("%s %s answers %d %v and, with the same key, %d %v", method, path, status, out, second, again)
	}
	return status, out
}

// another connects an account with three locks, and returns their identifiers.
func another(t *testing.T, s *apptest.Server, kind string, seeOnly bool) (acct any, devices []any) {
	t.Helper()
	id, err := s.App.Access.Accounts.ConnectAccount(t.Context(), account.NewAccount{
		WorkspaceID: uuid.MustParse(s.WorkspaceID),
		Adapter:     account.SandboxAdapter,
		DisplayName: kind,
		Unmanaged:   seeOnly,
		Config:      []byte(`{"key":"` + uuid.NewString() + `","profiles":["nuki"],"locks_per_profile":3}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	path := "/devices/list"
	if seeOnly {
		path = "/devices/unmanaged/list"
	}
	apptest.Until(t, "the locks of another account", func() bool {
		_, out := call(t, s, http.MethodPost, path, in{"connected_account_id": id.String()})
		list, _ := out["devices"].([]any)
		devices = nil
		for _, d := range list {
			devices = append(devices, d.(in)["device_id"])
		}
		return len(devices) == 3
	})
	return id.String(), devices
}

func conforms(t *testing.T, where string, op *openapi3.Operation, status int, out in) {
	t.Helper()
	if status != http.StatusOK || out["ok"] != true {
		t.Errorf("%s: status %d: %v", where, status, out)
		return
	}
	schema := op.Responses.Status(status).Value.Content.Get("application/json").Schema.Value
	if err := schema.VisitJSON(
		out,
		openapi3.VisitAsResponse(),
		openapi3.MultiErrors(),
		openapi3.EnableFormatValidation(),
	); err != nil {
		t.Errorf("%s answers %v, which is not as promised: %v", where, out, err)
	}
}

func TestNewHandler_InvalidOptions(t *testing.T) {
	t.Parallel()
	key := make([]byte, 32)
	keys := func(key []byte) func() [][]byte { return func() [][]byte { return [][]byte{key} } }
	for name, o := range map[string]rest.Options{
		"no cursor key":           {},
		"short cursor key":        {CursorKeys: keys(key[:31])},
		"public URL, no scheme":   {CursorKeys: keys(key), PublicURL: "api.example"},
		"public URL, other":       {CursorKeys: keys(key), PublicURL: "ftp://api.example"},
		"public URL without host": {CursorKeys: keys(key), PublicURL: "https:///x"},
	} {
		o.Access = &access.Services{}
		if _, err := rest.NewHandler(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := rest.NewHandler(
		rest.Options{Access: &access.Services{}, CursorKeys: keys(key), PublicURL: "https://api.example/base/"},
	); err != nil {
		t.Errorf("good options: %v", err)
	}
}
