package tedee_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/tedee"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/tedee/tedeetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// start returns a cloud and an adapter for it that does not poll.
func start(t *testing.T) (*tedeetest.Cloud, *tedee.Adapter, adapter.DeviceRef) {
	t.Helper()
	c := tedeetest.Start(t, tedeetest.Options{})
	a := open(t, c, false)
	if _, err := a.Devices(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Calls()
	return c, a, adapter.DeviceRef(c.Serial)
}

func classIs(t *testing.T, what string, err error, want adapter.Class) {
	t.Helper()
	if err == nil || adapter.AsError(err) == nil || adapter.ClassOf(err) != want {
		t.Fatalf("%s: %v, want %s", what, err, want)
	}
}

func codes(t *testing.T, a *tedee.Adapter, device adapter.DeviceRef) map[adapter.CodeRef]adapter.Code {
	t.Helper()
	list, err := a.Codes(t.Context(), device, true)
	if err != nil {
		t.Fatal(err)
	}
	out := map[adapter.CodeRef]adapter.Code{}
	for _, c := range list.Codes {
		out[c.Ref] = c
	}
	return out
}

func put(t *testing.T, a *tedee.Adapter, device adapter.DeviceRef, spec adapter.CodeSpec) adapter.CodeRef {
	t.Helper()
	made, err := a.PutCode(t.Context(), device, spec)
	if err != nil || made.State != adapter.Confirmed {
		t.Fatalf("PutCode: %+v, %v", made, err)
	}
	return made.Ref
}

// Details are read once as long as the version of the list shows that nothing else changed. A dropped write and a write
// by others show all the same.
func TestCodes_ReadsDetailsOnce(t *testing.T) {
	t.Parallel()
	c, a, device := start(t)
	first, second := c.AddCode("One", "48291"), c.AddCode("Two", "59382")
	calls := func(want int, why string) {
		t.Helper()
		codes(t, a, device)
		if got := c.Calls(); len(got) != want {
			t.Errorf("%s took the calls %q, want %d", why, got, want)
		}
	}
	calls(3, "the first read")
	calls(1, "an unchanged list")
	made := put(t, a, device, adapter.CodeSpec{Key: "k", Name: "Three", PIN: "60473"})
	put(t, a, device, adapter.CodeSpec{Ref: ref(first), Name: "One", PIN: "48292"})
	if _, err := a.DeleteCode(t.Context(), device, ref(second)); err != nil {
		t.Fatal(err)
	}
	c.Calls()
	calls(3, "a read after own writes") // it confirms the code that was made, and the one that was changed
	if now := codes(t, a, device); len(now) != 2 || now[made].PIN != "60473" || now[ref(first)].PIN != "48292" {
		t.Errorf("the codes are %d", len(now))
	}
	c.ChangeCode(first, "71564")
	c.Calls()
	calls(3, "a read after a change by others")
	if codes(t, a, device)[ref(first)].PIN != "71564" {
		t.Error("the changed PIN is not read")
	}
	c.DropNext()
	put(t, a, device, adapter.CodeSpec{Ref: ref(first), Name: "One", PIN: "82655"})
	if codes(t, a, device)[ref(first)].PIN != "71564" {
		t.Error("a dropped write is believed")
	}
	c.DropNext()
	put(t, a, device, adapter.CodeSpec{Ref: ref(first), Name: "One", PIN: "82655"})
	c.ChangeCode(idOf(t, made), "93746") // the version is that of our write
	if now := codes(t, a, device); now[ref(first)].PIN != "71564" || now[made].PIN != "93746" {
		t.Error("a dropped write is believed after a write by others")
	}
}

// A write whose response is lost, or that times out after it arrived, never makes a second code.
func TestPutCode_LostResponses(t *testing.T) {
	t.Parallel()
	c, a, device := start(t)
	spec := adapter.CodeSpec{Key: "k1", Name: "Guest", PIN: "48291"}
	for _, lose := range []func(){c.TimeoutNext, c.CutNext} {
		lose()
		_, err := a.PutCode(t.Context(), device, spec)
		classIs(t, "PutCode", err, adapter.Unconfirmed)
		first := put(t, a, device, spec)
		if second := put(t, a, device, spec); second != first || len(c.Codes()) != 1 {
			t.Errorf("one key made the codes %s and %s, and the lock has %d", first, second, len(c.Codes()))
		}
		// The code changes before the repetition.
		if _, err := a.DeleteCode(t.Context(), device, first); err != nil {
			t.Fatal(err)
		}
		lose()
		_, err = a.PutCode(t.Context(), device, spec)
		classIs(t, "PutCode", err, adapter.Unconfirmed)
		other := spec
		other.PIN = "59382"
		if changed := put(t, a, device, other); codes(t, a, device)[changed].PIN != "59382" || len(c.Codes()) != 1 {
			t.Errorf("a changed repetition left %d codes", len(c.Codes()))
		}
		// A repetition by another instance finds the PIN.
		_, err = open(t, c, false).PutCode(t.Context(), device, other)
		classIs(t, "PutCode of another instance", err, adapter.Duplicate)
		if e := adapter.AsError(err); e.Conflict != ref(c.Codes()[0].ID) || strings.Contains(e.Error(), "59382") {
			t.Errorf("the error is %v, and the conflict %q", e, e.Conflict)
		}
		lose()
		_, err = a.DeleteCode(t.Context(), device, ref(c.Codes()[0].ID))
		classIs(t, "DeleteCode", err, adapter.Unconfirmed)
		if len(codes(t, a, device)) != 0 {
			t.Error("the deleted code is still read")
		}
		spec.Key = "k2"
	}
}

// Calls of codes of one lock wait for each other, because the vendor refuses a second one. A lock that serves another
// program is tried again later.
func TestCodes_OneCallAtATime(t *testing.T) {
	t.Parallel()
	c, a, device := start(t)
	c.HoldPINs()
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			spec := adapter.CodeSpec{Key: strconv.Itoa(i), Name: "Guest", PIN: "4829" + strconv.Itoa(i+3)}
			if _, err := a.PutCode(context.Background(), device, spec); err != nil {
				t.Errorf("PutCode: %v", err)
			}
			if _, err := a.Codes(context.Background(), device, true); err != nil {
				t.Errorf("Codes: %v", err)
			}
		})
	}
	testenv.Until(t, "a call arrives", func() bool { n, _ := c.PINCalls(); return n == 1 })
	c.Heal()
	all.Wait()
	if _, conflicts := c.PINCalls(); conflicts != 0 || len(c.Codes()) != 4 {
		t.Errorf("%d calls met another one, and the lock has %d codes", conflicts, len(c.Codes()))
	}
	c.Busy(2)
	_, err := a.PutCode(t.Context(), device, adapter.CodeSpec{Key: "b", Name: "Guest", PIN: "60473"})
	classIs(t, "PutCode at a busy lock", err, adapter.Transient)
	if e := adapter.AsError(err); e.RetryAfter <= 0 || e.RetryAfter > 10*time.Second {
		t.Errorf("a retry is due after %s", e.RetryAfter)
	}
	_, err = a.Codes(t.Context(), device, true)
	classIs(t, "Codes of a busy lock", err, adapter.Transient)
}

// recordingBudget records the priorities of calls.
type recordingBudget struct {
	adapter.Unlimited
	mu         sync.Mutex
	priorities []adapter.Priority
	refused    time.Duration
}

func (b *recordingBudget) Take(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.priorities = append(b.priorities, adapter.PriorityOf(ctx))
	if b.refused > 0 {
		return adapter.Errorf(adapter.Transient, "the vendor refuses calls")
	}
	return nil
}

func (b *recordingBudget) Refused(_ context.Context, retryAfter time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused = retryAfter
}

// Each call counts against the budget with its priority, and the vendor's 429 stops all further calls.
func TestCalls_KeepToTheLimit(t *testing.T) {
	t.Parallel()
	c := tedeetest.Start(t, tedeetest.Options{})
	budget := &recordingBudget{}
	a := open(t, c, false, func(config *tedee.Config) { config.Budget = budget })
	if _, err := a.Devices(t.Context()); err != nil {
		t.Fatal(err)
	}
	device := adapter.DeviceRef(c.Serial)
	if state, err := a.Unlock(t.Context(), device); err != nil || state != adapter.Confirmed {
		t.Fatalf("Unlock: %s, %v", state, err)
	}
	want := slices.Repeat([]adapter.Priority{adapter.PriorityCommand}, 4)
	want[0] = adapter.PriorityDrift
	if calls := c.Calls(); len(calls) != 4 || !slices.Equal(budget.priorities, want) {
		t.Errorf("the calls %q have the priorities %v", calls, budget.priorities)
	}
	c.Limit(1)
	c.AddCode("Guest", "48291")
	_, err := a.Codes(t.Context(), device, true)
	classIs(t, "Codes", err, adapter.Transient)
	if e := adapter.AsError(err); e.RetryAfter != 20*time.Minute || budget.refused != 20*time.Minute {
		t.Errorf("a retry is due after %s; the budget knows %s", e.RetryAfter, budget.refused)
	}
	c.Calls()
	_, err = a.Codes(t.Context(), device, true)
	classIs(t, "Codes", err, adapter.Transient)
	if calls := c.Calls(); len(calls) != 0 {
		t.Errorf("the adapter calls %q after the refusal", calls)
	}
	// What was read before the refusal is not read again.
	c.Limit(-1)
	budget.refused = 0
	codes(t, a, device)
	if calls := c.Calls(); len(calls) != 2 {
		t.Errorf("the read continues with %q", calls)
	}
}

// A lock that a person adds to the account again has another id, and stays the same device.
func TestLock_AddedAgain(t *testing.T) {
	t.Parallel()
	c, a, device := start(t)
	made := put(t, a, device, adapter.CodeSpec{Key: "k", Name: "Guest", PIN: "48291"})
	for what, act := range map[string]func() error{
		"Device": func() error { _, err := a.Device(t.Context(), device); return err },
		"Codes":  func() error { _, err := a.Codes(t.Context(), device, true); return err },
		"PutCode": func() error {
			_, err := a.PutCode(t.Context(), device, adapter.CodeSpec{Ref: made, Name: "Guest", PIN: "59382"})
			return err
		},
		"DeleteCode": func() error { _, err := a.DeleteCode(t.Context(), device, "99"); return err },
		"Lock":       func() error { _, err := a.Lock(t.Context(), device); return err },
		"ConfigureAutoLock": func() error {
			_, err := a.ConfigureAutoLock(t.Context(), device, adapter.AutoLock{})
			return err
		},
	} {
		c.AddAgain()
		if err := act(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if now := c.Codes(); len(now) != 1 || now[0].PIN != "59382" {
		t.Errorf("the lock has %d codes", len(now))
	}
	c.Remove()
	_, err := a.DeleteCode(t.Context(), device, made)
	classIs(t, "DeleteCode at a removed lock", err, adapter.NotFound)
}

// A page of a proxy neither removes locks nor deletes codes.
func TestProxy_RemovesNothing(t *testing.T) {
	t.Parallel()
	c, a, device := start(t)
	c.Proxy()
	_, err := a.Device(t.Context(), device)
	classIs(t, "Device", err, adapter.Transient)
	_, err = a.DeleteCode(t.Context(), device, "1")
	classIs(t, "DeleteCode", err, adapter.Transient)
	_, err = a.PutCode(t.Context(), device, adapter.CodeSpec{Ref: "1", Name: "Guest", PIN: "48291"})
	classIs(t, "PutCode", err, adapter.Transient)
}

// All pages of locks are read, whatever the number of the first one.
func TestDevices_AllPages(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]tedeetest.Options{
		"no pages":      {},
		"pages from 1":  {PageSize: 10},
		"pages from 0":  {PageSize: 10, PagesFromZero: true},
		"one full page": {PageSize: 25},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := tedeetest.Start(t, o)
			for range 24 {
				c.AddLock("Door")
			}
			devices, err := open(t, c, false).Devices(t.Context())
			if err != nil || len(devices) != 25 {
				t.Errorf("%d devices, %v", len(devices), err)
			}
		})
	}
}

func TestCapabilities(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change              tedeetest.Set
		codes, lock, online bool
	}{
		"owner":      {codes: true, lock: true, online: true},
		"admin":      {change: tedeetest.Set{Level: new(1)}, codes: true, lock: true, online: true},
		"guest":      {change: tedeetest.Set{Level: new(0)}, lock: true, online: true},
		"no keypad":  {change: tedeetest.Set{NoKeypad: true}, lock: true, online: true},
		"no bridge":  {change: tedeetest.Set{NoBridge: true}},
		"hotel mode": {change: tedeetest.Set{Async: true}, lock: true, online: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := tedeetest.Start(t, tedeetest.Options{})
			c.Change(test.change)
			a := open(t, c, false)
			d, err := a.Device(t.Context(), adapter.DeviceRef(c.Serial))
			caps := d.Capabilities
			if err != nil || caps.OnlineCodes != test.codes || caps.Lock != test.lock || d.Online != test.online {
				t.Fatalf("%+v, %v", d, err)
			}
			_, err = a.PutCode(t.Context(), d.Ref, adapter.CodeSpec{Name: "Guest", PIN: "48291"})
			if test.codes != (err == nil) || err != nil && adapter.ClassOf(err) != adapter.NotSupported {
				t.Errorf("PutCode: %v", err)
			}
		})
	}
}

// A lock that is not set up says what to do in the app.
func TestLock_NotSetUp(t *testing.T) {
	t.Parallel()
	c, a, device := start(t)
	c.Change(tedeetest.Set{State: new(tedeetest.Uncalibrated)})
	_, err := a.Unlock(t.Context(), device)
	classIs(t, "Unlock of an uncalibrated lock", err, adapter.NotSupported)
	if !strings.Contains(err.Error(), "calibrate it in the Tedee app") {
		t.Errorf("the error says %v", err)
	}
	c.Change(tedeetest.Set{NoKeypad: true}) // since the last list
	_, err = a.Codes(t.Context(), device, true)
	classIs(t, "Codes without a keypad", err, adapter.NotSupported)
}

// The auto-lock setting is written with the current revision, and shows once the lock has it.
func TestConfigureAutoLock(t *testing.T) {
	t.Parallel()
	c, a, device := start(t)
	c.EditElsewhere()
	setting := adapter.AutoLock{Enabled: true, Delay: 90 * time.Second}
	if state, err := a.ConfigureAutoLock(t.Context(), device, setting); err != nil || state != adapter.Accepted {
		t.Fatalf("ConfigureAutoLock: %s, %v", state, err)
	}
	if d, err := a.Device(t.Context(), device); err != nil || d.AutoLock == nil || *d.AutoLock != setting {
		t.Errorf("the device shows %+v, %v", d.AutoLock, err)
	}
	_, err := a.ConfigureAutoLock(t.Context(), device, adapter.AutoLock{Enabled: true, Delay: 1500 * time.Millisecond})
	classIs(t, "half a second", err, adapter.Invalid)
	c.SetOnline(false)
	_, err = a.ConfigureAutoLock(t.Context(), device, setting)
	classIs(t, "an offline lock", err, adapter.Offline)
}

// A change of a code keeps the days of the week, which this server does not know.
func TestPutCode_KeepsDays(t *testing.T) {
	t.Parallel()
	c, a, device := start(t)
	id := c.AddWeekly("Cleaner", "48291", new(31))
	put(t, a, device, adapter.CodeSpec{Ref: ref(id), Name: "Cleaner", PIN: "59382"})
	if now := c.Codes()[0]; now.PIN != "59382" || now.WeekDays == nil || *now.WeekDays != 31 {
		t.Error("the code works on other days")
	}
}

// awaitOperation waits for an operation at the bolt, and skips other events.
func awaitOperation(t *testing.T, a *tedee.Adapter, kind adapter.EventKind) adapter.Event {
	t.Helper()
	timeout := time.After(testenv.Timeout(testenv.WaitTimeout))
	for {
		select {
		case e := <-a.Events():
			if e.Kind == kind {
				return e
			}
		case <-timeout:
			t.Fatalf("no event %s", kind)
		}
	}
}

// The log says who came in, also while no server ran, and also if the lock reports late. Each entry is sent once.
func TestEvents_WhoCameIn(t *testing.T) {
	t.Parallel()
	c := tedeetest.Start(t, tedeetest.Options{})
	kept := &adaptertest.Secrets{}
	shared := func(config *tedee.Config) { config.Secrets = kept }
	a := open(t, c, true, shared)
	device := adapter.DeviceRef(c.Serial)
	codes(t, a, device)
	guest := put(t, a, device, adapter.CodeSpec{Key: "g", Name: "Guest", PIN: "48291"})
	for i, pin := range []string{"59382", "60473"} {
		put(t, a, device, adapter.CodeSpec{Key: strconv.Itoa(i), Name: "Twin", PIN: pin})
	}
	ids := map[string]bool{}
	entered := func(pin string, want adapter.CodeRef) {
		t.Helper()
		c.EnterPIN(pin)
		e := awaitOperation(t, a, adapter.LockOperated)
		if e.Code != want || e.Operation.Method != adapter.ByKeycode || e.Operation.Locked || ids[e.Operation.ID] {
			t.Errorf("the event is %+v, want the code %q", e, want)
		}
		ids[e.Operation.ID] = true
	}
	entered("48291", guest)
	entered("59382", "") // two codes have the name
	c.HideActivity(true)
	c.EnterPIN("48291")
	testenv.Until(t, "the new state", func() bool {
		stored, err := kept.Load(t.Context(), adapter.CursorSecret)
		return err == nil && bytes.Contains(stored, []byte(`"state":2`))
	})
	c.HideActivity(false)
	if e := awaitOperation(t, a, adapter.LockOperated); e.Code != guest || ids[e.Operation.ID] {
		t.Errorf("the late event is %+v", e)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	c.LockByHand()
	next := tedee.New(tedee.Config{
		URL:          c.URL + "/api/" + tedee.APIVersion,
		Key:          tedeetest.Key,
		Secrets:      kept,
		PollInterval: 10 * time.Millisecond,
	})
	t.Cleanup(func() { _ = next.Close() })
	next.Listen()
	for {
		e := awaitOperation(t, next, adapter.LockOperated)
		if e.Operation.Method == adapter.ByHand && e.Operation.Locked && e.Device == device {
			return
		}
	}
}

// Neither errors nor logs show a PIN or the key, whatever the vendor says.
func TestErrors_HideSecrets(t *testing.T) {
	t.Parallel()
	c := tedeetest.Start(t, tedeetest.Options{})
	var logged bytes.Buffer
	echo := roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err == nil && r.Method == http.MethodPost {
			resp.Body.Close()
			resp.StatusCode = http.StatusBadRequest
			message := tedeetest.Key + " may not set 48291"
			resp.Body = body(`{"success":false,"errorMessages":["` + message + `"],"statusCode":400}`)
		}
		return resp, err
	})
	a := open(t, c, false, func(config *tedee.Config) {
		config.HTTP = &http.Client{Transport: echo}
		config.Log = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	spec := adapter.CodeSpec{Key: "k", Name: "Guest", PIN: "48291"}
	_, err := a.PutCode(t.Context(), adapter.DeviceRef(c.Serial), spec)
	classIs(t, "PutCode", err, adapter.Invalid)
	for _, secret := range []string{"48291", tedeetest.Key} {
		if strings.Contains(err.Error()+logged.String(), secret) {
			t.Errorf("the error or the log shows a secret: %d bytes", len(secret))
		}
	}
}

// clock is a clock that a test sets.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// The list of another keypad may have a lower version, so once an hour the adapter asks regardless of it. In the last
// two weeks of a key, it logs a warning once a day.
func TestClock(t *testing.T) {
	t.Parallel()
	c := tedeetest.Start(t, tedeetest.Options{})
	var logged bytes.Buffer
	hands := &clock{at: time.Now()}
	a := open(t, c, false, func(config *tedee.Config) {
		config.Now = hands.now
		config.KeyEnds = hands.at.Add(20 * 24 * time.Hour)
		config.Log = slog.New(slog.NewTextHandler(&logged, nil))
	})
	device := adapter.DeviceRef(c.Serial)
	put(t, a, device, adapter.CodeSpec{Key: "k", Name: "Guest", PIN: "48291"})
	codes(t, a, device)
	c.ChangeCode(c.Codes()[0].ID, "59382")
	c.ResetKeypad()
	hands.advance(2 * time.Hour)
	if codes(t, a, device)[ref(c.Codes()[0].ID)].PIN != "59382" {
		t.Error("the list of the new keypad is not read")
	}
	warnings := func(want int) {
		t.Helper()
		if _, err := a.Devices(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := strings.Count(logged.String(), "ends soon")
		if got != want || strings.Contains(logged.String(), tedeetest.Key) {
			t.Errorf("%d warnings, want %d", got, want)
		}
	}
	warnings(0)
	hands.advance(7 * 24 * time.Hour)
	warnings(1)
	warnings(1)
	hands.advance(25 * time.Hour)
	warnings(2)
}
