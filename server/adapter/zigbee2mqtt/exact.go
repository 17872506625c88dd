package zigbee2mqtt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// What the Zigbee Cluster Library says of frames and of the cluster Door Lock (document 07-5123, 2.4 and 7.3).
const (
	clusterSpecific      = 1
	manufacturerSpecific = 1 << 2
	getPINCode           = 0x06
	getUserStatus        = 0x0a
)

// exactly reads a slot so that nothing else can be taken for the answer: Zigbee2MQTT sends the command as it is and
// answers to it alone. A state, as readSlot waits for, may be published for another reason with the slot as it was. It
// is called in turn, and is readSlot where Zigbee2MQTT cannot do that.
func (a *Adapter) exactly(ctx context.Context, l *lock, n int) (slot, error) {
	a.mu.Lock()
	to, visible, able := l.address, l.visible, !a.bridge.plain && l.address.Endpoint > 0
	a.mu.Unlock()
	if !able {
		return a.readSlot(ctx, l, n)
	}
	command := "getUserStatus" // its answer holds no PIN
	if visible {
		command = "getPinCode"
	}
	data, err := a.request(ctx, "action", map[string]any{"action": "raw", "params": map[string]any{
		"ieee_address": l.ref, "network_address": to.Network, "dst_endpoint": to.Endpoint, "cluster_key": doorLock,
		"zcl": map[string]any{"frame_type": clusterSpecific, "direction": 0, "disable_default_response": true, "command_key": command, "payload": map[string]int{"userid": n}},
	}}, answerWithin)
	if err == nil {
		if got, ok := slotIn(data, n, visible); ok {
			a.mu.Lock()
			defer a.mu.Unlock()
			l.read[n] = reading{got, time.Now()}
			if !got.taken() {
				delete(l.put, n)
			}
			return got, nil
		}
	}
	switch {
	case ctx.Err() != nil:
		return slot{}, lost(ctx, adapter.Transient, "the lock has not answered yet")
	case err != nil && !errors.Is(err, errNoAnswer) && adapter.ClassOf(err) != adapter.Transient:
		return slot{}, err
	}
	if err := a.alive(ctx); err != nil {
		return slot{}, err
	}
	a.mu.Lock()
	a.bridge.plain = true
	a.mu.Unlock()
	return a.readSlot(ctx, l, n)
}

// slotIn reads the frame with which a lock tells of a slot.
func slotIn(data json.RawMessage, n int, visible bool) (slot, bool) {
	var w struct {
		Data struct {
			Data []octet `json:"data"`
		} `json:"data"`
	}
	if json.Unmarshal(data, &w) != nil {
		return slot{}, false
	}
	frame := w.Data.Data
	if len(frame) < 3 || frame[0]&3 != clusterSpecific {
		return slot{}, false
	}
	if frame[0]&manufacturerSpecific != 0 {
		frame = frame[2:]
	}
	if len(frame) < 6 || int(frame[3])|int(frame[4])<<8 != n {
		return slot{}, false
	}
	s := slot{Status: fmt.Sprintf("not_supported_%d", frame[5])}
	if name, ok := map[octet]string{0: available, 1: enabled, 3: disabled}[frame[5]]; ok {
		s.Status = name
	}
	switch frame[2] {
	case getUserStatus:
		return s, true
	case getPINCode:
		if len(frame) > 8 && len(frame) >= 8+int(frame[7]) && visible && s.taken() {
			var pin []byte
			for _, digit := range frame[8 : 8+int(frame[7])] {
				pin = append(pin, byte(digit))
			}
			if isPIN.Match(pin) {
				s.PIN = string(pin)
			}
		}
		return s, true
	}
	return slot{}, false
}

// octet is a byte that is a number in JSON.
type octet uint8
