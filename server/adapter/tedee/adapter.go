// Package tedee implements adapter.Adapter for Tedee's cloud. An account is a user with a personal access key, or with
// a login of the operator's OAuth client. The package is written from the vendor's documentation of 2026-05
// (github.com/tedee-com/tedee-api-doc, commit 73d08835). It was never tried against Tedee's servers.
//
// A lock is identified by its serial number, because its id changes when a person adds it to the account again. Codes
// need a keypad, a bridge, and the rights of an owner or an admin. The lock itself answers writes, one at a time.
//
// Where the documentation is silent, the package decides:
//
//   - A code's name has 1 to 32 characters. The number of codes is unknown, and the vendor's 412 or 422 says "full".
//   - Tedee stores no key of a creation. Since a PIN is unique on a lock, a repeated creation makes no second code.
//   - The first page of locks may have the number 0 or 1, so Devices reads pages until one has no new lock.
//   - The user id of a personal access key is the userIdentity of a lock that the user owns. Without such a lock, the
//     account is the key's public prefix.
//   - The username of an entry by PIN is the name of the code, if the entry has no userId and one code has the name.
//   - Names of users, days of the week, and hours of the day have no counterpart here. A change of a code keeps days
//     and hours as they are.
//   - A 403 or a 404 may mean that the lock has another id now. The package then lists the locks once.
//   - A refresh of OAuth tokens has no redirect_uri, which only a sample has.
//   - The auto-lock delay is in seconds. A setting counts as unknown until deviceRevision reaches
//     targetDeviceRevision.
package tedee

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// Config configures New.
type Config struct {
	// URL is the URL of the API with its version; empty: DefaultURL.
	URL string
	// Key is the personal access key; empty: Tokens.
	Key string
	// KeyEnds is when the key ends; zero means unknown.
	KeyEnds time.Time
	// Tokens provides access tokens.
	Tokens *adapter.TokenSource
	// Secrets stores what Listen has seen.
	Secrets adapter.Secrets
	// Budget counts the calls; nil: unlimited.
	Budget adapter.Budget
	// PollInterval is the time between reads of the states of all locks; 0: one minute.
	PollInterval time.Duration
	// ProbeInterval is the time between looks for changed codes and for refused PINs at one lock; 0: 15 minutes.
	ProbeInterval time.Duration
	// Now is the clock; nil: the system's.
	Now func() time.Time
	// HTTP defaults to vendorhttp.New.
	HTTP *http.Client
	// Log defaults to no logging.
	Log *slog.Logger
}

// Adapter accesses the locks of one user.
type Adapter struct {
	client        *vendorhttp.Client
	tokens        *adapter.TokenSource
	key           string
	secrets       adapter.Secrets
	log           *slog.Logger
	pollInterval  time.Duration
	probeInterval time.Duration
	now           func() time.Time
	keyEnd        keyEnd

	events  *adapter.EventQueue
	lines   adapter.Lines // of calls of PINs, by serial number
	locks   lockIndex
	codes   codeIndex
	creates creationIndex
	seen    activityIndex

	open context.Context // ends with Close
	shut context.CancelFunc
}

var (
	_ adapter.Adapter    = (*Adapter)(nil)
	_ adapter.Locker     = (*Adapter)(nil)
	_ adapter.AutoLocker = (*Adapter)(nil)
)

// New returns an adapter. It sends nothing.
func New(c Config) *Adapter {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.HTTP == nil {
		c.HTTP = vendorhttp.New(adapter.Env{})
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	open, shut := context.WithCancel(context.Background())
	a := &Adapter{
		tokens:        c.Tokens,
		key:           c.Key,
		secrets:       c.Secrets,
		log:           c.Log,
		pollInterval:  cmp.Or(c.PollInterval, time.Minute),
		probeInterval: cmp.Or(c.ProbeInterval, 15*time.Minute),
		now:           c.Now,
		keyEnd:        keyEnd{at: c.KeyEnds},
		events:        adapter.NewEventQueue(),
		open:          open,
		shut:          shut,
	}
	a.client = &vendorhttp.Client{
		Adapter:   Name,
		Base:      cmp.Or(c.URL, DefaultURL),
		HTTP:      c.HTTP,
		Log:       c.Log,
		Budget:    c.Budget,
		Words:     words,
		Authorize: a.authorize,
		Secret:    c.Key,
	}
	return a
}

// maxPages bounds the pages of locks.
const maxPages = 100

// onePage is the number of locks up to which no page follows. No documented page is smaller.
const onePage = 10

// Devices implements adapter.Adapter.
func (a *Adapter) Devices(ctx context.Context) ([]adapter.Device, error) {
	locks, err := a.listLocks(ctx)
	if err != nil {
		return nil, err
	}
	a.keyEnd.warn(ctx, a.log, a.now())
	devices := make([]adapter.Device, len(locks))
	for i, l := range locks {
		devices[i] = l.device()
	}
	return devices, nil
}

// listLocks reads all locks of the user, and remembers their ids.
func (a *Adapter) listLocks(ctx context.Context) ([]wireLock, error) {
	locks := []wireLock{}
	ids := map[int64]int{}
	for page := range maxPages {
		query := url.Values{"IncludeAccessories": {"true"}}
		if page > 0 {
			query.Set("Page", strconv.Itoa(page))
		}
		var got *adapter.List[wireLock]
		err := a.do(ctx, vendorhttp.Call{Path: "/my/lock", Query: query}, &got)
		switch {
		case err != nil && statusOf(err) == http.StatusForbidden:
			return nil, adapter.Errorf(adapter.AuthRevoked,
				"the credentials may not read the account's locks; create a key with the scope Device.ReadWrite")
		case err != nil:
			return nil, err
		case got == nil:
			return nil, adapter.Errorf(adapter.Transient, "the list of locks has no \"result\"")
		}
		news := 0
		for _, l := range *got {
			if !l.valid() {
				return nil, adapter.Errorf(adapter.Transient, "a lock in the list has no id or no serial number")
			}
			if _, there := ids[l.ID]; !there {
				if len(locks) == adapter.MaxListElements {
					return nil, adapter.Errorf(
						adapter.Transient,
						"the account has more than %d locks",
						adapter.MaxListElements,
					)
				}
				news++
				ids[l.ID] = len(locks)
				locks = append(locks, l)
			}
		}
		// The first page is read twice if its number is 1.
		if page == 0 && len(locks) < onePage || page > 0 && len(*got) == 0 || page > 1 && news == 0 {
			locks = newest(locks)
			a.locks.replace(locks)
			return locks, nil
		}
	}
	return nil, adapter.Errorf(adapter.Transient, "the list of locks has more than %d pages", maxPages)
}

// newest drops the older of two entries of one lock.
func newest(locks []wireLock) []wireLock {
	at := map[string]int{}
	kept := locks[:0]
	for _, l := range locks {
		i, there := at[l.Serial]
		switch {
		case !there:
			at[l.Serial] = len(kept)
			kept = append(kept, l)
		case l.ID > kept[i].ID:
			kept[i] = l
		}
	}
	return kept
}

// Device implements adapter.Adapter.
func (a *Adapter) Device(ctx context.Context, device adapter.DeviceRef) (adapter.Device, error) {
	l, err := a.readLock(ctx, device)
	if err != nil {
		return adapter.Device{}, err
	}
	return l.device(), nil
}

func (a *Adapter) readLock(ctx context.Context, device adapter.DeviceRef) (l wireLock, err error) {
	err = a.onLock(ctx, device, func(known knownLock) error {
		query := url.Values{"IncludeAccessories": {"true"}}
		if err := a.do(ctx, vendorhttp.Call{Path: known.path(), Query: query}, &l); err != nil {
			return err
		}
		if l.ID != known.id || l.Serial != string(device) {
			return adapter.Errorf(adapter.Transient, "the response describes another lock than requested")
		}
		a.locks.keep(l)
		return nil
	})
	return l, err
}

// onLock calls do with the id of a lock. If the vendor then does not know the lock, the id may have changed: onLock
// lists the locks, and calls do again with another id. It fails with NotFound when the account has no such lock.
func (a *Adapter) onLock(ctx context.Context, device adapter.DeviceRef, do func(knownLock) error) error {
	known, cached := a.locks.of(device)
	if !cached {
		var err error
		if known, err = a.relist(ctx, device); err != nil {
			return err
		}
	}
	err := do(known)
	if status := statusOf(err); cached && (status == http.StatusForbidden || status == http.StatusNotFound) {
		now, missing := a.relist(ctx, device)
		switch {
		case missing != nil:
			return missing
		case now.id != known.id:
			known, err = now, do(now)
		}
	}
	if statusOf(err) == http.StatusPreconditionRequired {
		return a.explainUnready(ctx, known)
	}
	return err
}

func (a *Adapter) relist(ctx context.Context, device adapter.DeviceRef) (knownLock, error) {
	if _, err := a.listLocks(ctx); err != nil {
		return knownLock{}, err
	}
	known, ok := a.locks.of(device)
	if !ok {
		return known, adapter.Errorf(adapter.NotFound, "the account has no such lock")
	}
	return known, nil
}

// explainUnready returns the error of a 428, which means that the lock is disconnected or not set up.
func (a *Adapter) explainUnready(ctx context.Context, known knownLock) error {
	var now wireSync
	err := a.do(ctx, vendorhttp.Call{Path: known.path() + "/sync"}, &now)
	if err == nil && isTrue(now.IsConnected) {
		return adapter.Errorf(adapter.NotSupported,
			"the lock is connected, but not set up for this; check its keypad and its calibration in the Tedee app")
	}
	return adapter.Errorf(adapter.Offline, "the lock is not connected to its bridge")
}

// Events implements adapter.Adapter.
func (a *Adapter) Events() <-chan adapter.Event { return a.events.Events() }

// Close implements adapter.Adapter.
func (a *Adapter) Close() error {
	a.shut()
	a.events.Close()
	a.client.HTTP.CloseIdleConnections()
	return nil
}

// knownLock is what calls need to know about a lock.
type knownLock struct {
	id   int64
	caps capability.Set
}

func (k knownLock) path() string { return "/my/lock/" + strconv.FormatInt(k.id, 10) }

// lockIndex remembers locks by serial number. Its zero value is ready.
type lockIndex struct {
	mu    sync.Mutex
	locks map[adapter.DeviceRef]knownLock
	// unlisted are ids that the last list lacked.
	unlisted map[int64]bool
}

func (x *lockIndex) replace(locks []wireLock) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.locks, x.unlisted = make(map[adapter.DeviceRef]knownLock, len(locks)), map[int64]bool{}
	for _, l := range locks {
		x.locks[adapter.DeviceRef(l.Serial)] = knownLock{l.ID, l.capabilities()}
	}
}

func (x *lockIndex) keep(l wireLock) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.locks != nil {
		x.locks[adapter.DeviceRef(l.Serial)] = knownLock{l.ID, l.capabilities()}
	}
}

func (x *lockIndex) of(device adapter.DeviceRef) (knownLock, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	l, ok := x.locks[device]
	return l, ok
}

// serials returns the serial numbers by id, and the ids that the last list lacked.
func (x *lockIndex) serials() (serials map[int64]adapter.DeviceRef, unlisted map[int64]bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	serials = make(map[int64]adapter.DeviceRef, len(x.locks))
	for serial, l := range x.locks {
		serials[l.id] = serial
	}
	return serials, maps.Clone(x.unlisted)
}

func (x *lockIndex) markUnlisted(id int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.unlisted[id] = true
}
