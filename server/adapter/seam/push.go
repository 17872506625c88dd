package seam

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/subscription"
)

// Limits of pushes.
const (
	pushLimit       = 64 << 10 // bytes
	pushesPerSecond = 100
	pushBurst       = 500
	// signatureAge is how far the timestamp of a push may differ from this machine's clock (Standard Webhooks).
	signatureAge = 5 * time.Minute
)

// eventTypes are the events to subscribe to. The hosted API has had them since 2024; older servers reject newer ones.
var eventTypes = []string{
	"access_code.backup_access_code_pulled",
	"access_code.changed",
	"access_code.created",
	"access_code.delay_in_removing_from_device",
	"access_code.delay_in_setting_on_device",
	"access_code.deleted",
	"access_code.deleted_external_to_seam",
	"access_code.failed_to_remove_from_device",
	"access_code.failed_to_set_on_device",
	"access_code.modified_external_to_seam",
	"access_code.removed_from_device",
	"access_code.scheduled_on_device",
	"access_code.set_on_device",
	"access_code.unmanaged.converted_to_managed",
	"access_code.unmanaged.created",
	"access_code.unmanaged.failed_to_convert_to_managed",
	"access_code.unmanaged.removed",
	"connected_account.connected",
	"connected_account.deleted",
	"connected_account.disconnected",
	"device.battery_status_changed",
	"device.connected",
	"device.converted_to_unmanaged",
	"device.disconnected",
	"device.low_battery",
	"device.removed",
	"device.tampered",
	"device.unmanaged.converted_to_managed",
	"lock.locked",
	"lock.unlocked",
}

// webhook is a webhook in a response.
type webhook struct {
	ID     string `json:"webhook_id"`
	URL    string `json:"url"`
	Secret string `json:"secret"`
}

func (a *Adapter) listWebhooks(ctx context.Context) (hooks []subscription.Hook, err error) {
	var known struct {
		Webhooks adapter.List[webhook] `json:"webhooks"`
	}
	err = a.read(ctx, "/webhooks/list", map[string]any{}, &known)
	for _, w := range known.Webhooks {
		hooks = append(hooks, subscription.Hook(w))
	}
	return hooks, err
}

func (a *Adapter) createWebhook(ctx context.Context, at string) (subscription.Hook, error) {
	var made struct {
		Webhook webhook `json:"webhook"`
	}
	body := map[string]any{"url": at, "event_types": eventTypes}
	if _, err := a.do(ctx, call{path: "/webhooks/create", body: body, write: true}, &made); err != nil {
		return subscription.Hook{}, err
	}
	if _, err := signingKey(made.Webhook.Secret); err != nil || made.Webhook.ID == "" {
		return subscription.Hook{}, adapter.Errorf(
			adapter.NotSupported, "the server's webhooks have no secret that signs them")
	}
	return subscription.Hook(made.Webhook), nil
}

func (a *Adapter) deleteWebhook(ctx context.Context, id string) error {
	_, err := a.do(ctx, call{path: "/webhooks/delete", body: map[string]any{"webhook_id": id}, write: true}, nil)
	return err
}

// signingKey decodes a secret of Standard Webhooks.
func signingKey(secret string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) < 8 {
		return nil, errors.New("the secret is not of Standard Webhooks")
	}
	return key, nil
}

// isSigned reports whether a push is signed with a secret (Standard Webhooks 1.0; Svix uses other header names).
func isSigned(header http.Header, body []byte, secret string, now time.Time) bool {
	key, err := signingKey(secret)
	if err != nil {
		return false
	}
	for _, prefix := range []string{"webhook-", "svix-"} {
		id, sent := header.Get(prefix+"id"), header.Get(prefix+"timestamp")
		seconds, err := strconv.ParseInt(sent, 10, 64)
		if id == "" || err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > signatureAge {
			continue
		}
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.", id, sent)
		mac.Write(body)
		want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
		for _, got := range strings.Fields(header.Get(prefix + "signature")) {
			if hmac.Equal([]byte(got), []byte(want)) {
				return true
			}
		}
	}
	return false
}

// Receive serves the URL of the webhook. It responds with 204 to signed events; with 405 to methods other than POST;
// with 401 to a push that is not signed with the stored secret; with 400 to an unreadable one; with 413 to a push that
// is too large; with 429 above the rate limit; and with 503 after Close. The event log contains what it refuses.
func (a *Adapter) Receive(w http.ResponseWriter, r *http.Request) {
	if !a.pushes.Allow() {
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	data, ok := a.hook.Receive(w, r)
	if !ok {
		return
	}
	var e wireEvent
	if json.Unmarshal(data, &e) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if a.open.Err() != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if out, ok := a.unhandled(e); ok {
		a.events.Send(out)
	}
	w.WriteHeader(http.StatusNoContent)
}
