// Package devicecloud reaches any vendor whose cloud follows the public guide "building a Seam-compatible
// smart lock API" (seamapi/docs, docs/guides/device-manufacturer-guidance), and package sandbox, which
// documents the wire format. It must not know which vendor it speaks to.
//
// Where the guide is silent, this is decided:
//
//   - Lists come in one answer; the guide knows no paging. More than 8 MiB is an error, never a part.
//   - A lock without the object "capabilities" (see package sandbox) takes remote commands and PINs of 4 to 8
//     digits, shows them, is changed by delete and create, and keeps no time frames: what the guide lets
//     a vendor leave out is taken to be absent.
//   - A lock that does not say whether it is online is; a write will tell.
//   - A code's status other than "pending", "deleting" and "failed" means that it is on the lock.
//   - custom_id makes creations repeatable. A vendor that ignores it answers a repeated creation with
//     PIN_CONFLICT, as the PIN is taken.
//   - An error's error_code decides; a status code only where that is missing or unknown (see classify).
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
)

// Config of New.
type Config struct {
	BaseURL  string       // of the vendor's API, without a slash at its end
	Token    string       // the account's bearer token
	Provider string       // device_provider_name of locks that do not say it
	PushURL  string       // where Receive is served, for Subscribe; the vendor must be able to reach it
	HTTP     *http.Client // nil: one of its own, with a timeout of 30 s. Redirects are not followed
	Log      *slog.Logger // nil: none
}

// Adapter is one account at one vendor.
type Adapter struct {
	base     string
	token    string
	provider string
	pushURL  string
	hidden   []*regexp.Regexp // of what a vendor says
	http     *http.Client
	log      *slog.Logger

	events *adapter.Hints
	pushes *rate.Limiter

	known known

	open context.Context // ends with Close
	shut context.CancelFunc
}

var (
	_ adapter.Adapter       = (*Adapter)(nil)
	_ adapter.Locker        = (*Adapter)(nil)
	_ adapter.AutoLocker    = (*Adapter)(nil)
	_ adapter.OfflineIssuer = (*Adapter)(nil)
	_ adapter.Simulator     = (*Adapter)(nil)
)

// New makes an adapter. It speaks to nobody yet.
func New(c Config) *Adapter {
	client := http.Client{Timeout: 30 * time.Second}
	if c.HTTP != nil {
		client = *c.HTTP
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if client.Transport == nil {
		client.Transport = adapter.Transport()
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
		hidden:   hidden(c.PushURL),
		http:     &client,
		log:      c.Log,
		events:   adapter.NewHints(),
		pushes:   rate.NewLimiter(pushesAt, pushesOnce),
		known:    known{caps: map[adapter.DeviceRef]adapter.Caps{}},
		open:     open,
		shut:     shut,
	}
}

// Devices implements adapter.Adapter. Hubs and bridges are left out.
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
			return nil, adapter.Errorf(adapter.Transient, "the list of locks has one without lock_id")
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
		return adapter.Device{}, adapter.Errorf(adapter.Transient, "asked for one lock, the answer is about another")
	}
	d := a.device(got)
	a.known.keep(d)
	return d, nil
}

// capsOf are the device's capabilities, from the vendor where it was not read before.
func (a *Adapter) capsOf(ctx context.Context, device adapter.DeviceRef) (adapter.Caps, error) {
	if caps, ok := a.known.of(device); ok {
		return caps, nil
	}
	d, err := a.Device(ctx, device)
	if errors.Is(err, adapter.ErrCrowded) { // nothing of what is asked for has been sent
		err = a.failure(adapter.Transient, err.Error())
	}
	return d.Caps, err
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
	if len(*got.Codes) > mostCodes {
		return adapter.Codes{}, adapter.Errorf(adapter.Transient, "the list of codes has more than %d", mostCodes)
	}
	codes := make([]adapter.Code, 0, len(*got.Codes))
	for _, c := range *got.Codes {
		if c.ID == "" {
			return adapter.Codes{}, adapter.Errorf(adapter.Transient, "the list of codes has one without access_code_id")
		}
		if !inPath(c.ID) {
			continue
		}
		codes = append(codes, a.code(c))
	}
	return adapter.Codes{Codes: codes, Stale: got.Stale}, nil
}

// PutCode implements adapter.Adapter. What the vendor answers to have put otherwise is changed, or is not confirmed. A time frame for a device that keeps none is NotSupported: without it
// the code would be good for ever.
func (a *Adapter) PutCode(ctx context.Context, device adapter.DeviceRef, spec adapter.CodeSpec) (adapter.PutResult, error) {
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
	// The creation may have been repeated, and the answer be about the code as it was made then.
	switch like := comparePut(caps, spec, code); {
	case like == another && spec.Ref == "" && caps.ModifyInPlace:
		spec.Ref = code.Ref
		result, err := a.PutCode(ctx, device, spec)
		if adapter.ClassOf(err) != adapter.NotFound {
			result.Ref = code.Ref // also where the change has failed
		}
		return result, err
	case !caps.ListCodes: // no reading would ever show: a vendor's words about times are believed
		if pinDiffers(caps, spec, code) {
			return adapter.PutResult{Ref: code.Ref}, adapter.Errorf(adapter.Unconfirmed, "the vendor answers with another PIN than the code was put with")
		}
	case like != thisOne || code.Failed != nil: // reading shows what it is
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
	return a.act(ctx, device, "lock", func(c adapter.Caps) bool { return c.Lock })
}

// Unlock implements adapter.Locker.
func (a *Adapter) Unlock(ctx context.Context, device adapter.DeviceRef) (adapter.State, error) {
	return a.act(ctx, device, "unlock", func(c adapter.Caps) bool { return c.Unlock })
}

// ConfigureAutoLock implements adapter.AutoLocker.
func (a *Adapter) ConfigureAutoLock(ctx context.Context, device adapter.DeviceRef, setting adapter.AutoLock) (adapter.State, error) {
	caps, err := a.capsOf(ctx, device)
	switch {
	case err != nil:
		return "", err
	case !caps.AutoLock:
		return "", adapter.Errorf(adapter.NotSupported, "the device cannot lock itself")
	}
	body := wireAutoLock{Enabled: setting.Enabled, Delay: setting.Delay.Seconds()}
	if err := a.do(ctx, call{method: http.MethodPut, path: lockPath(device) + "/auto_lock", body: body}, nil); err != nil {
		return "", err
	}
	return adapter.Accepted, nil
}

// IssueCode implements adapter.OfflineIssuer.
func (a *Adapter) IssueCode(ctx context.Context, device adapter.DeviceRef, spec adapter.OfflineSpec) (adapter.IssuedCode, error) {
	caps, err := a.capsOf(ctx, device)
	switch {
	case err != nil:
		return adapter.IssuedCode{}, err
	case !caps.OfflineCodes:
		return adapter.IssuedCode{}, adapter.Errorf(adapter.NotSupported, "the device has no offline codes")
	}
	body := map[string]any{"kind": spec.Kind, "starts_at": spec.StartsAt.UTC(), "ends_at": spec.EndsAt.UTC(), "custom_id": spec.Key}
	var got wireCode
	if err := a.do(ctx, call{method: http.MethodPost, path: lockPath(device) + "/offline_codes", body: body}, &got); err != nil {
		return adapter.IssuedCode{}, err
	}
	if got.ID == "" || got.Code == "" {
		return adapter.IssuedCode{}, adapter.Errorf(adapter.Transient, "the answer has no code")
	}
	return adapter.IssuedCode{Ref: adapter.CodeRef(got.ID), PIN: got.Code}, nil
}

// act has the bolt moved. The guide's answer says no more than that the command was taken.
func (a *Adapter) act(ctx context.Context, device adapter.DeviceRef, action string, can func(adapter.Caps) bool) (adapter.State, error) {
	caps, err := a.capsOf(ctx, device)
	switch {
	case err != nil:
		return "", err
	case !can(caps):
		return "", adapter.Errorf(adapter.NotSupported, "the device cannot %s from afar", action)
	}
	body := map[string]string{"action": action}
	if err := a.do(ctx, call{method: http.MethodPost, path: lockPath(device) + "/actions", body: body, once: true}, nil); err != nil {
		return "", err
	}
	return adapter.Accepted, nil
}

// Events implements adapter.Adapter.
func (a *Adapter) Events() <-chan adapter.Event { return a.events.Events() }

// Close implements adapter.Adapter. The vendor keeps its webhook: another instance may serve it.
func (a *Adapter) Close() error {
	a.shut()
	a.events.Close()
	a.http.CloseIdleConnections()
	return nil
}

// inPath says whether an identifier can stand in the path of a request. With one of dots it would be another's path.
func inPath(id string) bool { return id != "" && id != "." && id != ".." }

func lockPath(device adapter.DeviceRef) string { return "/locks/" + url.PathEscape(string(device)) }

func codePath(code adapter.CodeRef) string { return "/access_codes/" + url.PathEscape(string(code)) }
