// Package spec_test tests the parts of the service's specification over HTTP on the whole server. Tests of one part are
// named after it.
package spec_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// TestMain names the tests whose outcome can differ with several servers.
func TestMain(m *testing.M) {
	apptest.Main(
		m,
		// Idempotency keys.
		TestIdempotency_Replay,
		TestIdempotency_ConcurrentRequests,
		TestIdempotency_KeyInUse,
		TestIdempotency_LostResponse,
		TestIdempotency_RepeatedWaitForAttempt,
		TestIdempotency_RejectionsAreNotStored,
		TestIdempotency_RepeatLimit,
		TestIdempotency_ServerErrorsDoNotCount,
		TestIdempotency_PublishableKeyVisitorsAreSeparate,
		TestIdempotency_NoReplayOutOfScope,
		TestIdempotency_ClientRetriesLostResponse,
		TestIdempotency_WaitsTakeNoSlots,
		// Credentials, sessions, and workspaces that end or change.
		TestRevocation_EndsWaitingRequests,
		TestScope_RecheckedAfterWait,
		TestRevocation_EndsLongLists,
		TestClientSession_ChangesApplyImmediately,
		TestClientSession_OnePerEndUser,
		TestClientSession_PutOncePerPerson,
		TestClientSession_PublishableKeyCreatesEmpty,
		TestWorkspaces_CreateChangeSuspend,
		// Limits that servers share.
		TestClientSession_LimitOfPublicSessions,
		TestWebhooks_LimitPerWorkspace,
		TestWorkspaces_LimitPerCredential,
		// Events, simulations, and attempts: one server works, another is asked.
		TestEvents_OncePerCause,
		TestEventsOfAccessSystems,
		TestScope_RecheckedAfterSimulation,
		TestSimulation_UnmanagedDevices,
		TestPart4_5_Conversion,
		TestPart4_6_Deletion,
		TestConnectedAccounts_SyncDisconnectDelete,
		// Races, leases, and resets.
		TestRace_SessionOfPersonBeingDeleted,
		TestRace_GrantAndDelete,
		TestRace_LoginDuringReset,
		TestRace_RequestDuringReset,
		TestSandboxReset_DuringWork,
		TestBackupCode_ConcurrentPullsDiffer,
		TestBackupCode_PoolMakesRoom,
		TestAcsAccount_DisconnectStopsWrites,
		TestAcsUser_DeletedBeforeItsTurnIsNotWritten,
		TestScope_NoWaitForForeignObjects,
		// Cursors and connect pages.
		TestPart4_3_EveryListWithPages,
		TestCursor_OfAnotherCredential,
		TestWebview_LoginConnectsAccount,
		TestWebview_Ends,
	)
}

type failure struct {
	OK    bool `json:"ok"`
	Error struct {
		Type             string         `json:"type"`
		Message          string         `json:"message"`
		ValidationErrors map[string]any `json:"validation_errors"`
		RequestID        string         `json:"request_id"`
	} `json:"error"`
}

// Part 4.2: workspaces/get returns the workspace of the credential.
func TestPart4_2_Workspace(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	var out map[string]json.RawMessage
	if status := s.Post(
		t,
		"/workspaces/get",
		struct{}{},
		&out,
	); status != http.StatusOK ||
		string(out["ok"]) != "true" {
		t.Fatalf("%d %s", status, out)
	}
	var w map[string]any
	if err := json.Unmarshal(out["workspace"], &w); err != nil {
		t.Fatal(err)
	}
	if w["workspace_id"] != s.WorkspaceID || w["is_sandbox"] != true {
		t.Errorf("workspace %v", w)
	}
	for _, field := range []string{"workspace_id", "name", "company_name", "connect_partner_name", "is_sandbox"} {
		if _, ok := w[field]; !ok {
			t.Errorf("the workspace lacks %s", field)
		}
	}
}

// Part 4.1: webhooks/create.
func TestPart4_1_WebhookCreation(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	var out api.WebhookResponse
	if status := s.Post(
		t,
		"/webhooks/create",
		map[string]any{"url": "https://example.com/hook"},
		&out,
	); status != http.StatusOK ||
		!out.Ok {
		t.Fatalf("%d", status)
	}
	if w := out.Webhook; w.WebhookID == "" || w.URL != "https://example.com/hook" ||
		!slices.Equal(w.EventTypes, []string{"*"}) ||
		!strings.HasPrefix(w.Secret, "whsec_") {
		t.Errorf("webhook %s %s %v", w.WebhookID, w.URL, w.EventTypes)
	}
	some := []string{"device.connected", "access_code.unmanaged.converted_to_managed"}
	s.Post(t, "/webhooks/create", map[string]any{"url": "https://example.com/hook", "event_types": some}, &out)
	if !slices.Equal(out.Webhook.EventTypes, some) {
		t.Errorf("event types %v", out.Webhook.EventTypes)
	}
	for name, c := range map[string]struct {
		key    string
		body   map[string]any
		status int
		kind   string
	}{
		"no url": {s.APIKey, map[string]any{}, 400, "invalid_input"},
		"no uri": {s.APIKey, map[string]any{"url": "nowhere"}, 400, "invalid_input"},
		"unknown event type": {
			s.APIKey,
			map[string]any{"url": "https://example.com", "event_types": []string{"door.exploded"}},
			400,
			"invalid_event_types",
		},
		"no event types": {
			s.APIKey,
			map[string]any{"url": "https://example.com", "event_types": []string{}},
			400,
			"invalid_input",
		},
		"no credential":      {"", map[string]any{"url": "https://example.com"}, 401, "unauthorized"},
		"a wrong credential": {"seam_nosuch12_key", map[string]any{"url": "https://example.com"}, 401, "unauthorized"},
	} {
		var f failure
		if status := s.PostAs(
			t,
			c.key,
			"/webhooks/create",
			c.body,
			&f,
		); status != c.status || f.Error.Type != c.kind || f.OK ||
			f.Error.Message == "" {
			t.Errorf("%s: %d %+v", name, status, f)
		}
	}
}

// Part 4.3: devices/list, by GET or POST, in pages: 65 devices with limit 20 are 20, 20, 20, and 5.
func TestPart4_3_DevicesAndPagination(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august", "yale", "nuki", "tedee", "ttlock"), apptest.WithLocks(13))
	restarted := s.StartAnother(t)
	ask := map[string]func(cursor string, out any) int{
		"POST": func(cursor string, out any) int {
			in := map[string]any{"limit": 20}
			if cursor != "" {
				in["page_cursor"] = cursor
			}
			return s.Post(t, "/devices/list", in, out)
		},
		"GET with a body": func(cursor string, out any) int {
			body := `{"limit":20}`
			if cursor != "" {
				body = fmt.Sprintf(`{"limit":20,"page_cursor":%q}`, cursor)
			}
			return s.Send(t, http.MethodGet, "/devices/list", apptest.Bearer(s.APIKey), body, out).StatusCode
		},
		"GET with a query": func(cursor string, out any) int {
			query := "?limit=20"
			if cursor != "" {
				query += "&page_cursor=" + cursor
			}
			return s.Send(t, http.MethodGet, "/devices/list"+query, apptest.Bearer(s.APIKey), "", out).StatusCode
		},
		"POST, each page after a restart": func(cursor string, out any) int {
			in := map[string]any{"limit": 20}
			if cursor == "" {
				return s.Post(t, "/devices/list", in, out)
			}
			in["page_cursor"] = cursor
			return restarted.Post(t, "/devices/list", in, out)
		},
	}
	for name, page := range ask {
		var sizes []int
		seen := map[string]bool{}
		for cursor, more := "", true; more; {
			var out api.DevicesResponse
			if status := page(cursor, &out); status != http.StatusOK || !out.Ok {
				t.Fatalf("%s: %d", name, status)
			}
			sizes = append(sizes, len(out.Devices))
			for _, d := range out.Devices {
				if _, err := uuid.Parse(d.DeviceID); err != nil || seen[d.DeviceID] {
					t.Errorf("%s: device_id %q: %v, seen before: %v", name, d.DeviceID, err, seen[d.DeviceID])
				}
				seen[d.DeviceID] = true
			}
			if more = out.Pagination.HasNextPage; more {
				cursor = *out.Pagination.NextPageCursor
			} else if out.Pagination.NextPageCursor != nil || out.Pagination.NextPageURL != nil {
				t.Errorf("%s: the last page has a cursor", name)
			}
		}
		if !slices.Equal(sizes, []int{20, 20, 20, 5}) {
			t.Errorf("%s: pages of %v", name, sizes)
		}
	}
	var first api.DevicesResponse
	s.Post(t, "/devices/list", map[string]any{"limit": 20}, &first)
	var f failure
	if status := s.Post(
		t,
		"/devices/list",
		map[string]any{"limit": 21, "page_cursor": *first.Pagination.NextPageCursor},
		&f,
	); status != 400 ||
		f.Error.Type != "mismatched_page_parameters" {
		t.Errorf("a cursor with another parameter: %d %s", status, f.Error.Type)
	}
}

// Part 4.4: unmanaged/list; parts 2.5 and 3.1 rule 3: the fields of each entry.
func TestPart4_4_UnmanagedCodes(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august", "smartthings"))
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		var out struct {
			AccessCodes []map[string]any `json:"access_codes"`
			OK          bool             `json:"ok"`
		}
		device := s.Device(t, "august")
		res := s.Send(
			t,
			method,
			"/access_codes/unmanaged/list",
			apptest.Bearer(s.APIKey),
			fmt.Sprintf(`{"device_id":%q}`, device),
			&out,
		)
		if res.StatusCode != http.StatusOK || !out.OK || len(out.AccessCodes) != 3 {
			t.Fatalf("%s: %s with %d codes", method, res.Status, len(out.AccessCodes))
		}
		for _, c := range out.AccessCodes {
			if c["is_managed"] != false || c["device_id"] != device || c["code"] == nil {
				t.Errorf("%s: %v", method, c["access_code_id"])
			}
		}
	}
	var hidden struct {
		AccessCodes []map[string]any `json:"access_codes"`
	}
	s.Post(t, "/access_codes/unmanaged/list", map[string]any{"device_id": s.Device(t, "smartthings")}, &hidden)
	for _, c := range hidden.AccessCodes {
		if _, ok := c["code"]; ok {
			t.Error("SmartThings shows a PIN")
		}
	}
	if len(hidden.AccessCodes) == 0 {
		t.Error("SmartThings lists nothing")
	}
	var f failure
	if status := s.Post(
		t,
		"/access_codes/unmanaged/list",
		struct{}{},
		&f,
	); status != 400 ||
		f.Error.Message != "device_id is required" {
		t.Errorf("without device_id: %d %s", status, f.Error.Message)
	}
}

// await waits until an action attempt has ended.
func await(t *testing.T, s *apptest.Server, a api.ActionAttempt) api.ActionAttempt {
	t.Helper()
	apptest.Until(t, "the attempt ends", func() bool {
		var out api.ActionAttemptResponse
		if status := s.Post(
			t,
			"/action_attempts/get",
			map[string]any{"action_attempt_id": a.ActionAttemptID},
			&out,
		); status != http.StatusOK {
			t.Fatalf("read the attempt: %d", status)
		}
		a = out.ActionAttempt
		return a.Status != api.ActionAttemptStatusPending
	})
	return a
}

func events(t *testing.T, s *apptest.Server, code string) (types []string) {
	t.Helper()
	var out api.EventsResponse
	s.Post(t, "/events/list", map[string]any{"since": "2020-01-01T00:00:00Z", "access_code_id": code}, &out)
	for _, e := range out.Events {
		types = append(types, e.EventType)
	}
	return types
}

// Part 4.5, and parts 2.4, 3.1, 3.2, and 6: conversion.
func TestPart4_5_Conversion(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august", "igloohome", "kwikset", "smartthings"))
	code := s.UnmanagedCodes(t, s.Device(t, "august"))[0]
	var out api.ActionAttemptResponse
	if status := s.Post(
		t,
		"/access_codes/unmanaged/convert_to_managed",
		map[string]any{"access_code_id": code.AccessCodeID},
		&out,
	); status != http.StatusOK {
		t.Fatalf("%d", status)
	}
	if a := out.ActionAttempt; !out.Ok || a.ActionType != "CONVERT_ACCESS_CODE_TO_MANAGED" ||
		a.Status != api.ActionAttemptStatusPending ||
		a.Result != nil ||
		a.Error != nil {
		t.Errorf("immediately: %+v", a)
	}
	a := await(t, s, out.ActionAttempt)
	if result, ok := a.Result.(map[string]any); a.Status != api.ActionAttemptStatusSuccess || !ok || len(result) != 0 ||
		a.Error != nil {
		t.Errorf("at the end: %+v", a)
	}
	var managed api.AccessCodeResponse
	if status := s.Post(
		t,
		"/access_codes/get",
		map[string]any{"access_code_id": code.AccessCodeID},
		&managed,
	); status != http.StatusOK ||
		!managed.AccessCode.IsManaged {
		t.Errorf("converted: %d, managed %v", status, managed.AccessCode.IsManaged)
	}
	if got := events(t, s, code.AccessCodeID); !slices.Contains(got, "access_code.unmanaged.converted_to_managed") {
		t.Errorf("events %v", got)
	}
	for _, profile := range []string{"igloohome", "kwikset", "smartthings"} {
		code := s.UnmanagedCodes(t, s.Device(t, profile))[0]
		var out api.ActionAttemptResponse
		s.Post(
			t,
			"/access_codes/unmanaged/convert_to_managed",
			map[string]any{"access_code_id": code.AccessCodeID},
			&out,
		)
		if a := await(
			t,
			s,
			out.ActionAttempt,
		); a.Status != api.ActionAttemptStatusError || a.Error == nil ||
			a.Result != nil {
			t.Errorf("%s: %+v", profile, a)
		}
		if got := events(
			t,
			s,
			code.AccessCodeID,
		); !slices.Contains(
			got,
			"access_code.unmanaged.failed_to_convert_to_managed",
		) {
			t.Errorf("%s: events %v", profile, got)
		}
	}
}

// Part 4.6: deletion of an unmanaged code, which works like that of a managed one.
func TestPart4_6_Deletion(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	device := s.Device(t, "august")
	lock := s.Lock(t, device)
	code := s.UnmanagedCodes(t, device)[0]
	var created api.AccessCodeCreatedResponse
	s.Post(t, "/access_codes/create", map[string]any{"device_id": device, "code": "2580", "sync": true}, &created)
	for path, c := range map[string]struct{ id, pin, kind string }{
		"/access_codes/unmanaged/delete": {code.AccessCodeID, *code.Code, "DELETE_UNMANAGED_ACCESS_CODE"},
		"/access_codes/delete":           {created.AccessCode.AccessCodeID, "2580", "DELETE_ACCESS_CODE"},
	} {
		if !lock.Has(t, c.pin) {
			t.Fatalf("%s: it is not on the lock", path)
		}
		var out api.ActionAttemptResponse
		if status := s.Post(
			t,
			path,
			map[string]any{"access_code_id": c.id},
			&out,
		); status != http.StatusOK || out.ActionAttempt.ActionType != c.kind ||
			out.ActionAttempt.Status != api.ActionAttemptStatusPending {
			t.Fatalf("%s: %d %+v", path, status, out.ActionAttempt)
		}
		if a := await(t, s, out.ActionAttempt); a.Status != api.ActionAttemptStatusSuccess || a.Error != nil {
			t.Errorf("%s: %+v", path, a)
		}
		if lock.Has(t, c.pin) {
			t.Errorf("%s: it is still on the lock", path)
		}
		for _, get := range []string{"/access_codes/get", "/access_codes/unmanaged/get"} {
			if status := s.Post(t, get, map[string]any{"access_code_id": c.id}, nil); status != http.StatusNotFound {
				t.Errorf("%s: %s answers %d", path, get, status)
			}
		}
	}
}
