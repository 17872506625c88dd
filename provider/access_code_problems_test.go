package provider

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// plain is what a command of terraform has said, without frames and line breaks.
func (w *workspace) plain(args ...string) string {
	w.t.Helper()
	return plainly(w.read(append(args, "-no-color")...))
}

func plainly(said string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(said, "│", "")), " ")
}

func expectSaid(t *testing.T, when, said string, wanted ...string) {
	t.Helper()
	for _, text := range wanted {
		if !strings.Contains(said, text) {
			t.Errorf("%s: no word of %q in\n%s", when, text, said)
		}
	}
}

// The whole way: a lock that is offline and one that is gone, behind a plan that has nothing to change.
func TestServerCodeThatIsNotOnItsLockIsWarnedOf(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	device := srv.Device(t, "august")
	lock := srv.Lock(t, device)
	const pin = "904716"
	lock.Control(t, http.MethodPost, "/offline", nil)
	apptest.Until(t, "the lock is offline", func() bool { return !deviceOnline(t, srv, device) })
	w := newWorkspace(
		t,
		map[string]string{
			"main.tf": required + onServer(
				srv,
				accessCodeOn(device, fmt.Sprintf("name = \"Cleaner\"\n  code = %q\n  wait_until_on_lock = false", pin))+
					"output \"errors\" {\n  value = "+front+".errors\n}\n",
			),
		},
	)
	w.expect(true, "apply", "-auto-approve")
	said := w.plain("plan", "-detailed-exitcode") // which fails when there is anything to change
	expectSaid(
		t,
		"offline",
		said,
		"Warning: Access code is not on its lock (device_offline)",
		`"Cleaner" has the status setting on the lock "`,
		device,
		"The device is offline. The server applies pending changes when it is back (device_offline).",
		"Bring the lock online",
		"No changes.",
	)
	if n := strings.Count(said, "Warning: Access code is not on its lock"); n != 1 {
		t.Errorf("%d warnings", n)
	}
	expectSaid(
		t,
		"the output",
		w.plain("output"),
		`"error_code" = "device_offline" "message" = "The device is offline.`,
	)
	lock.Control(t, http.MethodPost, "/online", nil)
	apptest.Until(t, "the code is on the lock", func() bool { return lock.Has(t, pin) })
	apptest.Until(t, "the server knows", func() bool { return managedOn(t, srv, device)[0].Status == "set" })
	id := managedOn(t, srv, device)[0].AccessCodeID
	w.expect(true, "apply", "-refresh-only", "-auto-approve")
	if said := w.plain("plan", "-detailed-exitcode"); strings.Contains(said, "Warning") {
		t.Errorf("a code that is on its lock is warned of: %s", said)
	}
	if status := srv.Post(
		t,
		"/devices/simulate/remove",
		map[string]any{"device_id": device},
		nil,
	); status != http.StatusOK {
		t.Fatalf("remove the device: %d", status)
	}
	apptest.Until(t, "the server knows", func() bool {
		var answer api.AccessCodeResponse
		srv.Post(t, "/access_codes/get", map[string]any{"access_code_id": id}, &answer)
		return answer.AccessCode.Status == api.Unknown
	})
	expectSaid(
		t,
		"removed",
		w.plain("plan"),
		"Warning: Access code is not on its lock (device_removed)",
		`"Cleaner" has the status unknown on the lock `,
		device,
		"The device was removed from its vendor account (device_removed).",
		"add it to its account at the vendor again",
		"without changing any real infrastructure",
	)
	if strings.Contains(w.seen.String(), pin) {
		t.Error("the PIN is shown")
	}
}

func deviceOnline(t *testing.T, srv *apptest.Server, device string) bool {
	t.Helper()
	var answer struct {
		Device struct {
			Properties struct{ Online bool }
		}
	}
	srv.Post(t, "/devices/get", map[string]any{"device_id": device}, &answer)
	return answer.Device.Properties.Online
}

func TestWarningOfUnreachableLock_SaysThatServerSetsCode(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	w := newDirectory(t, map[string]string{"main.tf": required + f.config(accessCode(`code = "904716590100"`))})
	f.do(func() {
		f.nextAttempt = func(a *fakeAttempt) {
			a.failure = map[string]any{"type": "device_offline", "message": "The device is offline"}
		}
	})
	expectSaid(t, "the apply", w.plain("apply", "-auto-approve"), "may not be on its lock yet", "device_offline")
	for errorCode, says := range map[string]string{
		"device_offline":       "Bring the lock online: then the server sets the code automatically.",
		"account_disconnected": "with `deviceaccess-server accounts update`. Then the server sets the code automatically.",
	} {
		f.do(func() {
			for _, code := range f.codes {
				code.status, code.errors = "setting", []map[string]any{
					{"error_code": errorCode, "message": "It is out of reach.", "is_device_error": true},
				}
			}
		})
		expectSaid(t, errorCode, w.plain("plan", "-detailed-exitcode"),
			"Warning: Access code is not on its lock ("+errorCode+")", says, "No changes.")
	}
}

func TestCodesWithTheSameError_AreGroupedInOneWarning(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	config := f.config(
		strings.Replace(
			accessCode(`code = "9047165901${10 + count.index}"`),
			"{\n",
			"{\n  count = 25\n",
			1,
		) + codeSet(
			`code = "904716599001"`,
			lockB,
			lockC,
		),
	)
	w := newWorkspace(t, map[string]string{"main.tf": required + config})
	w.expect(true, "apply", "-auto-approve")
	if said := w.plain("plan", "-detailed-exitcode"); strings.Contains(said, "Warning") {
		t.Errorf("codes on their locks are warned of: %s", said)
	}
	f.do(func() {
		for _, code := range f.codes {
			code.status, code.errors = "setting", []map[string]any{
				{
					"error_code":      "device_offline",
					"message":         "The device is offline, with " + code.code.(string) + ".",
					"is_device_error": true,
				},
			}
			if code.device == lockC {
				code.status, code.errors[0]["error_code"] = "unknown", "device_removed"
			}
		}
	})
	said := w.plain("plan", "-detailed-exitcode")
	expectSaid(
		t,
		"an offline site",
		said,
		"Warning: Access code is not on its lock (device_offline)",
		"(and 19 more similar warnings elsewhere)",
		"Warning: More access codes are not on their locks (device_offline)",
		"Warning: Access code is not on its lock (device_removed)",
		`"Nanny" has the status unknown on the lock "Garage" (`+lockC+`)`,
		"No changes.",
	)
	if n := strings.Count(said, "Warning:"); n != 3 {
		t.Errorf("%d warnings are shown in full", n)
	}
	each := w.read("plan", "-json")
	if n := strings.Count(each, `"summary":"Access code is not on its lock`); n != 21 {
		t.Errorf("%d warnings are told to programs", n)
	}
	if strings.Contains(said+each, "9047165") {
		t.Error("a PIN is shown")
	}
	if n := f.count("/devices/get"); n > 6 { // three locks, in each of two plans
		t.Errorf("%d requests for the names of locks", n)
	}
	w.write("main.tf", required+f.config("")) // Terraform groups nothing that is not in the configuration
	if n := strings.Count(w.read("plan", "-no-color"), "Warning:"); n != 22 {
		t.Errorf("%d warnings of codes that are not in the configuration", n)
	}
}

func TestCodesAreOnlyWarnedOfThatTheirErrorsKeepOffTheirLocks(t *testing.T) {
	later := time.Now().Add(time.Hour).Format(time.RFC3339)
	ended := time.Now().Add(2 * time.Hour).Format(time.RFC3339)
	device := []map[string]any{
		{"error_code": "device_offline", "message": "The device is offline.", "is_device_error": true},
	}
	own := []map[string]any{
		{"error_code": "duplicate_code_on_device", "message": "The PIN is taken.", "is_access_code_error": true},
	}
	pool := []map[string]any{
		{"error_code": "empty_backup_access_code_pool", "message": "The pool is empty.", "is_device_error": true},
	}
	for name, one := range map[string]struct {
		status string
		errors []map[string]any
		frame  bool
		warned bool
	}{
		"on its way":                     {"setting", nil, false, false},
		"on its way, without backups":    {"setting", pool, false, false},
		"on an offline lock":             {"set", device, false, false},
		"on its way to an offline lock":  {"setting", device, false, true},
		"of the future":                  {"unset", nil, true, false},
		"of the future, lock is offline": {"unset", device, true, false},
		"of the future, and refused":     {"unset", own, true, true},
		"refused":                        {"unset", own, false, true},
		"of a status of the future":      {"resting", device, false, true},
		"of which a change is refused":   {"set", own, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFakeLocks(t)
			more := `code = "904716590100"`
			if one.frame {
				more += fmt.Sprintf("\n  starts_at = %q\n  ends_at = %q", later, ended)
			}
			run(t, resource.TestCase{Steps: []resource.TestStep{
				{Config: f.config(accessCode(more))},
				{
					PreConfig:        func() { f.do(func() { _, c := f.only(); c.status, c.errors = one.status, one.errors }) },
					Config:           f.config(accessCode(more)),
					ConfigPlanChecks: plansNothing(),
					ConfigStateChecks: []statecheck.StateCheck{
						has("errors", knownvalue.ListSizeExact(len(one.errors))),
						has("status", isText(one.status)),
					},
				},
			}})
			if asked := f.count("/devices/get") > 0; asked != one.warned { // for the name of the lock
				t.Errorf("it was warned of: %t", asked)
			}
		})
	}
}

// Deleting a device deletes its codes. A plan then shows the code as gone, and nothing is left to destroy.
func TestServerCodeOfADeletedDeviceIsGone(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	device := srv.Device(t, "august")
	config := onServer(srv, accessCodeOn(device, "name = \"Cleaner\"\n  code = \"904717\""))
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config},
		{
			PreConfig: func() {
				status := srv.Post(t, "/devices/delete", map[string]any{"device_id": device}, nil)
				if status != http.StatusOK {
					t.Errorf("delete the device: %d", status)
				}
			},
			RefreshState:       true,
			ExpectNonEmptyPlan: true,
		},
		{Config: config, Destroy: true},
	}})
}

// A check can match the error of a code by its name.
func TestErrorsOfCodesHaveTheirCodeAndMessage(t *testing.T) {
	f := startFakeLocks(t)
	both := f.config(accessCode(`code = "904716590100"`) + codeSet(`code = "904716590200"`, lockA))
	broken := knownvalue.ListExact([]knownvalue.Check{knownvalue.ObjectExact(map[string]knownvalue.Check{
		"error_code": isText("device_offline"), "message": isText("The device is offline, with (hidden)."),
	})})
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: both},
		{
			PreConfig: func() {
				f.do(func() {
					for _, code := range f.codes {
						code.errors = []map[string]any{
							{
								"error_code":      "device_offline",
								"message":         "The device is offline, with " + code.code.(string) + ".",
								"is_device_error": true,
							},
						}
					}
				})
			},
			Config:            both,
			ConfigPlanChecks:  plansNothing(),
			ConfigStateChecks: []statecheck.StateCheck{has("errors", broken), onLock(lockA, "errors", broken)},
		},
	}})
}

// A creation that failed has the error of the request.
func TestErrorsOfAMissingCodeAreThoseOfItsCreation(t *testing.T) {
	f := startFakeLocks(t)
	f.then(
		"/access_codes/create",
		nil,
		answerError(http.StatusBadRequest, "no_space_for_access_code_on_device", "It is full."),
	)
	run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config:             f.config(codeSet(`code = "904716590200"`, lockA, lockB)),
		ExpectNonEmptyPlan: true,
		Check: func(s *terraform.State) error {
			for _, lock := range []string{lockA, lockB} {
				if attribute(
					s,
					nanny,
					"access_codes."+lock+".errors.0.error_code",
				) == "no_space_for_access_code_on_device" {
					return nil
				}
			}
			return fmt.Errorf("no lock has the error: %v", s)
		},
	}}})
}
