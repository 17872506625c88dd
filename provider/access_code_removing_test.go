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

// A destroy that was given up while the lock was offline goes on by itself, and takes off the door what is still declared.
func TestServerCodeThatIsBeingDeletedIsReplaced(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	device := srv.Device(t, "august")
	lock := srv.Lock(t, device)
	const pin, other = "904716", "904725"
	soon := "\n  timeouts {\n    delete = \"8s\"\n    update = \"1m\"\n  }"
	for name, config := range map[string]func(more string) string{
		"code": func(more string) string {
			return accessCodeOn(device, fmt.Sprintf("name = \"Cleaner\"\n  code = %q", pin)+more)
		},
		"set": func(more string) string { return codeSet(fmt.Sprintf("code = %q", other)+more, device) },
	} {
		t.Run(name, func(t *testing.T) {
			has := pin
			if name == "set" {
				has = other
			}
			w := newDirectory(t, map[string]string{"main.tf": required + onServer(srv, config(soon))})
			w.expect(true, "apply", "-auto-approve")
			lock.Control(t, http.MethodPost, "/offline", nil)
			apptest.Until(t, "the lock is offline", func() bool { return !deviceOnline(t, srv, device) })
			w.expect(false, "destroy", "-auto-approve")
			said := w.plain("plan")
			expectSaid(t, "the plan", said, "Warning: Access code is being deleted", "is on its way off", "waits until it is gone and makes another")
			if strings.Contains(said, "No changes") {
				t.Error("nothing is planned")
			}
			lock.Control(t, http.MethodPost, "/online", nil)
			w.rewrite(required + onServer(srv, config(strings.Replace(soon, "8s", "1m", 1))))
			w.expect(true, "apply", "-auto-approve")
			if codes := managedOn(t, srv, device); len(codes) != 1 || codes[0].Status != "set" || !lock.Has(t, has) {
				t.Errorf("there are %d codes", len(codes))
			}
			w.expect(true, "plan", "-detailed-exitcode")
			w.expect(true, "destroy", "-auto-approve")
		})
	}
}

func TestCodeThatIsBeingDeletedIsReplacedOnceItIsGone(t *testing.T) {
	f := startFakeLocks(t)
	config := f.config(accessCode(`code = "904716590100"`))
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{Config: config},
		{
			PreConfig:         func() { f.do(func() { _, c := f.only(); c.status = "removing" }) },
			Config:            config,
			ConfigPlanChecks:  plans(plancheck.ResourceActionDestroyBeforeCreate, front),
			ConfigStateChecks: []statecheck.StateCheck{has("status", isText("set")), has("code", isText("904716590100"))},
		},
		{Config: config, ConfigPlanChecks: plansNothing()},
	}})
	f.expectWrites(t, "in the end", "/access_codes/create", "/access_codes/delete", "/access_codes/create", "/access_codes/delete")
}

func TestAccessCodeSetMakesAnotherWhereItsCodeIsBeingDeleted(t *testing.T) {
	f := startFakeLocks(t)
	wrote := f.since(t)
	within := func(update string) string {
		return f.config(codeSet("code = \"904716590100\"\n  timeouts {\n    update = \""+update+"\"\n  }", lockA, lockB))
	}
	config := within("1s")
	never := func(a *fakeAttempt) { a.looks = 1 << 30 }
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{Config: config, ConfigStateChecks: allSet(lockA, lockB)},
		{
			PreConfig: func() {
				wrote("at first", "create "+lockA, "create "+lockB)
				f.do(func() { _, c := f.on(lockB); c.status, f.nextAttempt = "removing", never })
			},
			Config:      config,
			ExpectError: says("Error: Set the access code on a lock", `"Back Door"`, "is still being deleted", "when the time was up", "Run Terraform again when the lock is online", "makes another"),
		},
		{
			PreConfig: func() {
				wrote("while the lock is offline", "delete "+lockB)
				f.do(func() { f.nextAttempt = nil })
			},
			Config:            within("5m"),
			ConfigPlanChecks:  plans(plancheck.ResourceActionUpdate, nanny),
			ConfigStateChecks: allSet(lockA, lockB),
		},
		{
			PreConfig: func() { wrote("once it is online", "create "+lockB, "delete "+lockB) },
			Config:    within("5m"), ConfigPlanChecks: plansNothing(),
		},
	}})
}

// The server shows an unmanaged code as it is until it has gone.
func TestConversionOfACodeThatIsBeingDeletedSaysThatAnotherIsMade(t *testing.T) {
	t.Parallel()
	gone := answerError(http.StatusConflict, "access_code_being_deleted", "The access code is being removed from its device and cannot be converted.")
	for name, id := range map[string]func(id string) string{
		"planned":   func(id string) string { return lockA + "/" + id },
		"on import": func(id string) string { return id },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFakeLocks(t)
			code := f.unmanaged(fakeCode{name: "Plumber", code: longPIN})
			w := newDirectory(t, map[string]string{"main.tf": required + f.config(accessCode("")+importBlock(id(code)))})
			f.then(converting, gone)
			w.expect(false, "apply", "-auto-approve", "-no-color")
			said := plainly(w.seen.String())
			expectSaid(t, "the conversion", said, "Error: Convert access code to managed", "It leaves its lock when that is online")
			if strings.Contains(said, "stays on the lock") {
				t.Error("it is said to stay")
			}
		})
	}
}
