package provider

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
)

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
			Config: config(first, 1, lockA, lockB), Check: showsNo(first),
			ConfigStateChecks: append(allSet(lockA, lockB), codeIs(knownvalue.Null()), statecheck.ExpectKnownValue(nanny, tfjsonpath.New("code_wo"), knownvalue.Null())),
		},
		{
			PreConfig: func() { wrote("at first", "create "+lockA, "create "+lockB); f.pinsAre(t, first, lockA, lockB) },
			Config:    config(first, 1, lockA, lockB, lockC), ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, nanny), Check: showsNo(first),
		},
		{
			PreConfig:        func() { wrote("a lock more", "create "+lockC); f.pinsAre(t, first, lockC) },
			Config:           config(second, 1, lockA, lockB, lockC), // without a new version
			ConfigPlanChecks: plansNothing(),
		},
		{
			PreConfig: func() {
				f.then("/access_codes/update", answerError(http.StatusConflict, "busy", "The lock is busy with "+second))
			},
			Config:      config(second, 2, lockA, lockB, lockC),
			ExpectError: says("Error: Set the access code on a lock", "busy with (hidden)", "The other locks of the set are not affected"),
		},
		{ // the lock that failed is the only one left to do, also after a refresh
			Config: config(second, 2, lockA, lockB, lockC), ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, nanny),
			ConfigStateChecks: allSet(lockA, lockB, lockC), Check: showsNo(second),
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
			Config: f.config(codeSet("", lockA, lockB, lockC)), ConfigStateChecks: append(allSet(lockA, lockB, lockC), codeIs(isText(second))),
		},
		{Config: f.config(codeSet("", lockA, lockB, lockC)), ConfigPlanChecks: plansNothing()},
		{ // from the state to a PIN that is written only
			Config: config(third, 1, lockA, lockB, lockC), ConfigStateChecks: []statecheck.StateCheck{codeIs(knownvalue.Null())}, Check: showsNo(second),
		},
		{
			PreConfig:        func() { f.pinsAre(t, third, lockA, lockB, lockC) },
			Config:           config(third, 1, lockA, lockB, lockC),
			ConfigPlanChecks: plansNothing(),
		},
		{Config: f.config(codeSet(`code = "2468"`+"\n  "+writtenOnly(third, 1), lockA)), ExpectError: says("`code` and `code_wo` are both set")},
		{Config: f.config(codeSet(`code_wo = "905173846251"`, lockA)), ExpectError: says("`code_wo` goes together with `code_wo_version`")},
		{Config: f.config("")},
	}})
}

func TestSetWhosePINNobodyTellsAsksForOne(t *testing.T) {
	f := startFakeLocks(t)
	f.codes[keeper] = &fakeCode{device: lockA, name: "Nanny", managed: true, status: "set"}
	config := f.config(codeSet("", lockA, lockB))
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config, ResourceName: nanny, ImportState: true, ImportStateId: lockA + "/" + keeper, ImportStatePersist: true},
		{Config: config, ExpectError: says("The PIN of the set is not known", "Write it into `code`")},
		{Config: f.config(codeSet(writtenOnly("905173846251", 1), lockA, lockB)), ConfigStateChecks: allSet(lockA, lockB)},
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
		{Config: config(second), ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, nanny), ConfigStateChecks: allSet(lockA, lockB)},
		{PreConfig: func() { f.pinsAre(t, second, lockA, lockB) }, Config: config(second), ConfigPlanChecks: plansNothing()},
		{
			PreConfig: func() {
				f.then("/access_codes/update", answerError(http.StatusConflict, "busy", "The lock is busy"))
			},
			Config: config(first), ExpectError: says("The lock is busy"),
		},
		{Config: config(first), ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, nanny), ConfigStateChecks: allSet(lockA, lockB)},
		{PreConfig: func() { f.pinsAre(t, first, lockA, lockB) }, Config: config(first), ConfigPlanChecks: plansNothing()},
	}})
}
