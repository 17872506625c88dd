package provider

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

const (
	only   = "deviceaccess_access_codes_exclusive.front"
	keeper = "aaaaaaaa-2222-4222-8222-222222222222"
	first  = "bbbbbbbb-2222-4222-8222-222222222222"
	second = "cccccccc-2222-4222-8222-222222222222"
	late   = "dddddddd-2222-4222-8222-222222222222"
)

func exclusive(device string, ids ...string) string {
	return fmt.Sprintf(
		"resource \"deviceaccess_access_codes_exclusive\" \"front\" {\n  device_id = %q\n  access_code_ids = [%s]\n}\n",
		device,
		strings.Join(ids, ", "),
	)
}

// startCrowdedFake is a fake with a lock that has a code to keep, two others, and one on another lock.
func startCrowdedFake(t *testing.T) *fake {
	f := startFakeLocks(t)
	f.codes[keeper] = &fakeCode{
		device:  lockA,
		name:    "Owner",
		code:    "905173846251",
		managed: true,
		status:  "set",
	}
	f.codes[first] = &fakeCode{
		device: lockA,
		name:   "Plumber 715938426052",
		code:   "715938426052",
		status: "set",
	}
	f.codes[second] = &fakeCode{
		device:  lockA,
		name:    "Guest",
		code:    "640297158306",
		managed: true,
		status:  "set",
	}
	f.codes[late] = &fakeCode{
		device: lockB,
		name:   "Nanny",
		code:   "905173846251",
		status: "set",
	}
	return f
}

func plansDeletions(codes map[string]knownvalue.Check) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
		plancheck.ExpectResourceAction(only, plancheck.ResourceActionUpdate),
		plancheck.ExpectKnownValue(only, tfjsonpath.New("deleted_access_codes"), knownvalue.MapExact(codes)),
	}}
}

func TestExclusiveAccessCodesDeletesExactlyWhatThePlanHasShown(t *testing.T) {
	t.Parallel()
	f := startCrowdedFake(t)
	wrote := f.since(t)
	w := newDirectory(
		t,
		map[string]string{"versions.tf": required, "main.tf": f.config(exclusive(lockA, `"`+keeper+`"`))},
	)
	said := func(when string, wanted ...string) {
		t.Helper()
		for _, text := range wanted {
			if !strings.Contains(w.seen.String(), text) {
				t.Errorf("%s: %q was not said", when, text)
			}
		}
	}
	w.expect(true, "apply", "-auto-approve")
	wrote("after the creation")
	said(
		"the creation",
		"Other access codes are on the lock",
		first+` "Plumber (hidden)" (unmanaged)`,
		second+` "Guest" (managed)`,
		"This apply deletes none of them",
	)
	w.expect(true, "plan", "-out=plan")
	said("the plan", "Access codes will be deleted", "deletes these codes from the lock "+lockA)
	f.do(func() { f.codes[late].device = lockA })
	w.expect(true, "apply", "plan")
	wrote("after the apply", "delete "+lockA, "unmanaged/delete "+lockA)
	said("the apply", "Access codes have appeared since the plan", late+` "Nanny" (unmanaged)`)
	if _, kept := f.codes[keeper]; !kept || f.codes[late] == nil || len(f.codes) != 2 {
		t.Errorf("%d codes are left", len(f.codes))
	}
	w.expect(true, "destroy", "-auto-approve")
	wrote("after the destroy")
	said("the destroy", "deletes no access code")
	for _, pin := range []string{"905173846251", "715938426052", "640297158306"} {
		if strings.Contains(w.seen.String(), pin) {
			t.Error("a PIN was shown")
		}
	}
}

func TestExclusiveAccessCodesAfterAnImportDeletesAtOnce(t *testing.T) {
	f := startCrowdedFake(t)
	wrote := f.since(t)
	config := f.config(exclusive(lockA, `"`+keeper+`"`, `"`+first+`"`))
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config:           config + fmt.Sprintf("import {\n  to = %s\n  id = %q\n}\n", only, lockA),
			ConfigPlanChecks: plansDeletions(map[string]knownvalue.Check{second: isText("Guest")}),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(only, tfjsonpath.New("foreign_access_codes"), knownvalue.MapSizeExact(0)),
			},
		},
		{
			PreConfig:        func() { wrote("after the import", "delete "+lockA) },
			Config:           config,
			ConfigPlanChecks: plansNothing(),
		},
		{ // one that was allowed is not any more
			Config:           f.config(exclusive(lockA, `"`+keeper+`"`)),
			ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, only), ExpectNonEmptyPlan: true,
		},
		{
			PreConfig:        func() { wrote("no longer allowed, but not shown yet") },
			Config:           f.config(exclusive(lockA, `"`+keeper+`"`)),
			ConfigPlanChecks: plansDeletions(map[string]knownvalue.Check{first: isText("Plumber (hidden)")}),
		},
		{
			PreConfig:     func() { wrote("no longer allowed", "unmanaged/delete "+lockA) },
			Config:        config,
			ResourceName:  only,
			ImportState:   true,
			ImportStateId: "a/b",
			ExpectError:   says("is not the `device_id` of one lock"),
		},
	}})
}

// Removing a code from the list revokes access only with the second apply; the first one must say so.
func TestExclusiveAccessCodesSaysThatACodeTakenOutIsStillThere(t *testing.T) {
	t.Parallel()
	f := startCrowdedFake(t)
	delete(f.codes, second)
	w := newDirectory(
		t,
		map[string]string{
			"versions.tf": required,
			"main.tf":     f.config(exclusive(lockA, `"`+keeper+`"`, `"`+first+`"`)),
		},
	)
	w.expect(true, "apply", "-auto-approve")
	w.rewrite(f.config(exclusive(lockA, `"`+keeper+`"`)))
	const warning = "Access codes stay on the lock until the next plan"
	for _, command := range []string{"plan", "apply"} {
		var args []string
		if command == "apply" {
			args = append(args, "-auto-approve")
		}
		said := w.plain(append([]string{command}, args...)...)
		expectSaid(
			t,
			command,
			said,
			warning,
			first+` "Plumber (hidden)" (unmanaged)`,
			"The next plan lists the remaining codes in",
		)
		if strings.Contains(said, "appeared") || strings.Contains(said, "715938426052") {
			t.Errorf("%s: %s", command, said)
		}
	}
	if said := w.plain(
		"plan",
	); strings.Contains(said, warning) ||
		!strings.Contains(said, "Access codes will be deleted") {
		t.Errorf("the next plan: %s", said)
	}
}

// A set that failed on a lock has no identifier there.
func TestExclusiveAccessCodes_NullIdentifierAllowsNothing(t *testing.T) {
	f := startCrowdedFake(t)
	config := f.config(exclusive(lockA, `"`+keeper+`"`, "null"))
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config:             config,
			ExpectNonEmptyPlan: true,
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(only, tfjsonpath.New("foreign_access_codes"), knownvalue.MapSizeExact(2)),
			},
		},
	}})
}

func TestExclusiveAccessCodesLeavesWhatCannotBeDeleted(t *testing.T) {
	f := startCrowdedFake(t)
	f.codes[first].cannotBeDeleted = true
	delete(f.codes, second)
	config := f.config(exclusive(lockA, `"`+keeper+`"`))
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config},
		{Config: config, ConfigPlanChecks: plansNothing(), ConfigStateChecks: []statecheck.StateCheck{
			statecheck.ExpectKnownValue(
				only,
				tfjsonpath.New("foreign_access_codes").AtMapKey(first).AtMapKey("can_be_deleted"),
				knownvalue.Bool(false),
			),
		}},
	}})
	f.expectWrites(t, "in the end")
}

func TestExclusiveAccessCodesThatAreNotKnownYetAreKept(t *testing.T) {
	f := startCrowdedFake(t)
	config := f.config(accessCode(`code = "385016274931"`) + exclusive(lockA, `"`+keeper+`"`, front+".access_code_id"))
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config, ExpectNonEmptyPlan: true}, // which shows what there was before
		{
			Config: config,
			ConfigPlanChecks: plansDeletions(
				map[string]knownvalue.Check{first: isText("Plumber (hidden)"), second: isText("Guest")},
			),
		},
		{Config: config, ConfigPlanChecks: plansNothing()},
	}})
	if f.count("/access_codes/delete") != 2 { // the guest's, and the resource's own in the end
		t.Errorf("writes: %q", f.writes())
	}
}

// A plan that does not know all identifiers deletes nothing, and the next one shows the deletions.
func TestExclusiveAccessCodes_UnknownIdentifierDeletesNothing(t *testing.T) {
	t.Parallel()
	f := startCrowdedFake(t)
	w := newDirectory(t, map[string]string{
		"versions.tf": required, "main.tf": f.config(exclusive(lockA, `"`+keeper+`"`)),
	})
	w.expect(true, "apply", "-auto-approve")
	w.rewrite(f.config(accessCode(`code = "385016274931"`) + exclusive(lockA, `"`+keeper+`"`, front+".access_code_id")))
	expectSaid(
		t,
		"the plan",
		w.plain("plan"),
		"Warning: Access codes will be deleted later",
		"Plumber (hidden)",
		"Guest",
	)
	w.expect(true, "apply", "-auto-approve")
	f.expectWrites(t, "the first apply", "/access_codes/create")
	expectSaid(
		t,
		"the next plan",
		w.plain("plan"),
		"Applying this plan deletes these codes",
		"Plumber (hidden)",
		"Guest",
	)
}

// What is not known when it is planned may turn out to be what it was.
func TestExclusiveAccessCodesThatTurnOutToBeTheSame(t *testing.T) {
	f := startCrowdedFake(t)
	codes := func(name string) string {
		set := strings.Replace(codeSet("", lockA), "Nanny", name, 1)
		return f.config(
			set + strings.Replace(
				exclusive(lockA),
				"[]",
				"[for c in deviceaccess_shared_access_code.nanny.access_codes : c.access_code_id]",
				1,
			),
		)
	}
	deleted := func(n int) []statecheck.StateCheck {
		return []statecheck.StateCheck{
			statecheck.ExpectKnownValue(only, tfjsonpath.New("deleted_access_codes"), knownvalue.MapSizeExact(n)),
		}
	}
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: codes("Nanny"), ExpectNonEmptyPlan: true},
		{Config: codes("Nanny"), ConfigStateChecks: deleted(3)},
		{Config: codes("Anna"), ConfigStateChecks: deleted(3)},
		{Config: codes("Anna"), ConfigPlanChecks: plansNothing()},
	}})
}

func TestExclusiveAccessCodes_NewCodesWhenOnlyTimeoutsChange(t *testing.T) {
	t.Parallel()
	f := startCrowdedFake(t)
	config := exclusive(lockA, `"`+keeper+`"`, `"`+first+`"`, `"`+second+`"`)
	w := newDirectory(t, map[string]string{"versions.tf": required, "main.tf": f.config(config)})
	w.expect(true, "apply", "-auto-approve")
	w.rewrite(f.config(strings.Replace(config, "\n}\n", "\n  timeouts {\n    update = \"2m\"\n  }\n}\n", 1)))
	w.expect(true, "plan", "-out=plan")
	f.do(func() { f.codes[late].device = lockA })
	w.expect(true, "apply", "plan")
	f.expectWrites(t, "in the end")
}

func TestServerExclusiveAccessCodesOnALockThatIsOffline(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	device := srv.Device(t, "august")
	lock, codes := srv.Lock(t, device), srv.UnmanagedCodes(t, device)
	control := func(path string) func() { return func() { lock.Control(t, http.MethodPost, path, nil) } }
	config := func(more string) string {
		return onServer(
			srv,
			strings.Replace(exclusive(device, `"`+codes[0].AccessCodeID+`"`), "\n}\n", more+"\n}\n", 1),
		)
	}
	opens := func(want ...bool) resource.TestCheckFunc {
		return func(*terraform.State) error {
			for i, opens := range want {
				if lock.Has(t, *codes[i].Code) != opens {
					return fmt.Errorf("code %d opens: %v", i, !opens)
				}
			}
			return nil
		}
	}
	drive(t, resource.TestCase{CheckDestroy: opens(true, false, false), Steps: []resource.TestStep{
		{Config: config(""), Check: opens(true, true, true), ExpectNonEmptyPlan: true},
		{
			PreConfig:   control("/offline"),
			Config:      config("\n  timeouts {\n    update = \"15s\"\n  }"),
			ExpectError: says("Error: Could not delete other access codes", "The PIN may still open the door"),
		},
		{
			PreConfig: func() {
				control("/online")()
				apptest.Until(
					t,
					"the lock has done what it was told",
					func() bool { return opens(true, false, false)(nil) == nil },
				)
			},
			Config: config(""), Check: opens(true, false, false),
		},
		{Config: config(""), ConfigPlanChecks: plansNothing()},
	}})
}

func TestServerExclusiveAccessCodesKeepsABackupCodeThatWasPulled(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	device := srv.Device(t, "august")
	for _, code := range srv.UnmanagedCodes(t, device) {
		srv.Post(
			t,
			"/access_codes/unmanaged/delete",
			map[string]any{"access_code_id": code.AccessCodeID, "sync": true},
			nil,
		)
	}
	var guest api.AccessCodeCreatedResponse
	if status := srv.Post(
		t,
		"/access_codes/create",
		map[string]any{
			"device_id": device, "name": "Guest", "use_backup_access_code_pool": true,
			"starts_at": time.Now(), "ends_at": time.Now().Add(5 * time.Hour),
		},
		&guest,
	); status != http.StatusOK {
		t.Fatalf("create: %d", status)
	}
	original := guest.AccessCode.AccessCodeID
	apptest.Until(
		t,
		"a backup code can be pulled",
		func() bool { return managedOn(t, srv, device)[0].IsBackupAccessCodeAvailable },
	)
	lock := srv.Lock(t, device)
	var pulled api.BackupAccessCodeResponse
	pull := func() {
		if status := srv.Post(
			t,
			"/access_codes/pull_backup_access_code",
			map[string]any{"access_code_id": original},
			&pulled,
		); status != http.StatusOK {
			t.Errorf("pull: %d", status)
		}
	}
	opens := func(want bool) resource.TestCheckFunc {
		return func(*terraform.State) error {
			if lock.Has(t, *pulled.BackupAccessCode.Code) != want {
				return fmt.Errorf("the backup code opens: %t", !want)
			}
			return nil
		}
	}
	foreign := func(n int) []statecheck.StateCheck {
		return []statecheck.StateCheck{
			statecheck.ExpectKnownValue(only, tfjsonpath.New("foreign_access_codes"), knownvalue.MapSizeExact(n)),
		}
	}
	allowing, none := onServer(srv, exclusive(device, `"`+original+`"`)), onServer(srv, exclusive(device))
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: allowing, ConfigStateChecks: foreign(0)}, // nor are those of the pool
		{
			PreConfig:         pull,
			Config:            allowing,
			ConfigPlanChecks:  plansNothing(),
			ConfigStateChecks: foreign(0),
		},
		{Config: none, ExpectNonEmptyPlan: true, Check: opens(true)}, // which shows that both are to go
		{ // unless they may stay after all
			Config:            allowing,
			ConfigPlanChecks:  plansDeletions(map[string]knownvalue.Check{}),
			ConfigStateChecks: foreign(0),
			Check:             opens(true),
		},
		{Config: none, ExpectNonEmptyPlan: true},
		{
			PreConfig: func() {
				if pulled.BackupAccessCode.AccessCodeID == original {
					t.Error("nothing was pulled")
				}
			},
			Config:            none,
			ConfigStateChecks: foreign(0),
			Check:             opens(false),
		},
	}})
	if left := managedOn(t, srv, device); len(left) != 0 {
		t.Errorf("%d codes are left", len(left))
	}
}

func TestExclusiveAccessCodesTakesIdentifiersOnly(t *testing.T) {
	f := startCrowdedFake(t)
	for _, text := range []string{"nonsense", lockA + "/" + keeper, keeper + " ", keeper[1:]} {
		t.Run(text, func(t *testing.T) {
			run(t, resource.TestCase{Steps: []resource.TestStep{
				{
					Config:   f.config(exclusive(lockA, `"`+keeper+`"`, `"`+text+`"`)),
					PlanOnly: true,
					ExpectError: says(
						"Error: Invalid identifier",
						`"`+text+`" is not the `+"`access_code_id` of a code",
						"Apply would delete the code that you mean",
					),
				},
			}})
		})
	}
}

func TestExclusiveAccessCodes_AcceptsOtherIdentifierFormats(t *testing.T) {
	f := startFake(t)
	f.anyID = true
	f.devices = append(f.devices, device("lock_1", "august_lock", map[string]any{}))
	f.codes["code_1"] = &fakeCode{
		device:  "lock_1",
		name:    "Owner",
		code:    "905173846251",
		managed: true,
		status:  "set",
	}
	config := f.config(exclusive("lock_1", `"code_1"`))
	run(
		t,
		resource.TestCase{
			Steps: []resource.TestStep{{Config: config}, {Config: config, ConfigPlanChecks: plansNothing()}},
		},
	)
	f.expectWrites(t, "in the end")
}

func TestExclusiveAccessCodesWarnsOfCodesThatAreNotOnTheLock(t *testing.T) {
	t.Parallel()
	f := startCrowdedFake(t)
	all := []string{`"` + keeper + `"`, `"` + first + `"`, `"` + second + `"`}
	w := newDirectory(
		t,
		map[string]string{"versions.tf": required, "main.tf": f.config(exclusive(lockA, append(all, `"`+late+`"`)...))},
	)
	const warning = "Warning: Access codes are not on the lock"
	plan := func() string { return w.plain("plan") }
	expectSaid(
		t,
		"the creation",
		plan(),
		warning,
		"The lock "+lockA+" has no codes with these identifiers in `access_code_ids`: "+late+" ",
		"apply deletes the code that you mean",
	)
	w.expect(true, "apply", "-auto-approve")
	expectSaid(t, "a plan of nothing", plan(), warning, late, "No changes.")
	w.rewrite(f.config(exclusive(lockA, all...)))
	if said := plan(); strings.Contains(said, warning) {
		t.Errorf("codes on the lock are warned of: %s", said)
	}
	w.expect(true, "apply", "-auto-approve")
	w.rewrite(f.config(exclusive(lockA, all[0], all[1], strings.Replace(all[2], "cccc", "dccc", 1))))
	expectSaid(t, "a mistyped one", plan(), warning, "dccccccc-2222-4222-8222-222222222222", "0 to add, 1 to change")
	w.expect(true, "apply", "-auto-approve") // which deletes nothing yet, for no plan has shown it
	expectSaid(
		t,
		"the plan that deletes",
		plan(),
		"Warning: Access codes will be deleted",
		second+` "Guest" (managed)`,
		warning,
		"dccccccc-2222-4222-8222-222222222222",
	)
	f.expectWrites(t, "in the end")
}

func TestServerExclusiveAccessCodes_KeepsIssuedOfflineCode(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("igloohome"))
	device := srv.Device(t, "igloohome")
	for _, code := range srv.UnmanagedCodes(t, device) {
		srv.Post(
			t,
			"/access_codes/unmanaged/delete",
			map[string]any{"access_code_id": code.AccessCodeID, "sync": true},
			nil,
		)
	}
	begins := time.Now().Truncate(time.Hour)
	var issued api.AccessCodeCreatedResponse
	if status := srv.Post(
		t,
		"/access_codes/create",
		map[string]any{
			"device_id": device, "name": "Guest", "is_offline_access_code": true, "sync": true,
			"starts_at": begins, "ends_at": begins.Add(5 * time.Hour),
		},
		&issued,
	); status != http.StatusOK {
		t.Fatalf("create: %d", status)
	}
	id := issued.AccessCode.AccessCodeID
	stays := []statecheck.StateCheck{
		statecheck.ExpectKnownValue(
			only,
			tfjsonpath.New("foreign_access_codes").AtMapKey(id).AtMapKey("can_be_deleted"),
			knownvalue.Bool(false),
		),
		statecheck.ExpectKnownValue(
			only,
			tfjsonpath.New("foreign_access_codes").AtMapKey(id).AtMapKey("is_managed"),
			knownvalue.Bool(true),
		),
	}
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: onServer(srv, exclusive(device)), ConfigStateChecks: stays},
		{Config: onServer(srv, exclusive(device)), ConfigPlanChecks: plansNothing(), ConfigStateChecks: stays},
		{Config: onServer(srv, exclusive(device, `"`+id+`"`))},
		{Config: onServer(srv, exclusive(device)), ConfigStateChecks: stays}, // taken out
		{Config: onServer(srv, exclusive(device)), ConfigPlanChecks: plansNothing()},
	}})
	if n := srv.Count("/access_codes/delete"); n != 0 {
		t.Errorf("%d deletions", n)
	}
}

func TestExclusiveAccessCodesSaysOfAnOfflineCodeThatItStays(t *testing.T) {
	t.Parallel()
	f := startCrowdedFake(t)
	delete(f.codes, first)
	w := newDirectory(
		t,
		map[string]string{"versions.tf": required, "main.tf": f.config(exclusive(lockA, `"`+keeper+`"`))},
	)
	w.expect(true, "apply", "-auto-approve")
	w.expect(true, "plan", "-out=plan")
	f.do(func() { // issued while it was planned
		f.codes[second].offline, f.codes[second].startsAt, f.codes[second].endsAt = true, "2026-01-01T15:00:00Z", "2999-01-01T15:00:00Z"
	})
	f.then(
		"/access_codes/delete",
		answerError(http.StatusBadRequest, cannotDeleteOffline, "It cannot be deleted remotely"),
	)
	w.expect(false, "apply", "-no-color", "plan")
	expectSaid(
		t,
		"the apply",
		plainly(w.seen.String()),
		"Error: Could not delete other access codes",
		"The code stays on the lock until it ends",
	)
	expectSaid(
		t,
		"the plan after it",
		w.plain("plan"),
		"No changes",
		"Access codes that cannot be deleted",
		second+` "Guest" (offline code)`,
		"until they end",
	)
}

// removeLock is the owner who removes a lock from the account.
func (f *fake) removeLock(lock string) {
	f.do(func() {
		f.devices = slices.DeleteFunc(f.devices, func(d map[string]any) bool { return d["device_id"] == lock })
		maps.DeleteFunc(f.codes, func(_ string, c *fakeCode) bool { return c.device == lock })
	})
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(content))
		if bytes.Contains(content, []byte(`"device_id":"`+lock+`"`)) {
			answerError(http.StatusNotFound, "device_not_found", "Could not find a device")(w, r)
			return
		}
		f.ServeHTTP(w, r)
	})
	f.front.Store(&next)
}

func TestLockThatWasRemovedStopsNothingElse(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]string{
		"exclusive codes": exclusive(lockA),
		"a shared code":   codeSet("", lockA, lockB),
	} {
		for _, command := range []string{"plan", "destroy", "destroy -refresh=false"} {
			t.Run(name+", "+command, func(t *testing.T) {
				t.Parallel()
				f := startFakeLocks(t)
				w := newDirectory(t, map[string]string{
					"versions.tf": required, "main.tf": f.config(of + webhook("https://example.com/a", "")),
				})
				w.expect(true, "apply")
				f.removeLock(lockA)
				w.expect(true, strings.Fields(command)...)
				if command == "plan" {
					w.expect(false, "apply") // because of the lock
					w.rewrite(f.config(codeSet("", lockB) + webhook("https://example.com/b", "")))
					w.expect(true, "apply")
					w.expect(true, "plan", "-detailed-exitcode")
					w.expect(true, "destroy")
				}
				if len(f.codes)+len(f.webhooks) > 0 {
					t.Errorf("%d codes and %d webhooks are left", len(f.codes), len(f.webhooks))
				}
			})
		}
	}
}

func TestSharedAccessCode_CreationLeavesOutALockThatWasRemoved(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	f.removeLock(lockA)
	w := newDirectory(t, map[string]string{"versions.tf": required, "main.tf": f.config(codeSet("", lockA, lockB))})
	expectSaid(
		t,
		"the creation",
		w.plain("apply"),
		"Warning: "+diagnostics.CouldNot(actionPut),
		"device_not_found",
		"remove it from `device_ids`",
	)
	if w.status(lockA) != statusMissing || w.status(lockB) != "set" {
		t.Error("the other lock has no code")
	}
}

func TestExclusiveAccessCodes_TwoOfOneLockAreWarnedOf(t *testing.T) {
	t.Parallel()
	const summary = "Warning: Two resources list the access codes of one lock"
	f := startCrowdedFake(t)
	another := func(device string, ids ...string) string {
		return strings.Replace(exclusive(device, ids...), `"front"`, `"another"`, 1)
	}
	ids := []string{`"` + keeper + `"`, `"` + first + `"`}
	w := newDirectory(t, map[string]string{"versions.tf": required})
	for name, c := range map[string]struct {
		config string
		warned int
	}{
		"one":                  {exclusive(lockA, ids[0]), 0},
		"of two locks":         {exclusive(lockA, ids[0]) + another(lockB, ids[1]), 0},
		"with the same codes":  {exclusive(lockA, ids...) + another(lockA, ids[1], ids[0]), 0},
		"with different codes": {exclusive(lockA, ids[0]) + another(lockA, ids[1]), 1},
	} {
		w.rewrite(f.config(c.config))
		if n := strings.Count(w.plain("plan"), summary); n != c.warned {
			t.Errorf("%s: %d warnings", name, n)
		}
	}
	w.expect(true, "apply")
	if n := strings.Count(w.plain("plan"), summary); n > 1 {
		t.Errorf("existing ones: %d warnings", n)
	}
}

// On the way to a destroy, Terraform plans the creation of what the refresh has not found.
func TestTerraformDestroysWhatIsLeftWhenALockWasRemoved(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	w := newWorkspace(t, map[string]string{
		"versions.tf": required, "main.tf": f.config(exclusive(lockA) + webhook("https://example.com/a", "")),
	})
	w.expect(true, "apply", "-auto-approve")
	f.removeLock(lockA)
	w.expect(true, "destroy", "-auto-approve")
	if len(f.webhooks) > 0 {
		t.Error("the webhook is left")
	}
}

func TestServerLockThatWasRemovedStopsNothingElse(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august", "nuki"))
	august, nuki := srv.Device(t, "august"), srv.Device(t, "nuki")
	w := newDirectory(t, map[string]string{
		"versions.tf": required, "main.tf": onServer(srv, codeSet("", august, nuki)+exclusive(august)),
	})
	w.expect(true, "apply")
	if status := srv.Post(
		t,
		"/devices/simulate/remove",
		map[string]any{"device_id": august},
		nil,
	); status != http.StatusOK {
		t.Fatalf("removing the lock: %d", status)
	}
	w.expect(true, "plan")
	w.command("apply") // fails because of the lock
	w.rewrite(onServer(srv, codeSet("", nuki)))
	w.expect(true, "apply")
	w.expect(true, "plan", "-detailed-exitcode")
	w.expect(true, "destroy")
}
