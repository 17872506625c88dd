package nuki

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/subscription"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
)

// Limits of pushes.
const (
	pushLimit       = 256 << 10 // bytes
	pushesPerSecond = 100
	pushBurst       = 500
)

// signatureHeader has the hexadecimal HMAC-SHA256 of the body.
const signatureHeader = "X-Nuki-Signature-SHA256"

// features are the pushes to subscribe to.
var features = []string{"DEVICE_STATUS", "DEVICE_MASTERDATA", "DEVICE_CONFIG", "DEVICE_LOGS", "DEVICE_AUTHS"}

// webhook is a subscription. Only the response to its creation has the secret.
type webhook struct {
	ID     int64  `json:"id"`
	URL    string `json:"webhookUrl"`
	Secret string `json:"secret"`
}

func (w webhook) hook() subscription.Hook {
	return subscription.Hook{ID: strconv.FormatInt(w.ID, 10), URL: w.URL, Secret: w.Secret}
}

func (a *Adapter) listHooks(ctx context.Context) (hooks []subscription.Hook, err error) {
	var known adapter.List[webhook]
	err = a.do(ctx, vendorhttp.Call{Path: "/api/decentralWebhook"}, &known)
	for _, w := range known {
		hooks = append(hooks, w.hook())
	}
	return hooks, err
}

func (a *Adapter) createHook(ctx context.Context, at string) (subscription.Hook, error) {
	var made webhook
	err := a.do(ctx, vendorhttp.Call{
		Method: http.MethodPut,
		Path:   "/api/decentralWebhook",
		JSON:   map[string]any{"webhookUrl": at, "webhookFeatures": features},
		Write:  true,
	}, &made)
	if err == nil && made.Secret == "" {
		err = adapter.Errorf(adapter.NotSupported, "Nuki's subscription has no secret that signs pushes")
	}
	return made.hook(), err
}

func (a *Adapter) deleteHook(ctx context.Context, id string) error {
	path := "/api/decentralWebhook/" + url.PathEscape(id)
	return a.do(ctx, vendorhttp.Call{Method: http.MethodDelete, Path: path, Write: true}, nil)
}

func isSigned(header http.Header, body []byte, secret string) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	got, err := hex.DecodeString(header.Get(signatureHeader))
	return err == nil && hmac.Equal(got, mac.Sum(nil))
}

// wirePush is a push. The authorization has its PIN in clear.
type wirePush struct {
	Feature     string   `json:"feature"`
	SmartlockID int64    `json:"smartlockId"`
	Server      *int     `json:"serverState"`
	Auth        wireAuth `json:"smartlockAuth"`
	Log         wireLog  `json:"smartlockLog"`
}

// Receive serves the URL of the subscription. It responds with 204 to each signed push, because Nuki ends subscriptions
// whose pushes fail; with 405 to methods other than POST; with 401 to a push that is not signed with the stored secret;
// with 400 and 413 to an incomplete and to a large push; and with 503 after Close.
func (a *Adapter) Receive(w http.ResponseWriter, r *http.Request) {
	data, ok := a.hook.Receive(w, r)
	switch {
	case !ok:
	case a.open.Err() != nil:
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		a.receive(data)
		w.WriteHeader(http.StatusNoContent)
	}
}

// receive sends the events of a signed push.
func (a *Adapter) receive(data []byte) {
	var p wirePush
	if !a.pushes.Allow() || json.Unmarshal(data, &p) != nil {
		a.events.Send(adapter.Event{Kind: adapter.Resync})
		return
	}
	device := wireLock{ID: p.SmartlockID}.ref()
	switch p.Feature {
	case "DEVICE_STATUS":
		a.devices.forget()
		a.events.Send(a.seen.noteOnline(device, wireLock{Server: p.Server}.isOnline()))
	case "DEVICE_MASTERDATA", "DEVICE_CONFIG":
		a.devices.forget()
		a.events.Send(adapter.Event{Kind: adapter.DeviceListed})
	case "DEVICE_AUTHS":
		a.auths.forget()
		if p.Auth.Type == keypadCode && isID(p.Auth.ID) {
			ref := wireLock{ID: p.Auth.SmartlockID}.ref()
			a.events.Send(adapter.Event{Kind: adapter.CodesChanged, Device: ref, Code: adapter.CodeRef(p.Auth.ID)})
		}
	case "DEVICE_LOGS":
		if !isID(p.Log.ID) || !a.seen.isNew(p.Log.ID) {
			return
		}
		if e, ok := p.Log.event(); ok {
			a.events.Send(e)
		}
	}
}
