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

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

const problemSize = 500

// answer is the result of one request.
type answer struct {
	event      uuid.UUID
	status     int           // HTTP status; 0: no response
	problem    string        // why the attempt failed; empty: it succeeded
	excerpt    string        // beginning of the body, without secrets
	retryAfter time.Duration // requested by the endpoint; 0: none
	abort      bool          // the endpoint rejects this event permanently
	latency    time.Duration
	cause      error // why there was no response
	cut        bool  // this server ended the request, so the result is unknown
	unread     error // why the event could not be read; nothing was sent
	withdrawn  bool  // nothing was sent because the webhook is disabled or deleted
	unopened   bool  // nothing was sent because the event cannot be decrypted, which is not the endpoint's fault
}

func (a answer) ok() bool { return a.problem == "" }

// deliver makes one attempt at a delivery. For a large event it first waits for memory and then
// reads the event. If the wait exceeded the poll interval, it reads the endpoint again, too.
func (d *Deliverer) deliver(ctx context.Context, w Endpoint, next Delivery) answer {
	if next.Unopened != nil {
		return d.unopened(w, next, next.Unopened)
	}
	if !next.Unread {
		return d.send(ctx, w, next.Event)
	}
	begin := time.Now()
	free, err := d.memory.acquire(ctx, w.WorkspaceID, w.ID, next.Size)
	if err != nil {
		return answer{event: next.Event.ID, cut: true, unread: err}
	}
	free = sync.OnceFunc(free)
	defer free()
	if time.Since(begin) >= d.opt.PollInterval {
		w, err = d.access.GetEndpoint(ctx, w.ID)
		if isGone(err) || err == nil && isHeld(w) {
			return answer{event: next.Event.ID, cut: true, withdrawn: true}
		}
		if err != nil {
			return answer{event: next.Event.ID, cut: true, unread: err}
		}
	}
	ev, err := d.access.GetDue(ctx, next.Event.ID)
	if errors.Is(err, event.ErrUnopened) {
		return d.unopened(w, next, err)
	}
	if err != nil {
		return answer{event: next.Event.ID, cut: true, unread: err}
	}
	return d.attempt(ctx, w, ev, free)
}

// unopened returns the failed attempt for an event that cannot be decrypted. It is retried, because
// a restore from backup may bring the data key back.
func (d *Deliverer) unopened(w Endpoint, next Delivery, err error) answer {
	d.opt.Log.Error(
		"an event cannot be decrypted and was not sent",
		"webhook_id",
		w.ID,
		"event_id",
		next.Event.ID,
		"error",
		err,
	)
	return answer{
		event:    next.Event.ID,
		unopened: true,
		problem: "Nothing was sent, because the event cannot be decrypted. " +
			"Its encrypted part is damaged or its data key is missing.",
	}
}

// send makes one attempt.
func (d *Deliverer) send(ctx context.Context, w Endpoint, e event.Event) answer {
	return d.attempt(ctx, w, e, nil)
}

// attempt is like send, and calls written when the endpoint has received the whole event, which is
// then released.
func (d *Deliverer) attempt(ctx context.Context, w Endpoint, e event.Event, written func()) (a answer) {
	// Do not hold the payload while waiting for the response.
	begin, eventType := time.Now(), e.Type
	a.event = e.ID
	ctx, span := traces.Start(ctx, "deliver")
	defer func() {
		a.latency = time.Since(begin)
		a.endSpan(span, w, eventType)
	}()
	limited, cancel := context.WithTimeout(ctx, d.opt.Timeout)
	defer cancel()
	req, secrets, err := request(limited, w, e, begin)
	if err != nil {
		a.problem = explain(err, secrets)
		return a
	}
	if written != nil {
		dropBodyWhenSent(req, written)
	}
	if worker.Held(ctx) != nil {
		a.cut, a.problem = true, "Nothing was sent, because another server may be sending to this endpoint."
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
		a.problem = "The endpoint answered " + strings.TrimSpace(
			strconv.Itoa(res.StatusCode)+" "+http.StatusText(res.StatusCode),
		) + "."
		a.retryAfter = retryAfter(res.Header.Get("Retry-After"), time.Now())
		a.abort = res.Header.Get("webhook-delivery") == "abort-message"
	}
	if res.StatusCode == http.StatusSwitchingProtocols {
		// The connection is ours now, and no deadline would end a read from it.
		return a
	}
	// The response counts even if reading the body fails.
	a.excerpt = excerptOf(res.Body, secrets)
	return a
}

// endSpan ends the span of an attempt. The request carries no trace context, because the endpoint
// belongs to another party.
func (a answer) endSpan(span traces.Span, w Endpoint, eventType string) {
	if !span.Recording() {
		return
	}
	span.Set(traces.Webhook(w.ID), traces.Event(a.event), traces.EventType(eventType), traces.Method(http.MethodPost),
		traces.Status(a.status))
	span.Set(traces.ServerAddress(w.URL)...)
	switch {
	case a.ok():
	case a.cut:
		span.Fail("canceled")
	case isProhibited(a.cause):
		span.Fail("address_refused")
	case a.status == 0:
		span.Fail(traces.ErrorWord(a.cause, "no_answer"))
	default:
		span.Fail(strconv.Itoa(a.status))
	}
	span.End()
}

// request creates the request, and returns the secrets in it that must not appear in logs.
func request(
	ctx context.Context,
	w Endpoint,
	e event.Event,
	at time.Time,
) (_ *http.Request, secrets []string, err error) {
	// Marshal again for each attempt, because a PIN in the event is stored only encrypted.
	content, err := json.Marshal(e)
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

// isProhibited reports whether the guard refused the address.
func isProhibited(err error) bool {
	return errors.Is(err, ssrf.ErrProhibitedIP) || errors.Is(err, ssrf.ErrProhibitedNetwork)
}

// explain returns why there was no response. It omits the URL, which may contain a token, and
// control characters, which could attack the reader's terminal.
func explain(err error, secrets []string) string {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if isProhibited(err) {
		// Do not reveal to which address a name resolves here.
		return "The endpoint's address is not public, or belongs to the server's machine or its cloud. To allow it, " +
			"start the server with --allow-webhook-prefix."
	}
	printable := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, err.Error())
	return redact(printable, secrets, problemSize)
}

// retryAfter parses the Retry-After header, which holds seconds or a date. It returns 0 for any
// other value.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(value); err == nil {
		return time.Duration(min(max(seconds, 0), 1<<30)) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
