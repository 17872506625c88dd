package webhook

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// schedule is the pauses between attempts, each counted from the previous failure (spec/contract.md section 7).
var schedule = []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 10 * time.Hour}

const (
	healthyWidth = 32        // requests to one endpoint at once, when it answers
	firstWidth   = 2         // those before it has: an endpoint that hangs holds few connections; each success makes it one more
	moreAtOnce   = 256       // requests to all endpoints at once beyond the first one, or the first ones of those that have answered the last time: each keeps a connection with its goroutines, and many endpoints may be slow
	failingAfter = 5         // failures in a row, from which on one at a time is tried, with ever longer pauses
	maxObeyed    = time.Hour // what an endpoint can ask for with Retry-After
)

// width is how many requests an endpoint gets at once.
func width(failures int) int {
	if failures < failingAfter {
		return healthyWidth
	}
	return 1
}

// probePause is how long a failing endpoint is left alone, whatever is due there.
func (o Options) probePause(failures int) time.Duration {
	if failures < failingAfter {
		return 0
	}
	return o.ProbePause * time.Duration(min(1<<min(failures-failingAfter, 6), 60))
}

// next turns an answer into what becomes of the delivery; step counts the attempts before it.
func (o Options) next(a answer, step int) access.DeliveryAttempt {
	out := access.DeliveryAttempt{EventID: a.event, Latency: a.latency, Status: a.status, Error: a.problem, Excerpt: a.excerpt}
	switch {
	case a.ok():
		out.State = access.DeliveryDelivered
	case a.abort, step >= len(o.Schedule):
		out.State = access.DeliveryFailed
	default:
		out.State = access.DeliveryPending
		planned := o.Schedule[step]
		out.Pause = max(planned+rand.N(planned/10+1), min(a.retryAfter, maxObeyed))
	}
	if a.status == http.StatusGone { // kept, to be replayed when somebody has repaired the webhook
		out.State, out.Pause = access.DeliveryPending, 0
	}
	return out
}

// outcome is what metrics call it.
func outcome(a answer, state access.DeliveryState) string {
	switch {
	case a.ok():
		return "delivered"
	case a.status == http.StatusGone:
		return "gone"
	case state == access.DeliveryFailed:
		return "given_up"
	}
	return "retry"
}

// prompt says whether an endpoint is, after an answer: one that is good and came within an eighth of the time that it may take, or half of that
// where the endpoint was not, so that it does not change with every answer.
func (o Options) prompt(was bool, a answer) bool {
	within := o.Timeout / 8
	if !was {
		within /= 2
	}
	return a.ok() && a.latency <= within
}

// health is what answers, in the order in which they came, show about an endpoint, which was read so long ago.
func (o Options) health(e access.Endpoint, ago time.Duration, answers []answer) access.Health {
	h := access.Health{Failures: e.Failures, Prompt: e.Prompt}
	answers = slices.DeleteFunc(slices.Clone(answers), func(a answer) bool { return a.unopened })
	if len(answers) == 0 {
		return h
	}
	for _, a := range answers {
		h.Prompt = o.prompt(h.Prompt, a)
		if a.ok() {
			h.Failures, h.Recovered, h.Pause = 0, true, 0
			continue
		}
		h.Failures++
		if a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable {
			h.Pause = max(h.Pause, min(a.retryAfter, maxObeyed))
		}
		if a.status == http.StatusGone {
			h.Disable = "The endpoint answered 410 Gone."
		}
	}
	h.Pause = max(h.Pause, o.probePause(h.Failures))
	if h.Disable == "" && h.Failures > 0 && !h.Recovered && e.Failures > 0 && e.FailingFor+ago >= o.DisableAfter {
		h.Disable = "Every attempt failed for " + o.DisableAfter.String() + "."
	}
	return h
}
