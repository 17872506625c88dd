package spec_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// Part 7: the response reports all violations of a request at once, those of its schema and those that depend on the
// device.
func TestPart7_AllViolationsAtOnce(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("nuki"))
	id := s.Device(t, "nuki")
	var created api.AccessCodeCreatedResponse
	if status := s.Post(
		t,
		"/access_codes/create",
		map[string]any{"device_id": id, "code": "738495"},
		&created,
	); status != http.StatusOK {
		t.Fatal(status)
	}
	for name, c := range map[string]struct {
		path   string
		body   map[string]any
		fields []string
	}{
		"shape": {
			"/webhooks/create",
			map[string]any{"url": "nowhere", "event_types": []string{"door.exploded"}},
			[]string{"url", "event_types"},
		},
		"names": {
			"/access_codes/create",
			map[string]any{"device_id": id, "name": "Ana\x1b[2J", "starts_at": "soon", "ends_at": "later"},
			[]string{"name", "starts_at", "ends_at"},
		},
		"times": {
			"/access_codes/create",
			map[string]any{"device_id": id, "starts_at": "soon", "ends_at": "later", "code": "x"},
			[]string{"starts_at", "ends_at", "code"},
		},
		"rules": {
			"/access_codes/create",
			map[string]any{"device_id": id, "code": "12349", "starts_at": "2026-01-02", "ends_at": "2026-01-01"},
			[]string{"code", "ends_at"},
		},
		"backups": {
			"/access_codes/create",
			map[string]any{"device_id": id, "code": "12349", "use_backup_access_code_pool": true},
			[]string{"code", "use_backup_access_code_pool"},
		},
		"rules of updates": {
			"/access_codes/update",
			map[string]any{
				"access_code_id": created.AccessCode.AccessCodeID,
				"code":           "12349",
				"starts_at":      "2026-01-02",
			},
			[]string{"code", "ends_at"},
		},
		"offline codes": {
			"/access_codes/create",
			map[string]any{"device_id": id, "is_offline_access_code": true},
			[]string{"is_offline_access_code"},
		},
		"used once": {
			"/access_codes/create",
			map[string]any{"device_id": id, "is_one_time_use": true},
			[]string{"is_one_time_use"},
		},
	} {
		var f struct {
			Error struct {
				Type             string         `json:"type"`
				ValidationErrors map[string]any `json:"validation_errors"`
			} `json:"error"`
		}
		if status := s.Post(t, c.path, c.body, &f); status != http.StatusBadRequest || f.Error.Type != "invalid_input" {
			t.Errorf("%s: %d %s", name, status, f.Error.Type)
		}
		for _, field := range c.fields {
			if f.Error.ValidationErrors[field] == nil {
				t.Errorf("%s: no violation of %s: %v", name, field, f.Error.ValidationErrors)
			}
		}
	}
}

// Part 5: three kinds of bearer credentials, each bound to its workspace.
func TestPart5_Authentication(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	ctx := t.Context()
	mine := uuid.MustParse(s.WorkspaceID)
	other, err := s.App.Access.Accounts.CreateWorkspace(ctx, "Other", "", false)
	if err != nil {
		t.Fatal(err)
	}
	issue := func(kind domain.CredentialKind, workspaces ...uuid.UUID) (string, uuid.UUID) {
		token, c, err := s.App.Access.Auth.IssueCredential(
			ctx,
			auth.NewCredential{Kind: kind, WorkspaceIDs: workspaces},
		)
		if err != nil {
			t.Fatal(err)
		}
		return token, c.ID
	}
	key, _ := issue(domain.APIKey, mine)
	revoked, revokedID := issue(domain.APIKey, mine)
	if err := s.App.Access.Auth.RevokeCredential(ctx, revokedID); err != nil {
		t.Fatal(err)
	}
	pat, _ := issue(domain.PAT, mine)
	patOfBoth, _ := issue(domain.PAT, mine, other.ID)
	session, _ := issue(domain.ConsoleSession, mine)
	if !strings.HasPrefix(key, "seam_") || !strings.HasPrefix(pat, "seam_at") || !strings.HasPrefix(session, "ey") {
		t.Error("a token lacks the prefix that clients insist on")
	}
	for name, c := range map[string]struct {
		token, workspace string
		status           int
		in               string // the workspace of the credential
	}{
		"API key":                                      {key, "", 200, s.WorkspaceID},
		"API key naming its workspace":                 {key, s.WorkspaceID, 200, s.WorkspaceID},
		"API key naming another":                       {key, other.ID.String(), 401, ""},
		"revoked API key":                              {revoked, "", 401, ""},
		"PAT with workspace":                           {pat, s.WorkspaceID, 200, s.WorkspaceID},
		"PAT with a workspace it may not enter":        {pat, other.ID.String(), 401, ""},
		"PAT of both":                                  {patOfBoth, other.ID.String(), 200, other.ID.String()},
		"PAT with a workspace that is none":            {pat, "nowhere", 401, ""},
		"PAT without workspace":                        {pat, "", 401, ""},
		"console session with workspace":               {session, s.WorkspaceID, 200, s.WorkspaceID},
		"console session with another workspace":       {session, other.ID.String(), 401, ""},
		"forged console session":                       {session[:len(session)-4] + "AAAA", s.WorkspaceID, 401, ""},
		"console session without signature (alg none)": {"eyJhbGciOiJub25lIn0.eyJqdGkiOiJ4In0.", s.WorkspaceID, 401, ""},
		"nothing": {"", "", 401, ""},
	} {
		header := apptest.Bearer(c.token)
		if c.workspace != "" {
			header.Set("seam-workspace", c.workspace)
		}
		var out struct {
			Workspace struct {
				ID string `json:"workspace_id"`
			} `json:"workspace"`
		}
		res := s.Send(t, http.MethodPost, "/workspaces/get", header, "{}", &out)
		if res.StatusCode != c.status || out.Workspace.ID != c.in {
			t.Errorf("%s: %s in %q", name, res.Status, out.Workspace.ID)
		}
		header.Set("Accept", "application/json")
		if res := s.Send(
			t,
			http.MethodPost,
			"/webhooks/create",
			header,
			`{"url":"https://example.com"}`,
			nil,
		); res.StatusCode != c.status {
			t.Errorf("%s creates a webhook: %s", name, res.Status)
		}
	}
}

// Part 7: errors, in one shape everywhere.
func TestPart7_Errors(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		kind               string
	}{
		"bad request":  {"POST", "/webhooks/create", `{"url":1}`, 400, "invalid_input"},
		"unauthorized": {"POST", "/devices/list", "", 401, "unauthorized"},
		"unknown resource": {
			"POST",
			"/devices/get",
			`{"device_id":"01a1fbf1-125d-72bf-a099-f73c405409c8"}`,
			404,
			"device_not_found",
		},
		"unknown route":  {"POST", "/doors/open", `{}`, 404, "route_not_found"},
		"wrong method":   {"DELETE", "/devices/list", "", 405, "method_not_allowed"},
		"malformed JSON": {"POST", "/devices/list", `{"limit":`, 400, "invalid_json"},
	} {
		header := apptest.Bearer(s.APIKey)
		if c.kind == "unauthorized" {
			header = http.Header{}
		}
		var f failure
		res := s.Send(t, c.method, c.path, header, c.body, &f)
		if res.StatusCode != c.status || f.Error.Type != c.kind || f.Error.Message == "" || f.OK {
			t.Errorf("%s: %s %+v", name, res.Status, f.Error)
		}
		if res.Header.Get("seam-request-id") == "" ||
			!strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
			t.Errorf("%s: headers %v", name, res.Header)
		}
	}
}

// Part 9: the machine-readable description has version 1.0.0 and every specified operation.
func TestPart9_Versioning(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	var doc struct {
		OpenAPI string `json:"openapi"`
		Info    struct {
			Version string `json:"version"`
		} `json:"info"`
		Paths map[string]map[string]any `json:"paths"`
	}
	if res := s.Send(t, http.MethodGet, "/openapi.json", nil, "", &doc); res.StatusCode != http.StatusOK {
		t.Fatal(res.Status)
	}
	if doc.Info.Version != "1.0.0" || !strings.HasPrefix(doc.OpenAPI, "3.1") {
		t.Errorf("version %s of an OpenAPI %s", doc.Info.Version, doc.OpenAPI)
	}
	for path, methods := range map[string][]string{
		"/webhooks/create":                           {"post"},
		"/workspaces/get":                            {"post"},
		"/devices/list":                              {"get", "post"},
		"/access_codes/unmanaged/list":               {"get", "post"},
		"/access_codes/unmanaged/convert_to_managed": {"post"},
		"/access_codes/unmanaged/delete":             {"post"},
	} {
		for _, m := range methods {
			if _, ok := doc.Paths[path][m]; !ok {
				t.Errorf("%s %s is not described", m, path)
			}
		}
	}
}
