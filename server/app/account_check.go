package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// CheckStatus is the outcome of one line of a check.
type CheckStatus string

// Values of CheckStatus.
const (
	CheckOK      CheckStatus = "ok"
	CheckSkipped CheckStatus = "skipped"
	CheckFailed  CheckStatus = "failed"
)

// CheckLine says whether one thing works. It contains no PIN, no name, and no credential.
type CheckLine struct {
	Status CheckStatus
	// Subject is what was tried, such as "codes of front".
	Subject string
	// Result says what was found, or what to do.
	Result string
}

// CheckOptions configures Admin.Check.
type CheckOptions struct {
	// Devices is the maximum number of devices whose codes are read.
	Devices int
	// Transport wraps the HTTP transport of the adapter, for recordings.
	Transport adapter.WrapTransport
	// Report receives each line.
	Report func(CheckLine)
}

// checkTimeout bounds each read of a check. A gateway may wake a lock that sleeps.
const checkTimeout = time.Minute

// check is a running check of an account.
type check struct {
	CheckOptions
	vendor  adapter.Vendor
	account ConnectedAccount
	secrets *passiveSecrets
	calls   atomic.Int64 // over HTTP
	taken   atomic.Int64 // of the budget
}

// Check reads an account at its vendor and reports what works. It writes to no device, creates no subscription, and
// stores no cursor, so that a running server is not disturbed. Its calls count against the vendor's limit. It renews a
// login that has expired. The error is about the check; the lines say what does not work.
func (a *Admin) Check(ctx context.Context, account ConnectedAccount, o CheckOptions) error {
	vendor, ok := a.Connecting.vendorOf(account.Adapter)
	if !ok || account.Connection == nil {
		return fmt.Errorf("account %s is simulated: there is nothing to check", account.ID)
	}
	k := &check{CheckOptions: o, vendor: vendor, account: account}
	env := a.checkEnv(k)
	switch c := account.Connection.(type) {
	case adapter.DeviceConnection:
		k.devices(ctx, c, env)
	case adapter.SystemConnection:
		k.systems(ctx, c, env)
	}
	if err := k.reportCalls(ctx, a); err != nil {
		return err
	}
	k.ok("tested", "%s", vendor.Verification.String())
	return nil
}

// checkEnv returns the environment of the account in a server, without pushes.
func (a *Admin) checkEnv(k *check) adapter.Env {
	v := &vendors{
		access:     a.Access,
		connecting: a.Connecting,
		renewals:   newRenewals(),
		log:        slog.New(slog.DiscardHandler),
	}
	env := v.env(k.vendor, k.account.Account, k.account.Connection)
	env.PushURLs = nil
	k.secrets = &passiveSecrets{Secrets: env.Secrets, stored: map[string][]byte{}}
	env.Secrets = k.secrets
	env.Budget = &countedBudget{Budget: env.Budget, taken: &k.taken}
	env.Transport = func(next http.RoundTripper) http.RoundTripper {
		return &countedTransport{k.Transport.Wrap(next), &k.calls}
	}
	return env
}

func (k *check) ok(subject, format string, args ...any) {
	k.Report(CheckLine{CheckOK, subject, fmt.Sprintf(format, args...)})
}

func (k *check) skip(subject, format string, args ...any) {
	k.Report(CheckLine{CheckSkipped, subject, fmt.Sprintf(format, args...)})
}

// fail reports an error of an adapter, and what to do.
func (k *check) fail(subject string, err error) {
	message, advice := "", "try again"
	e := adapter.AsError(err)
	switch {
	case errors.Is(err, context.Canceled):
		message = "the check was interrupted"
	case e == nil && errors.Is(err, context.DeadlineExceeded):
		message = fmt.Sprintf("no answer within %s", checkTimeout)
	case e == nil:
		message = "the adapter cannot read: " + adapter.Reason(err)
	default:
		message = e.Message
	}
	switch {
	case e != nil && e.Class == adapter.AuthRevoked:
		advice = "enter the login again with `accounts update " + k.account.ID.String() + "`, or on a connect page"
	case e != nil && e.Class == adapter.GatewayDown:
		advice = "check that this machine can reach " + k.account.Connection.Address()
	case e != nil && e.RetryAfter > 0:
		advice = "try again in " + e.RetryAfter.Round(time.Second).String()
	case e != nil && !e.Class.Retryable():
		advice = "report this with a recording (--record)"
	}
	k.Report(CheckLine{CheckFailed, subject, message + "; " + advice})
}

// devices checks an account of devices.
func (k *check) devices(ctx context.Context, c adapter.DeviceConnection, env adapter.Env) {
	a, err := c.Open(ctx, env)
	if err != nil {
		k.fail("login", err)
		return
	}
	defer a.Close() //nolint:errcheck // everything was read
	reading, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	all, err := a.Devices(reading)
	if err != nil {
		k.fail("login", err)
		return
	}
	k.ok("login", "the vendor answers at %s", c.Address())
	online := 0
	for _, d := range all {
		if d.Online {
			online++
		}
	}
	k.ok("devices", "%d, %d online", len(all), online)
	for i, d := range all {
		if i == k.Devices {
			k.skip("other devices", "%d more; --devices reads more of them", len(all)-i)
			break
		}
		k.device(ctx, a, d)
	}
	k.pushes(ctx, a)
}

// device checks one device.
func (k *check) device(ctx context.Context, a adapter.Adapter, d adapter.Device) {
	of := " of " + string(d.Ref)
	k.ok("capabilities"+of, "%s", capabilityNames(d.Capabilities))
	subject := "codes" + of
	switch {
	case d.Capabilities.Thermostat != nil || d.Capabilities.NoiseSensor != nil || !d.Capabilities.OnlineCodes:
		return
	case !d.Capabilities.ListCodes:
		k.skip(subject, "the device cannot list its codes")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	codes, err := a.Codes(ctx, d.Ref, false)
	switch e := adapter.AsError(err); {
	case err == nil && codes.Stale:
		k.ok(subject, "%d, from a copy that the device has not confirmed", len(codes.Codes))
	case err == nil:
		k.ok(subject, "%d", len(codes.Codes))
	case e != nil && (e.Class == adapter.Offline || e.Class == adapter.NotSupported):
		k.skip(subject, "%s", e.Message)
	default:
		k.fail(subject, err)
	}
}

// capabilityNames describes capabilities in the words of the API.
func capabilityNames(can capability.Set) string {
	var names []string
	for _, one := range []struct {
		can  bool
		name string
	}{
		{can.Lock, "lock"},
		{can.Unlock, "unlock"},
		{can.AutoLock, "auto-lock"},
		{can.OnlineCodes, "online codes"},
		{can.OfflineCodes, "offline codes"},
		{can.NativeSchedule, "time frames"},
		{can.PINVisible, "readable PINs"},
		{can.Thermostat != nil, "thermostat"},
		{can.NoiseSensor != nil, "noise sensor"},
	} {
		if one.can {
			names = append(names, one.name)
		}
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}

// pushes reports how events arrive.
func (k *check) pushes(ctx context.Context, a adapter.Adapter) {
	const subject = "pushes"
	subscription, err := k.secrets.Load(ctx, adapter.SubscriptionSecret)
	if err != nil {
		k.fail(subject, err)
		return
	}
	_, receives := a.(interface {
		Receive(http.ResponseWriter, *http.Request)
	})
	_, gateway := k.account.Connection.(adapter.Stranger)
	switch {
	case k.vendor.AppPush != nil:
		k.ok(subject, "the vendor sends them to the URL that `accounts push-url %s` shows", k.vendor.Adapter)
	case subscription != nil:
		k.ok(subject, "a subscription is stored")
	case receives:
		k.ok(subject, "no subscription is stored; a running server subscribes, or polls")
	case gateway:
		k.ok(subject, "events arrive over the connection to the gateway")
	default:
		k.ok(subject, "none; the server polls")
	}
}

// systems checks an account of access systems.
func (k *check) systems(ctx context.Context, c adapter.SystemConnection, env adapter.Env) {
	a, err := c.OpenSystems(ctx, env)
	if err != nil {
		k.fail("login", err)
		return
	}
	defer a.Close() //nolint:errcheck // everything was read
	reading, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	all, err := a.Systems(reading)
	if err != nil {
		k.fail("login", err)
		return
	}
	k.ok("login", "the vendor answers at %s", c.Address())
	k.ok("systems", "%d", len(all))
	for i, s := range all {
		if i == k.Devices {
			k.skip("other systems", "%d more; --devices reads more of them", len(all)-i)
			break
		}
		k.system(ctx, a, s)
	}
}

func (k *check) system(ctx context.Context, a adapter.AccessSystems, s adapter.AccessSystem) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	subject := "content of " + string(s.Ref)
	content, err := a.ReadSystem(ctx, s.Ref)
	switch e := adapter.AsError(err); {
	case err == nil:
		k.ok(
			subject,
			"%d users, %d groups, %d entrances",
			len(content.Users),
			len(content.Groups),
			len(content.Entrances),
		)
	case e != nil && e.Class == adapter.Offline:
		k.skip(subject, "%s", e.Message)
	default:
		k.fail(subject, err)
	}
}

// reportCalls reports how many calls the check needed, and what the vendor's limit leaves.
func (k *check) reportCalls(ctx context.Context, a *Admin) error {
	calls := max(k.calls.Load(), k.taken.Load())
	left, err := a.callsLeft(ctx, k.account.Account)
	switch {
	case err != nil:
		return err
	case left != "":
		k.ok("calls", "%d; the vendor's limit leaves %s", calls, left)
	case calls > 0:
		k.ok("calls", "%d", calls)
	}
	return nil
}

// passiveSecrets are the secrets of an account of which only the login changes.
type passiveSecrets struct {
	adapter.Secrets
	mu     sync.Mutex
	stored map[string][]byte
}

// Load implements adapter.Secrets.
func (s *passiveSecrets) Load(ctx context.Context, name string) ([]byte, error) {
	s.mu.Lock()
	value, ok := s.stored[name]
	s.mu.Unlock()
	if ok {
		return value, nil
	}
	return s.Secrets.Load(ctx, name)
}

// Store implements adapter.Secrets. A cursor would make the server skip events.
func (s *passiveSecrets) Store(ctx context.Context, name string, value []byte) error {
	if name == adapter.CredentialsSecret {
		return s.Secrets.Store(ctx, name, value)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stored[name] = value
	return nil
}

// countedBudget counts the calls that a budget admits.
type countedBudget struct {
	adapter.Budget
	taken *atomic.Int64
}

// Take implements adapter.Budget.
func (b *countedBudget) Take(ctx context.Context) error {
	err := b.Budget.Take(ctx)
	if err == nil {
		b.taken.Add(1)
	}
	return err
}

// countedTransport counts requests.
type countedTransport struct {
	next  http.RoundTripper
	calls *atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (t *countedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	t.calls.Add(1)
	return t.next.RoundTrip(r)
}
