package spec_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
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

// queue is a system whose first write, of the user Slow, hangs until released.
type queue struct {
	*liar
	goOn chan struct{}
	mu   sync.Mutex
	sent []string // "METHOD body"
}

// newQueue starts writing Slow. Jane Doe and Joe wait for their turn.
func newQueue(t *testing.T) (q *queue, jane, joe string) {
	t.Helper()
	q = &queue{liar: newLiar(t), goOn: make(chan struct{})}
	looks, all := make(chan struct{}), make(chan struct{})
	looked := sync.OnceFunc(func() { close(looks) })
	wait := func(c <-chan struct{}) {
		select {
		case <-c:
		case <-t.Context().Done():
		}
	}
	q.tells(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if isLook(r) {
			looked()
			wait(all)
		}
		if r.Method == http.MethodGet {
			return false
		}
		body := bodyOf(r)
		q.mu.Lock()
		q.sent = append(q.sent, r.Method+" "+string(body))
		q.mu.Unlock()
		if bytes.Contains(body, []byte("Slow")) {
			wait(q.goOn)
		}
		return false
	})
	if status := q.s.Post(
		t,
		"/connected_accounts/sync",
		map[string]any{"connected_account_id": q.y.AccountID},
		nil,
	); status != http.StatusOK {
		t.Fatalf("sync: %d", status)
	}
	wait(looks) // the pass that finds all three
	newUser(t, q.s, q.y, map[string]any{"full_name": "Slow"})
	jane, joe = newUser(t, q.s, q.y, nil).AcsUserID, newUser(t, q.s, q.y, map[string]any{"full_name": "Joe"}).AcsUserID
	close(all)
	apptest.Until(t, "the first is being written", func() bool { return len(q.writes()) > 0 })
	return q, jane, joe
}

func (q *queue) writes() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.sent)
}

// A user that is deleted before its turn is not written.
func TestAcsUser_DeletedBeforeItsTurnIsNotWritten(t *testing.T) {
	t.Parallel()
	q, jane, joe := newQueue(t)
	done(t, q.s, "/acs/users/delete", jane, nil)
	done(t, q.s, "/acs/users/suspend", joe, nil)
	close(q.goOn)
	q.gone(jane)
	settled(t, q.s, joe)
	for _, w := range q.writes() {
		if strings.Contains(w, "Jane") || strings.Contains(w, "Joe") && strings.Contains(w, `"suspended":false`) {
			t.Errorf("written after it was taken back: %s", w)
		}
	}
}

// The server writes nothing to a disconnected account.
func TestAcsAccount_DisconnectStopsWrites(t *testing.T) {
	t.Parallel()
	q, _, _ := newQueue(t)
	db := database(t, q.s)
	if status := q.s.Post(
		t,
		"/connected_accounts/delete",
		map[string]any{"connected_account_id": q.y.AccountID},
		nil,
	); status != http.StatusOK {
		t.Fatal(status)
	}
	close(q.goOn)
	apptest.Until(t, "the first is written", func() bool { return len(q.named("Slow")) == 1 })
	apptest.Until(t, "the server is done with the system", func() bool {
		return count(t, db, "select count(*) from leases where key like '%' || $1 and held_until > now()", q.y.ID) == 0
	})
	if w := q.writes(); len(w) != 1 {
		t.Errorf("written after the account was disconnected: %v", w)
	}
}

// If a vendor confuses a new user with an existing one, the user with our reference stays ours, and other users are
// written as usual.
func TestAcsVendor_MatchesPeopleByAddress(t *testing.T) {
	t.Parallel()
	l := newLiar(t)
	robin := l.named("Robin Hale")[0]
	l.tells(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.Method != http.MethodPost || !bytes.Contains(bodyOf(r), []byte("robin.hale@example.com")) {
			return false
		}
		say(w, http.StatusOK, robin)
		return true
	})
	theirs := map[string]any{"full_name": "R. Hale", "email_address": "robin.hale@example.com"}
	first := newUser(t, l.s, l.y, theirs)
	settled(t, l.s, first.AcsUserID)
	l.look(1) // the vendor has changed nothing
	if on := l.named(
		"R. Hale",
	); len(on) != 1 || on[0]["user_id"] != robin["user_id"] ||
		slices.Contains(l.unmanaged(), "Robin Hale") {
		t.Errorf("the one that was there: %v", on)
	}
	second := newUser(t, l.s, l.y, theirs)
	apptest.Until(
		t,
		"the second is refused",
		func() bool { return fails(user(t, l.s, second.AcsUserID), "failed_to_create_on_acs_system") },
	)
	if message := user(t, l.s, second.AcsUserID).Errors[0].Message; !strings.Contains(message, first.AcsUserID) {
		t.Errorf("why: %s", message)
	}
	settled(t, l.s, newUser(t, l.s, l.y, map[string]any{"full_name": "After"}).AcsUserID)
	l.look(1)
	settled(t, l.s, first.AcsUserID)

	l.tells(nil) // once the first is deleted, the vendor cannot confuse the second with it
	done(t, l.s, "/acs/users/delete", first.AcsUserID, nil)
	l.gone(first.AcsUserID)
	settled(t, l.s, second.AcsUserID)
}

// Invalid parts of a vendor's response are ignored. The rest counts.
func TestAcsVendor_InvalidPartsAreIgnored(t *testing.T) {
	t.Parallel()
	appended := func(m map[string]any, field string, odd any) { m[field] = append(m[field].([]any), odd) }
	for name, instead := range map[string]lie{
		"a system twice": retold(func(r *http.Request) bool { return r.URL.Path == "/systems" }, func(m map[string]any) {
			appended(m, "systems", m["systems"].([]any)[0])
		}),
		"names with NUL": retold(isLook, func(m map[string]any) {
			appended(m, "entrances", map[string]any{"entrance_id": "a\x00b", "name": "x\x00"})
			appended(m, "groups", map[string]any{"group_id": "a\x00b", "name": "x", "entrance_ids": []string{"a\x00b"}})
			appended(m["groups"].([]any)[0].(map[string]any), "entrance_ids", "a\x00b")
			appended(m["users"].([]any)[0].(map[string]any), "group_ids", "a\x00b")
		}),
		"after the end of the calendar": retold(isLook, func(m map[string]any) {
			m["users"].([]any)[0].(map[string]any)["starts_at"] = "0000-01-01T00:00:00Z"
			m["users"].([]any)[0].(map[string]any)["ends_at"] = "9999-12-31T23:59:59-05:00"
		}),
		"in a zone that there is not": retold(isLook, func(m map[string]any) {
			m["users"].([]any)[0].(map[string]any)["starts_at"] = "2026-01-01T00:00:00+24:00"
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLiar(t)
			l.tells(instead)
			l.look(2)
			settled(t, l.s, newUser(t, l.s, l.y, nil).AcsUserID)
			l.look(1)
			if got := l.unmanaged(); !slices.Equal(got, []string{"Robin Hale", "Sam Okafor"}) {
				t.Errorf("found: %v", got)
			}
		})
	}
}

// A system that can be read but rejects writes is disconnected, with one event, until it accepts one.
func TestAcsSystem_RejectsWrites(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]func(http.ResponseWriter){
		"offline": func(w http.ResponseWriter) {
			say(w, http.StatusServiceUnavailable, map[string]any{"error_code": "SYSTEM_OFFLINE", "message": "offline"})
		},
		"a token for reading": func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLiar(t)
			l.tells(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if r.Method == http.MethodGet {
					return false
				}
				refuse(w)
				return true
			})
			jane := newUser(t, l.s, l.y, nil)
			apptest.Until(t, "the event is listed", func() bool {
				return l.told("acs_system.disconnected") == 1 &&
					fails(user(t, l.s, jane.AcsUserID), "failed_to_create_on_acs_system")
			})
			l.look(4)
			for kind, want := range map[string]int{
				"acs_system.disconnected":        1,
				"acs_system.connected":           1,
				"connected_account.disconnected": 0,
				"connected_account.connected":    2,
			} {
				if got := l.told(kind); got != want {
					t.Errorf("%s: %d events", kind, got)
				}
			}
			l.tells(nil)
			l.look(1)
			settled(t, l.s, jane.AcsUserID)
			if got := l.told("acs_system.connected"); got != 2 {
				t.Errorf("the connection: %d events", got)
			}
		})
	}
}

// Credentials that one system of an account rejects work for the others. The account is not disconnected.
func TestAcsSystem_RejectedCredentialsOfOneSystem(t *testing.T) {
	t.Parallel()
	l := newLiar(t)
	l.tells(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if isLook(r) {
			w.WriteHeader(http.StatusUnauthorized)
		}
		return isLook(r)
	})
	l.look(1)
	apptest.Until(t, "the event is listed", func() bool { return l.told("acs_system.disconnected") == 1 })
	l.look(4)
	for kind, want := range map[string]int{"acs_system.disconnected": 1, "connected_account.disconnected": 0} {
		if got := l.told(kind); got != want {
			t.Errorf("%s: %d events", kind, got)
		}
	}
}

// After a rate limit, the server pauses instead of writing the other users.
func TestAcsSystem_RateLimitPausesWrites(t *testing.T) {
	t.Parallel()
	l := newLiar(t)
	var posts atomic.Int64
	var free atomic.Bool
	l.tells(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.Method != http.MethodPost || free.Load() {
			return false
		}
		posts.Add(1)
		w.Header().Set("Retry-After", "1")
		say(w, http.StatusTooManyRequests, map[string]any{"error_code": "RATE_LIMITED", "message": "slowly"})
		return true
	})
	var all []api.AcsUser
	for n := range 10 {
		all = append(all, newUser(t, l.s, l.y, map[string]any{"full_name": fmt.Sprint("Guest ", n)}))
	}
	apptest.Until(t, "one is refused", func() bool { return posts.Load() > 0 })
	l.look(2)
	if sent, looks := posts.Load(), l.looks.Load(); sent > looks {
		t.Errorf("in %d looks it was asked for %d users", looks, sent)
	}
	free.Store(true)
	for _, u := range all {
		settled(t, l.s, u.AcsUserID)
	}
}

// A group may be deleted just before a user is added to it. Without the group, the write is a new one and is tried
// immediately.
func TestAcsUser_RetriedWithoutDeletedGroup(t *testing.T) {
	t.Parallel()
	l := newLiar(t, apptest.WithAccess(func(o *access.Options) { o.EmptyListGrace = time.Millisecond }))
	var ref string
	for _, g := range l.control(http.MethodGet, "/memory", nil)["groups"].([]any) {
		if g := g.(map[string]any); g["name"] == "Everyone" {
			ref = g["group_id"].(string)
		}
	}
	var once sync.Once
	l.tells(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.Method == http.MethodPost {
			once.Do(func() { l.control(http.MethodDelete, "/groups/"+ref, nil) })
		}
		return false
	})
	jane := newUser(t, l.s, l.y, l.everybody())
	apptest.Until(t, "she is refused", func() bool { return len(user(t, l.s, jane.AcsUserID).Errors) > 0 })
	l.look(1)
	settled(t, l.s, jane.AcsUserID)
}

// The retry pause of a user has the same length on servers whose clocks differ from the database's.
func TestAcsUser_PauseUsesDatabaseClock(t *testing.T) {
	t.Parallel()
	behind := func() time.Time { return time.Now().Add(-10 * time.Minute) }
	s := apptest.Start(
		t,
		apptest.WithProfiles("august"),
		apptest.WithAccess(func(o *access.Options) { o.Now = behind }),
	)
	y := s.AccessSystem(t)
	y.Control(t, http.MethodPut, "/faults", map[string]any{"failure_rate": map[string]any{"full": 1}}, nil)
	jane := newUser(t, s, y, nil)
	apptest.Until(t, "she is refused", func() bool { return len(user(t, s, jane.AcsUserID).Errors) > 0 })
	y.Control(t, http.MethodPut, "/faults", map[string]any{}, nil)
	settled(t, s, jane.AcsUserID)
}

// Times that JSON cannot represent are rejected, and nothing is created.
func TestAcsUser_TimesOutOfRange(t *testing.T) {
	t.Parallel()
	l := newLiar(t)
	device := l.s.Device(t, "august")
	for field, frame := range map[string]map[string]any{
		"ends_at":   {"starts_at": "2026-01-01T00:00:00Z", "ends_at": "9999-12-31T23:59:59-12:00"},
		"starts_at": {"starts_at": "0001-01-01T00:00:00+12:00", "ends_at": "2040-01-01T00:00:00Z"},
	} {
		for path, in := range map[string]map[string]any{
			"/acs/users":    {"acs_system_id": l.y.ID, "full_name": "Late", "access_schedule": frame},
			"/access_codes": {"device_id": device, "starts_at": frame["starts_at"], "ends_at": frame["ends_at"]},
		} {
			var f failure
			status := l.s.Post(t, path+"/create", in, &f)
			violations, _ := json.Marshal(f.Error.ValidationErrors)
			if status != http.StatusBadRequest || !bytes.Contains(violations, []byte(field)) {
				t.Errorf("%s, %s: %d %s", path, field, status, violations)
			}
			delete(in, "full_name")
			delete(in, "access_schedule")
			delete(in, "starts_at")
			delete(in, "ends_at")
			var out map[string]any
			if status := l.s.Post(
				t,
				path+"/list",
				in,
				&out,
			); status != http.StatusOK ||
				len(out[strings.ReplaceAll(path[1:], "/", "_")].([]any)) != 0 {
				t.Errorf("%s/list: %d %v", path, status, out)
			}
		}
	}
}

// Different spellings of one system id count as one system.
func TestUserIdentity_JoinsASystemOnce(t *testing.T) {
	t.Parallel()
	l := newLiar(t)
	var out api.UserIdentityResponse
	if status := l.s.Post(
		t,
		"/user_identities/create",
		map[string]any{"full_name": "Jane Doe", "acs_system_ids": []string{l.y.ID, strings.ToUpper(l.y.ID)}},
		&out,
	); status != http.StatusOK {
		t.Fatal(status)
	}
	var users api.AcsUsersResponse
	if l.s.Post(
		t,
		"/acs/users/list",
		map[string]any{"user_identity_id": out.UserIdentity.UserIdentityID},
		&users,
	); len(
		users.AcsUsers,
	) != 1 {
		t.Errorf("her users: %+v", users.AcsUsers)
	}
}
