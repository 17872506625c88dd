package zigbee2mqtt

import (
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// coordinators holds the IEEE addresses of the network's coordinator that Zigbee2MQTT has published, nil if not yet.
// Old versions publish it only among the devices.
type coordinators struct{ info, devices *string }

// gateway returns the identity of the gateway, and false while it is unknown.
func (c coordinators) gateway() (string, bool) {
	switch {
	case c.info != nil && *c.info != "":
		return strings.ToLower(*c.info), true
	case c.info != nil && c.devices != nil:
		return strings.ToLower(*c.devices), true
	}
	return "", false
}

// gatewayCheck is a call of Config.CheckGateway and its result.
type meeting struct {
	gateway string
	began   time.Time
	over    bool
	later   bool // another check is scheduled
	err     error
}

// gatewayCheckInterval is the minimum interval between two checks.
const meetAgain = 5 * time.Second

// checkGateway starts Config.CheckGateway with the identity of the gateway. Checks run one at a time if the identity
// changes during a connection; a.mu is held.
func (a *Adapter) meet() {
	gateway, known := a.bridge.said.gateway()
	m := a.bridge.meeting
	switch {
	case a.config.Met == nil || !known || a.running.Err() != nil || m != nil && m.gateway == gateway:
		return
	case m != nil && !m.over: // the end of the running check starts the next one
		return
	case m != nil && time.Since(m.began) < meetAgain:
		a.meetLater(m)
		return
	}
	m = &meeting{gateway: gateway, began: time.Now()}
	a.bridge.meeting = m
	a.meetings.Go(func() {
		err := a.config.Met(a.running, gateway)
		a.mu.Lock()
		defer a.mu.Unlock()
		m.over, m.err = true, err
		if other, known := a.bridge.said.gateway(); err != nil || known && other != gateway {
			a.meetLater(m)
		}
		a.wake()
	})
}

// scheduleGatewayCheck schedules another check, once; a.mu is held.
func (a *Adapter) meetLater(m *meeting) {
	if !m.later {
		m.later = true
		time.AfterFunc(meetAgain, func() { a.meetOnceMore(m) })
	}
}

func (a *Adapter) meetOnceMore(m *meeting) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.bridge.meeting == m {
		a.bridge.meeting = nil
		a.meet()
	}
}

// gatewayUnchecked returns why the gateway must not be used yet: its identity is unknown, or Config.CheckGateway has
// failed; a.mu is held.
func (a *Adapter) unmet() *absence {
	gateway, known := a.bridge.said.gateway()
	switch m := a.bridge.meeting; {
	case a.config.Met == nil || m != nil && m.over && m.err == nil && known && m.gateway == gateway:
		return nil
	case m != nil && m.over && m.err != nil:
		return &absence{m.err, true}
	}
	return &absence{adapter.Errorf(adapter.GatewayDown, "Zigbee2MQTT has not published its network yet"), false}
}
