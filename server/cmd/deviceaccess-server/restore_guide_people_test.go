package main

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// Stories about people in access systems, and about credentials of the API.

// offices is an access system.
type offices struct {
	token, ref, id string
	groups         map[string]string // API id by name
}

func (s *scene) offices() (o offices) {
	s.Helper()
	made, err := s.box.EnsureAccessAccount(sandbox.AccessSpec{Key: "offices"})
	if err != nil {
		s.Fatal(err)
	}
	s.take(made.Token, made.Token)
	s.ok(
		"accounts",
		"connect",
		"accesscloud",
		"--url",
		s.cloud+"/of/offices",
		"--token-file",
		s.file("offices", made.Token),
	)
	o = offices{token: made.Token, ref: made.Systems[0].ID, groups: map[string]string{}}
	s.until("the access system is read", func() bool {
		for _, y := range s.ask("/acs/systems/list", told{}).all("acs_systems") {
			o.id = y.text("acs_system_id")
		}
		for _, g := range s.ask("/acs/access_groups/list", told{}).all("acs_access_groups") {
			o.groups[g.text("name")] = g.text("acs_access_group_id")
		}
		return o.id != "" && len(o.groups) == 2
	})
	return o
}

// person creates a user and returns once the system has it.
func (s *scene) person(o offices, name string, schedule any) (id string) {
	s.Helper()
	id = s.ask("/acs/users/create", told{
		"acs_system_id":        o.id,
		"full_name":            name,
		"acs_access_group_ids": []string{o.groups["Everyone"]},
		"access_schedule":      schedule,
	}).
		text("acs_user", "acs_user_id")
	s.until(
		name+" is on the system",
		func() bool { return s.there(o, name) != nil && len(s.user(id).all("pending_mutations")) == 0 },
	)
	return id
}

func (s *scene) user(id string) told {
	s.Helper()
	return told(s.ask("/acs/users/get", told{"acs_user_id": id}).at("acs_user").(map[string]any))
}

// there returns a person in the memory of the system, or nil.
func (s *scene) there(o offices, name string) told {
	s.Helper()
	for _, u := range s.by(o.token, http.MethodGet, "/systems/"+o.ref+"/memory", nil).all("users") {
		if u.text("full_name") == name {
			return u
		}
	}
	return nil
}

// letIn reports whether a person can enter at some entrance.
func (s *scene) letIn(o offices, name string) bool {
	s.Helper()
	u := s.there(o, name)
	for _, e := range s.by(o.token, http.MethodGet, "/systems/"+o.ref+"/memory", nil).all("entrances") {
		if u != nil &&
			s.by(o.token, http.MethodPost, "/systems/"+o.ref+"/entrances/"+e.text("entrance_id")+"/enter", told{"user_id": u.text("user_id")}).
				at("opened") ==
				true {
			return true
		}
	}
	return false
}

func people(s *scene) (since, then func(*scene)) {
	o := s.offices()
	end := time.Now().UTC().Truncate(time.Second).Add(48 * time.Hour)
	ids := map[string]string{}
	for _, name := range []string{"Suspended", "Left the group", "Short", "Deleted"} {
		ids[name] = s.person(o, name, map[string]any{"ends_at": end})
	}
	out := func(s *scene, name string) bool { return !s.letIn(o, name) }
	return func(s *scene) {
			s.change("/acs/users/suspend", "acs_user_id", ids["Suspended"])
			s.change(
				"/acs/users/remove_from_access_group",
				"acs_user_id",
				ids["Left the group"],
				told{"acs_access_group_id": o.groups["Everyone"]},
			)
			s.change(
				"/acs/users/update",
				"acs_user_id",
				ids["Short"],
				told{"access_schedule": map[string]any{"ends_at": time.Now().Add(time.Hour)}},
			)
			s.change("/acs/users/delete", "acs_user_id", ids["Deleted"])
			s.person(o, "Made since", nil)
			s.until("access has ended", func() bool {
				return out(s, "Suspended") && out(s, "Left the group") && out(s, "Deleted") &&
					len(s.user(ids["Short"]).all("pending_mutations")) == 0
			})
		}, func(s *scene) {
			s.until("all are as they were", func() bool {
				until, err := time.Parse(time.RFC3339, s.there(o, "Short").text("ends_at"))
				return s.letIn(o, "Suspended") && s.letIn(o, "Left the group") && err == nil && until.Equal(end)
			})
			s.until(
				"the deleted person has an error",
				func() bool { return warned(s.user(ids["Deleted"]), "errors", "deleted_externally") },
			)
			s.until("the person created later is listed", func() bool {
				return slices.ContainsFunc(
					s.ask("/acs/users/unmanaged/list", told{"acs_system_id": o.id}).all("acs_users"),
					func(u told) bool { return u.text("full_name") == "Made since" },
				)
			})
			if !s.letIn(o, "Made since") || s.letIn(o, "Deleted") {
				s.Errorf(
					"the person created later enters: %v, the deleted one: %v",
					s.letIn(o, "Made since"),
					s.letIn(o, "Deleted"),
				)
			}
		}
}

// An identity that was erased after the backup, for example on the person's request, must be erased again.
func identity(s *scene) (since, then func(*scene)) {
	id := s.ask("/user_identities/create", told{"full_name": "Erased"}).text("user_identity", "user_identity_id")
	return func(s *scene) { s.change("/user_identities/delete", "user_identity_id", id) },
		func(s *scene) { s.ask("/user_identities/get", told{"user_identity_id": id}) }
}

// newKey issues an API key.
func (s *scene) newKey(name string) (token, id string) {
	s.Helper()
	token = s.ok("keys", "create", "--workspace", s.workspace, "--name", name)
	for line := range strings.Lines(s.ok("keys", "list")) {
		if fields := strings.Fields(line); slices.Contains(fields, name) {
			id = fields[0]
		}
	}
	return token, id
}

// answered checks the status of a request with each token.
func (s *scene) answered(tokens map[string]int, path string) {
	s.Helper()
	for token, want := range tokens {
		if status, _ := s.try(token, path, told{}); status != want {
			s.Errorf("%s is answered %d, want %d", path, status, want)
		}
	}
}

func keys(s *scene) (since, then func(*scene)) {
	revoked, revokedID := s.newKey("revoked-since")
	twice, twiceID := s.newKey("revoked-twice")
	var late string
	*s.early = append(*s.early, func(s *scene) {
		if list := s.ok("keys", "list"); !strings.Contains(list, revokedID) || strings.Contains(list, "made-since") {
			s.Errorf("the keys are listed otherwise than as they were: %s", list)
		}
		s.ok("keys", "revoke", twiceID)
	})
	return func(s *scene) {
			for _, id := range []string{revokedID, twiceID} {
				s.ok("keys", "revoke", id)
				*s.changed = append(*s.changed, id)
			}
			late, _ = s.newKey("made-since")
			s.answered(
				map[string]int{revoked: http.StatusUnauthorized, twice: http.StatusUnauthorized, late: http.StatusOK},
				"/workspaces/get",
			)
		}, func(s *scene) {
			s.answered(
				map[string]int{revoked: http.StatusOK, twice: http.StatusUnauthorized, late: http.StatusUnauthorized},
				"/workspaces/get",
			)
		}
}

func sessions(s *scene) (since, then func(*scene)) {
	begin := func(s *scene, more told) (token, id string) {
		made := s.ask("/client_sessions/create", more)
		return made.text("client_session", "token"), made.text("client_session", "client_session_id")
	}
	revoked, revokedID := begin(s, told{"user_identifier_key": "revoked"})
	deleted, deletedID := begin(s, told{"user_identifier_key": "deleted"})
	var late string
	return func(s *scene) {
			s.change("/client_sessions/revoke", "client_session_id", revokedID)
			s.change("/client_sessions/delete", "client_session_id", deletedID)
			late, _ = begin(s, told{"user_identifier_key": "late"})
			s.answered(
				map[string]int{revoked: http.StatusUnauthorized, deleted: http.StatusUnauthorized, late: http.StatusOK},
				"/client_sessions/get",
			)
		}, func(s *scene) {
			s.answered(
				map[string]int{revoked: http.StatusOK, deleted: http.StatusOK, late: http.StatusUnauthorized},
				"/client_sessions/get",
			)
		}
}

func pages(s *scene) (since, then func(*scene)) {
	open := func(s *scene) (path, id string) {
		made := s.ask("/connect_webviews/create", told{"accepted_capabilities": []string{"lock"}})
		return strings.TrimPrefix(
				made.text("connect_webview", "url"),
				s.server.URL,
			), made.text(
				"connect_webview",
				"connect_webview_id",
			)
	}
	status := func(s *scene, path string) int {
		req, err := http.NewRequestWithContext(s.Context(), http.MethodGet, s.server.URL+path, nil)
		if err != nil {
			s.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			s.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	deleted, id := open(s)
	var late string
	return func(s *scene) {
			s.change("/connect_webviews/delete", "connect_webview_id", id)
			late, _ = open(s)
			if got := status(s, deleted); got == http.StatusOK {
				s.Error("a page that was deleted is open")
			}
		}, func(s *scene) {
			if got, gone := status(s, deleted), status(s, late); got != http.StatusOK || gone != http.StatusNotFound {
				s.Errorf("the deleted page is answered %d, the later one %d", got, gone)
			}
		}
}

func disconnected(s *scene) (since, then func(*scene)) {
	account, doors := s.account("disconnected", "august")
	d := doors["august"]
	id := s.code(d, told{"name": "Stays", "code": "410040"})
	twice, doors := s.account("twice", "august")
	unwanted := doors["august"]
	*s.early = append(*s.early, func(s *scene) { s.ok("accounts", "disconnect", "--yes", twice) })
	var late latch
	return func(s *scene) {
			for _, id := range []string{account, twice} {
				s.ok("accounts", "disconnect", "--yes", id)
				*s.changed = append(*s.changed, id)
			}
			_, doors := s.account("late", "august")
			late = doors["august"]
			s.code(late, told{"name": "Late", "code": "410041"})
		}, func(s *scene) {
			s.ask("/access_codes/update", told{"access_code_id": id, "code": "410042", "sync": true})
			s.opens(d, "410042")
			for _, gone := range []latch{unwanted, late} { // of an account disconnected again, and of one connected later
				if status, _ := s.try(
					s.key,
					"/devices/get",
					told{"device_id": gone.id},
				); status != http.StatusNotFound {
					s.Errorf("a lock that must be unknown is answered %d", status)
				}
			}
			s.opens(late, "410041")
			_, doors := s.account("late", "august") // connected again
			if again := doors["august"]; again.id == late.id {
				s.Error("the lock has its earlier id")
			} else {
				s.stranger(again, "410041")
			}
		}
}

func credential(s *scene) (since, then func(*scene)) {
	account, doors := s.account("credential", "august")
	d := doors["august"]
	errors := func(s *scene) []told {
		return told(
			s.ask("/connected_accounts/get", told{"connected_account_id": account}).at("connected_account").(map[string]any),
		).all("errors")
	}
	const next = "another-token-of-the-same-account"
	return func(s *scene) {
			s.mu.Lock()
			delete(s.taken, d.token)
			s.taken[next] = d.token
			s.mu.Unlock()
			s.ok("accounts", "update", "--token-file", s.file("next", next), account)
			*s.changed = append(*s.changed, account)
		}, func(s *scene) {
			s.until("the account is refused", func() bool { return len(errors(s)) > 0 })
			s.ok("accounts", "update", "--token-file", s.file("next", next), account)
			s.until("the account works again", func() bool { return len(errors(s)) == 0 })
			s.code(d, told{"name": "After", "code": "410043"})
		}
}
