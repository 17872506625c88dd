package provider

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
)

// shared is a directory with a shared code on these locks.
func (f *fake) shared(t *testing.T, within string, locks ...string) *directory {
	t.Helper()
	return newDirectory(t, map[string]string{
		"versions.tf": required, "main.tf": f.config(codeSet(timed(within, `code = "`+longPIN+`"`), locks...)),
	})
}

func timed(within, more string) string {
	return more + "\n  timeouts {\n    create = \"" + within + "\"\n    update = \"" + within + "\"\n  }"
}

// status is what the state says of the code on a lock.
func (d *directory) status(lock string) any {
	codes, _ := d.core.Show(nanny)["access_codes"].(map[string]any)
	code, _ := codes[lock].(map[string]any)
	return code["status"]
}

// finish lets the locks take all codes.
func (f *fake) finish() {
	f.do(func() {
		f.nextAttempt = nil
		for _, code := range f.codes {
			f.settle(code)
		}
	})
}

// answerAfter answers everything so that comes after this number of requests for an operation.
func (f *fake) answerAfter(path string, n int, rest http.HandlerFunc) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.count(path) >= n {
			rest(w, r)
			return
		}
		f.ServeHTTP(w, r)
	})
	f.front.Store(&handler)
}

// Only a refusal by every lock fails the creation: an error taints the shared code, and then the next apply takes
// working PINs off the doors.
func TestSharedAccessCode_CreationThatNoLockHasRefusedIsKept(t *testing.T) {
	t.Parallel()
	never := func(_ int, a *fakeAttempt) { a.looks = 1 << 30 }
	for name, c := range map[string]struct {
		attempts func(n int, a *fakeAttempt)
		after    http.HandlerFunc // answers everything after the creations
		status   string
		says     string
	}{
		"no lock answers in time": {attempts: never, status: "setting", says: "The server keeps trying"},
		"the key is revoked": {
			attempts: never,
			after:    answerError(http.StatusUnauthorized, "unauthorized", "API Key not found"),
			status:   "unknown",
			says:     "Check",
		},
		"one lock refuses and one does not answer": {
			attempts: func(n int, a *fakeAttempt) {
				if never(n, a); n == 0 {
					a.looks, a.failure = 1, map[string]any{"type": "lock_rejected", "message": "No"}
				}
			},
			status: "setting",
			says:   "lock_rejected",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFakeLocks(t)
			n := 0
			f.nextAttempt = func(a *fakeAttempt) { c.attempts(n, a); n++ }
			if c.after != nil {
				f.answerAfter("/access_codes/create", 2, c.after)
			}
			w := f.shared(t, "1s", lockA, lockB)
			expectSaid(
				t,
				"the creation",
				w.plain("apply"),
				"Warning: "+diagnostics.CouldNot(actionPut),
				lockA,
				lockB,
				c.says,
			)
			if w.core.IsTainted(nanny) {
				t.Error("the shared code is tainted")
			}
			for _, lock := range []string{lockA, lockB} {
				if status := w.status(lock); status != c.status {
					t.Errorf("the status is %q", status)
				}
			}
			f.front.Store(nil)
			f.finish()
			w.expect(true, "plan", "-detailed-exitcode")
			f.expectWrites(t, "in the end", "/access_codes/create", "/access_codes/create")
		})
	}
}

func TestSharedAccessCode_CreationThatEveryLockHasRefusedFailsAndIsKnown(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	f.nextAttempt = func(a *fakeAttempt) {
		a.failure = map[string]any{"type": "lock_rejected", "message": "PIN " + longPIN + " is not for this lock"}
	}
	w := f.shared(t, "5s", lockA, lockB)
	w.expect(false, "apply")
	expectSaid(
		t,
		"the error",
		plainly(w.seen.String()),
		"Error: "+diagnostics.CouldNot(actionPut),
		"PIN (hidden) is not for this lock",
	)
	if !w.core.IsTainted(nanny) {
		t.Error("the codes on the locks are not known, or the shared code is not tainted")
	}
}

// lockByData is a shared code on the locks that data sources name. They are not known in a plan that changes the
// webhook.
func lockByData(url, more string) string {
	return webhook(url, "") + `
data "deviceaccess_device" "front" {
  name       = "Front Door"
  depends_on = [` + hook + `]
}
data "deviceaccess_device" "back" {
  name       = "Back Door"
  depends_on = [` + hook + `]
}
resource "deviceaccess_shared_access_code" "nanny" {
  device_ids = [data.deviceaccess_device.front.device_id, data.deviceaccess_device.back.device_id]
  ` + more + "\n}\n"
}

// rename gives the locks these names, in the order of lockA, lockB, and lockC.
func (f *fake) rename(names ...string) {
	f.do(func() {
		for i, id := range []string{lockA, lockB, lockC} {
			for _, lock := range f.devices {
				if lock["device_id"] == id {
					lock["display_name"] = names[i]
				}
			}
		}
	})
}

func TestSharedAccessCode_UnknownLocksTakeNoCodeOffALock(t *testing.T) {
	t.Parallel()
	const pin = "name = \"Nanny\"\n  code = \"" + longPIN + "\""
	start := func(t *testing.T) (*fake, *directory, func(when string, want ...string)) {
		f := startListedLocks(t)
		wrote := f.since(t)
		w := newDirectory(t, map[string]string{
			"versions.tf": required, "main.tf": f.config(lockByData("https://example.com/a", pin)),
		})
		w.expect(true, "apply")
		wrote("at first", "/webhooks/create ", "create "+lockA, "create "+lockB)
		return f, w, wrote
	}
	const summary = "Warning: The locks of the shared code are not known yet"
	t.Run("that turn out to be the same", func(t *testing.T) {
		t.Parallel()
		f, w, wrote := start(t)
		w.rewrite(f.config(lockByData("https://example.com/b", pin)))
		expectSaid(t, "the plan", w.plain("plan"), summary, lockA, lockB, "Run Terraform again after")
		w.expect(true, "apply")
		wrote("while they are unknown", "/webhooks/create ", "/webhooks/delete ")
		w.expect(true, "plan", "-detailed-exitcode")
	})
	t.Run("that turn out to be others", func(t *testing.T) {
		t.Parallel()
		f, w, wrote := start(t)
		w.rewrite(f.config(lockByData("https://example.com/b", pin)))
		w.expect(true, "plan", "-out=plan")
		f.rename("Old Door", "Back Door", "Front Door")
		w.expect(true, "apply", "plan")
		wrote("while they are unknown", "/webhooks/create ", "/webhooks/delete ")
		if said := w.plain("apply"); strings.Contains(said, summary) {
			t.Errorf("known locks are warned of: %s", said)
		}
		wrote("when they are known", "create "+lockC, "delete "+lockA)
	})
	t.Run("while the code changes", func(t *testing.T) {
		t.Parallel()
		f, w, wrote := start(t)
		w.rewrite(f.config(lockByData("https://example.com/b", strings.Replace(pin, "Nanny", "Granny", 1))))
		w.expect(true, "apply")
		wrote(
			"with another name",
			"/webhooks/create ",
			"/webhooks/delete ",
			"update "+lockA,
			"update "+lockB,
		)
		w.expect(true, "plan", "-detailed-exitcode")
	})
	t.Run("that turn out to be others while the code changes", func(t *testing.T) {
		t.Parallel()
		f, w, wrote := start(t)
		w.rewrite(f.config(lockByData("https://example.com/b", strings.Replace(pin, "Nanny", "Granny", 1))))
		w.expect(true, "plan", "-out=plan")
		f.rename("Old Door", "Back Door", "Front Door")
		w.expect(false, "apply", "plan") // Terraform: the final plan differs
		wrote("while they are unknown", "/webhooks/create ", "/webhooks/delete ")
		w.expect(true, "apply")
		wrote("when they are known", "create "+lockC, "delete "+lockA, "update "+lockB)
	})
	t.Run("that are more", func(t *testing.T) {
		t.Parallel()
		f, w, wrote := start(t)
		more := strings.Replace(
			lockByData("https://example.com/b", pin),
			"[data.deviceaccess_device.front.device_id, data.deviceaccess_device.back.device_id]",
			`["`+lockA+`", "`+lockB+`", data.deviceaccess_device.front.device_id]`,
			1,
		)
		w.rewrite(f.config(more))
		w.expect(true, "plan", "-out=plan")
		f.rename("Old Door", "Back Door", "Front Door")
		w.expect(true, "apply", "plan")
		wrote("when they are known", "/webhooks/create ", "/webhooks/delete ", "create "+lockC)
	})
}

func TestSharedAccessCode_UnknownKeepersReplaceNothing(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	wrote := f.since(t)
	config := func(url string) string {
		return f.config(webhook(url, "") + codeSet("keepers = { hook = "+hook+".webhook_id }", lockA))
	}
	w := newDirectory(t, map[string]string{"versions.tf": required, "main.tf": config("https://example.com/a")})
	w.expect(true, "apply")
	wrote("at first", "/webhooks/create ", "create "+lockA)
	w.rewrite(config("https://example.com/b"))
	expectSaid(t, "the plan", w.plain("plan"), nanny+" will be updated in-place")
	w.expect(false, "apply") // the keeper has turned out to be another one
	expectSaid(t, "the apply", plainly(w.seen.String()), "the next plan shows the replacement")
	wrote("while it is unknown", "/webhooks/create ", "/webhooks/delete ")
	expectSaid(t, "the next plan", w.plain("plan"), nanny+" must be replaced")
	w.expect(true, "apply")
	wrote("when it is known", "create "+lockA, "delete "+lockA)
}

// The terraform command itself accepts that the plan keeps the locks of the state.
func TestTerraformKeepsTheLocksOfASharedCodeThatAreNotKnownYet(t *testing.T) {
	t.Parallel()
	f := startListedLocks(t)
	wrote := f.since(t)
	config := func(url string) string { return f.config(lockByData(url, "name = \"Nanny\"")) }
	w := newWorkspace(t, map[string]string{"versions.tf": required, "main.tf": config("https://example.com/a")})
	w.expect(true, "apply", "-auto-approve")
	wrote("at first", "/webhooks/create ", "create "+lockA, "create "+lockB)
	w.write("main.tf", config("https://example.com/b"))
	w.expect(true, "apply", "-auto-approve")
	wrote("while they are unknown", "/webhooks/create ", "/webhooks/delete ")
	w.expect(true, "plan", "-detailed-exitcode")
}

// Terraform does not order the destruction of one address and the creation of another.
func TestSharedAccessCode_TakesOverAPINWhoseHolderLeaves(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	f.uniquePINs = true
	holder := f.unmanaged(fakeCode{name: "Nanny", code: longPIN, managed: true})
	f.leaves(holder, func(*fakeCode) { delete(f.codes, holder) })
	w := f.shared(t, "5m", lockA, lockB)
	w.expect(true, "apply")
	if n := f.count("/access_codes/create"); n != 3 {
		t.Errorf("%d creations were asked for", n)
	}
	if w.status(lockA) != "set" || w.status(lockB) != "set" {
		t.Error("the code is not on every lock")
	}
}

func TestSharedAccessCode_PINWhoseHolderStaysIsAnError(t *testing.T) {
	boundDuplicates(t)
	for name, c := range map[string]struct {
		managed bool
		says    []string
	}{
		"managed":   {true, []string{"moved block", "destroy = false"}},
		"unmanaged": {false, []string{"import it as"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFakeLocks(t)
			f.uniquePINs = true
			holder := f.unmanaged(fakeCode{name: "Nanny", code: longPIN, managed: c.managed})
			w := f.shared(t, "5m", lockA)
			w.expect(false, "apply")
			said := plainly(w.seen.String())
			expectSaid(t, "the error", said, append(c.says, "duplicate_access_code", `"Front Door"`)...)
			if c.managed {
				expectSaid(t, "the error", said, holder)
			}
			f.expectWrites(t, "in the end", "/access_codes/create")
		})
	}
}

// The terraform command creates and destroys concurrently.
func TestTerraformMovesAPINBetweenASingleCodeAndASharedOne(t *testing.T) {
	f := startFakeLocks(t)
	f.uniquePINs = true
	pin := `code = "` + longPIN + `"`
	story(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{Config: f.config(accessCode(pin))},
		{Config: f.config(codeSet(pin, lockA, lockB)), ConfigStateChecks: allSet(lockA, lockB)},
		{Config: f.config(accessCode(pin) + codeSet(pin, lockB)), ConfigStateChecks: allSet(lockB)},
		{Config: f.config(codeSet(pin, lockA, lockB)), ConfigStateChecks: allSet(lockA, lockB)},
	}})
}

func TestSharedAccessCode_ImportOfDifferentCodesSaysWhatWillChange(t *testing.T) {
	t.Parallel()
	const other = "640297158306"
	f := startFakeLocks(t)
	ids := map[string]string{}
	for lock, code := range map[string]fakeCode{
		lockA: {name: "Nanny", code: longPIN, managed: true},
		lockB: {name: "Granny", code: other, managed: true},
		lockC: {name: "Nanny", code: longPIN},
	} {
		ids[lock] = f.unmanaged(code)
		f.codes[ids[lock]].device = lock
	}
	w := newDirectory(t, map[string]string{
		"versions.tf": required, "main.tf": f.config(codeSet("", lockA, lockB, lockC)),
	})
	w.expect(true, "import", nanny, lockA+"/"+ids[lockA]+","+lockB+"/"+ids[lockB]+","+lockC+"/"+ids[lockC])
	said := w.plain("plan")
	expectSaid(t, "the plan", said,
		`Warning: The shared code "Nanny" changes codes on locks`,
		`the lock "Back Door" (`+lockB+"): another PIN, name",
		`Warning: Access codes of "Nanny" will be converted to managed`,
		`the lock "Garage" (`+lockC+")",
	)
	if strings.Contains(said, "Front Door") || strings.Contains(said, longPIN) || strings.Contains(said, other) {
		t.Errorf("the plan names a lock that does not change, or a PIN: %s", said)
	}
	f.expectWrites(t, "before the apply")
	w.expect(true, "apply")
	if said := w.plain("plan"); strings.Contains(said, "Warning") {
		t.Errorf("what has changed is warned of: %s", said)
	}
}

func TestSharedAccessCode_ImportOfACodeThatCannotBeConvertedSaysSo(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	id := f.unmanaged(fakeCode{name: "Nanny", code: longPIN, cannotBeManaged: true})
	w := newDirectory(t, map[string]string{"versions.tf": required, "main.tf": f.config(codeSet("", lockA))})
	w.expect(true, "import", nanny, lockA+"/"+id)
	expectSaid(t, "the plan", w.plain("plan"), `Warning: Access codes of "Nanny" cannot be converted`, "Front Door")
}

// Terraform shows one of several warnings with the same summary.
func TestCodesThatCannotBeConvertedAreWarnedOfByName(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	p := f.plugin(t)
	for _, name := range []string{"Cleaner", "Owner " + longPIN, ""} {
		stuck := fakeCode{name: name, code: longPIN, cannotBeManaged: true}
		if name == "" {
			stuck.name = nil
		}
		id := f.unmanaged(stuck)
		read := p.imported(codeType, fakeDevice+"/"+id)
		want := "Access code %q on the lock \"Front Door\" (" + fakeDevice + ") cannot be converted to managed"
		want = fmt.Sprintf(want, cmp.Or(strings.Replace(name, longPIN, "(hidden)", 1), id))
		var said []string
		for _, d := range read.Diagnostics {
			said = append(said, d.Summary)
		}
		if !slices.Contains(said, want) {
			t.Errorf("%q is not said: %q", want, said)
		}
	}
}
