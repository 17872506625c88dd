// Package access is the domain: workspaces, credentials, devices, access codes, action attempts, events, and
// webhooks, their rules, and the operations on them. Each operation is one transaction and documents the errors
// it returns. Any operation can also fail because the database fails.
//
// The package decides what a device should have. Package reconcile programs the device and reports what it
// found and did. This package must not know HTTP or any vendor.
package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// Lanes of the keys that changes wake.
const (
	DeviceLane  = "device"
	AccountLane = "account"
)

// MostWorkspaces is the default of Options.MostWorkspaces.
const MostWorkspaces = 1000

// Options configure a Service. The zero value is for production.
type Options struct {
	// AttemptPatience is how long an action attempt may stay pending. 0 means 10 minutes.
	AttemptPatience time.Duration
	// ConfirmTimeout is when an accepted but unconfirmed write counts as lost. It must be well above ListLag. 0
	// means 60 seconds.
	ConfirmTimeout time.Duration
	// ListLag is how long a device's list may lag behind a confirmed write. 0 means 10 seconds.
	ListLag time.Duration
	// EmptyListGrace is how long an unexpectedly empty code list is ignored before its codes count as removed. 0
	// means 15 seconds.
	EmptyDoubt time.Duration
	// ReadWithin is the interval at which the codes of an idle device are read again, for vendors that can lose
	// events. 0 means 6 hours.
	ReadWithin time.Duration
	// AttemptEvery is how often a waiting request checks whether another instance has ended its attempt. 0
	// means 1 second.
	AttemptEvery time.Duration
	// BoltPatience is how long an attempt to lock or unlock may stay pending. 0 means 30 seconds.
	BoltPatience time.Duration
	// OperationLag is how long a vendor may take to report a bolt that was moved at the door. 0 means 10
	// seconds.
	OperationLag time.Duration
	// OfflineDebounce is how long a device must be offline before that is announced. 0 means 30 seconds.
	OfflineDebounce time.Duration
	// RotationPause is how long an encryption rotation waits for other instances to finish with the old key. 0
	// means 10 seconds.
	RotationPause time.Duration
	// KeyPatience is how long a request waits for another one with its Idempotency-Key. 0 means 15 seconds.
	KeyPatience time.Duration
	// DelayAfter is when a code that is not set or removed yet is reported as delayed. 0 means 10 minutes.
	DelayAfter time.Duration
	// UnclaimedSessions is the maximum number of client sessions per workspace that were created with a
	// publishable key and reach nothing. 0 means 10,000.
	UnclaimedSessions int
	// MostWebhooks is the maximum number of webhooks of a workspace. 0 means 10,000.
	MostWebhooks int
	// MostWorkspaces is the maximum number of workspaces of a credential that creates them. 0 means
	// MostWorkspaces.
	MostWorkspaces int
	// MostFound is the maximum number of devices of an account, removed ones included. 0 means 50,000.
	MostFound int
	// MostSystems is the maximum number of access systems of an account, removed ones included. 0 means 1000.
	MostSystems int
	// NewsPerSecond is the sustained rate of events about an account. Beyond it the vendor's list is recorded
	// later. 0 means 100.
	NewsPerSecond float64
	// NewsAtOnce is the burst above NewsPerSecond. 0 means 200,000.
	NewsAtOnce int
	// Now is the clock. nil means the system's.
	Now func() time.Time
	Log *slog.Logger

	// RefusedAddress reports whether the server sends nothing to webhooks at an address. nil refuses none.
	RefusedAddress func(netip.Addr) bool

	// Providers returns the vendors that people of a workspace can log in to. nil means none.
	Providers func(Workspace) []Provider
}

// Service implements the operations.
type Service struct {
	db    *store.DB
	keys  *encryption.Keys
	waker *worker.Waker
	opt   Options

	waiting   waiting
	underWay  underWay
	unclaimed Headroom // of client sessions
	webhooks  Headroom
	news      *inventoryBudget

	serverKeys   sync.Map // name → []byte; they never change
	onEmit       func(ctx context.Context, tx store.Tx, account uuid.UUID, events int)
	endOfAccount []EndOfAccount
}

// New creates a Service on db, whose schema must be current.
func New(db *store.DB, keys *encryption.Keys, waker *worker.Waker, opt Options) *Service {
	if opt.AttemptPatience == 0 {
		opt.AttemptPatience = 10 * time.Minute
	}
	if opt.ConfirmTimeout == 0 {
		opt.ConfirmTimeout = 60 * time.Second
	}
	if opt.ListLag == 0 {
		opt.ListLag = 10 * time.Second
	}
	if opt.EmptyDoubt == 0 {
		opt.EmptyDoubt = 15 * time.Second
	}
	if opt.ReadWithin == 0 {
		opt.ReadWithin = 6 * time.Hour
	}
	if opt.AttemptEvery == 0 {
		opt.AttemptEvery = time.Second
	}
	if opt.BoltPatience == 0 {
		opt.BoltPatience = 30 * time.Second
	}
	if opt.OperationLag == 0 {
		opt.OperationLag = 10 * time.Second
	}
	if opt.OfflineDebounce == 0 {
		opt.OfflineDebounce = 30 * time.Second
	}
	if opt.DelayAfter == 0 {
		opt.DelayAfter = 10 * time.Minute
	}
	if opt.UnclaimedSessions == 0 {
		opt.UnclaimedSessions = unclaimedSessions
	}
	if opt.MostWebhooks == 0 {
		opt.MostWebhooks = 10_000
	}
	if opt.MostWorkspaces == 0 {
		opt.MostWorkspaces = MostWorkspaces
	}
	if opt.MostFound == 0 {
		opt.MostFound = 50_000
	}
	if opt.MostSystems == 0 {
		opt.MostSystems = 1000
	}
	if opt.NewsPerSecond == 0 {
		opt.NewsPerSecond = 100
	}
	if opt.NewsAtOnce == 0 {
		opt.NewsAtOnce = 200_000
	}
	if opt.KeyPatience == 0 {
		opt.KeyPatience = 15 * time.Second
	}
	if opt.RotationPause == 0 {
		opt.RotationPause = 10 * time.Second
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	s := &Service{
		db:    db,
		keys:  keys,
		waker: waker,
		opt:   opt,
		news:  newInventoryBudget(opt.NewsPerSecond, opt.NewsAtOnce),
	}
	s.onEmit = s.count
	s.AtEndOfAccount(s.removeAll)
	return s
}

// Now returns the time by the clock that the rules use.
func (s *Service) Now() time.Time { return s.opt.Now() }

// Room returns how many of more new devices an account that already has some may still add. It bounds the
// database: removed devices are kept, and a vendor may list new ones each time.
func (s *Service) Room(account uuid.UUID, has, more int) int {
	return s.room(account, s.opt.MostFound, has, more)
}

// RoomForSystems is Room for access systems.
func (s *Service) RoomForSystems(account uuid.UUID, has, more int) int {
	return s.room(account, s.opt.MostSystems, has, more)
}

func (s *Service) room(account uuid.UUID, most, has, more int) int {
	room := max(0, most-has)
	if more <= room {
		return more
	}
	s.opt.Log.Warn(
		"the vendor lists more for the account than the server stores; the rest is ignored",
		"account",
		account,
		"kept",
		has,
		"left_out",
		more-room,
	)
	return room
}

// ServerKey returns the 32-byte key of that name, which all instances share. The first call creates the key.
func (s *Service) ServerKey(ctx context.Context, name string) ([]byte, error) {
	if key, ok := s.serverKeys.Load(name); ok {
		return key.([]byte), nil
	}
	key, err := serverKey(ctx, s.db.SideQueries, s.keys, name, encryption.NewMaster) // the key stays when the request fails
	if err != nil {
		return nil, err
	}
	s.serverKeys.Store(name, key)
	return key, nil
}

func serverKey(
	ctx context.Context,
	db *dbsqlc.Queries,
	keys *encryption.Keys,
	name string,
	fresh func() []byte,
) ([]byte, error) {
	sealed, err := db.GetServerKey(ctx, name)
	if store.IsNoRows(err) {
		if err := db.InsertServerKey(
			ctx,
			dbsqlc.InsertServerKeyParams{Name: name, Sealed: keys.Seal(serverKeyPlace(name), fresh())},
		); err != nil {
			return nil, fmt.Errorf("store the key %s: %w", name, err)
		}
		sealed, err = db.GetServerKey(ctx, name) // another instance may have been faster
	}
	if err != nil {
		return nil, fmt.Errorf("read the key %s: %w", name, err)
	}
	return openServerKey(keys, name, sealed)
}

func serverKeyPlace(name string) string { return "server_keys.sealed/" + name }

func openServerKey(keys *encryption.Keys, name string, sealed []byte) ([]byte, error) {
	key, err := keys.Open(serverKeyPlace(name), sealed)
	if err != nil {
		return nil, fmt.Errorf("open the key %s: %w; is the master key the one this database was made with?", name, err)
	}
	return key, nil
}

// Position is a place in a list ordered by creation: after the row of that time and identifier. The zero
// Position is the start.
type Position struct {
	At time.Time
	ID uuid.UUID
}

// Page asks for at most Limit rows after a Position.
type Page struct {
	After Position
	Limit int
}

// Rows returns the LIMIT for the query. It is one more than the page holds, to find out whether another page
// follows.
func (p Page) Rows() int32 { return int32(min(max(p.Limit, 1), 1<<30) + 1) }

// Cut returns the rows that belong to the page, and whether more follow.
func Cut[T any](p Page, rows []T) ([]T, bool) {
	if len(rows) > p.Limit {
		return rows[:p.Limit], true
	}
	return rows, false
}

// NewID returns a new UUID of version 7.
func NewID() uuid.UUID { return uuid.Must(uuid.NewV7()) }

// ParseIDs parses identifiers and skips texts that are not UUIDs. A nil list stays nil (no condition). An empty
// list stays empty (matches nothing).
func ParseIDs(texts *[]string) []uuid.UUID {
	if texts == nil {
		return nil
	}
	ids := []uuid.UUID{}
	for _, t := range *texts {
		if id, err := uuid.Parse(t); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// IsID reports whether a text, in upper or lower case, is the identifier.
func IsID(text string, id uuid.UUID) bool {
	parsed, err := uuid.Parse(text)
	return err == nil && parsed == id
}

// ListOf returns the list that p points to. nil stays nil, and a nil list behind p becomes an empty one.
func ListOf[T any](p *[]T) []T {
	if p == nil {
		return nil
	}
	if *p == nil {
		return []T{}
	}
	return *p
}

// NonEmpty returns a pointer to s, or nil for an empty s.
func NonEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// mostText is how many bytes of a vendor's text are stored.
const mostText = 1000

// Storable returns a vendor's text without invalid UTF-8 and null characters, cut to the bytes that are stored.
func Storable(s string) string {
	s = s[:min(len(s), mostText)]
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}

// ValidRef reports whether a vendor's reference can be stored unchanged.
func ValidRef(ref string) bool { return ref != "" && ref == Storable(ref) }

// MustJSON encodes v and panics if that fails. It is for this program's own types only.
func MustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// AsError returns the *Error in err's chain.
func AsError(err error) (*Error, bool) { return errors.AsType[*Error](err) }
