package provider

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
)

func TestExclusiveAccessCodesTakesIdentifiersOnly(t *testing.T) {
	f := startCrowdedFake(t)
	for _, text := range []string{"nonsense", lockA + "/" + keeper, keeper + " ", keeper[1:]} {
		t.Run(text, func(t *testing.T) {
			run(t, resource.TestCase{Steps: []resource.TestStep{{
				Config: f.config(exclusive(lockA, `"`+keeper+`"`, `"`+text+`"`)), PlanOnly: true,
				ExpectError: says("Error: Check the access code", `"`+text+`" is not the `+"`access_code_id` of a code", "The code that is meant would be deleted"),
			}}})
		})
	}
}

func TestExclusiveAccessCodesTakesWhateverAServerHasForIdentifiers(t *testing.T) {
	f := startFake(t)
	f.anyID = true
	f.devices = append(f.devices, device("lock_1", "august_lock", map[string]any{}))
	f.codes["code_1"] = &fakeCode{device: "lock_1", name: "Owner", code: "905173846251", managed: true, status: "set"}
	config := f.config(exclusive("lock_1", `"code_1"`))
	run(t, resource.TestCase{Steps: []resource.TestStep{{Config: config}, {Config: config, ConfigPlanChecks: plansNothing()}}})
	f.expectWrites(t, "in the end")
}

func TestExclusiveAccessCodesWarnsOfCodesThatAreNotOnTheLock(t *testing.T) {
	t.Parallel()
	f := startCrowdedFake(t)
	all := []string{`"` + keeper + `"`, `"` + first + `"`, `"` + second + `"`}
	w := newDirectory(t, map[string]string{"versions.tf": required, "main.tf": f.config(exclusive(lockA, append(all, `"`+late+`"`)...))})
	const warning = "Warning: No such access codes on the lock"
	plan := func() string { return w.plain("plan") }
	expectSaid(t, "the creation", plan(), warning, "no codes on the lock "+lockA+": "+late+" ", "the code that was meant is deleted")
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
	expectSaid(t, "the plan that deletes", plan(), "Warning: Access codes will be deleted", second+` "Guest" (managed)`, warning, "dccccccc-2222-4222-8222-222222222222")
	f.expectWrites(t, "in the end")
}
