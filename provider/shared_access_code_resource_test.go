package provider

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

const (
	nanny = "deviceaccess_shared_access_code.nanny"
	lockA = fakeDevice
	lockB = "33333333-2222-4222-8222-222222222222"
	lockC = "44444444-2222-4222-8222-222222222222"
)

// startListedLocks is startFakeLocks on a server that lists its locks, so that plans are checked.
func startListedLocks(t *testing.T) *fake {
	f := startFakeLocks(t)
	f.lacks = nil
	return f
}

// startFakeLocks is a fake with three locks. It cannot list them, so that no plan is checked, and asks for codes.
func startFakeLocks(t *testing.T) *fake {
	f := startFake(t)
	f.lacks = []string{"/devices/list"}
	for id, name := range map[string]string{lockA: "Front Door", lockB: "Back Door", lockC: "Garage"} {
		lock := device(id, "august_lock", map[string]any{"supported_code_lengths": []int{12}})
		lock["display_name"] = name
		f.devices = append(f.devices, lock)
	}
	return f
}

func codeSet(more string, locks ...string) string {
	return fmt.Sprintf(
		"resource \"deviceaccess_shared_access_code\" \"nanny\" {\n  device_ids = [\"%s\"]\n  name = \"Nanny\"\n  %s\n}\n",
		strings.Join(locks, `", "`),
		more,
	)
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
	checks := []statecheck.StateCheck{
		statecheck.ExpectKnownValue(nanny, tfjsonpath.New("access_codes"), knownvalue.MapSizeExact(len(locks))),
	}
	for _, lock := range locks {
		checks = append(
			checks,
			onLock(lock, "status", isText("set")),
			onLock(lock, "as_declared", knownvalue.Bool(true)),
			onLock(lock, "errors", knownvalue.ListSizeExact(0)),
		)
	}
	return checks
}

func TestSharedAccessCodeTouchesOnlyTheLocksThatChange(t *testing.T) {
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
			Config: config(
				lockA,
				lockB,
				lockC,
			),
			ConfigPlanChecks:  plans(plancheck.ResourceActionUpdate, nanny),
			ConfigStateChecks: allSet(lockA, lockB, lockC),
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
			Config: config(
				lockB,
				lockC,
			),
			ConfigPlanChecks:  plans(plancheck.ResourceActionUpdate, nanny),
			ConfigStateChecks: allSet(lockB, lockC),
		},
		{
			PreConfig: drift("another PIN", func(c *fakeCode) { c.managed = false }, "update "+lockB),
			Config:    config(lockB, lockC), ConfigStateChecks: allSet(lockB, lockC),
		},
		{
			PreConfig: drift(
				"given up",
				func(*fakeCode) { id, _ := f.on(lockB); delete(f.codes, id) },
				"unmanaged/convert_to_managed "+lockB,
			),
			Config:            config(lockB, lockC),
			ConfigStateChecks: allSet(lockB, lockC),
		},
		{
			PreConfig: func() { wrote("deleted", "create "+lockB) },
			Config: f.config(
				codeSet(`code = "905173846251"`, lockB, lockC),
			),
			ConfigStateChecks: allSet(lockB, lockC),
		},
		{
			PreConfig: func() { wrote("a PIN of one's own", "update "+lockB, "update "+lockC) },
			Config:    f.config(codeSet(`code = "905173846251"`, lockB, lockC)), ConfigPlanChecks: plansNothing(),
		},
	}})
}

func TestSharedAccessCodeThatFailsOnOneLockIsFinishedByTheNextApply(t *testing.T) {
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
			w := newWorkspace(
				t,
				map[string]string{
					"versions.tf": required,
					"main.tf":     f.config(codeSet(`code = "905173846251"`+demand, lockA, lockC)),
				},
			)
			f.then("/access_codes/create", refuse(f), refuse(f))
			w.expect(demand == "", "apply", "-auto-approve")
			wrote("at first", "create "+lockA, "create "+lockC)
			for _, wanted := range []string{`The lock "Garage" (` + lockC + `): PIN (hidden) is not for this lock`, "The other locks of the shared code are not affected"} {
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
		run(t, resource.TestCase{Steps: []resource.TestStep{
			{
				Config: f.config(
					codeSet(`code = "905173846251"`, lockC),
				),
				ExpectError: says("Error: Could not set the access code on a lock", `"Garage"`, "PIN (hidden) is not"),
			},
		}})
	})
	t.Run("later", func(t *testing.T) {
		f := startFakeLocks(t)
		config := f.config(codeSet(`code = "905173846251"`, lockA, lockB, lockC))
		run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
			{Config: f.config(codeSet(`code = "905173846251"`, lockA))},
			{
				PreConfig:   func() { f.then("/access_codes/create", refuse(f), refuse(f)) },
				Config:      config,
				ExpectError: says("Error: Could not set the access code on a lock", `"Garage"`),
			},
			{
				Config:            config,
				ConfigPlanChecks:  plans(plancheck.ResourceActionUpdate, nanny),
				ConfigStateChecks: allSet(lockA, lockB, lockC),
			},
			{
				PreConfig: func() { f.then("/access_codes/delete", answerError(http.StatusConflict, "busy", "The lock is busy")) },
				Config:    f.config(codeSet(`code = "905173846251"`, lockA, lockB)),
				ExpectError: says(
					"Error: Could not remove the access code from a lock",
					`"Garage"`,
					"The lock is busy",
				),
			},
			{Config: f.config(codeSet(`code = "905173846251"`, lockA, lockB)), ConfigStateChecks: allSet(lockA, lockB)},
		}})
		if creates, deletes := f.count(
			"/access_codes/create",
		), f.count(
			"/access_codes/delete",
		); creates != 4 ||
			deletes != 4 {
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
		run(
			t,
			resource.TestCase{
				CheckDestroy: f.noneLeft,
				Steps: []resource.TestStep{
					{Config: f.config(codeSet(`code = "905173846251"`, lockA)), ConfigStateChecks: allSet(lockA)},
				},
			},
		)
		if creates := f.count("/access_codes/create"); creates != 1 {
			t.Errorf("%d creations", creates)
		}
	})
}

// httptestDiscard is a response that is discarded.
type httptestDiscard struct{}

func (httptestDiscard) Header() http.Header         { return http.Header{} }
func (httptestDiscard) Write(b []byte) (int, error) { return len(b), nil }
func (httptestDiscard) WriteHeader(int)             {}

func TestSharedAccessCodeIsImportedLockByLock(t *testing.T) {
	f := startFakeLocks(t)
	for id, code := range map[string]*fakeCode{
		"aaaaaaaa-2222-4222-8222-222222222222": {
			device:  lockA,
			name:    "Nanny",
			code:    "905173846251",
			managed: true,
			status:  "set",
		},
		"bbbbbbbb-2222-4222-8222-222222222222": {
			device: lockB,
			name:   "Nanny B",
			code:   "905173846251",
			status: "set",
		},
	} {
		f.codes[id] = code
	}
	wrote := f.since(t)
	config := f.config(codeSet("", lockA, lockB))
	id := lockA + "/aaaaaaaa-2222-4222-8222-222222222222, " + lockB + "/bbbbbbbb-2222-4222-8222-222222222222"
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{
			Config:             config,
			ResourceName:       nanny,
			ImportState:        true,
			ImportStateId:      id,
			ImportStatePersist: true,
		},
		{
			PreConfig:        func() { wrote("after the import") },
			Config:           config,
			ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, nanny),
			ConfigStateChecks: append(
				allSet(lockA, lockB),
				statecheck.ExpectKnownValue(nanny, tfjsonpath.New("code"), isText("905173846251")),
			),
		},
		{
			PreConfig: func() { wrote("after the apply", "unmanaged/convert_to_managed "+lockB, "update "+lockB) },
			Config:    config, ConfigPlanChecks: plansNothing(),
		},
		{
			Config:        config,
			ResourceName:  nanny,
			ImportState:   true,
			ImportStateId: "x/y/z",
			ExpectError:   says("is not `<device_id>/<access_code_id>` of a lock"),
		},
		{
			Config:        config,
			ResourceName:  nanny,
			ImportState:   true,
			ImportStateId: "aaaaaaaa-2222-4222-8222-222222222222/" + lockA,
			ExpectError: says(
				"Could not import shared access code",
				lockA+" is a device, not an access code. Check the order.",
			),
		},
		{
			Config:        config,
			ResourceName:  nanny,
			ImportState:   true,
			ImportStateId: lockC + "/aaaaaaaa-2222-4222-8222-222222222222",
			ExpectError:   says("is on the lock "+lockA+", not on "+lockC, "Name it as "+lockA+"/aaaaaaaa-"),
		},
		{
			Config: f.config(
				"resource \"deviceaccess_shared_access_code\" \"nanny\" {\n  device_ids = [null]\n  name = \"Nanny\"\n}\n",
			),
			ExpectError: says("`device_ids` has an element that is null. Name the locks"),
		},
		{Config: config},
	}})
}

func TestServerSharedAccessCodeOnLocksOfSeveralVendors(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august", "nuki", "ttlock"))
	august, nuki, ttlock := srv.Device(t, "august"), srv.Device(t, "nuki"), srv.Device(t, "ttlock")
	config := func(more string, locks ...string) string { return onServer(srv, codeSet(more, locks...)) }
	pinOnAll := func(s *terraform.State) error {
		pin := attribute(s, nanny, "code")
		if len(pin) != 6 { // the only length of a Nuki
			return fmt.Errorf("the PIN has %d digits", len(pin))
		}
		for _, lock := range []string{august, nuki, ttlock} {
			if !srv.Lock(t, lock).Has(t, pin) {
				return fmt.Errorf("the PIN is not on %s", lock)
			}
		}
		return nil
	}
	offline := func(path string) func() {
		return func() { srv.Lock(t, ttlock).Control(t, http.MethodPost, path, nil) }
	}
	drive(t, resource.TestCase{
		CheckDestroy: func(*terraform.State) error {
			for _, lock := range []string{august, nuki, ttlock} {
				for _, code := range srv.Lock(t, lock).Memory(t) {
					if code.Name == "Nanny" {
						return fmt.Errorf("the code is still on %s", lock)
					}
				}
			}
			return nil
		},
		Steps: []resource.TestStep{
			{
				Config:            config("", august, nuki, ttlock),
				ConfigStateChecks: allSet(august, nuki, ttlock),
				Check:             pinOnAll,
			},
			{Config: config("", august, nuki, ttlock), ConfigPlanChecks: plansNothing()},
			{
				PreConfig: offline("/offline"),
				Config:    config("code = \"452613\"\n  timeouts {\n    update = \"15s\"\n  }", august, nuki, ttlock),
				ExpectError: says(
					"Error: Could not set the access code on a lock",
					"("+ttlock+")",
					"The server keeps trying",
					"The other locks of the shared code are not affected",
				),
			},
			{
				PreConfig: func() {
					offline("/online")()
					apptest.Until(
						t,
						"the lock that was offline has the PIN",
						func() bool { return srv.Lock(t, ttlock).Has(t, "452613") },
					)
					apptest.Until(
						t,
						"the server knows",
						func() bool { return managedOn(t, srv, ttlock)[0].Status == "set" },
					)
				},
				Config: config(`code = "452613"`, august, nuki, ttlock),
				ConfigStateChecks: append(
					allSet(august, nuki, ttlock),
					statecheck.ExpectKnownValue(nanny, tfjsonpath.New("code"), knownvalue.StringExact("452613")),
				),
				Check: pinOnAll,
			},
		},
	})
}

// losesOnC creates the code on lock C, has a gateway answer for it, and fails the search for it.
func (f *fake) losesOnC() http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body := f.calls[len(f.calls)-1].body
		if body["device_id"] != lockC {
			f.createCode(w, r, body)
			return
		}
		f.createCode(httptestDiscard{}, r, body)
		for _, code := range f.codes {
			f.settle(code)
		}
		const list = "/access_codes/list" // by which the code is searched
		f.odd[list] = append(f.odd[list], answerRaw(http.StatusInternalServerError, "text/plain", ""))
		answerRaw(http.StatusBadGateway, "text/html", "<h1>Bad gateway</h1>")(w, r)
	}
}

func TestSharedAccessCode_FindsCodeOfUnansweredCreation(t *testing.T) {
	t.Parallel()
	away := answerRaw(http.StatusInternalServerError, "text/plain", "")
	set := func(locks ...string) string { return codeSet(`code = "905173846251"`, locks...) }
	for name, c := range map[string]struct {
		hides bool // PINs
		then  func(t *testing.T, f *fake, w *directory, wrote func(when string, want ...string))
	}{
		"and takes it over": {then: func(t *testing.T, f *fake, w *directory, wrote func(string, ...string)) {
			f.then("/access_codes/list", away)
			w.expect(false, "apply", "-auto-approve", "-refresh=false") // it cannot look, so it creates nothing
			wrote("while it cannot look")
			w.expect(true, "apply", "-auto-approve", "-refresh=false")
			wrote("once it can search, it finds the declared code")
			w.expect(true, "plan", "-detailed-exitcode")
			w.expect(true, "destroy", "-auto-approve")
			wrote("in the end", "delete "+lockA, "delete "+lockC)
		}},
		"also if the code was deleted": {then: func(t *testing.T, f *fake, w *directory, wrote func(string, ...string)) {
			f.do(func() { id, _ := f.on(lockC); delete(f.codes, id) })
			w.expect(true, "apply", "-auto-approve")
			wrote("again", "create "+lockC)
			w.expect(true, "plan", "-detailed-exitcode")
		}},
		"and takes it off a lock that is taken out": {then: func(t *testing.T, f *fake, w *directory, wrote func(string, ...string)) {
			w.rewrite(f.config(set(lockA)))
			w.expect(true, "apply", "-auto-approve")
			wrote("taken out", "delete "+lockC)
		}},
		"and takes it off when the shared code is destroyed": {then: func(t *testing.T, f *fake, w *directory, wrote func(string, ...string)) {
			w.expect(true, "destroy", "-auto-approve")
			wrote("in the end", "delete "+lockA, "delete "+lockC)
		}},
		"and warns where it cannot tell": {hides: true, then: func(t *testing.T, f *fake, w *directory, wrote func(string, ...string)) {
			expectSaid(t, "the destroy", w.plain("destroy", "-auto-approve"), "An access code may have been left on a lock", `"Garage"`)
			wrote("in the end", "delete "+lockA)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFakeLocks(t)
			f.noAttempts = true
			if c.hides {
				f.omits = []string{"code"}
			}
			wrote := f.since(t)
			w := newDirectory(t, map[string]string{"versions.tf": required, "main.tf": f.config(set(lockA, lockC))})
			f.then("/access_codes/create", f.losesOnC(), f.losesOnC())
			expectSaid(
				t,
				"the creation",
				w.plain("apply", "-auto-approve"),
				`The lock "Garage" (`+lockC+"): the server answered 502 Bad Gateway",
				"The server may have done it",
				"searches this lock for a code of this name and PIN",
			)
			wrote("at first", "create "+lockA, "create "+lockC)
			c.then(t, f, w, wrote)
			if strings.Contains(w.seen.String(), "905173846251") {
				t.Error("the PIN was shown")
			}
		})
	}
}

// What the code of a lost creation is looked for by is the name and the PIN of the state.
func TestSharedAccessCodeChangesNothingWhileItCannotLookForALostCode(t *testing.T) {
	t.Parallel()
	const former, wanted = "905173846251", "715938426052"
	away := answerRaw(http.StatusInternalServerError, "text/plain", "")
	for name, changed := range map[string]string{
		"another PIN":           codeSet(`code = "`+wanted+`"`, lockA, lockC),
		"another name":          strings.Replace(codeSet(`code = "`+former+`"`, lockA, lockC), "Nanny", "Nurse", 1),
		"and without that lock": codeSet(`code = "`+wanted+`"`, lockA),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFakeLocks(t)
			f.noAttempts = true
			wrote := f.since(t)
			w := newDirectory(
				t,
				map[string]string{
					"versions.tf": required,
					"main.tf":     f.config(codeSet(`code = "`+former+`"`, lockA, lockC)),
				},
			)
			f.then("/access_codes/create", f.losesOnC(), f.losesOnC())
			w.expect(true, "apply", "-auto-approve")
			wrote("at first", "create "+lockA, "create "+lockC)

			w.rewrite(f.config(changed))
			f.then("/access_codes/list", away)
			w.expect(false, "apply", "-auto-approve", "-refresh=false", "-no-color")
			expectSaid(
				t,
				"while it cannot look",
				plainly(w.seen.String()),
				`The lock "Garage" (`+lockC+"): the server answered 500",
				"The shared code was not changed",
			)
			wrote("while it cannot look")
			w.expect(true, "apply", "-auto-approve", "-refresh=false")
			if strings.Contains(changed, lockC) {
				wrote("once it can", "update "+lockA, "update "+lockC)
			} else {
				wrote("once it can", "delete "+lockC, "update "+lockA)
			}
			w.expect(true, "plan", "-detailed-exitcode")
			w.expect(true, "destroy", "-auto-approve")
			f.do(func() {
				if len(f.codes) != 0 {
					t.Errorf("%d codes are left", len(f.codes))
				}
			})
			if seen := w.seen.String(); strings.Contains(seen, former) || strings.Contains(seen, wanted) {
				t.Error("a PIN was shown")
			}
		})
	}
}

// A lock that the server does not know cannot be searched. The other locks still get the new PIN.
func TestLockInDoubtThatHasLeftKeepsNoOtherFromItsNewPIN(t *testing.T) {
	t.Parallel()
	const former, wanted = "905173846251", "715938426052"
	left := answerError(http.StatusNotFound, "device_not_found", "Device not found")
	f := startFakeLocks(t)
	f.noAttempts = true
	wrote := f.since(t)
	w := newDirectory(
		t,
		map[string]string{"versions.tf": required, "main.tf": f.config(codeSet(`code = "`+former+`"`, lockA, lockC))},
	)
	f.then("/access_codes/create", f.losesOnC(), f.losesOnC())
	w.expect(true, "apply", "-auto-approve")
	wrote("at first", "create "+lockA, "create "+lockC)

	f.do(func() {
		for id, code := range f.codes {
			if code.device == lockC {
				delete(f.codes, id)
			}
		}
	})
	f.then("/access_codes/list", left)
	f.then("/access_codes/create", left)
	w.rewrite(f.config(codeSet(`code = "`+wanted+`"`, lockA, lockC)))
	w.expect(false, "apply", "-auto-approve", "-refresh=false", "-no-color")
	expectSaid(
		t,
		"while the lock is wanted",
		plainly(w.seen.String()),
		`The lock "Garage" (`+lockC+"): ",
		"The other locks of the shared code are not affected",
	)
	wrote("while the lock is wanted", "create "+lockC, "update "+lockA)
	w.rewrite(f.config(codeSet(`code = "`+wanted+`"`, lockA)))
	f.then("/access_codes/list", left)
	w.expect(true, "apply", "-auto-approve", "-refresh=false", "-no-color")
	expectSaid(t, "once it is taken out", plainly(w.seen.String()), "An access code may have been left on a lock")
	w.expect(true, "plan", "-detailed-exitcode")
}

func TestSharedAccessCodeOfWhichNothingIsKnownSaysWhereToLook(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	w := newDirectory(t, map[string]string{"versions.tf": required, "main.tf": f.config(codeSet("", lockC))})
	f.then("/access_codes/create", f.losesOnC())
	w.expect(false, "apply", "-auto-approve", "-no-color")
	expectSaid(
		t,
		"the creation",
		plainly(w.seen.String()),
		"Error: Could not set the access code on a lock",
		`"Garage"`,
		"The server may have done it",
		"The shared code is not in the state: check this lock before you run Terraform again",
	)
}

// A PIN that is written only is in no state: what can be looked for is what the configuration has, if that is still
// what was created.
func TestSharedAccessCode_NamesLikelyCodesOfUnansweredCreation(t *testing.T) {
	t.Parallel()
	const (
		first, second = "905173846251", "715938426052"
		warning       = "An access code may have been left on a lock"
	)
	for name, c := range map[string]struct {
		pin    string // as it was created; by default written only
		hides  bool   // PINs
		before func(f *fake, lost string)
		config string // of the apply that follows; none where the shared code is destroyed
		warns  bool
		says   string // in the warning, in addition to the lock
		wrote  []string
	}{
		"destroyed": {warns: true, wrote: []string{"delete " + lockA}},
		"destroyed, code was deleted": {
			before: func(f *fake, lost string) { delete(f.codes, lost) },
			warns:  true,
			says:   "the lock has no code of this name and PIN now",
			wrote:  []string{"delete " + lockA},
		},
		"tried again":                          {config: writtenOnly(first, 1), wrote: []string{"update " + lockC}},
		"with the same PIN of another version": {config: writtenOnly(first, 2), wrote: []string{"update " + lockA, "update " + lockC}},
		"with the same PIN, kept in the state": {config: `code = "` + first + `"`},
		"with another PIN":                     {config: writtenOnly(second, 2), warns: true, wrote: []string{"create " + lockC, "update " + lockA}},
		"with another PIN of the version":      {config: writtenOnly(second, 1), warns: true, wrote: []string{"create " + lockC}},
		"with another PIN, kept in the state":  {config: `code = "` + second + `"`, warns: true, wrote: []string{"create " + lockC, "update " + lockA}},
		"with another PIN, code was deleted": {
			before: func(f *fake, lost string) { delete(f.codes, lost) }, config: writtenOnly(second, 2), wrote: []string{"create " + lockC, "update " + lockA},
		},
		"with another PIN, where one of another name is there": {
			before: func(f *fake, lost string) { f.codes[lost].name = "Cleaner" }, config: writtenOnly(second, 2), wrote: []string{"create " + lockC, "update " + lockA},
		},
		"written only, where it was kept in the state": {
			pin: `code = "` + first + `"`, config: writtenOnly(second, 1), wrote: []string{"update " + lockA, "update " + lockC},
		},
		"tried again, where no PIN is told": {
			hides:  true,
			config: writtenOnly(first, 1),
			warns:  true,
			wrote:  []string{"create " + lockC},
		},
		"kept in the state, tried again where no PIN is told": {
			pin:    `code = "` + first + `"`,
			hides:  true,
			config: `code = "` + first + `"`,
			warns:  true,
			wrote:  []string{"create " + lockC},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFakeLocks(t)
			f.noAttempts = true
			if c.hides {
				f.omits = []string{"code"}
			}
			if c.pin == "" {
				c.pin = writtenOnly(first, 1)
			}
			wrote := f.since(t)
			w := newDirectory(
				t,
				map[string]string{"versions.tf": required, "main.tf": f.config(codeSet(c.pin, lockA, lockC))},
			)
			f.then("/access_codes/create", f.losesOnC(), f.losesOnC())
			w.expect(true, "apply", "-auto-approve")
			wrote("at first", "create "+lockA, "create "+lockC)
			var lost string
			f.do(func() {
				lost, _ = f.on(lockC)
				if c.before != nil {
					c.before(f, lost)
				}
			})
			args := []string{"destroy", "-auto-approve"}
			if c.config != "" {
				w.rewrite(f.config(codeSet(c.config, lockA, lockC)))
				args[0] = "apply"
			}
			said := w.plain(args...)
			wrote("then", c.wrote...)
			if c.says == "" {
				c.says = lost
			}
			switch {
			case c.warns:
				expectSaid(t, "then", said, warning, `The lock "Garage"`, c.says)
			case strings.Contains(said, warning):
				t.Errorf("warned in vain:\n%s", said)
			}
			if c.config != "" {
				w.expect(true, "plan", "-detailed-exitcode")
			}
			if seen := w.seen.String(); strings.Contains(seen, first) || strings.Contains(seen, second) {
				t.Error("a PIN was shown")
			}
		})
	}
}

func TestSharedAccessCode_RecordsWriteOnlyPINOfCreation(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	f.noAttempts = true
	away := answerRaw(http.StatusInternalServerError, "text/plain", "")
	w := newDirectory(
		t,
		map[string]string{
			"versions.tf": required,
			"main.tf":     f.config(codeSet(writtenOnly("905173846251", 1), lockA, lockC)),
		},
	)
	f.then("/access_codes/create", f.losesOnC(), f.losesOnC())
	expectSaid(
		t,
		"the creation",
		w.plain("apply", "-auto-approve"),
		"searches this lock for a code of this name and PIN",
		"Do not change `code_wo` until then",
	)
	var lost string
	f.do(func() { lost, _ = f.on(lockC) })

	w.rewrite(f.config(codeSet(`code = "715938426052"`, lockA, lockC)))
	f.then("/access_codes/list", away)
	w.expect(
		false,
		"apply",
		"-auto-approve",
		"-refresh=false",
	) // it cannot look, and keeps a PIN in the state from then on
	expectSaid(
		t,
		"once it can look",
		w.plain("apply", "-auto-approve", "-refresh=false"),
		"An access code may have been left on a lock",
		lost,
	)
	if said := w.plain("destroy", "-auto-approve"); strings.Contains(said, "may have been left") {
		t.Errorf("warned twice:\n%s", said)
	}
}

// privateKeys is a private state of which a test says what it holds.
type privateKeys map[string]string

func (p privateKeys) GetKey(_ context.Context, key string) ([]byte, diag.Diagnostics) {
	return []byte(p[key]), nil
}

func (p privateKeys) SetKey(_ context.Context, key string, value []byte) diag.Diagnostics {
	p[key] = string(value)
	return nil
}

func TestDoubtsOfASharedAccessCodeAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	later := &sharedAccessCodeModel{CodeWOVersion: types.Int64Value(3)}
	for name, c := range map[string]struct {
		stored string
		want   map[string]bool // whether the PIN was written only, by lock
	}{
		"nothing":                      {stored: ""},
		"none":                         {stored: `{}`},
		"none, by an earlier provider": {stored: `[]`},
		"by an earlier provider, which has kept the locks alone": {stored: `["` + lockA + `"]`, want: map[string]bool{lockA: true}},
		"by this one": {stored: func() string {
			private := privateKeys{}
			recordUncertain(t.Context(), private, map[string]lockResult{lockA: {uncertain: &uncertain{WrittenOnly: true}}, lockB: {uncertain: &uncertain{}}, lockC: {}})
			return private[uncertainLocksKey]
		}(), want: map[string]bool{lockA: true, lockB: false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var diags diag.Diagnostics
			got := map[string]bool{}
			for lock, doubt := range later.uncertainLocks(t.Context(), privateKeys{uncertainLocksKey: c.stored}, &diags) {
				got[lock] = doubt.WrittenOnly
			}
			if !maps.Equal(got, c.want) || diags.HasError() {
				t.Errorf("%v, not %v: %v", got, c.want, diags)
			}
		})
	}
}

const (
	setType       = "deviceaccess_shared_access_code"
	exclusiveType = "deviceaccess_access_codes_exclusive"
)

// codesIdentity is the identity of a shared code.
func (p *plugin) codesIdentity(codes ...string) *tfprotov6.ResourceIdentityData {
	p.t.Helper()
	return p.identity(setType, map[string]string{"access_codes": strings.Join(codes, ",")})
}

// codesOf are the codes that the identity of a shared code names.
func (p *plugin) codesOf(identity *tfprotov6.ResourceIdentityData) (codes []string) {
	p.t.Helper()
	return strings.Split(p.names(setType, identity)["access_codes"], ",")
}

func TestSharedAccessCode_ImportByIdentityWritesNothing(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	f.codes[keeper] = &fakeCode{
		device:  lockA,
		name:    "Nanny",
		code:    "905173846251",
		managed: true,
		status:  "set",
	}
	p := f.plugin(t)
	one := lockA + "/" + keeper
	read := p.imports(&tfprotov6.ImportResourceStateRequest{TypeName: setType, Identity: p.codesIdentity(one)})
	if got := p.codesOf(read.NewIdentity); !slices.Equal(got, []string{one}) {
		t.Errorf("the identity names %q", got)
	}
	if state := p.state(setType, read.NewState); state["name"] != "Nanny" || state["code"] != "905173846251" {
		t.Error("the shared code was not read whole")
	}
	f.expectWrites(t, "after the import")

	locks := tftypes.NewValue(tftypes.Set{ElementType: tftypes.String}, []tftypes.Value{text(lockA), text(lockB)})
	config := object(
		p.stateType(setType),
		map[string]tftypes.Value{"device_ids": locks, "name": text("Nanny"), "code": text("905173846251")},
	)
	plan, err := p.server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName:         setType,
		PriorState:       read.NewState,
		PriorIdentity:    read.NewIdentity,
		PriorPrivate:     read.Private,
		ProposedNewState: p.pack(config),
		Config:           p.pack(config),
	})
	if err != nil {
		t.Fatal(err)
	}
	p.allow(plan.Diagnostics)
	applied, err := p.server.ApplyResourceChange(t.Context(), &tfprotov6.ApplyResourceChangeRequest{
		TypeName:        setType,
		PriorState:      read.NewState,
		PlannedState:    plan.PlannedState,
		PlannedIdentity: plan.PlannedIdentity,
		PlannedPrivate:  plan.PlannedPrivate,
		Config:          p.pack(config),
	})
	if err != nil {
		t.Fatal(err)
	}
	p.allow(applied.Diagnostics)
	f.expectWrites(t, "after the apply", "/access_codes/create")
	var two string
	f.do(func() { id, _ := f.on(lockB); two = lockB + "/" + id })
	if got := p.codesOf(applied.NewIdentity); !slices.Equal(got, []string{one, two}) {
		t.Errorf("the identity names %q", got)
	}
	f.do(func() { clear(f.codes) })
	p = f.plugin(t) // another run, which remembers no list
	gone := p.reads(
		&tfprotov6.ReadResourceRequest{
			TypeName:        setType,
			CurrentState:    applied.NewState,
			CurrentIdentity: applied.NewIdentity,
			Private:         applied.Private,
		},
	)
	if got := p.codesOf(gone.NewIdentity); !slices.Equal(got, []string{lockA, lockB}) {
		t.Errorf("when its codes are gone, the identity names %q", got)
	}
}

func TestImportOfASetGoesByTheCodeThatIsNamedFirst(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	f.codes[keeper] = &fakeCode{
		device:  lockA,
		name:    "Nanny",
		code:    "905173846251",
		managed: true,
		status:  "set",
	}
	f.codes[first] = &fakeCode{
		device:  lockB,
		name:    "Anna",
		code:    "640297158306",
		managed: true,
		status:  "set",
	}
	codes := []string{lockC + "/" + late, lockB + "/" + first, lockA + "/" + keeper} // the first is not there any more
	for form, request := range map[string]*tfprotov6.ImportResourceStateRequest{
		"an ID":       {TypeName: setType, ID: strings.Join(codes, ", ")},
		"an identity": {TypeName: setType, Identity: f.plugin(t).codesIdentity(codes...)},
	} {
		p := f.plugin(t)
		read := p.imports(request)
		if state := p.state(setType, read.NewState); state["name"] != "Anna" || state["code"] != "640297158306" {
			t.Errorf("%s: the shared code is called %q", form, state["name"])
		}
		if strings.Contains(string(read.Private), namedKey) {
			t.Errorf("%s: the order is kept for good", form)
		}
	}
}

func TestImportByIdentityOfExclusiveCodes(t *testing.T) {
	t.Parallel()
	f := startCrowdedFake(t)
	p := f.plugin(t)
	identity := map[string]string{"device_id": lockA}
	read := p.imports(
		&tfprotov6.ImportResourceStateRequest{TypeName: exclusiveType, Identity: p.identity(exclusiveType, identity)},
	)
	expectNames(t, "the identity", p.names(exclusiveType, read.NewIdentity), identity)
	f.do(func() { f.devices = []map[string]any{} })
	gone := p.reads(
		&tfprotov6.ReadResourceRequest{TypeName: exclusiveType, CurrentState: read.NewState, Private: read.Private},
	) // as an older Terraform has it
	expectNames(t, "the identity of what is gone", p.names(exclusiveType, gone.NewIdentity), identity)
	f.expectWrites(t, "in the end")
}

func TestImportByIdentityThatNamesNothingSaysWhatIsNeeded(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	p := f.plugin(t)
	for want, request := range map[string]*tfprotov6.ImportResourceStateRequest{
		"contains no codes":              {TypeName: setType, Identity: p.codesIdentity()},
		`"x/" is not`:                    {TypeName: setType, Identity: p.codesIdentity("x/")},
		"repeats a lock":                 {TypeName: setType, Identity: p.codesIdentity("a/b", "a/c")},
		`"" is not the ` + "`device_id`": {TypeName: exclusiveType, Identity: p.identity(exclusiveType, map[string]string{"device_id": ""})},
	} {
		answer, err := p.server.ImportResourceState(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		if len(answer.Diagnostics) != 1 || !strings.Contains(answer.Diagnostics[0].Detail, want) {
			t.Errorf("%q is not said: %v", want, answer.Diagnostics)
		}
	}
}

// imported is a resource as terraform plan has it after an import.
func (p *plugin) imported(typeName, id string) *tfprotov6.ReadResourceResponse {
	p.t.Helper()
	return p.imports(&tfprotov6.ImportResourceStateRequest{TypeName: typeName, ID: id})
}

func TestSetsAndExclusiveCodesAreRefreshedByAListPerLock(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	stocked := f.stock(10, 30, true)
	byLock := map[string][]string{}
	for id, lock := range stocked {
		byLock[lock] = append(byLock[lock], id)
	}
	sets := map[string]string{} // import ID → what it is
	for i := range 30 {
		var codes []string
		for lock, ids := range byLock {
			codes = append(codes, lock+"/"+ids[i])
		}
		sets[strings.Join(codes, ",")] = setType
	}
	for lock := range byLock {
		f.devices = append(f.devices, device(lock, "august_lock", map[string]any{}))
		sets[lock] = exclusiveType
	}
	p := f.plugin(t)
	each(sets, func(id, typeName string) {
		if state := p.state(typeName, p.imported(typeName, id).NewState); state == nil {
			t.Errorf("%s %s is gone", typeName, id)
		}
	})
	if gets, lists := f.count(
		"/access_codes/get",
	), f.count(
		"/access_codes/list",
	)+f.count(
		"/access_codes/unmanaged/list",
	); gets != 0 ||
		lists > 20 {
		t.Errorf("%d gets and %d lists", gets, lists)
	}
}

// many is more than the requests that a client has under way at the same time.
const many = 12

// endTogether lets attempts to come end only when there are many of them: before, it is as if all locks were offline.
func (f *fake) endTogether() {
	var waiting []*fakeAttempt
	f.do(func() {
		f.nextAttempt = func(a *fakeAttempt) {
			a.looks = 1 << 30
			if waiting = append(waiting, a); len(waiting) < many {
				return
			}
			for _, one := range waiting {
				one.looks = 1
			}
			waiting = nil
		}
	})
}

func TestLocksThatDoNotAnswerKeepNoOtherFromBeingAsked(t *testing.T) {
	t.Run("a shared code", func(t *testing.T) {
		f := startFakeLocks(t)
		f.endTogether()
		var locks []string
		for i := range many {
			locks = append(locks, fmt.Sprintf("%08d-2222-4222-8222-222222222222", i))
		}
		config := func(pin string) string {
			return f.config(
				codeSet(
					"code = \""+pin+"\"\n  timeouts {\n    create = \"20s\"\n    update = \"20s\"\n    delete = \"20s\"\n  }",
					locks...),
			)
		}
		run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
			{Config: config("905173846251"), ConfigStateChecks: allSet(locks...)},
			{Config: config("715938426052"), ConfigStateChecks: allSet(locks...)},
			{Config: f.config("")},
		}})
		for _, path := range []string{"create", "update", "delete"} {
			if n := f.count("/access_codes/" + path); n != many {
				t.Errorf("%s was asked for %d times", path, n)
			}
		}
	})
	t.Run("other codes of one lock", func(t *testing.T) {
		f := startFakeLocks(t)
		f.endTogether()
		for i := range many {
			f.codes[fmt.Sprintf("%08d-aaaa-4222-8222-222222222222", i)] = &fakeCode{
				device:  lockA,
				name:    "Guest",
				code:    fmt.Sprint(4100 + i),
				managed: true,
				status:  "set",
			}
		}
		config := f.config(strings.Replace(exclusive(lockA), "\n}", "\n  timeouts {\n    update = \"20s\"\n  }\n}", 1))
		run(
			t,
			resource.TestCase{
				CheckDestroy: f.noneLeft,
				Steps:        []resource.TestStep{{Config: config, ExpectNonEmptyPlan: true}, {Config: config}},
			},
		)
		if n := f.count("/access_codes/delete"); n != many {
			t.Errorf("%d deletions were asked for", n)
		}
	})
}

func TestTheServerIsNotSaidToKeepTryingWhatItWasNotAskedFor(t *testing.T) {
	const soon = "\n  timeouts {\n    delete = \"1s\"\n  }"
	for name, one := range map[string]string{
		"a shared code": codeSet(`code = "905173846251"`+soon, lockA),
		"a code":        accessCode(`code = "905173846251"` + soon),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFakeLocks(t)
			w := newDirectory(t, map[string]string{"versions.tf": required, "main.tf": f.config(one)})
			w.expect(true, "apply", "-auto-approve")
			_, release := f.hold("/access_codes/get") // which comes before the deletion
			defer release()
			w.expect(false, "destroy", "-refresh=false", "-auto-approve", "-no-color")
			said := plainly(w.seen.String())
			expectSaid(t, "the error", said, "not tried: ", "The timeout ended before the provider sent the request.")
			if strings.Contains(said, "keeps trying") {
				t.Error("the server is said to keep trying")
			}
			if n := f.count("/access_codes/delete"); n != 0 {
				t.Errorf("%d deletions were asked for", n)
			}
		})
	}
}

func TestUpdateOfASetKeepsTheCodesThatItHasMadeWhateverElseFails(t *testing.T) {
	for name, breakIt := range map[string]func(f *fake){
		"the time is used up": func(f *fake) {
			f.do(func() {
				f.nextAttempt = func(a *fakeAttempt) {
					if a.actionType == "UPDATE_ACCESS_CODE" {
						a.looks = 1 << 30
					}
				}
			})
		},
		"the workspace cannot be read": func(f *fake) {
			f.then("/workspaces/get", answerError(http.StatusInternalServerError, "internal", "Ouch"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFakeLocks(t)
			config := func(pin, within string, locks ...string) string {
				return f.config(codeSet("code = \""+pin+"\"\n  timeouts {\n    update = \""+within+"\"\n  }", locks...))
			}
			w := newDirectory(
				t,
				map[string]string{"versions.tf": required, "main.tf": config("905173846251", "2s", lockA, lockC)},
			)
			w.expect(true, "apply", "-auto-approve")
			w.rewrite(config("715938426052", "2s", lockA, lockB))
			w.expect(true, "plan", "-out=plan")
			f.do(func() { id, _ := f.on(lockC); delete(f.codes, id) })
			breakIt(f)
			w.expect(false, "apply", "plan")
			f.do(func() {
				f.nextAttempt = nil
				for _, code := range f.codes {
					f.settle(code)
				}
			})
			w.rewrite(config("715938426052", "5m", lockA, lockB))
			w.expect(true, "apply", "-auto-approve")
			w.expect(true, "plan", "-detailed-exitcode")
			if n := f.count("/access_codes/create"); n != 3 {
				t.Errorf("%d codes were created", n)
			}
		})
	}
}

func TestInterruptedCreationOfASetThatHasNoCodeYetSaysSo(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	w := newWorkspace(
		t,
		map[string]string{"versions.tf": required, "main.tf": f.config(codeSet(`code = "905173846251"`, lockA))},
	)
	busy := answerError(http.StatusServiceUnavailable, "unavailable", "Come back later")
	f.then("/access_codes/create", slices.Repeat([]http.HandlerFunc{busy}, 10)...)
	came, release := f.hold("/access_codes/create")
	apply := w.start("apply", "-auto-approve", "-no-color")
	<-came
	apply.interrupt()
	release()
	if err := apply.cmd.Wait(); err == nil {
		t.Error("an interrupted apply says it was a success")
	}
	said := plainly(apply.text())
	expectSaid(t, "the interruption", said, "Error: Could not set the access code on a lock", "Come back later")
	if strings.Contains(said, "Missing Resource State") {
		t.Error("it is said to be a fault of the provider")
	}
	if state := w.read("state", "list"); state != "" {
		t.Errorf("the state has %s", state)
	}
}

// pinsAre fails the test when the locks have other PINs than this.
func (f *fake) pinsAre(t *testing.T, pin string, locks ...string) {
	t.Helper()
	f.do(func() {
		for _, lock := range locks {
			if _, code := f.on(lock); code == nil || code.code != pin {
				t.Errorf("the lock %s has not the PIN", lock)
			}
		}
	})
}

func TestWriteOnlyPINOfASetIsWrittenToLocksThatNeedItAndNeverKept(t *testing.T) {
	const first, second, third = "905173846251", "715938426052", "640297158306"
	f := startFakeLocks(t)
	wrote := f.since(t)
	config := func(pin string, version int, locks ...string) string {
		return f.config(codeSet(writtenOnly(pin, version), locks...))
	}
	codeIs := func(value knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue(nanny, tfjsonpath.New("code"), value)
	}
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{
			Config: config(first, 1, lockA, lockB),
			Check:  showsNo(first),
			ConfigStateChecks: append(
				allSet(lockA, lockB),
				codeIs(knownvalue.Null()),
				statecheck.ExpectKnownValue(nanny, tfjsonpath.New("code_wo"), knownvalue.Null()),
			),
		},
		{
			PreConfig: func() { wrote("at first", "create "+lockA, "create "+lockB); f.pinsAre(t, first, lockA, lockB) },
			Config: config(
				first,
				1,
				lockA,
				lockB,
				lockC,
			),
			ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, nanny),
			Check:            showsNo(first),
		},
		{
			PreConfig:        func() { wrote("a lock more", "create "+lockC); f.pinsAre(t, first, lockC) },
			Config:           config(second, 1, lockA, lockB, lockC), // without a new version
			ConfigPlanChecks: plansNothing(),
		},
		{
			PreConfig: func() {
				f.then(
					"/access_codes/update",
					answerError(http.StatusConflict, "busy", "The lock is busy with "+second),
				)
			},
			Config: config(second, 2, lockA, lockB, lockC),
			ExpectError: says(
				"Error: Could not set the access code on a lock",
				"busy with (hidden)",
				"The other locks of the shared code are not affected",
			),
		},
		{ // the lock that failed is the only one left to do, also after a refresh
			Config: config(
				second,
				2,
				lockA,
				lockB,
				lockC,
			),
			ConfigPlanChecks:  plans(plancheck.ResourceActionUpdate, nanny),
			ConfigStateChecks: allSet(lockA, lockB, lockC),
			Check:             showsNo(second),
		},
		{
			PreConfig: func() {
				f.pinsAre(t, second, lockA, lockB, lockC)
				if n := f.count("/access_codes/update"); n != 4 {
					t.Errorf("%d updates", n)
				}
			},
			Config: config(second, 2, lockA, lockB, lockC), ConfigPlanChecks: plansNothing(),
		},
		{ // and back to a PIN in the state, which the locks know
			Config: f.config(
				codeSet("", lockA, lockB, lockC),
			),
			ConfigStateChecks: append(allSet(lockA, lockB, lockC), codeIs(isText(second))),
		},
		{Config: f.config(codeSet("", lockA, lockB, lockC)), ConfigPlanChecks: plansNothing()},
		{ // from the state to a PIN that is written only
			Config: config(
				third,
				1,
				lockA,
				lockB,
				lockC,
			),
			ConfigStateChecks: []statecheck.StateCheck{codeIs(knownvalue.Null())},
			Check:             showsNo(second),
		},
		{
			PreConfig:        func() { f.pinsAre(t, third, lockA, lockB, lockC) },
			Config:           config(third, 1, lockA, lockB, lockC),
			ConfigPlanChecks: plansNothing(),
		},
		{
			Config:      f.config(codeSet(`code = "2468"`+"\n  "+writtenOnly(third, 1), lockA)),
			ExpectError: says("`code` and `code_wo` are both set"),
		},
		{
			Config:      f.config(codeSet(`code_wo = "905173846251"`, lockA)),
			ExpectError: says("`code_wo` goes together with `code_wo_version`"),
		},
		{Config: f.config("")},
	}})
}

func TestSetWhosePINNobodyTellsAsksForOne(t *testing.T) {
	f := startFakeLocks(t)
	f.codes[keeper] = &fakeCode{
		device:  lockA,
		name:    "Nanny",
		managed: true,
		status:  "set",
	}
	config := f.config(codeSet("", lockA, lockB))
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config:             config,
			ResourceName:       nanny,
			ImportState:        true,
			ImportStateId:      lockA + "/" + keeper,
			ImportStatePersist: true,
		},
		{Config: config, ExpectError: says("The PIN of the shared code is not known", "Set `code`")},
		{
			Config:            f.config(codeSet(writtenOnly("905173846251", 1), lockA, lockB)),
			ConfigStateChecks: allSet(lockA, lockB),
		},
	}})
	if created := f.bodies("/access_codes/create"); len(created) != 1 || created[0]["code"] != "905173846251" {
		t.Errorf("created: %d", len(created))
	}
}

// Some servers tell no PIN: what is wanted is written, as nothing says that it is there.
func TestPINOfASetIsWrittenWhereTheServerDoesNotTellTheOneThereIs(t *testing.T) {
	const first, second = "905173846251", "715938426052"
	f := startFakeLocks(t)
	f.omits = []string{"code"}
	config := func(pin string) string { return f.config(codeSet(fmt.Sprintf("code = %q", pin), lockA, lockB)) }
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{Config: config(first), ConfigStateChecks: allSet(lockA, lockB)},
		{Config: config(first), ConfigPlanChecks: plansNothing()},
		{
			Config:            config(second),
			ConfigPlanChecks:  plans(plancheck.ResourceActionUpdate, nanny),
			ConfigStateChecks: allSet(lockA, lockB),
		},
		{
			PreConfig:        func() { f.pinsAre(t, second, lockA, lockB) },
			Config:           config(second),
			ConfigPlanChecks: plansNothing(),
		},
		{
			PreConfig: func() {
				f.then("/access_codes/update", answerError(http.StatusConflict, "busy", "The lock is busy"))
			},
			Config: config(first), ExpectError: says("The lock is busy"),
		},
		{
			Config:            config(first),
			ConfigPlanChecks:  plans(plancheck.ResourceActionUpdate, nanny),
			ConfigStateChecks: allSet(lockA, lockB),
		},
		{
			PreConfig:        func() { f.pinsAre(t, first, lockA, lockB) },
			Config:           config(first),
			ConfigPlanChecks: plansNothing(),
		},
	}})
}
