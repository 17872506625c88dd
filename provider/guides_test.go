package provider

import (
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
)

// guided is the block of a guide that holds a text, for the fake's lock.
func guided(t *testing.T, guide, text string) string {
	t.Helper()
	for _, block := range fence.FindAllStringSubmatch(read(t, "../docs/guides/"+guide+".md"), -1) {
		if strings.Contains(block[2], text) {
			return strings.ReplaceAll(block[2], "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11", fakeDevice)
		}
	}
	t.Fatalf("the guide %s has no block with %q", guide, text)
	return ""
}

func TestGuideRotatesByTheCalendarWithoutAMomentWithoutACode(t *testing.T) {
	f := startFakeLocks(t)
	const clock, cleaner = `formatdate("YYYY-MM", plantimestamp())`, "deviceaccess_access_code.cleaner"
	block := guided(t, "rotate-pins", clock)
	in := func(month string) string { return f.config(strings.Replace(block, clock, `"`+month+`"`, 1)) }
	story(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{Config: in("2030-01")},
		{Config: in("2030-01"), ConfigPlanChecks: plansNothing()},
		{Config: in("2030-02"), ConfigPlanChecks: plans(plancheck.ResourceActionCreateBeforeDestroy, cleaner)},
	}})
	f.expectWrites(
		t,
		"in the end",
		"/access_codes/create",
		"/access_codes/create",
		"/access_codes/delete",
		"/access_codes/delete",
	)
}

// A rotation that came to nothing is no reason to keep the old PIN for another month.
func TestGuideRotatesByTheCalendarAlsoOnceTheLockWasFull(t *testing.T) {
	f := startFakeLocks(t)
	const clock = `formatdate("YYYY-MM", plantimestamp())`
	block := guided(t, "rotate-pins", clock)
	in := func(month string) string { return f.config(strings.Replace(block, clock, `"`+month+`"`, 1)) }
	story(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{Config: in("2030-01")},
		{
			PreConfig: func() {
				f.then(
					"/access_codes/create",
					answerError(http.StatusBadRequest, "no_space_for_access_code_on_device", "The lock is full"),
				)
			},
			Config: in("2030-02"), ExpectError: says("The lock is full"),
		},
		{
			Config:           in("2030-02"),
			ConfigPlanChecks: plans(plancheck.ResourceActionCreateBeforeDestroy, "deviceaccess_access_code.cleaner"),
		},
	}})
}

func TestGuideReplacesTheCodeOfAnotherTenant(t *testing.T) {
	f := startFakeLocks(t)
	block := guided(t, "hand-over", `variable "tenant"`)
	let := func(tenant string) string {
		return f.config(strings.Replace(block, "type = string", "type = string\n  default = \""+tenant+"\"", 1))
	}
	story(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{Config: let("Ada")},
		{ // which must not leave the former tenant's PIN on the door under the new name
			PreConfig: func() {
				f.then(
					"/access_codes/delete",
					answerError(http.StatusInternalServerError, "internal_error", "It is broken"),
				)
			},
			Config: let("Grace"), ExpectError: says("It is broken"),
		},
		{
			Config:           let("Grace"),
			ConfigPlanChecks: plans(plancheck.ResourceActionDestroyBeforeCreate, "deviceaccess_access_code.tenant"),
		},
	}})
}
