package sandbox

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// lock is one device, usually a lock: its memory, and the state of the cloud about it.
type lock struct {
	acct *account
	box  *Sandbox
	id   string
	name string
	prof profile
	gate *gate // nil where writes may overlap

	mu            sync.Mutex
	mem           memory
	deleted       bool                // the account was deleted: files are not written
	view          []stored            // the cloud's copy of mem.Codes
	viewedClimate *thermostatState    // the cloud's copy of mem.Thermostat; never changed in place
	viewedNoise   *noiseState         // the cloud's copy of mem.Noise; never changed in place
	noiseOps      []*noiseOp          // pending changes of thresholds, oldest first
	ops           []*op               // pending writes, oldest first
	lastAt        time.Time           // time of the last pending write; later ones follow it
	failed        map[string]*failure // failed last writes by access code
	actions       []action            // the last lock and unlock commands, oldest first
	actedAt       time.Time           // time of the last pending command; later ones follow it
	autoLockTimer int                 // generation of the auto-lock timer; an older timer does nothing
	faults        Faults
	rng           *rand.Rand
}

// gate admits one write at a time.
type gate struct{ taken atomic.Bool }

// failure is an accepted write that failed. code is set for a creation, whose code exists nowhere else.
type failure struct {
	problem *problem
	code    *stored
}

func (a *account) newLock(id string, prof profile, n int) *lock {
	l := &lock{
		acct:   a,
		box:    a.box,
		id:     id,
		name:   prof.LockName,
		prof:   prof,
		failed: map[string]*failure{},
		rng:    a.box.rngOf("rng", id),
	}
	if n > 0 {
		l.name = fmt.Sprintf("%s %d", prof.LockName, n+1)
	}
	switch prof.Busy {
	case busyLock:
		l.gate = &gate{}
	case busyGateway:
		l.gate = a.gateway
	}
	return l
}

// factory returns the initial memory of the profile's nth lock, which looks used. Its PINs are equal in every
// sandbox, so that a PIN in an example or a test is free everywhere or nowhere.
func (l *lock) factory(n int) memory {
	m := memory{
		LockID:       l.id,
		Online:       true,
		Locked:       true,
		BatteryLevel: 60 + l.rng.IntN(40),
	}
	if t := l.prof.Thermostat; t != nil {
		m.Thermostat = new(t.Initial)
	}
	if p := l.prof.Noise; p != nil {
		m.Noise = &noiseState{Thresholds: slices.Clone(p.Thresholds)}
	}
	pins := rand.New(rand.NewPCG(binary.BigEndian.Uint64(Tokens(0).digest("factory", l.prof.Provider)), uint64(n)))
	for _, name := range l.prof.Codes {
		m.Codes = append(m.Codes, stored{
			ID:     l.codeID(&m),
			Name:   name,
			PIN:    l.prof.newPIN(pins, m.Codes),
			Origin: fromFactory,
		})
	}
	return m
}

func (l *lock) file() string { return "locks/" + l.id + ".json" }

// codeID returns the next identifier of an access code, which starts with that of the lock.
func (l *lock) codeID(m *memory) string {
	m.NextCode++
	return fmt.Sprintf("ac_%s_%d", l.id, m.NextCode)
}

func (l *lock) isRemoved() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mem.Removed
}

// now returns the time of the lock's clock.
func (l *lock) now() time.Time {
	return l.box.opts.Clock().Add(l.faults.skew())
}

// commit changes the lock's memory, file first, and publishes it to the cloud. If change or the file fails, nothing
// changes; l.mu is held.
func (l *lock) commit(change func(*memory) *problem) *problem {
	if l.deleted {
		return refuse(lockNotFound, "There is no such lock.")
	}
	m := l.mem.clone()
	if p := change(&m); p != nil {
		return p
	}
	if err := l.box.files().save(l.file(), m); err != nil {
		l.box.opts.Log.Error("write the memory of a lock", "lock", l.id, "error", err)
		return refuse(deviceError, "The lock cannot store the change.")
	}
	l.mem = m
	l.publish()
	return nil
}

// publish updates the cloud's copy, immediately or after the lag of the list, unless the lock is offline.
func (l *lock) publish() {
	if !l.mem.reachable() {
		return
	}
	lag := l.faults.listLag(l.box.scaled(l.prof.ListLag))
	if lag <= 0 {
		l.refreshView()
		return
	}
	l.box.sched.at(time.Now().Add(lag), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.mem.reachable() {
			l.refreshView()
		}
	})
}

// refreshView copies the device's memory to the cloud; l.mu is held.
func (l *lock) refreshView() {
	l.view, l.viewedClimate, l.viewedNoise = slices.Clone(l.mem.Codes), l.mem.Thermostat, l.mem.Noise
}

// setOnline disconnects the lock from its network, or reconnects it, which resumes the waiting writes.
func (l *lock) setOnline(online bool) *problem {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mem.Online == online {
		return nil
	}
	return l.connect(func(m *memory) { m.Online = online })
}

// setHub disconnects the hub of the lock from its network, or reconnects it.
func (l *lock) setHub(online bool) *problem {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.prof.Hub:
		return refuse(notSupported, "The lock has no hub.")
	case l.mem.HubOffline != online:
		return nil
	}
	return l.connect(func(m *memory) { m.HubOffline = !online })
}

// connect changes whether the cloud can reach the lock; l.mu is held.
func (l *lock) connect(change func(*memory)) *problem {
	if p := l.commit(func(m *memory) *problem { change(m); return nil }); p != nil {
		return p
	}
	if !l.mem.reachable() {
		l.acct.push(event{Type: "device.offline", DeviceID: l.id})
		return nil
	}
	l.acct.push(event{Type: "device.online", DeviceID: l.id})
	for _, o := range l.ops {
		if o.parked {
			o.parked = false
			l.schedule(o)
		}
	}
	return nil
}

// forget deletes the lock permanently.
func (l *lock) forget() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deleted, l.mem.Removed = true, true
	return l.box.files().remove(l.file())
}

func (l *lock) remove() *problem {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.commit(func(m *memory) *problem { m.Removed = true; return nil }); p != nil {
		return p
	}
	l.acct.push(event{Type: "device.removed", DeviceID: l.id})
	return nil
}

// setExpired expires or renews the subscription that the vendor requires for codes.
func (l *lock) setExpired(expired bool) *problem {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.prof.Subscription {
		return refuse(notSupported, "The vendor of this lock requires no subscription.")
	}
	if p := l.commit(func(m *memory) *problem { m.Expired = expired; return nil }); p != nil {
		return p
	}
	l.announce(event{Type: "lock.settings_changed"})
	return nil
}

// setBattery sets the charge in percent, and announces a low or a new battery.
func (l *lock) setBattery(level int) *problem {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.mem.BatteryLevel
	if p := l.commit(func(m *memory) *problem { m.BatteryLevel = level; return nil }); p != nil {
		return p
	}
	switch {
	case level <= lowBattery && was > lowBattery:
		l.announce(event{Type: "device.low_battery", BatteryLevel: &level})
	case level > was:
		l.announce(event{Type: "battery.replaced", BatteryLevel: &level})
	}
	return nil
}

// lowBattery is in percent.
const lowBattery = 20
