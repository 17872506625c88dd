package spec_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest"
)

// showPINs are the operations that show the PINs of viewerScene to an operator.
var showPINs = []string{
	"/access_codes/get",
	"/access_codes/list",
	"/access_codes/unmanaged/get",
	"/access_codes/unmanaged/list",
	"/action_attempts/get",
	"/action_attempts/list",
	"/events/get",
	"/events/list",
}

// No operation that a viewer may call shows a PIN, with any parameter. The same requests of an operator show all of
// them, so they reach the PINs. No timeline shows a PIN to either.
func TestViewer_ReadsNoPIN(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("yale"), apptest.WithLocks(2))
	doc, err := rest.Document()
	if err != nil {
		t.Fatal(err)
	}
	scene := newViewerScene(t, s)
	viewer, _ := s.Credential(t, auth.NewCredential{Kind: domain.APIKey, Role: domain.RoleViewer})
	operator, _ := s.Credential(t, auth.NewCredential{Kind: domain.APIKey, Role: domain.RoleOperator})
	walked, shown, seen := 0, map[string]bool{}, map[string]bool{}
	for path, item := range doc.Paths.Map() {
		if item.Get == nil || strings.HasPrefix(path, "/health") { // an operation that does not read
			continue
		}
		for _, body := range scene.requests(path, item.Post) {
			status, answer := rawPost(t, s, viewer, path, body)
			if status >= http.StatusInternalServerError {
				t.Errorf("%s %v: status %d", path, body, status)
			}
			for _, pin := range scene.pins {
				if strings.Contains(answer, pin) {
					t.Errorf("a viewer reads a PIN: %s %v", path, slices.Sorted(maps.Keys(body)))
				}
			}
			if status == http.StatusOK {
				walked++
			}
			if path == "/access_codes/generate_code" { // its PINs are of no code
				continue
			}
			_, answer = rawPost(t, s, operator, path, body)
			for _, pin := range scene.pins {
				if strings.Contains(answer, pin) {
					shown[path], seen[pin] = true, true
				}
			}
		}
	}
	if walked < 50 {
		t.Errorf("only %d requests of the viewer were answered", walked)
	}
	if got := slices.Sorted(maps.Keys(shown)); !slices.Equal(got, showPINs) {
		t.Errorf("an operator reads PINs by %v, want %v", got, showPINs)
	}
	if len(seen) != len(scene.pins) {
		t.Errorf("an operator reads %d of %d PINs", len(seen), len(scene.pins))
	}
}

// A viewer cannot find a code by its PIN, so it cannot test guesses: the PIN of a code and another get the same answer.
func TestViewer_FindsNoCodeByPIN(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("yale"))
	device := s.Device(t, "yale")
	s.Post(t, "/access_codes/create", map[string]any{"device_id": device, "code": pinOne, "sync": true}, nil)
	simulateUnmanaged(t, s, device, pinTwo)
	viewer, _ := s.Credential(t, auth.NewCredential{Kind: domain.APIKey, Role: domain.RoleViewer})
	for path, pin := range map[string]string{"/access_codes/get": pinOne, "/access_codes/unmanaged/get": pinTwo} {
		_, want := rawPost(t, s, viewer, path, map[string]any{"device_id": device, "code": "90909090"})
		status, got := rawPost(t, s, viewer, path, map[string]any{"device_id": device, "code": pin})
		if status != http.StatusForbidden || withoutRequest(got) != withoutRequest(want) {
			t.Errorf("%s: status %d, %s; another PIN: %s", path, status, got, want)
		}
		if !strings.Contains(got, "Name the code with access_code_id, or use a key with the role operator") {
			t.Errorf("%s does not say what to do: %s", path, got)
		}
	}
	if status := s.PostAs(t, viewer, "/access_codes/generate_code", map[string]any{"device_id": device}, nil); status !=
		http.StatusForbidden {
		t.Errorf("generate_code, which never returns a PIN in use: status %d", status)
	}
}

// What is not a PIN stays: fields have the value null, and others are unchanged.
func TestViewer_SeesEverythingElse(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("yale"))
	device := s.Device(t, "yale")
	var made api.AccessCodeCreatedResponse
	s.Post(t, "/access_codes/create", map[string]any{
		"device_id": device, "code": pinOne, "name": "Ada", "sync": true,
	}, &made)
	id := made.AccessCode.AccessCodeID
	s.Post(t, "/devices/simulate/disconnect", map[string]any{"device_id": device}, nil)
	s.Post(t, "/access_codes/update", map[string]any{"access_code_id": id, "code": pinTwo, "name": "Grace"}, nil)
	viewer, _ := s.Credential(t, auth.NewCredential{Kind: domain.APIKey, Role: domain.RoleViewer})

	var full, masked api.AccessCodeResponse
	in := map[string]any{"access_code_id": id}
	s.Post(t, "/access_codes/get", in, &full)
	s.PostAs(t, viewer, "/access_codes/get", in, &masked)
	if len(full.AccessCode.PendingMutations) == 0 {
		t.Fatal("the change does not wait for the device")
	}
	full.AccessCode.Code = nil
	for i, m := range full.AccessCode.PendingMutations {
		for _, fields := range []map[string]any{m.From, m.To} {
			if _, has := fields["code"]; has {
				full.AccessCode.PendingMutations[i].MutationCode = "updating_code"
				fields["code"] = nil
			}
		}
	}
	if want, got := asJSON(t, full), asJSON(t, masked); got != want {
		t.Errorf("a viewer reads\n%s, want\n%s", got, want)
	}
	for _, kind := range []string{"access_code.set_on_device", "access_code.mutations_requested", "access_code.changed"} {
		_, want := rawPost(t, s, s.APIKey, "/events/get", map[string]any{"event_type": kind})
		_, got := rawPost(t, s, viewer, "/events/get", map[string]any{"event_type": kind})
		for _, pin := range []string{pinOne, pinTwo} {
			want = strings.ReplaceAll(want, `"`+pin+`"`, "null")
		}
		if !sameJSON(t, got, want) {
			t.Errorf("%s: a viewer reads\n%s, want\n%s", kind, got, want)
		}
	}
}

// viewerScene has values of parameters that lead to PINs, by the name of the parameter, and these PINs.
type viewerScene struct {
	values map[string][]any
	pins   []string
}

// newViewerScene plants PINs wherever the API can show them: in codes, backup codes, unmanaged codes, pending mutations,
// attempts, and events.
func newViewerScene(t *testing.T, s *apptest.Server) viewerScene {
	t.Helper()
	device := s.Device(t, "yale")
	create := func(in map[string]any) (out api.AccessCodeCreatedResponse) {
		in["device_id"], in["sync"] = device, true
		if status := s.Post(t, "/access_codes/create", in, &out); status != http.StatusOK {
			t.Fatalf("create: %d", status)
		}
		return out
	}
	stays, goes := create(map[string]any{"code": pinOne}), create(map[string]any{"code": pinThree})
	found := simulateUnmanaged(t, s, device, pinOther)
	s.Post(
		t,
		"/locks/simulate/keypad_code_entry",
		map[string]any{"device_id": device, "code": pinOne, "sync": true},
		nil,
	)
	s.Post(t, "/access_codes/delete", map[string]any{"access_code_id": goes.AccessCode.AccessCodeID, "sync": true}, nil)
	guest := backed(t, s, device, nil)
	untilAvailable(t, s, guest.AccessCodeID)
	backup, status := pull(t, s, guest.AccessCodeID)
	if status != http.StatusOK {
		t.Fatalf("pull: %d", status)
	}
	apptest.Until(t, "the backup code has its time frame", func() bool {
		return len(code(t, s, backup.AccessCode.AccessCodeID).PendingMutations) == 0
	})
	s.Post(t, "/devices/simulate/disconnect", map[string]any{"device_id": device}, nil)
	var changed api.ActionAttemptResponse
	s.Post(t, "/access_codes/update", map[string]any{
		"access_code_id": stays.AccessCode.AccessCodeID, "code": pinTwo,
	}, &changed)
	var events api.EventsResponse
	s.Post(t, "/events/list", map[string]any{"since": "2020-01-01", "limit": 10000}, &events)
	scene := viewerScene{
		values: map[string][]any{
			"device_id": {device},
			"code":      {pinOne, pinTwo, pinOther},
			"since":     {"2020-01-01"},
			"access_code_id": {
				stays.AccessCode.AccessCodeID, goes.AccessCode.AccessCodeID, found, backup.AccessCode.AccessCodeID,
			},
			"access_code_ids":    {[]any{stays.AccessCode.AccessCodeID, backup.AccessCode.AccessCodeID}},
			"action_attempt_id":  {stays.ActionAttempt.ActionAttemptID, changed.ActionAttempt.ActionAttemptID},
			"action_attempt_ids": {[]any{stays.ActionAttempt.ActionAttemptID}},
			"search":             {pinOne, "*"},
		},
		pins: []string{pinOne, pinTwo, pinThree, pinOther, `"` + *backup.AccessCode.Code + `"`},
	}
	for _, e := range events.Events {
		scene.values["event_id"] = append(scene.values["event_id"], e.EventID)
		if !slices.Contains(scene.values["event_type"], any(e.EventType)) {
			scene.values["event_type"] = append(scene.values["event_type"], e.EventType)
		}
	}
	return scene
}

// requests returns bodies for an operation: without optional parameters, and with each value of each of them.
func (v viewerScene) requests(path string, op *openapi3.Operation) (bodies []map[string]any) {
	schema := op.RequestBody.Value.Content.Get("application/json").Schema.Value
	base := map[string]any{}
	for _, field := range schema.Required {
		if len(v.values[field]) > 0 {
			base[field] = v.values[field][0]
		}
	}
	if path == "/events/list" {
		base["since"] = v.values["since"][0]
	}
	bodies = append(bodies, base)
	for field := range schema.Properties {
		for _, value := range v.values[field] {
			body := maps.Clone(base)
			body[field] = value
			if field == "code" || field == "search" {
				body["device_id"] = v.values["device_id"][0]
			}
			bodies = append(bodies, body)
		}
	}
	return bodies
}

// simulateUnmanaged enters a code at the keypad, and returns its id.
func simulateUnmanaged(t *testing.T, s *apptest.Server, device, pin string) string {
	t.Helper()
	var out api.UnmanagedAccessCodeResponse
	if status := s.Post(t, "/access_codes/simulate/create_unmanaged_access_code", map[string]any{
		"device_id": device, "name": "Found", "code": pin,
	}, &out); status != http.StatusOK {
		t.Fatalf("enter a code at the keypad: %d", status)
	}
	return out.AccessCode.AccessCodeID
}

func rawPost(t *testing.T, s *apptest.Server, key, path string, in map[string]any) (status int, answer string) {
	t.Helper()
	var out json.RawMessage
	status = s.PostAs(t, key, path, in, &out)
	return status, string(out)
}

// withoutRequest returns the error of an answer, without the identifier of its request.
func withoutRequest(answer string) string {
	var out struct {
		Error struct{ Type, Message string } `json:"error"`
	}
	if json.Unmarshal([]byte(answer), &out) != nil {
		return answer
	}
	return out.Error.Type + ": " + out.Error.Message
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetIndent("", " ")
	if err := out.Encode(value); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var values [2]any
	for i, text := range []string{a, b} {
		if err := json.Unmarshal([]byte(text), &values[i]); err != nil {
			t.Fatal(err)
		}
	}
	return asJSON(t, values[0]) == asJSON(t, values[1])
}
