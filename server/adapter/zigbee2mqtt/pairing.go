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
type gatewayCheck struct {
	gateway   string
	began     time.Time
	done      bool
	scheduled bool // another check is scheduled
	err       error
}

// gatewayCheckInterval is the minimum interval between two checks.
const gatewayCheckInterval = 5 * time.Second

// checkGateway starts Config.CheckGateway with the identity of the gateway. Checks run one at a time if the identity
// changes during a connection; a.mu is held.
func (a *Adapter) checkGateway() {
	gateway, known := a.bridge.coordinators.gateway()
	m := a.bridge.gatewayCheck
	switch {
	case a.config.CheckGateway == nil || !known || a.running.Err() != nil || m != nil && m.gateway == gateway:
		return
	case m != nil && !m.done: // the end of the running check starts the next one
		return
	case m != nil && time.Since(m.began) < gatewayCheckInterval:
		a.scheduleGatewayCheck(m)
		return
	}
	m = &gatewayCheck{gateway: gateway, began: time.Now()}
	a.bridge.gatewayCheck = m
	a.gatewayChecks.Go(func() {
		err := a.config.CheckGateway(a.running, gateway)
		a.mu.Lock()
		defer a.mu.Unlock()
		m.done, m.err = true, err
		if other, known := a.bridge.coordinators.gateway(); err != nil || known && other != gateway {
			a.scheduleGatewayCheck(m)
		}
		a.notifyChanged()
	})
}

// scheduleGatewayCheck schedules another check, once; a.mu is held.
func (a *Adapter) scheduleGatewayCheck(m *gatewayCheck) {
	if !m.scheduled {
		m.scheduled = true
		time.AfterFunc(gatewayCheckInterval, func() { a.repeatGatewayCheck(m) })
	}
}

func (a *Adapter) repeatGatewayCheck(m *gatewayCheck) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.bridge.gatewayCheck == m {
		a.bridge.gatewayCheck = nil
		a.checkGateway()
	}
}

// gatewayUnchecked returns why the gateway must not be used yet: its identity is unknown, or Config.CheckGateway has
// failed; a.mu is held.
func (a *Adapter) gatewayUnchecked() *absence {
	gateway, known := a.bridge.coordinators.gateway()
	switch m := a.bridge.gatewayCheck; {
	case a.config.CheckGateway == nil || m != nil && m.done && m.err == nil && known && m.gateway == gateway:
		return nil
	case m != nil && m.done && m.err != nil:
		return &absence{m.err, true}
	}
	return &absence{adapter.Errorf(adapter.GatewayDown, "Zigbee2MQTT has not published its network yet"), false}
}
