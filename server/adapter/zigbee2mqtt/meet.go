package zigbee2mqtt

import (
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// coordinators are the IEEE addresses of the network's coordinator as Zigbee2MQTT has told them, nil: not yet. Old versions
// have it among the devices only.
type coordinators struct{ info, devices *string }

// gateway is which it is; false: it is not known yet.
func (c coordinators) gateway() (string, bool) {
	switch {
	case c.info != nil && *c.info != "":
		return strings.ToLower(*c.info), true
	case c.info != nil && c.devices != nil:
		return strings.ToLower(*c.devices), true
	}
	return "", false
}

// coordinatorOf finds the coordinator among the devices; empty: it is not there.
func coordinatorOf(devices []wireDevice) *string {
	for _, d := range devices {
		if d.Type == "Coordinator" {
			return &d.IEEE
		}
	}
	return new(string)
}

// meeting is what Config.Met says of a gateway.
type meeting struct {
	gateway string
	over    bool
	err     error
}

// meetAgain is after how long a gateway is met again that was to be left alone.
const meetAgain = 5 * time.Second

// meet tells Config.Met which gateway it is, once for each that there is over one connection; with a.mu held.
func (a *Adapter) meet() {
	gateway, known := a.bridge.said.gateway()
	if a.config.Met == nil || !known || a.running.Err() != nil || a.bridge.meeting != nil && a.bridge.meeting.gateway == gateway {
		return
	}
	m := &meeting{gateway: gateway}
	a.bridge.meeting = m
	a.meetings.Go(func() {
		err := a.config.Met(a.running, gateway)
		a.mu.Lock()
		defer a.mu.Unlock()
		m.over, m.err = true, err
		if err != nil {
			time.AfterFunc(meetAgain, func() { a.meetOnceMore(m) })
		}
		a.wake()
	})
}

func (a *Adapter) meetOnceMore(m *meeting) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.bridge.meeting == m {
		a.bridge.meeting = nil
		a.meet()
	}
}

// unmet is why a gateway is left alone: it has not said yet which it is, or Config.Met has failed; with a.mu held.
func (a *Adapter) unmet() *absence {
	switch m := a.bridge.meeting; {
	case a.config.Met == nil || m != nil && m.over && m.err == nil:
		return nil
	case m != nil && m.over:
		return &absence{m.err, true}
	}
	return &absence{adapter.Errorf(adapter.GatewayDown, "Zigbee2MQTT has not said yet which network it has"), false}
}
