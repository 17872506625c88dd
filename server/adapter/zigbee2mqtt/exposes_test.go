package zigbee2mqtt

import (
	"encoding/json"
	"strings"
	"testing"
)

// Five bytes of a message can be 64 in memory.
func TestADeviceExposesNoMoreThanOneCan(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("null,", mostExposed) + "null,null"
	for text, want := range map[string]int{
		`{"exposes":[{"type":"lock","features":[{"property":"state","access":7}]}]}`: 1,
		`{"exposes":[` + many + `]}`:                              0,
		`{"exposes":[{"type":"lock","features":[` + many + `]}]}`: 0,
		`{"exposes":null}`:                                        0,
	} {
		var got struct{ Exposes exposes }
		if err := json.Unmarshal([]byte(text), &got); err != nil || len(got.Exposes) != want || cap(got.Exposes) > 8 {
			t.Errorf("%.60s: %d, %v", text, len(got.Exposes), err)
		}
	}
}
