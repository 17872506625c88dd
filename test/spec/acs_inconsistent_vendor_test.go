package spec_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// A creation without a response may arrive after the deletion of its user. The server then removes the user from the
// system.
func TestAcsUser_LateCreationIsRemoved(t *testing.T) {
	t.Parallel()
	for name, confirm := range map[string]time.Duration{
		"while it is waited for": time.Minute,
		"later than any wait":    time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			l := newLiar(t, apptest.WithAccess(func(o *access.Options) { o.ConfirmTimeout = confirm }))
			var late sync.WaitGroup
			arrive := make(chan struct{})
			var first sync.Once
			l.tells(func(_ http.ResponseWriter, r *http.Request, truth http.Handler) bool {
				if r.Method != http.MethodPost {
					return false
				}
				first.Do(func() {
					again := httptest.NewRequest(http.MethodPost, r.URL.Path, bytes.NewReader(bodyOf(r)))
					again.Header = r.Header.Clone()
					late.Go(func() { <-arrive; truth.ServeHTTP(httptest.NewRecorder(), again) })
				})
				panic(http.ErrAbortHandler)
			})
			jane := newUser(t, l.s, l.y, l.everybody())
			apptest.Until(t, "the answer is lost", func() bool { return len(user(t, l.s, jane.AcsUserID).Errors) > 0 })
			done(t, l.s, "/acs/users/delete", jane.AcsUserID, nil)
			if confirm < time.Second {
				l.gone(jane.AcsUserID)
			}
			close(arrive)
			late.Wait()
			l.tells(nil)
			l.look(1)
			l.gone(jane.AcsUserID)
			l.look(1)
			if left, told := l.named(
				"Jane Doe",
			), l.told(
				"acs_user.deleted",
			); len(left) != 0 || told != 1 ||
				slices.Contains(l.unmanaged(), "Jane Doe") {
				t.Errorf("%d deletion events; left on the system: %v", told, left)
			}
		})
	}
}

// A deletion counts only when the system no longer lists the user.
func TestAcsUser_DeletionIsVerified(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(http.ResponseWriter){
		"system not found": func(w http.ResponseWriter) {
			say(w, http.StatusNotFound, map[string]any{"error_code": "SYSTEM_NOT_FOUND", "message": "moving house"})
		},
		"done": func(w http.ResponseWriter) { say(w, http.StatusOK, map[string]any{}) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLiar(t)
			jane := newUser(t, l.s, l.y, l.everybody())
			settled(t, l.s, jane.AcsUserID)
			lie, told := once(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if r.Method != http.MethodDelete {
					return false
				}
				answer(w)
				return true
			})
			l.tells(lie)
			done(t, l.s, "/acs/users/delete", jane.AcsUserID, nil)
			l.gone(jane.AcsUserID)
			if left := l.named("Jane Doe"); !told.Load() || len(left) != 0 || l.told("acs_user.deleted") != 1 {
				t.Errorf("left on the system: %v", left)
			}
		})
	}
}

// One response without users that existed a moment ago does not change the desired state.
func TestAcsSystem_MomentarilyEmpty(t *testing.T) {
	t.Parallel()
	isList := func(r *http.Request) bool { return r.URL.Path == "/systems" }
	for name, c := range map[string]struct {
		asked  func(*http.Request) bool
		change func(map[string]any)
	}{
		"no systems":         {isList, func(m map[string]any) { m["systems"] = []any{} }},
		"nothing of systems": {isList, func(m map[string]any) { delete(m, "systems") }},
		"no groups":          {isLook, func(m map[string]any) { m["groups"] = []any{} }},
		"nothing of groups":  {isLook, func(m map[string]any) { delete(m, "groups") }},
		"no users":           {isLook, func(m map[string]any) { m["users"] = []any{} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLiar(t)
			jane := newUser(t, l.s, l.y, l.everybody())
			settled(t, l.s, jane.AcsUserID)
			var person api.UserIdentityResponse
			l.s.Post(
				t,
				"/user_identities/create",
				map[string]any{
					"email_address":  "robin.hale@example.com",
					"full_name":      "Robin Hale",
					"acs_system_ids": []string{l.y.ID},
				},
				&person,
			)
			var robin api.AcsUserResponse
			if status := l.s.Post(
				t,
				"/acs/users/get",
				map[string]any{"acs_system_id": l.y.ID, "user_identity_id": person.UserIdentity.UserIdentityID},
				&robin,
			); status != http.StatusOK {
				t.Fatal(status)
			}
			lie, told := once(retold(c.asked, c.change))
			l.tells(lie)
			if status := l.s.Post(
				t,
				"/connected_accounts/sync",
				map[string]any{"connected_account_id": l.y.AccountID},
				nil,
			); status != http.StatusOK {
				t.Fatalf("sync: %d", status)
			}
			apptest.Until(t, "the lie is used", told.Load)
			l.look(2)

			if groups := l.named("Jane Doe")[0]["group_ids"].([]any); len(groups) != 1 {
				t.Errorf("her groups on the system: %v", groups)
			}
			l.rename("Jane Doe", "Jane Changed")
			l.look(1)
			apptest.Until(
				t,
				"her changes there are reverted as usual",
				func() bool { return len(l.named("Jane Doe")) == 1 },
			)
			done(t, l.s, "/acs/users/suspend", robin.AcsUser.AcsUserID, nil)
			settled(t, l.s, robin.AcsUser.AcsUserID)
			if there := l.named(
				"Robin Hale",
			); len(there) != 1 || there[0]["suspended"] != true || slices.Contains(l.unmanaged(), "Robin Hale") ||
				l.told("acs_system.disconnected") != 0 {
				t.Errorf("the one that was there before: %v", there)
			}
		})
	}
}

// A longer absence counts as deletion. A user that reappears later is managed again.
func TestAcsUser_DeletedOnSystemReappears(t *testing.T) {
	t.Parallel()
	l := newLiar(t, apptest.WithAccess(func(o *access.Options) { o.EmptyListGrace = time.Millisecond }))
	jane := newUser(t, l.s, l.y, nil)
	settled(t, l.s, jane.AcsUserID)
	l.tells(retold(isLook, func(m map[string]any) { m["users"] = []any{} }))
	l.look(2)
	apptest.Until(
		t,
		"her absence is noticed",
		func() bool { return fails(user(t, l.s, jane.AcsUserID), "deleted_externally") },
	)
	l.tells(nil)
	l.look(1)
	settled(t, l.s, jane.AcsUserID)
	l.rename("Jane Doe", "Jane Changed")
	l.look(1)
	apptest.Until(t, "her changes there are reverted", func() bool { return len(l.named("Jane Doe")) == 1 })
}

// A system that is neither listed nor found is removed.
func TestAcsSystem_RemovedWhenGone(t *testing.T) {
	t.Parallel()
	l := newLiar(t, apptest.WithAccess(func(o *access.Options) { o.EmptyListGrace = time.Second }))
	l.control(http.MethodPost, "/remove", nil)
	l.look(0)
	apptest.Until(t, "the system is removed", func() bool {
		return l.s.Post(t, "/acs/systems/get", map[string]any{"acs_system_id": l.y.ID}, nil) == http.StatusNotFound
	})
	if told := l.told("acs_system.disconnected"); told != 1 {
		t.Errorf("%d events", told)
	}
}

// A system that is listed but not found is retried, with pauses.
func TestAcsSystem_ListedButNotFound(t *testing.T) {
	t.Parallel()
	l := newLiar(t)
	l.tells(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !isLook(r) {
			return false
		}
		say(w, http.StatusNotFound, map[string]any{"error_code": "SYSTEM_NOT_FOUND", "message": "no such system"})
		return true
	})
	before := l.listed.Load()
	l.look(0)
	apptest.Until(t, "the event is listed", func() bool { return l.told("acs_system.disconnected") == 1 })
	if lists := l.listed.Load() - before; lists > 5 {
		t.Errorf("%d lists until then", lists)
	}
	l.tells(nil)
	l.look(1)
	apptest.Until(t, "it is there", func() bool { return l.told("acs_system.connected") == 2 })
}

var fraction = regexp.MustCompile(`(\d\d:\d\d:\d\d)\.\d+Z`)

// A system that stores values differently is not rewritten in a loop: whole seconds count as equal, and normalized
// names are corrected only from time to time.
func TestAcsSystem_NormalizesValues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(string) string
		most   int64
	}{
		"whole seconds": {func(s string) string { return fraction.ReplaceAllString(s, "${1}Z") }, 0},
		"groups twice": {func(s string) string {
			return regexp.MustCompile(`"group_ids":\["([^"]+)"\]`).ReplaceAllString(s, `"group_ids":["$1","$1"]`)
		}, 0},
		"capitals": {func(s string) string { return strings.ReplaceAll(s, "Jane Doe", "JANE DOE") }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLiar(t)
			var puts atomic.Int64
			l.tells(func(w http.ResponseWriter, r *http.Request, truth http.Handler) bool {
				if r.Method == http.MethodPut {
					puts.Add(1)
				}
				said := httptest.NewRecorder()
				truth.ServeHTTP(said, r)
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(said.Code)
				_, _ = w.Write([]byte(c.change(said.Body.String())))
				return true
			})
			in := l.everybody()
			in["access_schedule"] = map[string]any{
				"starts_at": "2026-01-01T00:00:00.654321Z",
				"ends_at":   "2040-01-01T00:00:00.987654Z",
			}
			jane := newUser(t, l.s, l.y, in)
			apptest.Until(t, "she is there", func() bool { return len(l.named("Jane Doe")) == 1 })
			l.look(6)
			u := user(t, l.s, jane.AcsUserID)
			if n := puts.Load(); n > c.most {
				t.Errorf("written %d times more", n)
			}
			if c.most == 0 && (len(u.PendingMutations) != 0 || len(u.Errors) != 0) ||
				c.most > 0 && !fails(u, "failed_to_update_on_acs_system") {
				t.Errorf("events about her: %v %+v", mutations(u), u.Errors)
			}
		})
	}
}
