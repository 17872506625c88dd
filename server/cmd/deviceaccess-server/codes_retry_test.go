package main

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// A code that its lock has refused is listed with its error, is in the status, and is set by a retry after the reason
// is gone.
func TestCodesRetry(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	p := (&program{T: t, dir: t.TempDir()}).remote(ready{URL: s.App.URL, APIKey: s.APIKey})
	device := s.Device(t, "august")
	lock := s.Lock(t, device)
	pin := p.write("pin", testPIN)

	lock.Control(t, http.MethodPut, "/faults", sandbox.Faults{FailureRate: map[string]float64{"invalid": 1}})
	code, out := p.exits("codes", "create", "--device", device, "--name", "Guest", "--pin-file", pin)
	if code != exitRefused || !strings.Contains(out, "its device does not have it yet") ||
		strings.Contains(out, testPIN) {
		t.Errorf("a refused code: exit code %d: %s", code, strings.ReplaceAll(out, testPIN, "PIN"))
	}
	id := p.shown("codes", "list", "--with-errors", "--output", "id")
	if id == "" || strings.Contains(id, "\n") {
		t.Fatalf("the codes with errors are %q", id)
	}
	if table := p.shown("codes", "get", id); !strings.Contains(table, "ERROR") {
		t.Errorf("the code is shown without its error: %s", table)
	}
	var status workspaceStatus
	shown, _ := p.command("status", "--output", "json").Output()
	if err := json.Unmarshal(shown, &status); err != nil || !slices.ContainsFunc(status.Findings, func(f finding) bool {
		return f.Kind == "code" && f.ID == id
	}) {
		t.Errorf("the status is %s: %v", shown, err)
	}
	if code, out := p.exits("codes", "retry", id); code != exitRefused {
		t.Errorf("a retry that is refused again: exit code %d: %s", code, out)
	}

	lock.Control(t, http.MethodPut, "/faults", sandbox.Faults{})
	if out := p.shown("codes", "retry", id); !strings.Contains(out, "The device has the code "+id) {
		t.Errorf("a retry: %s", out)
	}
	if !lock.Has(t, testPIN) {
		t.Error("the lock does not have the code")
	}

	// a code that waits for its device
	lock.Control(t, http.MethodPut, "/faults", sandbox.Faults{FailureRate: map[string]float64{"offline": 1}})
	waits := p.ok("codes", "create", "--device", device, "--name", "Late", "--no-wait")
	if ids := p.shown("codes", "list", "--status", "setting", "--older-than", "1ms", "--output", "id"); ids != waits {
		t.Errorf("the codes that are being set are %q, want %q", ids, waits)
	}
	if ids := p.shown("codes", "list", "--status", "setting", "--older-than", "10m", "--output", "id"); ids != "" {
		t.Errorf("the overdue codes are %q", ids)
	}
	if code, out := p.exits("codes", "retry", "--timeout", "1s", waits); code != exitFailed ||
		!strings.Contains(out, "still pending when the time was up") {
		t.Errorf("a retry that takes too long: exit code %d: %s", code, out)
	}
}
