// Package access is the domain: workspaces, credentials, devices, access codes, action attempts, events and
// webhooks, the rules they obey, and the operations on them. Each operation is one transaction and says
// which errors it returns; besides those, any may fail because the database does.
//
// What should be on a device is decided here; how to get it there is the business of package reconcile,
// which reports back what it has found and done. The package knows neither HTTP nor any vendor.
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

// The kinds of keys that changes wake.
const (
	DeviceLane  = "device"
	AccountLane = "account"
)

// MostWorkspaces is what Options.MostWorkspaces is unless it is told otherwise.
const MostWorkspaces = 1000

// Options of a Service. The zero value is for production.
type Options struct {
	AttemptPatience   time.Duration    // when a pending action attempt is given up; 0: 10 min
	ConfirmTimeout    time.Duration    // when an accepted write counts as come to nothing, which is to be well after ListLag; 0: 60 s
	ListLag           time.Duration    // how long a device's list may lag behind what it has confirmed; 0: 10 s
	EmptyDoubt        time.Duration    // how long a device's list that is empty all of a sudden is not believed; 0: 15 s
	ReadWithin        time.Duration    // how long the codes of a device at rest go unread whose vendor may lose what it has to tell; 0: 6 h
	AttemptEvery      time.Duration    // how often a request that waits for an attempt looks whether another instance has ended it; 0: 1 s
	BoltPatience      time.Duration    // when an attempt to lock or unlock is given up; 0: 30 s
	OperationLag      time.Duration    // how late a vendor may tell of a bolt that shows elsewhere; 0: 10 s
	OfflineDebounce   time.Duration    // how long a device has to be offline until that is told; 0: 30 s
	RotationPause     time.Duration    // how long a rotation of the encryption waits for what others have in hand; 0: 10 s
	KeyPatience       time.Duration    // how long a request waits for another one with its Idempotency-Key; 0: 15 s
	DelayAfter        time.Duration    // when a code that is not yet set, or removed, is told to be late; 0: 10 min
	UnclaimedSessions int              // how many client sessions of a workspace may be made with a publishable key and reach nothing; 0: 10,000
	MostWebhooks      int              // webhooks of a workspace; 0: 10,000
	MostWorkspaces    int              // workspaces of a credential that makes them; 0: MostWorkspaces
	MostFound         int              // devices of an account, with those that have left; 0: 50,000
	MostSystems       int              // access systems of an account, with those that have left; 0: 1000
	NewsPerSecond     float64          // events about an account, beyond which what its vendor lists is taken in later; 0: 100
	NewsAtOnce        int              // of these, before that; 0: 200,000
	Now               func() time.Time // the clock; nil: the system's
	Log               *slog.Logger

	// RefusedAddress says whether nothing is sent to webhooks at an address; nil: it is sent to all.
	RefusedAddress func(netip.Addr) bool

	// Providers are the vendors that people of a workspace can log in to; nil: there are none.
	Providers func(Workspace) []Provider
}

// Service carries the operations.
type Service struct {
	db    *store.DB
	keys  *encryption.Keys
	waker *worker.Waker
	opt   Options

	waiting   waiting
	underWay  underWay
	unclaimed allowances // of client sessions
	webhooks  allowances
	news      *news

	serverKeys   sync.Map // name → []byte; they never change
	endOfAccount []EndOfAccount
}

// New makes a Service on db, which must be migrated.
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
	return &Service{db: db, keys: keys, waker: waker, opt: opt, news: newNews(opt.NewsPerSecond, opt.NewsAtOnce)}
}

// Now is the time by the clock that the rules go by.
func (s *Service) Now() time.Time { return s.opt.Now() }

// Room is how many more devices an account may have that has so many. A vendor that names them otherwise each time would fill the
// database: those that have left are kept.
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
	s.opt.Log.Warn("the vendor of the account lists more than are kept of one account; the rest is left out", "account", account, "kept", has, "left_out", more-room)
	return room
}

// ServerKey is a key of 32 bytes that all instances share, made when it is first asked for.
func (s *Service) ServerKey(ctx context.Context, name string) ([]byte, error) {
	if key, ok := s.serverKeys.Load(name); ok {
		return key.([]byte), nil
	}
	key, err := serverKey(ctx, s.db.Beside, s.keys, name, encryption.NewMaster) // it is kept whatever becomes of the request
	if err != nil {
		return nil, err
	}
	s.serverKeys.Store(name, key)
	return key, nil
}

func serverKey(ctx context.Context, db *dbsqlc.Queries, keys *encryption.Keys, name string, fresh func() []byte) ([]byte, error) {
	sealed, err := db.GetServerKey(ctx, name)
	if store.IsNoRows(err) {
		if err := db.InsertServerKey(ctx, dbsqlc.InsertServerKeyParams{Name: name, Sealed: keys.Seal(serverKeyPlace(name), fresh())}); err != nil {
			return nil, fmt.Errorf("keep the key %s: %w", name, err)
		}
		sealed, err = db.GetServerKey(ctx, name) // another instance may have been quicker
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
// Position is the beginning.
type Position struct {
	At time.Time
	ID uuid.UUID
}

// Page asks for at most Limit rows after a Position.
type Page struct {
	After Position
	Limit int
}

// rows is how many to ask the database for: one more than the page holds says whether another follows.
func (p Page) rows() int32 { return int32(min(max(p.Limit, 1), 1<<30) + 1) }

// cut is the page's part of rows, and whether more follow.
func cut[T any](p Page, rows []T) ([]T, bool) {
	if len(rows) > p.Limit {
		return rows[:p.Limit], true
	}
	return rows, false
}

func newID() uuid.UUID { return uuid.Must(uuid.NewV7()) }

// parseIDs reads identifiers; what is no UUID names nothing and is left out. A nil list stays nil (no
// condition), an empty one stays empty (nothing matches).
func parseIDs(texts *[]string) []uuid.UUID {
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

// names says whether a text, in whichever case, is the identifier.
func names(text string, id uuid.UUID) bool {
	parsed, err := uuid.Parse(text)
	return err == nil && parsed == id
}

func list[T any](p *[]T) []T {
	if p == nil {
		return nil
	}
	if *p == nil {
		return []T{}
	}
	return *p
}

func nonEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// mostText is how many bytes of a vendor's text are kept.
const mostText = 1000

// storable is a vendor's text without what Postgres takes in no text, and without what is beyond any name.
func storable(s string) string {
	s = s[:min(len(s), mostText)]
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}

// keepable says whether a vendor's reference can be kept, and found again.
func keepable(ref string) bool { return ref != "" && ref == storable(ref) }

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // of our own types only
	}
	return b
}

// asError finds the *Error that a transaction was ended with.
func asError(err error) (*Error, bool) { return errors.AsType[*Error](err) }
