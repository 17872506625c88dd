package zigbee2mqtt

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// wireResponse is the response of Zigbee2MQTT to a request (zigbee2mqtt.io, "MQTT topics and messages",
// zigbee2mqtt/bridge/request). Transaction is that of the request.
type wireResponse struct {
	Transaction string          `json:"transaction"`
	Status      string          `json:"status"`
	Error       string          `json:"error"` // may contain a PIN
	Data        json.RawMessage `json:"data"`
}

// healthTimeout is how long Zigbee2MQTT may take for a health check, which needs no radio.
const healthTimeout = 5 * time.Second

// request sends a request to Zigbee2MQTT and waits for its response. It fails like session.publish, with errNoAnswer,
// like failure, and with GatewayDown.
func (a *Adapter) request(ctx context.Context, what string, payload map[string]any,
	within time.Duration,
) (_ json.RawMessage, err error) {
	ctx, span := adapter.StartCommandSpan(ctx, "zigbee2mqtt", a.config.Broker, what)
	defer func() { adapter.EndSpan(span, err) }()
	payload["transaction"] = rand.Text()
	answer := make(chan wireResponse, 1)
	a.mu.Lock()
	s := a.session
	a.requests[payload["transaction"].(string)] = answer
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		delete(a.requests, payload["transaction"].(string))
		a.mu.Unlock()
	}()
	if s == nil {
		return nil, adapter.Errorf(adapter.GatewayDown, "there is no connection to the MQTT broker")
	}
	if err := s.publish(ctx, "bridge/request/"+what, payload); err != nil {
		return nil, err
	}
	timeout := time.NewTimer(within)
	defer timeout.Stop()
	select {
	case w := <-answer:
		if w.Status != "ok" {
			return nil, failure(w.Error)
		}
		return w.Data, nil
	case <-s.ended:
		return nil, adapter.Errorf(adapter.GatewayDown, "the connection to the MQTT broker was lost")
	case <-ctx.Done():
	case <-timeout.C:
	}
	return nil, errNoAnswer
}

// responded delivers a response to its request; a.mu is held.
func (a *Adapter) responded(payload []byte) {
	var w wireResponse
	if len(payload) > maxResponseSize || json.Unmarshal(payload, &w) != nil {
		return
	}
	if answer, ok := a.requests[w.Transaction]; ok {
		delete(a.requests, w.Transaction)
		answer <- w
	}
}

// checkHealth fails with GatewayDown when Zigbee2MQTT is connected but does not answer, as a process does that hangs.
// The broker reports that much later.
func (a *Adapter) checkHealth(ctx context.Context) error {
	_, err := a.request(ctx, "health_check", map[string]any{}, healthTimeout)
	if !errors.Is(err, errNoAnswer) || ctx.Err() != nil {
		return nil // it has answered, or another call will report a better error
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.bridge.hangs {
		a.bridge.hangs = true
		for _, l := range a.locks {
			l.fail(errHangs)
		}
		a.hints.Send(adapter.Event{Kind: adapter.DeviceListed}) // listing will fail
		if !a.bridge.probing {
			a.bridge.probing = true
			go a.probeUntilAlive()
		}
	}
	return errHangs
}

var errHangs = adapter.Errorf(adapter.GatewayDown,
	"Zigbee2MQTT does not answer, although it is connected to the broker: it hangs; check its machine, or restart it")

// probeUntilAlive sends health checks to a Zigbee2MQTT that hangs until it is heard.
func (a *Adapter) probeUntilAlive() {
	pause := time.NewTicker(time.Second)
	defer pause.Stop()
	for {
		a.mu.Lock()
		a.bridge.probing = a.bridge.hangs && a.session != nil && a.running.Err() == nil
		asked := a.bridge.probing
		a.mu.Unlock()
		if !asked {
			return
		}
		_, _ = a.request(a.running, "health_check", map[string]any{}, healthTimeout) // any response is a sign of life
		select {
		case <-pause.C:
		case <-a.running.Done():
		}
	}
}

// noteAlive records a sign of life of Zigbee2MQTT; a.mu is held. Changes may have been missed while it hung.
func (a *Adapter) noteAlive() {
	if !a.bridge.hangs {
		return
	}
	a.bridge.hangs = false
	a.invalidateSlots()
	a.hints.Send(adapter.Event{Kind: adapter.Resync})
	a.notifyChanged()
}

// fromBridge reports whether Zigbee2MQTT itself publishes the topic. The broker also delivers the commands of other
// clients.
func fromBridge(topic string) bool {
	return !strings.HasPrefix(topic, "bridge/request/") && !strings.HasSuffix(topic, "/set") &&
		!strings.HasSuffix(topic, "/get")
}
