package zwavejs

import (
	"testing"
	"time"
)

// A code in a slot that was seen empty is another one, even if its PIN is hidden. A write without a known end may
// appear late.
func TestEmptySlotLosesItsKey(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		since time.Duration // since the write
		want  string
	}{
		"written long ago": {time.Hour, ""},
		"written just now": {time.Second, "k"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var m memory
			m.noteWrite("k", 3, entry{pin: "864209"})
			m.finishWrite(3)
			m.writes[3] = time.Now().Add(-test.since)
			m.storeSlot(3, entry{}, false)
			m.storeSlot(3, entry{}, true)
			if got := m.key(3); got != test.want {
				t.Errorf("its key is %q", got)
			}
		})
	}
}
