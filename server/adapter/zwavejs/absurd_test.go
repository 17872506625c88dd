package zwavejs

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// Node 2 in the list: a lock with User Code, and a lock with named users.
const (
	plainLock = `{"nodeId":2,"name":"Front","location":"","status":4,"ready":true,"manufacturerId":297,"productType":1,"productId":2,"label":"YRD256","deviceConfig":{"manufacturer":"Yale","label":"YRD"},
		"endpoints":[{"index":0,"commandClasses":[{"id":98,"version":4},{"id":99,"version":1},{"id":112,"version":1},{"id":113,"version":8},{"id":128,"version":1}]}],
		"values":[{"commandClass":99,"endpoint":0,"property":"userCode","propertyKey":1,"value":"864209","metadata":{"minLength":4,"maxLength":10}},
			{"commandClass":98,"endpoint":0,"property":"currentMode","value":255},{"commandClass":128,"endpoint":0,"property":"level","value":77},
			{"commandClass":112,"endpoint":0,"property":16,"value":4,"metadata":{"label":"User Code PIN Length"}},
			{"commandClass":114,"endpoint":0,"property":"deviceId","propertyKey":"SerialNumber","value":"0x0102"}]}`
	namedLock = `{"nodeId":2,"status":4,"ready":true,"manufacturerId":297,"productType":1,"productId":2,"label":"YRD256","deviceConfig":{"manufacturer":"Yale"},
		"endpoints":[{"index":0,"commandClasses":[{"id":98,"version":4},{"id":131,"version":1},{"id":113,"version":8}]}],"values":[]}`
)

// Given absurd frames, the adapter keeps working, and returns plausible locks.
func TestAbsurdFrames(t *testing.T) {
	t.Parallel()
	const node = `{"type":"event","event":{"source":"node","nodeId":2,"event":`
	for name, frame := range map[string]string{
		"the network":             lists(plainLock),
		"one with named users":    lists(namedLock),
		"a failure":               `{"type":"result","success":false,"messageId":"1","errorCode":"zwave_error","zwaveErrorCode":204,"zwaveErrorCodeName":"Controller_CallbackNOK","zwaveErrorMessage":"x"}`,
		"a greeting":              `{"type":"version","homeId":1,"driverVersion":"15.29.0","serverVersion":"3.10.2","minSchemaVersion":0,"maxSchemaVersion":50}`,
		"one that was added":      `{"type":"event","event":{"source":"controller","event":"node added","node":` + plainLock + `}}`,
		"one that was removed":    `{"type":"event","event":{"source":"controller","event":"node removed","node":{"nodeId":2}}}`,
		"one that is ready":       node + `"ready","nodeState":` + plainLock + `}}`,
		"a named one is ready":    node + `"ready","nodeState":` + namedLock + `}}`,
		"a PIN":                   node + `"value updated","args":{"commandClass":99,"endpoint":0,"property":"userCode","propertyKey":1,"newValue":"864209","metadata":{"label":"x","minLength":4,"maxLength":10}}}}`,
		"a slot":                  node + `"value updated","args":{"commandClass":99,"endpoint":0,"property":"userIdStatus","propertyKey":1,"newValue":1}}}`,
		"the bolt":                node + `"value updated","args":{"commandClass":98,"endpoint":0,"property":"currentMode","newValue":0}}}`,
		"the battery":             node + `"value updated","args":{"commandClass":128,"endpoint":0,"property":"level","newValue":77}}}`,
		"a length":                node + `"value updated","args":{"commandClass":112,"endpoint":0,"property":16,"newValue":6}}}`,
		"a jam":                   node + `"value updated","args":{"commandClass":113,"endpoint":0,"property":"Access Control","propertyKey":"Lock state","newValue":11}}}`,
		"a duplicate":             node + `"notification","args":{"type":6,"event":15,"parameters":{"userId":3}}}}`,
		"keypad use":              node + `"notification","args":{"type":6,"event":6,"parameters":{"userId":1}}}}`,
		"card use":                node + `"notification","args":{"type":6,"event":36,"parameters":{"type":"Buffer","data":[0,1,1,3,0,1]}}}}`,
		"a code that was removed": node + `"notification","args":{"type":6,"event":13,"parameters":{"userId":1}}}}`,
		"all codes were removed":  node + `"notification","args":{"type":6,"event":12}}}`,
		"a credential":            node + `"credential added","args":{"userId":1,"credentialType":1,"credentialSlot":1,"data":"864209"}}}`,
		"a card":                  node + `"credential added","args":{"userId":1,"credentialType":3,"credentialSlot":1}}}`,
		"a code that has gone":    node + `"credential deleted","args":{"userId":1,"credentialType":1,"credentialSlot":1}}}`,
		"a user who has gone":     node + `"user deleted","args":{"userId":1}}}`,
		"a user":                  node + `"user modified","args":{"userId":1,"userName":"Guest","userType":0,"active":true}}}`,
		"a dead one":              node + `"dead"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, s := twisted(t, frame, plainLock, namedLock)
			a.hear(s, lists(plainLock))
			if d := a.device(a.nodes[2]); !d.Online || !slices.Equal(d.Capabilities.CodeLengths, []int{4}) ||
				d.Locked == nil || !*d.Locked {
				t.Errorf("afterwards, a good lock is %+v", d)
			}
		})
	}
}

func TestAbsurdFramesOfThermostats(t *testing.T) {
	t.Parallel()
	const node = `{"type":"event","event":{"source":"node","nodeId":2,"event":`
	for name, frame := range map[string]string{
		"a wall thermostat": lists(wallThermostat),
		"a radiator valve":  lists(radiatorValve),
		"a mode":            node + `"value updated","args":{"commandClass":64,"endpoint":0,"property":"mode","newValue":1}}}`,
		"a set point":       node + `"value updated","args":{"commandClass":67,"endpoint":0,"property":"setpoint","propertyKey":1,"newValue":21}}}`,
		"a range":           node + `"metadata updated","args":{"commandClass":67,"endpoint":0,"property":"setpoint","propertyKey":1,"metadata":{"min":8,"max":28,"steps":0.5,"unit":"°C"}}}}`,
		"a room":            node + `"value updated","args":{"commandClass":49,"endpoint":0,"property":"Air temperature","newValue":21.5}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, s := twisted(t, frame, wallThermostat)
			a.hear(s, lists(wallThermostat))
			d := a.device(a.nodes[2])
			if len(d.Capabilities.Thermostat.Modes) != 5 || !near(d.Thermostat.Setting.Heat, 20) {
				t.Errorf("afterwards, a good thermostat is %+v", d)
			}
		})
	}
}

// twisted sends absurd variants of a frame to an adapter that knows one of the nodes.
func twisted(t *testing.T, frame string, nodes ...string) (*Adapter, *session) {
	t.Helper()
	a, s := told(t)
	n := 0
	for twist, text := range adaptertest.Twists(t, frame) {
		for _, node := range nodes {
			a.hear(s, lists(node))
			a.hear(s, text)
			if err := a.sane(); err != nil {
				t.Errorf("%s: %v", twist, err)
			}
		}
		n++
	}
	if n < 50 {
		t.Errorf("only %d absurd frames", n)
	}
	return a, s
}

// handleNodeEvent is an adapter without a connection, and a session without a peer.
func told(t *testing.T) (*Adapter, *session) {
	t.Helper()
	a := &Adapter{
		log:        slog.New(slog.DiscardHandler),
		hints:      adapter.NewEventQueue(),
		done:       make(chan struct{}),
		tried:      make(chan struct{}),
		nodes:      map[int]*node{},
		otherNodes: map[int]adapter.DeviceRef{},
	}
	t.Cleanup(a.hints.Close)
	return a, &session{home: 1, schema: maxSchema, pending: map[string]*call{}}
}

// applyChange processes a frame as the reader of the adapter does while it waits for the list.
func (a *Adapter) hear(s *session, frame string) {
	var network struct {
		State struct {
			Nodes adapter.List[*wireNode] `json:"nodes"`
		} `json:"state"`
	}
	s.pending = map[string]*call{"1": {out: &network, most: networkLimit}}
	var m message
	if s.decode([]byte(frame), &m) != nil {
		return // the connection would end
	}
	switch {
	case m.of != nil && m.outcome(context.Background(), startListening, true) == nil:
		a.markUp(s, network.State.Nodes)
	case m.Event != nil:
		a.handleEvent(s, m.Event)
	}
}

// sane returns what is implausible about the locks of the adapter.
func (a *Adapter) sane() error {
	for id, n := range a.nodes {
		d := a.device(n)
		lengths := d.Capabilities.CodeLengths
		switch {
		case id < 1 || id > maxNodeID || n.id != id || d.Ref == "" || strings.TrimSpace(d.Name) == "":
			return fmt.Errorf("a lock has the number %d and is %+v", id, d)
		case d.BatteryLevel != nil && !(*d.BatteryLevel >= 0 && *d.BatteryLevel <= 1):
			return fmt.Errorf("the battery level is %v", *d.BatteryLevel)
		case d.Capabilities.MaxCodes < 0 || d.Capabilities.MaxCodes > maxSlots:
			return fmt.Errorf("there is room for %d codes", d.Capabilities.MaxCodes)
		case len(lengths) > 0 && (lengths[0] < 1 || lengths[len(lengths)-1] > maxPINSize):
			return fmt.Errorf("PINs have lengths of %v", lengths)
		case len(n.codes.slots) > maxSlots ||
			slices.Max(append(slices.Collect(maps.Keys(n.codes.slots)), 0)) > maxSlots:
			return fmt.Errorf("there are %d slots", len(n.codes.slots))
		}
		if n.climate != nil {
			if err := saneClimate(d); err != nil {
				return err
			}
			_, _ = a.planClimate(n, adapter.ThermostatSetting{Mode: capability.Eco, Heat: new(21.0), Cool: new(25.0)})
			continue
		}
		// may fail
		_ = a.checkSpec(&session{schema: maxSchema}, n, adapter.CodeSpec{Key: "k", Name: "Guest", PIN: "8642"})
	}
	return nil
}

// saneClimate returns what is implausible about a thermostat.
func saneClimate(d adapter.Device) error {
	c, shown := d.Capabilities.Thermostat, d.Thermostat
	temperatures := []*float64{c.MinHeat, c.MaxHeat, c.MinCool, c.MaxCool}
	if shown != nil {
		temperatures = append(temperatures, shown.Setting.Heat, shown.Setting.Cool, shown.Temperature)
		if shown.Humidity != nil && !(*shown.Humidity >= 0 && *shown.Humidity <= 1) {
			return fmt.Errorf("the humidity is %v", *shown.Humidity)
		}
	}
	for _, t := range temperatures {
		if t != nil && !(*t >= adapter.Coldest && *t <= adapter.Hottest) {
			return fmt.Errorf("a temperature is %v", *t)
		}
	}
	if c.MinHeat != nil && c.MaxHeat != nil && *c.MinHeat > *c.MaxHeat || !(c.Step >= 0 && c.Step <= 10) ||
		len(c.Modes) > 5 || len(c.FanModes) > 3 {
		return fmt.Errorf("the limits are %+v", c)
	}
	return nil
}
