package zigbee2mqtt

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"
)

// The number of stored availabilities is limited.
func TestStoredNamesAreLimited(t *testing.T) {
	t.Parallel()
	a := &Adapter{bridge: bridge{reaches: map[string]bool{}}}
	for i := range 20_000 {
		a.reached(fmt.Sprint("lock ", i), []byte("online"))
		a.reached(strings.Repeat("long", 250)+fmt.Sprint(i), []byte("online"))
	}
	if n := len(a.bridge.reaches); n != maxNames {
		t.Errorf("%d names", n)
	}
	a.reached("lock 7", []byte("offline"))
	if online, known := a.bridge.reaches["lock 7"]; !known || online {
		t.Error("a stored availability was not updated")
	}
	a.reached("lock 7", nil)
	a.reached("front door", []byte("online"))
	if !a.bridge.reaches["front door"] {
		t.Error("a deleted availability frees no space")
	}
}

func TestStoredNameDoesNotRetainTopic(t *testing.T) {
	t.Parallel()
	a := idle(Config{Topic: "z"})
	defer a.cancel()
	topic := "z/front door/availability"
	a.receive(topic, []byte("online"), true)
	for name := range a.bridge.reaches {
		begin, at := uintptr(unsafe.Pointer(unsafe.StringData(topic))), uintptr(unsafe.Pointer(unsafe.StringData(name)))
		if name != "front door" || begin <= at && at < begin+uintptr(len(topic)) {
			t.Errorf("%q is stored with its whole topic", name)
		}
	}
	if len(a.bridge.reaches) != 1 {
		t.Errorf("%d names", len(a.bridge.reaches))
	}
}
