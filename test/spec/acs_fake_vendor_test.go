package spec_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// liar is a connected vendor of access systems whose responses a test can change.
type liar struct {
	t       *testing.T
	s       *apptest.Server
	y       *apptest.AccessSystem // only ID and AccountID: it is not in the server's simulated cloud
	box     *sandbox.Sandbox
	token   string
	ref     string
	looks   atomic.Int64 // started reads of the system
	listed  atomic.Int64 // started lists of systems
	mu      sync.Mutex
	instead lie
}

// lie answers a request instead of the vendor, or returns false.
type lie func(w http.ResponseWriter, r *http.Request, truth http.Handler) bool

// newLiar connects a vendor that answers truthfully.
func newLiar(t *testing.T, opts ...apptest.Option) *liar {
	t.Helper()
	start := apptest.Shared
	if len(opts) > 0 {
		start = apptest.Start
	}
	l := &liar{
		t:   t,
		s:   start(t, append(opts, apptest.WithProfiles("august"))...),
		box: sandbox.New(sandbox.Options{Seed: 12, Speed: 50}),
	}
	t.Cleanup(l.box.Close)
	made, err := l.box.EnsureAccessAccount(sandbox.AccessSpec{Key: "offices"})
	if err != nil {
		t.Fatal(err)
	}
	l.token, l.ref = made.Token, made.Systems[0].ID
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		instead := l.instead
		l.mu.Unlock()
		switch {
		case isLook(r):
			l.looks.Add(1)
		case r.URL.Path == "/systems":
			l.listed.Add(1)
		}
		if instead == nil || !instead(w, r, l.box.Handler()) {
			l.box.Handler().ServeHTTP(w, r)
		}
	}))
	t.Cleanup(vendor.Close)
	account, err := l.s.App.Access.Accounts.ConnectAccount(
		t.Context(),
		account.NewAccount{
			WorkspaceID:  uuid.MustParse(l.s.WorkspaceID),
			Adapter:      "accesscloud",
			DisplayName:  "A vendor",
			Capabilities: []string{account.AccessControl},
			Config:       fmt.Appendf(nil, `{"base_url":%q,"token":%q}`, vendor.URL, l.token),
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	l.y = &apptest.AccessSystem{AccountID: account.String()}
	apptest.Until(t, "the system is read", func() bool {
		systems, err := l.s.App.ACS.ListSystems(
			t.Context(),
			domain.Principal{WorkspaceID: uuid.MustParse(l.s.WorkspaceID)},
			acs.SystemFilter{AccountID: account.String()},
		)
		if err != nil || len(systems) == 0 || systems[0].Users == 0 || systems[0].Groups == 0 {
			return false
		}
		l.y.ID = systems[0].ID.String()
		return true
	})
	return l
}

func isLook(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/systems/")
}

// tells sets how the vendor answers from now on; nil for the truth.
func (l *liar) tells(instead lie) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.instead = instead
}

// retold changes the vendor's responses to matching requests.
func retold(such func(*http.Request) bool, change func(answer map[string]any)) lie {
	return func(w http.ResponseWriter, r *http.Request, truth http.Handler) bool {
		if !such(r) {
			return false
		}
		said := httptest.NewRecorder()
		truth.ServeHTTP(said, r)
		answer := map[string]any{}
		_ = json.Unmarshal(said.Body.Bytes(), &answer)
		change(answer)
		say(w, said.Code, answer)
		return true
	}
}

// once returns a lie that is used for one request.
func once(f lie) (_ lie, told *atomic.Bool) {
	told = &atomic.Bool{}
	return func(w http.ResponseWriter, r *http.Request, truth http.Handler) bool {
		if told.Load() || !f(w, r, truth) {
			return false
		}
		told.Store(true)
		return true
	}, told
}

func say(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

// look waits for n complete passes over the system.
func (l *liar) look(n int) {
	l.t.Helper()
	for range n + 1 { // a pass starts after the previous one has ended
		before := l.looks.Load()
		if status := l.s.Post(
			l.t,
			"/connected_accounts/sync",
			map[string]any{"connected_account_id": l.y.AccountID},
			nil,
		); status != http.StatusOK {
			l.t.Fatalf("sync: %d", status)
		}
		apptest.Until(l.t, "a look", func() bool { return l.looks.Load() > before })
	}
}

// control calls a control of the system directly, so that the server does not know about it.
func (l *liar) control(method, path string, body any) map[string]any {
	l.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		l.t.Fatal(err)
	}
	req := httptest.NewRequest(method, "/sandbox/systems/"+l.ref+path, bytes.NewReader(raw))
	req.Header.Set("Authorization", "Bearer "+l.token)
	req.Header.Set("Content-Type", "application/json")
	said := httptest.NewRecorder()
	l.box.Handler().ServeHTTP(said, req)
	var out map[string]any
	if err := json.Unmarshal(said.Body.Bytes(), &out); err != nil || said.Code >= 300 {
		l.t.Fatalf("%s %s: %d %v", method, path, said.Code, err)
	}
	return out
}

// named returns the users with a name in the memory of the system.
func (l *liar) named(name string) (out []map[string]any) {
	l.t.Helper()
	for _, u := range l.control(http.MethodGet, "/memory", nil)["users"].([]any) {
		if u := u.(map[string]any); u["full_name"] == name {
			out = append(out, u)
		}
	}
	return out
}

// rename renames a user on the system itself.
func (l *liar) rename(from, to string) {
	l.t.Helper()
	changed := l.named(from)[0]
	id := changed["user_id"].(string)
	delete(changed, "user_id")
	changed["full_name"] = to
	l.control(http.MethodPut, "/users/"+id, changed)
}

func (l *liar) unmanaged() (names []string) {
	l.t.Helper()
	var out api.UnmanagedAcsUsersResponse
	l.s.Post(l.t, "/acs/users/unmanaged/list", map[string]any{"acs_system_id": l.y.ID}, &out)
	return each(out.AcsUsers, func(u api.UnmanagedAcsUser) string { return u.FullName })
}

func (l *liar) told(kind string) int {
	l.t.Helper()
	var events api.EventsResponse
	l.s.Post(l.t, "/events/list", map[string]any{"since": "2020-01-01T00:00:00Z", "event_type": kind}, &events)
	return len(events.Events)
}

// gone waits until a user is deleted.
func (l *liar) gone(id string) {
	l.t.Helper()
	apptest.Until(l.t, "the user is deleted", func() bool {
		return l.s.Post(l.t, "/acs/users/get", map[string]any{"acs_user_id": id}, nil) == http.StatusNotFound
	})
}

// everybody returns a group of the system.
func (l *liar) everybody() map[string]any {
	l.t.Helper()
	return map[string]any{"acs_access_group_ids": []string{groupNamed(l.t, l.s, l.y, "Everyone")}}
}

// bodyOf reads the body of a request and restores it.
func bodyOf(r *http.Request) []byte {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body
}
