package zwavejs

import (
	"context"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// climatePollDelays are the delays before the reads of a setting after it was written.
var climatePollDelays = []time.Duration{0, 500 * time.Millisecond, time.Second, 2 * time.Second}

// climateWrite is a value to write, in the unit of the device.
type climateWrite struct {
	valueID
	value any
	// number is the value, except for a fan that is switched on.
	number    float64
	tolerance float64
}

// SetThermostat implements adapter.ThermostatController. The gateway announces a value before the device has it, so
// that the state is Confirmed only when the device itself has shown it.
func (a *Adapter) SetThermostat(ctx context.Context, device adapter.DeviceRef,
	setting adapter.ThermostatSetting,
) (adapter.State, error) {
	s, n, err := a.find(ctx, device)
	if err != nil {
		return "", err
	}
	release, err := a.acquire(ctx, n)
	if err != nil {
		return "", err
	}
	defer release()
	writes, err := a.planClimate(n, setting)
	if err != nil {
		return "", err
	}
	if err := a.ensureAwake(ctx, s, n); err != nil {
		return "", err
	}
	end := a.holdValues(n, writes)
	state, err := a.writeClimate(ctx, s, n, writes)
	end(err != nil)
	return state, err
}

// writeClimate writes the values, and reads them back.
func (a *Adapter) writeClimate(ctx context.Context, s *session, n *node, writes []climateWrite) (adapter.State, error) {
	asleep := false
	for _, w := range writes {
		kept, err := a.writeValue(ctx, s, n, w)
		if err != nil {
			return "", err
		}
		asleep = asleep || kept
	}
	if !asleep && a.awaitClimate(ctx, s, n, writes) {
		return adapter.Confirmed, nil
	}
	return adapter.Accepted, nil
}

// planClimate returns what must be written, in this order. It fails with NotSupported, Invalid, and Transient.
func (a *Adapter) planClimate(n *node, setting adapter.ThermostatSetting) ([]climateWrite, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := n.climate
	switch {
	case c == nil:
		return nil, adapter.Errorf(adapter.NotSupported, "the device is no thermostat")
	case len(c.limits().Modes) == 0:
		return nil, adapter.Errorf(adapter.Transient,
			"the gateway's interview of the thermostat is incomplete: if this persists, interview it again")
	}
	mode, err := c.planMode(setting.Mode)
	if err != nil {
		return nil, err
	}
	fan, err := c.planFan(setting.Fan)
	if err != nil {
		return nil, err
	}
	points, err := c.planPoints(setting)
	return append(append(mode, fan...), points...), err
}

func (c *climate) planMode(mode capability.HVACMode) ([]climateWrite, error) {
	if mode == "" || mode == c.fixed() {
		return nil, nil
	}
	code, ok := c.code(mode)
	if !ok {
		return nil, adapter.Errorf(adapter.NotSupported, "the thermostat has no mode %s; its modes are %v", mode,
			c.limits().Modes)
	}
	return []climateWrite{c.write(ccThermostatMode, "mode", 0, float64(code), 0)}, nil
}

func (c *climate) planFan(fan capability.FanMode) ([]climateWrite, error) {
	if fan == "" {
		return nil, nil
	}
	code, ok := c.fanCode(fan)
	if !ok {
		return nil, adapter.Errorf(adapter.NotSupported, "the thermostat has no fan mode %s; its fan modes are %v", fan,
			c.limits().FanModes)
	}
	writes := []climateWrite{c.write(ccThermostatFanMode, "mode", 0, float64(code), 0)}
	if c.fanOff { // otherwise the mode applies to a fan that is switched off
		on := c.write(ccThermostatFanMode, "off", 0, 0, 0)
		on.value = false
		writes = append(writes, on)
	}
	return writes, nil
}

// planPoints returns the set points in an order in which they do not cross: many thermostats move the other one then.
func (c *climate) planPoints(setting adapter.ThermostatSetting) (writes []climateWrite, _ error) {
	for _, p := range []struct {
		*setPoint
		key    int
		name   string
		target *float64
	}{{&c.heat, heating, "heating", setting.Heat}, {&c.cool, cooling, "cooling", setting.Cool}} {
		switch {
		case p.target == nil:
			continue
		case !p.known:
			return nil, adapter.Errorf(adapter.NotSupported, "the thermostat has no %s set point", p.name)
		}
		v, err := p.Round(p.name, *p.target)
		if err != nil {
			return nil, err
		}
		w := c.write(ccThermostatSetpoint, "setpoint", p.key, v, p.Resolution()/2)
		raised := setting.Heat != nil && c.cool.value != nil && c.heat.FromCelsius(*setting.Heat) > *c.cool.value
		if p.key == cooling && raised {
			writes = append([]climateWrite{w}, writes...)
		} else {
			writes = append(writes, w)
		}
	}
	return writes, nil
}

func (c *climate) write(commandClass int, property string, key int, value, tolerance float64) climateWrite {
	return climateWrite{
		valueID:   valueID{commandClass, c.endpoint, property, key},
		value:     value,
		number:    value,
		tolerance: tolerance,
	}
}

// holdValues ignores what the gateway announces of the values until the result is called. After a failure, the device is
// read again.
func (a *Adapter) holdValues(n *node, writes []climateWrite) func(failed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n.climate.held = map[valueID]bool{}
	for _, w := range writes {
		n.climate.held[w.valueID] = true
	}
	return func(failed bool) {
		a.mu.Lock()
		defer a.mu.Unlock()
		n.climate.held, n.climate.missed = nil, n.climate.missed || failed
	}
}

// Results of a written value (zwave-js SetValueStatus).
const (
	setNoDeviceSupport  = 0
	setWorking          = 1
	setFail             = 2
	setEndpointNotFound = 3
	setNotImplemented   = 4
	setInvalidValue     = 5
	setUnsupervised     = 254 // delivered
	setSuccess          = 255
)

// asleepTimeout is how long a write to a sleeping device waits for an error of the gateway. The gateway keeps the write
// until the device wakes.
const asleepTimeout = 2 * time.Second

// writeValue writes a value. Without an error, the device has received it; kept means that the gateway delivers it when
// the device wakes.
func (a *Adapter) writeValue(ctx context.Context, s *session, n *node, w climateWrite) (kept bool, _ error) {
	a.mu.Lock()
	asleep, within := n.status == nodeAsleep, radioTimeout
	a.mu.Unlock()
	if asleep {
		within = asleepTimeout
	}
	var got struct {
		Result struct {
			Status *int `json:"status"`
		} `json:"result"`
	}
	err := a.callNode(ctx, s, within, "node.set_value",
		args{"nodeId": n.id, "valueId": w.valueID, "value": w.value}, &got)
	a.mu.Lock()
	connected := a.session == s
	a.mu.Unlock()
	switch {
	case err != nil && asleep && connected && ctx.Err() == nil && adapter.ClassOf(err) == adapter.Unconfirmed:
		return true, nil
	case err != nil:
		return false, err
	}
	return false, outcomeOf(got.Result.Status)
}

// outcomeOf returns the error for the status of a written value.
func outcomeOf(status *int) error {
	if status == nil {
		return adapter.Errorf(adapter.Unconfirmed, "the gateway's response to node.set_value has an unexpected shape")
	}
	switch *status {
	case setWorking, setUnsupervised, setSuccess:
		return nil
	case setFail, setInvalidValue:
		return adapter.Errorf(adapter.Invalid, "the thermostat rejects the setting")
	case setNoDeviceSupport, setEndpointNotFound, setNotImplemented:
		return adapter.Errorf(adapter.NotSupported, "the thermostat does not support the setting")
	}
	return adapter.Errorf(adapter.Unconfirmed, "the gateway reports an unknown outcome of the setting")
}

// awaitClimate reads the values from the device, and reports whether they become those that were written. A device that
// does not answer has applied nothing yet.
func (a *Adapter) awaitClimate(ctx context.Context, s *session, n *node, writes []climateWrite) bool {
	for _, wait := range climatePollDelays {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return false
		}
		var left []climateWrite
		for _, w := range writes {
			if is, ok := a.readValue(ctx, s, n, w.valueID); !ok || math.Abs(is-w.number) > w.tolerance+0.01 {
				left = append(left, w)
			}
		}
		if writes = left; len(writes) == 0 {
			return true
		}
	}
	return false
}

// readValue reads a value from the device, and stores it.
func (a *Adapter) readValue(ctx context.Context, s *session, n *node, id valueID) (float64, bool) {
	var got struct {
		Value json.RawMessage `json:"value"`
	}
	err := a.callNode(ctx, s, gatewayTimeout, "node.poll_value", args{"nodeId": n.id, "valueId": id}, &got)
	if err != nil || got.Value == nil {
		return 0, false
	}
	v := wireValue{CC: id.CC, Endpoint: id.Endpoint, Property: text(id.Property), NewValue: got.Value}
	if id.Key != 0 {
		v.PropertyKey = text(strconv.Itoa(id.Key))
	}
	a.mu.Lock()
	changed, _ := n.climate.store(v)
	a.mu.Unlock()
	if changed {
		a.hints.Send(adapter.Event{Kind: adapter.StatusChanged, Device: n.ref})
	}
	is, ok := v.flagOrNumber()
	return is, ok
}

// flagOrNumber returns the value as a number; true is 1.
func (v wireValue) flagOrNumber() (float64, bool) {
	switch string(v.NewValue) {
	case "true":
		return 1, true
	case "false":
		return 0, true
	}
	var n adapter.Number
	_ = n.UnmarshalJSON(v.NewValue) // never fails
	if n.Within(adapter.Coldest, adapter.Hottest) == nil {
		return 0, false
	}
	return *n.Value, true
}

// refreshClimate reads the thermostat, once after each connection and after each absence: changes may have been missed.
// A thermostat that sleeps is not read, because it would answer hours later.
func (a *Adapter) refreshClimate(ctx context.Context, s *session, n *node) error {
	a.mu.Lock()
	due := n.climate.missed && n.status != nodeDead && n.status != nodeAsleep
	a.mu.Unlock()
	if !due {
		return nil
	}
	release, err := a.acquire(ctx, n)
	if err != nil {
		return err
	}
	defer release()
	a.mu.Lock()
	ids := n.climate.shownValues()
	due, n.climate.missed = n.climate.missed, false
	a.mu.Unlock()
	if !due { // another call has read it
		return nil
	}
	for _, id := range ids {
		if _, ok := a.readValue(ctx, s, n, id); !ok {
			a.mu.Lock()
			n.climate.missed = true
			a.mu.Unlock()
			return nil // the last known state remains
		}
	}
	return nil
}

// shownValues returns the values that are known.
func (c *climate) shownValues() (ids []valueID) {
	for _, v := range []struct {
		known bool
		valueID
	}{
		{c.mode != nil, valueID{ccThermostatMode, c.endpoint, "mode", 0}},
		{c.heat.value != nil, valueID{ccThermostatSetpoint, c.endpoint, "setpoint", heating}},
		{c.cool.value != nil, valueID{ccThermostatSetpoint, c.endpoint, "setpoint", cooling}},
		{c.fan != nil, valueID{ccThermostatFanMode, c.endpoint, "mode", 0}},
		{c.operating != nil, valueID{ccThermostatOperatingState, c.endpoint, "state", 0}},
	} {
		if v.known {
			ids = append(ids, v.valueID)
		}
	}
	return ids
}
