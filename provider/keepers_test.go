package provider

import (
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
)

const keptFor = "\n  keepers = { tenant = "

func TestAnotherKeeperReplacesTheCodeAndIsNeverSent(t *testing.T) {
	f := startFakeLocks(t)
	config := func(tenant string) string {
		return f.config(accessCode("name = \"Tenant\""+keptFor+tenant+" }") + codeSet(keptFor+tenant+" }", lockB))
	}
	replacesBoth := resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
		plancheck.ExpectResourceAction(
			front,
			plancheck.ResourceActionDestroyBeforeCreate,
		),
		plancheck.ExpectResourceAction(nanny, plancheck.ResourceActionDestroyBeforeCreate),
	}}
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{
			Config: config(`"Ada"`),
			ConfigStateChecks: []statecheck.StateCheck{
				has("keepers", knownvalue.MapExact(map[string]knownvalue.Check{"tenant": isText("Ada")})),
			},
		},
		{Config: config(`"Ada"`), ConfigPlanChecks: plansNothing()},
		{Config: config(`"Grace"`), ConfigPlanChecks: replacesBoth},
		{Config: config(`"Grace", floor = "3"`), ConfigPlanChecks: replacesBoth},
	}})
	creations := f.bodies("/access_codes/create")
	if len(creations) != 6 {
		t.Errorf("%d creations", len(creations))
	}
	for _, body := range creations {
		if _, sent := body["keepers"]; sent {
			t.Errorf("the creation asked for %v", body)
		}
	}
}

// What keeps a code is in its own state, so a failed apply does not forget the replacement.
func TestReplacementThatFailedIsPlannedAgain(t *testing.T) {
	const first = "\n  lifecycle {\n    create_before_destroy = true\n  }"
	full := answerError(http.StatusBadRequest, "no_space_for_access_code_on_device", "The lock is full")
	for name, c := range map[string]struct {
		lifecycle, path string
		fails           http.HandlerFunc
		then            plancheck.ResourceActionType
	}{
		"deleted first":                 {"", "/access_codes/delete", answerError(http.StatusInternalServerError, "internal_error", "It is broken"), plancheck.ResourceActionDestroyBeforeCreate},
		"created first, on a full lock": {first, "/access_codes/create", full, plancheck.ResourceActionCreateBeforeDestroy},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFakeLocks(t)
			config := func(tenant string) string {
				return f.config(accessCode("name = \"" + tenant + "\"" + keptFor + `"` + tenant + "\" }" + c.lifecycle))
			}
			play := run
			if c.lifecycle != "" {
				play = story
			}
			play(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
				{Config: config("Ada")},
				{
					PreConfig:   func() { f.then(c.path, c.fails) },
					Config:      config("Grace"),
					ExpectError: says("access code"),
				},
				{Config: config("Grace"), ConfigPlanChecks: plans(c.then, front)},
				{Config: config("Grace"), ConfigPlanChecks: plansNothing()},
			}})
		})
	}
}

// Whom a code is for is known from when it was asked for, also where the rest of that apply has failed: the server
// may have done it since.
func TestKeepersOfAChangeThatFailedAreRecorded(t *testing.T) {
	f := startFakeLocks(t)
	config := func(more string) string { return f.config(accessCode(more) + codeSet(more, lockB)) }
	fails := answerError(http.StatusInternalServerError, "internal_error", "It is broken")
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{Config: config(`code = "904716590100"`)},
		{
			PreConfig:   func() { f.then("/access_codes/update", fails, fails) },
			Config:      config(`code = "904716590111"` + keptFor + `"Ada" }`),
			ExpectError: says("It is broken"),
		},
		{
			Config: config(`code = "904716590122"` + keptFor + `"Grace" }`),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction(
					front,
					plancheck.ResourceActionDestroyBeforeCreate,
				),
				plancheck.ExpectResourceAction(nanny, plancheck.ResourceActionDestroyBeforeCreate),
			}},
		},
	}})
}

// A code that is there already is not taken off its door for being given keepers, whether it was made without them or
// imported.
func TestFirstKeepersAreOnlyRecordedAndTheirEndOnlyForgets(t *testing.T) {
	t.Parallel()
	for name, hides := range map[string][]string{"where PINs are told": nil, "where they are not": {"code"}} {
		for how, imported := range map[string]bool{"made": false, "imported": true} {
			t.Run(how+", "+name, func(t *testing.T) {
				t.Parallel()
				f := startFakeLocks(t)
				f.omits = hides
				pin := ""
				if hides != nil {
					pin = "code = \"" + longPIN + "\"\n" // of a shared code that is imported it must be written down then
				}
				config := func(more string) string {
					return required + f.config(accessCode("name = \"Nanny\""+more)+codeSet(pin+more, lockB))
				}
				w := newDirectory(t, map[string]string{"main.tf": config("")})
				var wrote []string
				if imported {
					own, of := f.unmanaged(
						fakeCode{name: "Nanny", code: longPIN, managed: true},
					), f.unmanaged(
						fakeCode{name: "Nanny", code: longPIN, managed: true},
					)
					f.codes[of].device = lockB
					w.rewrite(config(keptFor + `"Ada" }`))
					w.expect(true, "import", front, lockA+"/"+own)
					w.expect(true, "import", nanny, lockB+"/"+of)
					if hides != nil {
						w.expect(true, "apply", "-auto-approve")
						wrote = []string{"/access_codes/update"}
						w.rewrite(config(""))
						w.expect(true, "apply", "-auto-approve")
					}
				} else {
					w.expect(true, "apply", "-auto-approve")
					wrote = []string{"/access_codes/create", "/access_codes/create"}
				}
				for _, more := range []string{keptFor + `null }`, keptFor + `"Ada" }`, "", keptFor + `"Grace" }`} {
					w.rewrite(config(more))
					said := w.plain("plan")
					expectSaid(t, more, said, "0 to add, 2 to change, 0 to destroy")
					if strings.Contains(said, "known after apply") || strings.Contains(said, "Warning") {
						t.Errorf("%s: more than keepers is changed:\n%s", more, said)
					}
					w.expect(true, "apply", "-auto-approve")
					w.expect(true, "plan", "-detailed-exitcode")
				}
				f.expectWrites(t, "in the end", wrote...)
				w.rewrite(config(keptFor + `"Ada" }`))
				expectSaid(
					t,
					"another keeper",
					w.plain("plan"),
					"2 to add, 0 to change, 2 to destroy",
					"forces replacement",
				)
			})
		}
	}
}
