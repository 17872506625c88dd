// Package nuki implements adapter.Adapter for the Nuki Web API (https://api.nuki.io). An account is an API token of one
// Nuki Web account, or a login on Nuki's pages. The package follows docs.nuki.io and answers of Nuki's staff on
// developer.nuki.io. It was never tried against the vendor.
//
// Nuki stores writes and forwards them: 204 means that the cloud has accepted a write, and nothing reports a write that
// the lock never gets. A creation returns no identifier. The adapter therefore finds a new code in the list by its PIN,
// and remembers creations that the list does not show yet, so that a repeated creation never makes a second code.
//
// Where the documentation is silent, the package decides:
//
//   - A PIN is unique on one lock. Staff says so; a public program claims that it is unique in the account.
//   - A code in the list without an operationId is on the lock.
//   - The dates of a time frame are UTC. A name has at most 20 characters, not bytes.
//   - Restrictions to days of the week or hours that others have set stay when a code changes.
//   - 403 for a write means that the token lacks a right. 402 may end when a plan is paid. HTML is a page of a proxy.
//   - Locks of the types 4 and 5 hold 200 codes, and all others 100. A refusal of a full lock is not documented.
//   - The authId of a log entry is the id of the authorization. The state 224 is a wrong PIN, as in the Bluetooth API.
//   - No limit of calls is published. The adapter keeps to CallsPerHour and polls once a minute.
//   - Openers and virtual devices are not listed.
package nuki

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/subscription"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
)

// Config configures New.
type Config struct {
	// BaseURL is the URL of the API.
	BaseURL string
	// Token is an API token; empty with Tokens.
	Token string
	// Tokens are the tokens of a login on Nuki's pages; nil with Token.
	Tokens *adapter.TokenSource
	// HTTP is a client of vendorhttp.New.
	HTTP *http.Client
	// Budget counts the calls; nil: unlimited.
	Budget adapter.Budget
	// Secrets stores the cursor of the log and the subscription, for Listen and Receive.
	Secrets adapter.Secrets
	// PushURLs returns the URLs of Receive, the current one first; nil: no pushes.
	PushURLs func(ctx context.Context) ([]string, error)
	// Log defaults to no logging.
	Log *slog.Logger
	// Timing is for tests; its zero value is for production.
	Timing Timing
}

// Timing holds the intervals of the adapter.
type Timing struct {
	// Poll is the interval between reads of the states and of the log. The default is one minute.
	Poll time.Duration
	// PollCodes is the interval between reads of the codes of all locks. The default is five minutes.
	PollCodes time.Duration
	// Shared is how old a list of the whole account may be to answer for one of its locks. The default is 5 s.
	Shared time.Duration
	// ReadBack are the pauses before reads that look for a created code. The default is 0, 1, 2, and 3 s.
	ReadBack []time.Duration
	// Resend is how long a created code may be missing before it is sent again. The default is ten minutes.
	Resend time.Duration
	// Busy is the pause after the vendor refused a write because of an earlier one. The default is 3 s.
	Busy time.Duration
}

func (t Timing) withDefaults() Timing {
	t.Poll = cmp.Or(t.Poll, time.Minute)
	t.PollCodes = cmp.Or(t.PollCodes, 5*time.Minute)
	t.Shared = cmp.Or(t.Shared, 5*time.Second)
	if t.ReadBack == nil {
		t.ReadBack = []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second}
	}
	t.Resend = cmp.Or(t.Resend, 10*time.Minute)
	t.Busy = cmp.Or(t.Busy, 3*time.Second)
	return t
}

// Adapter accesses the locks of one account.
type Adapter struct {
	client   *vendorhttp.Client
	apiToken string
	tokens   *adapter.TokenSource
	secrets  adapter.Secrets
	slog     *slog.Logger
	timing   Timing

	events  *adapter.EventQueue
	devices sharedList[wireLock]
	auths   sharedList[wireAuth]
	made    creations
	seen    observed
	polls   polls
	hook    subscription.Subscription
	pushes  *rate.Limiter

	open context.Context // ends with Close
	shut context.CancelFunc
}

var (
	_ adapter.Adapter    = (*Adapter)(nil)
	_ adapter.Locker     = (*Adapter)(nil)
	_ adapter.AutoLocker = (*Adapter)(nil)
)

// New returns an adapter. It sends nothing.
func New(c Config) *Adapter {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	open, shut := context.WithCancel(context.Background())
	a := &Adapter{
		apiToken: c.Token,
		tokens:   c.Tokens,
		secrets:  c.Secrets,
		slog:     c.Log,
		timing:   c.Timing.withDefaults(),
		events:   adapter.NewEventQueue(),
		pushes:   rate.NewLimiter(pushesPerSecond, pushBurst),
		open:     open,
		shut:     shut,
	}
	a.client = &vendorhttp.Client{
		Adapter:   Name,
		Base:      strings.TrimRight(c.BaseURL, "/"),
		HTTP:      c.HTTP,
		Log:       c.Log,
		Budget:    c.Budget,
		Words:     []string{"smartlock", "auth", "log", "action", "advanced", "config", "api", "decentralWebhook"},
		Authorize: a.authorize,
		Secret:    c.Token,
	}
	a.hook = subscription.Subscription{
		URLs:     c.PushURLs,
		Secrets:  c.Secrets,
		Log:      c.Log,
		List:     a.listHooks,
		Create:   a.createHook,
		Delete:   a.deleteHook,
		IsSigned: isSigned,
		MaxPush:  pushLimit,
	}
	a.devices.fetch = a.listLocks
	a.auths.fetch = a.listAuths
	return a
}

// Devices implements adapter.Adapter. It omits Openers and virtual devices.
func (a *Adapter) Devices(ctx context.Context) ([]adapter.Device, error) {
	return a.devicesSince(ctx, a.timing.Shared)
}

// devicesSince lists the devices, from a list that is at most maxAge old.
func (a *Adapter) devicesSince(ctx context.Context, maxAge time.Duration) ([]adapter.Device, error) {
	list, err := a.devices.read(ctx, maxAge)
	if err != nil {
		return nil, err
	}
	out := make([]adapter.Device, 0, len(list))
	for _, w := range list {
		out = append(out, w.device())
	}
	return out, nil
}

// Device implements adapter.Adapter.
func (a *Adapter) Device(ctx context.Context, device adapter.DeviceRef) (adapter.Device, error) {
	w, err := a.lock(ctx, device)
	if err != nil {
		return adapter.Device{}, err
	}
	return w.device(), nil
}

// Codes implements adapter.Adapter. A read that looks for drift may use a list of all locks of the account that is a few
// seconds old, so that reading all locks takes two calls. All others read the lock itself.
func (a *Adapter) Codes(ctx context.Context, device adapter.DeviceRef, fresh bool) (adapter.Codes, error) {
	shared := adapter.PriorityOf(ctx) == adapter.PriorityDrift
	w, err := a.lockFor(ctx, device, shared)
	switch {
	case err != nil:
		return adapter.Codes{}, err
	case !w.hasKeypad():
		return adapter.Codes{}, errNoKeypad()
	case fresh && !w.isOnline():
		return adapter.Codes{}, w.offline()
	}
	var list []wireAuth
	if shared {
		all, err := a.auths.read(ctx, a.timing.Shared)
		if err != nil {
			return adapter.Codes{}, err
		}
		for _, one := range all {
			if one.SmartlockID == w.ID {
				list = append(list, one)
			}
		}
	} else if list, err = a.authsOf(ctx, w.ID); err != nil {
		return adapter.Codes{}, err
	}
	out := adapter.Codes{Codes: []adapter.Code{}, SerialNumber: w.serial(), Stale: !w.isOnline()}
	for _, one := range list {
		out.Codes = append(out.Codes, one.code())
	}
	return out, nil
}

// lockFor is lock, or reads the shared list of the account.
func (a *Adapter) lockFor(ctx context.Context, device adapter.DeviceRef, shared bool) (wireLock, error) {
	if shared {
		list, err := a.devices.read(ctx, a.timing.Shared)
		if err != nil {
			return wireLock{}, err
		}
		if i := slices.IndexFunc(list, func(w wireLock) bool { return w.ref() == device }); i >= 0 {
			return list[i], nil
		}
	}
	return a.lock(ctx, device)
}

// lock reads a lock. The status for an unknown device is not documented, so the list of the account decides.
func (a *Adapter) lock(ctx context.Context, device adapter.DeviceRef) (w wireLock, err error) {
	absent := adapter.Errorf(adapter.NotFound, "the Nuki account does not have this lock")
	id, err := strconv.ParseInt(string(device), 10, 64)
	if err != nil || id < 0 || strconv.FormatInt(id, 10) != string(device) {
		return w, absent
	}
	err = a.do(ctx, vendorhttp.Call{Path: lockPath(id)}, &w)
	switch class := adapter.ClassOf(err); {
	case err == nil && w.ID != id:
		return w, adapter.Errorf(adapter.Transient, "Nuki describes another lock than requested")
	case err == nil && !w.isListed(), err != nil && class == adapter.NotFound:
		return w, absent
	case err == nil || class != adapter.Invalid && class != adapter.NotSupported:
		return w, err
	}
	refused := adapter.AsError(err).Message
	list, err := a.devices.read(ctx, 0)
	switch {
	case err != nil:
		return w, err
	case !slices.ContainsFunc(list, func(w wireLock) bool { return w.ID == id }):
		return w, absent
	}
	return w, adapter.Errorf(adapter.Transient, "%s", refused)
}

// ready reads a lock before a write: nothing reports a write that an offline lock never gets. It fails like Device, and
// with Offline.
func (a *Adapter) ready(ctx context.Context, device adapter.DeviceRef) (wireLock, error) {
	w, err := a.lock(ctx, device)
	if err == nil && !w.isOnline() {
		err = w.offline()
	}
	return w, unsent(err)
}

// unsent makes an error of a read before a write one of the write.
func unsent(err error) error {
	if errors.Is(err, adapter.ErrSaturated) {
		return adapter.Errorf(adapter.Transient, "nothing was sent: %s", adapter.ErrSaturated)
	}
	return err
}

func (a *Adapter) listLocks(ctx context.Context) ([]wireLock, error) {
	var list adapter.List[wireLock]
	if err := a.do(ctx, vendorhttp.Call{Path: "/smartlock"}, &list); err != nil {
		return nil, err
	}
	if list == nil {
		return nil, adapter.Errorf(adapter.Transient, "the list of locks is missing in the answer")
	}
	return slices.DeleteFunc(list, func(w wireLock) bool { return !w.isListed() }), nil
}

// listAuths lists the keypad codes of all locks.
func (a *Adapter) listAuths(ctx context.Context) ([]wireAuth, error) {
	return a.readAuths(ctx, "/smartlock/auth")
}

// authsOf lists the keypad codes of one lock.
func (a *Adapter) authsOf(ctx context.Context, id int64) ([]wireAuth, error) {
	list, err := a.readAuths(ctx, lockPath(id)+"/auth")
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(w wireAuth) bool { return w.SmartlockID != 0 && w.SmartlockID != id }), nil
}

func (a *Adapter) readAuths(ctx context.Context, path string) ([]wireAuth, error) {
	var list adapter.List[wireAuth]
	call := vendorhttp.Call{Path: path, Query: map[string][]string{"types": {strconv.Itoa(keypadCode)}}}
	if err := a.do(ctx, call, &list); err != nil {
		return nil, err
	}
	if list == nil {
		return nil, adapter.Errorf(adapter.Transient, "the list of codes is missing in the answer")
	}
	out := slices.DeleteFunc(list, func(w wireAuth) bool { return w.Type != keypadCode })
	if slices.ContainsFunc(out, func(w wireAuth) bool { return !isID(w.ID) }) {
		return nil, adapter.Errorf(adapter.Transient, "a code in the list has no id")
	}
	return out, nil
}

// Events implements adapter.Adapter.
func (a *Adapter) Events() <-chan adapter.Event { return a.events.Events() }

// Close implements adapter.Adapter. It keeps the subscription, because another instance may serve it.
func (a *Adapter) Close() error {
	a.shut()
	a.events.Close()
	a.client.HTTP.CloseIdleConnections()
	return nil
}
