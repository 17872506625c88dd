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
	return a.subscribeBeside(ctx, known)
}

// subscribeBeside makes a webhook where there is none that will do among those of the account.
func (a *Adapter) subscribeBeside(ctx context.Context, known []webhook) error {
	for _, w := range known {
		elsewhere := w.URL != a.pushURL && samePath(w.URL, a.pushURL)
		dead := w.URL == a.pushURL && !w.works() // as long as it is there the vendor may refuse another one of the URL, or leave it as it is
		if inPath(w.ID) && (elsewhere || dead) {
			// That it fails is no matter: the vendor finds out by itself that nobody answers elsewhere, and may take one more all the same.
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

// sayAfter is after how many tries in a row that have come to nothing this is said.
const sayAfter = 5

// StaySubscribed does what Subscribe does, and again whenever the vendor no longer has the webhook, until ctx ends or the adapter is
// closed. Where the vendor takes none everything is looked at once.
func (a *Adapter) StaySubscribed(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.open, cancel)()
	var s subscription
	pause, failed, said := time.Second, 0, false
	for first := true; ; first = false {
		err := a.stay(ctx, &s)
		switch {
		case err == nil:
			failed = 0
			pause = (webhookEvery*3/4 + rand.N(webhookEvery/2)) << min(max(s.lost-1, 0), 3)
		case first:
			a.events.Send(adapter.Event{Kind: adapter.Resync})
		default:
			pause = min(2*pause, webhookEvery)
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
		case troubled >= sayAfter && !said:
			said = true
			a.log.WarnContext(ctx, "the vendor keeps no webhook of ours, which is tried further: what is done at its devices is found out late; can it reach the address that it is to push to?",
				"tries", sayAfter, "error", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// subscription is what is known of our webhook.
type subscription struct {
	is     bool // the vendor has it, as far as we know
	listed bool // the vendor has listed it once, working or not: where it does not any more, it is gone. Some list none
	lost   int  // how many looks in a row have not found it
}

// stay subscribes unless that is so: as long as the vendor lists the webhook, or has never listed it.
func (a *Adapter) stay(ctx context.Context, s *subscription) error {
	ctx, cancel := context.WithTimeout(ctx, webhookWithin)
	defer cancel()
	known, err := a.webhooks(ctx)
	if err != nil || s.is && known == nil {
		return err
	}
	works := false
	for _, w := range known {
		// With another address it is that of another server, which will have moved it. Taking it away from each other would not end.
		if w.URL == a.pushURL || samePath(w.URL, a.pushURL) {
			s.listed = true
			works = works || w.works()
		}
	}
	switch {
	case s.is && works:
		s.lost = 0
		return nil
	case s.is && !s.listed:
		return nil
	case s.is:
		s.lost++
	}
	s.is = false
	if err := a.subscribeBeside(ctx, known); err != nil {
		return err
	}
	s.is = true
	a.events.Send(adapter.Event{Kind: adapter.Resync})
	return nil
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
