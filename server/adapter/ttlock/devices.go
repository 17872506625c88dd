package ttlock

import (
	"cmp"
	"context"
	"maps"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// wireLock is a lock in a list, or in detail. The super passcode of the detail is never decoded.
type wireLock struct {
	ID         number  `json:"lockId"`
	Name       string  `json:"lockName"`
	Alias      string  `json:"lockAlias"`
	MAC        string  `json:"lockMac"`
	Battery    *number `json:"electricQuantity"`
	Features   string  `json:"featureValue"`
	HasGateway number  `json:"hasGateway"`
	Model      string  `json:"modelNum"`
	AutoLock   *number `json:"autoLockTime"`
	// detailed means that absent fields are unknown to the vendor, too.
	detailed bool
}

func (w wireLock) ref() adapter.DeviceRef {
	return adapter.DeviceRef(strconv.FormatInt(int64(w.ID), 10))
}

// Bits of the feature value: euopen.ttlock.com, "feature value".
const (
	bitPasscode         = 0
	bitAutoLock         = 4
	bitLockCommand      = 8
	bitRemoteUnlock     = 10
	bitNBIoT            = 16
	bitNoClock          = 20
	bitWirelessKeypad   = 24
	bitWiFi             = 56
	bitIncompleteKeypad = 60
)

// features are the bits of a feature value.
type features struct{ bits *big.Int }

// maxFeatures bounds the hexadecimal digits of a feature value.
const maxFeatures = 64

func (w wireLock) features() features {
	bits, ok := new(big.Int).SetString(w.Features, 16)
	if !ok || len(w.Features) > maxFeatures || bits.Sign() < 0 {
		return features{}
	}
	return features{bits}
}

func (f features) has(bit int) bool { return f.bits != nil && f.bits.Bit(bit) == 1 }

// isWireless reports whether the lock connects without a gateway.
func (f features) isWireless() bool { return f.has(bitWiFi) || f.has(bitNBIoT) }

// maxCodes is the number of custom passcodes of a lock: euopen.ttlock.com, "add custom passcode".
const maxCodes = 250

// link is how the cloud reaches a lock.
type link struct {
	online bool
	// hub means that the lock needs a gateway.
	hub bool
	// line is what carries one command at a time; empty: unknown.
	line string
	// method is the value of addType and its like.
	method int
}

// Values of addType.
const (
	viaGateway = 2
	viaNBIoT   = 3
	viaQueue   = 4 // a WiFi lock that saves power fetches the command later
)

// isAsync reports whether the answer to a write comes before the lock has it.
func (l link) isAsync() bool { return l.method != viaGateway }

func (l link) via() string { return strconv.Itoa(cmp.Or(l.method, viaGateway)) }

// listLocks reads the locks of the account.
func (a *Adapter) listLocks(ctx context.Context) ([]wireLock, error) {
	locks := []wireLock{}
	err := listPages(ctx, a, "/v3/lock/list", url.Values{}, 1000, func(w wireLock) error {
		switch {
		case w.ID < 1:
			return adapter.Errorf(adapter.Transient, "a lock in TTLock's list has no lockId")
		case len(locks) == adapter.MaxListElements:
			return adapter.Errorf(adapter.Transient, "the account has more than %d locks", adapter.MaxListElements)
		}
		locks = append(locks, w)
		return nil
	})
	return locks, err
}

type wireGateway struct {
	ID     number `json:"gatewayId"`
	Online number `json:"isOnline"`
	RSSI   number `json:"rssi"`
}

// gateways returns which gateways of the account are online.
func (a *Adapter) gateways(ctx context.Context) (map[number]bool, error) {
	online := map[number]bool{}
	err := listPages(ctx, a, "/v3/gateway/list", url.Values{"orderBy": {"0"}}, 200, func(g wireGateway) error {
		online[g.ID] = g.Online == 1
		return nil
	})
	return online, err
}

// gatewayLinks returns the links of all locks that a gateway sees. TTLock uses the gateway with the best signal.
func (a *Adapter) gatewayLinks(ctx context.Context) (map[int64]link, error) {
	online, err := a.gateways(ctx)
	if err != nil {
		return nil, err
	}
	links, best := map[int64]link{}, map[int64]number{}
	for _, id := range slices.Sorted(maps.Keys(online)) {
		var got struct {
			List adapter.List[struct {
				ID   number `json:"lockId"`
				RSSI number `json:"rssi"`
			}] `json:"list"`
		}
		params := url.Values{"gatewayId": {strconv.FormatInt(int64(id), 10)}}
		if err := a.get(ctx, "/v3/gateway/listLock", params, &got); err != nil {
			return nil, err
		}
		for _, seen := range got.List {
			lock := int64(seen.ID)
			l, rssi := better(links[lock], best[lock], gatewayLink(id, online[id]), seen.RSSI)
			links[lock], best[lock] = l, rssi
		}
	}
	return links, nil
}

func gatewayLink(gateway number, online bool) link {
	return link{
		online: online,
		hub:    true,
		line:   "gateway " + strconv.FormatInt(int64(gateway), 10),
		method: viaGateway,
	}
}

// better returns the link that TTLock prefers, and its signal strength.
func better(a link, rssiA number, b link, rssiB number) (link, number) {
	if a.line == "" || b.online && !a.online || b.online == a.online && rssiB > rssiA {
		return b, rssiB
	}
	return a, rssiA
}

// link returns how the cloud reaches a lock.
func (a *Adapter) link(ctx context.Context, w wireLock) (link, error) {
	if f := w.features(); f.isWireless() {
		return a.ownLink(ctx, int64(w.ID), f)
	}
	found := link{hub: true}
	if w.HasGateway != 1 {
		return found, nil
	}
	var seen struct {
		List adapter.List[wireGateway] `json:"list"`
	}
	if err := a.get(ctx, "/v3/gateway/listByLock", url.Values{"lockId": {string(w.ref())}}, &seen); err != nil {
		return found, err
	}
	online, err := a.gateways(ctx)
	if err != nil {
		return found, err
	}
	var best number
	for _, g := range seen.List {
		found, best = better(found, best, gatewayLink(g.ID, online[g.ID]), g.RSSI)
	}
	return found, nil
}

// ownLink returns the link of a lock without a gateway. TTLock does not say whether an NB-IoT lock is online: it queues
// the writes.
func (a *Adapter) ownLink(ctx context.Context, id int64, f features) (link, error) {
	l := link{online: true, line: "lock " + strconv.FormatInt(id, 10), method: viaNBIoT}
	if !f.has(bitWiFi) {
		return l, nil
	}
	var got struct {
		Online number `json:"isOnline"`
		Saving number `json:"powerSavingMode"`
	}
	params := url.Values{"lockId": {strconv.FormatInt(id, 10)}}
	c := vendorhttp.Call{Method: http.MethodPost, Path: "/v3/wifiLock/detail"}
	if err := a.call(ctx, c, params, &got); err != nil {
		return l, err
	}
	l.online, l.method = got.Online == 1, viaGateway
	if got.Saving == 1 {
		l.method = viaQueue
	}
	return l, nil
}

// note remembers a lock that was read, and returns it as a device. fresh means that the link was read now. It reports a
// changed connection.
func (a *Adapter) note(w wireLock, l link, fresh bool) (d adapter.Device) {
	var was lock
	a.known.change(w.ref(), func(known *lock) {
		was = *known
		if fresh {
			known.link, known.linkAt = l, a.now()
		}
		d = w.device(l, *known)
		known.device = d
	})
	if d.Ref == "" { // there are too many to remember
		d = w.device(l, lock{})
	}
	if was.device.Ref != "" && was.device.Online != d.Online {
		kind := adapter.DeviceOffline
		if d.Online {
			kind = adapter.DeviceOnline
		}
		a.events.Send(adapter.Event{Kind: kind, Device: d.Ref})
	}
	return d
}

// maxAutoLock bounds the auto-lock delay that a lock reports, in seconds.
const maxAutoLock = 24 * 60 * 60

// device converts a lock. A list lacks some fields, which stay those of known.
func (w wireLock) device(l link, known lock) adapter.Device {
	f := w.features()
	d := adapter.Device{
		Ref:                 w.ref(),
		Name:                cmp.Or(w.Alias, w.Name, "Lock"),
		Type:                "ttlock_lock",
		Provider:            Name,
		Manufacturer:        "TTLock",
		Model:               cmp.Or(w.Model, known.device.Model),
		SerialNumber:        w.MAC,
		Online:              l.online,
		HubOffline:          l.hub && !l.online,
		AutoLock:            known.device.AutoLock,
		LossyEvents:         true,
		Capabilities:        f.capabilities(l),
		CapabilitiesUnknown: f.bits == nil,
	}
	if w.Battery != nil && *w.Battery >= 0 && *w.Battery <= 100 {
		d.BatteryLevel = new(float64(*w.Battery) / 100)
	}
	if w.detailed && f.has(bitAutoLock) && w.AutoLock != nil {
		seconds := min(max(*w.AutoLock, 0), maxAutoLock)
		d.AutoLock = &adapter.AutoLock{Enabled: seconds > 0, Delay: time.Duration(seconds) * time.Second}
	}
	if known.bolt.known {
		d.Locked = new(known.bolt.locked)
	}
	return d
}

// codeLengths are the lengths of PINs: euopen.ttlock.com, "add custom passcode".
var codeLengths = []int{4, 5, 6, 7, 8, 9}

func (f features) capabilities(l link) capability.Set {
	keypad := f.has(bitPasscode) || f.has(bitWirelessKeypad)
	c := capability.Set{
		Lock:            f.has(bitLockCommand),
		Unlock:          f.has(bitRemoteUnlock),
		AutoLock:        f.has(bitAutoLock),
		Hub:             !f.isWireless(),
		OnlineCodes:     keypad,
		OfflineCodes:    keypad && !f.has(bitNoClock),
		ListCodes:       true,
		DeleteUnmanaged: true,
		ModifyInPlace:   true,
		PINVisible:      true,
		NativeSchedule:  true,
		Convert:         capability.ConvertAdopt,
		Confirm:         capability.ConfirmSync,
		CodeLengths:     codeLengths,
		MaxCodes:        maxCodes,
		BuiltInKeypad:   new(f.has(bitPasscode)),
		AccessoryKeypad: new(f.has(bitWirelessKeypad)),
		EntryEvents:     new(true),
	}
	if f.has(bitIncompleteKeypad) {
		c.Constraints = []capability.Constraint{{Type: "cannot_contain_0789"}}
	}
	if l.method != 0 && l.isAsync() {
		c.Confirm = capability.ConfirmReadBack
	}
	return c
}
