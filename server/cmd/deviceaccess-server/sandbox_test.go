package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// sandbox codes reports that another server may have answered.
func TestSandboxMemory_OtherServer(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	r, cmd := p.serve()
	var devices struct {
		Devices []struct {
			ID string `json:"device_id"`
		} `json:"devices"`
	}
	p.until("a lock is there", func() bool {
		return p.post(r, r.APIKey, "/devices/list", "{}", &devices) == http.StatusOK && len(devices.Devices) > 0
	})
	p.stop(cmd)
	for _, status := range []int{http.StatusUnauthorized, http.StatusNotFound} {
		other := httptest.NewServer(
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }),
		)
		t.Cleanup(other.Close)
		said := p.said("sandbox", "codes", "--endpoint", other.URL, devices.Devices[0].ID)
		if !strings.Contains(said, "another server") || !strings.Contains(said, "--endpoint") ||
			!strings.Contains(said, http.StatusText(status)) {
			t.Errorf("%d: %s", status, said)
		}
	}
}
