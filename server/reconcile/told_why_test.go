package reconcile_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

// The log shows the vendor's reason why a code is not on its lock, without anything that may be a
// PIN.
func TestLog_ReasonForUnreachableDevice(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	log, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	var down atomic.Bool
	b := start(t, options{profile: "august", log: log, vendor: func(w http.ResponseWriter, r *http.Request) bool {
		if !down.Load() || !strings.Contains(r.URL.Path, "access_codes") {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"error_code": "UPGRADING", "message": "The hub of 2580 is being upgraded"}`)
		return true
	}})
	down.Store(true)
	b.create("2580")
	line := regexp.MustCompile(
		`(?m)^.*msg="the device could not be reached" device=` + b.device + ` reason=transient message="The hub of .* is being upgraded" .*$`,
	)
	b.until("the log says why", func() bool {
		said, err := os.ReadFile(path)
		b.must(err)
		return line.Match(said)
	})
	if said, err := os.ReadFile(path); err != nil || strings.Contains(string(said), "of 2580") {
		t.Errorf("the log tells the PIN: %s %v", said, err)
	}
	down.Store(false)
}
