package acs_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// house is a reconciled system with a managed user in a group.
type house struct {
	*testing.T
	db     *store.DB
	s      *acs.Service
	p      domain.Principal
	system uuid.UUID
	jane   acs.User
	now    time.Time
	users  []acs.FoundUser
	groups []acs.FoundGroup

	entrances []acs.FoundEntrance
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{
		T:      t,
		now:    time.Now().UTC(),
		groups: []acs.FoundGroup{{Ref: "g1", Name: "Everyone"}, {Ref: "g2", Name: "Staff"}},
	}
	db, s, p, systems := systemsOf(t, access.Options{Now: func() time.Time { return h.now }})
	h.db, h.s, h.p, h.system = db, s, p, uuid.MustParse(systems[0])
	h.look(nil)
	groups, err := s.ListGroups(t.Context(), p, acs.GroupFilter{SystemID: systems[0]})
	if err == nil {
		h.jane, err = s.CreateUser(t.Context(), p,
			acs.NewUser{SystemID: systems[0], FullName: "Jane Doe", GroupIDs: []string{groups[0].ID.String()}})
	}
	if err != nil {
		t.Fatal(err)
	}
	h.users = []acs.FoundUser{
		{Ref: "u1", Key: h.jane.ID.String(), Profile: acs.Profile{FullName: "Jane Doe", Groups: []string{"g1"}}},
	}
	h.look(h.users)
	return h
}

// look records the content of the system and returns the planned writes.
func (h *house) look(users []acs.FoundUser) []acs.Write {
	h.Helper()
	todo, _, err := h.s.RecordContent(h.Context(), alone{}, h.system, users, h.groups, h.entrances)
	if err != nil {
		h.Fatal(err)
	}
	return todo
}

// settled asserts that no write is planned for Jane, who is in her group.
func (h *house) settled(after string) {
	h.Helper()
	if todo := h.look(h.users); len(todo) != 0 {
		h.Errorf("after %s: planned %+v", after, todo)
	}
	var groups []string
	if err := h.db.Pool.QueryRow(h.Context(), "select group_refs from acs_users where acs_user_id = $1", h.jane.ID).
		Scan(&groups); err != nil ||
		len(groups) != 1 {
		h.Errorf("after %s: groups %v: %v", after, groups, err)
	}
}

// Groups with unstorable references do not count, so all groups disappear together, which starts a
// grace period.
func TestGracePeriod_UnstorableGroups(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for name, groups := range map[string][]acs.FoundGroup{"groups without a name": {{Name: "Everyone"}, {Name: "Staff"}}, "groups with another": {{Ref: "g\x001"}}} {
		was := h.groups
		h.groups = groups
		h.look(h.users)
		h.groups = was
		h.settled(name)
	}
	h.look([]acs.FoundUser{{Ref: "u\x001", Key: h.jane.ID.String()}})
	h.settled("users with a name that cannot be kept")
}

// A system that is briefly empty before and after an outage of an hour is not empty.
func TestGracePeriod_RestartsAfterOutage(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	none := func() {
		t.Helper()
		was := h.groups
		h.groups = nil
		h.look(nil)
		h.groups = was
	}
	none()
	if err := h.s.RecordUnreachable(t.Context(), alone{}, h.system, "no answer", false); err != nil {
		t.Fatal(err)
	}
	h.now = h.now.Add(time.Hour)
	none()
	h.settled("two such moments")

	account := h.account()
	for name, between := range map[string]func() error{
		"a normal look": func() error { h.look(h.users); return nil },
		"an outage":     func() error { return h.s.RecordUnreachable(t.Context(), alone{}, h.system, "no answer", false) },
	} {
		if err := h.s.RecordSystems(
			t.Context(),
			alone{},
			account,
			[]acs.FoundSystem{{Ref: "b", Name: "B", Online: true}},
		); err != nil {
			t.Fatal(err)
		}
		if err := between(); err != nil {
			t.Fatal(err)
		}
		h.now = h.now.Add(time.Hour)
		if _, _, err := h.s.RecordAbsent(t.Context(), alone{}, h.system); err != nil {
			t.Fatal(err)
		}
		h.settled("a list without the system, and " + name)
	}
}

// The same for a system that was briefly empty before the server stopped for hours, and again after
// it.
func TestGracePeriod_OldOneDoesNotCount(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	groups := h.groups
	for range 2 {
		h.groups = nil
		h.now = h.now.Add(3 * time.Hour)
		if _, later, err := h.s.RecordContent(t.Context(), alone{}, h.system, nil, nil, nil); err != nil ||
			later != 15*time.Second {
			t.Fatalf("grace left %s: %v", later, err)
		}
	}
	h.groups = groups
	h.settled("two such moments")

	account := h.account()
	for range 2 {
		if err := h.s.RecordSystems(
			t.Context(),
			alone{},
			account,
			[]acs.FoundSystem{{Ref: "b", Name: "B", Online: true}},
		); err != nil {
			t.Fatal(err)
		}
		h.now = h.now.Add(3 * time.Hour)
		if _, again, err := h.s.RecordAbsent(t.Context(), alone{}, h.system); err != nil || again != 15*time.Second {
			t.Fatalf("grace left for the absence %s: %v", again, err)
		}
	}
	h.settled("a list without the system")
}

// Once the grace period has ended, it does not start again at each look. A system may permanently
// name groups that it does not list.
func TestGracePeriod_DoesNotRestartAtEachLook(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	users := append(h.users,
		acs.FoundUser{Ref: "u2", Profile: acs.Profile{FullName: "Robin Hale", Groups: []string{"g1"}}})
	h.look(users)
	h.delete(h.jane)
	h.look(users[1:])
	h.groups = nil
	h.look(users[1:])
	for range 12 {
		h.now = h.now.Add(6 * time.Minute)
		if _, later, err := h.s.RecordContent(t.Context(), alone{}, h.system, users[1:], nil, nil); err != nil ||
			later != 0 {
			t.Fatalf("grace left %s: %v", later, err)
		}
	}
}

// The end of the grace period for one group does not shorten the next one for all users.
func TestGracePeriod_EndsSeparately(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.groups = h.groups[1:]
	look := func(users []acs.FoundUser) time.Duration {
		t.Helper()
		_, later, err := h.s.RecordContent(t.Context(), alone{}, h.system, users, h.groups, nil)
		if err != nil {
			t.Fatal(err)
		}
		return later
	}
	if wait := look(h.users); wait != 15*time.Second {
		t.Errorf("grace left for the group: %s", wait)
	}
	h.now = h.now.Add(time.Minute)
	if wait := look(h.users); wait != 0 {
		t.Errorf("grace still left for the group: %s", wait)
	}
	if wait := look(nil); wait != 15*time.Second {
		t.Errorf("grace left for all users: %s", wait)
	}
}

// account returns the account of the house.
func (h *house) account() (id uuid.UUID) {
	h.Helper()
	if err := h.db.Pool.QueryRow(h.Context(), "select connected_account_id from acs_systems where acs_system_id = $1", h.system).
		Scan(&id); err != nil {
		h.Fatal(err)
	}
	return id
}

// A user that was deleted while its system was removed could pass once the system is back, so the
// deletion must continue.
func TestDeletion_SurvivesRemovedSystem(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	if err := h.s.DeleteUser(t.Context(), h.p, acs.UserName{UserID: h.jane.ID.String()}); err != nil {
		t.Fatal(err)
	}
	account := h.account()
	list := func(systems ...acs.FoundSystem) {
		t.Helper()
		if err := h.s.RecordSystems(t.Context(), alone{}, account, systems); err != nil {
			t.Fatal(err)
		}
	}
	list()
	h.now = h.now.Add(time.Minute)
	if _, again, err := h.s.RecordAbsent(t.Context(), alone{}, h.system); err != nil || again != 0 {
		t.Fatal(again, err)
	}
	list(acs.FoundSystem{Ref: "a", Name: "A", Online: true})
	if todo := h.look(h.users); len(todo) != 1 || !todo[0].Delete || todo[0].Ref != "u1" {
		t.Errorf("deleted user: planned %+v", todo)
	}
}

// Vendors may change the case of identifiers.
func TestOwnUser_KeyInOtherCase(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	again := h.users[0]
	again.Ref, again.Key = "u2", strings.ToUpper(again.Key)
	if todo := h.look([]acs.FoundUser{again}); len(todo) != 0 {
		t.Errorf("planned %+v", todo)
	}
}

// All times can be stored, in any time zone of server or vendor.
func TestUserTimes_AreStorable(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	odd := time.Date(2026, 1, 1, 0, 0, 0, 0, time.FixedZone("", 24*60*60))
	h.look(append(h.users, acs.FoundUser{Ref: "u9", Profile: acs.Profile{FullName: "Robin Hale", StartsAt: &odd}}))
	h.settled("a time in a zone that there is not")

	last := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	if _, err := h.s.CreateUser(
		t.Context(),
		h.p,
		acs.NewUser{
			SystemID: h.system.String(),
			FullName: "Sam Okafor",
			Schedule: &acs.NewSchedule{EndsAt: last.Format(time.RFC3339)},
		},
	); err != nil {
		t.Fatal(err)
	}
	for _, w := range h.look(h.users) {
		if w.Profile.EndsAt == nil || w.Profile.EndsAt.Location() != time.UTC {
			t.Errorf("end %v", w.Profile.EndsAt)
		}
		if _, err := json.Marshal(w.Profile); err != nil {
			t.Error(err)
		}
	}
}
