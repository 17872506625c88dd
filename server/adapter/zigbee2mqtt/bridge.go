package zigbee2mqtt

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// bridge is the state of Zigbee2MQTT that it publishes.
type bridge struct {
	// stateKnown means that online is known since the connection.
	stateKnown bool
	online     bool
	// listed means that the devices have been published at least once.
	listed bool
	// known means that the settings have been published at least once.
	known bool
	// since is when Zigbee2MQTT came online during this connection; zero if earlier.
	since time.Time
	info  wireInfo
	// start wakes the calls that wait for the last start; nil if there was none.
	start *time.Timer
	// hangs means that the connection of Zigbee2MQTT exists, but it does not answer.
	hangs bool
	// probing means that probeUntilAlive runs.
	probing bool
	// noExactRead means that Zigbee2MQTT does not support exactRequest.
	noExactRead bool
	// coordinators holds the coordinator addresses since the connection.
	coordinators coordinators
	// gatewayCheck is the result of Config.CheckGateway since the connection; nil if there is none.
	gatewayCheck *gatewayCheck
	// reaches holds the published availability by friendly name.
	reaches map[string]bool

	// undefined holds the names of devices that are not listed as locks. A lock may be among them.
	undefined map[adapter.DeviceRef]string
}

// reset discards the state of an earlier connection, except what is published only at the start of Zigbee2MQTT.
func (b *bridge) reset() {
	b.stateKnown, b.online, b.since, b.hangs, b.noExactRead = false, false, time.Time{}, false, false
	b.coordinators, b.gatewayCheck = coordinators{}, nil
	b.reaches = map[string]bool{}
}

// absence is the reason why Zigbee2MQTT accepts no commands. final means that waiting does not help.
type absence struct {
	err   error
	final bool
}

// startupDelay is the time from the first message of Zigbee2MQTT until it accepts commands.
const startupDelay = 3 * time.Second

func (b *bridge) missing(topic string) *absence {
	down := func(final bool, format string, args ...any) *absence {
		return &absence{adapter.Errorf(adapter.GatewayDown, format, args...), final}
	}
	switch {
	case !b.stateKnown && !b.listed:
		return down(false, "nothing is published below %s: is that base_topic of Zigbee2MQTT, is it connected to "+
			"this broker, and may the user read %s/#?", topic, topic)
	case b.stateKnown && !b.online:
		return down(true, "Zigbee2MQTT is not running, according to %s/bridge/state", topic)
	case b.hangs:
		return &absence{errHangs, true}
	case !b.listed || !b.known:
		return down(false, "Zigbee2MQTT has published no devices in %s/bridge/devices: restart it, or let the "+
			"broker keep retained messages", topic)
	case b.info.Config.Advanced.Output == "attribute":
		return &absence{adapter.Errorf(adapter.NotSupported,
			"Zigbee2MQTT publishes single attributes: set advanced.output to json or attribute_and_json"), true}
	case !b.since.IsZero() && time.Since(b.since) < startupDelay:
		return down(false, "Zigbee2MQTT is starting")
	}
	return nil
}

// receive processes the messages one by one, in the order of their arrival.
func (a *Adapter) receive(topic string, payload []byte, retained bool) {
	topic, ok := strings.CutPrefix(topic, a.config.Topic+"/")
	if !ok || !isValidPacket(payload) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !retained && fromBridge(topic) {
		a.noteAlive()
	}
	switch topic {
	case "bridge/response/health_check", "bridge/response/action":
		a.responded(payload)
	case "bridge/state":
		a.bridgeState(isOnline(payload), retained)
	case "bridge/devices":
		var devices wireDevices
		if json.Unmarshal(payload, &devices) == nil {
			a.bridgeDevices(devices)
			a.checkGateway()
		}
	case "bridge/info":
		if info, ok := readInfo(payload); ok {
			a.bridge.info, a.bridge.known, a.bridge.coordinators.info = info, true, &info.Coordinator.IEEE
			a.settings()
			a.checkGateway()
			a.notifyChanged()
		}
	case "bridge/logging":
		a.logged(payload)
	default:
		if name, ok := strings.CutSuffix(topic, "/availability"); ok {
			a.reached(name, payload)
		} else if l := a.named(topic); l != nil && len(payload) > 0 && len(payload) <= maxStateSize {
			a.published(l, payload, retained)
		}
	}
}

// isOnline reads {"state":"online"} or, of older versions, the bare word.
func isOnline(payload []byte) bool {
	var w struct {
		State string `json:"state"`
	}
	if json.Unmarshal(payload, &w) == nil {
		return w.State == "online"
	}
	return string(payload) == "online"
}

func (a *Adapter) bridgeState(online, retained bool) {
	b := &a.bridge
	was := b.stateKnown && b.online
	b.stateKnown, b.online = true, online
	switch {
	case online && !retained: // it has started or reconnected: changes may have been missed
		b.since = time.Now()
		if b.start != nil {
			b.start.Stop()
		}
		b.start = time.AfterFunc(
			startupDelay+time.Millisecond,
			func() { a.mu.Lock(); a.notifyChanged(); a.mu.Unlock() },
		)
		a.invalidateSlots()
	case !online:
		for _, l := range a.locks {
			l.fail(adapter.Errorf(adapter.GatewayDown, "Zigbee2MQTT has stopped"))
		}
	}
	switch {
	case online && (!was || !retained):
		a.hints.Send(adapter.Event{Kind: adapter.Resync})
	case !online && was:
		a.hints.Send(adapter.Event{Kind: adapter.DeviceListed}) // listing will fail
	}
	a.notifyChanged()
}

// bridgeDevices processes the complete list of devices. It ignores unknown locks beyond maxLocks. A device that is
// listed without its definition remains what it was.
func (a *Adapter) bridgeDevices(devices wireDevices) {
	a.bridge.listed, a.bridge.since, a.bridge.coordinators.devices = true, time.Time{}, &devices.coordinator
	undefined := a.bridge.undefined
	a.bridge.undefined = devices.undefined
	changed := false
	gone := maps.Clone(a.locks)
	for _, d := range devices.locks {
		delete(gone, d.ref)
	}
	for ref, name := range devices.undefined {
		if l := a.locks[ref]; l != nil {
			delete(gone, ref)
			changed = changed || l.name != name
			l.name = name
		}
	}
	for ref, l := range gone {
		changed = true
		delete(a.locks, ref)
		l.fail(adapter.Errorf(adapter.NotFound, "Zigbee2MQTT has no such device"))
	}
	for _, d := range devices.locks {
		l, ok := a.locks[d.ref]
		if !ok && len(a.locks) >= maxLocks {
			continue
		}
		if !ok {
			l = newLock(d.ref)
			a.locks[d.ref] = l
		}
		changed = changed || !ok || l.traits != d.traits || !reflect.DeepEqual(l.climate, d.climate)
		l.traits, l.address, l.climate = d.traits, d.address, d.climate
		if _, waited := undefined[d.ref]; waited { // its definition was missing
			a.hints.Send(adapter.Event{Kind: l.contents(), Device: d.ref})
		}
	}
	a.settings()
	for _, l := range a.locks {
		if online, known := a.bridge.reaches[l.name]; known {
			a.reachable(l, &online)
		}
	}
	if changed {
		a.hints.Send(adapter.Event{Kind: adapter.DeviceListed})
	}
	a.notifyChanged()
}

// settings applies bridge/info to the locks.
func (a *Adapter) settings() {
	for _, l := range a.locks {
		was := l.online()
		l.unwatched = a.bridge.known && !a.bridge.info.watches(string(l.ref))
		a.onAvailabilityChange(l, was)
		visible := a.bridge.known && a.bridge.info.exposesPIN(string(l.ref))
		if visible == l.visible {
			continue
		}
		l.visible = visible
		l.invalidateSlots() // the slots were read with the other setting
		a.hints.Send(adapter.Event{Kind: adapter.DeviceListed})
	}
}

func (a *Adapter) named(name string) *lock {
	for _, l := range a.locks {
		if l.name == name {
			return l
		}
	}
	return nil
}

// reached processes an availability. An empty one belongs to a name that does not exist, or was withdrawn.
func (a *Adapter) reached(name string, payload []byte) {
	if len(payload) == 0 {
		delete(a.bridge.reaches, name)
		if l := a.named(name); l != nil {
			was := l.online()
			l.available = nil
			a.onAvailabilityChange(l, was)
		}
		return
	}
	online := isOnline(payload)
	if _, known := a.bridge.reaches[name]; known || len(name) <= maxNameSize && len(a.bridge.reaches) < maxNames {
		a.bridge.reaches[strings.Clone(name)] = online
	}
	if l := a.named(name); l != nil {
		a.reachable(l, &online)
	}
}

// reachable updates the availability of a lock. nil means that the lock was heard.
func (a *Adapter) reachable(l *lock, told *bool) {
	was := l.online()
	if told != nil {
		l.missed = l.missed || *told && l.available != nil && !*l.available
		l.available = told
	}
	if told == nil || *told {
		l.silent = false
	}
	a.onAvailabilityChange(l, was)
}

// onAvailabilityChange reports a lock that went offline or came online.
func (a *Adapter) onAvailabilityChange(l *lock, was bool) {
	switch is := l.online(); {
	case was == is:
	case is:
		l.invalidateSlots()
		a.hints.Send(adapter.Event{Kind: adapter.DeviceOnline, Device: l.ref})
	default:
		a.hints.Send(adapter.Event{Kind: adapter.DeviceOffline, Device: l.ref})
	}
}

// wireLog is a message of bridge/logging.
type wireLog struct {
	Level   string `json:"level"`
	Message string `json:"message"`
}

// failedPublish matches the log message of a failed command. The remainder may contain a PIN.
var failedPublish = regexp.MustCompile(`Publish '(get|set)' '(\w+)' to '(.*?)' failed: '(.*)`)

// logged processes a log message, which may report the failure of a command.
func (a *Adapter) logged(payload []byte) {
	var w wireLog
	if len(payload) > maxResponseSize || json.Unmarshal(payload, &w) != nil || w.Level != "error" {
		return
	}
	m := failedPublish.FindStringSubmatch(strings.ReplaceAll(brief(w.Message, maxLogSize), "\n", " "))
	if m == nil {
		return
	}
	l := a.named(m[3])
	if l == nil || l.waiter == nil || l.waiter.verb != m[1] || !slices.Contains(l.waiter.keys, m[2]) {
		return
	}
	err := failure(m[4])
	if err.Class == adapter.Offline && !l.refreshing {
		was := l.online()
		l.silent = true
		a.onAvailabilityChange(l, was)
	}
	l.fail(err)
}
