package zwavejs_test

import (
	"reflect"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Listed nodes of a lock that the gateway knows incompletely. A node that is not ready has the command classes of the
// cache, and no values (@zwave-js/server, state.js getNodeValues).
const (
	product   = `"manufacturerId":297,"productType":1,"productId":1536,"label":"YRD256","deviceConfig":{"manufacturer":"Yale"},`
	lockClass = `"endpoints":[{"index":0,"commandClasses":[{"id":98,"version":4},{"id":99,"version":1},{"id":113,"version":8}]}],`

	notYetHeard = `{"nodeId":2,"status":0,"ready":false,` + product + lockClass + `"values":[]}`
	dead        = `{"nodeId":2,"status":3,"ready":false,` + product + lockClass + `"values":[]}`
	// "Querying number of user codes timed out, skipping interview".
	uncounted = `{"nodeId":2,"status":4,"ready":true,` + product + lockClass + `"values":[]}`
	unsecured = `{"nodeId":2,"status":4,"ready":true,` + product + `"endpoints":[{"index":0,"commandClasses":[{"id":114,"version":2},{"id":134,"version":2}]}],"values":[]}`
	lamp      = `{"nodeId":2,"status":4,"ready":true,"manufacturerId":134,"productType":3,"productId":111,"endpoints":[{"index":0,"commandClasses":[{"id":37,"version":1}]}],"values":[]}`
)

// listing returns the response that the network has this node.
func listing(node string) func(*script, command) string {
	return func(_ *script, c command) string {
		if c.Name != listen {
			return ""
		}
		return `{"state":{"nodes":[` + node + `]}}`
	}
}

// The lock keeps its properties and waits.
func TestIncompleteInterviewKeepsCapabilities(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		shown string
		class adapter.Class // of calls; empty: none
	}{
		"not heard yet":               {notYetHeard, adapter.Transient},
		"dead":                        {dead, adapter.Offline},
		"its codes were not counted":  {uncounted, ""},
		"its keys were not exchanged": {unsecured, adapter.Transient},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := play(t, map[int]string{1: shows(1, "864209")}, nil)
			before, err := s.adapter.Device(t.Context(), s.device)
			if err != nil || !before.Capabilities.OnlineCodes || before.CapabilitiesUnknown {
				t.Fatalf("Device: %+v, %v", before, err)
			}
			for _, how := range []func(*testing.T, string){s.reconnect, s.interview} {
				how(t, test.shown)
				devices, err := s.adapter.Devices(t.Context())
				if err != nil || len(devices) != 1 || !reflect.DeepEqual(devices[0].Capabilities, before.Capabilities) {
					t.Fatalf("Devices: %+v, %v", devices, err)
				}
				_, err = s.adapter.Codes(t.Context(), s.device, true)
				_, putErr := s.adapter.PutCode(t.Context(), s.device, spec("k", "135790"))
				_, deleteErr := s.adapter.DeleteCode(t.Context(), s.device, "2")
				for _, err := range []error{err, putErr, deleteErr} {
					if test.class != "" {
						failsAs(t, err, test.class)
					} else if err != nil {
						t.Fatal(err)
					}
				}
				if pings := s.count("node.ping"); (pings > 0) != (test.class == adapter.Offline) {
					t.Errorf("it was pinged %d times", pings)
				}
				s.interview(t, "")
				until(t, "it is unchanged", func() bool {
					codes, err := s.adapter.Codes(t.Context(), s.device, true)
					return err == nil && len(codes.Codes) > 0
				})
			}
		})
	}
}

// The properties known elsewhere remain valid.
func TestCapabilitiesOfUnseenLockAreUnknown(t *testing.T) {
	t.Parallel()
	for shown, class := range map[string]adapter.Class{
		notYetHeard: adapter.Transient, dead: adapter.Offline,
		uncounted: adapter.Transient,
	} {
		s := begin(t, map[int]string{}, listing(shown))
		devices, err := s.adapter.Devices(t.Context())
		if err != nil || len(devices) != 1 || devices[0].Capabilities.OnlineCodes || !devices[0].CapabilitiesUnknown {
			t.Fatalf("Devices: %+v, %v", devices, err)
		}
		_, err = s.adapter.PutCode(t.Context(), devices[0].Ref, spec("k", "135790"))
		failsAs(t, err, class)
	}
}

// An interview without the lock's security keys shows no command class Door Lock.
func TestListedNodeIsExcludedOnlyAsAnotherProduct(t *testing.T) {
	t.Parallel()
	for shown, gone := range map[string]bool{unsecured: false, lamp: true} {
		s := begin(t, map[int]string{}, listing(shown))
		_, err := s.adapter.Device(t.Context(), "7e570001/2/0129-0001-0600")
		if e := adapter.AsError(err); e == nil || e.Gone != gone || (e.Class == adapter.NotFound) != gone ||
			(e.Class == adapter.Transient) == gone {
			t.Errorf("excluded: %v, got %v", gone, err)
		}
	}
	s := play(t, map[int]string{}, nil)
	s.interview(t, lamp)
	until(t, "it is removed permanently", func() bool {
		_, err := s.adapter.Device(t.Context(), s.device)
		e := adapter.AsError(err)
		return e != nil && e.Gone
	})
}
