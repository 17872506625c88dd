package chaos_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// member is a user of an access system as last acknowledged.
type member struct {
	id, system, name, email string
	suspended, deleted      bool
	entrances               []string // the cloud's ids of those granted, sorted
}

// staff creates, changes, suspends, and deletes users of access systems, and grants and revokes entrances.
type staff struct {
	*client
	pace    time.Duration // delay before each action
	random  *rand.Rand
	token   string                     // token of the account at the cloud
	systems map[string]string          // the cloud's id of a system, by acs_system_id
	found   map[string]map[string]bool // users that were on each system before, by the cloud's id
	doors   map[string][]door          // of each system; nil if servers or cloud are of a version without grants
	deeds   []string                   // what the staff does at least, even if loading ends early
	members map[string]*member         // by acs_user_id
	did     map[string]int
}

// door is an entrance of an access system.
type door struct{ id, ref string } // in the API and at the cloud

// perSystem is the number of users that the staff keeps on a system.
const perSystem = 12

// newStaff connects an account of simulated access systems and waits until they have been read.
func newStaff(s *storm, seed uint64) *staff {
	s.Helper()
	f := &staff{
		client:  s.guests[0].client,
		pace:    s.guests[0].pace,
		random:  rand.New(rand.NewPCG(seed, 4)),
		systems: map[string]string{},
		found:   map[string]map[string]bool{},
		deeds:   []string{"create", "update", "suspend", "unsuspend", "revoke", "delete"},
		members: map[string]*member{},
		did:     map[string]int{},
	}
	out, err := exec.CommandContext(s.Context(), s.program, "sandbox", "connect-access-systems", "--systems", "2", "--data-dir", s.data, "--database-url", s.database.dsn()).
		CombinedOutput()
	if err != nil {
		s.Fatalf("connect access systems: %v\n%s", err, out)
	}
	until(s, "the access systems have been read", func() bool {
		a, _ := f.ask(s.Context(), "/acs/systems/list", map[string]any{})
		all, _ := a.body["acs_systems"].([]any)
		return len(all) == 2 &&
			!slices.ContainsFunc(
				all,
				func(y any) bool { y1, _ := y.(map[string]any); return y1["acs_user_count"] != 2.0 },
			)
	})
	rows, err := s.pool.Query(s.Context(), "select acs_system_id::text, vendor_ref from acs_systems")
	if err != nil {
		s.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, ref string
		if err := rows.Scan(&id, &ref); err != nil {
			s.Fatal(err)
		}
		f.systems[id] = ref
	}
	if rows.Err() != nil {
		s.Fatal(rows.Err())
	}
	f.token = s.witness.tokenOf("GET systems")
	for id := range f.systems {
		f.found[id] = map[string]bool{}
		for _, u := range s.onSystem(f, id) {
			f.found[id][u.ID] = true
		}
	}
	if a, _ := f.ask(s.Context(), staffPaths["grant"], map[string]any{}); a.status != http.StatusNotFound {
		f.deeds, f.doors = append(f.deeds, "grant"), map[string][]door{}
		for id := range f.systems {
			f.doors[id] = s.doorsOf(f, id)
		}
	}
	return f
}

// doorsOf returns the entrances of a system, which have different names.
func (s *storm) doorsOf(f *staff, system string) (all []door) {
	s.Helper()
	a, _ := f.ask(s.Context(), "/acs/entrances/list", map[string]any{"acs_system_id": system})
	listed, _ := a.body["acs_entrances"].([]any)
	for _, e := range s.memoryOf(f, system).Entrances {
		for _, l := range listed {
			body, _ := l.(map[string]any)
			if one := (answer{body: body}); one.text("display_name") == e.Name {
				all = append(all, door{one.text("acs_entrance_id"), e.ID})
			}
		}
	}
	if len(all) == 0 {
		s.Fatalf("access system %s has no entrances", system)
	}
	return all
}

// tokenOf returns the token that servers use for an account, by what the account has.
func (w *witness) tokenOf(what string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.seen {
		if r.what == what {
			return strings.TrimPrefix(r.of, "account:")
		}
	}
	return ""
}

// live acts until loading ends. It completes started actions while ctx allows.
func (f *staff) live(ctx, loading context.Context) {
	systems := slices.Sorted(maps.Keys(f.systems))
	for n := 0; loading.Err() == nil || !hasDone(f.did, f.deeds) && ctx.Err() == nil; n++ {
		wait(loading, f.pace)
		system := systems[f.random.IntN(len(systems))]
		var here []*member
		for _, id := range slices.Sorted(maps.Keys(f.members)) {
			if m := f.members[id]; m.system == system && !m.deleted {
				here = append(here, m)
			}
		}
		if len(here) == 0 || len(here) < perSystem && f.random.IntN(3) == 0 {
			f.hire(ctx, system, n)
			continue
		}
		m := here[f.random.IntN(len(here))]
		switch f.random.IntN(9) {
		case 0, 1:
			next := *m
			next.name = fmt.Sprintf("Other %d", n)
			in := map[string]any{"acs_user_id": m.id, "full_name": next.name}
			if f.random.IntN(2) == 0 {
				next.email = fmt.Sprintf("other.%d@example.com", n)
				in["email_address"] = next.email
			}
			f.change(ctx, "update", m, next, in)
		case 2, 3:
			next := *m
			next.suspended = true
			f.change(ctx, "suspend", m, next, map[string]any{"acs_user_id": m.id})
		case 4:
			next := *m
			next.suspended = false
			f.change(ctx, "unsuspend", m, next, map[string]any{"acs_user_id": m.id})
		case 5, 6:
			f.grant(ctx, m)
		case 7:
			next := *m
			next.entrances = nil
			f.change(ctx, "revoke", m, next, map[string]any{"acs_user_id": m.id})
		default:
			next := *m
			next.deleted = true
			f.change(ctx, "delete", m, next, map[string]any{"acs_user_id": m.id})
		}
	}
}

// grant grants a member an entrance, perhaps again.
func (f *staff) grant(ctx context.Context, m *member) {
	all := f.doors[m.system]
	if len(all) == 0 {
		return
	}
	d, next := all[f.random.IntN(len(all))], *m
	next.entrances = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(m.entrances), d.ref))))
	f.change(ctx, "grant", m, next, map[string]any{"acs_user_id": m.id, "acs_entrance_id": d.id})
}

// staffPaths are the paths of deeds, except those of /acs/users/<deed>.
var staffPaths = map[string]string{
	"grant":  "/acs/entrances/grant_access",
	"revoke": "/acs/users/revoke_access_to_all_entrances",
}

func (f *staff) hire(ctx context.Context, system string, n int) {
	m := &member{system: system, name: fmt.Sprintf("Person %d", n), email: fmt.Sprintf("person.%d@example.com", n)}
	a, ok := f.ask(
		ctx,
		"/acs/users/create",
		map[string]any{"acs_system_id": system, "full_name": m.name, "email_address": m.email},
	)
	if ok && a.status == http.StatusOK {
		f.did["create"]++
		m.id = a.text("acs_user", "acs_user_id")
		f.members[m.id] = m
	}
}

// change changes a member once the request is acknowledged.
func (f *staff) change(ctx context.Context, what string, m *member, next member, in map[string]any) {
	if a, ok := f.ask(ctx, cmp.Or(staffPaths[what], "/acs/users/"+what), in); ok && a.status == http.StatusOK {
		f.did[what]++
		*m = next
	}
}

// person is a user in the memory of an access system.
type person struct {
	ID         string `json:"user_id"`
	ExternalID string `json:"external_id"`
	FullName   string `json:"full_name"`
	Email      string `json:"email"`
	Suspended  bool   `json:"suspended"`

	EntranceIDs []string `json:"entrance_ids"`
}

// as reports whether a person is on the system as the member was last acknowledged.
func (p person) as(m *member) bool {
	return p.FullName == m.name && p.Email == m.email && p.Suspended == m.suspended &&
		slices.Equal(slices.Sorted(slices.Values(p.EntranceIDs)), m.entrances)
}

// systemMemory is the memory of an access system.
type systemMemory struct {
	Users     []person `json:"users"`
	Entrances []struct {
		ID   string `json:"entrance_id"`
		Name string `json:"name"`
	} `json:"entrances"`
}

func (s *storm) memoryOf(f *staff, system string) (memory systemMemory) {
	s.Helper()
	s.look("systems/"+f.systems[system], f.token, &memory)
	return memory
}

// onSystem returns the users in the memory of a system.
func (s *storm) onSystem(f *staff, system string) []person {
	s.Helper()
	return s.memoryOf(f, system).Users
}

// usersOf returns the managed users of a system in the API, by id.
func (s *storm) usersOf(f *staff, system string) map[string]answer {
	s.Helper()
	a, ok := f.ask(s.Context(), "/acs/users/list", map[string]any{"acs_system_id": system, "limit": 1000})
	if !ok || a.status != http.StatusOK {
		s.Fatalf("list the users: %d", a.status)
	}
	users, _ := a.body["acs_users"].([]any)
	all := map[string]answer{}
	for _, u := range users {
		body, _ := u.(map[string]any)
		one := answer{body: body}
		all[one.text("acs_user_id")] = one
	}
	return all
}

// has reports whether a list of an object is not empty.
func (a answer) has(list string) bool {
	some, _ := a.body[list].([]any)
	return len(some) > 0
}

// settled waits until no user has pending changes, except users with errors.
func (f *staff) settled(s *storm) {
	s.Helper()
	for system := range f.systems {
		until(s, "no user of an access system is on its way", func() bool {
			for _, u := range s.usersOf(f, system) {
				if u.has("pending_mutations") && !u.has("errors") {
					return false
				}
			}
			return true
		})
	}
}

// judgeStaff compares what the staff knows with the memories of the access systems.
func (s *storm) judgeStaff(complain func(string, ...any)) string {
	s.Helper()
	f := s.staff
	living, reported := 0, 0
	for system := range f.systems {
		listed, on := s.usersOf(f, system), map[string][]person{}
		for _, p := range s.onSystem(f, system) {
			on[p.ExternalID] = append(on[p.ExternalID], p)
			if m := f.members[p.ExternalID]; !f.found[system][p.ID] &&
				(m == nil || m.deleted && !listed[m.id].has("errors")) {
				complain("%q is on access system %s, but has no owner", p.FullName, system)
			}
		}
		for id, m := range f.members {
			if m.system != system {
				continue
			}
			u, there := listed[id]
			switch people := on[id]; {
			case m.deleted && there && !u.has("errors"):
				complain("user %s was deleted and is still listed", id)
			case m.deleted:
			case !there:
				complain("user %s was created and is not listed", id)
			case u.text("full_name") != m.name || u.text("email_address") != m.email || u.body["is_suspended"] != m.suspended:
				complain("user %s is not listed as it was changed last: %v instead of %+v", id, u.body, *m)
			case u.has("errors"):
				reported++
			case len(people) != 1:
				complain("user %s is %d times on its access system, and no error says why", id, len(people))
			case !people[0].as(m):
				complain("user %s is %+v on its access system, but was last acknowledged as %+v", id, people[0], *m)
			}
			if !m.deleted {
				living++
			}
		}
	}
	if reported > 1+living/few {
		complain("%d of %d users of access systems are reported as failed", reported, living)
	}
	s.toldOfStaff(complain)
	for _, what := range f.deeds {
		if f.did[what] == 0 {
			complain("no user of an access system had a %s: that was no load", what)
		}
	}
	return fmt.Sprintf(
		"\nusers of access systems   %6d  %v; there in the end: %d, reported by errors: %d",
		total(f.did),
		f.did,
		living,
		reported,
	)
}

// toldOfStaff checks the events of each user: one creation, and one deletion if it was deleted.
func (s *storm) toldOfStaff(complain func(string, ...any)) {
	s.Helper()
	created, deleted := s.tales("acs_user.created", "acs_user_id"), s.tales("acs_user.deleted", "acs_user_id")
	for id, m := range s.staff.members {
		want := 0
		if m.deleted {
			want = 1
		}
		if created[id] != 1 || deleted[id] != want {
			complain(
				"user %s has %d acs_user.created events, and %d acs_user.deleted events instead of %d",
				id,
				created[id],
				deleted[id],
				want,
			)
		}
		delete(created, id)
	}
	for id, n := range created {
		complain("user %s has %d creation events, but the staff does not know it", id, n)
	}
}
