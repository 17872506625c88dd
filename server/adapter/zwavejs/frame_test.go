package zwavejs_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

const (
	listen  = "start_listening"
	updated = `{"type":"event","event":{"source":"node","event":"value updated","nodeId":2,"args":{"newValue":%q}}}`
)

func listings(s *script) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, command := range s.asked {
		if command == listen {
			n++
		}
	}
	return n
}

// A network may have hundreds of locks, but an event concerns one. A gateway that keeps sending megabytes would make
// the server allocate several times as much.
func TestOnlyTheNetworkIsALargeFrame(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("a", 2<<20)
	s := play(t, nil, func(s *script, c command) string {
		if c.Name != listen {
			return ""
		}
		return `{"state":{"nodes":[` + s.node() + `],"more":"` + large + `"}}`
	})
	s.tell(fmt.Sprintf(updated, large[:1<<19]))
	if _, err := s.adapter.Codes(t.Context(), s.device, true); err != nil {
		t.Fatal(err)
	}
	if n := listings(s); n != 1 {
		t.Fatalf("connected %d times, want once", n)
	}
	s.tell(fmt.Sprintf(updated, large))
	until(t, "it reconnects", func() bool { return listings(s) == 2 })
	if _, err := s.adapter.Codes(t.Context(), s.device, true); err != nil {
		t.Fatal(err)
	}
}

func TestOnlyTheListIsALargeFrameBeforeListing(t *testing.T) {
	t.Parallel()
	var tried atomic.Int32
	s := begin(t, nil, func(s *script, c command) string {
		if c.Name == listen && tried.Add(1) == 1 {
			s.tell(fmt.Sprintf(updated, strings.Repeat("a", 2<<20)))
		}
		return ""
	})
	until(t, "it reconnects", func() bool { return listings(s) == 2 })
}

func TestUnexpectedResponseIsAnError(t *testing.T) {
	t.Parallel()
	for _, result := range []string{`7`, `[]`, `"864209"`} {
		t.Run(result, func(t *testing.T) {
			t.Parallel()
			s := play(t, map[int]string{2: result}, nil)
			_, err := s.adapter.Codes(t.Context(), s.device, true)
			failsAs(t, err, adapter.GatewayDown)
		})
	}
}

// A gateway may list and add any number of locks with any PIN lengths.
func TestLocksPerNetworkAreLimited(t *testing.T) {
	t.Parallel()
	lock := func(id int) string {
		return fmt.Sprintf(
			`{"nodeId":%d,"status":4,"ready":true,"manufacturerId":1,"name":%q,"endpoints":[{"index":0,"commandClasses":[{"id":98,"version":4},{"id":99,"version":1}]}],`+
				`"values":[{"commandClass":99,"endpoint":0,"property":"userCode","propertyKey":1,"metadata":{"minLength":1,"maxLength":100000}}]}`,
			id,
			strings.Repeat("n", 2000),
		)
	}
	s := begin(t, nil, func(_ *script, c command) string {
		if c.Name != listen {
			return ""
		}
		var all []string
		for id := range 300 {
			all = append(all, lock(id+1))
		}
		return `{"state":{"nodes":[` + strings.Join(append(all, lock(0), lock(-1), lock(4096)), ",") + `]}}`
	})
	if devices, err := s.adapter.Devices(t.Context()); err != nil || len(devices) != 300 {
		t.Fatalf("%d devices, %v", len(devices), err)
	}
	for id := 301; id < 1000; id++ {
		s.tell(`{"type":"event","event":{"source":"controller","event":"node added","node":` + lock(id) + `}}`)
	}
	s.tell(`{"type":"event","event":{"source":"controller","event":"node removed","node":{"nodeId":1},"reason":0}}`)
	var devices []adapter.Device
	until(t, "all is processed", func() (done bool) {
		var err error
		if devices, err = s.adapter.Devices(t.Context()); err != nil {
			t.Fatal(err)
		}
		return !slices.ContainsFunc(devices,
			func(d adapter.Device) bool { return strings.Contains(string(d.Ref), "/1/") })
	})
	_, err := s.adapter.Device(t.Context(),
		adapter.DeviceRef(strings.Replace(string(devices[0].Ref), "/2/", "/900/", 1)))
	failsAs(t, err, adapter.Transient) // the lock exists, and may have been among the first 500: it was not excluded
	if len(devices) != 499 {
		t.Errorf("%d devices, want 499", len(devices))
	}
	for _, d := range devices {
		if len(d.Name) > 250 || len(d.Capabilities.CodeLengths) > 255 {
			t.Fatalf("a name of %d bytes, %d lengths of codes", len(d.Name), len(d.Capabilities.CodeLengths))
		}
	}
}
