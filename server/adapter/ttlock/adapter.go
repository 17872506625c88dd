// Package ttlock implements adapter.Adapter for the TTLock Open Platform (Sciener), and for clouds of the same API
// under other names. An account is a login of the TTLock app; its locks are those that the login administers. The
// package was written from the vendor's documentation (euopen.ttlock.com, edition of 2026) and has never met the
// vendor's cloud.
//
// Calls are metered by application, so the adapter reads little. Writes to the locks behind one gateway wait for each
// other. Pushes are unsigned: the adapter reads from the vendor whatever a push says.
//
// Where the documentation is silent, the package decides:
//
//   - The codes that the cloud lists are those on the lock. Codes entered at the keypad appear later.
//   - Feature bit 60 ("incomplete keyboard") means a keypad without 0, 7, 8, and 9.
//   - A permanent code has the time frame from 0 to 0, also in a change. If the cloud ignores that, the adapter deletes
//     the code and creates another. It does the same for a code that was never used, which cannot be changed.
//   - The values 3 and 4 of addType also apply to changeType, deleteType, and the type of the auto-lock setting.
//   - The status of a code is also shown for WiFi locks that are written asynchronously.
//   - A period code that is not used within a day of its start may expire. The adapter cannot prevent that.
//   - The monthly limit of calls ends at an unknown time: the adapter tries again after an hour.
//   - A record of type 11 (lock with an app) is also written for a lock command through the gateway.
package ttlock

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
)

// Config configures New.
type Config struct {
	// BaseURL is the URL of the cloud.
	BaseURL string
	// Client is the operator's application.
	Client adapter.Client
	// Secrets holds the tokens of the account.
	Secrets adapter.Secrets
	// Budget counts the calls; nil: unlimited.
	Budget adapter.Budget
	// HTTP sends the calls. vendorhttp.New returns one.
	HTTP *http.Client
	// Log defaults to no logging.
	Log *slog.Logger
	// Now is the clock; nil: the system's.
	Now func() time.Time
}

// Adapter accesses the locks of one account.
type Adapter struct {
	http   *vendorhttp.Client
	client adapter.Client
	tokens *adapter.TokenSource
	budget adapter.Budget
	log    *slog.Logger
	now    func() time.Time

	events *adapter.EventQueue
	lines  adapter.Lines
	known  lockCache
	writes attempts
	hints  hints
}

var (
	_ adapter.Adapter       = (*Adapter)(nil)
	_ adapter.Locker        = (*Adapter)(nil)
	_ adapter.AutoLocker    = (*Adapter)(nil)
	_ adapter.OfflineIssuer = (*Adapter)(nil)
	_ adapter.EventReceiver = (*Adapter)(nil)
)

// New returns an adapter. It sends nothing.
func New(c Config) *Adapter {
	a := &Adapter{
		client: c.Client,
		budget: c.Budget,
		log:    c.Log,
		now:    c.Now,
		events: adapter.NewEventQueue(),
	}
	if a.budget == nil {
		a.budget = adapter.Unlimited{}
	}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	if a.now == nil {
		a.now = time.Now
	}
	a.http = &vendorhttp.Client{
		Adapter: Name,
		Base:    c.BaseURL,
		HTTP:    c.HTTP,
		Log:     a.log,
		Budget:  a.budget,
		Words:   pathWords,
		Secret:  c.Client.Secret,
	}
	a.tokens = &adapter.TokenSource{Secrets: c.Secrets, Refresh: a.refresh, Now: c.Now}
	a.hints.open, a.hints.shut = context.WithCancel(context.Background())
	return a
}

// Devices implements adapter.Adapter. It takes one call for 1000 locks, and one for each gateway. The state of a WiFi
// lock may be hours old.
func (a *Adapter) Devices(ctx context.Context) ([]adapter.Device, error) {
	locks, err := a.listLocks(ctx)
	if err != nil {
		return nil, err
	}
	var links map[int64]link
	for _, w := range locks {
		if w.HasGateway == 1 {
			if links, err = a.gatewayLinks(ctx); err != nil {
				return nil, err
			}
			break
		}
	}
	devices := make([]adapter.Device, 0, len(locks))
	for _, w := range locks {
		l, seen := links[int64(w.ID)]
		fresh := true
		switch f := w.features(); {
		case f.isWireless():
			known, _ := a.known.of(w.ref())
			if fresh = a.now().Sub(known.linkAt) >= wifiMemory; !fresh {
				l = known.link
			} else if l, err = a.ownLink(ctx, int64(w.ID), f); err != nil {
				return nil, err
			}
		case !seen:
			l = link{hub: true}
		}
		devices = append(devices, a.note(w, l, fresh))
	}
	a.known.retain(locks)
	return devices, nil
}

// Device implements adapter.Adapter. It takes up to three calls, and asks the lock for the position of its bolt if that
// has not been heard of for a while.
func (a *Adapter) Device(ctx context.Context, device adapter.DeviceRef) (adapter.Device, error) {
	id, err := lockID(device)
	if err != nil {
		return adapter.Device{}, err
	}
	var w wireLock
	if err := a.get(ctx, "/v3/lock/detail", url.Values{"lockId": {string(device)}}, &w); err != nil {
		return adapter.Device{}, a.missing(device, err)
	}
	if int64(w.ID) != id {
		return adapter.Device{}, adapter.Errorf(adapter.Transient, "TTLock describes another lock than requested")
	}
	w.detailed = true
	l, err := a.link(ctx, w)
	if err != nil {
		return adapter.Device{}, a.missing(device, err)
	}
	d := a.note(w, l, true)
	if l.online && a.askBolt(ctx, device, l) {
		d = a.note(w, l, true)
	}
	return d, nil
}

// missing returns err. If the account no longer has the lock, it reports that the devices must be listed.
func (a *Adapter) missing(device adapter.DeviceRef, err error) error {
	switch codeOf(err) {
	case codeNoLock, codeNotAdmin, codeNotPermitted:
		if a.known.forget(device) {
			a.events.Send(adapter.Event{Kind: adapter.DeviceListed, Device: device})
		}
	}
	return err
}

// ready returns what is known about a lock that is online. It reads the lock if that was offline or is not known. It
// fails like Device, and with Offline.
func (a *Adapter) ready(ctx context.Context, device adapter.DeviceRef) (lock, error) {
	if known, ok := a.known.of(device); ok && known.link.online && a.now().Sub(known.linkAt) < linkMemory {
		return known, nil
	}
	d, err := a.Device(ctx, device)
	switch {
	case err != nil:
		return lock{}, err
	case d.HubOffline:
		return lock{}, adapter.Errorf(adapter.Offline, "no gateway reaches the lock")
	case !d.Online:
		return lock{}, adapter.Errorf(adapter.Offline, "the lock is offline")
	}
	known, _ := a.known.of(device)
	return known, nil
}

// lockID returns the vendor's number of a lock.
func lockID(device adapter.DeviceRef) (int64, error) {
	id, err := strconv.ParseInt(string(device), 10, 64)
	if err != nil || id < 1 || strconv.FormatInt(id, 10) != string(device) {
		return 0, adapter.Errorf(adapter.NotFound, "TTLock has no such lock")
	}
	return id, nil
}

// Events implements adapter.Adapter.
func (a *Adapter) Events() <-chan adapter.Event { return a.events.Events() }

// Close implements adapter.Adapter.
func (a *Adapter) Close() error {
	a.hints.close()
	a.events.Close()
	a.http.HTTP.CloseIdleConnections()
	return nil
}

// lock is what the adapter remembers about a lock.
type lock struct {
	device adapter.Device
	link   link
	linkAt time.Time
	bolt   bolt
	// refs are the codes of the last list, by PIN.
	refs map[string]adapter.CodeRef
}

// Validity of what the adapter remembers.
const (
	// linkMemory is how long a lock that was online counts as online.
	linkMemory = 5 * time.Minute
	// wifiMemory is how long a list of devices shows the last known connection of a WiFi lock.
	wifiMemory = 6 * time.Hour
	// boltMemory is how long the position of a bolt is believed.
	boltMemory = 10 * time.Minute
)

// maxKnown bounds the locks that are remembered. Further ones are read when needed.
const maxKnown = 10_000

// lockCache remembers locks. The zero value is ready.
type lockCache struct {
	mu    sync.Mutex
	locks map[adapter.DeviceRef]lock
}

func (c *lockCache) of(device adapter.DeviceRef) (lock, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, ok := c.locks[device]
	return l, ok
}

// change changes what is known, if there is room.
func (c *lockCache) change(device adapter.DeviceRef, change func(*lock)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, ok := c.locks[device]
	if !ok && len(c.locks) >= maxKnown {
		return
	}
	if c.locks == nil {
		c.locks = map[adapter.DeviceRef]lock{}
	}
	change(&l)
	c.locks[device] = l
}

// forget drops a lock and reports whether it was known.
func (c *lockCache) forget(device adapter.DeviceRef) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.locks[device]
	delete(c.locks, device)
	return ok
}

// expire makes the next call read the state of all locks.
func (c *lockCache) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for device, l := range c.locks {
		l.linkAt = time.Time{}
		c.locks[device] = l
	}
}

// retain drops the locks that are not listed.
func (c *lockCache) retain(listed []wireLock) {
	keep := make(map[adapter.DeviceRef]bool, len(listed))
	for _, w := range listed {
		keep[w.ref()] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for device := range c.locks {
		if !keep[device] {
			delete(c.locks, device)
		}
	}
}
