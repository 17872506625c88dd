package provider

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// refuses has a lock refuse what is written to it until it is asked anew, or take it again.
func refuses(t *testing.T, lock *apptest.Lock, so bool) {
	t.Helper()
	rates := map[string]float64{}
	if so {
		rates["full"] = 1
	}
	lock.Control(t, http.MethodPut, "/faults", map[string]any{"failure_rate": rates})
}

// The server tells the PIN that is wanted, also while the lock has another.
func TestServerPINChangeThatTheLockRefusesIsToldOfAndMadeAgain(t *testing.T) {
	t.Parallel()
	const former, wanted = "904716", "904725"
	code := func(pin string) string { return fmt.Sprintf("code = %q", pin) }
	for name, c := range map[string]struct{ first, then string }{
		"kept in the state": {code(former), code(wanted)},
		"written only":      {writtenOnly(former, 1), writtenOnly(wanted, 2)},
		"not waited for":    {code(former), code(wanted) + "\n  wait_for_set = false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := apptest.Shared(t, apptest.WithProfiles("august"))
			device := srv.Device(t, "august")
			lock := srv.Lock(t, device)
			config := func(more string) string {
				return required + onServer(srv, accessCodeOn(device, "name = \"Cleaner\"\n  "+more))
			}
			w := newDirectory(t, map[string]string{"main.tf": config(c.first)})
			w.expect(true, "apply", "-auto-approve")
			refuses(t, lock, true)
			w.rewrite(config(c.then))
			waits := !strings.Contains(c.then, "wait_for_set")
			w.expect(!waits, "apply", "-auto-approve", "-no-color")
			if waits {
				expectSaid(t, "the change", plainly(w.seen.String()), "Error: Update access code", "(UPDATE_ACCESS_CODE) failed", "a PIN that was to be replaced may still open the door",
					"the next apply sends the change again")
			}
			apptest.Until(t, "the server says so", func() bool {
				codes := managedOn(t, srv, device)
				return codes[0].Status == "set" && len(codes[0].Errors) == 1
			})
			if !lock.Has(t, former) || lock.Has(t, wanted) {
				t.Fatal("the lock has not refused the change")
			}
			expectSaid(t, "the plan", w.plain("plan"), "Warning: Access code is not on its lock as it is to be (no_space_for_access_code_on_device)", `"Cleaner" has the status set on the lock`,
				"a PIN that was to be replaced may still open the door", "The next apply sends it again", "0 to add, 1 to change, 0 to destroy")
			w.expect(!waits, "apply", "-auto-approve") // which is refused again
			refuses(t, lock, false)
			apptest.Until(t, "an apply brings the PIN to the lock", func() bool {
				w.expect(true, "apply", "-auto-approve") // the first one may come before the server has noticed the second refusal
				return lock.Has(t, wanted) && !lock.Has(t, former)
			})
			apptest.Until(t, "the server knows", func() bool { return len(managedOn(t, srv, device)[0].Errors) == 0 })
			w.expect(true, "apply", "-refresh-only", "-auto-approve")
			if said := w.plain("plan", "-detailed-exitcode"); strings.Contains(said, "Warning") {
				t.Errorf("a change that was made is warned of: %s", said)
			}
			w.expect(true, "destroy", "-auto-approve")
			if strings.Contains(w.seen.String(), former) || strings.Contains(w.seen.String(), wanted) {
				t.Error("a PIN is shown")
			}
		})
	}
}

// Also where the server says nothing of it on the code.
func TestPINChangeThatFailedIsMadeAgainUntilTheLockHasIt(t *testing.T) {
	f := startFake(t)
	config := func(pin string) string { return f.config(accessCode(`code = "` + pin + `"`)) }
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{Config: config("2468")},
		{
			PreConfig: func() {
				f.nextAttempt = func(a *fakeAttempt) {
					if a.actionType == "UPDATE_ACCESS_CODE" {
						a.failure = map[string]any{"type": "invalid", "message": "It takes no 8642"}
					}
				}
			},
			Config: config("8642"), ExpectError: says("It takes no (hidden)", "may still open the door", "the next apply sends the change again"),
		},
		{
			PreConfig: func() { f.do(func() { f.nextAttempt = nil }) },
			Config:    config("8642"), ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front),
			ConfigStateChecks: []statecheck.StateCheck{has("code", isText("8642")), has("status", isText("set"))},
		},
		{Config: config("8642"), ConfigPlanChecks: plansNothing()},
	}})
	if updates := f.bodies("/access_codes/update"); len(updates) != 2 || updates[0]["code"] != updates[1]["code"] {
		t.Errorf("%d updates", len(updates))
	}
}

// What the server has as it is declared may not be on the lock, which has refused it.
func TestServerAccessCodeSetIsNotAsDeclaredWhereTheLockHasRefusedIt(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august", "yale"))
	august, yale := srv.Device(t, "august"), srv.Device(t, "yale")
	lock := srv.Lock(t, yale)
	const former, wanted = "904716", "904725"
	config := func(pin string) string {
		example := read(t, "../examples/resources/deviceaccess_access_code_set/resource.tf")
		_, lifecycle, _ := strings.Cut(example, "\n  lifecycle {\n")
		lifecycle, _, _ = strings.Cut(lifecycle, "\n}\n")
		return required + onServer(srv, codeSet(fmt.Sprintf("code = %q\n  lifecycle {\n%s", pin, lifecycle), august, yale))
	}
	w := newWorkspace(t, map[string]string{"main.tf": config(former)})
	refuses(t, lock, true)
	w.expect(false, "apply", "-auto-approve", "-no-color") // by the postcondition of the example
	expectSaid(t, "the creation", plainly(w.seen.String()), "Warning: Set the access code on a lock", "The next apply tries this one again", "Resource postcondition failed")
	expectSaid(t, "the plan after it", w.plain("plan"), "0 to add, 1 to change, 0 to destroy")
	refuses(t, lock, false)
	w.expect(true, "apply", "-auto-approve")
	w.expect(true, "plan", "-detailed-exitcode")

	w.write("main.tf", config(wanted))
	refuses(t, lock, true)
	w.expect(false, "apply", "-auto-approve")
	if !lock.Has(t, former) || lock.Has(t, wanted) {
		t.Fatal("the lock has not refused the change")
	}
	expectSaid(t, "the plan after the change", w.plain("plan"), "0 to add, 1 to change, 0 to destroy", "Access code is not on its lock as it is to be")
	refuses(t, lock, false)
	w.expect(true, "apply", "-auto-approve")
	if lock.Has(t, former) || !lock.Has(t, wanted) {
		t.Error("the change was not made again")
	}
	w.expect(true, "plan", "-detailed-exitcode")
	w.expect(true, "destroy", "-auto-approve")
	if strings.Contains(w.seen.String(), former) || strings.Contains(w.seen.String(), wanted) {
		t.Error("a PIN is shown")
	}
}
