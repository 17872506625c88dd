package provider

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
)

const (
	nanny = "deviceaccess_access_code_set.nanny"
	lockA = fakeDevice
	lockB = "33333333-2222-4222-8222-222222222222"
	lockC = "44444444-2222-4222-8222-222222222222"
)

// startFakeLocks is a fake with three locks.
func startFakeLocks(t *testing.T) *fake {
	f := startFake(t)
	for id, name := range map[string]string{lockA: "Front Door", lockB: "Back Door", lockC: "Garage"} {
		lock := device(id, "august_lock", map[string]any{"supported_code_lengths": []int{12}})
		lock["display_name"] = name
		f.devices = append(f.devices, lock)
	}
	return f
}

func codeSet(more string, locks ...string) string {
	return fmt.Sprintf("resource \"deviceaccess_access_code_set\" \"nanny\" {\n  device_ids = [\"%s\"]\n  name = \"Nanny\"\n  %s\n}\n", strings.Join(locks, `", "`), more)
}

// on is the identifier and the code on a lock.
func (f *fake) on(lock string) (string, *fakeCode) {
	for id, code := range f.codes {
		if code.device == lock {
			return id, code
		}
	}
	return "", nil
}

// since answers what has been written since it was asked before, each with the lock that it was about.
func (f *fake) since(t *testing.T) func(when string, want ...string) {
	seen := 0
	lockOf := map[string]string{} // by code, also those that are gone
	note := func() {
		for id, code := range f.codes {
			lockOf[id] = code.device
		}
	}
	note()
	return func(when string, want ...string) {
		t.Helper()
		f.mu.Lock()
		defer f.mu.Unlock()
		var got []string
		note()
		for _, call := range f.calls[seen:] {
			if strings.HasSuffix(call.path, "/get") || strings.HasSuffix(call.path, "/list") {
				continue
			}
			lock, _ := call.body["device_id"].(string)
			if id, ok := call.body["access_code_id"].(string); ok {
				lock = lockOf[id]
			}
			got = append(got, strings.TrimPrefix(call.path, "/access_codes/")+" "+lock)
		}
		seen = len(f.calls)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: writes %q, want %q", when, got, want)
		}
	}
}

func onLock(lock, attribute string, value knownvalue.Check) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(nanny, tfjsonpath.New("access_codes").AtMapKey(lock).AtMapKey(attribute), value)
}

func allSet(locks ...string) []statecheck.StateCheck {
	checks := []statecheck.StateCheck{statecheck.ExpectKnownValue(nanny, tfjsonpath.New("access_codes"), knownvalue.MapSizeExact(len(locks)))}
	for _, lock := range locks {
		checks = append(checks, onLock(lock, "status", isText("set")), onLock(lock, "as_declared", knownvalue.Bool(true)), onLock(lock, "errors", knownvalue.ListSizeExact(0)))
	}
	return checks
}

func TestAccessCodeSetTouchesOnlyTheLocksThatChange(t *testing.T) {
	f := startFakeLocks(t)
	wrote := f.since(t)
	config := func(locks ...string) string { return f.config(codeSet("", locks...)) }
	var pin any
	drift := func(when string, change func(c *fakeCode), want ...string) func() {
		return func() {
			wrote(when, want...)
			f.do(func() { _, c := f.on(lockB); change(c) })
		}
	}
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{Config: config(lockA, lockB), ConfigStateChecks: allSet(lockA, lockB)},
		{
			PreConfig: func() {
				wrote("at first", "create "+lockA, "create "+lockB)
				f.do(func() {
					_, a := f.on(lockA)
					_, b := f.on(lockB)
					if pin = a.code; pin != b.code || len(pin.(string)) != 12 {
						t.Errorf("the locks have other PINs, or of %d digits", len(pin.(string)))
					}
				})
			},
			Config: config(lockA, lockB, lockC), ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, nanny), ConfigStateChecks: allSet(lockA, lockB, lockC),
		},
		{
			PreConfig: func() {
				wrote("a lock more", "create "+lockC)
				if _, c := f.on(lockC); c.code != pin {
					t.Error("the new lock has another PIN")
				}
			},
			Config: config(lockB, lockC), ConfigStateChecks: allSet(lockB, lockC),
		},
		{
			PreConfig: drift("a lock less", func(c *fakeCode) { c.code = "111122223333" }, "delete "+lockA),
			Config:    config(lockB, lockC), ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, nanny), ConfigStateChecks: allSet(lockB, lockC),
		},
		{
			PreConfig: drift("another PIN", func(c *fakeCode) { c.managed = false }, "update "+lockB),
			Config:    config(lockB, lockC), ConfigStateChecks: allSet(lockB, lockC),
		},
		{
			PreConfig: drift("given up", func(*fakeCode) { id, _ := f.on(lockB); delete(f.codes, id) }, "unmanaged/convert_to_managed "+lockB),
			Config:    config(lockB, lockC), ConfigStateChecks: allSet(lockB, lockC),
		},
		{
			PreConfig: func() { wrote("deleted", "create "+lockB) },
			Config:    f.config(codeSet(`code = "905173846251"`, lockB, lockC)), ConfigStateChecks: allSet(lockB, lockC),
		},
		{
			PreConfig: func() { wrote("a PIN of one's own", "update "+lockB, "update "+lockC) },
			Config:    f.config(codeSet(`code = "905173846251"`, lockB, lockC)), ConfigPlanChecks: plansNothing(),
		},
	}})
}

func TestAccessCodeSetThatFailsOnOneLockIsFinishedByTheNextApply(t *testing.T) {
	refused := answerError(http.StatusBadRequest, "invalid_input", "PIN 905173846251 is not for this lock")
	// refuse answers the creation on the garage's lock so.
	refuse := func(f *fake) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			last := f.calls[len(f.calls)-1].body
			if last["device_id"] == lockC {
				refused(w, r)
				return
			}
			f.createCode(w, r, last)
		}
	}
	// As the example of the documentation has it.
	const postcondition = `
  lifecycle {
    postcondition {
      condition     = alltrue([for code in self.access_codes : code.as_declared && code.status != "setting"])
      error_message = "Not every lock has the code."
    }
  }`
	for name, demand := range map[string]string{"at first": "", "at first, which fails the run": postcondition} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFakeLocks(t)
			wrote := f.since(t)
			w := newWorkspace(t, map[string]string{"versions.tf": required, "main.tf": f.config(codeSet(`code = "905173846251"`+demand, lockA, lockC))})
			f.then("/access_codes/create", refuse(f), refuse(f))
			w.expect(demand == "", "apply", "-auto-approve")
			wrote("at first", "create "+lockA, "create "+lockC)
			for _, wanted := range []string{`The lock "Garage" (` + lockC + `): PIN (hidden) is not for this lock`, "The other locks of the set are not affected"} {
				if !strings.Contains(plainly(w.seen.String()), wanted) {
					t.Errorf("%q was not said", wanted)
				}
			}
			w.expect(true, "apply", "-auto-approve")
			wrote("again", "create "+lockC)
			w.expect(true, "plan", "-detailed-exitcode")
			w.expect(true, "destroy", "-auto-approve")
			wrote("in the end", "delete "+lockA, "delete "+lockC)
		})
	}
	t.Run("on every lock", func(t *testing.T) {
		f := startFakeLocks(t)
		f.then("/access_codes/create", refused)
		run(t, resource.TestCase{Steps: []resource.TestStep{{
			Config: f.config(codeSet(`code = "905173846251"`, lockC)), ExpectError: says("Error: Set the access code on a lock", `"Garage"`, "PIN (hidden) is not"),
		}}})
	})
	t.Run("later", func(t *testing.T) {
		f := startFakeLocks(t)
		config := f.config(codeSet(`code = "905173846251"`, lockA, lockB, lockC))
		run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
			{Config: f.config(codeSet(`code = "905173846251"`, lockA))},
			{
				PreConfig:   func() { f.then("/access_codes/create", refuse(f), refuse(f)) },
				Config:      config,
				ExpectError: says("Error: Set the access code on a lock", `"Garage"`),
			},
			{Config: config, ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, nanny), ConfigStateChecks: allSet(lockA, lockB, lockC)},
			{
				PreConfig:   func() { f.then("/access_codes/delete", answerError(http.StatusConflict, "busy", "The lock is busy")) },
				Config:      f.config(codeSet(`code = "905173846251"`, lockA, lockB)),
				ExpectError: says("Error: Take the access code off a lock", `"Garage"`, "The lock is busy"),
			},
			{Config: f.config(codeSet(`code = "905173846251"`, lockA, lockB)), ConfigStateChecks: allSet(lockA, lockB)},
		}})
		if creates, deletes := f.count("/access_codes/create"), f.count("/access_codes/delete"); creates != 4 || deletes != 4 {
			t.Errorf("%d creations and %d deletions", creates, deletes)
		}
	})
	t.Run("an answer that got lost", func(t *testing.T) {
		f := startFakeLocks(t)
		f.then("/access_codes/create", func(_ http.ResponseWriter, r *http.Request) {
			f.createCode(httptestDiscard{}, r, f.calls[len(f.calls)-1].body)
			panic(http.ErrAbortHandler)
		})
		f.noAttempts = true
		run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{{Config: f.config(codeSet(`code = "905173846251"`, lockA)), ConfigStateChecks: allSet(lockA)}}})
		if creates := f.count("/access_codes/create"); creates != 1 {
			t.Errorf("%d creations", creates)
		}
	})
}

// httptestDiscard is an answer that nobody gets.
type httptestDiscard struct{}

func (httptestDiscard) Header() http.Header         { return http.Header{} }
func (httptestDiscard) Write(b []byte) (int, error) { return len(b), nil }
func (httptestDiscard) WriteHeader(int)             {}

func TestAccessCodeSetIsImportedLockByLock(t *testing.T) {
	f := startFakeLocks(t)
	for id, code := range map[string]*fakeCode{
		"aaaaaaaa-2222-4222-8222-222222222222": {device: lockA, name: "Nanny", code: "905173846251", managed: true, status: "set"},
		"bbbbbbbb-2222-4222-8222-222222222222": {device: lockB, name: "Nanny B", code: "905173846251", status: "set"},
	} {
		f.codes[id] = code
	}
	wrote := f.since(t)
	config := f.config(codeSet("", lockA, lockB))
	id := lockA + "/aaaaaaaa-2222-4222-8222-222222222222, " + lockB + "/bbbbbbbb-2222-4222-8222-222222222222"
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{Config: config, ResourceName: nanny, ImportState: true, ImportStateId: id, ImportStatePersist: true},
		{
			PreConfig: func() { wrote("after the import") },
			Config:    config, ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, nanny),
			ConfigStateChecks: append(allSet(lockA, lockB), statecheck.ExpectKnownValue(nanny, tfjsonpath.New("code"), isText("905173846251"))),
		},
		{
			PreConfig: func() { wrote("after the apply", "unmanaged/convert_to_managed "+lockB, "update "+lockB) },
			Config:    config, ConfigPlanChecks: plansNothing(),
		},
		{Config: config, ResourceName: nanny, ImportState: true, ImportStateId: "x/y/z", ExpectError: says("is not `<device_id>/<access_code_id>` of a lock")},
		{
			Config: config, ResourceName: nanny, ImportState: true, ImportStateId: "aaaaaaaa-2222-4222-8222-222222222222/" + lockA,
			ExpectError: says("Import access code set", lockA+" is a device, and no access code. Is the order right?"),
		},
		{
			Config: config, ResourceName: nanny, ImportState: true, ImportStateId: lockC + "/aaaaaaaa-2222-4222-8222-222222222222",
			ExpectError: says("is on the lock "+lockA+", not on "+lockC, "Name it as "+lockA+"/aaaaaaaa-"),
		},
		{Config: f.config("resource \"deviceaccess_access_code_set\" \"nanny\" {\n  device_ids = [null]\n  name = \"Nanny\"\n}\n"), ExpectError: says("`device_ids` has an element that is null. Name the locks")},
		{Config: config},
	}})
}
