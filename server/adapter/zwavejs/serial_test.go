package zwavejs

import (
	"encoding/json"
	"testing"
)

// Some locks pad their serial number, and zwave-js does not remove the padding.
func TestSerialNumberPadding(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`"ABC\u0000\u0000"`: "ABC", `" ABC "`: "ABC", `{"data":[1,171]}`: "01ab", `null`: "", `17`: "",
	} {
		if got := serialNumber(json.RawMessage(raw)); got != want {
			t.Errorf("%s is read as %q, want %q", raw, got, want)
		}
	}
}
