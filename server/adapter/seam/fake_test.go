package seam_test

import (
	"errors"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/seam"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// startFake starts the vendor's test server and returns its URL and API key.
func startFake(t *testing.T) (url, key string) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a program of the vendor")
	}
	lab, err := gateways.Install(t.Context(), "fake-seam-connect", os.DirFS("testdata/fake"), 18)
	if errors.Is(err, gateways.ErrMissing) && os.Getenv("REQUIRE_ALL") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	var ready struct {
		URL  string `json:"url"`
		Seed struct {
			Key string `json:"seam_apikey1_token"`
		} `json:"seed"`
	}
	process, err := lab.Run("start.cjs", &ready, testenv.Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	return ready.URL, ready.Seed.Key
}

// The vendor's test server shows neither lengths of codes nor limits, and never sets a code. Every request to it
// must be one of the published description.
func TestVendorTestServer(t *testing.T) {
	t.Parallel()
	url, key := startFake(t)
	base := judged(t, url)

	connection := &seam.Connection{BaseURL: base, APIKey: key}
	found, err := connection.Check(t.Context(), adapter.Env{Workspace: "another"})
	if err != nil || found.Username == "" || connection.WorkspaceID != found.Username {
		t.Fatalf("Check: %+v, %v", found, err)
	}
	_, err = connection.Check(t.Context(), adapter.Env{Workspace: found.Username})
	if adapter.ClassOf(err) != adapter.Invalid {
		t.Errorf("a workspace became its own upstream: %v", err)
	}
	wrong := &seam.Connection{BaseURL: base, APIKey: "seam_wrong"}
	if _, err := wrong.Check(t.Context(), adapter.Env{}); adapter.ClassOf(err) != adapter.AuthRevoked {
		t.Errorf("a wrong key: %v", err)
	}

	a := seam.New(seam.Config{
		BaseURL:      base,
		APIKey:       key,
		PollInterval: 50 * time.Millisecond,
		Secrets:      &adaptertest.Secrets{},
	})
	t.Cleanup(func() { _ = a.Close() })
	a.Listen()
	devices, err := a.Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range devices {
		if d.Type == "ecobee_thermostat" || d.Type == "minut_sensor" {
			t.Errorf("%s is listed as a lock", d.Type)
		}
	}
	i := slices.IndexFunc(devices, func(d adapter.Device) bool { return d.Type == "august_lock" })
	if i < 0 {
		t.Fatalf("no August lock in %+v", devices)
	}
	device := devices[i]
	if c := device.Capabilities; !c.OnlineCodes || !c.Unlock || c.MaxCodes != 0 || len(c.CodeLengths) == 0 {
		t.Errorf("the capabilities are %+v", c)
	}
	testCodesOfFake(t, a, device.Ref, base, key)
	if state, err := a.Unlock(t.Context(), device.Ref); err != nil || state == "" {
		t.Errorf("Unlock: %q, %v", state, err)
	}
	if _, err := a.Device(t.Context(), "absent"); adapter.ClassOf(err) != adapter.NotFound {
		t.Errorf("an absent device: %v", err)
	}
}

func testCodesOfFake(t *testing.T, a *seam.Adapter, device adapter.DeviceRef, url, key string) {
	t.Helper()
	spec := adapter.CodeSpec{Key: "one", Name: "Guest", PIN: "4839"}
	made, err := a.PutCode(t.Context(), device, spec)
	if err != nil || made.Ref == "" {
		t.Fatalf("PutCode: %+v, %v", made, err)
	}
	testenv.Until(t, "the event of the creation", func() bool {
		select {
		case e := <-a.Events():
			return e.Kind == adapter.CodesChanged && e.Device == device && e.Code == made.Ref
		default:
			return false
		}
	})
	again := spec
	again.Key = "two"
	if _, err := a.PutCode(t.Context(), device, again); adapter.ClassOf(err) != adapter.Duplicate {
		t.Errorf("a duplicate PIN: %v", err)
	}
	starts := time.Now().Add(24 * time.Hour).Truncate(time.Minute)
	ends := starts.Add(time.Hour)
	spec.Ref, spec.Name, spec.StartsAt, spec.EndsAt = made.Ref, "Other guest", &starts, &ends
	if _, err := a.PutCode(t.Context(), device, spec); err != nil {
		t.Errorf("a change: %v", err)
	}
	addUnmanaged(t, url, key, string(device))
	codes, err := a.Codes(t.Context(), device, true)
	if err != nil || len(codes.Codes) != 2 {
		t.Fatalf("Codes: %d, %v", len(codes.Codes), err)
	}
	if c := codes.Codes[0]; c.Name != "Other guest" || c.StartsAt == nil || !c.StartsAt.Equal(starts) {
		t.Errorf("the changed code is %q from %v", c.Name, c.StartsAt)
	}
	if state, err := a.DeleteCode(t.Context(), device, made.Ref); err != nil || state == "" {
		t.Errorf("DeleteCode: %q, %v", state, err)
	}
}

// addUnmanaged enters a code at a keypad of the test server.
func addUnmanaged(t *testing.T, url, key, device string) {
	t.Helper()
	postJSON(t, url+"/access_codes/simulate/create_unmanaged_access_code", key,
		map[string]any{"device_id": device, "name": "Neighbor", "code": "7391"}, http.StatusOK, nil)
}
