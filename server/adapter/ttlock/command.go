package ttlock

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// bolt is the last known position of a bolt.
type bolt struct {
	known  bool
	locked bool
	at     time.Time
	// unreadable means that the lock does not report the position.
	unreadable bool
}

// Lock implements adapter.Locker.
func (a *Adapter) Lock(ctx context.Context, device adapter.DeviceRef) (adapter.State, error) {
	return a.move(ctx, device, true)
}

// Unlock implements adapter.Locker.
func (a *Adapter) Unlock(ctx context.Context, device adapter.DeviceRef) (adapter.State, error) {
	return a.move(ctx, device, false)
}

func (a *Adapter) move(ctx context.Context, device adapter.DeviceRef, locked bool) (adapter.State, error) {
	known, err := a.ready(ctx, device)
	if err != nil {
		return "", err
	}
	path, can := "/v3/lock/unlock", known.device.Capabilities.Unlock
	if locked {
		path, can = "/v3/lock/lock", known.device.Capabilities.Lock
	}
	if !can {
		return "", adapter.Errorf(adapter.NotSupported, "the lock cannot be moved remotely in this direction")
	}
	if known.link.isAsync() { // a record will show when the bolt has moved, maybe before the response
		a.known.change(device, func(l *lock) { l.bolt.known = false })
	}
	err = a.onLine(ctx, known.link, func() error {
		return a.write(ctx, path, url.Values{"lockId": {string(device)}}, nil)
	})
	if err != nil {
		return "", a.missing(device, err)
	}
	if known.link.isAsync() {
		return adapter.Accepted, nil
	}
	a.moved(device, locked, a.now())
	return adapter.Confirmed, nil
}

// moved remembers the position of a bolt, unless a later one is known.
func (a *Adapter) moved(device adapter.DeviceRef, locked bool, at time.Time) {
	a.known.change(device, func(l *lock) {
		if !at.Before(l.bolt.at) {
			l.bolt = bolt{known: true, locked: locked, at: at, unreadable: l.bolt.unreadable}
		}
	})
}

// askBolt asks the lock for the position of its bolt if that is not known, or may have changed since. It reports
// whether it asked. A lock that does not answer has an unknown position.
func (a *Adapter) askBolt(ctx context.Context, device adapter.DeviceRef, l link) bool {
	known, _ := a.known.of(device)
	age := a.now().Sub(known.bolt.at)
	relocked := !known.bolt.locked && isRelocked(known.device.AutoLock, age)
	if known.bolt.unreadable || known.bolt.known && age < boltMemory && !relocked || l.isAsync() {
		return false
	}
	var got struct {
		State *number `json:"state"`
	}
	err := a.onLine(ctx, l, func() error {
		return a.get(ctx, "/v3/lock/queryOpenState", url.Values{"lockId": {string(device)}}, &got)
	})
	found := bolt{at: a.now()}
	if err == nil && got.State != nil && *got.State <= 1 && *got.State >= 0 {
		found.known, found.locked = true, *got.State == 0
	}
	found.unreadable = err != nil && adapter.ClassOf(err) == adapter.NotSupported
	a.known.change(device, func(known *lock) { known.bolt = found })
	return true
}

// isRelocked reports whether a lock has locked itself since it was unlocked.
func isRelocked(setting *adapter.AutoLock, unlockedFor time.Duration) bool {
	return setting != nil && setting.Enabled && unlockedFor >= setting.Delay
}

// ConfigureAutoLock implements adapter.AutoLocker. TTLock accepts whole seconds.
func (a *Adapter) ConfigureAutoLock(
	ctx context.Context, device adapter.DeviceRef, setting adapter.AutoLock,
) (adapter.State, error) {
	known, err := a.ready(ctx, device)
	seconds := int64(-1)
	if setting.Enabled {
		seconds = int64(setting.Delay / time.Second)
	}
	switch {
	case err != nil:
		return "", err
	case !known.device.Capabilities.AutoLock:
		return "", adapter.Errorf(adapter.NotSupported, "the auto-lock of this lock cannot be set")
	case setting.Enabled && (seconds < 1 || setting.Delay%time.Second != 0):
		return "", adapter.Errorf(adapter.Invalid, "TTLock accepts auto-lock delays of whole seconds")
	}
	err = a.onLine(ctx, known.link, func() error {
		return a.write(ctx, "/v3/lock/setAutoLockTime", url.Values{
			"lockId":  {string(device)},
			"seconds": {strconv.FormatInt(seconds, 10)},
			"type":    {known.link.via()},
		}, nil)
	})
	if err != nil {
		return "", a.missing(device, err)
	}
	if !known.link.isAsync() {
		if !setting.Enabled {
			setting.Delay = 0
		}
		a.known.change(device, func(l *lock) { l.device.AutoLock = &setting })
	}
	return known.link.state(), nil
}
