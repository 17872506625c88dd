package nuki_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/nuki"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/nuki/nukitest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// open returns an adapter that polls nothing.
func open(t *testing.T, cloud *nukitest.Server, change ...func(*nuki.Config)) *nuki.Adapter {
	t.Helper()
	c := nuki.Config{
		BaseURL: cloud.URL,
		Token:   nukitest.Token,
		HTTP:    vendorhttp.New(adapter.Env{}),
		Secrets: &adaptertest.Secrets{},
		Timing:  quick(),
	}
	for _, f := range change {
		f(&c)
	}
	a := nuki.New(c)
	t.Cleanup(func() { _ = a.Close() })
	return a
}

func put(t *testing.T, a *nuki.Adapter, device adapter.DeviceRef, spec adapter.CodeSpec) {
	t.Helper()
	made, err := a.PutCode(t.Context(), device, spec)
	if err != nil || made.Ref == "" {
		t.Fatalf("PutCode: ref %q, %v", made.Ref, err)
	}
}

// A created code that the list shows late is not sent again, although the vendor would accept it twice. A code that never
// shows is sent again after a while.
func TestCreation_ShowsLateOrNever(t *testing.T) {
	t.Parallel()
	cloud := nukitest.Start(t, nukitest.Options{ListLag: 8, AcceptDuplicates: true})
	device := deviceRef(cloud.Lock())
	late := open(t, cloud, func(c *nuki.Config) { c.Timing.Resend = time.Hour })
	spec := adapter.CodeSpec{Key: "one", Name: "Guest", PIN: "583926"}
	unconfirmed := 0
	var made adapter.PutResult
	testenv.Until(t, "the code", func() bool {
		var err error
		made, err = late.PutCode(t.Context(), device, spec)
		if e := adapter.AsError(err); e != nil && (e.Class != adapter.Unconfirmed || e.RetryAfter <= 0) {
			t.Fatal(err)
		}
		if err != nil {
			unconfirmed++
		}
		return err == nil
	})
	codes := cloud.Lock().Codes()
	if unconfirmed == 0 || len(codes) != 1 || codes[0].ID != string(made.Ref) {
		t.Errorf("after %d looks, the lock has %d codes", unconfirmed, len(codes))
	}
	if n := cloud.Requests("PUT /smartlock/{id}/auth"); n != 1 {
		t.Errorf("the code was sent %d times", n)
	}

	cloud.DropNext()
	spec = adapter.CodeSpec{Key: "two", Name: "Other", PIN: "738495"}
	lost := open(t, cloud)
	testenv.Until(t, "the lost code", func() bool {
		_, err := lost.PutCode(t.Context(), device, spec)
		return err == nil
	})
	if n := cloud.Requests("PUT /smartlock/{id}/auth"); n < 3 {
		t.Errorf("both codes were sent %d times", n)
	}
}

// Changes keep the restrictions that others have set, and enable a disabled code. A write while an earlier one is on its
// way is refused for now. A code that was added at the lock shows after its synchronization. A deletion counts once the
// list lacks the code.
func TestCodes_OfOthers(t *testing.T) {
	t.Parallel()
	cloud := nukitest.Start(t, nukitest.Options{BusyReads: 2})
	lock, device := cloud.Lock(), deviceRef(cloud.Lock())
	a := open(t, cloud)
	id := lock.AddCodeAtLock(t, "Cleaner", "583926")
	if codes, err := a.Codes(t.Context(), device, true); err != nil || len(codes.Codes) != 0 {
		t.Fatalf("before the synchronization: %d codes, %v", len(codes.Codes), err)
	}
	lock.Sync()
	lock.LimitCode(t, id, 64, false)
	codes, err := a.Codes(t.Context(), device, true)
	if err != nil || len(codes.Codes) != 1 || !codes.Codes[0].Disabled || codes.Codes[0].PIN != "583926" {
		t.Fatalf("after the synchronization: %d codes, %v", len(codes.Codes), err)
	}
	starts := time.Now().Add(time.Hour).Truncate(time.Second)
	ends := starts.Add(time.Hour)
	spec := adapter.CodeSpec{
		Ref:      adapter.CodeRef(id),
		Name:     "Cleaner",
		PIN:      "738495",
		StartsAt: &starts,
		EndsAt:   &ends,
	}
	put(t, a, device, spec)
	got := lock.Codes()[0]
	if got.PIN != "738495" || got.WeekDays != 64 || !got.Enabled || got.From == nil || !got.From.Equal(starts) {
		t.Errorf("the changed code is restricted to %d from %v", got.WeekDays, got.From)
	}
	_, err = a.PutCode(t.Context(), device, spec)
	if e := adapter.AsError(err); e == nil || e.Class != adapter.Transient || e.RetryAfter <= 0 {
		t.Errorf("a write while another is on its way: %v", err)
	}
	testenv.Until(t, "the end of the operation", func() bool {
		codes, err := a.Codes(t.Context(), device, true)
		return err == nil && codes.Codes[0].State == adapter.Confirmed
	})
	for _, want := range []adapter.State{adapter.Accepted, adapter.Confirmed} {
		if state, err := a.DeleteCode(t.Context(), device, adapter.CodeRef(id)); err != nil || state != want {
			t.Errorf("DeleteCode: %q, %v", state, err)
		}
	}
}

// budget records refusals.
type budget struct {
	adapter.Unlimited
	mu      sync.Mutex
	refused []time.Duration
}

func (b *budget) Refused(_ context.Context, after time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused = append(b.refused, after)
}

// Each status has its class, and says what to do. No message and no line of the log shows the token or a PIN.
func TestRefusals(t *testing.T) {
	t.Parallel()
	cloud := nukitest.Start(t, nukitest.Options{})
	device := deviceRef(cloud.Lock())
	var log bytes.Buffer
	limit := &budget{}
	a := open(t, cloud, func(c *nuki.Config) {
		c.Budget = limit
		c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	spec := adapter.CodeSpec{Key: "one", Name: "Guest", PIN: "583926"}
	for status, want := range map[int]struct {
		class adapter.Class
		text  string
	}{
		http.StatusUnauthorized:    {adapter.AuthRevoked, "password"},
		http.StatusPaymentRequired: {adapter.Transient, "plan"},
		http.StatusForbidden:       {adapter.AuthRevoked, "right"}, // also for the list of locks
		http.StatusLocked:          {adapter.Transient, "earlier change"},
		http.StatusTooManyRequests: {adapter.Transient, "limits"},
		http.StatusBadGateway:      {adapter.Transient, "502"},
	} {
		cloud.Answer(status)
		_, err := a.PutCode(t.Context(), device, spec)
		e := adapter.AsError(err)
		if e == nil || e.Class != want.class || !strings.Contains(e.Message, want.text) {
			t.Errorf("%d: %v", status, err)
		}
		if strings.Contains(fmt.Sprint(err), nukitest.Token) {
			t.Errorf("%d: the error shows the token", status)
		}
		if status == http.StatusTooManyRequests && e.RetryAfter != 2*time.Minute {
			t.Errorf("429: retry after %s", e.RetryAfter)
		}
	}
	cloud.Heal()
	if !slices.Equal(limit.refused, []time.Duration{2 * time.Minute}) {
		t.Errorf("the budget heard of %v", limit.refused)
	}
	for _, class := range []adapter.Class{adapter.Invalid, adapter.Duplicate} { // the fake quotes the PIN
		cloud.Fail(class)
		_, err := a.PutCode(t.Context(), device, spec)
		if adapter.ClassOf(err) != class || strings.Contains(fmt.Sprint(err), spec.PIN) {
			t.Errorf("%s: class %s", class, adapter.ClassOf(err))
		}
		cloud.Heal()
	}
	cloud.Lock().SetServerState(2)
	if _, err := a.Unlock(t.Context(), device); adapter.ClassOf(err) != adapter.Offline ||
		!strings.Contains(err.Error(), "owner") {
		t.Errorf("a lock that the owner must connect again: %v", err)
	}
	if text := log.String(); strings.Contains(text, nukitest.Token) || strings.Contains(text, spec.PIN) {
		t.Error("the log shows the token or the PIN")
	}
}

// Reading all locks for drift takes two calls. Openers and locks without a keypad have no codes.
func TestDrift_SharesTheLists(t *testing.T) {
	t.Parallel()
	cloud := nukitest.Start(t, nukitest.Options{})
	for i := range 20 {
		cloud.AddLock(fmt.Sprintf("Room %d", i)).AddCode(t, "Guest", fmt.Sprint(311111+i))
	}
	opener := cloud.AddDevice("Opener", 2, true)
	bare := cloud.AddDevice("Cellar", 0, false)
	a := open(t, cloud, func(c *nuki.Config) { c.Timing.Shared = time.Hour })
	devices, err := a.Devices(t.Context())
	if err != nil || len(devices) != 22 {
		t.Fatalf("%d devices, %v", len(devices), err)
	}
	var all sync.WaitGroup
	for _, d := range devices {
		if d.Ref == deviceRef(bare) {
			continue
		}
		all.Go(func() {
			if codes, err := a.Codes(t.Context(), d.Ref, true); err != nil || len(codes.Codes) > 1 {
				t.Errorf("%s: %d codes, %v", d.Name, len(codes.Codes), err)
			}
		})
	}
	all.Wait()
	for pattern, want := range map[string]int{
		"GET /smartlock": 1, "GET /smartlock/auth": 1, "GET /smartlock/{id}": 0, "GET /smartlock/{id}/auth": 0,
	} {
		if n := cloud.Requests(pattern); n != want {
			t.Errorf("%s was called %d times", pattern, n)
		}
	}
	if _, err := a.Device(t.Context(), deviceRef(opener)); adapter.ClassOf(err) != adapter.NotFound {
		t.Errorf("an Opener: %v", err)
	}
	if _, err := a.Codes(t.Context(), deviceRef(bare), true); adapter.ClassOf(err) != adapter.NotSupported {
		t.Errorf("codes without a keypad: %v", err)
	}
	// A write makes the lists invalid.
	put(t, a, devices[0].Ref, adapter.CodeSpec{Key: "k", Name: "Guest", PIN: "583926"})
	if codes, err := a.Codes(t.Context(), devices[0].Ref, true); err != nil || len(codes.Codes) != 1 {
		t.Errorf("after a write: %d codes, %v", len(codes.Codes), err)
	}
	confirm := adapter.WithPriority(t.Context(), adapter.PriorityConfirm)
	if _, err := a.Codes(confirm, devices[0].Ref, true); err != nil || cloud.Requests("GET /smartlock/{id}/auth") == 0 {
		t.Errorf("a read that confirms a write is answered by the list of the account: %v", err)
	}
}

func TestAutoLock_KeepsTheRest(t *testing.T) {
	t.Parallel()
	cloud := nukitest.Start(t, nukitest.Options{})
	device := deviceRef(cloud.Lock())
	a := open(t, cloud)
	for _, setting := range []adapter.AutoLock{{Enabled: true, Delay: 90 * time.Second}, {Delay: 90 * time.Second}} {
		if _, err := a.ConfigureAutoLock(t.Context(), device, setting); err != nil { // the fake checks the rest
			t.Fatal(err)
		}
		d, err := a.Device(t.Context(), device)
		if err != nil || d.AutoLock == nil || *d.AutoLock != setting {
			t.Errorf("the setting is %+v, %v", d.AutoLock, err)
		}
	}
	_, err := a.ConfigureAutoLock(t.Context(), device, adapter.AutoLock{Enabled: true, Delay: time.Hour})
	if adapter.ClassOf(err) != adapter.Invalid {
		t.Errorf("a delay of an hour: %v", err)
	}
}

// A poller that starts again reports what happened meanwhile, once, also when the log has several pages.
func TestPoll_ContinuesAtTheCursor(t *testing.T) {
	t.Parallel()
	cloud := nukitest.Start(t, nukitest.Options{})
	stored := &adaptertest.Secrets{}
	start := func() *nuki.Adapter {
		a := open(t, cloud, func(c *nuki.Config) { c.Secrets = stored })
		a.Listen()
		if e := <-a.Events(); e.Kind != adapter.Resync {
			t.Fatalf("the first event is %+v", e)
		}
		return a
	}
	a := start()
	testenv.Until(t, "the cursor", func() bool {
		cursor, err := stored.Load(t.Context(), adapter.CursorSecret)
		return err == nil && len(cursor) > 0
	})
	_ = a.Close()
	cloud.Lock().AddCode(t, "Guest", "583926")
	const entries = 130
	for range entries {
		cloud.Lock().EnterPIN("583926")
	}
	a = start()
	seen := map[string]int{}
	deadline := time.After(testenv.Timeout(testenv.WaitTimeout))
	for len(seen) < entries {
		select {
		case e := <-a.Events():
			if e.Kind == adapter.LockOperated {
				seen[e.Operation.ID]++
			}
		case <-deadline:
			t.Fatalf("%d of %d entries arrived", len(seen), entries)
		}
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("the entry %s arrived %d times", id, n)
		}
	}
}

// loggedIn is an account that was connected by a login on the vendor's pages.
type loggedIn struct {
	t          *testing.T
	cloud      *nukitest.Server
	stored     *adaptertest.Secrets
	receiver   *receiver
	connection adapter.DeviceConnection
	env        adapter.Env
}

func logIn(t *testing.T) *loggedIn {
	t.Helper()
	client := adapter.Client{ID: "our-id", Secret: "our-secret"}
	l := &loggedIn{
		t:        t,
		cloud:    nukitest.Start(t, nukitest.Options{Client: client, RepeatPushes: true}),
		stored:   &adaptertest.Secrets{},
		receiver: newReceiver(t),
		env:      adapter.Env{Client: client, Log: slog.New(slog.DiscardHandler)},
	}
	vendor := l.cloud.Vendor(nuki.Timing{Poll: time.Hour, PollCodes: time.Hour, Shared: 1})
	c, err := vendor.Login.OAuth.Connect(l.cloud.LogIn())
	if err != nil {
		t.Fatal(err)
	}
	found, err := c.Check(t.Context(), l.env)
	if err != nil || found.Username != "4711" || len(found.Credentials) == 0 {
		t.Fatalf("Check: %q, %v", found.Username, err)
	}
	if err := l.stored.Store(t.Context(), adapter.CredentialsSecret, found.Credentials); err != nil {
		t.Fatal(err)
	}
	l.connection, l.env.Secrets = c.(adapter.DeviceConnection), l.stored
	l.env.PushURLs = func(context.Context) ([]string, error) {
		return []string{l.receiver.URL + "/vendors/a/secret", l.receiver.URL + "/vendors/a/former"}, nil
	}
	return l
}

// open opens the account, as the server does after a restart.
func (l *loggedIn) open() *nuki.Adapter {
	l.t.Helper()
	opened, err := l.connection.Open(l.t.Context(), l.env)
	if err != nil {
		l.t.Fatal(err)
	}
	a := opened.(*nuki.Adapter)
	l.t.Cleanup(func() { _ = a.Close() })
	l.receiver.set(a.Receive)
	return a
}

type subscription struct {
	ID     string `json:"id"`
	Secret string `json:"secret"`
}

// subscription waits until the account has one subscription, other than a former one, and returns it.
func (l *loggedIn) subscription(former subscription) (w subscription) {
	l.t.Helper()
	testenv.Until(l.t, "the subscription", func() bool {
		data, err := l.stored.Load(l.t.Context(), adapter.SubscriptionSecret)
		return err == nil && json.Unmarshal(data, &w) == nil && w != former && len(l.cloud.Webhooks()) == 1
	})
	return w
}

// A login receives signed pushes, which have PINs in clear. Pushes that are not signed are refused. A restart keeps the
// subscription, and a lost one is replaced.
func TestLogin_ReceivesPushes(t *testing.T) {
	t.Parallel()
	l := logIn(t)
	lock, device := l.cloud.Lock(), deviceRef(l.cloud.Lock())
	a := l.open()
	first := l.subscription(subscription{})
	code := lock.AddCode(t, "Guest", "583926")
	awaitEvent(t, a, func(e adapter.Event) bool {
		return e.Kind == adapter.CodesChanged && e.Device == device && string(e.Code) == code
	})
	lock.EnterPIN("583926")
	awaitEvent(t, a, func(e adapter.Event) bool {
		return e.Kind == adapter.LockOperated && string(e.Code) == code && e.Operation.Method == adapter.ByKeycode
	})
	lock.SetOnline(false)
	awaitEvent(t, a, func(e adapter.Event) bool { return e.Kind == adapter.DeviceOffline })
	lock.SetOnline(true)

	body := `{"feature":"DEVICE_AUTHS","smartlockAuth":{"code":583926}}`
	for signature, want := range map[string]int{
		"":                                   http.StatusUnauthorized,
		nukitest.Sign("wrong", []byte(body)): http.StatusUnauthorized,
		nukitest.Sign(first.Secret, []byte(body)): http.StatusNoContent,
	} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("X-Nuki-Signature-SHA256", signature)
		w := httptest.NewRecorder()
		if a.Receive(w, r); w.Code != want {
			t.Errorf("a push is answered with %d, want %d", w.Code, want)
		}
	}

	_ = a.Close()
	a = l.open() // with the stored subscription
	lock.SetOnline(false)
	awaitEvent(t, a, func(e adapter.Event) bool { return e.Device == device })
	if again := l.subscription(subscription{}); again != first {
		t.Error("a restart has replaced the subscription")
	}
	_ = a.Close()
	l.cloud.DropWebhooks()
	l.open()
	l.subscription(first)
}

// An expired token is renewed once, by a refresh token that works once. Tokens that the vendor has revoked end the login.
func TestLogin_RenewsTokens(t *testing.T) {
	t.Parallel()
	l := logIn(t)
	a := l.open()
	for range 2 {
		before := l.cloud.Requests("POST /oauth/token")
		l.cloud.Expire()
		if _, err := a.Devices(t.Context()); err != nil {
			t.Errorf("with an expired token: %v", err)
		}
		if n := l.cloud.Requests("POST /oauth/token"); n != before+1 {
			t.Errorf("the tokens were renewed %d times", n-before)
		}
	}
	l.cloud.Revoke()
	if _, err := a.Devices(t.Context()); adapter.ClassOf(err) != adapter.AuthRevoked {
		t.Errorf("with revoked tokens: %v", err)
	}
}

func awaitEvent(t *testing.T, a *nuki.Adapter, is func(adapter.Event) bool) {
	t.Helper()
	deadline := time.After(testenv.Timeout(testenv.WaitTimeout))
	for {
		select {
		case e := <-a.Events():
			if is(e) {
				return
			}
		case <-deadline:
			t.Fatal("the event does not arrive")
		}
	}
}

// receiver is a server for pushes.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	receive http.HandlerFunc
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		receive := r.receive
		r.mu.Unlock()
		receive(w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) set(h http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.receive = h
}

// A token without the right to read the log still shows changes, and does not read everything again with each poll.
func TestPoll_WithoutTheLog(t *testing.T) {
	t.Parallel()
	cloud := nukitest.Start(t, nukitest.Options{ForbidLog: true})
	a := open(t, cloud)
	a.Listen()
	if e := <-a.Events(); e.Kind != adapter.Resync {
		t.Fatalf("the first event is %+v", e)
	}
	testenv.Until(t, "several polls", func() bool { return cloud.Requests("GET /smartlock/log") > 3 })
	cloud.Lock().AddCode(t, "Guest", "583926")
	awaitEvent(t, a, func(e adapter.Event) bool {
		if e.Kind == adapter.Resync {
			t.Fatal("a poll asks to read everything again")
		}
		return e.Kind == adapter.CodesChanged
	})
}
