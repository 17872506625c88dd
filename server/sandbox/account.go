package sandbox

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/google/uuid"
)

// AccountSpec describes the devices of a vendor account.
type AccountSpec struct {
	// Key identifies the account. With the seed, it determines the token and the identifiers of the account.
	Key string
	// Profiles defaults to DefaultProfiles.
	Profiles []string
	// LocksPerProfile is the number of devices of each profile. It defaults to 1.
	LocksPerProfile int
}

var errClosed = errors.New("the sandbox is closed")

// Account is a vendor account.
type Account struct {
	ID string
	// Token is the bearer token of the account's requests.
	Token string
	// Locks are the devices of the account, including those that are not locks.
	Locks []Lock
}

// Lock is a device of an account.
type Lock struct {
	ID      string
	Profile string
	Name    string
}

// EnsureAccount creates the account and its missing devices; a new lock has a few codes. A device with a file in
// Options.Dir keeps its state, and a removed device stays removed. It fails for an unknown profile, for a file that
// cannot be read or written, and after Close.
func (s *Sandbox) EnsureAccount(spec AccountSpec) (Account, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, err := s.account(spec.Key)
	if err != nil {
		return Account{}, err
	}
	names := spec.Profiles
	if len(names) == 0 {
		names = DefaultProfiles()
	}
	for _, name := range names {
		for n := range max(1, spec.LocksPerProfile) {
			if err := a.ensureLock(spec.Key, name, n); err != nil {
				return Account{}, fmt.Errorf("create device %d of profile %q: %w", n+1, name, err)
			}
		}
	}
	account := Account{ID: a.id, Token: s.tokens.Account(spec.Key)}
	for _, l := range a.all() {
		account.Locks = append(account.Locks, Lock{ID: l.id, Profile: l.prof.Provider, Name: l.name})
	}
	return account, nil
}

// Forget deletes the account and the files of its locks and access systems.
func (s *Sandbox) Forget(key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	hash := sha256.Sum256([]byte(s.tokens.Account(key)))
	a := s.accounts[hash]
	if a == nil {
		return nil
	}
	delete(s.accounts, hash)
	errs := []error{s.files().remove(a.file())}
	for _, l := range a.all() {
		errs = append(errs, l.forget())
	}
	for _, y := range a.allSystems() {
		errs = append(errs, y.forget())
	}
	return errors.Join(errs...)
}

// account is a vendor account in the cloud.
type account struct {
	box     *Sandbox
	id      string
	gateway *gate // shared by the locks of busyGateway profiles

	mu      sync.Mutex
	locks   []*lock
	byID    map[string]*lock
	systems []*system
	state   accountState
}

// accountState is the persistent state of an account without its locks, and the format of its file.
type accountState struct {
	Revoked  bool       `json:"revoked"`
	Webhooks []*webhook `json:"webhooks"`
}

func (a *account) file() string { return "accounts/" + a.id + ".json" }

func (a *account) all() []*lock {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.locks)
}

// lock returns the lock with the id, or nil if it does not exist or was removed.
func (a *account) lock(id string) *lock {
	a.mu.Lock()
	l := a.byID[id]
	a.mu.Unlock()
	if l == nil || l.isRemoved() {
		return nil
	}
	return l
}

func (a *account) ensureLock(key, profile string, n int) error {
	prof, ok := profileOf(profile, n)
	if !ok {
		return errors.New("no such profile")
	}
	id := a.box.idOf("lock", key, profile, fmt.Sprint(n))
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byID[id] != nil {
		return nil
	}
	l := a.newLock(id, prof, n)
	known, err := a.box.files().load(l.file(), &l.mem)
	if err != nil {
		return err
	}
	if known && prof.Thermostat != nil && l.mem.Thermostat == nil {
		return fmt.Errorf("%s describes no thermostat", l.file())
	}
	if !known {
		l.mem = l.factory(n)
		if err := a.box.files().save(l.file(), l.mem); err != nil {
			return err
		}
	}
	l.refreshView()
	l.autoLock() // restarts the timer; l.mu is not needed yet
	a.locks, a.byID[id] = append(a.locks, l), l
	return nil
}

// revoke revokes or restores the account's token, and pushes an event for a revocation.
func (a *account) revoke(revoked bool) error {
	a.mu.Lock()
	a.state.Revoked = revoked
	err := a.box.files().save(a.file(), a.state)
	a.mu.Unlock()
	if err == nil && revoked {
		a.push(event{Type: "account.revoked"})
	}
	return err
}

func (a *account) isRevoked() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state.Revoked
}

func (s *Sandbox) files() files { return files(s.opts.Dir) }

// idOf returns the identifier that the seed and the parts determine.
func (s *Sandbox) idOf(parts ...string) string {
	return uuid.NewSHA1(uuid.UUID{}, s.tokens.digest(parts...)).String()
}

func (s *Sandbox) rngOf(parts ...string) *rand.Rand {
	d := s.tokens.digest(parts...)
	return rand.New(rand.NewPCG(binary.BigEndian.Uint64(d), binary.BigEndian.Uint64(d[8:])))
}
