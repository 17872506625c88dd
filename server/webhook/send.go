package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"code.dny.dev/ssrf"
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

const problemSize = 500

// answer is what one request has come to.
type answer struct {
	event      uuid.UUID
	status     int           // of HTTP; 0: there was none
	problem    string        // why it counts as a failure; empty: it does not
	excerpt    string        // how the body begins, without what is secret
	retryAfter time.Duration // as the endpoint asks; 0: it does not
	abort      bool          // the endpoint does not want this event again
	latency    time.Duration
	cause      error // why there was no answer
	cut        bool  // this program has ended it: nothing was learnt
	unread     error // nothing was sent: its event could not be read
	withdrawn  bool  // nothing was sent: nothing is to be sent to its endpoint any more
	unopened   bool  // nothing was sent: its event cannot be opened, for which the endpoint can do nothing
}

func (a answer) ok() bool { return a.problem == "" }

// deliver makes one attempt at a delivery. What carries much waits for its share of the memory first, and is read then, with the
// endpoint where that has taken so long that a pass would have read it again.
func (d *Deliverer) deliver(ctx context.Context, w access.Endpoint, next access.Delivery) answer {
	if next.Unopened != nil {
		return d.unopened(w, next, next.Unopened)
	}
	if !next.Unread {
		return d.send(ctx, w, next.Event)
	}
	begin := time.Now()
	free, err := d.loads.take(ctx, w.WorkspaceID, w.ID, next.Size)
	if err != nil {
		return answer{event: next.Event.ID, cut: true, unread: err}
	}
	free = sync.OnceFunc(free)
	defer free()
	if time.Since(begin) >= d.opt.Glance {
		w, err = d.access.GetEndpoint(ctx, w.ID)
		if isGone(err) || err == nil && holds(w) {
			return answer{event: next.Event.ID, cut: true, withdrawn: true}
		}
		if err != nil {
			return answer{event: next.Event.ID, cut: true, unread: err}
		}
	}
	event, err := d.access.GetDue(ctx, next.Event.ID)
	if errors.Is(err, access.ErrUnopened) {
		return d.unopened(w, next, err)
	}
	if err != nil {
		return answer{event: next.Event.ID, cut: true, unread: err}
	}
	return d.attempt(ctx, w, event, free)
}

// unopened is an attempt that fails before anything is sent. It is made again as others are: the data key may come back with a backup.
func (d *Deliverer) unopened(w access.Endpoint, next access.Delivery, err error) answer {
	d.opt.Log.Error("an event cannot be opened, and is not sent", "webhook", w.ID, "event", next.Event.ID, "error", err)
	return answer{event: next.Event.ID, unopened: true, problem: "Nothing was sent: the event cannot be opened. What is sealed of it is damaged, or its data key is gone."}
}

// send makes one attempt.
func (d *Deliverer) send(ctx context.Context, w access.Endpoint, e access.Event) answer {
	return d.attempt(ctx, w, e, nil)
}

// attempt is send, and tells written once the endpoint has all of the event, which is not kept then.
func (d *Deliverer) attempt(ctx context.Context, w access.Endpoint, e access.Event, written func()) (a answer) {
	begin, eventType := time.Now(), e.Type // what it carries is not kept while the endpoint thinks about it
	a.event = e.ID
	ctx, span := traces.Begin(ctx, "deliver")
	defer func() {
		a.latency = time.Since(begin)
		a.tell(span, w, eventType)
	}()
	limited, cancel := context.WithTimeout(ctx, d.opt.Timeout)
	defer cancel()
	req, secrets, err := request(limited, w, e, begin)
	if err != nil {
		a.problem = explain(err, secrets)
		return a
	}
	if written != nil {
		lighten(req, written)
	}
	if worker.Held(ctx) != nil {
		a.cut, a.problem = true, "Nothing was sent: another server may be at work on this endpoint by now."
		return a
	}
	res, err := d.client.Do(req)
	if err != nil {
		a.cut, a.cause = ctx.Err() != nil, err
		a.problem = explain(err, secrets)
		if limited.Err() != nil {
			a.cause = limited.Err()
			a.problem = fmt.Sprintf("The endpoint did not answer within %s.", d.opt.Timeout)
		}
		return a
	}
	defer res.Body.Close()
	a.status = res.StatusCode
	if res.StatusCode < 200 || res.StatusCode > 299 {
		a.problem = "The endpoint answered " + strings.TrimSpace(strconv.Itoa(res.StatusCode)+" "+http.StatusText(res.StatusCode)) + "."
		a.retryAfter = retryAfter(res.Header.Get("Retry-After"), time.Now())
		a.abort = res.Header.Get("webhook-delivery") == "abort-message"
	}
	if res.StatusCode == http.StatusSwitchingProtocols {
		return a // its connection is ours now, and no deadline would end the reading of it
	}
	a.excerpt = excerptOf(res.Body, secrets) // it has answered, whatever becomes of the rest
	return a
}

// tell ends the span of an attempt. The request itself carries none of it: the endpoint is somebody else's.
func (a answer) tell(span traces.Span, w access.Endpoint, eventType string) {
	if !span.On() {
		return
	}
	span.Set(traces.Webhook(w.ID), traces.Event(a.event), traces.EventType(eventType), traces.Method(http.MethodPost), traces.Status(a.status))
	span.Set(traces.At(w.URL)...)
	switch {
	case a.ok():
	case a.cut:
		span.Fail("canceled")
	case isProhibited(a.cause):
		span.Fail("address_refused")
	case a.status == 0:
		span.Fail(traces.Word(a.cause, "no_answer"))
	default:
		span.Fail(strconv.Itoa(a.status))
	}
	span.End()
}

// request makes the request, and names what of it no log may show.
func request(ctx context.Context, w access.Endpoint, e access.Event, at time.Time) (_ *http.Request, secrets []string, err error) {
	content, err := json.Marshal(e) // anew for each attempt: a PIN that it may carry is stored sealed only
	if err != nil {
		return nil, nil, err
	}
	id := e.ID.String()
	signature, err := sign(id, at, content, w.Secret, w.OldSecret)
	if err != nil {
		return nil, nil, err
	}
	secrets = append(strings.Fields(signature), w.Secret, strings.TrimPrefix(w.Secret, "whsec_"))
	if w.OldSecret != "" {
		secrets = append(secrets, w.OldSecret, strings.TrimPrefix(w.OldSecret, "whsec_"))
	}
	secrets = append(secrets, e.PINs...)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(content))
	if err != nil {
		return nil, secrets, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "deviceaccess-webhooks/1")
	for name, value := range headers(id, at, signature) {
		req.Header.Set(name, value)
	}
	return req, secrets, nil
}

// isProhibited says that the guard has kept the request away.
func isProhibited(err error) bool {
	return errors.Is(err, ssrf.ErrProhibitedIP) || errors.Is(err, ssrf.ErrProhibitedNetwork)
}

// explain says why there was no answer, without the URL, which may carry a token, and without control characters,
// which the endpoint may have sent for the terminal of whoever reads it.
func explain(err error, secrets []string) string {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if isProhibited(err) {
		// What a name stands for here is not told to whoever has made the webhook.
		return "The endpoint's address is not public. The server sends there once it is started with --allow-webhook-prefix for it."
	}
	printable := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, err.Error())
	return redact(printable, secrets, problemSize)
}

// retryAfter reads the header of that name: seconds, or a date. 0 for anything else.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(value); err == nil {
		return time.Duration(min(max(seconds, 0), 1<<30)) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
