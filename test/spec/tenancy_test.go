package spec_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest"
)

// Every operation of the contract is called with a credential of one workspace and ids of another's, and with client
// sessions for another account. The responses reveal nothing, and nothing changes.
func TestTenancy_EveryOperation(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	device := s.Device(t, "august")
	unmanaged := s.UnmanagedCodes(t, device)[0]
	var code api.AccessCodeCreatedResponse
	s.Post(
		t,
		"/access_codes/create",
		map[string]any{"device_id": device, "code": "746283", "name": "Guest", "sync": true},
		&code,
	)
	var hook api.WebhookResponse
	s.Post(t, "/webhooks/create", map[string]any{"url": "https://example.com/mine"}, &hook)
	var evts api.EventsResponse
	s.Post(t, "/events/list", map[string]any{"since": "2020-01-01T00:00:00Z"}, &evts)
	var person api.UserIdentityResponse
	s.Post(
		t,
		"/user_identities/create",
		map[string]any{"user_identity_key": "mine", "email_address": "jane@mine.example"},
		&person,
	)
	y := s.AccessSystem(t)
	user := newUser(
		t,
		s,
		y,
		map[string]any{"full_name": "Mine Alone", "user_identity_id": person.UserIdentity.UserIdentityID},
	)
	var found api.UnmanagedAcsUsersResponse
	s.Post(t, "/acs/users/unmanaged/list", map[string]any{}, &found)
	var entrances api.AcsEntrancesResponse
	s.Post(t, "/acs/entrances/list", map[string]any{}, &entrances)
	var dev api.DeviceResponse
	s.Post(t, "/devices/get", map[string]any{"device_id": device}, &dev)

	other, err := s.App.Access.Accounts.CreateWorkspace(t.Context(), "Other", "", true)
	if err != nil {
		t.Fatal(err)
	}
	stranger, _, err := s.App.Access.Auth.IssueCredential(
		t.Context(),
		auth.NewCredential{Kind: domain.APIKey, WorkspaceIDs: []uuid.UUID{other.ID}},
	)
	if err != nil {
		t.Fatal(err)
	}
	var own, theirs, customers api.ClientSessionResponse
	s.Post(
		t,
		"/client_sessions/create",
		map[string]any{
			"user_identifier_key":   "the owner",
			"connected_account_ids": []any{dev.Device.ConnectedAccountID},
		},
		&own,
	)
	account, theirDevice := s.Connect(t, "nuki")
	s.Post(t, "/client_sessions/create", map[string]any{"connected_account_ids": []any{account}}, &theirs)
	s.Post(
		t,
		"/connected_accounts/update",
		map[string]any{"connected_account_id": account, "customer_key": "a customer"},
		nil,
	)
	s.Post(t, "/client_sessions/create", map[string]any{"customer_key": "a customer"}, &customers)
	foreign := map[string]any{
		"connect_webview_id":   webview(t, s, map[string]any{}).ConnectWebviewID,
		"client_session_id":    own.ClientSession.ClientSessionID,
		"user_identifier_key":  "the owner",
		"device_id":            device,
		"webhook_id":           hook.Webhook.WebhookID,
		"action_attempt_id":    code.ActionAttempt.ActionAttemptID,
		"event_id":             evts.Events[0].EventID,
		"connected_account_id": dev.Device.ConnectedAccountID,
		"name":                 dev.Device.DisplayName,
		"access_code_id":       code.AccessCode.AccessCodeID,
		"user_identity_id":     person.UserIdentity.UserIdentityID,
		"acs_system_id":        y.ID,
		"acs_user_id":          user.AcsUserID,
		"acs_access_group_id":  groupNamed(t, s, y, "Everyone"),
		"acs_entrance_id":      entrances.AcsEntrances[0].AcsEntranceID,
	}
	for field, id := range maps.Clone(foreign) {
		foreign[field+"s"] = []any{id}
	}
	others := map[string]any{
		"url":         "https://example.com/theirs",
		"event_types": []string{"*"},
		"code":        "1357",
		"full_name":   "Stranger",
		"is_managed":  true,
		"since":       "2020-01-01T00:00:00Z",
	}
	secrets := []string{
		"746283",
		*unmanaged.Code,
		hook.Webhook.Secret,
		"https://example.com/mine",
		dev.Device.DisplayName,
		own.ClientSession.Token,
		device,
		unmanaged.AccessCodeID,
		code.AccessCode.AccessCodeID,
		code.ActionAttempt.ActionAttemptID,
		dev.Device.ConnectedAccountID,
		own.ClientSession.ClientSessionID,
		person.UserIdentity.UserIdentityID,
		"jane@mine.example",
		"Mine Alone",
		"Head office",
		"Robin Hale",
		"Technicians",
		"Car park",
	}

	doc, err := rest.Document()
	if err != nil {
		t.Fatal(err)
	}
	for who, stranger := range map[string]string{
		"another workspace":       stranger,
		"a client session":        theirs.ClientSession.Token,
		"a session of a customer": customers.ClientSession.Token,
	} {
		w := walk{
			T:         t,
			s:         s,
			who:       who,
			token:     stranger,
			foreign:   foreign,
			others:    others,
			secrets:   secrets,
			unmanaged: unmanaged.AccessCodeID,
			found:     found.AcsUsers[0].AcsUserID,
		}
		if who == "another workspace" {
			w.secrets = append(w.secrets, s.WorkspaceID)
			w.stranger = true
		}
		w.through(doc)
	}

	// Nothing has changed.
	if status := s.Post(
		t,
		"/access_codes/get",
		map[string]any{"access_code_id": code.AccessCode.AccessCodeID},
		&code,
	); status != http.StatusOK || *code.AccessCode.Code != "746283" ||
		!code.AccessCode.IsManaged {
		t.Errorf("the code was touched: %d", status)
	}
	if got := s.UnmanagedCodes(t, device); len(got) != 3 {
		t.Errorf("%d of 3 unmanaged codes are left", len(got))
	}
	var hooks api.WebhooksResponse
	if s.Post(t, "/webhooks/list", struct{}{}, &hooks); len(hooks.Webhooks) != 1 {
		t.Errorf("%d webhooks", len(hooks.Webhooks))
	}
	if s.Post(t, "/devices/get", map[string]any{"device_id": device}, &dev); !dev.Device.Properties.Online {
		t.Error("the device was taken offline")
	}
	for _, session := range []api.ClientSessionResponse{theirs, customers} { // own things work
		if status := s.PostAs(
			t,
			session.ClientSession.Token,
			"/devices/get",
			map[string]any{"device_id": theirDevice},
			nil,
		); status != http.StatusOK {
			t.Errorf("a session does not reach its own device: %d", status)
		}
	}
}

// anyRandom matches random texts other than ids.
var anyRandom = regexp.MustCompile(`whsec_[\w+/=-]+|seam_cst\w+|/connect/[\w-]+`)

// walk calls every operation as a client without access to the foreign things.
type walk struct {
	*testing.T
	s               *apptest.Server
	who, token      string
	stranger        bool // sees nothing at all
	foreign, others map[string]any
	secrets         []string
	unmanaged       string // a code
	found           string // an unmanaged user
}

func (w walk) through(doc *openapi3.T) {
	has := []string{
		"/workspaces/list",
		"/webhooks/list",
		"/user_identities/list",
		"/connect_webviews/list",
	} // other clients have some, too
	creates := []string{"/webhooks/create", "/user_identities/create"}
	t, s, foreign, others, secrets := w.T, w.s, w.foreign, w.others, w.secrets
	t.Helper()
	walked := 0
	for path, item := range doc.Paths.Map() {
		if item.Post == nil || strings.HasPrefix(path, "/health") {
			continue
		}
		schema := item.Post.RequestBody.Value.Content.Get("application/json").Schema.Value
		required := map[string]any{}
		for _, field := range schema.Required {
			required[field] = foreign[field]
			if v, ok := others[field]; ok {
				required[field] = v
			}
		}
		if strings.HasPrefix(path, "/access_codes/unmanaged/") && required["access_code_id"] != nil {
			required["access_code_id"] = w.unmanaged
		}
		if path == "/acs/users/unmanaged/get" {
			required["acs_user_id"] = w.found
		}
		bodies := []map[string]any{required}
		if path == "/events/list" {
			bodies[0]["since"] = others["since"]
		}
		for field := range schema.Properties {
			if _, is := foreign[field]; is && !slices.Contains(schema.Required, field) {
				body := maps.Clone(bodies[0])
				body[field] = foreign[field]
				if path == "/access_codes/get" || path == "/access_codes/unmanaged/get" {
					body["code"] = "746283"
				}
				bodies = append(bodies, body)
			}
		}
		for _, body := range bodies {
			if strings.HasPrefix(path, "/client_sessions/") && strings.HasSuffix(path, "create") &&
				body["connected_account_ids"] == nil {
				continue // users with the same name may exist
			}
			if w.stranger && (path == "/workspaces/update" || path == "/workspaces/reset_sandbox") {
				continue // is its own
			}
			walked++
			raw, _ := json.Marshal(body)
			var out json.RawMessage
			res := s.Send(t, http.MethodPost, path, apptest.Bearer(w.token), string(raw), &out)
			if res.StatusCode >= 500 {
				t.Errorf("%s: %s: %s", w.who, path, res.Status)
			}
			told := strings.ReplaceAll(string(out), res.Header.Get("seam-request-id"), "") // contains digits
			for _, v := range body {                                                       // an error may echo the request
				if list, is := v.([]any); is {
					v = list[0]
				}
				told = strings.ReplaceAll(told, fmt.Sprint(v), "")
			}
			rest := anyRandom.ReplaceAllString(anyTime.ReplaceAllString(anyUUID.ReplaceAllString(told, ""), ""), "")
			for _, secret := range secrets {
				in := told
				if len(secret) < 10 { // a PIN may be part of an id by chance
					in = rest
				}
				if strings.Contains(in, secret) {
					t.Errorf("%s %s reveals %s %s: %s", path, raw, w.who, secret, out)
				}
			}
			names := len(body) > 0 && !slices.Contains(creates, path) && !strings.HasSuffix(path, "/list")
			if names && res.StatusCode == http.StatusOK {
				t.Errorf("%s %s is carried out for %s: %s", path, raw, w.who, out)
			}
			if w.stranger && strings.HasSuffix(path, "/list") && res.StatusCode == http.StatusOK {
				var lists map[string]json.RawMessage
				if err := json.Unmarshal(out, &lists); err != nil {
					t.Fatal(err)
				}
				for key, list := range lists {
					if strings.HasPrefix(string(list), "[{") && !slices.Contains(has, path) {
						t.Errorf("%s %s lists %s for a stranger", path, raw, key)
					}
				}
			}
		}
	}
	if walked < 40 {
		t.Errorf("only %d requests were sent", walked)
	}
}
