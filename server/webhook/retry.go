package webhook

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"time"
)

// schedule lists the pauses between attempts, each counted from the previous failure.
var schedule = []time.Duration{
	5 * time.Second,
	5 * time.Minute,
	30 * time.Minute,
	2 * time.Hour,
	5 * time.Hour,
	10 * time.Hour,
	10 * time.Hour,
}

const (
	// healthyConcurrency is the maximum number of concurrent requests to a healthy endpoint.
	healthyConcurrency = 32
	// initialConcurrency is the same for an endpoint without a success so far, so that a hanging endpoint
	// holds few connections. Each success adds one.
	initialConcurrency = 2
	// maxExtraRequests is the maximum number of concurrent requests to all endpoints beyond the
	// guaranteed ones. Each holds a connection with its goroutines, and many endpoints may be slow.
	maxExtraRequests = 256
	// failingAfter is the number of consecutive failures after which an endpoint gets one request
	// at a time, with growing pauses.
	failingAfter = 5
	// maxRetryAfter limits the pause that an endpoint requests with Retry-After.
	maxRetryAfter = time.Hour
)

// maxConcurrency returns the maximum number of concurrent requests to an endpoint.
func maxConcurrency(failures int) int {
	if failures < failingAfter {
		return healthyConcurrency
	}
	return 1
}

// probePause returns the pause of a failing endpoint, which applies to all its deliveries.
func (o Options) probePause(failures int) time.Duration {
	if failures < failingAfter {
		return 0
	}
	return o.ProbePause * time.Duration(min(1<<min(failures-failingAfter, 6), 60))
}

// planAttempt returns the attempt to record for a response. step is the number of earlier attempts.
func (o Options) planAttempt(a answer, step int) DeliveryAttempt {
	out := DeliveryAttempt{
		EventID: a.event,
		Latency: a.latency,
		Status:  a.status,
		Error:   a.problem,
		Excerpt: a.excerpt,
	}
	switch {
	case a.ok():
		out.State = DeliveryDelivered
	case a.abort, step >= len(o.Schedule):
		out.State = DeliveryFailed
	default:
		out.State = DeliveryPending
		planned := o.Schedule[step]
		out.Pause = max(planned+rand.N(planned/10+1), min(a.retryAfter, maxRetryAfter))
	}
	// Keep the delivery, so that it can be replayed once the webhook is repaired.
	if a.status == http.StatusGone {
		out.State, out.Pause = DeliveryPending, 0
	}
	return out
}

// outcome returns the label of an attempt in metrics.
func outcome(a answer, state DeliveryState) string {
	switch {
	case a.ok():
		return "delivered"
	case a.status == http.StatusGone:
		return "gone"
	case state == DeliveryFailed:
		return "given_up"
	}
	return "retry"
}

// healthy reports whether an endpoint is healthy after a response: successful within an eighth of
// the timeout. A suspect endpoint must answer in half of that, so that its state does not flap.
func (o Options) healthy(was bool, a answer) bool {
	within := o.Timeout / 8
	if !was {
		within /= 2
	}
	return a.ok() && a.latency <= within
}

// health returns the health of an endpoint after answers, in the order of their arrival. ago is the
// time since e was read.
func (o Options) health(e Endpoint, ago time.Duration, answers []answer) Health {
	h := Health{Failures: e.Failures, Healthy: e.Healthy}
	answers = slices.DeleteFunc(slices.Clone(answers), func(a answer) bool { return a.unopened })
	if len(answers) == 0 {
		return h
	}
	for _, a := range answers {
		h.Healthy = o.healthy(h.Healthy, a)
		if a.ok() {
			h.Failures, h.Recovered, h.Pause = 0, true, 0
			continue
		}
		h.Failures++
		if a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable {
			h.Pause = max(h.Pause, min(a.retryAfter, maxRetryAfter))
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
