// Package zigbee2mqtt reaches the Zigbee locks of a Zigbee2MQTT over its MQTT topics (zigbee2mqtt.io, guide "MQTT
// topics and messages"; read in the source of version 2.14). It must not know who owns a code.
//
// Where the protocol leaves a choice, this is decided:
//
//   - A lock is its IEEE address: its friendly name may change.
//   - A code is a slot of a lock, from 1 on; slot 0, the master code of some locks, is neither read nor written.
//   - Zigbee2MQTT does not tell whether a lock took a code. So a slot is asked for, set, asked for again and
//     compared. A lock that twice answers and twice does not take a PIN refuses it: it has it already, in most
//     cases. What went wrong by radio is found in bridge/logging.
//   - Before a slot is written, Zigbee2MQTT is asked for it by a request of its own, whose answer is known by its
//     transaction (see exactly); versions that do not know that are asked as always.
//   - Every message repeats all slots that Zigbee2MQTT has ever seen. One that may have been published for another
//     reason than our question counts only when no other follows (see verdict), and until another says otherwise.
//   - Radio costs a lock its battery. All slots are read once after each connection, and when Zigbee2MQTT or the lock
//     was away; after that only those that the lock tells of, and before something is written those in use that were
//     read long ago. An idle lock is left alone.
//   - Without expose_pin, and for locks that do not show PINs, PINs are hidden. A code in use is then changed by
//     clearing its slot first, because a lock that refuses the new PIN looks like one that took it.
//   - A Zigbee2MQTT that hangs keeps its connection to the broker. It is asked whether it is well whenever the devices
//     are listed, and when a lock does not answer.
//   - The lock itself is asked how many slots it has, and how long PINs may be; one that does not tell has 30 slots
//     and takes 4 to 8 digits.
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
)

// Adapter is one Zigbee2MQTT. It is connected to the broker all the time, from New to Close.
type Adapter struct {
	config  Config
	log     *slog.Logger
	hints   *adapter.Hints
	running context.Context // ends with Close
	cancel  context.CancelFunc
	done    chan struct{}

	mu       sync.Mutex
	session  *session      // nil while there is no connection
	failed   error         // why there is none; nil while the first try is not over
	changed  chan struct{} // closed and made anew when what calls wait for may have changed
	bridge   bridge
	locks    map[adapter.DeviceRef]*lock
	requests map[string]chan wireResponse // by their transaction
	meetings sync.WaitGroup
	hurried  rate.Sometimes // that a lock does more than it can is logged
	crowded  rate.Sometimes // that there are more slots than may be remembered is
}

var (
	_ adapter.Adapter = (*Adapter)(nil)
	_ adapter.Locker  = (*Adapter)(nil)
)

// New starts to connect, and goes on trying until Close. It fails with Invalid.
func New(c Config) (*Adapter, error) {
	if _, err := c.broker(); err != nil {
		return nil, err
	}
	a := idle(c)
	go a.run(a.running)
	return a, nil
}

// idle is an adapter that is not connected, nor tries to be.
func idle(c Config) *Adapter {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	a := &Adapter{config: c, log: c.Log, hints: adapter.NewHints(), done: make(chan struct{}), changed: make(chan struct{}),
		locks: map[adapter.DeviceRef]*lock{}, requests: map[string]chan wireResponse{},
		hurried: rate.Sometimes{Interval: saidAgain}, crowded: rate.Sometimes{Interval: saidAgain}}
	a.running, a.cancel = context.WithCancel(context.Background())
	a.bridge.reset()
	return a
}

// Check connects once, and says what is wrong: with the address, the credentials, or what is published there.
// It fails with Invalid, GatewayDown, AuthRevoked or NotSupported.
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
	a.meetings.Wait()
	a.hints.Close()
	return nil
}

// run connects again and again.
func (a *Adapter) run(ctx context.Context) {
	defer close(a.done)
	for n := 0; ctx.Err() == nil; n++ {
		began := time.Now()
		err := a.serve(ctx)
		a.down(err)
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

// serve is one connection, from dialling to its end.
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
	a.forget()
	a.wake()
	a.mu.Unlock()
	a.hints.Send(adapter.Event{Kind: adapter.Resync})
	select {
	case <-ctx.Done():
		return adapter.Errorf(adapter.GatewayDown, "the connection was closed")
	case <-s.ended:
		return adapter.Errorf(adapter.GatewayDown, "the connection to the MQTT broker was lost; it is made again")
	}
}

// down notes that there is no connection, and why.
func (a *Adapter) down(err error) {
	a.mu.Lock()
	lost := a.session != nil || a.failed == nil
	a.session, a.failed = nil, err
	for _, l := range a.locks {
		l.fail(err)
	}
	a.wake()
	a.mu.Unlock()
	if !lost {
		return
	}
	a.log.Warn("no connection to the MQTT broker; it is tried further", "error", err)
	if adapter.ClassOf(err) == adapter.AuthRevoked {
		a.hints.Send(adapter.Event{Kind: adapter.AccountRevoked})
		return
	}
	a.hints.Send(adapter.Event{Kind: adapter.DeviceListed}) // which will fail
}

// wake lets those look again that wait; with a.mu held.
func (a *Adapter) wake() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// forget makes all slots be read again, and how many there are, because nobody knows what happened; with a.mu held.
func (a *Adapter) forget() {
	for _, l := range a.locks {
		l.forget()
		l.anew()
	}
}

// awaitWithin is how long a call waits for a connection that is being made, and for what Zigbee2MQTT publishes first.
const awaitWithin = 10 * time.Second

// await returns once Zigbee2MQTT can be told something. It fails with Invalid, GatewayDown, AuthRevoked or NotSupported.
func (a *Adapter) await(ctx context.Context) error {
	timeout := time.NewTimer(awaitWithin)
	defer timeout.Stop()
	for {
		a.mu.Lock()
		connected, failed, changed := a.session != nil, a.failed, a.changed
		missing := a.bridge.missing(a.config.Topic)
		if missing == nil {
			missing = a.unmet()
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
			return lost(ctx, adapter.GatewayDown, "there is no connection to Zigbee2MQTT yet")
		case <-timeout.C:
			if connected && missing != nil {
				return missing.err
			}
			return adapter.Errorf(adapter.GatewayDown, "the MQTT broker does not answer")
		}
	}
}

// Devices implements adapter.Adapter. A lock that is listed for the first time is asked for its limits.
func (a *Adapter) Devices(ctx context.Context) ([]adapter.Device, error) {
	if err := a.await(ctx); err != nil {
		return nil, err
	}
	if err := a.alive(ctx); err != nil {
		return nil, err
	}
	a.mu.Lock()
	var locks []*lock
	for _, l := range a.locks {
		locks = append(locks, l)
	}
	a.mu.Unlock()
	a.learnAll(ctx, locks)
	if ctx.Err() != nil {
		return nil, lost(ctx, adapter.Transient, "the locks' limits are not known yet")
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

// learnWithin is how long a list waits for the locks' limits; those that are not known by then are asked the next time.
const learnWithin = time.Minute

// learnAll asks locks for their limits, several at once.
func (a *Adapter) learnAll(ctx context.Context, locks []*lock) {
	ctx, cancel := context.WithTimeout(ctx, learnWithin)
	defer cancel()
	var asking sync.WaitGroup
	defer asking.Wait()
	room := make(chan struct{}, mostAsked)
	for _, l := range locks {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return
		}
		asking.Go(func() {
			defer func() { <-room }()
			a.learn(ctx, l)
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
	a.learn(ctx, l)
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.device(l), nil
}

// find is the lock of that address. It fails like await, with NotFound, and with Transient where Zigbee2MQTT does not say for now what
// the device of that address is: it would take no command for it as a lock.
func (a *Adapter) find(ctx context.Context, device adapter.DeviceRef) (*lock, error) {
	if err := a.await(ctx); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, listed := a.bridge.undefined[device]; listed {
		return nil, adapter.Errorf(adapter.Transient, "Zigbee2MQTT shows no lock there for now: interview it again if that lasts, and see that its external converter is loaded, if it has one")
	}
	l, ok := a.locks[device]
	if !ok {
		return nil, adapter.Errorf(adapter.NotFound, "Zigbee2MQTT has no such lock any more")
	}
	return l, nil
}

// device describes a lock; with a.mu held.
func (a *Adapter) device(l *lock) adapter.Device {
	visible := l.visible && !l.masked
	d := adapter.Device{
		Ref: l.ref, Name: l.name, Type: "zigbee_lock", Provider: "zigbee2mqtt", Manufacturer: l.vendor, Model: l.model, SerialNumber: string(l.ref),
		Online: l.online(),
		Locked: l.locked, BatteryLevel: l.battery,
		Caps: adapter.Caps{Lock: l.able.bolt, Unlock: l.able.bolt, OnlineCodes: l.codes(), ListCodes: l.codes(), DeleteUnmanaged: l.codes(),
			ModifyInPlace: l.codes(), PINVisible: visible, Convert: adapter.ConvertNever, MaxCodes: l.slots - 1, Confirm: adapter.ConfirmSync},
	}
	if visible {
		d.Caps.Convert = adapter.ConvertAdopt
	}
	for n := l.minPIN; n <= l.maxPIN; n++ {
		d.Caps.CodeLengths = append(d.Caps.CodeLengths, n)
	}
	return d
}
