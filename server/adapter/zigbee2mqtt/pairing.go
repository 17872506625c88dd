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

// meeting is what Config.Met says of a gateway.
type meeting struct {
	gateway string
	began   time.Time
	over    bool
	later   bool // another follows
	err     error
}

// meetAgain is after how long a gateway is met again that was to be left alone, or that says that it is another one.
const meetAgain = 5 * time.Second

// meet tells Config.Met which gateway it is, one after another where it says several things over one connection; with a.mu held.
func (a *Adapter) meet() {
	gateway, known := a.bridge.said.gateway()
	m := a.bridge.meeting
	switch {
	case a.config.Met == nil || !known || a.running.Err() != nil || m != nil && m.gateway == gateway:
		return
	case m != nil && !m.over: // it follows
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

// meetLater has another meeting follow, once; with a.mu held.
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

// unmet is why a gateway is left alone: it has not said yet which it is, or Config.Met has failed; with a.mu held.
func (a *Adapter) unmet() *absence {
	gateway, known := a.bridge.said.gateway()
	switch m := a.bridge.meeting; {
	case a.config.Met == nil || m != nil && m.over && m.err == nil && known && m.gateway == gateway:
		return nil
	case m != nil && m.over && m.err != nil:
		return &absence{m.err, true}
	}
	return &absence{adapter.Errorf(adapter.GatewayDown, "Zigbee2MQTT has not said yet which network it has"), false}
}
