package zigbee2mqtt

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Constants of the Zigbee Cluster Library: frames and the cluster Door Lock (document 07-5123, 2.4, 2.5, and 7.3).
const (
	generalFrame         = 0 // frame types
	clusterSpecific      = 1
	manufacturerSpecific = 1 << 2

	readResponse  = 0x01
	getPINCode    = 0x06
	getUserStatus = 0x0a

	maxPINUsers = 0x0012 // attributes
	longestPIN  = 0x0017
	shortestPIN = 0x0018
)

// errNoExactRead means that Zigbee2MQTT does not support exact requests. Callers outside the package never see it.
var errNoExactRead = errors.New("no exact answers")

// frame is the response of a lock.
type frame struct {
	command byte
	payload []byte
}

// exactRequest sends a raw command to a lock and returns the response to that command. Unlike a published state, the
// response cannot be confused with another message. The caller holds the lock's turn. It fails with errNoExactRead if
// Zigbee2MQTT does not support it, and like readSlot.
func (a *Adapter) exactRequest(ctx context.Context, l *lock, kind int, command string, payload any) (frame, error) {
	a.mu.Lock()
	to, able := l.address, !a.bridge.noExactRead && l.address.Endpoint > 0
	a.mu.Unlock()
	if !able {
		return frame{}, errNoExactRead
	}
	data, err := a.request(ctx, "action", map[string]any{"action": "raw", "params": map[string]any{
		"ieee_address": l.ref, "network_address": to.Network, "dst_endpoint": to.Endpoint, "cluster_key": doorLock,
		"zcl": map[string]any{
			"frame_type": kind, "direction": 0, "disable_default_response": true,
			"command_key": command, "payload": payload,
		},
	}}, answerTimeout)
	if err == nil {
		if f, ok := readFrame(data, kind); ok {
			return f, nil
		}
	}
	switch class := adapter.ClassOf(err); {
	case ctx.Err() != nil:
		return frame{}, waitError(ctx, adapter.Transient, "the lock has not answered yet")
	case err == nil, errors.Is(err, errNoAnswer), class == adapter.Transient,
		class == adapter.AuthRevoked: // the user may lack the permission
	case class == adapter.Offline:
		a.mu.Lock()
		defer a.mu.Unlock()
		was := l.online()
		l.silent = true
		a.onAvailabilityChange(l, was)
		return frame{}, err
	default:
		return frame{}, err
	}
	if err := a.checkHealth(ctx); err != nil {
		return frame{}, err
	}
	a.mu.Lock()
	a.bridge.noExactRead = true
	a.mu.Unlock()
	return frame{}, errNoExactRead
}

// readFrame decodes the frame in the response of Zigbee2MQTT, whose bytes Node.js encodes as an array of numbers.
func readFrame(data json.RawMessage, kind int) (frame, bool) {
	var w struct {
		Data struct {
			Data []uint16 `json:"data"`
		} `json:"data"`
	}
	if json.Unmarshal(data, &w) != nil || len(w.Data.Data) < 3 {
		return frame{}, false
	}
	var b []byte
	for _, n := range w.Data.Data {
		b = append(b, byte(n))
	}
	if int(b[0]&3) != kind {
		return frame{}, false
	}
	if b[0]&manufacturerSpecific != 0 {
		b = b[2:]
	}
	if len(b) < 3 {
		return frame{}, false
	}
	return frame{command: b[2], payload: b[3:]}, true
}

// readExactly reads a slot before a write. It falls back to readSlot.
func (a *Adapter) readExactly(ctx context.Context, l *lock, n int) (slot, error) {
	a.mu.Lock()
	visible := l.visible
	a.mu.Unlock()
	command := "getUserStatus" // the response contains no PIN
	if visible {
		command = "getPinCode"
	}
	f, err := a.exactRequest(ctx, l, clusterSpecific, command, map[string]int{"userid": n})
	if err != nil && !errors.Is(err, errNoExactRead) {
		return slot{}, err
	}
	got, ok := f.slot(n, visible)
	if err != nil || !ok {
		return a.readSlot(ctx, l, n)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	l.read[n] = reading{got, time.Now()}
	if !got.taken() {
		l.empty(n)
	}
	return got, nil
}

// slot decodes a slot.
func (f frame) slot(n int, visible bool) (s slot, ok bool) {
	p := f.payload
	if (f.command != getPINCode && f.command != getUserStatus) || len(p) < 3 ||
		int(binary.LittleEndian.Uint16(p)) != n {
		return s, false
	}
	s.Status = fmt.Sprintf("not_supported_%d", p[2])
	if name, ok := map[byte]string{0: available, 1: enabled, 3: disabled}[p[2]]; ok {
		s.Status = name
	}
	if f.command == getPINCode && visible && s.taken() && len(p) > 5 && len(p) >= 5+int(p[4]) {
		if pin := p[5 : 5+int(p[4])]; isPIN(pin) {
			s.PIN = string(pin)
		}
	}
	return s, true
}

// applyLimits decodes the limits of a lock.
func (f frame) limits() (w wireLimits, ok bool) {
	if f.command != readResponse {
		return w, false
	}
	for p := f.payload; len(p) >= 3; {
		attribute, failed := binary.LittleEndian.Uint16(p), p[2] != 0
		if p = p[3:]; failed {
			continue
		}
		into := map[uint16]*int{maxPINUsers: &w.Users, longestPIN: &w.MaxPIN, shortestPIN: &w.MinPIN}[attribute]
		switch {
		case into != nil && len(p) >= 2 && p[0] == 0x20: // an unsigned number of 8 bits
			*into, p = int(p[1]), p[2:]
		case into != nil && len(p) >= 3 && p[0] == 0x21: // of 16
			*into, p = int(binary.LittleEndian.Uint16(p[1:])), p[3:]
		default:
			return w, false
		}
	}
	return w, true
}
