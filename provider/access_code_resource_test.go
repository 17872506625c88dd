package provider

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/compare"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
)

const front = "deviceaccess_access_code.front"

// accessCode is an access code resource on the fake's lock with more attributes.
func accessCode(more string) string {
	return fmt.Sprintf("resource \"deviceaccess_access_code\" \"front\" {\n  device_id = %q\n  %s\n}\n", fakeDevice, more)
}

func has(attribute string, value knownvalue.Check) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(front, tfjsonpath.New(attribute), value)
}

func isText(text string) knownvalue.Check { return knownvalue.StringExact(text) }

// noneLeft checks that a destroy has taken every code off the lock.
func (f *fake) noneLeft(*terraform.State) error {
	if len(f.codes) != 0 {
		return fmt.Errorf("%d codes are left on the lock", len(f.codes))
	}
	return nil
}

func TestAccessCodeIsCreatedChangedReplacedAndDestroyed(t *testing.T) {
	f := startFake(t)
	same, other := statecheck.CompareValue(compare.ValuesSame()), statecheck.CompareValue(compare.ValuesDiffer())
	id := tfjsonpath.New("access_code_id")
	story(t, resource.TestCase{
		CheckDestroy: f.noneLeft,
		Steps: []resource.TestStep{
			{
				Config: f.config(accessCode("code = \"2468\"\n  name = \"Cleaner\"")),
				ConfigStateChecks: []statecheck.StateCheck{
					has("code", isText("2468")), statecheck.ExpectSensitiveValue(front, tfjsonpath.New("code")),
					has("name", isText("Cleaner")), has("type", isText("ongoing")), has("status", isText("set")),
					has("is_managed", knownvalue.Bool(true)), has("created_at", isText("2026-01-02T03:04:05.678Z")),
					has("starts_at", knownvalue.Null()), has("is_external_modification_allowed", knownvalue.Bool(false)),
					same.AddStateValue(front, id),
				},
			},
			{
				Config:           f.config(accessCode("code = \"13579\"\n  name = \"Cleaner\"\n  is_external_modification_allowed = true")),
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front),
				ConfigStateChecks: []statecheck.StateCheck{
					has("code", isText("13579")), has("status", isText("set")), same.AddStateValue(front, id), other.AddStateValue(front, id),
				},
			},
			{ // how long to wait is nobody else's business
				Config:           f.config(accessCode("code = \"13579\"\n  name = \"Cleaner\"\n  timeouts {\n    update = \"1m\"\n  }")),
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front),
			},
			{
				Config:           f.config(fmt.Sprintf("resource \"deviceaccess_access_code\" \"front\" {\n  device_id = %q\n}\n", "33333333-2222-4222-8222-222222222222")),
				ConfigPlanChecks: plans(plancheck.ResourceActionDestroyBeforeCreate, front),
				ConfigStateChecks: []statecheck.StateCheck{
					has("code", isText("7391")), has("name", isText("New Access Code")), other.AddStateValue(front, id),
				},
			},
		},
	})
	wantUpdate := map[string]any{"code": "13579", "is_external_modification_allowed": true}
	updates := f.bodies("/access_codes/update")
	if len(updates) != 1 {
		t.Fatalf("updates: %v", updates)
	}
	if delete(updates[0], "access_code_id"); !reflect.DeepEqual(updates[0], wantUpdate) {
		t.Errorf("the update asked for %v", updates[0])
	}
	if got := f.bodies("/access_codes/create")[0]; !reflect.DeepEqual(got, map[string]any{"device_id": fakeDevice, "code": "2468", "name": "Cleaner"}) {
		t.Errorf("the creation asked for %v", got)
	}
	if n := f.count("/access_codes/delete"); n != 2 {
		t.Errorf("%d deletions", n)
	}
}

// A vendor that chooses PINs may choose another where a code is changed, and a plan has promised the former one.
func TestPINThatAChangeHasReplacedIsWarnedOf(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	w := newDirectory(t, map[string]string{"versions.tf": required, "main.tf": f.config(accessCode(`name = "Guest"`))})
	w.expect(true, "apply", "-auto-approve")
	f.do(func() {
		f.nextAttempt = func(*fakeAttempt) { _, c := f.only(); c.code = "905173846251" }
	})
	w.rewrite(f.config(accessCode(`name = "Visitor"`)))
	said := w.plain("apply", "-auto-approve")
	expectSaid(t, "the change", said, "another PIN than was planned", "terraform apply -refresh-only")
	if strings.Contains(said, "905173846251") {
		t.Error("the PIN was shown")
	}
	if said := w.plain("apply", "-refresh-only", "-auto-approve"); strings.Contains(said, "Warning") {
		t.Errorf("the refresh: %s", said)
	}
}

// A server that is restarted while its lock works has lost nothing: the code must not be tainted, and replaced, for that.
func TestCreationGoesOnWaitingWhileTheServerIsAway(t *testing.T) {
	f := startFake(t)
	f.nextAttempt = func(a *fakeAttempt) { a.looks = 3 }
	f.then("/action_attempts/get", answerError(http.StatusInternalServerError, "internal_error", "It is restarted"), answerError(http.StatusBadGateway, "", ""))
	f.then("/access_codes/get", answerError(http.StatusInternalServerError, "internal_error", "It is restarted"))
	config := f.config(accessCode(`code = "2468"`))
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{Config: config, ConfigStateChecks: []statecheck.StateCheck{has("status", isText("set"))}},
		{Config: config, ConfigPlanChecks: plansNothing()},
	}})
	if n := f.count("/access_codes/create"); n != 1 {
		t.Errorf("%d creations", n)
	}
}

func TestAccessCodeTimeFrameMayBeSpelledInAnyZoneAndTakenAway(t *testing.T) {
	f := startFake(t)
	starts := time.Now().Add(48 * time.Hour).Truncate(time.Second)
	frame := func(zone *time.Location, days int) string {
		return fmt.Sprintf("code = \"2468\"\n  starts_at = %q\n  ends_at = %q", starts.In(zone).Format(time.RFC3339), starts.AddDate(0, 0, days).In(zone).Format(time.RFC3339))
	}
	paris := time.FixedZone("", 2*60*60)
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{
			Config: f.config(accessCode(frame(paris, 1))),
			ConfigStateChecks: []statecheck.StateCheck{
				has("type", isText("time_bound")), has("status", isText("unset")), has("starts_at", isText(starts.In(paris).Format(time.RFC3339))),
			},
		},
		{ // nor does reading it change the spelling
			Config: f.config(accessCode(frame(paris, 1))), ConfigPlanChecks: plansNothing(),
			ConfigStateChecks: []statecheck.StateCheck{has("starts_at", isText(starts.In(paris).Format(time.RFC3339)))},
		},
		{Config: f.config(accessCode(frame(time.UTC, 1))), ConfigPlanChecks: plansNothing()},
		{
			Config: f.config(accessCode(frame(time.UTC, 2))),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction(front, plancheck.ResourceActionUpdate),
				plancheck.ExpectKnownValue(front, tfjsonpath.New("type"), isText("time_bound")),
			}},
		},
		{
			Config: f.config(accessCode(`code = "2468"`)),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectKnownValue(front, tfjsonpath.New("type"), isText("ongoing")),
			}},
			ConfigStateChecks: []statecheck.StateCheck{has("type", isText("ongoing")), has("starts_at", knownvalue.Null()), has("ends_at", knownvalue.Null())},
		},
	}})
	updates := f.bodies("/access_codes/update")
	if len(updates) != 2 || updates[0]["type"] != "time_bound" || updates[1]["type"] != "ongoing" || updates[1]["starts_at"] != nil {
		t.Errorf("updates: %v", updates)
	}
}

func TestAccessCodeConfigurationIsCheckedBeforeTheServerIsAsked(t *testing.T) {
	cases := map[string]struct{ attributes, problem string }{
		"letters":       {`code = "12a4"`, "`code` must be 4 to 12 digits"},
		"three digits":  {`code = "124"`, "`code` must be 4 to 12 digits"},
		"no quotes":     {`code = 0123`, "in quotes; without them Terraform drops zeros in front"},
		"start only":    {`starts_at = "2030-01-01T00:00:00Z"`, "`starts_at` goes together with `ends_at`, which is not set. Set both"},
		"end only":      {`ends_at = "2030-01-01T00:00:00Z"`, "`ends_at` goes together with `starts_at`, which is not set. Set both"},
		"no zone":       {"starts_at = \"2030-01-01T00:00:00\"\n  ends_at = \"2030-01-02T00:00:00\"", "is not a time in RFC 3339. Write it with its time zone"},
		"ends first":    {"starts_at = \"2030-01-01T00:00:00Z\"\n  ends_at = \"2030-01-01T01:00:00+02:00\"", "The code would end before it starts"},
		"no time":       {"timeouts {\n    create = \"-5m\"\n  }", "`timeouts.create` is \"-5m\", and nothing is done in no time. Set it to how long to wait"},
		"none at all":   {"timeouts {\n    delete = \"0s\"\n  }", "`timeouts.delete` is \"0s\""},
		"an empty name": {`name = ""`, "`name` is empty. Give it a name, or leave it out"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			run(t, resource.TestCase{Steps: []resource.TestStep{{Config: f.config(accessCode(c.attributes)), ExpectError: says(c.problem)}}})
			if writes := f.writes(); len(writes) != 0 {
				t.Errorf("writes: %v", writes)
			}
		})
	}
}

func TestAccessCodeChangedUnmanagedOrDeletedElsewhereIsRepaired(t *testing.T) {
	f := startFake(t)
	config := f.config(accessCode("code = \"2468\"\n  name = \"Cleaner\""))
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{Config: config},
		{
			PreConfig:         func() { f.do(func() { _, c := f.only(); c.code = "9999" }) },
			Config:            config,
			ConfigPlanChecks:  plans(plancheck.ResourceActionUpdate, front),
			ConfigStateChecks: []statecheck.StateCheck{has("code", isText("2468"))},
		},
		{
			PreConfig:         func() { f.do(func() { _, c := f.only(); c.managed = false }) },
			Config:            config,
			ConfigPlanChecks:  plans(plancheck.ResourceActionUpdate, front),
			ConfigStateChecks: []statecheck.StateCheck{has("is_managed", knownvalue.Bool(true))},
		},
		{
			PreConfig:        func() { f.do(func() { clear(f.codes) }) },
			Config:           config,
			ConfigPlanChecks: plans(plancheck.ResourceActionCreate, front),
		},
		{PreConfig: func() { f.do(func() { clear(f.codes) }) }, Config: config, Destroy: true},
	}})
	if n := f.count("/access_codes/unmanaged/convert_to_managed"); n != 1 {
		t.Errorf("converted %d times", n)
	}
}

func TestAccessCodeOnASlowLockIsTaintedAndCanBeDestroyed(t *testing.T) {
	f := startFake(t)
	f.nextAttempt = func(a *fakeAttempt) {
		if a.actionType == "CREATE_ACCESS_CODE" {
			a.looks = 1000
			_, c := f.only()
			c.errors = []map[string]any{{"error_code": "device_offline", "message": "The lock is offline; 2468 is waiting.", "is_device_error": true}}
		}
	}
	slow := f.config(accessCode("code = \"2468\"\n  timeouts {\n    create = \"2s\"\n  }"))
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{
			Config: slow,
			ExpectError: says("Error: Create access code", "(CREATE_ACCESS_CODE) was still pending when the time was up",
				"the access code says: The lock is offline; (hidden) is waiting (device_offline)", "marked as tainted", "terraform untaint", "timeouts { create }"),
		},
		{
			PreConfig:        func() { f.do(func() { f.nextAttempt = nil }) },
			Config:           f.config(accessCode(`code = "2468"`)),
			ConfigPlanChecks: plans(plancheck.ResourceActionDestroyBeforeCreate, front),
		},
	}})
	if n := f.count("/access_codes/create"); n != 2 {
		t.Errorf("created %d times", n)
	}
}

func TestAccessCodeAttemptThatFailsIsExplainedUnlessTheCodeIsSetAllTheSame(t *testing.T) {
	failure := map[string]any{"type": "no_space_for_access_code_on_device", "message": "2468 does not fit, the lock is full"}
	t.Run("it failed", func(t *testing.T) {
		f := startFake(t)
		f.nextAttempt = func(a *fakeAttempt) {
			if a.actionType == "CREATE_ACCESS_CODE" {
				a.failure = failure
			}
		}
		run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{{
			Config: f.config(accessCode(`code = "2468"`)),
			ExpectError: says("Action attempt", "(CREATE_ACCESS_CODE) failed: (hidden) does not fit, the lock is full (no_space_for_access_code_on_device)",
				"marked as tainted", "Correct what the message names"),
		}}})
	})
	t.Run("it is set", func(t *testing.T) {
		f := startFake(t)
		f.nextAttempt = func(a *fakeAttempt) {
			if a.actionType == "CREATE_ACCESS_CODE" {
				a.failure = failure
				_, c := f.only()
				c.status = "set"
			}
		}
		run(t, resource.TestCase{Steps: []resource.TestStep{{Config: f.config(accessCode(`code = "2468"`))}}})
	})
}

func TestAccessCodeOfAServerWithoutAttemptsIsWatchedByItsStatus(t *testing.T) {
	f := startFake(t)
	f.noAttempts, f.noPagination, f.laterBy = true, true, 3
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{Config: f.config(accessCode(`code = "2468"`)), ConfigStateChecks: []statecheck.StateCheck{has("status", isText("set"))}},
		{Config: f.config(accessCode(`code = "8642"`)), ConfigStateChecks: []statecheck.StateCheck{has("status", isText("set"))}},
	}})
}

func TestAccessCodeThatStaysOnTheLockIsNotForgotten(t *testing.T) {
	f := startFake(t)
	stuck := true
	f.nextAttempt = func(a *fakeAttempt) {
		if a.actionType == "DELETE_ACCESS_CODE" && stuck {
			a.looks = 1000
		}
	}
	config := f.config(accessCode("code = \"2468\"\n  timeouts {\n    delete = \"1s\"\n  }"))
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{Config: config},
		{Config: config, Destroy: true, ExpectError: says("Error: Delete access code", "on the device "+fakeDevice, "(DELETE_ACCESS_CODE) was still pending", "The PIN may still open the door")},
		{PreConfig: func() { f.do(func() { stuck = false }) }, Config: config, PlanOnly: true},
		{Config: strings.Replace(config, "1s", "5m", 1), ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front)},
	}})
}

func TestAccessCodeKeepsThePINThatTheServerDoesNotTell(t *testing.T) {
	f := startFake(t)
	config := f.config(accessCode(`code = "2468"`))
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config},
		{
			PreConfig:        func() { f.do(func() { _, c := f.only(); c.code = nil }) },
			Config:           config,
			ConfigPlanChecks: plansNothing(), ConfigStateChecks: []statecheck.StateCheck{has("code", isText("2468"))},
		},
	}})
}

func TestDeletingWhatIsGoneMeanwhileIsASuccess(t *testing.T) {
	f := startFake(t)
	config := f.config(accessCode(`code = "2468"`) + webhook("https://example.com/a", ""))
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config},
		{
			PreConfig: func() {
				f.then("/access_codes/delete", answerError(http.StatusNotFound, "access_code_not_found", "Could not find access code"))
				f.then("/webhooks/delete", answerError(http.StatusNotFound, "webhook_not_found", "Could not find webhook"))
			},
			Config: config, Destroy: true,
		},
	}})
	if codes, webhooks := f.count("/access_codes/delete"), f.count("/webhooks/delete"); codes != 1 || webhooks != 1 {
		t.Errorf("%d and %d deletions", codes, webhooks)
	}
}

func TestAccessCodeDuplicatePINIsRefusedWithoutShowingIt(t *testing.T) {
	f := startFake(t)
	f.then("/access_codes/create", answerError(http.StatusConflict, "duplicate_access_code", "Cannot set duplicate access code 2468 named Cleaner"))
	run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config:      f.config(accessCode(`code = "2468"`)),
		ExpectError: says("Cannot set duplicate access code (hidden) named Cleaner (HTTP 409, duplicate_access_code"),
	}}})
	if writes := f.writes(); !slices.Equal(writes, []string{"/access_codes/create"}) {
		t.Errorf("writes: %v", writes)
	}
}
