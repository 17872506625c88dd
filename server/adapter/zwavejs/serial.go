package zwavejs

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Version 2 of the command class Manufacturer Specific has a serial number, which the gateway's interview does not
// read. Once read, the gateway stores it until the next interview of the lock.

const idSerialNumber = 1 // zwave-js DeviceIdType.SerialNumber

// readSerial reads the serial number from the lock if the gateway does not know it: once per connection, because some
// locks do not answer.
func (a *Adapter) readSerial(ctx context.Context, s *session, n *node) {
	was := n.traits.Load()
	a.mu.Lock()
	asked := n.serialAsked == s
	n.serialAsked = s
	a.mu.Unlock()
	if asked || was.serial != "" || was.commandClasses[ccManufacturer] < 2 {
		return
	}
	var got struct {
		Response json.RawMessage `json:"response"`
	}
	if a.invoke(ctx, s, n, ccManufacturer, "deviceSpecificGet", []any{idSerialNumber}, &got) != nil {
		return // a later request will report the error
	}
	t := *was
	if t.serial = serialNumber(got.Response); t.serial != "" && n.traits.CompareAndSwap(was, &t) {
		a.hints.Send(adapter.Event{Kind: adapter.StatusChanged, Device: n.ref})
	}
}

// serialNumber decodes a text without padding, or bytes as hexadecimal.
func serialNumber(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return brief(strings.TrimSpace(strings.ReplaceAll(text, "\x00", "")), maxTextSize)
	}
	var bytes struct {
		Data []uint8 `json:"data"`
	}
	_ = json.Unmarshal(raw, &bytes) // other shapes: none
	return brief(hex.EncodeToString(bytes.Data), maxTextSize)
}
