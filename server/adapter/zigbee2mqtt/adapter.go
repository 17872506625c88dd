// Package zigbee2mqtt implements adapter.Adapter for the Zigbee locks and thermostats of a Zigbee2MQTT instance over its
// MQTT topics (zigbee2mqtt.io, guide "MQTT topics and messages", and the source of version 2.14). It must not know who
// owns a code.
//
// Where the protocol leaves a choice, the package decides:
//
//   - A lock is identified by its IEEE address, because its friendly name may change.
//   - A code is a slot of a lock, from 1 on. Slot 0, the master code of some locks, is neither read nor written.
//   - Zigbee2MQTT does not report whether a lock accepted a code. Therefore a write reads the slot, sets it,
//     reads it again, and compares. A lock that answers twice without accepting a PIN rejects it; in most cases
//     the PIN is a duplicate. Radio errors are found in bridge/logging.
//   - Before a write, the slot is read by a separate request whose response is identified by its transaction (see
//     exactRequest). Versions without that request are read in the usual way.
//   - Every message repeats all slots that Zigbee2MQTT has ever seen. A message that may have another cause than
//     the read counts only when no other message follows (see verdict), and until another message contradicts it.
//   - Radio traffic drains the battery of a lock. All slots are read once after each connection, and after an
//     absence of Zigbee2MQTT or of the lock. After that, only slots that the lock reports as changed are read
//     and, before a write, used slots whose last read is old. An idle lock causes no traffic.
//   - Without expose_pin, and for locks that do not show PINs, PINs are hidden. A code in use is then changed by
//     clearing its slot first, because a lock that rejects the new PIN looks like one that accepted it.
//   - A Zigbee2MQTT that hangs keeps its connection to the broker. Its health is checked whenever the devices are
//     listed, and when a lock does not answer.
//   - Zigbee2MQTT announces what it writes to a thermostat before the thermostat has applied it. The adapter reads what
//     it has written, and shows the earlier state meanwhile. Otherwise a thermostat is read once after each connection
//     and each absence.
//   - The lock reports its number of slots and the lengths of PINs. The defaults are 30 slots and 4 to 8 digits.
package zigbee2mqtt

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// Adapter accesses one Zigbee2MQTT instance. It stays connected to the broker from New to Close.
type Adapter struct {
	config  Config
	log     *slog.Logger
	hints   *adapter.EventQueue
	running context.Context // ends with Close
	cancel  context.CancelFunc
	done    chan struct{}

	mu                sync.Mutex
	session           *session      // nil without a connection
	failed            error         // why there is no connection; nil during the first attempt
	changed           chan struct{} // closed and replaced when the state may have changed
	bridge            bridge
	locks             map[adapter.DeviceRef]*lock
	requests          map[string]chan wireResponse // by transaction
	gatewayChecks     sync.WaitGroup
	operationsWarning rate.Sometimes // limits the warning about too many operations
	slotsWarning      rate.Sometimes // limits the warning about too many slots
}

var (
	_ adapter.Adapter = (*Adapter)(nil)
	_ adapter.Locker  = (*Adapter)(nil)

	_ adapter.ThermostatController = (*Adapter)(nil)
)

// New connects in the background, and retries until Close. It fails with Invalid.
func New(c Config) (*Adapter, error) {
	if _, err := c.broker(); err != nil {
		return nil, err
	}
	a := idle(c)
	go a.run(a.running)
	return a, nil
}

// idle returns an adapter that does not connect.
func idle(c Config) *Adapter {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	a := &Adapter{
		config:            c,
		log:               c.Log,
		hints:             adapter.NewEventQueue(),
		done:              make(chan struct{}),
		changed:           make(chan struct{}),
		locks:             map[adapter.DeviceRef]*lock{},
		requests:          map[string]chan wireResponse{},
		operationsWarning: rate.Sometimes{Interval: warnInterval},
		slotsWarning:      rate.Sometimes{Interval: warnInterval},
	}
	a.running, a.cancel = context.WithCancel(context.Background())
	a.bridge.reset()
	return a
}

// Check connects once and returns what is wrong with the address, the credentials, or the published messages. It
// fails with Invalid, GatewayDown, AuthRevoked, or NotSupported.
func Check(ctx context.Context, c Config) error {
	a, err := New(c)
	if err != nil {
		return err
	}
	defer a.Close() //nolint:errcheck // it never fails
	return a.await(ctx)
}

// Events implements adapter.Adapter.
func (a *Adapter) Events() <-chan adapter.Event { return a.hints.Events() }

// Close implements adapter.Adapter.
func (a *Adapter) Close() error {
	a.cancel()
	<-a.done
	a.gatewayChecks.Wait()
	a.hints.Close()
	return nil
}

// run connects and reconnects until ctx ends.
func (a *Adapter) run(ctx context.Context) {
	defer close(a.done)
	for n := 0; ctx.Err() == nil; n++ {
		began := time.Now()
		err := a.serve(ctx)
		a.markDown(err)
		if time.Since(began) > time.Minute {
			n = 0
		}
		pause := min(250*time.Millisecond<<min(n, 5), 5*time.Second)
		if adapter.ClassOf(err) == adapter.AuthRevoked {
			pause = time.Minute
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
		}
	}
}

// serve handles one connection from dialing to its end.
func (a *Adapter) serve(ctx context.Context) error {
	a.mu.Lock()
	a.bridge.reset()
	a.mu.Unlock()
	s, err := dial(ctx, a.config, a.receive)
	if err != nil {
		return err
	}
	defer s.close()
	a.mu.Lock()
	a.session, a.failed = s, nil
	a.invalidateSlots()
	a.notifyChanged()
	a.mu.Unlock()
	a.hints.Send(adapter.Event{Kind: adapter.Resync})
	select {
	case <-ctx.Done():
		return adapter.Errorf(adapter.GatewayDown, "the connection was closed")
	case <-s.ended:
		return adapter.Errorf(adapter.GatewayDown, "the connection to the MQTT broker was lost; the server reconnects")
	}
}

// markDown records that there is no connection, and why.
func (a *Adapter) markDown(err error) {
	a.mu.Lock()
	lost := a.session != nil || a.failed == nil
	a.session, a.failed = nil, err
	for _, l := range a.locks {
		l.fail(err)
	}
	a.notifyChanged()
	a.mu.Unlock()
	if !lost {
		return
	}
	a.log.Warn("no connection to the MQTT broker; the server keeps retrying", "error", err)
	if adapter.ClassOf(err) == adapter.AuthRevoked {
		a.hints.Send(adapter.Event{Kind: adapter.AccountRevoked})
		return
	}
	a.hints.Send(adapter.Event{Kind: adapter.DeviceListed}) // listing will fail
}

// notifyChanged wakes the waiting calls; a.mu is held.
func (a *Adapter) notifyChanged() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// invalidateSlots discards what is known of all slots and limits, because changes may have been missed; a.mu is held.
func (a *Adapter) invalidateSlots() {
	for _, l := range a.locks {
		l.invalidateSlots()
		l.resetLimits()
		l.missed = true
	}
}

// awaitTimeout is how long a call waits for the connection and for the first messages of Zigbee2MQTT.
const awaitTimeout = 10 * time.Second

// await waits until Zigbee2MQTT accepts commands. It fails with Invalid, GatewayDown, AuthRevoked, or NotSupported.
func (a *Adapter) await(ctx context.Context) error {
	timeout := time.NewTimer(awaitTimeout)
	defer timeout.Stop()
	for {
		a.mu.Lock()
		connected, failed, changed := a.session != nil, a.failed, a.changed
		missing := a.bridge.missing(a.config.Topic)
		if missing == nil {
			missing = a.gatewayUnchecked()
		}
		a.mu.Unlock()
		switch {
		case !connected && failed != nil:
			return failed
		case connected && missing == nil:
			return nil
		case connected && missing.final:
			return missing.err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return waitError(ctx, adapter.GatewayDown, "there is no connection to Zigbee2MQTT yet")
		case <-timeout.C:
			if connected && missing != nil {
				return missing.err
			}
			return adapter.Errorf(adapter.GatewayDown, "the MQTT broker does not answer")
		}
	}
}

// Devices implements adapter.Adapter. It reads the limits of a lock that it lists for the first time.
func (a *Adapter) Devices(ctx context.Context) ([]adapter.Device, error) {
	if err := a.await(ctx); err != nil {
		return nil, err
	}
	if err := a.checkHealth(ctx); err != nil {
		return nil, err
	}
	a.mu.Lock()
	var locks []*lock
	for _, l := range a.locks {
		locks = append(locks, l)
	}
	a.mu.Unlock()
	a.readAllLimits(ctx, locks)
	if ctx.Err() != nil {
		return nil, waitError(ctx, adapter.Transient, "the locks' limits are not known yet")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	devices := make([]adapter.Device, 0, len(a.locks))
	for _, l := range a.locks {
		devices = append(devices, a.device(l))
	}
	slices.SortFunc(devices, func(x, y adapter.Device) int { return compare(x.Ref, y.Ref) })
	return devices, nil
}

// limitsTimeout is how long Devices waits for the limits of the locks. Further limits are read on the next call.
const limitsTimeout = time.Minute

// readAllLimits reads the limits of the locks, several locks concurrently.
func (a *Adapter) readAllLimits(ctx context.Context, locks []*lock) {
	ctx, cancel := context.WithTimeout(ctx, limitsTimeout)
	defer cancel()
	var asking sync.WaitGroup
	defer asking.Wait()
	room := make(chan struct{}, maxConcurrentReads)
	for _, l := range locks {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return
		}
		asking.Go(func() {
			defer func() { <-room }()
			a.readLimits(ctx, l)
		})
	}
}

func compare(x, y adapter.DeviceRef) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// Device implements adapter.Adapter.
func (a *Adapter) Device(ctx context.Context, device adapter.DeviceRef) (adapter.Device, error) {
	l, err := a.find(ctx, device)
	if err != nil {
		return adapter.Device{}, err
	}
	a.readLimits(ctx, l)
	if err := a.refreshClimate(ctx, l); err != nil {
		return adapter.Device{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.device(l), nil
}

// find returns the device with the address. It fails like await, and with NotFound. It fails with Transient while
// Zigbee2MQTT does not report what the device is, because Zigbee2MQTT would reject commands for a lock.
func (a *Adapter) find(ctx context.Context, device adapter.DeviceRef) (*lock, error) {
	if err := a.await(ctx); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, listed := a.bridge.undefined[device]; listed {
		return nil, adapter.Errorf(adapter.Transient,
			"Zigbee2MQTT reports no lock or thermostat at this address now: if this persists, interview it again, and "+
				"check that its external converter, if any, is loaded")
	}
	l, ok := a.locks[device]
	if !ok {
		return nil, adapter.Errorf(adapter.NotFound, "Zigbee2MQTT has no such device")
	}
	return l, nil
}

// device returns the description of a device; a.mu is held.
func (a *Adapter) device(l *lock) adapter.Device {
	if l.climate != nil {
		return l.thermostat()
	}
	visible := l.visible && !l.masked
	d := adapter.Device{
		Ref:          l.ref,
		Name:         l.name,
		Type:         "zigbee_lock",
		Provider:     "zigbee2mqtt",
		Manufacturer: l.vendor,
		Model:        l.model,
		SerialNumber: string(l.ref),
		Online:       l.online(),
		Locked:       l.locked,
		BatteryLevel: l.battery,
		DoorOpen:     l.doorOpen,
		Capabilities: capability.Set{
			Lock:            l.able.bolt,
			Unlock:          l.able.bolt,
			OnlineCodes:     l.codes(),
			ListCodes:       l.codes(),
			DeleteUnmanaged: l.codes(),
			ModifyInPlace:   l.codes(),
			PINVisible:      visible,
			Convert:         capability.ConvertNever,
			MaxCodes:        l.slots - 1,
			Confirm:         capability.ConfirmSync,
			DirectPower:     l.directPower,
			EntryEvents:     new(l.able.operations),
		},
	}
	if visible {
		d.Capabilities.Convert = capability.ConvertAdopt
	}
	for n := l.minPIN; n <= l.maxPIN; n++ {
		d.Capabilities.CodeLengths = append(d.Capabilities.CodeLengths, n)
	}
	return d
}
