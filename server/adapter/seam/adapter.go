// Package seam implements adapter.Adapter for Seam's hosted API, and for any other server of the same API, including
// this one. An account is an API key of a workspace there, and all devices that are managed in that workspace become
// devices here. The package must not know what the upstream server is.
//
// Where the published description (npm @seamapi/types 1.977.0) is silent, the package decides:
//
//   - The upstream server programs codes, applies their time frames, and repairs drift. A code is Confirmed when
//     the server says `set`, and also when the server has accepted it for a later time.
//   - Codes that other clients manage upstream, and codes that are unmanaged upstream, are codes on the device here.
//     An unmanaged one becomes managed upstream when it becomes managed here.
//   - The common_code_key of a created code is "deviceaccess-" and the key of the creation. It makes
//     creations repeatable, because the hosted API documents no idempotency key. Servers that have Idempotency-Key
//     receive one as well.
//   - An absent property is unknown. A device without supported_code_lengths accepts 4 to 8 digits.
//   - Writes to an offline device are refused, because this server repeats them itself.
package seam

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

	"golang.org/x/time/rate"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/subscription"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// Config configures New.
type Config struct {
	// BaseURL is the URL of the API.
	BaseURL string
	// APIKey is the key of a workspace.
	APIKey string
	// Workspace is the identifier of the workspace here. Requests carry it, so that loops are found.
	Workspace string
	// PollInterval is the time between reads of the event log; 0 means ten seconds.
	PollInterval time.Duration
	// ListTimeout bounds the time to read all pages of a list; 0 means three minutes.
	ListTimeout time.Duration
	// MaxListSize bounds the size of all pages of a list in bytes; 0 means 128 MiB.
	MaxListSize int
	// Secrets stores the cursor of events and the subscription, for Listen and Receive.
	Secrets adapter.Secrets
	// PushURLs returns the URLs of Receive, the current one first; nil: no webhook is created.
	PushURLs func(ctx context.Context) ([]string, error)
	// HTTP is a client of vendorhttp.New; nil: one that accepts all addresses.
	HTTP *http.Client
	// Log defaults to no logging.
	Log *slog.Logger
}

// Adapter accesses one workspace of an upstream server.
type Adapter struct {
	client   *vendorhttp.Client
	slog     *slog.Logger
	secrets  adapter.Secrets
	interval time.Duration

	listTimeout time.Duration
	maxListSize int

	events *adapter.EventQueue
	writes budget
	known  deviceCache
	log    eventLog
	hook   subscription.Subscription
	pushes *rate.Limiter
	// unmanaged is the number of locks that are unmanaged upstream.
	unmanaged atomic.Int64

	open context.Context // ends with Close
	shut context.CancelFunc
}

var (
	_ adapter.Adapter       = (*Adapter)(nil)
	_ adapter.Locker        = (*Adapter)(nil)
	_ adapter.AutoLocker    = (*Adapter)(nil)
	_ adapter.OfflineIssuer = (*Adapter)(nil)
	_ adapter.Converter     = (*Adapter)(nil)
	_ adapter.Warner        = (*Adapter)(nil)
)

// New returns an adapter. It sends nothing.
func New(c Config) *Adapter {
	if c.HTTP == nil {
		c.HTTP = vendorhttp.New(adapter.Env{})
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	open, shut := context.WithCancel(context.Background())
	a := &Adapter{
		client: &vendorhttp.Client{
			Adapter: Name,
			Base:    strings.TrimRight(c.BaseURL, "/"),
			HTTP:    c.HTTP,
			Log:     c.Log,
			Secret:  c.APIKey,
			Authorize: func(_ context.Context, req *http.Request) error {
				req.Header.Set("Authorization", "Bearer "+c.APIKey)
				if c.Workspace != "" {
					req.Header.Set(ViaHeader, c.Workspace)
				}
				return nil
			},
		},
		slog:     c.Log,
		secrets:  c.Secrets,
		interval: cmp.Or(c.PollInterval, defaultPollInterval),

		listTimeout: cmp.Or(c.ListTimeout, listTimeout),
		maxListSize: cmp.Or(c.MaxListSize, maxListSize),

		events: adapter.NewEventQueue(),
		pushes: rate.NewLimiter(pushesPerSecond, pushBurst),
		known:  deviceCache{devices: map[adapter.DeviceRef]knownDevice{}},
		open:   open,
		shut:   shut,
	}
	a.hook = subscription.Subscription{
		URLs:    c.PushURLs,
		Secrets: c.Secrets,
		Log:     c.Log,
		List:    a.listWebhooks,
		Create:  a.createWebhook,
		Delete:  a.deleteWebhook,
		IsSigned: func(header http.Header, body []byte, secret string) bool {
			return isSigned(header, body, secret, time.Now())
		},
		MaxPush: pushLimit,
	}
	return a
}

// pageSize is the number of devices or codes in a page.
const pageSize = 500

// Devices implements adapter.Adapter. It omits devices that are unmanaged upstream, and those that are no locks.
func (a *Adapter) Devices(ctx context.Context) ([]adapter.Device, error) {
	var page struct {
		Devices    *adapter.List[wireDevice] `json:"devices"`
		Pagination pagination                `json:"pagination"`
	}
	devices := []adapter.Device{}
	total := 0 // with those that are no locks
	err := a.listPages(ctx, "/devices/list", map[string]any{"limit": pageSize},
		func() (any, *pagination) {
			page.Devices, page.Pagination = nil, pagination{}
			return &page, &page.Pagination
		},
		func() error {
			if page.Devices == nil {
				return adapter.Errorf(adapter.Transient, "the list of devices has no \"devices\"")
			}
			if total += len(*page.Devices); total > adapter.MaxListElements {
				return adapter.Errorf(
					adapter.Transient,
					"the account has more than %d devices",
					adapter.MaxListElements,
				)
			}
			for _, d := range *page.Devices {
				if !isID(d.ID) {
					return adapter.Errorf(adapter.Transient, "a device in the list has no device_id")
				}
				if d.isLock() {
					devices = append(devices, a.device(d))
				}
			}
			return nil
		})
	if err != nil {
		return nil, err
	}
	a.known.replace(devices)
	a.countUnmanaged(ctx)
	return devices, nil
}

// countUnmanaged counts the locks that are unmanaged upstream. If that fails, the last count stays.
func (a *Adapter) countUnmanaged(ctx context.Context) {
	var page struct {
		Devices adapter.List[wireDevice] `json:"devices"`
	}
	if err := a.read(ctx, "/devices/unmanaged/list", map[string]any{"limit": pageSize}, &page); err != nil {
		return
	}
	n := 0
	for _, d := range page.Devices {
		if d.isLock() {
			n++
		}
	}
	a.unmanaged.Store(int64(n))
}

// UnmanagedUpstream is the code of the warning about unmanaged devices.
const UnmanagedUpstream = "devices_unmanaged_upstream"

// Warnings implements adapter.Warner.
func (a *Adapter) Warnings() []adapter.Warning {
	n := a.unmanaged.Load()
	if n == 0 {
		return nil
	}
	return []adapter.Warning{{
		Code: UnmanagedUpstream,
		Message: fmt.Sprintf("Number of locks that are unmanaged in the upstream workspace, so that this server does "+
			"not list them: %d. Make them managed there with POST /devices/unmanaged/update.", n),
	}}
}

// Device implements adapter.Adapter.
func (a *Adapter) Device(ctx context.Context, device adapter.DeviceRef) (adapter.Device, error) {
	var got struct {
		Device wireDevice `json:"device"`
	}
	if err := a.read(ctx, "/devices/get", map[string]any{"device_id": device}, &got); err != nil {
		return adapter.Device{}, err
	}
	if got.Device.ID != string(device) {
		return adapter.Device{}, adapter.Errorf(adapter.Transient, "the response describes another device")
	}
	d := a.device(got.Device)
	a.known.keep(d)
	return d, nil
}

// Codes implements adapter.Adapter.
func (a *Adapter) Codes(ctx context.Context, device adapter.DeviceRef, fresh bool) (adapter.Codes, error) {
	d, err := a.Device(ctx, device)
	switch {
	case err != nil:
		return adapter.Codes{}, err
	case fresh && !d.Online:
		return adapter.Codes{}, adapter.Errorf(adapter.Offline, "the device is offline")
	}
	now := time.Now()
	out := adapter.Codes{Codes: []adapter.Code{}, SerialNumber: d.SerialNumber, Stale: !d.Online}
	for _, managed := range []bool{true, false} {
		list, err := a.listCodes(ctx, device, managed)
		if err != nil {
			return adapter.Codes{}, err
		}
		for _, c := range list {
			if !c.Offline { // the device does not store it
				out.Codes = append(out.Codes, a.code(c, !d.Capabilities.PINVisible, now))
			}
		}
	}
	if len(out.Codes) > maxCodes {
		return adapter.Codes{}, adapter.Errorf(adapter.Transient, "the device has more than %d codes", maxCodes)
	}
	return out, nil
}

// listCodes lists the codes of a device that are managed upstream, or those that are not.
func (a *Adapter) listCodes(ctx context.Context, device adapter.DeviceRef, managed bool) ([]wireCode, error) {
	path := "/access_codes/unmanaged/list"
	if managed {
		path = "/access_codes/list"
	}
	var page struct {
		Codes      *adapter.List[wireCode] `json:"access_codes"`
		Pagination pagination              `json:"pagination"`
	}
	var all []wireCode
	total := 0 // with those that the server should not have listed
	err := a.listPages(ctx, path, map[string]any{"device_id": device, "limit": pageSize},
		func() (any, *pagination) {
			page.Codes, page.Pagination = nil, pagination{}
			return &page, &page.Pagination
		},
		func() error {
			if page.Codes == nil {
				return adapter.Errorf(adapter.Transient, "the list of codes has no \"access_codes\"")
			}
			if total += len(*page.Codes); total > 2*maxCodes {
				return adapter.Errorf(adapter.Transient, "the device has more than %d codes", maxCodes)
			}
			for _, c := range *page.Codes {
				if !isID(c.ID) {
					return adapter.Errorf(adapter.Transient, "a code in the list has no access_code_id")
				}
				// The vendor's test server lists unmanaged codes among the managed ones.
				if c.Managed == nil || *c.Managed == managed {
					c.Managed = &managed
					all = append(all, c)
				}
			}
			if len(all) > maxCodes {
				return adapter.Errorf(adapter.Transient, "the device has more than %d codes", maxCodes)
			}
			return nil
		})
	return all, err
}

func isID(id string) bool { return id != "" && len(id) <= maxIDSize }

// ready returns the capabilities of a device that is online. It reads the device if it was offline. It fails
// like Device, and with Offline.
func (a *Adapter) ready(ctx context.Context, device adapter.DeviceRef) (capability.Set, error) {
	if known, ok := a.known.of(device); ok && known.online {
		return known.caps, nil
	}
	d, err := a.Device(ctx, device)
	switch {
	case errors.Is(err, adapter.ErrSaturated): // the actual request has not been sent
		return capability.Set{}, a.client.Failure(adapter.Transient, err.Error())
	case err != nil:
		return capability.Set{}, err
	case !d.Online:
		return d.Capabilities, adapter.Errorf(adapter.Offline, "the device is offline")
	}
	return d.Capabilities, nil
}

// Events implements adapter.Adapter.
func (a *Adapter) Events() <-chan adapter.Event { return a.events.Events() }

// Close implements adapter.Adapter. It keeps the webhook upstream, because another instance may serve it.
func (a *Adapter) Close() error {
	a.shut()
	a.events.Close()
	a.client.HTTP.CloseIdleConnections()
	return nil
}

// knownDevice is what writes need to know about a device.
type knownDevice struct {
	caps   capability.Set
	online bool
}

// maxKnown bounds the devices of the cache. Further ones are read when needed.
const maxKnown = 10_000

// deviceCache remembers devices.
type deviceCache struct {
	mu      sync.Mutex
	devices map[adapter.DeviceRef]knownDevice
}

func (k *deviceCache) replace(devices []adapter.Device) {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.devices)
	for _, d := range devices[:min(len(devices), maxKnown)] {
		k.devices[d.Ref] = knownDevice{d.Capabilities, d.Online}
	}
}

func (k *deviceCache) keep(d adapter.Device) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.devices[d.Ref]; ok || len(k.devices) < maxKnown {
		k.devices[d.Ref] = knownDevice{d.Capabilities, d.Online}
	}
}

// forget drops what may have changed.
func (k *deviceCache) forget(device adapter.DeviceRef) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.devices, device)
}

func (k *deviceCache) of(device adapter.DeviceRef) (knownDevice, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	d, ok := k.devices[device]
	return d, ok
}
