package zigbee2mqtt

import (
	"encoding/json"
	"strings"
	"testing"
)

// Five bytes of a message can take 64 in memory.
func TestExposesAreLimited(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("null,", maxExposedCommas) + "null,null"
	for text, want := range map[string]int{
		`{"exposes":[{"type":"lock","features":[{"property":"state","access":7}]}]}`: 1,
		`{"exposes":[` + many + `]}`:                              0,
		`{"exposes":[{"type":"lock","features":[` + many + `]}]}`: 0,
		`{"exposes":null}`:                                        0,
	} {
		var got struct{ Exposes few[expose] }
		if err := json.Unmarshal([]byte(text), &got); err != nil || len(got.Exposes) != want || cap(got.Exposes) > 8 {
			t.Errorf("%.60s: %d, %v", text, len(got.Exposes), err)
		}
	}
}

// Decoding each nested level took seconds for 60 kB. Features below those of a lock are ignored.
func TestNestedFeaturesAreIgnored(t *testing.T) {
	t.Parallel()
	const levels = 4000
	deep := strings.Repeat(`[{"features":`, levels) + `[{"property":1}]` + strings.Repeat(`}]`, levels)
	text := `[{"ieee_address":"0x1","definition":{"exposes":[{"type":"lock","features":[{"property":"state","access":7,"features":` + deep + `}]}]}}]`
	var got wireDevices
	if err := json.Unmarshal([]byte(text), &got); err != nil || len(got.locks) != 1 || !got.locks[0].able.bolt {
		t.Errorf("%+v, %v", got.locks, err)
	}
}
