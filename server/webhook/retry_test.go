package webhook

import (
	"net/http"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/uuid"
)

// A test vector that the receivers' verifier accepts.
func TestSign_StandardWebhooksVector(t *testing.T) {
	t.Parallel()
	got, err := sign("msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`),
		"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := sign("", time.Time{}, nil, "whsec_-_-_"); err == nil {
		t.Error("an invalid base64 secret signs")
	}
}

func TestSchedule_MatchesContract(t *testing.T) {
	t.Parallel()
	o := New(nil, Options{}).opt
	failed := answer{status: 500, problem: "no"}
	for step, planned := range []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 10 * time.Hour} {
		for range 100 {
			a := o.planAttempt(failed, step)
			if a.State != DeliveryPending || a.Pause < planned || a.Pause > planned*11/10 {
				t.Fatalf("step %d: %s after %s", step, a.State, a.Pause)
			}
		}
	}
	if a := o.planAttempt(failed, 7); a.State != DeliveryFailed {
		t.Errorf("after the eighth attempt: %s", a.State)
	}
	if o.Timeout != 15*time.Second || o.DisableAfter != 120*time.Hour {
		t.Errorf("%s, %s", o.Timeout, o.DisableAfter)
	}
	failed.abort = true
	if a := o.planAttempt(failed, 0); a.State != DeliveryFailed {
		t.Errorf("event rejected by the endpoint: %s", a.State)
	}
}

func TestRetryAfter_IsBounded(t *testing.T) {
	t.Parallel()
	o := New(nil, Options{}).opt
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "x": 0, "-5": 0, "60": time.Minute, "99999999999": (1 << 30) * time.Second,
		now.Add(time.Minute).Format(http.TimeFormat): time.Minute, now.Add(-time.Minute).Format(http.TimeFormat): 0,
	} {
		if got := retryAfter(header, now); got != want {
			t.Errorf("%q: %s", header, got)
		}
	}
	for asked, c := range map[time.Duration]struct{ least, most time.Duration }{
		time.Second: {5 * time.Second, 6 * time.Second}, time.Minute: {time.Minute, time.Minute}, 48 * time.Hour: {time.Hour, time.Hour},
	} {
		a := answer{status: 429, problem: "slow down", retryAfter: asked}
		if got := o.planAttempt(a, 0).Pause; got < c.least || got > c.most {
			t.Errorf("%s: %s", asked, got)
		}
		if got := o.health(Endpoint{}, 0, []answer{a}).Pause; got != min(asked, time.Hour) {
			t.Errorf("%s: pause %s", asked, got)
		}
	}
}

func TestFailingEndpoint_ProbesBackOff(t *testing.T) {
	t.Parallel()
	o := New(nil, Options{}).opt
	failed := answer{status: 500, problem: "no"}
	last := time.Duration(0)
	for n := range 20 {
		h := o.health(Endpoint{Webhook: Webhook{Failures: n}}, time.Hour, []answer{failed})
		if h.Failures != n+1 || h.Pause < last || h.Pause > time.Minute ||
			(h.Pause > 0) != (maxConcurrency(h.Failures) == 1) {
			t.Errorf("%d: %+v, width %d", n, h, maxConcurrency(h.Failures))
		}
		last = h.Pause
	}
	if h := o.health(
		Endpoint{Webhook: Webhook{Failures: 19}},
		time.Hour,
		[]answer{failed, {status: 200}},
	); h.Failures != 0 ||
		h.Pause != 0 ||
		!h.Recovered {
		t.Errorf("recovered: %+v", h)
	}
	if h := o.health(
		Endpoint{Webhook: Webhook{Failures: 1}, FailingFor: 120 * time.Hour},
		time.Hour,
		[]answer{failed},
	); h.Disable == "" {
		t.Error("five days of failures do not disable")
	}
	if h := o.health(
		Endpoint{Webhook: Webhook{Failures: 1}, FailingFor: 120 * time.Hour},
		time.Hour,
		[]answer{{status: 200}, failed},
	); h.Disable != "" {
		t.Error("a success in between is ignored")
	}
}

// A slow or failing endpoint is not prompt. An attempt that could not be sent shows nothing.
func TestHealth_Prompt(t *testing.T) {
	t.Parallel()
	o := New(nil, Options{}).opt
	soon, between, late := answer{
		status:  200,
		latency: time.Second / 2,
	}, answer{
		status:  200,
		latency: 3 * time.Second / 2,
	}, answer{
		status:  200,
		latency: 3 * time.Second,
	}
	failed, unopened := answer{status: 500, problem: "no", latency: time.Second}, answer{unopened: true, problem: "no"}
	for _, test := range []struct {
		before  bool
		answers []answer
		want    bool
	}{
		{false, []answer{soon}, true},
		{true, []answer{late}, false},
		{true, []answer{failed}, false},
		{true, []answer{soon, failed}, false},
		{false, []answer{failed, late, soon}, true},
		{true, []answer{unopened}, true},
		{false, []answer{unopened}, false},
		{true, []answer{late, unopened}, false},
		{true, []answer{between}, true},
		{false, []answer{between}, false}, // the state does not flap
	} {
		if h := o.health(Endpoint{Healthy: test.before}, 0, test.answers); h.Healthy != test.want {
			t.Errorf("prompt before: %t, after %+v: %t", test.before, test.answers, h.Healthy)
		}
	}
}

// A bounded number of prompt endpoints is remembered, including the latest one.
func TestHealth_RemembersBoundedNumber(t *testing.T) {
	t.Parallel()
	l := newMemoryBudget()
	for range maxKnownEndpoints + 10 {
		id := uuid.New()
		l.setHealthy(id, true)
		l.setHealthy(id, true)
		if !l.isHealthy(id) {
			t.Fatal("the latest endpoint was dropped")
		}
	}
	if len(l.healthy) != maxKnownEndpoints {
		t.Errorf("%d endpoints remembered", len(l.healthy))
	}
}

// Requests in flight may still succeed before or after the 410 response.
func TestGone_IsNotRevertedBySuccess(t *testing.T) {
	t.Parallel()
	o := New(nil, Options{}).opt
	ok, gone := answer{status: 200}, answer{status: http.StatusGone, problem: "gone"}
	for _, answers := range [][]answer{{gone}, {ok, gone}, {gone, ok}} {
		if h := o.health(Endpoint{}, 0, answers); h.Disable == "" {
			t.Errorf("%+v do not disable", answers)
		}
	}
}

// Hundreds of responses wait to be recorded if the database is busy.
func TestExcerpt_DoesNotRetainWholeBody(t *testing.T) {
	t.Parallel()
	whole := strings.Repeat("x", drainSize)
	if cut := redact(whole, nil, excerptSize); unsafe.StringData(cut) == unsafe.StringData(whole) {
		t.Errorf("%d bytes retained for %d", len(whole), len(cut))
	}
}

func TestExtraRequests_AreCountedUntilTheyEnd(t *testing.T) {
	t.Parallel()
	d := &Deliverer{memory: newMemoryBudget()}
	well, unknown := guaranteedConcurrency(Endpoint{Healthy: true}), guaranteedConcurrency(Endpoint{})
	if well != initialConcurrency || unknown != 1 {
		t.Errorf("%d concurrent to a proven endpoint, %d to another", well, unknown)
	}
	var all []*run
	for n := range 2 * maxExtraRequests / healthyConcurrency {
		p := &run{Deliverer: d, guaranteed: []int{well, unknown}[n%2]}
		for range healthyConcurrency {
			p.startRequest()
		}
		if p.inFlight < p.guaranteed || d.extraRequests.Load() > maxExtraRequests {
			t.Errorf("endpoint %d: %d concurrent requests, %d extra in total", n, p.inFlight, d.extraRequests.Load())
		}
		all = append(all, p)
	}
	for _, p := range all {
		for p.inFlight > 0 {
			p.endRequest()
		}
	}
	if n := d.extraRequests.Load(); n != 0 {
		t.Errorf("%d extra requests counted, want none", n)
	}
}

// Unproven endpoints leave half of the extra requests to proven ones.
func TestExtraRequests_UnprovenLeaveHalf(t *testing.T) {
	t.Parallel()
	d := &Deliverer{memory: newMemoryBudget()}
	for range maxExtraRequests {
		p := &run{Deliverer: d, guaranteed: 1, window: initialConcurrency}
		if !p.startRequest() {
			t.Fatal("no request is sent")
		}
		p.startRequest()
	}
	if n := d.extraRequests.Load(); n != maxExtraRequests/2 {
		t.Errorf("%d extra requests", n)
	}
	answers := &run{Deliverer: d, guaranteed: 1, window: initialConcurrency + 1}
	for range 2 {
		if !answers.startRequest() {
			t.Error("a proven endpoint gets no request")
		}
	}
}
