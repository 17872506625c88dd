package spec_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// A stray user whose deletion fails does not delay creations, suspensions, or deletions.
func TestAcsUser_FailingStrayDelaysNothing(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"no answer": http.StatusGatewayTimeout, "taken": http.StatusOK} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLiar(t)
			jane, joe := newUser(t, l.s, l.y, nil), newUser(t, l.s, l.y, map[string]any{"full_name": "Joe"})
			settled(t, l.s, jane.AcsUserID)
			settled(t, l.s, joe.AcsUserID)
			late := retold(isLook, func(m map[string]any) {
				m["users"] = append(
					m["users"].([]any),
					map[string]any{"user_id": "late", "external_id": jane.AcsUserID, "full_name": "Jane Doe"},
				)
			})
			var deletions atomic.Int64
			l.tells(func(w http.ResponseWriter, r *http.Request, truth http.Handler) bool {
				if r.Method != http.MethodDelete || !strings.HasSuffix(r.URL.Path, "/late") {
					return late(w, r, truth)
				}
				deletions.Add(1)
				say(w, status, map[string]any{})
				return true
			})
			l.look(1)
			apptest.Until(t, "it is due for deletion", func() bool { return deletions.Load() > 0 })
			done(t, l.s, "/acs/users/suspend", jane.AcsUserID, nil)
			done(t, l.s, "/acs/users/delete", joe.AcsUserID, nil)
			settled(t, l.s, newUser(t, l.s, l.y, map[string]any{"full_name": "After"}).AcsUserID)
			settled(t, l.s, jane.AcsUserID)
			l.gone(joe.AcsUserID)
			if n, looks := deletions.Load(), l.looks.Load(); n > 6 {
				t.Errorf("it was to be deleted %d times, and the system looked at %d times", n, looks)
			}
		})
	}
}

// A suspension does not wait for the new users of the same pass.
func TestAcsUser_SuspensionBeforeNewUsers(t *testing.T) {
	t.Parallel()
	began := time.Now()
	q, _, _ := newQueue(t)
	took := time.Since(began) // longer than the pass that has found them
	var robin api.UserIdentityResponse
	if status := q.s.Post(
		t,
		"/user_identities/create",
		map[string]any{"email_address": "robin.hale@example.com", "acs_system_ids": []string{q.y.ID}},
		&robin,
	); status != http.StatusOK {
		t.Fatal(status)
	}
	var out any
	if status := q.s.Post(
		t,
		"/acs/users/suspend",
		map[string]any{"user_identity_id": robin.UserIdentity.UserIdentityID, "acs_system_id": q.y.ID},
		&out,
	); status != http.StatusOK {
		t.Fatal(status, out)
	}
	apptest.Until(t, "the first has taken long", func() bool { return time.Since(began) > 2*took+time.Second })
	close(q.goOn)
	apptest.Until(t, "all are written", func() bool { return len(q.writes()) == 4 })
	if w := q.writes(); !strings.Contains(w[1], `"suspended":true`) {
		t.Errorf("written in this order: %q", w)
	}
}
