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

// How often it is looked whether the vendor still has our webhook, and how long each look may take.
const (
	webhookEvery  = 5 * time.Minute
	webhookWithin = 30 * time.Second
)

// webhook is one of the account's, as the vendor lists it.
type webhook struct {
	ID     string               `json:"webhook_id"`
	URL    string               `json:"url"`
	Events adapter.List[string] `json:"events"`
	Status string               `json:"status"` // "active" in the guide; empty where the vendor does not say
}

// works is false where the vendor says, in one of the words for it, that it sends nothing any more.
func (w webhook) works() bool {
	switch strings.ToLower(w.Status) {
	case "disabled", "inactive", "failed", "failing", "suspended", "paused", "expired", "revoked", "deleted", "unhealthy":
		return false
	}
	return true
}

// webhooks lists the account's webhooks, nil where the vendor does not list them: it need not. It fails like Devices.
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
		return nil, nil //nolint:nilerr // it is no more than not knowing
	}
	return known.Webhooks, nil
}

// Subscribe asks the vendor to push its events to Config.PushURL, and then has everything looked at: of what was before
// nobody may have told. Repeating it makes no second webhook where the vendor lists webhooks, or keeps one for each URL
// as the guide wants. A webhook of the same path at another address is ours from before we moved, and is taken away.
// It fails like Devices, and with Invalid where the vendor refuses the URL.
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
	for _, w := range known {
		if inPath(w.ID) && w.URL != a.pushURL && samePath(w.URL, a.pushURL) {
			// It is a courtesy: the vendor finds out by itself that nobody answers there.
			_ = a.do(ctx, call{method: http.MethodDelete, path: "/webhooks/" + url.PathEscape(w.ID), account: true}, nil)
		}
	}
	for _, w := range known {
		missing := slices.ContainsFunc(subscribed, func(name string) bool { return !slices.Contains(w.Events, name) })
		if w.URL == a.pushURL && w.works() && !missing {
			return nil
		}
	}
	body := map[string]any{"url": a.pushURL, "events": subscribed}
	return a.do(ctx, call{method: http.MethodPost, path: "/webhooks", body: body, account: true}, nil)
}

// StaySubscribed does what Subscribe does, and again whenever the vendor no longer has the webhook, until ctx ends or the adapter is
// closed. Where the vendor takes none everything is looked at once.
func (a *Adapter) StaySubscribed(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.open, cancel)()
	pause, is, seen := time.Second, false, false
	for first := true; ; first = false {
		err := a.stay(ctx, &is, &seen)
		switch {
		case err == nil:
			pause = webhookEvery*3/4 + rand.N(webhookEvery/2)
		case first:
			a.events.Send(adapter.Event{Kind: adapter.Resync})
		default:
			pause = min(2*pause, webhookEvery)
		}
		if err != nil {
			a.log.DebugContext(ctx, "subscribe to a vendor's events", "error", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// stay subscribes unless that is so: as long as the vendor lists the webhook, or has not listed it since it was made. Some list none.
func (a *Adapter) stay(ctx context.Context, is, seen *bool) error {
	ctx, cancel := context.WithTimeout(ctx, webhookWithin)
	defer cancel()
	if *is {
		known, err := a.webhooks(ctx)
		if err != nil || known == nil {
			return err
		}
		// With another address it is that of another server, which will have moved it. Taking it away from each other would not end.
		there := slices.ContainsFunc(known, func(w webhook) bool { return w.works() && (w.URL == a.pushURL || samePath(w.URL, a.pushURL)) })
		if there || !*seen {
			*seen = there
			return nil
		}
	}
	err := a.Subscribe(ctx)
	*is, *seen = err == nil, false
	return err
}

// samePath says whether two URLs differ in nothing but where they are served. The path holds our secret, so
// nobody else's has the same.
func samePath(a, b string) bool {
	u, err := url.Parse(a)
	if err != nil {
		return false
	}
	v, err := url.Parse(b)
	return err == nil && u.Path == v.Path && len(u.Path) > 1
}
