package devicecloud

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Interval and timeout of the checks whether the vendor still has the webhook.
const (
	webhookCheckInterval = 5 * time.Minute
	webhookCheckTimeout  = 30 * time.Second
)

// webhook is one of the account's webhooks, as listed by the vendor.
type webhook struct {
	ID     string               `json:"webhook_id"`
	URL    string               `json:"url"`
	Events adapter.List[string] `json:"events"`
	// Status is "active" in the guide; empty when the vendor does not report one.
	Status string `json:"status"`
}

// works reports whether the webhook is active. It returns false only for the known words for a disabled webhook.
func (w webhook) works() bool {
	switch strings.ToLower(w.Status) {
	case "disabled", "inactive", "failed", "failing", "suspended", "paused", "expired", "revoked", "deleted",
		"unhealthy":
		return false
	}
	return true
}

// webhooks lists the account's webhooks. It returns nil if the vendor does not implement the list, which is optional.
// It fails like Devices.
func (a *Adapter) webhooks(ctx context.Context) ([]webhook, error) {
	var known struct {
		Webhooks adapter.List[webhook] `json:"webhooks"`
	}
	err := a.do(ctx, call{method: http.MethodGet, path: "/webhooks", account: true}, &known)
	switch adapter.ClassOf(err) {
	case adapter.AuthRevoked, adapter.GatewayDown:
		return nil, err
	}
	if err != nil {
		return nil, nil //nolint:nilerr // the list is optional
	}
	return known.Webhooks, nil
}

// Subscribe registers Config.PushURL as a webhook at the vendor and then sends a Resync, because earlier changes may
// not have been pushed. Repeated calls create no second webhook if the vendor lists webhooks, or keeps one per URL as
// the guide requires. A webhook with the same path at another address belongs to the server's former address and is
// deleted, and so are those at Config.OtherPushURLs. Subscribe fails like Devices, and with Invalid when the vendor rejects the URL.
func (a *Adapter) Subscribe(ctx context.Context) error {
	if err := a.subscribe(ctx); err != nil {
		return err
	}
	a.events.Send(adapter.Event{Kind: adapter.Resync})
	return nil
}

func (a *Adapter) subscribe(ctx context.Context) error {
	known, err := a.webhooks(ctx)
	if err != nil {
		return err
	}
	return a.ensureWebhook(ctx, known)
}

// ensureWebhook creates a webhook unless a suitable one exists among known.
func (a *Adapter) ensureWebhook(ctx context.Context, known []webhook) error {
	for _, w := range known {
		elsewhere := w.URL != a.pushURL && samePath(w.URL, a.pushURL) ||
			slices.ContainsFunc(a.others, func(other string) bool { return samePath(w.URL, other) })
		// While a dead webhook exists, the vendor may reject another one with the same URL, or leave it unchanged.
		dead := w.URL == a.pushURL && !w.works()
		if inPath(w.ID) && (elsewhere || dead) {
			// The error does not matter: the vendor detects that nothing responds at the old address, and may accept
			// another webhook nevertheless.
			_ = a.do(ctx, call{method: http.MethodDelete, path: "/webhooks/" + url.PathEscape(w.ID), account: true},
				nil)
		}
	}
	for _, w := range known {
		missing := slices.ContainsFunc(subscribed, func(name string) bool { return !slices.Contains(w.Events, name) })
		if w.URL == a.pushURL && w.works() && !missing {
			return nil
		}
	}
	body := map[string]any{"url": a.pushURL, "events": subscribed}
	return a.do(ctx, call{
		method:  http.MethodPost,
		path:    "/webhooks",
		body:    body,
		account: true,
	}, nil)
}

// Outdated reports whether the adapter must be opened again, because another push URL has replaced its own.
func (a *Adapter) Outdated() bool { return a.outdated != nil && a.outdated() }

// warnAfter is the number of consecutive failures after which StaySubscribed logs a warning.
const warnAfter = 5

// StaySubscribed subscribes, and resubscribes whenever the vendor has lost the webhook, until ctx ends or the adapter
// is closed. If the first subscription fails, it sends one Resync.
func (a *Adapter) StaySubscribed(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.open, cancel)()
	var s subscription
	pause, failed, said := time.Second, 0, false
	for first := true; ; first = false {
		err := a.keepSubscribed(ctx, &s)
		switch {
		case err == nil:
			failed = 0
			pause = (webhookCheckInterval*3/4 + rand.N(webhookCheckInterval/2)) << min(max(s.lost-1, 0), 3)
		case first:
			a.events.Send(adapter.Event{Kind: adapter.Resync})
		default:
			pause = min(2*pause, webhookCheckInterval)
		}
		if err != nil {
			failed++
			if e := adapter.AsError(err); e != nil {
				pause = max(pause, e.RetryAfter)
			}
			a.log.DebugContext(ctx, "subscribe to a vendor's events", "error", err)
		}
		switch troubled := max(failed, s.lost); {
		case troubled == 0:
			said = false
		case troubled >= warnAfter && !said:
			said = true
			a.log.WarnContext(
				ctx,
				"the vendor removed the webhook; the server detects device changes only by polling; "+
					"the server keeps retrying; check that the vendor can reach the push address",
				"tries",
				warnAfter,
				"error",
				err,
			)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// subscription is the known state of the webhook.
type subscription struct {
	// registered means that the vendor presumably has the webhook.
	registered bool
	// listed means that the vendor has listed the webhook at least once, active or not. If it is missing later, the
	// vendor has lost it. Some vendors list none.
	listed bool
	// lost counts the consecutive checks that did not find the webhook.
	lost int
}

// keepSubscribed subscribes unless the vendor lists the webhook, or has never listed it.
func (a *Adapter) keepSubscribed(ctx context.Context, s *subscription) error {
	ctx, cancel := context.WithTimeout(ctx, webhookCheckTimeout)
	defer cancel()
	known, err := a.webhooks(ctx)
	if err != nil || s.registered && known == nil {
		return err
	}
	works := false
	for _, w := range known {
		// At another address it belongs to another server, which will have moved it. Deleting it would lead to mutual
		// deletion.
		if w.URL == a.pushURL || samePath(w.URL, a.pushURL) {
			s.listed = true
			works = works || w.works()
		}
	}
	switch {
	case s.registered && works:
		s.lost = 0
		return nil
	case s.registered && !s.listed:
		return nil
	case s.registered:
		s.lost++
	}
	s.registered = false
	if err := a.ensureWebhook(ctx, known); err != nil {
		return err
	}
	s.registered = true
	a.events.Send(adapter.Event{Kind: adapter.Resync})
	return nil
}

// samePath reports whether two URLs have the same path. The path contains the server's secret and is therefore
// unique.
func samePath(a, b string) bool {
	u, err := url.Parse(a)
	if err != nil {
		return false
	}
	v, err := url.Parse(b)
	return err == nil && u.Path == v.Path && len(u.Path) > 1
}
