package zigbee2mqtt

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// climateWrite is a property to write, in the unit of the device.
type climateWrite struct {
	property string
	value    any
	// is reports whether a state has the value.
	is func(climateState) bool
	// readable means that the device can be asked for the property.
	readable bool
}

// SetThermostat implements adapter.ThermostatController. The state is Confirmed when the device itself has shown what
// was written; a device that cannot be read stays Accepted.
func (a *Adapter) SetThermostat(ctx context.Context, device adapter.DeviceRef,
	setting adapter.ThermostatSetting,
) (adapter.State, error) {
	l, err := a.find(ctx, device)
	if err != nil {
		return "", err
	}
	release, err := l.acquire(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	writes, err := a.planClimate(l, setting)
	if err != nil {
		return "", err
	}
	defer a.keepShown(l)()
	for _, w := range writes {
		err := a.command(ctx, l, "set", map[string]any{w.property: w.value}, answerTimeout,
			func(is, before *wireState) verdict { return w.judge(is, before) })
		switch {
		case errors.Is(err, errNoAnswer) && a.checkHealth(ctx) == nil:
			return "", waitError(ctx, adapter.Unconfirmed, "the thermostat has not answered yet")
		case err != nil:
			return "", asUnconfirmed(ctx, noAnswerAs(ctx, err, adapter.Unconfirmed))
		}
	}
	return a.confirmClimate(ctx, l, writes), nil
}

// judge decides whether a message is the answer to the write.
func (w climateWrite) judge(is, before *wireState) verdict {
	switch {
	case !w.is(is.climate):
		return isNone
	case before == nil || !w.is(before.climate):
		return isAnswer
	}
	return mayBe
}

// keepShown keeps what the thermostat shows until the result is called. Unless the outcome is known by then, the device
// is read again.
func (a *Adapter) keepShown(l *lock) func() {
	a.mu.Lock()
	defer a.mu.Unlock()
	l.writing = true
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		l.writing, l.missed = false, l.missed || l.writing
	}
}

// showClimate updates what a thermostat shows; a.mu is held.
func (a *Adapter) showClimate(l *lock, is climateState) {
	if l.writing || l.shown == is {
		return
	}
	l.shown = is
	a.hints.Send(adapter.Event{Kind: adapter.StatusChanged, Device: l.ref})
}

// confirmClimate reads what was written from the device, and shows what the device has.
func (a *Adapter) confirmClimate(ctx context.Context, l *lock, writes []climateWrite) adapter.State {
	var properties []string
	for _, w := range writes {
		if w.readable {
			properties = append(properties, w.property)
		}
	}
	err := a.readClimate(ctx, l, properties)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil || l.lastState == nil {
		return adapter.Accepted
	}
	l.writing = false
	is := l.lastState.climate
	a.showClimate(l, is)
	if len(properties) < len(writes) || slices.ContainsFunc(writes, func(w climateWrite) bool { return !w.is(is) }) {
		return adapter.Accepted
	}
	return adapter.Confirmed
}

// readClimate reads properties from the device. Each answer is a message with the whole state; one of them may have
// another cause. The caller holds the turn.
func (a *Adapter) readClimate(ctx context.Context, l *lock, properties []string) error {
	if len(properties) == 0 {
		return nil
	}
	payload := map[string]any{}
	for _, p := range properties {
		payload[p] = ""
	}
	heard := 0
	return a.command(ctx, l, "get", payload, answerTimeout, func(*wireState, *wireState) verdict {
		if heard++; heard < len(properties) {
			return mayBe
		}
		return isAnswer
	})
}

// refreshClimate reads a thermostat once after each connection and after each absence: changes may have been missed.
// Its last known state remains if it does not answer, as a radiator valve that sleeps.
func (a *Adapter) refreshClimate(ctx context.Context, l *lock) error {
	a.mu.Lock()
	due := l.climate != nil && l.missed && l.online()
	a.mu.Unlock()
	if !due {
		return nil
	}
	release, err := l.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	a.mu.Lock()
	due, l.missed, l.refreshing = l.climate != nil && l.missed, false, true
	var properties []string
	if due {
		for p := range l.climate.readable {
			properties = append(properties, p)
		}
	}
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		l.refreshing = false
		a.mu.Unlock()
	}()
	err = a.readClimate(ctx, l, properties)
	switch {
	case errors.Is(err, errNoAnswer) && ctx.Err() != nil:
		return waitError(ctx, adapter.Transient, "the thermostat has not answered yet")
	case errors.Is(err, errNoAnswer):
		return a.checkHealth(ctx)
	case err != nil && (adapter.ClassOf(err) == adapter.GatewayDown || adapter.ClassOf(err) == adapter.AuthRevoked):
		return err
	}
	return nil
}

// planClimate returns what must be written, in this order. It fails with NotSupported and Invalid.
func (a *Adapter) planClimate(l *lock, setting adapter.ThermostatSetting) (writes []climateWrite, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := l.climate
	switch {
	case c == nil:
		return nil, adapter.Errorf(adapter.NotSupported, "the device is no thermostat")
	case setting.Mode != "" && setting.Mode != c.fixed():
		word, ok := c.choose(setting.Mode)
		if !ok {
			return nil, adapter.Errorf(
				adapter.NotSupported,
				"the thermostat has no mode %s; its modes are %v",
				setting.Mode,
				c.limits().Modes,
			)
		}
		writes = append(writes, c.write(c.mode, word, func(s climateState) bool { return s.mode == word }))
	}
	if setting.Fan != "" {
		word, ok := choose(fanModes, setting.Fan, c.fans)
		if !ok {
			return nil, adapter.Errorf(adapter.NotSupported, "the thermostat has no fan mode %s; its fan modes are %v",
				setting.Fan, c.limits().FanModes)
		}
		writes = append(writes, c.write(c.fan, word, func(s climateState) bool { return s.fan == word }))
	}
	points, err := c.planPoints(setting, l.shown)
	if err != nil {
		return nil, err
	}
	return append(writes, points...), nil
}

func (c *climate) write(property string, value any, is func(climateState) bool) climateWrite {
	return climateWrite{
		property: property,
		value:    value,
		is:       is,
		readable: c.readable[property],
	}
}

// planPoints returns the set points in an order in which they do not cross: many thermostats move the other one then.
func (c *climate) planPoints(setting adapter.ThermostatSetting, shown climateState) ([]climateWrite, error) {
	heat, err := c.planPoint("heating", c.heat, setting.Heat, func(s climateState) optional { return s.heat })
	if err != nil {
		return nil, err
	}
	cool, err := c.planPoint("cooling", c.cool, setting.Cool, func(s climateState) optional { return s.cool })
	if err != nil {
		return nil, err
	}
	if setting.Heat != nil && shown.cool.known && c.heat.FromCelsius(*setting.Heat) > shown.cool.value {
		return append(cool, heat...), nil
	}
	return append(heat, cool...), nil
}

// planPoint returns the write of a set point; none without a target.
func (c *climate) planPoint(name string, p climatePoint, target *float64,
	get func(climateState) optional,
) ([]climateWrite, error) {
	switch {
	case target == nil:
		return nil, nil
	case p.property == "":
		return nil, adapter.Errorf(adapter.NotSupported, "the thermostat has no %s set point", name)
	}
	v, err := p.Round(name, *target)
	if err != nil {
		return nil, err
	}
	tolerance := p.Resolution()/2 + 0.01
	return []climateWrite{c.write(p.property, v, func(s climateState) bool {
		is := get(s)
		return is.known && math.Abs(is.value-v) <= tolerance
	})}, nil
}
