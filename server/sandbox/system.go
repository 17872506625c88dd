package sandbox

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// AccessSpec describes the access systems of a vendor account.
type AccessSpec struct {
	// Key identifies the account, as in AccountSpec.
	Key string
	// Systems defaults to 1.
	Systems int
}

// AccessAccount is an account at a provider of access systems.
type AccessAccount struct {
	// Token is the bearer token of the account's requests.
	Token   string
	Systems []AccessSystem
}

// AccessSystem is an access system of an account.
type AccessSystem struct {
	ID   string
	Name string
}

// EnsureAccessAccount creates an account and its missing access systems; a new one has a few entrances, groups, and
// users. A system with a file in Options.Dir keeps its state. It fails for a file that cannot be read or written, and
// after Close.
func (s *Sandbox) EnsureAccessAccount(spec AccessSpec) (AccessAccount, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, err := s.account(spec.Key)
	if err != nil {
		return AccessAccount{}, err
	}
	for n := range max(1, spec.Systems) {
		if err := a.ensureSystem(spec.Key, n); err != nil {
			return AccessAccount{}, fmt.Errorf("create access system %d: %w", n+1, err)
		}
	}
	out := AccessAccount{Token: s.tokens.Account(spec.Key)}
	for _, y := range a.allSystems() {
		out.Systems = append(out.Systems, AccessSystem{ID: y.mem.SystemID, Name: y.mem.Name})
	}
	return out, nil
}

// system is one simulated access system.
type system struct {
	acct *account
	rng  *rand.Rand // guarded by mu

	mu      sync.Mutex
	mem     systemMemory
	faults  SystemFaults
	deleted bool // the account was deleted: files are not written
}

// systemMemory is the persistent state of a system, and the format of its file.
type systemMemory struct {
	SystemID  string       `json:"system_id"`
	Name      string       `json:"name"`
	TimeZone  string       `json:"time_zone"`
	Online    bool         `json:"online"`
	Removed   bool         `json:"removed,omitempty"`
	MaxUsers  int          `json:"max_users"`
	NextUser  int          `json:"next_user"` // number of the next user; never reused
	Users     []systemUser `json:"users"`
	Entrances []entrance   `json:"entrances"`
	Groups    []group      `json:"groups"`
}

// systemUser is a user of a system. Both times nil means always.
type systemUser struct {
	ID         string     `json:"user_id"`
	ExternalID string     `json:"external_id,omitempty"` // set by the creation through the API
	FullName   string     `json:"full_name"`
	Email      string     `json:"email,omitempty"`
	Phone      string     `json:"phone,omitempty"`
	StartsAt   *time.Time `json:"starts_at"`
	EndsAt     *time.Time `json:"ends_at"`
	Suspended  bool       `json:"suspended"`
	GroupIDs   []string   `json:"group_ids"`
	// EntranceIDs are the entrances that open for the user in addition to those of the groups.
	EntranceIDs []string `json:"entrance_ids,omitempty"`
}

type entrance struct {
	ID      string `json:"entrance_id"`
	Name    string `json:"name"`
	Unlocks int    `json:"unlocks,omitempty"` // how often it was unlocked through the API
}

type group struct {
	ID          string   `json:"group_id"`
	Name        string   `json:"name"`
	EntranceIDs []string `json:"entrance_ids"`
}

func (y *system) file() string { return "systems/" + y.mem.SystemID + ".json" }

func (a *account) allSystems() []*system {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.systems)
}

// system returns the system with the id, or nil if it does not exist or was removed.
func (a *account) system(id string) *system {
	for _, y := range a.allSystems() {
		y.mu.Lock()
		found := y.mem.SystemID == id && !y.mem.Removed
		y.mu.Unlock()
		if found {
			return y
		}
	}
	return nil
}

// systemNames are the names of an account's systems, in their order.
var systemNames = []string{"Head office", "Warehouse", "Annex", "Laboratory"}

func (a *account) ensureSystem(key string, n int) error {
	id := a.box.idOf("system", key, fmt.Sprint(n))
	a.mu.Lock()
	defer a.mu.Unlock()
	if slices.ContainsFunc(a.systems, func(y *system) bool { return y.mem.SystemID == id }) {
		return nil
	}
	y := &system{acct: a, rng: a.box.rngOf("system", id), mem: systemMemory{SystemID: id}}
	known, err := a.box.files().load(y.file(), &y.mem)
	if err != nil {
		return err
	}
	if !known {
		y.mem = a.box.newSystem(id, n)
		if err := a.box.files().save(y.file(), y.mem); err != nil {
			return err
		}
	}
	a.systems = append(a.systems, y)
	return nil
}

// newSystem returns the initial state of a system.
func (s *Sandbox) newSystem(id string, n int) systemMemory {
	m := systemMemory{
		SystemID: id,
		TimeZone: "Europe/London",
		Online:   true,
		MaxUsers: 1000,
		NextUser: 1,
	}
	m.Name = systemNames[n%len(systemNames)]
	if again := n / len(systemNames); again > 0 {
		m.Name = fmt.Sprintf("%s %d", m.Name, again+1)
	}
	for i, name := range []string{"Main entrance", "Car park", "Server room"} {
		m.Entrances = append(m.Entrances, entrance{ID: s.idOf("entrance", id, fmt.Sprint(i)), Name: name})
	}
	m.Groups = []group{
		{ID: s.idOf("group", id, "0"), Name: "Everyone", EntranceIDs: []string{m.Entrances[0].ID, m.Entrances[1].ID}},
		{
			ID: s.idOf("group", id, "1"), Name: "Technicians",
			EntranceIDs: []string{m.Entrances[0].ID, m.Entrances[2].ID},
		},
	}
	for i, name := range []string{"Robin Hale", "Sam Okafor"} {
		m.Users = append(m.Users, systemUser{
			ID:       m.nextUser(),
			FullName: name,
			Email:    []string{"robin.hale@example.com", "sam.okafor@example.com"}[i],
			GroupIDs: []string{m.Groups[i].ID},
		})
	}
	return m
}

func (m *systemMemory) nextUser() string {
	m.NextUser++
	return fmt.Sprintf("usr_%s_%d", m.SystemID[:8], m.NextUser-1)
}

func (m *systemMemory) clone() systemMemory {
	c := *m
	c.Users, c.Entrances, c.Groups = slices.Clone(m.Users), slices.Clone(m.Entrances), slices.Clone(m.Groups)
	return c
}

func (m *systemMemory) user(id string) *systemUser {
	if i := slices.IndexFunc(m.Users, func(p systemUser) bool { return p.ID == id }); i >= 0 {
		return &m.Users[i]
	}
	return nil
}

// commit changes the memory atomically, file first; y.mu is held.
func (y *system) commit(change func(*systemMemory) *problem) *problem {
	next := y.mem.clone()
	if p := change(&next); p != nil {
		return p
	}
	if y.deleted {
		return refuse(systemNotFound, "The account has no such access system.")
	}
	if err := y.acct.box.files().save(y.file(), next); err != nil {
		return refuse(unavailable, "The change could not be stored.")
	}
	y.mem = next
	return nil
}

// forget removes the file of a system whose account was deleted.
func (y *system) forget() error {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.deleted = true
	return y.acct.box.files().remove(y.file())
}

// maxNameSize is the maximum size of a user's name in bytes.
const maxNameSize = 120

// put creates the user, or replaces the one with that identifier or external identifier.
func (m *systemMemory) put(p systemUser, limit int) (systemUser, *problem) {
	switch {
	case p.FullName == "" || len(p.FullName) > maxNameSize:
		return p, refuse(invalidUser, "full_name must have 1 to %d characters.", maxNameSize)
	case p.StartsAt != nil && p.EndsAt != nil && !p.EndsAt.After(*p.StartsAt):
		return p, refuse(invalidUser, "ends_at must be after starts_at.")
	}
	for _, id := range p.GroupIDs {
		if !slices.ContainsFunc(m.Groups, func(g group) bool { return g.ID == id }) {
			return p, refuse(invalidUser, "The system has no such group.")
		}
	}
	for _, id := range p.EntranceIDs {
		if !slices.ContainsFunc(m.Entrances, func(e entrance) bool { return e.ID == id }) {
			return p, refuse(invalidUser, "The system has no such entrance.")
		}
	}
	if p.GroupIDs == nil {
		p.GroupIDs = []string{}
	}
	known := m.user(p.ID)
	sameExternalID := func(u systemUser) bool { return p.ExternalID != "" && u.ExternalID == p.ExternalID }
	if i := slices.IndexFunc(m.Users, sameExternalID); known == nil && i >= 0 {
		known = &m.Users[i]
	}
	switch {
	case known != nil:
		p.ID, p.ExternalID = known.ID, cmp.Or(p.ExternalID, known.ExternalID)
		*known = p
	case p.ID != "":
		return p, refuse(userNotFound, "The system has no such user.")
	case len(m.Users) >= limit:
		return p, refuse(systemFull, "The system has room for %d users.", limit)
	default:
		p.ID = m.nextUser()
		m.Users = append(m.Users, p)
	}
	return p, nil
}

// enter reports whether an entrance opens for the user, and otherwise why not.
func (y *system) enter(entranceID, userID string) (opened bool, reason string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	now := y.acct.box.opts.Clock()
	p := y.mem.user(userID)
	switch {
	case p == nil:
		return false, "unknown"
	case p.Suspended:
		return false, "suspended"
	case p.StartsAt != nil && now.Before(*p.StartsAt):
		return false, "too_early"
	case p.EndsAt != nil && !now.Before(*p.EndsAt):
		return false, "too_late"
	case slices.Contains(p.EntranceIDs, entranceID):
		return true, ""
	}
	for _, g := range y.mem.Groups {
		if slices.Contains(p.GroupIDs, g.ID) && slices.Contains(g.EntranceIDs, entranceID) {
			return true, ""
		}
	}
	return false, "no_group"
}
