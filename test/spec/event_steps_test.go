package spec_test

import (
	"maps"
	"net/http"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// tale is a device on which steps happen one after another.
type tale struct {
	s      *apptest.Server
	device string
	lock   *apptest.Lock
	code   string // the managed code that the last step has created
	seen   map[string]bool
	ahead  atomic.Int64 // how far the server's clock is ahead

	webview api.ConnectWebview
}

// step is one cause and its events: exactly these, once each.
type step struct {
	cause string
	do    func(*testing.T, *tale)
	want  []string
}

// The PINs of the tales are long, so that no id contains them by chance.
const (
	pinOne   = "74628351"
	pinTwo   = "74628352"
	pinThree = "74628353"
	pinOther = "74628359"
)

var pins = []string{pinOne, pinTwo, pinThree, pinOther}

// carryPINs are the event types that carry PINs.
var carryPINs = []string{
	"access_code.set_on_device", "access_code.scheduled_on_device", "access_code.deleted", "access_code.changed",
	"access_code.code_changed", "access_code.mutations_requested", "lock.locked", "lock.unlocked",
}

func (s *tale) post(t *testing.T, path string, in map[string]any, out any) {
	t.Helper()
	if status := s.s.Post(t, path, in, out); status != http.StatusOK {
		t.Fatalf("%s: %d", path, status)
	}
}

// onDevice adds the device to the parameters.
func (s *tale) onDevice(t *testing.T, path string, in map[string]any) {
	t.Helper()
	if in == nil {
		in = map[string]any{}
	}
	in["device_id"] = s.device
	s.post(t, path, in, nil)
}

func (s *tale) create(t *testing.T, in map[string]any) {
	t.Helper()
	in["device_id"] = s.device
	var out api.AccessCodeCreatedResponse
	s.post(t, "/access_codes/create", in, &out)
	s.code = out.AccessCode.AccessCodeID
}

// onLock is the lock's own identifier of the code with a PIN.
func (s *tale) onLock(t *testing.T, pin string) string {
	t.Helper()
	for _, c := range s.lock.Memory(t) {
		if c.PIN == pin {
			return c.ID
		}
	}
	t.Fatal("the code is not on the lock")
	return ""
}

func post(path string, in map[string]any) func(*testing.T, *tale) {
	return func(t *testing.T, s *tale) { s.onDevice(t, path, maps.Clone(in)) }
}

func create(in map[string]any) func(*testing.T, *tale) {
	return func(t *testing.T, s *tale) {
		in := maps.Clone(in)
		for name, value := range in {
			if d, is := value.(time.Duration); is { // relative to its creation
				in[name] = time.Now().Add(d)
			}
		}
		s.create(t, in)
	}
}

func update(in map[string]any) func(*testing.T, *tale) {
	return func(t *testing.T, s *tale) {
		in := maps.Clone(in)
		in["access_code_id"] = s.code
		s.post(t, "/access_codes/update", in, nil)
	}
}

func remove(t *testing.T, s *tale) {
	s.post(t, "/access_codes/delete", map[string]any{"access_code_id": s.code}, nil)
}

func control(method, path string, body any) func(*testing.T, *tale) {
	return func(t *testing.T, s *tale) { s.lock.Control(t, method, path, body) }
}

// all does one thing after another.
func all(do ...func(*testing.T, *tale)) func(*testing.T, *tale) {
	return func(t *testing.T, s *tale) {
		for _, f := range do {
			f(t, s)
		}
	}
}

// look makes the server read the vendor account, by bringing a device online that may be online already.
var look = post("/devices/simulate/connect", nil)

// syncAccount makes the server read the account, even if it is disconnected.
func syncAccount(t *testing.T, s *tale) {
	var out api.DeviceResponse
	s.post(t, "/devices/get", map[string]any{"device_id": s.device}, &out)
	s.post(t, "/connected_accounts/sync", map[string]any{"connected_account_id": out.Device.ConnectedAccountID}, nil)
}

func keypad(method, pin string, body map[string]any) func(*testing.T, *tale) {
	return func(t *testing.T, s *tale) { s.lock.Control(t, method, "/keypad/codes/"+s.onLock(t, pin), body) }
}

// anHourPasses advances the server's clock and makes it read the device.
func anHourPasses(t *testing.T, s *tale) {
	s.ahead.Add(int64(time.Hour))
	p := domain.Principal{WorkspaceID: uuid.MustParse(s.s.WorkspaceID)}
	d, err := s.s.App.Access.Devices.GetDevice(t.Context(), p, s.device, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.s.App.Access.Accounts.Hint(t.Context(), d.AccountID, d.Ref); err != nil {
		t.Fatal(err)
	}
}

// tampers reports tampering like an adapter, because no simulated lock detects it.
func tampers(t *testing.T, s *tale) {
	p := domain.Principal{WorkspaceID: uuid.MustParse(s.s.WorkspaceID)}
	d, err := s.s.App.Access.Devices.GetDevice(t.Context(), p, s.device, "")
	if err != nil {
		t.Fatal(err)
	}
	tampered := device.Operation{Kind: device.Tampered}
	if _, err := s.s.App.Access.Devices.RecordOperation(t.Context(), d.AccountID, d.Ref, tampered); err != nil {
		t.Fatal(err)
	}
}

func nothing(*testing.T, *tale) {}

var (
	pushed = map[string]any{"jammed": true}
	freed  = map[string]any{"jammed": false}
	ahead  = map[string]any{"starts_at": time.Now().Add(time.Hour), "ends_at": time.Now().Add(48 * time.Hour)}
)

// warns checks the device's warnings.
func warns(want ...string) func(*testing.T, *tale) {
	return func(t *testing.T, s *tale) {
		t.Helper()
		var out api.DeviceResponse
		s.post(t, "/devices/get", map[string]any{"device_id": s.device}, &out)
		var got []string
		for _, w := range out.Device.Warnings {
			got = append(got, w.WarningCode)
		}
		if !slices.Equal(got, want) {
			t.Errorf("it warns of %v, want %v", got, want)
		}
	}
}

var loss = all(post("/devices/simulate/disconnect", nil), post("/devices/simulate/connect", nil))

// tells waits for the events of a step and checks them.
func (s *tale) tells(t *testing.T, step step) {
	t.Helper()
	want := slices.Sorted(slices.Values(step.want))
	testenv.UntilOr(t, step.cause+" is listed", func() bool { return len(s.news(t)) >= len(want) }, func() {
		t.Errorf("events %v, want %v", typesOf(s.news(t)), want)
	})
	s.quiet(t) // duplicate events have been emitted by now
	got := s.news(t)
	types := typesOf(got)
	for _, e := range got {
		s.seen[e.EventID] = true
		s.whole(t, e)
	}
	sort.Strings(types)
	if !slices.Equal(types, want) {
		t.Fatalf("%s: events\n%s\nwant\n%s", step.cause, strings.Join(types, "\n"), strings.Join(want, "\n"))
	}
}

func typesOf(events []api.Event) (types []string) {
	for _, e := range events {
		types = append(types, e.EventType)
	}
	return types
}

// quiet waits until the server has no work.
func (s *tale) quiet(t *testing.T) {
	t.Helper()
	device := uuid.MustParse(s.device)
	apptest.Until(t, "the device needs no more looks", func() bool {
		due, err := s.s.App.Access.Devices.DeviceDue(t.Context(), device)
		return err == nil && !due
	})
}

// news returns the events since the previous step.
func (s *tale) news(t *testing.T) (out []api.Event) {
	t.Helper()
	var list api.EventsResponse
	s.post(t, "/events/list", map[string]any{"since": "2020-01-01T00:00:00Z", "limit": 10_000}, &list)
	for _, e := range list.Events {
		if !s.seen[e.EventID] {
			out = append(out, e)
		}
	}
	return out
}
