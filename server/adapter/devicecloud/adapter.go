// Package devicecloud implements adapter.Adapter for vendors whose cloud follows the public guide "building a
// Seam-compatible smart lock API" (seamapi/docs, docs/guides/device-manufacturer-guidance), and for package sandbox,
// which documents the wire format. It must not know which vendor it calls.
//
// Where the guide is silent, the package decides:
//
//   - Lists come in one response, because the guide has no paging. More than 8 MiB is an error, never a partial
//     list.
//   - A lock without the object "capabilities" (see package sandbox) accepts remote commands and PINs of 4 to 8
//     digits, shows PINs, changes codes by delete and create, and applies no time frames. What the guide lets a
//     vendor omit counts as absent.
//   - A device with the object "thermostat" or "capabilities"."thermostat" (see package sandbox) is a thermostat, and
//     has no capability of a lock.
//   - A device with the object "noise_sensor" or "capabilities"."noise_sensor" is a noise sensor, likewise.
//   - A lock without the field "online" counts as online; a write reports otherwise.
//   - A code whose status is not "pending", "deleting", or "failed" is on the lock.
//   - custom_id makes creations repeatable. A vendor that ignores it responds to a repeated creation with
//     PIN_CONFLICT.
//   - The error_code of an error determines its class; the status code counts only when the error_code is missing
//     or unknown (see classify).
package devicecloud

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// Config configures New.
type Config struct {
	// BaseURL is the URL of the vendor's API.
	BaseURL string
	// Token is the account's bearer token.
	Token string
	// Provider is the device_provider_name of locks that do not report one.
	Provider string
	// PushURL is where Receive is served, for Subscribe. The vendor must be able to reach it.
	PushURL string
	// OtherPushURLs are former or future URLs of Receive. Subscribe deletes webhooks there.
	OtherPushURLs []string
	// Outdated, if not nil, reports whether another PushURL has replaced this one.
	Outdated func() bool
	// HTTP defaults to a client with a timeout of 30 s. Redirects are never followed.
	HTTP *http.Client
	// Transport wraps the transport, unless HTTP has one.
	Transport adapter.WrapTransport
	// Log defaults to no logging.
	Log *slog.Logger
}

// Adapter accesses one account at one vendor.
type Adapter struct {
	base     string
	token    string
	provider string
	pushURL  string
	others   []string
	outdated func() bool
	// hidden matches what vendor messages must not show.
	hidden []*regexp.Regexp
	http   *http.Client
	log    *slog.Logger

	events *adapter.EventQueue
	pushes *rate.Limiter

	known capsCache

	open context.Context // ends with Close
	shut context.CancelFunc
}

var (
	_ adapter.Adapter       = (*Adapter)(nil)
	_ adapter.Locker        = (*Adapter)(nil)
	_ adapter.AutoLocker    = (*Adapter)(nil)
	_ adapter.OfflineIssuer = (*Adapter)(nil)
	_ adapter.Simulator     = (*Adapter)(nil)

	_ adapter.ThermostatController = (*Adapter)(nil)
	_ adapter.ThermostatSimulator  = (*Adapter)(nil)
	_ adapter.NoiseController      = (*Adapter)(nil)
	_ adapter.NoiseSimulator       = (*Adapter)(nil)
)

// New returns an adapter. It sends nothing.
func New(c Config) *Adapter {
	client := http.Client{Timeout: 30 * time.Second}
	if c.HTTP != nil {
		client = *c.HTTP
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if client.Transport == nil {
		client.Transport = c.Transport.Wrap(adapter.NewTransport())
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	open, shut := context.WithCancel(context.Background())
	return &Adapter{
		base:     strings.TrimRight(c.BaseURL, "/"),
		token:    c.Token,
		provider: c.Provider,
		pushURL:  c.PushURL,
		others:   c.OtherPushURLs,
		outdated: c.Outdated,
		hidden:   hidden(c.PushURL),
		http:     &client,
		log:      c.Log,
		events:   adapter.NewEventQueue(),
		pushes:   rate.NewLimiter(pushesPerSecond, pushBurst),
		known:    capsCache{caps: map[adapter.DeviceRef]capability.Set{}},
		open:     open,
		shut:     shut,
	}
}

// Devices implements adapter.Adapter. It omits hubs and bridges.
func (a *Adapter) Devices(ctx context.Context) ([]adapter.Device, error) {
	var got struct {
		Locks *adapter.List[wireLock] `json:"locks"`
	}
	if err := a.do(ctx, call{method: http.MethodGet, path: "/locks", account: true}, &got); err != nil {
		return nil, err
	}
	if got.Locks == nil {
		return nil, adapter.Errorf(adapter.Transient, "the list of locks has no \"locks\"")
	}
	devices := make([]adapter.Device, 0, len(*got.Locks))
	for _, l := range *got.Locks {
		if l.DeviceType == "hub" || l.DeviceType == "bridge" {
			continue
		}
		if l.ref() == "" {
			return nil, adapter.Errorf(adapter.Transient, "a lock in the list has no lock_id")
		}
		if !inPath(string(l.ref())) {
			continue
		}
		devices = append(devices, a.device(l))
	}
	a.known.replace(devices)
	return devices, nil
}

// Device implements adapter.Adapter.
func (a *Adapter) Device(ctx context.Context, device adapter.DeviceRef) (adapter.Device, error) {
	var got wireLock
	if err := a.do(ctx, call{method: http.MethodGet, path: lockPath(device)}, &got); err != nil {
		return adapter.Device{}, err
	}
	if got.ref() != device {
		return adapter.Device{}, adapter.Errorf(adapter.Transient, "the response describes another lock than requested")
	}
	d := a.device(got)
	a.known.keep(d)
	return d, nil
}

// capsOf returns the device's capabilities, from the cache or from the vendor.
func (a *Adapter) capsOf(ctx context.Context, device adapter.DeviceRef) (capability.Set, error) {
	if caps, ok := a.known.of(device); ok {
		return caps, nil
	}
	d, err := a.Device(ctx, device)
	if errors.Is(err, adapter.ErrSaturated) { // the actual request has not been sent
		err = a.failure(adapter.Transient, err.Error())
	}
	return d.Capabilities, err
}

// Codes implements adapter.Adapter.
func (a *Adapter) Codes(ctx context.Context, device adapter.DeviceRef, fresh bool) (adapter.Codes, error) {
	caps, err := a.capsOf(ctx, device)
	if err != nil {
		return adapter.Codes{}, err
	}
	if !caps.ListCodes {
		return adapter.Codes{}, adapter.Errorf(adapter.NotSupported, "the lock's codes cannot be listed")
	}
	path := lockPath(device) + "/access_codes"
	if fresh {
		path += "?refresh=true"
	}
	var got struct {
		Codes *adapter.List[wireCode] `json:"access_codes"`
		Stale bool                    `json:"stale"`
	}
	if err := a.do(ctx, call{method: http.MethodGet, path: path}, &got); err != nil {
		return adapter.Codes{}, err
	}
	if got.Codes == nil {
		return adapter.Codes{}, adapter.Errorf(adapter.Transient, "the list of codes has no \"access_codes\"")
	}
	if len(*got.Codes) > maxCodes {
		return adapter.Codes{}, adapter.Errorf(adapter.Transient, "the list of codes has more than %d", maxCodes)
	}
	codes := make([]adapter.Code, 0, len(*got.Codes))
	for _, c := range *got.Codes {
		if c.ID == "" {
			return adapter.Codes{}, adapter.Errorf(adapter.Transient, "a code in the list has no access_code_id")
		}
		if !inPath(c.ID) {
			continue
		}
		codes = append(codes, a.code(c))
	}
	return adapter.Codes{Codes: codes, Stale: got.Stale}, nil
}

// PutCode implements adapter.Adapter. If the response shows another code than spec, PutCode changes the code, or
// returns Unconfirmed. A time frame for a device that applies none is NotSupported: without it, the code would be
// valid forever.
func (a *Adapter) PutCode(ctx context.Context, device adapter.DeviceRef,
	spec adapter.CodeSpec,
) (adapter.PutResult, error) {
	caps, err := a.capsOf(ctx, device)
	if err != nil {
		return adapter.PutResult{}, err
	}
	body, err := request(caps, spec)
	if err != nil {
		return adapter.PutResult{}, err
	}
	c := call{method: http.MethodPost, path: lockPath(device) + "/access_codes", body: body}
	if spec.Ref != "" {
		c.method, c.path = http.MethodPatch, codePath(spec.Ref)
	}
	var got wireCode
	if err := a.do(ctx, c, &got); err != nil {
		return adapter.PutResult{}, err
	}
	code := a.code(got)
	switch {
	case code.Failed != nil && code.State != adapter.Confirmed:
		return adapter.PutResult{}, code.Failed
	case code.Removing:
		return adapter.PutResult{}, adapter.Errorf(adapter.Transient, "the code is still being deleted")
	case code.Ref == "" && spec.Ref != "":
		code.Ref = spec.Ref
	case !inPath(string(code.Ref)):
		return adapter.PutResult{}, adapter.Errorf(adapter.Unconfirmed, "the created code has no access_code_id")
	}
	// The creation may be a repeated one whose response describes the code as it was created then.
	switch like := comparePut(caps, spec, code); {
	case like == another && spec.Ref == "" && caps.ModifyInPlace:
		spec.Ref = code.Ref
		result, err := a.PutCode(ctx, device, spec)
		if adapter.ClassOf(err) != adapter.NotFound {
			result.Ref = code.Ref // even if the change has failed
		}
		return result, err
	case !caps.ListCodes:
		// The code cannot be read back, so the vendor's times are trusted.
		if pinDiffers(caps, spec, code) {
			return adapter.PutResult{Ref: code.Ref},
				adapter.Errorf(adapter.Unconfirmed, "the vendor responds with another PIN than requested")
		}
	case like != requested || code.Failed != nil: // reading will show the outcome
		code.State = adapter.Accepted
	}
	result := adapter.PutResult{Ref: code.Ref, State: code.State}
	if caps.ProviderPIN {
		result.PIN = code.PIN
	}
	return result, nil
}

// DeleteCode implements adapter.Adapter.
func (a *Adapter) DeleteCode(ctx context.Context, _ adapter.DeviceRef, code adapter.CodeRef) (adapter.State, error) {
	var got wireCode
	err := a.do(ctx, call{method: http.MethodDelete, path: codePath(code)}, &got)
	switch {
	case err != nil && adapter.ClassOf(err) == adapter.NotFound:
		return adapter.Confirmed, nil
	case err != nil:
		return "", err
	case got.Status == statusPending || got.Status == statusDeleting:
		return adapter.Accepted, nil
	default:
		return adapter.Confirmed, nil
	}
}

// Lock implements adapter.Locker.
func (a *Adapter) Lock(ctx context.Context, device adapter.DeviceRef) (adapter.State, error) {
	return a.act(ctx, device, "lock", func(c capability.Set) bool { return c.Lock })
}

// Unlock implements adapter.Locker.
func (a *Adapter) Unlock(ctx context.Context, device adapter.DeviceRef) (adapter.State, error) {
	return a.act(ctx, device, "unlock", func(c capability.Set) bool { return c.Unlock })
}

// ConfigureAutoLock implements adapter.AutoLocker.
func (a *Adapter) ConfigureAutoLock(ctx context.Context, device adapter.DeviceRef,
	setting adapter.AutoLock,
) (adapter.State, error) {
	caps, err := a.capsOf(ctx, device)
	switch {
	case err != nil:
		return "", err
	case !caps.AutoLock:
		return "", adapter.Errorf(adapter.NotSupported, "the device cannot lock itself")
	}
	body := wireAutoLock{Enabled: setting.Enabled, Delay: setting.Delay.Seconds()}
	if err := a.do(ctx, call{method: http.MethodPut, path: lockPath(device) + "/auto_lock", body: body},
		nil); err != nil {
		return "", err
	}
	return adapter.Accepted, nil
}

// IssueCode implements adapter.OfflineIssuer.
func (a *Adapter) IssueCode(ctx context.Context, device adapter.DeviceRef,
	spec adapter.OfflineSpec,
) (adapter.IssuedCode, error) {
	caps, err := a.capsOf(ctx, device)
	switch {
	case err != nil:
		return adapter.IssuedCode{}, err
	case !caps.OfflineCodes:
		return adapter.IssuedCode{}, adapter.Errorf(adapter.NotSupported, "the device has no offline codes")
	}
	body := map[string]any{
		"kind":      spec.Kind,
		"starts_at": spec.StartsAt.UTC(),
		"ends_at":   spec.EndsAt.UTC(),
		"custom_id": spec.Key,
	}
	var got wireCode
	if err := a.do(ctx, call{method: http.MethodPost, path: lockPath(device) + "/offline_codes", body: body},
		&got); err != nil {
		return adapter.IssuedCode{}, err
	}
	if got.ID == "" || got.Code == "" {
		return adapter.IssuedCode{}, adapter.Errorf(adapter.Transient, "the response has no code")
	}
	return adapter.IssuedCode{Ref: adapter.CodeRef(got.ID), PIN: got.Code}, nil
}

// act sends a command to the bolt. The guide's response only confirms that the vendor accepted the command.
func (a *Adapter) act(ctx context.Context, device adapter.DeviceRef, action string,
	can func(capability.Set) bool,
) (adapter.State, error) {
	caps, err := a.capsOf(ctx, device)
	switch {
	case err != nil:
		return "", err
	case !can(caps):
		return "", adapter.Errorf(adapter.NotSupported, "the device cannot %s remotely", action)
	}
	body := map[string]string{"action": action}
	if err := a.do(ctx, call{
		method: http.MethodPost,
		path:   lockPath(device) + "/actions",
		body:   body,
		once:   true,
	},
		nil); err != nil {
		return "", err
	}
	return adapter.Accepted, nil
}

// Events implements adapter.Adapter.
func (a *Adapter) Events() <-chan adapter.Event { return a.events.Events() }

// Close implements adapter.Adapter. It keeps the webhook at the vendor, because another instance may serve it.
func (a *Adapter) Close() error {
	a.shut()
	a.events.Close()
	a.http.CloseIdleConnections()
	return nil
}

// inPath reports whether an identifier can be a path segment. A segment of dots would denote another resource.
func inPath(id string) bool { return id != "" && id != "." && id != ".." }

func lockPath(device adapter.DeviceRef) string { return "/locks/" + url.PathEscape(string(device)) }

func codePath(code adapter.CodeRef) string { return "/access_codes/" + url.PathEscape(string(code)) }
