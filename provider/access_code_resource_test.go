package provider

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	resourceapi "github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hashicorp/terraform-plugin-testing/compare"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

const front = "deviceaccess_access_code.front"

// accessCode is an access code resource on the fake's lock with more attributes.
func accessCode(more string) string {
	return fmt.Sprintf(
		"resource \"deviceaccess_access_code\" \"front\" {\n  device_id = %q\n  %s\n}\n",
		fakeDevice,
		more,
	)
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
					has("code", isText("2468")),
					statecheck.ExpectSensitiveValue(front, tfjsonpath.New("code")),
					has("name", isText("Cleaner")),
					has("type", isText("ongoing")),
					has("status", isText("set")),
					has("is_managed", knownvalue.Bool(true)),
					has("created_at", isText("2026-01-02T03:04:05.678Z")),
					has(
						"starts_at",
						knownvalue.Null(),
					),
					has("is_external_modification_allowed", knownvalue.Bool(false)),
					same.AddStateValue(front, id),
				},
			},
			{
				Config: f.config(
					accessCode("code = \"13579\"\n  name = \"Cleaner\"\n  is_external_modification_allowed = true"),
				),
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front),
				ConfigStateChecks: []statecheck.StateCheck{
					has(
						"code",
						isText("13579"),
					),
					has("status", isText("set")),
					same.AddStateValue(front, id),
					other.AddStateValue(front, id),
				},
			},
			{ // only the provider uses the timeouts
				Config: f.config(
					accessCode("code = \"13579\"\n  name = \"Cleaner\"\n  timeouts {\n    update = \"1m\"\n  }"),
				),
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front),
			},
			{
				Config: f.config(
					fmt.Sprintf(
						"resource \"deviceaccess_access_code\" \"front\" {\n  device_id = %q\n}\n",
						"33333333-2222-4222-8222-222222222222",
					),
				),
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
	if got := f.bodies("/access_codes/create")[0]; !reflect.DeepEqual(
		got,
		map[string]any{"device_id": fakeDevice, "code": "2468", "name": "Cleaner"},
	) {
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
	expectSaid(t, "the change", said, "another PIN than planned", "terraform apply -refresh-only")
	if strings.Contains(said, "905173846251") {
		t.Error("the PIN was shown")
	}
	if said := w.plain("apply", "-refresh-only", "-auto-approve"); strings.Contains(said, "Warning") {
		t.Errorf("the refresh: %s", said)
	}
}

// A server that is restarted while its lock works has lost nothing: the code must not be tainted, and replaced, for
// that.
func TestCreationGoesOnWaitingWhileTheServerIsAway(t *testing.T) {
	f := startFake(t)
	f.nextAttempt = func(a *fakeAttempt) { a.looks = 3 }
	f.then(
		"/action_attempts/get",
		answerError(http.StatusInternalServerError, "internal_error", "It is restarted"),
		answerError(http.StatusBadGateway, "", ""),
	)
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
		return fmt.Sprintf(
			"code = \"2468\"\n  starts_at = %q\n  ends_at = %q",
			starts.In(zone).Format(time.RFC3339),
			starts.AddDate(0, 0, days).In(zone).Format(time.RFC3339),
		)
	}
	paris := time.FixedZone("", 2*60*60)
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{
			Config: f.config(accessCode(frame(paris, 1))),
			ConfigStateChecks: []statecheck.StateCheck{
				has(
					"type",
					isText("time_bound"),
				),
				has("status", isText("unset")),
				has("starts_at", isText(starts.In(paris).Format(time.RFC3339))),
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
			ConfigStateChecks: []statecheck.StateCheck{
				has("type", isText("ongoing")),
				has("starts_at", knownvalue.Null()),
				has("ends_at", knownvalue.Null()),
			},
		},
	}})
	updates := f.bodies("/access_codes/update")
	if len(updates) != 2 || updates[0]["type"] != "time_bound" || updates[1]["type"] != "ongoing" ||
		updates[1]["starts_at"] != nil {
		t.Errorf("updates: %v", updates)
	}
}

func TestAccessCodeConfigurationIsCheckedBeforeTheServerIsAsked(t *testing.T) {
	cases := map[string]struct{ attributes, problem string }{
		"letters":      {`code = "12a4"`, "`code` must be 4 to 12 digits"},
		"three digits": {`code = "124"`, "`code` must be 4 to 12 digits"},
		"no quotes":    {`code = 0123`, "in quotes; without quotes Terraform drops leading zeros"},
		"start only": {
			`starts_at = "2030-01-01T00:00:00Z"`,
			"`starts_at` goes together with `ends_at`, which is not set. Set both",
		},
		"end only": {
			`ends_at = "2030-01-01T00:00:00Z"`,
			"`ends_at` goes together with `starts_at`, which is not set. Set both",
		},
		"no zone": {
			"starts_at = \"2030-01-01T00:00:00\"\n  ends_at = \"2030-01-02T00:00:00\"",
			"is not a time in RFC 3339. Write it with its time zone",
		},
		"ends first": {
			"starts_at = \"2030-01-01T00:00:00Z\"\n  ends_at = \"2030-01-01T01:00:00+02:00\"",
			"The code ends before it starts",
		},
		"no time": {
			"timeouts {\n    create = \"-5m\"\n  }",
			"`timeouts.create` is \"-5m\", which leaves no time. Set it to how long to wait",
		},
		"none at all":   {"timeouts {\n    delete = \"0s\"\n  }", "`timeouts.delete` is \"0s\""},
		"an empty name": {`name = ""`, "`name` is empty. Give it a name, or leave it out"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			run(
				t,
				resource.TestCase{
					Steps: []resource.TestStep{
						{Config: f.config(accessCode(c.attributes)), ExpectError: says(c.problem)},
					},
				},
			)
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

func TestAccessCode_SlowLockGetsCodeAfterApply(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	f.nextAttempt = func(a *fakeAttempt) {
		a.looks = 1000
		_, c := f.only()
		c.errors = []map[string]any{
			{
				"error_code":      "device_offline",
				"message":         "The lock is offline; 904716590100 is waiting.",
				"is_device_error": true,
			},
		}
	}
	w := newDirectory(t, map[string]string{
		"main.tf": required + f.config(accessCode("code = \"904716590100\"\n  timeouts {\n    create = \"1s\"\n  }")),
	})
	expectSaid(t, "the apply", w.plain("apply", "-auto-approve"),
		"Warning: Access code may not be on its lock yet",
		"(CREATE_ACCESS_CODE) was still pending when the time was up",
		"the access code says: The lock is offline; (hidden) is waiting (device_offline)",
		`in the state with the status "setting"`,
		"add a postcondition on `status`",
		"raise `timeouts { create }`",
	)
	w.expect(true, "plan", "-detailed-exitcode")
	f.do(func() { _, c := f.only(); c.status, c.errors, f.nextAttempt = "set", nil, nil })
	w.expect(true, "plan", "-detailed-exitcode")
	w.expect(true, "destroy", "-auto-approve")
	f.expectWrites(t, "in the end", "/access_codes/create", "/access_codes/delete")
}

func TestAccessCode_FailedAttemptIsExplainedUnlessCodeIsSet(t *testing.T) {
	failure := map[string]any{
		"type":    "no_space_for_access_code_on_device",
		"message": "2468 does not fit, the lock is full",
	}
	t.Run("it failed", func(t *testing.T) {
		f := startFake(t)
		f.nextAttempt = func(a *fakeAttempt) {
			if a.actionType == "CREATE_ACCESS_CODE" {
				a.failure = failure
			}
		}
		run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
			{
				Config: f.config(accessCode(`code = "2468"`)),
				ExpectError: says(
					"Action attempt",
					"(CREATE_ACCESS_CODE) failed: (hidden) does not fit, the lock is full (no_space_for_access_code_on_device)",
					"marked as tainted",
					"irst correct the problem in the message",
				),
			},
		}})
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
		{
			Config:            f.config(accessCode(`code = "2468"`)),
			ConfigStateChecks: []statecheck.StateCheck{has("status", isText("set"))},
		},
		{
			Config:            f.config(accessCode(`code = "8642"`)),
			ConfigStateChecks: []statecheck.StateCheck{has("status", isText("set"))},
		},
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
		{
			Config:  config,
			Destroy: true,
			ExpectError: says(
				"Error: Could not delete access code",
				"on the device "+fakeDevice,
				"(DELETE_ACCESS_CODE) was still pending",
				"The PIN may still open the door",
			),
		},
		{PreConfig: func() { f.do(func() { stuck = false }) }, Config: config, PlanOnly: true},
		{
			Config:           strings.Replace(config, "1s", "5m", 1),
			ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front),
		},
	}})
}

func TestAccessCodeKeepsThePINThatTheServerDoesNotTell(t *testing.T) {
	f := startFake(t)
	config := f.config(accessCode(`code = "2468"`))
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config},
		{
			PreConfig:         func() { f.do(func() { _, c := f.only(); c.code = nil }) },
			Config:            config,
			ConfigPlanChecks:  plansNothing(),
			ConfigStateChecks: []statecheck.StateCheck{has("code", isText("2468"))},
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
				f.then(
					"/access_codes/delete",
					answerError(http.StatusNotFound, "access_code_not_found", "Could not find access code"),
				)
				f.then(
					"/webhooks/delete",
					answerError(http.StatusNotFound, "webhook_not_found", "Could not find webhook"),
				)
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
	f.then(
		"/access_codes/create",
		answerError(
			http.StatusConflict,
			"duplicate_access_code",
			"Cannot set duplicate access code 2468 named Cleaner",
		),
	)
	run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config:      f.config(accessCode(`code = "2468"`)),
		ExpectError: says("Cannot set duplicate access code (hidden) named Cleaner (HTTP 409, duplicate_access_code"),
	}}})
	if writes := f.writes(); !slices.Equal(writes, []string{"/access_codes/create"}) {
		t.Errorf("writes: %v", writes)
	}
}

// frame is a time frame of that long, which begins so long from now.
func frame(begins, lasts time.Duration) string {
	starts := time.Now().Add(begins).UTC()
	return fmt.Sprintf(
		"  starts_at = %q\n  ends_at = %q\n",
		starts.Format(time.RFC3339),
		starts.Add(lasts).Format(time.RFC3339),
	)
}

// managedOn are the managed codes that the server lists for a device.
func managedOn(t *testing.T, srv *apptest.Server, device string) []api.AccessCode {
	t.Helper()
	var list api.AccessCodesResponse
	if status := srv.Post(
		t,
		"/access_codes/list",
		map[string]any{"device_id": device},
		&list,
	); status != http.StatusOK {
		t.Fatalf("list the codes: %d", status)
	}
	return list.AccessCodes
}

// forgotten lets go of a code that cannot be destroyed.
const forgotten = "removed {\n  from = deviceaccess_access_code.front\n  lifecycle {\n    destroy = false\n  }\n}\n"

func frontID(s *terraform.State) (string, error) { return attribute(s, front, "access_code_id"), nil }

// verifiesImport imports the code that is there, and compares it but for these attributes.
func verifiesImport(but ...string) resource.TestStep {
	return resource.TestStep{
		ResourceName:                         front,
		ImportState:                          true,
		ImportStateVerify:                    true,
		ImportStateIdFunc:                    frontID,
		ImportStateVerifyIdentifierAttribute: "access_code_id",
		ImportStateVerifyIgnore:              but,
	}
}

// importsAgain imports the one code of a device that was forgotten.
func importsAgain(t *testing.T, srv *apptest.Server, device, config string) resource.TestStep {
	return resource.TestStep{
		Config:             config,
		ResourceName:       front,
		ImportState:        true,
		ImportStatePersist: true,
		ImportStateIdFunc: func(*terraform.State) (string, error) {
			return managedOn(t, srv, device)[0].AccessCodeID, nil
		},
	}
}

// issued is the attribute offline of an offline code without other settings.
var issued = knownvalue.ObjectExact(map[string]knownvalue.Check{
	"is_one_time_use": knownvalue.Bool(false), "max_time_rounding": knownvalue.Null(),
})

func TestServerOfflineCodeIsIssuedAndCannotBeChangedOrDestroyed(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("igloohome"))
	device := srv.Device(t, "igloohome")
	srv.Lock(t, device).Control(t, http.MethodPost, "/offline", nil)
	// Not on the hour, so that the server widens it.
	begins := time.Until(time.Now().Truncate(time.Hour)) + 20*time.Minute
	time20 := frame(begins, 3*time.Hour)
	rounded := func(inside, more string) string {
		return onServer(srv, accessCodeOn(device, "offline = {"+inside+"}\n"+more))
	}
	offline := func(more string) string { return rounded("", more) }
	config := offline("name = \"Guest\"\n" + time20)
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config: config,
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectUnknownValue(
					front,
					tfjsonpath.New("code"),
				),
				plancheck.ExpectKnownValue(front, tfjsonpath.New("type"), isText("time_bound")),
				plancheck.ExpectKnownValue(front, tfjsonpath.New("offline"), issued),
			}},
			ConfigStateChecks: []statecheck.StateCheck{
				has("code", knownvalue.StringRegexp(regexp.MustCompile(`^\d{9}$`))),
				has("offline", issued),
			},
		},
		{Config: config, ConfigPlanChecks: plansNothing()},
		verifiesImport("starts_at", "ends_at", "status"),
		{ // what is taken by default anyway
			Config: rounded(
				"max_time_rounding = \"1h\"", "name = \"Guest\"\n  prefer_native_scheduling = true\n"+time20,
			),
			ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front),
		},
		{
			Config: rounded(
				"max_time_rounding = \"1hour\"", "name = \"Guest\"\n  prefer_native_scheduling = true\n"+time20,
			),
			ConfigPlanChecks: plansNothing(),
		},
		{
			Config:      rounded("max_time_rounding = \"1day\"", "name = \"Guest\"\n"+time20),
			ExpectError: says("max_time_rounding", "neither changed nor deleted"),
		},
		{Config: config, ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front)},
		{
			Config:      offline("name = \"Guest\"\n  prefer_native_scheduling = false\n" + time20),
			ExpectError: says("prefer_native_scheduling", "neither changed nor deleted"),
		},
		{
			Config:      offline("name = \"Guest\"\n  preferred_code_length = 6\n" + time20),
			ExpectError: says("preferred_code_length", "neither changed nor deleted"),
		},
		{
			Config:      rounded("max_time_rounding = \"1d\"", "name = \"Guest\"\n"+time20),
			ExpectError: says("max_time_rounding", "neither changed nor deleted"),
		},
		{
			Config:           offline("name = \"Guest\"" + keptFor + "\"Ada\" }\n" + time20),
			ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front),
		},
		{
			Config:      offline("name = \"Guest\"" + keptFor + "\"Grace\" }\n" + time20),
			ExpectError: says("keepers", "neither changed nor deleted"),
		},
		{Config: config, ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front)},
		{
			Config: offline("name = \"Friend\"\n" + time20),
			ExpectError: says(
				"Error: Could not update access code",
				"has issued the offline access code",
				"without a connection",
				"neither changed nor deleted",
				"Restore its configuration",
				"destroy = false",
			),
		},
		{
			Config:      offline("name = \"Guest\"\n" + frame(begins, 9*time.Hour)),
			ExpectError: says("with deviceaccess_access_code.front", "ends_at", "neither changed nor deleted"),
		},
		{
			Config:      onServer(srv, accessCodeOn(device, "name = \"Guest\"\n"+time20)),
			ExpectError: says("neither changed nor deleted", "Restore its configuration, which has `offline`"),
		},
		{
			Config:  config,
			Destroy: true,
			ExpectError: says(
				"Error: Could not delete access code",
				"cannot be revoked remotely",
				"use a removed block",
				"terraform untaint",
			),
		},
		{Config: config, ConfigPlanChecks: plansNothing()},
		{Config: onServer(srv, forgotten)},
		{ // the time frame that was asked for is the server's
			Config: config + fmt.Sprintf(
				"import {\n  to = %s\n  id = %q\n}\n",
				front,
				"${one(data.deviceaccess_access_codes.all.access_codes).access_code_id}",
			) + allCodes(
				device,
			),
			ConfigPlanChecks: plans(plancheck.ResourceActionNoop, front),
		},
		{Config: onServer(srv, forgotten)},
	}})
	if codes := managedOn(
		t,
		srv,
		device,
	); len(codes) != 1 || srv.Count("/access_codes/create") != 1 ||
		srv.Count("/access_codes/update") != 0 {
		t.Errorf(
			"%d codes, %d creations, %d changes",
			len(codes),
			srv.Count("/access_codes/create"),
			srv.Count("/access_codes/update"),
		)
	}
}

func allCodes(device string) string {
	return fmt.Sprintf("data \"deviceaccess_access_codes\" \"all\" {\n  device_id = %q\n}\n", device)
}

func TestServerOneTimeCodeNeedsNoTimeFrame(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("igloohome"))
	device := srv.Device(t, "igloohome")
	const once = "offline = { is_one_time_use = true }\n"
	config := onServer(srv, accessCodeOn(device, once))
	begins := onServer(srv, accessCodeOn(device, once+strings.SplitAfter(frame(time.Hour, time.Hour), "\n")[0]))
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config: config,
			ConfigStateChecks: []statecheck.StateCheck{
				has("type", isText("time_bound")),
				has("starts_at", knownvalue.Null()),
				statecheck.ExpectKnownValue(
					front,
					tfjsonpath.New("offline").AtMapKey("is_one_time_use"),
					knownvalue.Bool(true),
				),
			},
		},
		{Config: config, ConfigPlanChecks: plansNothing()},
		{Config: onServer(srv, forgotten)},
		importsAgain(t, srv, device, config),
		{
			Config:            config,
			ConfigPlanChecks:  plans(plancheck.ResourceActionUpdate, front),
			ConfigStateChecks: []statecheck.StateCheck{has("ends_at", knownvalue.Null())},
		},
		{Config: config, ConfigPlanChecks: plansNothing()},
		{Config: onServer(srv, forgotten)},
		{
			Config: begins,
			ConfigStateChecks: []statecheck.StateCheck{
				has("starts_at", knownvalue.NotNull()),
				has("ends_at", knownvalue.Null()),
			},
		},
		{Config: begins, ConfigPlanChecks: plansNothing()},
		{Config: onServer(srv, forgotten)},
	}})
}

func TestServerDailyOfflineCodeKeepsTheTimeFrameThatWasAskedFor(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("igloohome"))
	config := onServer(
		srv,
		accessCodeOn(
			srv.Device(t, "igloohome"),
			"offline = { max_time_rounding = \"1d\" }\n"+frame(
				time.Hour,
				30*24*time.Hour+5*time.Minute,
			),
		),
	)
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config},
		{Config: config, ConfigPlanChecks: plansNothing()},
		{Config: strings.Replace(config, `"1d"`, `"1h"`, 1), ExpectError: says("neither changed nor deleted")},
		{Config: onServer(srv, forgotten)},
	}})
}

func TestServerOfflineCodeThatTheDeviceCannotHave(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august", "igloohome"))
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config: onServer(
				srv,
				accessCodeOn(srv.Device(t, "august"), "offline = {}\n"+frame(0, time.Hour)),
			),
			ExpectError: says(
				"Error: Lock cannot have offline access codes",
				"offline = {}",
				"the vendor issues no offline codes",
			),
		},
		{
			Config: onServer(
				srv,
				accessCodeOn(srv.Device(t, "igloohome"), "offline = {}\n"+frame(0, 700*time.Hour)),
			),
			ExpectError: says("ends_at", "1 to 672 hours", "max_time_rounding"),
		},
	}})
}

func TestServerBackupPoolStandsBehindACode(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	device := srv.Device(t, "august")
	same, other := statecheck.CompareValue(compare.ValuesSame()), statecheck.CompareValue(compare.ValuesDiffer())
	id := tfjsonpath.New("access_code_id")
	time5 := frame(0, 5*time.Hour)
	config := func(more string) string { return onServer(srv, accessCodeOn(device, time5+more)) }
	const pool = "  backup = { use_pool = true }\n"
	available := func(pulled bool) func() {
		return func() {
			apptest.Until(
				t,
				"the backup codes are there",
				func() bool { return managedOn(t, srv, device)[0].IsBackupAccessCodeAvailable },
			)
			if pulled {
				srv.Post(
					t,
					"/access_codes/pull_backup_access_code",
					map[string]any{"access_code_id": managedOn(t, srv, device)[0].AccessCodeID},
					nil,
				)
			}
		}
	}
	drive(t, resource.TestCase{
		CheckDestroy: func(*terraform.State) error {
			if codes := managedOn(t, srv, device); len(codes) != 0 {
				return fmt.Errorf("%d codes are left", len(codes))
			}
			return nil
		},
		Steps: []resource.TestStep{
			{
				Config: config(pool),
				ConfigStateChecks: []statecheck.StateCheck{
					same.AddStateValue(front, id),
					other.AddStateValue(front, id),
				},
			},
			{PreConfig: available(false), Config: config(pool), ConfigPlanChecks: plansNothing()},
			{
				Config: config(pool + "  name = \"Guest\"\n"),
				ConfigStateChecks: []statecheck.StateCheck{
					has("backup", knownvalue.ObjectExact(map[string]knownvalue.Check{
						"use_pool": knownvalue.Bool(true), "is_available": knownvalue.Bool(true),
						"pulled_access_code_id": knownvalue.Null(),
					})),
				},
			},
			verifiesImport("backup"),
			{Config: onServer(srv, forgotten)},
			// Whether it has a pool is not known after an import, and nothing to replace it for.
			importsAgain(t, srv, device, config("")),
			{Config: config("  name = \"Guest\"\n"), ConfigPlanChecks: plansNothing()},
			{
				Config: config(pool + "  name = \"Guest\"\n"),
				ConfigPlanChecks: plans(
					plancheck.ResourceActionUpdate,
					front,
				),
				ConfigStateChecks: []statecheck.StateCheck{same.AddStateValue(front, id)},
			},
			{
				PreConfig: available(
					true,
				),
				Config:           config(pool + "  name = \"Guest\"\n"),
				ConfigPlanChecks: plansNothing(),
			},
			{
				RefreshState: true, Check: resource.TestCheckResourceAttrSet(front, "backup.pulled_access_code_id"),
			},
			{ // it is known now
				Config: config("  name = \"Guest\"\n"),
				ConfigPlanChecks: plans(
					plancheck.ResourceActionDestroyBeforeCreate,
					front,
				),
				ConfigStateChecks: []statecheck.StateCheck{other.AddStateValue(front, id)},
			},
		},
	})
}

func TestServerCodesAreMadeAsAskedFor(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august", "yale"))
	august, yale := srv.Device(t, "august"), srv.Device(t, "yale")
	const shared = "deviceaccess_access_code.shared"
	same, other := statecheck.CompareValue(compare.ValuesSame()), statecheck.CompareValue(compare.ValuesDiffer())
	id, pin := tfjsonpath.New("access_code_id"), tfjsonpath.New("code")
	config := func(length int, more string) string {
		one := accessCodeOn(
			august,
			fmt.Sprintf("common_code_key = \"stay-17\"\n  preferred_code_length = %d\n%s", length, more),
		)
		return onServer(
			srv,
			one+fmt.Sprintf(
				"resource \"deviceaccess_access_code\" \"shared\" {\n  device_id = %q\n  common_code_key = %s.common_code_key\n  depends_on = [%[2]s]\n}\n",
				yale,
				front,
			),
		)
	}
	digits := func(n int) statecheck.StateCheck {
		return has("code", knownvalue.StringRegexp(regexp.MustCompile(fmt.Sprintf(`^\d{%d}$`, n))))
	}
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config: config(6, ""),
			ConfigStateChecks: []statecheck.StateCheck{
				digits(6),
				same.AddStateValue(front, pin),
				same.AddStateValue(shared, pin),
				other.AddStateValue(front, id),
			},
		},
		{Config: config(6, ""), ConfigPlanChecks: plansNothing()},
		verifiesImport("preferred_code_length"),
		{ // which is no property of the code
			Config: config(6, "  attempt_for_offline_device = false\n  prefer_native_scheduling = true\n"),
			ConfigPlanChecks: plans(
				plancheck.ResourceActionUpdate,
				front,
			),
			ConfigStateChecks: []statecheck.StateCheck{same.AddStateValue(front, pin)},
		},
		{
			PreConfig: func() {
				srv.Lock(t, august).Control(t, http.MethodPost, "/offline", nil)
				apptest.Until(t, "it is known", func() bool { return !onlineNow(t, srv, august) })
			},
			Config: config(6, "  attempt_for_offline_device = false\n  name = \"Guest\"\n"),
			ExpectError: says(
				"Error: Could not update access code",
				"The device is offline",
				"Leave attempt_for_offline_device out",
			),
		},
		{
			PreConfig: func() { srv.Lock(t, august).Control(t, http.MethodPost, "/online", nil) },
			Config:    config(6, "  prefer_native_scheduling = false\n"),
			ConfigPlanChecks: plans(
				plancheck.ResourceActionDestroyBeforeCreate,
				front,
			),
			ConfigStateChecks: []statecheck.StateCheck{other.AddStateValue(front, id)},
		},
	}})
	if asked := srv.Requests(); !slices.ContainsFunc(
		asked,
		func(r apptest.Request) bool { return r.Path == "/access_codes/update" },
	) {
		t.Error("nothing was asked to be changed")
	}
}

// An unmanaged code has no key, and a code gets its key at creation only. A missing key must not delete the PIN from
// the door.
func TestServerCodeThatLostItsKeyIsConvertedAndNotReplaced(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	device := srv.Device(t, "august")
	settings := onServer(srv, accessCodeOn(device, "common_code_key = \"stay-17\""))
	same := statecheck.CompareValue(compare.ValuesSame())
	sameCode := func() []statecheck.StateCheck {
		return []statecheck.StateCheck{
			same.AddStateValue(
				front,
				tfjsonpath.New("access_code_id"),
			),
			has("is_managed", knownvalue.Bool(true)),
			has("common_code_key", isText("stay-17")),
		}
	}
	unmanage := func() {
		id := managedOn(t, srv, device)[0].AccessCodeID
		if status := srv.Post(
			t,
			"/access_codes/update",
			map[string]any{"access_code_id": id, "is_managed": false, "sync": true},
			nil,
		); status != http.StatusOK {
			t.Fatalf("unmanage: %d", status)
		}
	}
	var adopted string
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: settings, ConfigStateChecks: sameCode()},
		{
			PreConfig:         func() { adopted = managedOn(t, srv, device)[0].AccessCodeID; unmanage() },
			Config:            settings,
			ConfigPlanChecks:  convertsInPlace(),
			ConfigStateChecks: sameCode(),
		},
		{Config: settings, ConfigPlanChecks: plansNothing()},
		{Config: onServer(srv, forgotten)},
		{
			PreConfig:          unmanage,
			Config:             settings,
			ResourceName:       front,
			ImportState:        true,
			ImportStatePersist: true,
			ImportStateIdFunc:  func(*terraform.State) (string, error) { return device + "/" + adopted, nil },
		},
		{Config: settings, ConfigPlanChecks: convertsInPlace(), ConfigStateChecks: sameCode()},
		{Config: settings, ConfigPlanChecks: plansNothing()},
		{Config: onServer(srv, forgotten)},
		importsAgain(t, srv, device, settings),
		{
			Config:            settings,
			ConfigPlanChecks:  plans(plancheck.ResourceActionUpdate, front),
			ConfigStateChecks: sameCode(),
		},
		{Config: settings, ConfigPlanChecks: plansNothing()},
		{ // which is asked for, and not a consequence of a key that was lost
			PreConfig: func() {
				if n := srv.Count("/access_codes/delete") + srv.Count("/access_codes/unmanaged/delete"); n != 0 {
					t.Errorf("%d codes were deleted", n)
				}
			},
			Config:           onServer(srv, accessCodeOn(device, "common_code_key = \"stay-18\"")),
			ConfigPlanChecks: plans(plancheck.ResourceActionDestroyBeforeCreate, front),
		},
	}})
	expectConversions(t, srv, "in the end", 2)
}

func TestKeyThatWasLostIsWarnedOf(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	w := newDirectory(
		t,
		map[string]string{"versions.tf": required, "main.tf": f.config(accessCode("common_code_key = \"stay-17\""))},
	)
	w.expect(true, "apply", "-auto-approve")
	f.do(func() { _, code := f.only(); code.managed = false })
	expectSaid(
		t,
		"the plan",
		w.plain("plan"),
		"Warning: Access code will be converted to managed",
		"Warning: The code shares no PIN",
		"0 to add, 1 to change, 0 to destroy",
	)
	w.expect(true, "apply", "-auto-approve")
	if said := w.plain("plan"); !strings.Contains(said, "No changes.") {
		t.Errorf("a plan of nothing says %s", said)
	}
	f.expectWrites(t, "in the end", "/access_codes/create", converting)
}

func onlineNow(t *testing.T, srv *apptest.Server, device string) bool {
	t.Helper()
	var out api.DeviceResponse
	srv.Post(t, "/devices/get", map[string]any{"device_id": device}, &out)
	return out.Device.Properties.Online
}

func TestAccessCode_ConflictingSettingsAreRejectedLocally(t *testing.T) {
	later := frame(time.Hour, time.Hour)
	for name, c := range map[string]struct{ attributes, problem string }{
		"a PIN of an offline code":   {"offline = {}\n  code = \"2468\"\n" + later, "The lock's vendor computes the PIN of an offline code"},
		"a write-only PIN of one":    {"offline = {}\n  code_wo = \"2468\"\n  code_wo_version = 1\n" + later, "Leave `code` and `code_wo` out"},
		"an offline code for ever":   {"offline = {}", "An offline code needs a time frame. Set `starts_at` and `ends_at`"},
		"backups of an offline code": {"offline = {}\n  backup = { use_pool = true }\n" + later, "Offline codes have no backup codes"},
		"an offline code to share":   {"offline = {}\n  common_code_key = \"a\"\n" + later, "cannot be shared"},
		"backups for ever":           {"backup = { use_pool = true }", "Only codes with a time frame have backup codes. Set `starts_at`"},
		"a length and a PIN":         {"preferred_code_length = 6\n  code = \"2468\"", "Leave `preferred_code_length` out, or `code`"},
		"a key and a PIN":            {"common_code_key = \"a\"\n  code = \"2468\"", "Leave out `code` and `code_wo`, or the key"},
		"no rounding":                {"offline = { max_time_rounding = \"2h\" }\n" + later, "max_time_rounding"},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			run(
				t,
				resource.TestCase{
					Steps: []resource.TestStep{
						{Config: f.config(accessCode(c.attributes)), ExpectError: says(c.problem)},
					},
				},
			)
			if writes := f.writes(); len(writes) != 0 {
				t.Errorf("writes: %v", writes)
			}
		})
	}
}

// Terraform validates a configuration without knowing any variable, also where the plan knows all.
func TestAccessCodeSettingsThatAreNotKnownYetRuleNothingOut(t *testing.T) {
	const variable = "variable \"pin\" {\n  type = string\n  default = null\n}\n"
	offline := "offline = {}\n" + frame(time.Hour, time.Hour)
	for name, c := range map[string]struct {
		attributes string
		problem    string // when the PIN is set
	}{
		"a length instead of a PIN": {"code = var.pin\n  preferred_code_length = var.pin == null ? 6 : null", ""},
		"a length and a PIN":        {"code = var.pin\n  preferred_code_length = 6", "Leave `preferred_code_length` out"},
		"a key instead of a PIN":    {"code = var.pin\n  common_code_key = var.pin == null ? \"stay\" : null", ""},
		"a key and a PIN":           {"code = var.pin\n  common_code_key = \"stay\"", "Leave out `code` and `code_wo`, or the key"},
		"a PIN of an offline code":  {offline + "  code = var.pin", "The lock's vendor computes the PIN of an offline code"},
		"an offline code to share":  {offline + "  common_code_key = var.pin", "cannot be shared"},
		"offline, or not":           {"offline = var.pin == null ? null : {}\n  code = var.pin\n" + frame(time.Hour, time.Hour), "The lock's vendor computes the PIN of an offline code"},
		"once, or not":              {"offline = { is_one_time_use = var.pin == null }\n" + strings.SplitAfter(frame(time.Hour, time.Hour), "\n")[0], "`starts_at` goes together with `ends_at`"},
		"backups, or none":          {"backup = { use_pool = var.pin != null }", "Only codes with a time frame have backup codes"},
		"half a time frame":         {"starts_at = var.pin == null ? null : \"2030-01-01T15:00:00Z\"", "`starts_at` goes together with `ends_at`"},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			settings := f.config(variable + accessCode(c.attributes))
			withPIN := resource.TestStep{
				Config:             strings.Replace(settings, "= null\n}", "= \"2468\"\n}", 1),
				PlanOnly:           true,
				ExpectNonEmptyPlan: true,
			}
			if c.problem != "" {
				withPIN.ExpectNonEmptyPlan, withPIN.ExpectError = false, says(c.problem)
			}
			run(
				t,
				resource.TestCase{
					Steps: []resource.TestStep{{Config: settings, PlanOnly: true, ExpectNonEmptyPlan: true}, withPIN},
				},
			)
			f.expectWrites(t, "in the end")
		})
	}
}

func TestAccessCode_UnknownConflictingSettingsAreRejectedByApply(t *testing.T) {
	f := startFake(t)
	settings := f.config(
		"resource \"terraform_data\" \"pin\" {\n  input = \"2468\"\n}\n" + accessCode(
			"code = terraform_data.pin.output\n  preferred_code_length = 6",
		),
	)
	story(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: settings, PlanOnly: true, ExpectNonEmptyPlan: true},
		{Config: settings, ExpectError: says("Leave `preferred_code_length` out")},
	}})
	f.expectWrites(t, "in the end")
}

func TestServerDiagnosticsOfCodesSayWhatToDo(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	device := srv.Device(t, "august")
	taken := srv.UnmanagedCodes(t, device)[0]
	account, disconnected := srv.Connect(t, "august")
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config: onServer(srv, accessCodeOn(device, fmt.Sprintf("code = %q", *taken.Code))),
			ExpectError: says(
				taken.AccessCodeID,
				"import it as `<device_id>/<access_code_id>`",
				"Adopt existing codes",
			),
		},
		{
			Config:      onServer(srv, invite("  provider_category = \"nonsense\"\n")),
			ExpectError: says("provider_category = \"nonsense\"", "consumer_smartlocks"),
		},
	}})
	srv.Post(t, "/connected_accounts/simulate/disconnect", map[string]any{"connected_account_id": account}, nil)
	w := newDirectory(t, map[string]string{
		"main.tf": required + onServer(srv, accessCodeOn(disconnected, "timeouts {\n    create = \"5s\"\n  }")),
	})
	expectSaid(t, "the account is disconnected", w.plain("apply", "-auto-approve"),
		"account_disconnected",
		"keeps trying to set it",
		"its owner must log in again",
	)
	w.expect(true, "plan", "-detailed-exitcode")
}

// A server ends its attempts after ten minutes and continues with the code. The provider waits until its own timeout.
func TestServerWorkIsWaitedForAlsoOnceItsAttemptHasExpired(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]func(device, pin string) string{
		"a code": func(device, pin string) string {
			return accessCodeOn(device, fmt.Sprintf("name = \"Nanny\"\n  code = %q", pin))
		},
		"a shared code": func(device, pin string) string { return codeSet(fmt.Sprintf("code = %q", pin), device) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := apptest.Start(t, apptest.WithProfiles("august"), apptest.WithAttemptTimeout(1))
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
				apptest.Until(
					t,
					"the code itself is looked at again and again",
					func() bool { return srv.Count("/access_codes/get") > looks+3 },
				)
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
	a.failure = map[string]any{
		"type":    "action_attempt_expired",
		"message": "The device was offline all the time. The server applies the change when the device is back",
	}
}

// What is wanted is told before the lock has it, so a code that is set may still have the former PIN.
func TestExpiredChangeIsWaitedForUntilNothingOfItIsPending(t *testing.T) {
	f := startFakeLocks(t)
	config := func(pin, within string) string {
		return f.config(accessCode("code = \"" + pin + "\"\n  timeouts {\n    update = \"" + within + "\"\n  }"))
	}
	pending := func(c *fakeCode) {
		c.status, c.mutations = "set", []map[string]any{
			{"mutation_code": "updating_code", "message": "On its way", "created_at": "2026-01-02T03:04:05Z"},
		}
	}
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{Config: config("904716590100", "1s")},
		{
			PreConfig: func() {
				f.do(func() {
					f.nextAttempt = func(a *fakeAttempt) { expiresAtOnce(a); _, c := f.only(); pending(c) }
				})
			},
			Config: config("904716590111", "1s"),
			ExpectError: says(
				"still on its way to the lock when the time was up",
				"The server keeps trying",
				"raise `timeouts { update }`",
			),
		},
		{
			PreConfig: func() {
				f.do(func() {
					_, c := f.only()
					c.status, c.mutations = "set", nil
					f.nextAttempt = nil
				})
			},
			Config: config("904716590111", "5m"),
			ConfigStateChecks: []statecheck.StateCheck{
				has("status", isText("set")),
				has("code", isText("904716590111")),
			},
		},
	}})
}

func TestLockThatRefusesWhatItsAttemptHasExpiredForEndsTheWait(t *testing.T) {
	f := startFakeLocks(t)
	f.nextAttempt = expiresAtOnce
	formerly := func(w http.ResponseWriter, r *http.Request) { // rejected before the retry
		id, c := f.only()
		c.status, c.errors = "set", []map[string]any{
			{
				"error_code":           "code_constraints_violated",
				"message":              "Too short.",
				"is_access_code_error": true,
				"created_at":           "2026-01-02T03:04:05Z",
			},
		}
		c.mutations = []map[string]any{
			{"mutation_code": "updating_code", "message": "On its way", "created_at": "2026-01-02T03:04:05Z"},
		}
		answer(map[string]any{"access_code": f.codeJSON(id)})(w, r)
	}
	busy := func(w http.ResponseWriter, r *http.Request) { // which is no refusal
		id, c := f.only()
		c.status, c.errors = "set", []map[string]any{
			{
				"error_code":           "failed_to_update",
				"message":              "The lock is busy. It is tried again.",
				"is_access_code_error": true,
				"created_at":           "2026-01-02T03:04:06Z",
			},
		}
		answer(map[string]any{"access_code": f.codeJSON(id)})(w, r)
	}
	full := func(w http.ResponseWriter, r *http.Request) {
		id, c := f.only()
		c.status, c.errors = "unset", []map[string]any{
			{
				"error_code":           "no_space_for_access_code_on_device",
				"message":              "The lock is full.",
				"is_access_code_error": true,
				"created_at":           "2026-01-02T03:04:07Z",
			},
		}
		c.mutations = []map[string]any{
			{"mutation_code": "creating", "message": "On its way", "created_at": "2026-01-02T03:04:05Z"},
		}
		answer(map[string]any{"access_code": f.codeJSON(id)})(w, r)
	}
	f.then("/access_codes/get", formerly, nil, busy, busy, full)
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config: f.config(accessCode(`code = "904716590100"`)),
			ExpectError: says(
				"The lock is full (no_space_for_access_code_on_device)",
				"irst correct the problem in the message",
			),
		},
		{
			PreConfig: func() { f.do(func() { f.nextAttempt = nil }) },
			Config:    f.config(accessCode(`code = "904716590100"`)),
		},
	}})
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

const (
	converting = "/access_codes/unmanaged/convert_to_managed"
	deleting   = "/access_codes/unmanaged/delete"
)

func importBlock(id string) string {
	return fmt.Sprintf("import {\n  to = %s\n  id = %q\n}\n", front, id)
}

// expectWrites fails the test when other operations than these were asked for, apart from reads.
func (f *fake) expectWrites(t *testing.T, when string, want ...string) {
	t.Helper()
	if got := f.writes(); !slices.Equal(got, want) {
		t.Errorf("%s: writes %q, want %q", when, got, want)
	}
}

func convertsInPlace() resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
		plancheck.ExpectResourceAction(front, plancheck.ResourceActionUpdate),
		plancheck.ExpectKnownValue(front, tfjsonpath.New("is_managed"), knownvalue.Bool(true)),
	}}
}

func isManagedNow() []statecheck.StateCheck {
	return []statecheck.StateCheck{has("is_managed", knownvalue.Bool(true)), has("status", isText("set"))}
}

func TestImportByBareIDConvertsAtOnce(t *testing.T) {
	for name, noUnmanagedGet := range map[string]bool{"reads by identifier": false, "reads by device only": true} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			f.noUnmanagedGet = noUnmanagedGet
			id := f.unmanaged(fakeCode{name: "Plumber", code: "2468"})
			config := f.config(accessCode(""))
			run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
				{
					Config:             config,
					ResourceName:       front,
					ImportState:        true,
					ImportStateId:      id,
					ImportStatePersist: true,
					ImportStateCheck: func(states []*terraform.InstanceState) error {
						f.expectWrites(t, "after the import", converting)
						if managed := states[0].Attributes["is_managed"]; managed != "true" {
							t.Errorf("is_managed = %s", managed)
						}
						return nil
					},
				},
				{
					Config:           config,
					ConfigPlanChecks: plansNothing(),
					ConfigStateChecks: append(
						isManagedNow(),
						has("code", isText("2468")),
						has("name", isText("Plumber")),
					),
				},
			}})
			f.expectWrites(t, "in the end", converting, "/access_codes/delete")
		})
	}
}

func TestImportByDeviceAndIDWritesNothingUntilApply(t *testing.T) {
	for name, noUnmanagedGet := range map[string]bool{"reads by identifier": false, "reads by device only": true} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			f.noUnmanagedGet, f.pageSize = noUnmanagedGet, 1
			f.unmanaged(fakeCode{name: "Another"})
			id := f.unmanaged(fakeCode{name: "Plumber", code: "2468"})
			config := f.config(accessCode(""))
			run(t, resource.TestCase{Steps: []resource.TestStep{
				{
					Config:             config,
					ResourceName:       front,
					ImportState:        true,
					ImportStateId:      fakeDevice + "/" + id,
					ImportStatePersist: true,
					ImportStateCheck: func(states []*terraform.InstanceState) error {
						if managed := states[0].Attributes["is_managed"]; managed != "false" {
							t.Errorf("is_managed = %s", managed)
						}
						return nil
					},
				},
				{
					PreConfig:         func() { f.expectWrites(t, "after the import") },
					Config:            config,
					ConfigPlanChecks:  convertsInPlace(),
					ConfigStateChecks: isManagedNow(),
				},
				{Config: config, ConfigPlanChecks: plansNothing()},
			}})
			f.expectWrites(t, "in the end", converting, "/access_codes/delete")
		})
	}
}

func TestImportBlockShowsTheConversionAndAppliesItOnce(t *testing.T) {
	f := startFake(t)
	id := f.unmanaged(fakeCode{name: "Plumber", code: "2468"})
	config := f.config(
		accessCode(
			"name = \"Cleaner\"\n  code = \"8642\"\n  is_external_modification_allowed = true",
		) + importBlock(
			fakeDevice+"/"+id,
		),
	)
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{Config: config, PlanOnly: true, ExpectNonEmptyPlan: true},
		{
			PreConfig:         func() { f.expectWrites(t, "after the plan") },
			Config:            config,
			ConfigPlanChecks:  convertsInPlace(),
			ConfigStateChecks: append(isManagedNow(), has("name", isText("Cleaner")), has("code", isText("8642"))),
		},
		{Config: config, ConfigPlanChecks: plansNothing()},
	}})
	f.expectWrites(t, "in the end", converting, "/access_codes/update", "/access_codes/delete")
	if convert := f.bodies(converting)[0]; convert["is_external_modification_allowed"] != true {
		t.Errorf("the conversion asked for %v", convert)
	}
	update := f.bodies("/access_codes/update")[0]
	if _, again := update["is_external_modification_allowed"]; again || update["name"] != "Cleaner" ||
		update["code"] != "8642" {
		t.Errorf("the update asked for %v", update)
	}
}

func TestImportBlockOfUnmanagedCode_PlannedByTestFramework(t *testing.T) {
	f := startFake(t)
	id := f.unmanaged(fakeCode{code: "2468"})
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config: f.config(
				accessCode(""),
			),
			ResourceName:       front,
			ImportState:        true,
			ImportStateKind:    resource.ImportBlockWithID,
			ImportStateId:      fakeDevice + "/" + id,
			ExpectNonEmptyPlan: true,
			ImportPlanChecks: resource.ImportPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectKnownValue(front, tfjsonpath.New("is_managed"), knownvalue.Bool(true)),
				plancheck.ExpectUnknownValue(front, tfjsonpath.New("name")),
			}},
		},
	}})
	f.expectWrites(t, "after the plan")
}

func TestImportOfACodeThatTerraformCreatedIsComplete(t *testing.T) {
	f := startFake(t)
	config := f.config(
		accessCode(
			"name = \"Cleaner\"\n  starts_at = \"2030-01-01T02:00:00+02:00\"\n  ends_at = \"2030-01-02T02:00:00+02:00\"",
		),
	)
	imported := func(withDevice bool) resource.TestStep {
		return resource.TestStep{
			ResourceName:                         front,
			ImportState:                          true,
			ImportStateVerify:                    true,
			ImportStateVerifyIdentifierAttribute: "access_code_id",
			ImportStateVerifyIgnore:              []string{"starts_at", "ends_at"}, // the server's spelling
			ImportStateIdFunc: func(*terraform.State) (string, error) {
				id, _ := f.only()
				if withDevice {
					return fakeDevice + "/" + id, nil
				}
				return id, nil
			},
		}
	}
	inBlock := imported(true)
	inBlock.ImportStateKind, inBlock.ImportStateVerify, inBlock.ImportStateVerifyIgnore = resource.ImportBlockWithID, false, nil
	inBlock.ImportStateVerifyIdentifierAttribute = ""
	run(t, resource.TestCase{Steps: []resource.TestStep{{Config: config}, imported(false), imported(true), inBlock}})
	f.expectWrites(t, "in the end", "/access_codes/create", "/access_codes/delete")
}

// The settings at creation of an imported code are unknown, however often it was applied: its PIN must not be deleted
// from the lock for a setting.
func TestSettingOfAnAdoptedCodeNeverReplacesIt(t *testing.T) {
	f := startFake(t)
	id := f.unmanaged(fakeCode{name: "Plumber", code: "246810"})
	config := func(settings string) string { return f.config(accessCode(settings)) }
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config("") + importBlock(fakeDevice+"/"+id), ConfigPlanChecks: convertsInPlace()},
		{Config: config(`name = "Painter"`), ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front)},
		{
			Config: config(
				"name = \"Painter\"\n  prefer_native_scheduling = false\n  preferred_code_length = 6\n  common_code_key = \"x\"",
			),
			ConfigPlanChecks: plans(
				plancheck.ResourceActionUpdate,
				front,
			),
			ConfigStateChecks: append(isManagedNow(), has("code", isText("246810"))),
		},
		{ // it is known now
			Config: config(
				"name = \"Painter\"\n  prefer_native_scheduling = false\n  preferred_code_length = 8\n  common_code_key = \"x\"",
			),
			ConfigPlanChecks: plans(plancheck.ResourceActionDestroyBeforeCreate, front),
		},
	}})
}

func TestImportThenDestroyDeletesTheUnmanagedCode(t *testing.T) {
	f := startFake(t)
	id := f.unmanaged(fakeCode{code: "2468"})
	config := f.config(accessCode(""))
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{
			Config:             config,
			ResourceName:       front,
			ImportState:        true,
			ImportStateId:      fakeDevice + "/" + id,
			ImportStatePersist: true,
		},
		{Config: config, Destroy: true},
	}})
	f.expectWrites(t, "in the end", deleting)
}

func TestImportThatMustNotWriteIsRefused(t *testing.T) {
	for name, noUnmanagedGet := range map[string]bool{"reads by identifier": false, "reads by device only": true} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			f.noUnmanagedGet = noUnmanagedGet
			id := f.unmanaged(fakeCode{code: "2468"})
			device := fakeDevice
			if noUnmanagedGet {
				device = "<device_id>"
			}
			config := fmt.Sprintf(
				"provider \"deviceaccess\" {\n  endpoint = %q\n  api_key = %q\n  convert_on_import = false\n}\n",
				f.URL,
				fakeKey,
			)
			run(t, resource.TestCase{Steps: []resource.TestStep{
				{
					Config: config + accessCode("") + importBlock(id),
					ExpectError: says(
						"convert_on_import is false",
						"Import "+device+"/",
						"the plan shows the conversion",
					),
				},
				{
					Config:            config + accessCode("") + importBlock(fakeDevice+"/"+id),
					ConfigPlanChecks:  convertsInPlace(),
					ConfigStateChecks: isManagedNow(),
				},
			}})
			f.expectWrites(t, "in the end", converting, "/access_codes/delete")
		})
	}
}

func TestImportOfNothingSaysSo(t *testing.T) {
	const unknownID = "44444444-2222-4222-8222-222222222222"
	f := startFake(t)
	id := f.unmanaged(fakeCode{code: "2468"})
	f.devices = append(f.devices, device(fakeDevice, "august_lock", map[string]any{}))
	cases := map[string]struct{ id, problem string }{
		"bare": {unknownID, "neither managed nor unmanaged"},
		"with device": {
			fakeDevice + "/" + unknownID,
			"The device " + fakeDevice + " has no access code " + unknownID,
		},
		"the other way": {
			id + "/" + fakeDevice,
			fakeDevice + " is a device, not an access code. Check the order. Write `<device_id>/<access_code_id>`, here " + fakeDevice + "/" + id,
		},
		"another device": {unknownID + "/" + id, "is on the device " + fakeDevice + ", not on " + unknownID},
		"no identifier":  {"front-door", "Check the identifier"},
		"empty device":   {"/" + id, "is neither `<access_code_id>` nor `<device_id>/<access_code_id>`"},
		"too many slashes": {
			fakeDevice + "/x/" + id,
			"is neither `<access_code_id>` nor `<device_id>/<access_code_id>`. Write `<device_id>/<access_code_id>`: the data source deviceaccess_devices lists devices",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			run(
				t,
				resource.TestCase{
					Steps: []resource.TestStep{
						{Config: f.config(accessCode("") + importBlock(c.id)), ExpectError: says(c.problem)},
					},
				},
			)
		})
	}
}

// terraform import makes no plan that could warn, and an import block makes one at once.
func TestImportOfACodeThatCannotBeConverted_WarnsOnce(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	id := f.unmanaged(fakeCode{name: "Plumber", cannotBeManaged: true})
	p := f.plugin(t)
	warnings := func(diagnostics []*tfprotov6.Diagnostic) (found int) {
		for _, d := range diagnostics {
			if d.Severity == tfprotov6.DiagnosticSeverityWarning &&
				strings.HasSuffix(d.Summary, " cannot be converted to managed") && strings.Contains(d.Detail, id) {
				found++
			}
		}
		return found
	}
	plan := func(read *tfprotov6.ReadResourceResponse) []*tfprotov6.Diagnostic {
		config := p.pack(object(p.stateType(codeType), map[string]tftypes.Value{"device_id": text(fakeDevice)}))
		answer, err := p.server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
			TypeName: codeType, PriorState: read.NewState, ProposedNewState: read.NewState, Config: config,
			PriorPrivate: read.Private,
		})
		if err != nil {
			t.Fatal(err)
		}
		return answer.Diagnostics
	}
	imported := p.imported(codeType, fakeDevice+"/"+id)
	if n := warnings(imported.Diagnostics); n != 1 {
		t.Errorf("%d warnings of the import", n)
	}
	if n := warnings(plan(imported)); n != 0 {
		t.Errorf("%d warnings of the plan with the import", n)
	}
	later := p.reads(&tfprotov6.ReadResourceRequest{
		TypeName:        codeType,
		CurrentState:    imported.NewState,
		CurrentIdentity: imported.NewIdentity,
		Private:         imported.Private,
	})
	if n := warnings(later.Diagnostics) + 10*warnings(plan(later)); n != 10 {
		t.Errorf("later, the refresh and the plan warn %d times", n)
	}
	f.expectWrites(t, "in the end")
}

func TestCodeThatItsVendorDoesNotLetBeConverted(t *testing.T) {
	start := func(t *testing.T) (*fake, string) {
		f := startFake(t)
		return f, f.unmanaged(fakeCode{name: "Plumber", cannotBeManaged: true}) // and hides its PIN, like SmartThings
	}
	t.Run("bare", func(t *testing.T) {
		f, id := start(t)
		run(t, resource.TestCase{Steps: []resource.TestStep{
			{
				Config: f.config(
					accessCode("") + importBlock(id),
				),
				ExpectError: says(
					"igloohome, Kwikset, and SmartThings",
					"Nothing was imported",
					"unmanaged",
					"Delete it in the lock's app, and let Terraform create another one",
				),
			},
		}})
		f.expectWrites(t, "in the end")
	})
	t.Run("with device", func(t *testing.T) {
		f, id := start(t)
		config := f.config(accessCode(""))
		run(t, resource.TestCase{Steps: []resource.TestStep{
			{
				Config:             config,
				ResourceName:       front,
				ImportState:        true,
				ImportStateId:      fakeDevice + "/" + id,
				ImportStatePersist: true,
			},
			{
				Config: config,
				ExpectError: says(
					"Error: Could not convert access code to managed",
					"igloohome, Kwikset, and SmartThings",
					"stays on the lock, unmanaged",
					"removed {",
				),
			},
			{ // what the message advises
				Config: f.config("removed {\n  from = " + front + "\n  lifecycle {\n    destroy = false\n  }\n}\n"),
			},
		}})
		f.expectWrites(t, "in the end")
	})
	t.Run("the server says so only when asked", func(t *testing.T) {
		f, id := start(t)
		f.codes[id].cannotBeManaged = false
		f.then(converting, answerError(400, "access_code_cannot_be_managed", "This lock does not let codes be managed"))
		run(t, resource.TestCase{Steps: []resource.TestStep{
			{
				Config: f.config(accessCode("") + importBlock(fakeDevice+"/"+id)),
				ExpectError: says(
					"Error: Could not convert access code to managed",
					"This lock does not let codes be managed (HTTP 400",
					"removed {",
				),
			},
		}})
		f.expectWrites(t, "in the end", converting, deleting)
	})
	t.Run("nor be deleted", func(t *testing.T) {
		f, id := start(t)
		f.codes[id].cannotBeDeleted = true
		config := f.config(accessCode(""))
		run(t, resource.TestCase{Steps: []resource.TestStep{
			{
				Config:             config,
				ResourceName:       front,
				ImportState:        true,
				ImportStateId:      fakeDevice + "/" + id,
				ImportStatePersist: true,
			},
			{
				Config:  config,
				Destroy: true,
				ExpectError: says(
					"Error: Could not delete access code",
					"does not allow unmanaged codes to be deleted",
					"Delete it in the lock's app",
				),
			},
			{PreConfig: func() { f.do(func() { clear(f.codes) }) }, Config: config, Destroy: true},
		}})
		f.expectWrites(t, "in the end")
	})
}

func TestConversionThatReportsAFailureButHappenedIsASuccess(t *testing.T) {
	f := startFake(t)
	id := f.unmanaged(fakeCode{code: "2468"})
	f.nextAttempt = func(a *fakeAttempt) {
		if a.actionType == "CONVERT_ACCESS_CODE_TO_MANAGED" {
			a.failure = map[string]any{"type": "uncategorized_error", "message": "no answer from the vendor"}
			f.codes[id].managed = true
		}
	}
	run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: f.config(accessCode("") + importBlock(fakeDevice+"/"+id)), ConfigStateChecks: isManagedNow(),
	}}})
}

func TestConversionThatFailsLeavesTheCodeUnmanagedAndIsRepeatable(t *testing.T) {
	f := startFake(t)
	id := f.unmanaged(fakeCode{code: "2468"})
	f.nextAttempt = func(a *fakeAttempt) {
		if a.actionType == "CONVERT_ACCESS_CODE_TO_MANAGED" {
			a.failure = map[string]any{"type": "device_offline", "message": "2468 cannot be read, the lock is offline"}
		}
	}
	config := f.config(accessCode("") + importBlock(fakeDevice+"/"+id))
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config: config,
			ExpectError: says(
				"(CONVERT_ACCESS_CODE_TO_MANAGED) failed: (hidden) cannot be read, the lock is offline (device_offline)",
				"still unmanaged",
			),
		},
		{
			PreConfig:         func() { f.do(func() { f.nextAttempt = nil }) },
			Config:            config,
			ConfigPlanChecks:  convertsInPlace(),
			ConfigStateChecks: isManagedNow(),
		},
	}})
	f.expectWrites(t, "in the end", converting, converting, "/access_codes/delete")
}

func TestUpdateThatFailsAfterAConversionDoesNotConvertAgain(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	id := f.unmanaged(fakeCode{code: "2468"})
	f.then("/access_codes/update", answerError(400, "invalid_input", "This lock takes no such name"))
	w := newDirectory(
		t,
		map[string]string{
			"main.tf": required + f.config(accessCode(`name = "Cleaner"`)+importBlock(fakeDevice+"/"+id)),
		},
	)
	w.expect(false, "apply", "-auto-approve")
	if !strings.Contains(w.read("show", "-json"), `"is_managed":true`) {
		t.Error("the state does not know of the conversion")
	}
	w.expect(true, "apply", "-auto-approve", "-refresh=false")
	f.expectWrites(t, "in the end", converting, "/access_codes/update", "/access_codes/update")
	if name := f.codes[id].name; name != "Cleaner" {
		t.Errorf("the name is %v", name)
	}
}

func TestConversionOfAHiddenPIN(t *testing.T) {
	for name, attributes := range map[string]string{"stays hidden": "", "is set again": `code = "8642"`} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			id := f.unmanaged(fakeCode{})
			config := f.config(accessCode(attributes) + importBlock(fakeDevice+"/"+id))
			pin := knownvalue.Check(knownvalue.Null())
			if attributes != "" {
				pin = isText("8642")
			}
			run(t, resource.TestCase{Steps: []resource.TestStep{
				{
					Config: config,
					ConfigStateChecks: append(
						isManagedNow(),
						has("code", pin),
						has("is_external_modification_allowed", knownvalue.Bool(false)),
					),
				},
				{Config: config, ConfigPlanChecks: plansNothing()},
			}})
		})
	}
}

func TestConversionOfATimeBoundCodeFollowsTheConfiguration(t *testing.T) {
	f := startFake(t)
	id := f.unmanaged(fakeCode{code: "2468", startsAt: "2030-01-01T00:00:00Z", endsAt: "2030-01-02T00:00:00Z"})
	f.unmanaged(fakeCode{})
	config := f.config(
		accessCode(
			"starts_at = \"2030-01-01T02:00:00+02:00\"\n  ends_at = \"2030-01-02T00:00:00Z\"",
		) + importBlock(
			fakeDevice+"/"+id,
		),
	)
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config, ConfigPlanChecks: convertsInPlace()},
		{
			Config:            config,
			ConfigPlanChecks:  plansNothing(),
			ConfigStateChecks: []statecheck.StateCheck{has("type", isText("time_bound"))},
		},
	}})
	f.expectWrites(t, "in the end", converting, "/access_codes/delete")
}

func TestServerOfflineCodeWhoseTimeFrameIsNotKnownYet(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("igloohome"))
	device := srv.Device(t, "igloohome")
	begins := time.Now().Truncate(time.Hour).Add(20 * time.Minute).UTC()
	// The output is known again when the run has come to it.
	config := func(run int, ends time.Time) string {
		return onServer(
			srv,
			fmt.Sprintf("resource \"terraform_data\" \"stay\" {\n  input = [%q, %q]\n  triggers_replace = %d\n}\n",
				begins.Format(time.RFC3339), ends.Format(time.RFC3339), run)+
				accessCodeOn(
					device,
					"offline = {}\n  name = \"Guest\"\n  starts_at = terraform_data.stay.output[0]\n  ends_at = terraform_data.stay.output[1]",
				),
		)
	}
	ends := begins.Add(3 * time.Hour)
	play(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config(1, ends)},
		{Config: config(2, ends), ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front)},
		{Config: config(2, ends), ConfigPlanChecks: plansNothing()},
		{Config: config(3, ends.Add(9*time.Hour)), ExpectError: says("ends_at", "neither changed nor deleted")},
		{Config: config(4, ends), ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front)},
		{Config: onServer(srv, forgotten)},
	}})
	if n := srv.Count("/access_codes/create"); n != 1 {
		t.Errorf("%d codes were created", n)
	}
}

// refuses makes a lock reject changes until the provider sends them again, or accept them again.
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
		"not waited for":    {code(former), code(wanted) + "\n  wait_until_on_lock = false"},
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
			waits := !strings.Contains(c.then, "wait_until_on_lock")
			w.expect(!waits, "apply", "-auto-approve", "-no-color")
			if waits {
				expectSaid(
					t,
					"the change",
					plainly(w.seen.String()),
					"Error: Could not update access code",
					"(UPDATE_ACCESS_CODE) failed",
					"the former PIN may still open the door",
					"the next apply sends the change again",
				)
			}
			apptest.Until(t, "the server says so", func() bool {
				codes := managedOn(t, srv, device)
				return codes[0].Status == "set" && len(codes[0].Errors) == 1
			})
			if !lock.Has(t, former) || lock.Has(t, wanted) {
				t.Fatal("the lock has not refused the change")
			}
			expectSaid(
				t,
				"the plan",
				w.plain("plan"),
				"Warning: Access code is not on its lock as configured (no_space_for_access_code_on_device)",
				`"Cleaner" has the status set on the lock`,
				"the former PIN may still open the door",
				"The next apply sends it again",
				"0 to add, 1 to change, 0 to destroy",
			)
			w.expect(!waits, "apply", "-auto-approve") // which is refused again
			refuses(t, lock, false)
			apptest.Until(t, "an apply brings the PIN to the lock", func() bool {
				w.expect(
					true,
					"apply",
					"-auto-approve",
				) // the first one may come before the server has noticed the second refusal
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
			Config: config(
				"8642",
			),
			ExpectError: says(
				"It takes no (hidden)",
				"may still open the door",
				"the next apply sends the change again",
			),
		},
		{
			PreConfig:         func() { f.do(func() { f.nextAttempt = nil }) },
			Config:            config("8642"),
			ConfigPlanChecks:  plans(plancheck.ResourceActionUpdate, front),
			ConfigStateChecks: []statecheck.StateCheck{has("code", isText("8642")), has("status", isText("set"))},
		},
		{Config: config("8642"), ConfigPlanChecks: plansNothing()},
	}})
	if updates := f.bodies("/access_codes/update"); len(updates) != 2 || updates[0]["code"] != updates[1]["code"] {
		t.Errorf("%d updates", len(updates))
	}
}

// The server may have the declared code although the lock has rejected it.
func TestServerSharedAccessCode_NotAsDeclaredAfterLockRejects(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august", "yale"))
	august, yale := srv.Device(t, "august"), srv.Device(t, "yale")
	lock := srv.Lock(t, yale)
	const former, wanted = "904716", "904725"
	config := func(pin string) string {
		example := read(t, "../examples/resources/deviceaccess_shared_access_code/resource.tf")
		_, lifecycle, _ := strings.Cut(example, "\n  lifecycle {\n")
		lifecycle, _, _ = strings.Cut(lifecycle, "\n}\n")
		return required + onServer(
			srv,
			codeSet(fmt.Sprintf("code = %q\n  lifecycle {\n%s", pin, lifecycle), august, yale),
		)
	}
	w := newWorkspace(t, map[string]string{"main.tf": config(former)})
	refuses(t, lock, true)
	w.expect(false, "apply", "-auto-approve", "-no-color") // by the postcondition of the example
	expectSaid(
		t,
		"the creation",
		plainly(w.seen.String()),
		"Warning: Could not set the access code on a lock",
		"The next apply retries this lock",
		"Resource postcondition failed",
	)
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
	expectSaid(
		t,
		"the plan after the change",
		w.plain("plan"),
		"0 to add, 1 to change, 0 to destroy",
		"Access code is not on its lock as configured",
	)
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

// A destroy that timed out while the lock was offline continues, and deletes a code that is still declared.
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
			expectSaid(
				t,
				"the plan",
				said,
				"Warning: Access code is being deleted",
				"is being deleted",
				"waits until the code has left the lock and creates another one",
			)
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
			PreConfig:        func() { f.do(func() { _, c := f.only(); c.status = "removing" }) },
			Config:           config,
			ConfigPlanChecks: plans(plancheck.ResourceActionDestroyBeforeCreate, front),
			ConfigStateChecks: []statecheck.StateCheck{
				has("status", isText("set")),
				has("code", isText("904716590100")),
			},
		},
		{Config: config, ConfigPlanChecks: plansNothing()},
	}})
	f.expectWrites(
		t,
		"in the end",
		"/access_codes/create",
		"/access_codes/delete",
		"/access_codes/create",
		"/access_codes/delete",
	)
}

func TestSharedAccessCodeMakesAnotherWhereItsCodeIsBeingDeleted(t *testing.T) {
	f := startFakeLocks(t)
	wrote := f.since(t)
	within := func(update string) string {
		return f.config(
			codeSet("code = \"904716590100\"\n  timeouts {\n    update = \""+update+"\"\n  }", lockA, lockB),
		)
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
			Config: config,
			ExpectError: says(
				"Error: Could not set the access code on a lock",
				`"Back Door"`,
				"is still being deleted",
				"when the time was up",
				"Run Terraform again when the lock is online",
				"creates another code",
			),
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

// The server returns an unmanaged code unchanged until it is deleted.
func TestConversionOfACodeThatIsBeingDeletedSaysThatAnotherIsMade(t *testing.T) {
	t.Parallel()
	gone := answerError(
		http.StatusConflict,
		"access_code_being_deleted",
		"The access code is being removed from its device and cannot be converted.",
	)
	for name, id := range map[string]func(id string) string{
		"planned":   func(id string) string { return lockA + "/" + id },
		"on import": func(id string) string { return id },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFakeLocks(t)
			code := f.unmanaged(fakeCode{name: "Plumber", code: longPIN})
			w := newDirectory(
				t,
				map[string]string{"main.tf": required + f.config(accessCode("")+importBlock(id(code)))},
			)
			f.then(converting, gone)
			w.expect(false, "apply", "-auto-approve", "-no-color")
			said := plainly(w.seen.String())
			expectSaid(
				t,
				"the conversion",
				said,
				"Error: Could not convert access code to managed",
				"The server deletes it when its lock is online",
			)
			if strings.Contains(said, "stays on the lock") {
				t.Error("it is said to stay")
			}
		})
	}
}

// writtenOnly are the attributes of a code whose PIN is written only.
func writtenOnly(pin string, version int) string {
	return fmt.Sprintf("code_wo = %q\n  code_wo_version = %d", pin, version)
}

// showsNo fails when the state holds a text.
func showsNo(secret string) resource.TestCheckFunc {
	return func(s *terraform.State) error {
		encoded, err := json.Marshal(s)
		if err == nil && strings.Contains(string(encoded), secret) {
			err = fmt.Errorf("the state holds %s", secret)
		}
		return err
	}
}

func TestWriteOnlyPINIsWrittenWhenItsVersionChangesAndNeverKept(t *testing.T) {
	f := startFake(t)
	const first, second = "905173846251", "715938426052"
	story := func(pin string, version int) string { return f.config(accessCode(writtenOnly(pin, version))) }
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{
			Config: story(first, 1),
			ConfigStateChecks: []statecheck.StateCheck{
				has("code", knownvalue.Null()),
				has("code_wo", knownvalue.Null()),
			},
			Check: showsNo(first),
		},
		{Config: story(second, 1), ConfigPlanChecks: plansNothing()},
		{ // what was changed elsewhere cannot be seen
			PreConfig:        func() { f.do(func() { _, c := f.only(); c.code = "9999" }) },
			Config:           story(second, 1),
			ConfigPlanChecks: plansNothing(),
		},
		{
			Config:           story(second, 2),
			ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front),
			Check:            showsNo(second),
		},
		{ // and back to a PIN in the state, which the server knows
			Config: f.config(accessCode("")), ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front),
			ConfigStateChecks: []statecheck.StateCheck{has("code", isText(second))},
		},
		{Config: f.config(accessCode("")), ConfigPlanChecks: plansNothing()},
		{ // from the state to a PIN that is written only
			Config:            story(first, 1),
			ConfigPlanChecks:  plans(plancheck.ResourceActionUpdate, front),
			ConfigStateChecks: []statecheck.StateCheck{has("code", knownvalue.Null())},
			Check:             showsNo(second),
		},
	}})
	if created := f.bodies("/access_codes/create"); len(created) != 1 || created[0]["code"] != first {
		t.Errorf("created: %v", created)
	}
	if updates := f.bodies(
		"/access_codes/update",
	); len(updates) != 2 || updates[0]["code"] != second ||
		updates[1]["code"] != first {
		t.Errorf("updates: %v", updates)
	}
}

func TestWriteOnlyPINOfAnAdoptedCode(t *testing.T) {
	f := startFake(t)
	const pin, adopted = "905173846251", "640297158306"
	id := f.unmanaged(fakeCode{name: "Plumber", code: adopted})
	config := f.config(accessCode(writtenOnly(pin, 1)) + importBlock(fakeDevice+"/"+id))
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{
			Config:            config,
			ConfigPlanChecks:  convertsInPlace(),
			ConfigStateChecks: append(isManagedNow(), has("code", knownvalue.Null())),
			Check:             resource.ComposeAggregateTestCheckFunc(showsNo(pin), showsNo(adopted)),
		},
		{Config: config, ConfigPlanChecks: plansNothing()},
	}})
	if updates := f.bodies("/access_codes/update"); len(updates) != 1 || updates[0]["code"] != pin {
		t.Errorf("updates: %v", updates)
	}
}

// After a failed change, the PIN on the server is unknown.
func TestWriteOnlyPINIsWrittenAgainWhenAChangeOfItHasFailed(t *testing.T) {
	f := startFake(t)
	const former, other = "905173846251", "715938426052"
	story := func(pin string, version int) string { return f.config(accessCode(writtenOnly(pin, version))) }
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{Config: story(former, 1)},
		{
			PreConfig: func() {
				f.nextAttempt = func(a *fakeAttempt) {
					if a.actionType == "UPDATE_ACCESS_CODE" {
						a.failure = map[string]any{"type": "device_offline", "message": "It is away"}
					}
				}
			},
			Config: story(other, 2), ExpectError: says("It is away"),
		},
		{
			PreConfig: func() {
				f.do(func() { f.nextAttempt = nil; _, c := f.only(); c.code = other }) // the server has gone on with it
			},
			Config:           story(former, 1),
			ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front),
			ConfigStateChecks: []statecheck.StateCheck{
				has("code", knownvalue.Null()),
			},
			Check: resource.ComposeAggregateTestCheckFunc(showsNo(former), showsNo(other)),
		},
		{
			PreConfig: func() {
				f.do(func() {
					if _, c := f.only(); c.code != former {
						t.Errorf("the former PIN was not written again")
					}
				})
			},
			Config: story(former, 1), ConfigPlanChecks: plansNothing(),
		},
	}})
}

// So it is where a change from such a PIN to one in the configuration has failed.
func TestWriteOnlyPIN_WrittenAgainAfterFailedChangeOfKind(t *testing.T) {
	f := startFake(t)
	const former, other = "905173846251", "715938426052"
	written := f.config(accessCode(writtenOnly(former, 1)))
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{Config: written},
		{
			PreConfig: func() {
				f.nextAttempt = func(a *fakeAttempt) {
					if a.actionType == "UPDATE_ACCESS_CODE" {
						a.failure = map[string]any{"type": "device_offline", "message": "It is away"}
					}
				}
			},
			Config: f.config(accessCode(`code = "` + other + `"`)), ExpectError: says("It is away"),
		},
		{
			PreConfig:        func() { f.do(func() { f.nextAttempt = nil; _, c := f.only(); c.code = other }) },
			Config:           written,
			ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front),
			Check:            showsNo(other),
		},
		{
			PreConfig: func() {
				f.do(func() {
					if _, c := f.only(); c.code != former {
						t.Errorf("the PIN was not written again")
					}
				})
			},
			Config: written, ConfigPlanChecks: plansNothing(),
		},
	}})
}

func TestWriteOnlyPINIsNotShownByErrors(t *testing.T) {
	f := startFake(t)
	const pin = "905173846251"
	f.nextAttempt = func(a *fakeAttempt) {
		if a.actionType == "CREATE_ACCESS_CODE" {
			a.failure = map[string]any{"type": "x", "message": pin + " does not fit"}
		}
	}
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config:      f.config(accessCode(`code_wo = "12ab"` + "\n  code_wo_version = 1")),
			ExpectError: says("`code_wo` must be 4 to 12 digits"),
		},
		{
			Config:      f.config(accessCode(`code_wo = "` + pin + `"`)),
			ExpectError: says("`code_wo` goes together with `code_wo_version`, which is not set. Set it to 1"),
		},
		{
			Config:      f.config(accessCode(`code = "2468"` + "\n  " + writtenOnly(pin, 1))),
			ExpectError: says("`code` and `code_wo` are both set"),
		},
		{Config: f.config(accessCode(writtenOnly(pin, 1))), ExpectError: says("failed: (hidden) does not fit")},
	}})
}

func TestEphemeralAccessCodeReadsThePIN(t *testing.T) {
	f := startFake(t)
	f.noUnmanagedGet = true
	const pin = "905173846251"
	id := f.unmanaged(fakeCode{name: "Plumber", code: pin})
	hidden := f.unmanaged(fakeCode{name: "Cook"})
	read := func(id, more string) string {
		return f.config(fmt.Sprintf(`
ephemeral "deviceaccess_access_code" "this" {
  access_code_id = %q
  %s
}
provider "echo" {
  data = ephemeral.deviceaccess_access_code.this
}
resource "echo" "this" {}
`, id, more))
	}
	onDevice := fmt.Sprintf("device_id = %q", fakeDevice)
	echo := func(attribute string, value knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("echo.this", tfjsonpath.New("data").AtMapKey(attribute), value)
	}
	story(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: read(id, onDevice), ConfigStateChecks: []statecheck.StateCheck{
			echo(
				"code",
				isText(pin),
			),
			echo("name", isText("Plumber")),
			echo("is_managed", knownvalue.Bool(false)),
			echo("device_id", isText(fakeDevice)),
			echo("status", isText("set")),
		}},
		{
			PreConfig: func() { f.do(func() { f.codes[id].managed = true }) },
			Config: strings.ReplaceAll(
				read(id, ""),
				`"echo" "this"`,
				`"echo" "again"`,
			), // for it keeps what it was created with
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(
					"echo.again",
					tfjsonpath.New("data").AtMapKey("is_managed"),
					knownvalue.Bool(true),
				),
			},
		},
		{
			Config:      read(id, `device_id = "elsewhere"`),
			ExpectError: says("is on the device "+fakeDevice, "Correct `device_id`"),
		},
		{
			Config:      read(hidden, onDevice),
			ExpectError: says("does not return the PIN of the access code "+hidden, "`code_wo`"),
		},
		{
			Config:      read("33333333-2222-4222-8222-222222222222", onDevice),
			ExpectError: says("has no access code 33333333-", "Check `access_code_id`"),
		},
		{Config: f.config("")},
	}})
	if writes := f.writes(); len(writes) != 0 {
		t.Errorf("writes: %v", writes)
	}
}

func TestPlanWarnsOfAPINThatWasWrittenOnlyAndGetsIntoTheState(t *testing.T) {
	t.Parallel()
	const pin, warning = "905173846251", "Warning: The state will contain the PIN"
	f := startFakeLocks(t)
	config := func(more string) string { return required + f.config(accessCode(more)+codeSet(more, lockB)) }
	w := newDirectory(t, map[string]string{"main.tf": config(writtenOnly(pin, 1))})
	w.expect(true, "apply", "-auto-approve")
	w.rewrite(config(""))
	expectSaid(
		t,
		"without a PIN",
		w.plain("plan"),
		warning,
		"keeps its PIN",
		"reads the PIN into the state",
		"restore `code_wo` and `code_wo_version`",
	)
	if n := strings.Count(w.read("plan"), warning); n != 2 {
		t.Errorf("%d warnings", n)
	}
	w.rewrite(config(`code = "` + pin + `"`))
	if said := w.plain("plan"); strings.Contains(said, warning) {
		t.Errorf("a PIN that is written into the configuration is warned of: %s", said)
	}
}

func TestPINThatTurnsOutToHaveNoValueSaysWhatHappensWithoutIt(t *testing.T) {
	t.Parallel()
	var schema resourceapi.SchemaResponse
	newAccessCodeResource().Schema(t.Context(), resourceapi.SchemaRequest{}, &schema)
	var pin types.String
	diags := readWriteOnly(
		t.Context(),
		tfsdk.Config{
			Schema: schema.Schema,
			Raw:    tftypes.NewValue(schema.Schema.Type().TerraformType(t.Context()), nil),
		},
		&pin,
	)
	if !diags.HasError() {
		t.Fatal("it is not refused")
	}
	expectSaid(
		t,
		"the error",
		diags.Errors()[0].Detail(),
		"`code_wo` turned out to be empty",
		"an existing code keeps its PIN",
		"the state then contains the PIN",
	)
}
