package webhook

import (
	"strings"
	"testing"
	"testing/iotest"
)

func TestExcerptOf(t *testing.T) {
	t.Parallel()
	const secret = "4711-secret"
	x := func(n int) string { return strings.Repeat("x", n) }
	for name, c := range map[string]struct{ said, want string }{
		"nothing":                     {"", ""},
		"little":                      {"no", "no"},
		"a short one with a secret":   {"a " + secret, "a ***"},
		"much":                        {x(drainSize), x(excerptSize)},
		"more than is read":           {x(2 * drainSize), x(excerptSize)},
		"a secret where it is cut":    {x(excerptSize-3) + secret + x(5000), x(excerptSize-3) + "***"},
		"a cut secret":                {x(excerptSize-2) + secret, x(excerptSize-2) + "**"},
		"so many that more is seen":   {strings.Repeat(secret, 300) + x(5000), strings.Repeat("***", 300) + x(excerptSize-900)},
		"a character where it is cut": {x(excerptSize-1) + "ü" + x(5000), x(excerptSize - 1)},
	} {
		if got := excerptOf(
			iotest.OneByteReader(strings.NewReader(c.said)),
			[]string{"another", secret},
		); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Hundreds of endpoints may send long responses repeatedly.
func TestExcerptsOfLongAnswersLeaveLittleToCollect(t *testing.T) { //nolint:paralleltest // counts allocations
	said := strings.Repeat("x", 2*drainSize)
	if n := testing.AllocsPerRun(100, func() { excerptOf(strings.NewReader(said), []string{"secret"}) }); n > 5 {
		t.Errorf("%.0f allocations", n)
	}
}

// Hundreds of hanging endpoints must not fill the memory with deliveries.
func TestReadLimit_UnprovenEndpoint(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ window, own, failures, want int }{{initialConcurrency, 1, 0, 2}, {initialConcurrency, 2, 0, 8}, {initialConcurrency + 1, 1, 0, 12}, {healthyConcurrency, 1, 0, readAhead}, {healthyConcurrency, 2, failingAfter, 1}} {
		p := &run{window: c.window, guaranteed: c.own}
		if p.endpoint.Failures = c.failures; p.readLimit() != c.want {
			t.Errorf("%+v: %d are read", c, p.readLimit())
		}
	}
}
