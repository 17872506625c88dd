package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

// status says what is wrong, worst first, and its exit code is that of the answer.
func TestStatus(t *testing.T) {
	t.Parallel()
	s := newProgram(t)
	r, _ := s.serve("--sandbox-speed", "20")
	p := s.remote(r)
	lock := p.frontDoor()
	var found workspaceStatus
	look := func() int {
		cmd := p.command("status", "--output", "json")
		out, _ := cmd.Output()
		found = workspaceStatus{}
		if err := json.Unmarshal(out, &found); err != nil {
			t.Fatalf("the JSON is %s: %v", out, err)
		}
		return cmd.ProcessState.ExitCode()
	}
	has := func(kind, id string) bool {
		return slices.ContainsFunc(found.Findings, func(f finding) bool { return f.Kind == kind && f.ID == id })
	}
	s.until("the server is healthy", func() bool { look(); return !has("server", "") })
	if found.Workspace == nil || found.Counts == nil {
		t.Fatalf("the status is %+v", found)
	}
	if found.Server != r.URL || found.Workspace.ID != r.Workspace || found.Counts.Devices == 0 ||
		found.Counts.Accounts == 0 {
		t.Errorf("the status is %+v", found)
	}
	if code, out := p.exits("status"); code == exitFailed != (len(found.Findings) > 0) ||
		!strings.Contains(out, fmt.Sprintf("%d devices", found.Counts.Devices)) {
		t.Errorf("exit code %d with %d findings: %s", code, len(found.Findings), out)
	}

	var list struct {
		Accounts []struct {
			ID string `json:"connected_account_id"`
		} `json:"connected_accounts"`
	}
	p.post(r, r.APIKey, "/connected_accounts/list", "{}", &list)
	account := list.Accounts[0].ID
	for _, request := range [][2]string{ // a device of a disconnected account cannot be disconnected
		{"/devices/simulate/disconnect", `{"device_id":"` + lock + `"}`},
		{"/connected_accounts/simulate/disconnect", `{"connected_account_id":"` + account + `"}`},
	} {
		if status := p.post(r, r.APIKey, request[0], request[1], nil); status != http.StatusOK {
			t.Fatalf("%s: %d", request[0], status)
		}
	}
	if out := p.ok("accounts", "list", "--output", "id"); !strings.Contains(out, account) {
		t.Errorf("the accounts are %s", out)
	}
	s.until("the status has both", func() bool { look(); return has("device", lock) && has("account", account) })
	code, out := p.exits("status")
	if code != exitFailed || strings.Index(out, "account ") > strings.Index(out, "device ") ||
		!strings.Contains(out, "devices get "+lock) {
		t.Errorf("exit code %d: %s", code, out)
	}
	if ids := strings.Fields(
		p.ok("devices", "list", "--state", "offline", "--output", "id"),
	); !slices.Contains(
		ids,
		lock,
	) {
		t.Errorf("the offline devices are %v", ids)
	}
	if code, out := p.exits("status", "--server", "http://127.0.0.1:1"); code != exitFailed ||
		!strings.Contains(out, "cannot be reached") {
		t.Errorf("no server: %d: %s", code, out)
	}
}

// A code that an online device has not set or removed for long is a finding, and others are none.
func TestStatus_OverdueCodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		status  api.AccessCodeStatus
		age     time.Duration
		offline bool
		want    string
	}{
		{name: "removing for long", status: api.Removing, age: time.Hour, want: "may still open the door"},
		{name: "setting for long", status: api.Setting, age: time.Hour, want: "has not set the code"},
		{name: "removing for a minute", status: api.Removing, age: time.Minute},
		{name: "removing at an offline device", status: api.Removing, age: time.Hour, offline: true},
		{name: "set for long", status: api.Set, age: time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			code := deviceCode{managed: &api.AccessCode{
				Status:           c.status,
				CreatedAt:        time.Now().Add(-24 * time.Hour),
				PendingMutations: []api.PendingMutation{{CreatedAt: time.Now().Add(-c.age)}},
			}}
			code.device.Properties.Online = !c.offline
			s := workspaceStatus{Counts: &statusCounts{}}
			s.addCodes([]deviceCode{code})
			switch {
			case c.want == "" && len(s.Findings) > 0:
				t.Errorf("found %q", s.Findings[0].Problem)
			case c.want != "" && (len(s.Findings) != 1 || !strings.Contains(s.Findings[0].Problem, c.want)):
				t.Errorf("found %+v, want one that says %q", s.Findings, c.want)
			}
		})
	}
}

// While a part of the server is down, status says so and calls no operation, because that would fail after long retries.
func TestStatus_ServerDown(t *testing.T) {
	t.Parallel()
	s := newEmpty(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/health" {
			t.Errorf("status calls %s", r.URL.Path)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		if err := json.NewEncoder(w).Encode(api.HealthResponse{ServiceHealthStatuses: []api.ServiceHealth{
			{Service: "server", Status: api.Healthy},
			{Service: "work", Status: api.Degraded, Description: "Work is late."},
			{Service: "database", Status: api.Down, Description: "The database does not respond."},
		}}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	p := s.remote(ready{URL: server.URL, APIKey: "seam_test"})
	code, out := p.exits("status")
	down, late := strings.Index(out, "The database does not respond."), strings.Index(out, "Work is late.")
	if code != exitFailed || down < 0 || late < down || !strings.Contains(out, "is down") ||
		strings.Contains(out, "0 devices") {
		t.Errorf("exit code %d: %s", code, out)
	}
	text, _ := p.command("status", "--output", "json").Output()
	var found workspaceStatus
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatal(err)
	}
	if found.OK || found.Workspace != nil || found.Counts != nil || len(found.Findings) != 2 {
		t.Errorf("the JSON is %s", text)
	}
}

// A person with a key of each role can do what the role says, and the list of keys shows who used which.
func TestKeyRoles(t *testing.T) {
	t.Parallel()
	s := newProgram(t)
	r, _ := s.serve("--sandbox-speed", "20")
	create := func(role string) *program {
		q := r
		q.APIKey = s.ok("keys", "create", "--role", role, "--name", role, "--owner", "Jane", "--lifetime", "30d")
		return s.remote(q)
	}
	viewer, operator, admin := create("viewer"), create("operator"), create("admin")
	s.ok("keys", "create", "--name", "unused")
	lock := viewer.frontDoor()
	if code, out := viewer.exits("codes", "create", "--device", lock); code != exitRefused ||
		!strings.Contains(out, "This key has the role viewer, which only reads") {
		t.Errorf("a viewer creates a code: %d: %s", code, out)
	}
	id := operator.ok("codes", "create", "--device", lock, "--name", "Guest")
	for _, p := range []*program{viewer, operator, admin} {
		p.shown("codes", "get", id)
		p.shown("users", "list")
		p.shown("webhooks", "list")
		p.shown("accounts", "list")
	}
	hook := `{"url":"http://127.0.0.1:1/","event_types":["*"]}`
	for role, c := range map[string]struct {
		p    *program
		want int
	}{"viewer": {viewer, 403}, "operator": {operator, 403}} {
		key := strings.TrimPrefix(c.p.env[3], keyVariable+"=")
		if status := s.post(r, key, "/webhooks/create", hook, nil); status != c.want {
			t.Errorf("a webhook of the %s: %d", role, status)
		}
	}
	operator.shown("codes", "delete", id)

	var keys []keyRecord
	if err := json.Unmarshal([]byte(s.ok("keys", "list", "--output", "json")), &keys); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, k := range keys {
		if k.Name == k.Role &&
			(k.Owner != "Jane" || k.ExpiresAt == nil || k.State != "active" || len(k.Workspaces) != 1) {
			t.Errorf("the list has %+v", k)
		}
		used[k.Name] = k.LastUsedAt != nil
	}
	if !used["viewer"] || !used["operator"] || !used["admin"] || used["unused"] {
		t.Errorf("used are %v", used)
	}
	if out := s.ok("keys", "list"); !strings.Contains(out, "operator") || !strings.Contains(out, "s ago") ||
		!strings.Contains(out, "never") {
		t.Errorf("the table is %s", out)
	}
	if code, _ := s.exits("keys", "create", "--kind", "publishable_key", "--role", "viewer"); code != exitUsage {
		t.Errorf("a publishable key with a role: exit code %d", code)
	}
}

// events tail prints each event once, without PINs.
func TestEventsTail(t *testing.T) {
	t.Parallel()
	s := newProgram(t)
	r, _ := s.serve("--sandbox-speed", "20")
	p := s.remote(r)
	lock := p.frontDoor()
	pin := p.write("pin", testPIN)
	follow := p.command("events", "tail", "--since", "1h", "--output", "json")
	var out said
	follow.Stdout, follow.Stderr = &out, &out
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = follow.Process.Kill(); _ = follow.Wait() })
	id := p.ok("codes", "create", "--device", lock, "--pin-file", pin)
	p.ok("codes", "delete", id)
	s.until(
		"the tail shows the deletion",
		func() bool { return strings.Contains(out.String(), `"access_code.deleted"`) },
	)
	seen := map[string]bool{}
	for line := range strings.Lines(out.String()) {
		var e struct {
			ID string `json:"event_id"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil || seen[e.ID] || e.ID == "" {
			t.Errorf("a line is malformed or repeated: %v", err)
		}
		seen[e.ID] = true
	}
	for _, format := range []string{"table", "json", "yaml", "id"} {
		shown := p.shown("events", "tail", "--no-follow", "--since", "1h", "--code", id, "--output", format)
		if format == "table" && !strings.Contains(shown, "access_code_id="+id) || strings.Count(shown, "\n") < 2 {
			t.Errorf("%s: %s", format, shown)
		}
	}
	if strings.Contains(out.String(), testPIN) {
		t.Error("the tail prints a PIN")
	}
	p.shown("events", "tail", "--no-follow", "--since", "1h", "--type", "device.connected", "--device", lock)
}
