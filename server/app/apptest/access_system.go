package apptest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
)

// AccessSystem is a simulated access system in the hands of a test. Its methods talk to the simulated cloud directly,
// so the server does not know about their changes.
type AccessSystem struct {
	// ID and AccountID are the ids of the system and its account in the API.
	ID, AccountID string

	s     *Server
	url   string // of its controls
	token string
}

// PersonOnSystem is a user in the memory of an access system.
type PersonOnSystem struct {
	// ID is the system's id of the user.
	ID string `json:"user_id,omitempty"`
	// ExternalID is the server's id of the user.
	ExternalID string `json:"external_id,omitempty"`
	// FullName, Email, and Phone describe the person.
	FullName string `json:"full_name"`
	Email    string `json:"email,omitempty"`
	Phone    string `json:"phone,omitempty"`
	// StartsAt and EndsAt limit the access in time.
	StartsAt *time.Time `json:"starts_at"`
	EndsAt   *time.Time `json:"ends_at"`
	// Suspended reports whether the access is suspended.
	Suspended bool `json:"suspended"`
	// GroupIDs are the system's ids of the user's groups.
	GroupIDs []string `json:"group_ids"`
	// EntranceIDs are the system's ids of the entrances that open for the user in addition to those of the groups.
	EntranceIDs []string `json:"entrance_ids,omitempty"`
}

// SystemMemory is the memory of an access system.
type SystemMemory struct {
	// SystemID is the vendor's id of the system.
	SystemID string `json:"system_id"`
	// Users are the users of the system.
	Users []PersonOnSystem `json:"users"`
	// Entrances are the entrances of the system.
	Entrances []struct {
		ID      string `json:"entrance_id"`
		Name    string `json:"name"`
		Unlocks int    `json:"unlocks"` // how often it was unlocked through the API
	} `json:"entrances"`
	// Groups are the access groups of the system.
	Groups []struct {
		ID   string `json:"group_id"`
		Name string `json:"name"`
	} `json:"groups"`
}

// AccessSystem connects an account with one access system and returns once the server has read it.
func (s *Server) AccessSystem(t testing.TB) *AccessSystem {
	t.Helper()
	id, err := s.App.Access.Accounts.ConnectAccount(t.Context(), account.NewAccount{
		WorkspaceID:  uuid.MustParse(s.WorkspaceID),
		Adapter:      account.SandboxAccessAdapter,
		DisplayName:  "Simulated access systems",
		Capabilities: []string{account.AccessControl},
		Config:       fmt.Appendf(nil, `{"key":%q}`, uuid.NewString()),
	})
	if err != nil {
		t.Fatal(err)
	}
	account, err := s.App.Access.Accounts.GetAccount(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	y := &AccessSystem{AccountID: id.String(), s: s}
	if y.token, err = s.App.Sandbox.Token(s.t.Context(), account); err != nil {
		t.Fatal(err)
	}
	Until(t, "the access system is read", func() bool {
		systems, err := s.App.ACS.ListSystems(t.Context(), s.principal(), acs.SystemFilter{AccountID: y.AccountID})
		if err != nil || len(systems) == 0 || systems[0].Users == 0 || systems[0].Groups == 0 {
			return false
		}
		y.ID = systems[0].ID.String()
		driven, err := s.App.ACS.ReconcileStateOf(t.Context(), systems[0].ID)
		y.url = s.cloud + "/sandbox/cloud/sandbox/systems/" + driven.Ref
		return err == nil
	})
	return y
}

// Memory reads the memory of the system.
func (y *AccessSystem) Memory(t testing.TB) (m SystemMemory) {
	t.Helper()
	if status := y.s.send(t, http.MethodGet, y.url+"/memory", y.token, nil, &m); status != http.StatusOK {
		t.Fatalf("read the system's memory: %d", status)
	}
	return m
}

// Named returns the users of the system with a name.
func (y *AccessSystem) Named(t testing.TB, name string) (out []PersonOnSystem) {
	t.Helper()
	for _, u := range y.Memory(t).Users {
		if u.FullName == name {
			out = append(out, u)
		}
	}
	return out
}

// Control calls a control of the system. The path is relative to the system's controls in the simulated cloud, see
// package sandbox.
func (y *AccessSystem) Control(t testing.TB, method, path string, body, out any) {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	if status := y.s.send(t, method, y.url+path, y.token, raw, out); status >= 300 {
		t.Fatalf("%s %s: %d", method, path, status)
	}
}

// Account calls a control of the system's vendor account: "revoke" or "restore" its credentials.
func (y *AccessSystem) Account(t testing.TB, what string) {
	t.Helper()
	if status := y.s.send(
		t,
		http.MethodPost,
		y.s.cloud+"/sandbox/cloud/sandbox/account/"+what,
		y.token,
		nil,
		nil,
	); status >= 300 {
		t.Fatalf("%s the account: %d", what, status)
	}
}

// Opens reports whether an entrance opens for a user, and if not, the reason. Both ids are those of the system.
func (y *AccessSystem) Opens(t testing.TB, entrance, user string) (bool, string) {
	t.Helper()
	var out struct {
		Opened bool   `json:"opened"`
		Reason string `json:"reason"`
	}
	y.Control(t, http.MethodPost, "/entrances/"+entrance+"/enter", map[string]any{"user_id": user}, &out)
	return out.Opened, out.Reason
}

// Sync asks the server to read the system.
func (y *AccessSystem) Sync(t testing.TB) {
	t.Helper()
	if status := y.s.Post(
		t,
		"/connected_accounts/sync",
		map[string]any{"connected_account_id": y.AccountID},
		nil,
	); status != http.StatusOK {
		t.Fatalf("sync: %d", status)
	}
}
