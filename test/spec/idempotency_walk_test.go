package spec_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest"
)

// keyedRequest is a good request of an operation that takes an Idempotency-Key, and how another one differs from it.
type keyedRequest struct {
	in, other params
	token     string // empty: the workspace's key
}

// Each operation that the contract gives an Idempotency-Key: its answer is lost, and given again by another instance, and
// what it does is done once. One that this table does not know fails it.
func TestEveryKeyedOperationIsDoneOnce(t *testing.T) {
	t.Parallel()
	const lost = "lost "
	one, db := keyedServer(t, func(c *app.Config) {
		recorded := c.Wrap
		c.Wrap = func(next http.Handler) http.Handler {
			return recorded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.Header.Get("Idempotency-Key"), lost) {
					r.Header.Set("Idempotency-Key", strings.TrimPrefix(r.Header.Get("Idempotency-Key"), lost))
					next.ServeHTTP(discarding{w.Header()}, r)
					panic(http.ErrAbortHandler)
				}
				next.ServeHTTP(w, r)
			}))
		}
	})
	two := one.Again(t)
	requests := keyedRequests(t, one)
	doc, err := rest.Document()
	if err != nil {
		t.Fatal(err)
	}
	walked := 0
	for path, item := range doc.Paths.Map() {
		if item.Post.Parameters.GetByInAndName("header", "Idempotency-Key") == nil {
			continue
		}
		walked++
		t.Run(path[1:], func(t *testing.T) {
			made, known := requests[path]
			if !known {
				t.Fatal("add a request of it to keyedRequests")
			}
			r := made(t) // by operations that are tried, too: before any of them is
			t.Parallel()
			token := r.token
			if token == "" {
				token = one.APIKey
			}
			body, other := mustWrite(t, r.in), mustWrite(t, also(r.in, r.other))
			key := uuid.NewString()
			entries := func() int {
				return count(t, db, "select count(*) from audit_log where operation = $1", path)
			}
			before := entries()
			if a, err := ask(t.Context(), one, token, path, lost+key, body); err == nil {
				t.Fatalf("an answer came: %+v", a)
			}
			after := entries()
			if after != before+1 {
				t.Errorf("done %d times", after-before)
			}
			first := sent(t, two, token, path, key, body)
			if first.status != http.StatusOK || !first.replayed {
				t.Fatalf("again: %+v", first)
			}
			if again := sent(t, one, token, path, key, body); again.body != first.body || !again.replayed {
				t.Errorf("a third time: %+v, want %+v", again, first)
			}
			if a := sent(t, two, token, path, key, other); a.kind(t) != "422 idempotency_key_reused" {
				t.Errorf("other parameters: %+v", a)
			}
			if n := entries(); n != after {
				t.Errorf("done %d times more", n-after)
			}
		})
	}
	if walked < 20 || walked != len(requests) {
		t.Errorf("%d operations of the contract take a key, and %d are tried", walked, len(requests))
	}
}

func mustWrite(t *testing.T, in params) string {
	t.Helper()
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// also is in with what differs.
func also(in, other params) params {
	out := params{}
	for name, value := range in {
		out[name] = value
	}
	for name, value := range other {
		out[name] = value
	}
	return out
}

func keyedRequests(t *testing.T, s *apptest.Server) map[string]func(t *testing.T) keyedRequest {
	t.Helper()
	device := s.Device(t, "august")
	personal, _ := s.Credential(t, access.NewCredential{Kind: access.PAT, WorkspaceIDs: []uuid.UUID{uuid.MustParse(s.WorkspaceID)}})
	emptied := s.Workspace(t, "Emptied")
	code := func(t *testing.T, more params) any {
		return madeBy(t, s, "/access_codes/create", "access_code", also(params{"device_id": device, "code": newPIN(), "sync": true}, more))["access_code_id"]
	}
	unmanaged := func(t *testing.T) any {
		return madeBy(t, s, "/access_codes/simulate/create_unmanaged_access_code", "access_code", params{"device_id": device, "code": newPIN(), "name": "Found"})["access_code_id"]
	}
	of := func(in, other params) func(*testing.T) keyedRequest {
		return func(*testing.T) keyedRequest { return keyedRequest{in: in, other: other} }
	}
	aboutCode := func(id func(*testing.T) any, in, other params) func(*testing.T) keyedRequest {
		return func(t *testing.T) keyedRequest {
			return keyedRequest{in: also(params{"access_code_id": id(t)}, in), other: other}
		}
	}
	plainCode := func(t *testing.T) any { return code(t, nil) }
	another := params{"access_code_id": uuid.NewString()}
	named := params{"name": "Other"}
	return map[string]func(*testing.T) keyedRequest{
		"/workspaces/create": func(*testing.T) keyedRequest {
			return keyedRequest{in: params{"name": "New", "is_sandbox": true}, other: named, token: personal}
		},
		"/workspaces/reset_sandbox": func(*testing.T) keyedRequest {
			return keyedRequest{in: params{}, other: params{"workspace_id": s.WorkspaceID}, token: emptied.APIKey}
		},
		"/client_sessions/create":                of(params{"user_identifier_key": "once"}, params{"user_identifier_key": "other"}),
		"/client_sessions/get_or_create":         of(params{"user_identifier_key": "got once"}, params{"user_identifier_key": "other"}),
		"/webhooks/create":                       of(params{"url": "https://hooks.example/once"}, params{"url": "https://hooks.example/other"}),
		"/connect_webviews/create":               of(params{"accepted_providers": []string{"august"}}, params{"accepted_providers": []string{"yale"}}),
		"/locks/lock_door":                       of(params{"device_id": device}, params{"device_id": uuid.NewString()}),
		"/locks/unlock_door":                     of(params{"device_id": device}, params{"device_id": uuid.NewString()}),
		"/locks/configure_auto_lock":             of(params{"device_id": device, "auto_lock_enabled": false}, params{"auto_lock_enabled": true}),
		"/locks/simulate/keypad_code_entry":      of(params{"device_id": device, "code": "987123"}, params{"code": "987124"}),
		"/locks/simulate/manual_lock_via_keypad": of(params{"device_id": device}, params{"device_id": uuid.NewString()}),
		"/access_codes/create":                   of(params{"device_id": device, "name": "Once"}, named),
		"/access_codes/create_multiple":          of(params{"device_ids": []string{device}, "name": "Many"}, named),
		"/access_codes/update_multiple": func(t *testing.T) keyedRequest {
			code(t, params{"common_code_key": "common"})
			return keyedRequest{in: params{"common_code_key": "common", "name": "New"}, other: named}
		},
		"/access_codes/update":                                aboutCode(plainCode, params{"name": "New"}, named),
		"/access_codes/delete":                                aboutCode(plainCode, nil, another),
		"/access_codes/pull_backup_access_code":               aboutCode(func(t *testing.T) any { return backedCode(t, s, device) }, nil, another),
		"/access_codes/simulate/create_unmanaged_access_code": of(params{"device_id": device, "code": newPIN(), "name": "Found once"}, named),
		"/access_codes/unmanaged/update":                      aboutCode(unmanaged, params{"is_managed": true}, another),
		"/access_codes/unmanaged/convert_to_managed":          aboutCode(unmanaged, nil, another),
		"/access_codes/unmanaged/delete":                      aboutCode(unmanaged, nil, another),
		"/acs/users/create": func(t *testing.T) keyedRequest {
			return keyedRequest{in: params{"acs_system_id": s.AccessSystem(t).ID, "full_name": "Once"}, other: params{"full_name": "Other"}}
		},
		"/user_identities/create": of(params{"full_name": "Once"}, params{"full_name": "Other"}),
	}
}
