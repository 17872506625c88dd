// Package testenv is the environment that tests and the demo run in: settings of the caller's shell that they must not
// see, and how long they wait. It must not know any room of the product.
package testenv

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Unset removes the settings of a server (DEVICEACCESS_…) from the environment, so that neither this process nor one
// that it starts connects to the database that they name. Settings of the tests (DEVICEACCESS_TEST_…) stay.
func Unset() {
	for _, setting := range os.Environ() {
		name, _, _ := strings.Cut(setting, "=")
		if strings.HasPrefix(name, "DEVICEACCESS_") && !strings.HasPrefix(name, "DEVICEACCESS_TEST_") {
			os.Unsetenv(name) //nolint:errcheck // the name is valid
		}
	}
}

// ScaleVariable names the environment variable that multiplies every deadline of the tests, for slow machines: 1 by
// default, 3 waits three times as long before a test gives up. No test takes longer because of it unless it fails.
const ScaleVariable = "DEVICEACCESS_TEST_TIMEOUT_SCALE"

var scale = sync.OnceValue(func() float64 {
	if factor, err := strconv.ParseFloat(os.Getenv(ScaleVariable), 64); err == nil && factor > 0 {
		return factor
	}
	return 1
})

// Timeout is d multiplied by ScaleVariable. Use it for deadlines that end a test that hangs, never for what a test
// measures.
func Timeout(d time.Duration) time.Duration { return time.Duration(float64(d) * scale()) }

// WaitTimeout is how long Until waits before the test fails, times ScaleVariable. It is generous, because only a test
// that fails takes that long.
const WaitTimeout = 3 * time.Minute

const pollInterval = 20 * time.Millisecond

// Until waits until ok returns true, and fails the test after WaitTimeout. What names the condition in the failure.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	UntilOr(t, what, ok, nil)
}

// UntilOr is Until that calls explain, which may be nil, before it fails the test.
func UntilOr(t testing.TB, what string, ok func() bool, explain func()) {
	t.Helper()
	deadline := time.Now().Add(Timeout(WaitTimeout))
	for !ok() {
		if time.Now().After(deadline) {
			if explain != nil {
				explain()
			}
			t.Fatalf("timed out waiting: %s", what)
		}
		select {
		case <-time.After(pollInterval):
		case <-t.Context().Done():
			t.Fatalf("test ended while waiting: %s", what)
		}
	}
}
