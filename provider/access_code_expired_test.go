package provider

import (
	"fmt"
	"net/http"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// A server ends its attempts after ten minutes, and goes on with the code: whoever gives a lock more time waits for that.
func TestServerWorkIsWaitedForAlsoOnceItsAttemptHasExpired(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]func(device, pin string) string{
		"a code": func(device, pin string) string {
			return accessCodeOn(device, fmt.Sprintf("name = \"Nanny\"\n  code = %q", pin))
		},
		"a set": func(device, pin string) string { return codeSet(fmt.Sprintf("code = %q", pin), device) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := apptest.Start(t, apptest.WithProfiles("august"), apptest.WithAttemptPatience(1))
			device := srv.Device(t, "august")
			lock := srv.Lock(t, device)
			w := newWorkspace(t, map[string]string{"main.tf": required})
			through := func(pin string, args ...string) {
				t.Helper()
				lock.Control(t, http.MethodPost, "/offline", nil)
				apptest.Until(t, "the lock is offline", func() bool { return !deviceOnline(t, srv, device) })
				w.write("main.tf", required+onServer(srv, one(device, pin)))
				looks := srv.Count("/access_codes/get")
				command := w.start(append(args, "-refresh=false", "-auto-approve")...)
				apptest.Until(t, "the code itself is looked at again and again", func() bool { return srv.Count("/access_codes/get") > looks+3 })
				lock.Control(t, http.MethodPost, "/online", nil)
				if err := command.cmd.Wait(); err != nil {
					t.Fatalf("%q ends with %v:\n%s", args, err, withoutLog(command.text()))
				}
			}
			through("904716", "apply")
			if !lock.Has(t, "904716") {
				t.Error("apply has not waited for the creation")
			}
			through("904725", "apply")
			if !lock.Has(t, "904725") || lock.Has(t, "904716") {
				t.Error("apply has not waited for the change")
			}
			through("904725", "destroy")
			if lock.Has(t, "904725") {
				t.Error("destroy has not waited for the deletion")
			}
		})
	}
}

var expiresAtOnce = func(a *fakeAttempt) {
	a.failure = map[string]any{"type": "action_attempt_expired", "message": "The device was offline all the time. The server applies the change when the device is back"}
}

// What is wanted is told before the lock has it, so a code that is set may still have the former PIN.
func TestExpiredChangeIsWaitedForUntilNothingOfItIsPending(t *testing.T) {
	f := startFakeLocks(t)
	config := func(pin, within string) string {
		return f.config(accessCode("code = \"" + pin + "\"\n  timeouts {\n    update = \"" + within + "\"\n  }"))
	}
	pending := func(c *fakeCode) {
		c.status, c.mutations = "set", []map[string]any{{"mutation_code": "updating_code", "message": "On its way", "created_at": "2026-01-02T03:04:05Z"}}
	}
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{Config: config("904716590100", "1s")},
		{
			PreConfig: func() {
				f.do(func() {
					f.nextAttempt = func(a *fakeAttempt) { expiresAtOnce(a); _, c := f.only(); pending(c) }
				})
			},
			Config:      config("904716590111", "1s"),
			ExpectError: says("still on its way to the lock when the time was up", "which keeps trying", "raise `timeouts { update }`"),
		},
		{
			PreConfig: func() {
				f.do(func() {
					_, c := f.only()
					c.status, c.mutations = "set", nil
					f.nextAttempt = nil
				})
			},
			Config:            config("904716590111", "5m"),
			ConfigStateChecks: []statecheck.StateCheck{has("status", isText("set")), has("code", isText("904716590111"))},
		},
	}})
}

func TestLockThatRefusesWhatItsAttemptHasExpiredForEndsTheWait(t *testing.T) {
	f := startFakeLocks(t)
	f.nextAttempt = expiresAtOnce
	formerly := func(w http.ResponseWriter, r *http.Request) { // it was refused before it was asked for anew
		id, c := f.only()
		c.status, c.errors = "set", []map[string]any{{"error_code": "code_constraints_violated", "message": "Too short.", "is_access_code_error": true, "created_at": "2026-01-02T03:04:05Z"}}
		c.mutations = []map[string]any{{"mutation_code": "updating_code", "message": "On its way", "created_at": "2026-01-02T03:04:05Z"}}
		answer(map[string]any{"access_code": f.codeJSON(id)})(w, r)
	}
	busy := func(w http.ResponseWriter, r *http.Request) { // which is no refusal
		id, c := f.only()
		c.status, c.errors = "set", []map[string]any{{"error_code": "failed_to_update", "message": "The lock is busy. It is tried again.", "is_access_code_error": true, "created_at": "2026-01-02T03:04:06Z"}}
		answer(map[string]any{"access_code": f.codeJSON(id)})(w, r)
	}
	full := func(w http.ResponseWriter, r *http.Request) {
		id, c := f.only()
		c.status, c.errors = "unset", []map[string]any{{"error_code": "no_space_for_access_code_on_device", "message": "The lock is full.", "is_access_code_error": true, "created_at": "2026-01-02T03:04:07Z"}}
		c.mutations = []map[string]any{{"mutation_code": "creating", "message": "On its way", "created_at": "2026-01-02T03:04:05Z"}}
		answer(map[string]any{"access_code": f.codeJSON(id)})(w, r)
	}
	f.then("/access_codes/get", formerly, nil, busy, busy, full)
	run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config:      f.config(accessCode(`code = "904716590100"`)),
		ExpectError: says("The lock is full (no_space_for_access_code_on_device)", "Correct what the message names first"),
	}, {
		PreConfig: func() { f.do(func() { f.nextAttempt = nil }) }, Config: f.config(accessCode(`code = "904716590100"`)),
	}}})
}

// A conversion is nothing that a server goes on with.
func TestConversionThatHasExpiredIsAskedForAgain(t *testing.T) {
	f := startFakeLocks(t)
	id := f.unmanaged(fakeCode{name: "Plumber", code: longPIN})
	f.nextAttempt = func(a *fakeAttempt) { expiresAtOnce(a); f.nextAttempt = nil }
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{Config: f.config(accessCode("") + importBlock(lockA+"/"+id)), ConfigStateChecks: isManagedNow()},
	}})
	f.expectWrites(t, "in the end", converting, converting, "/access_codes/delete")
}

// withoutLog is what terraform has said between the lines of its log.
func withoutLog(text string) string {
	return regexp.MustCompile(`(?m)^\d{4}-.*\n`).ReplaceAllString(text, "")
}
