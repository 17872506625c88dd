package zwavejs

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// The command class Manufacturer Specific: version 2 tells a serial number, which the gateway's interview does not
// ask for. Once it was asked the gateway keeps it, until it interviews the lock anew.

const idSerialNumber = 1 // zwave-js DeviceIdType.SerialNumber

// readSerial asks the lock for its serial number where the gateway does not know it: once for each connection, as
// some locks do not answer that.
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
		return // it is asked for more than that, and says what is wrong there
	}
	t := *was
	if t.serial = serialNumber(got.Response); t.serial != "" && n.traits.CompareAndSwap(was, &t) {
		a.hints.Send(adapter.Event{Kind: adapter.StatusChanged, Device: n.ref})
	}
}

// serialNumber is text without its padding, or bytes, which are written in hexadecimal.
func serialNumber(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return brief(strings.TrimSpace(strings.ReplaceAll(text, "\x00", "")), mostText) // some pad it
	}
	var bytes struct {
		Data []uint8 `json:"data"`
	}
	_ = json.Unmarshal(raw, &bytes) // what is neither is none
	return brief(hex.EncodeToString(bytes.Data), mostText)
}
