package provider

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
)

func TestSettingsOfOtherClientsAreReadWhereOursAreNotSet(t *testing.T) {
	f := startFake(t)
	t.Setenv(envOtherAPIKey, fakeKey)
	t.Setenv(envOtherEndpoint, f.URL)
	t.Run("theirs", func(t *testing.T) {
		play(t, resource.TestCase{Steps: []resource.TestStep{{Config: workspaceData, ConfigStateChecks: workspaceIs(fakeWorkspace)}}})
	})
	t.Run("ours go first", func(t *testing.T) {
		t.Setenv(envAPIKey, "seam_ours")
		play(t, resource.TestCase{Steps: []resource.TestStep{{Config: workspaceData, ExpectError: says("API Key not found")}}})
	})
}

func TestNoMoreRequestsAtATimeThanTheProviderIsAllowed(t *testing.T) {
	f := startFake(t)
	var now, most atomic.Int32
	count := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		most.Store(max(most.Load(), now.Add(1)))
		f.ServeHTTP(w, r)
		now.Add(-1)
	})
	f.front.Store(&count)
	many := strings.Replace(webhook("https://example.com/a", ""), "{\n", "{\n  count = 12\n", 1)
	config := func(setting string) string {
		return strings.Replace(f.config(many), "{\n", "{\n  max_concurrent_requests = "+setting+"\n", 1)
	}
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config("0"), ExpectError: says("`max_concurrent_requests` is 0. Set it to 1 or more")},
		{Config: config("1")},
	}})
	if got := most.Load(); got != 1 {
		t.Errorf("%d requests at a time", got)
	}
}

func TestKeyOfAnotherWorkspaceMakesNothingLookDeleted(t *testing.T) {
	f := startFake(t)
	const stranger = "99999999-2222-4333-8444-555555555555"
	config := f.config(webhook("https://example.com/a", "") + accessCode(`code = "2468"`))
	refusal := says("belongs to workspace "+stranger, "this was in workspace "+fakeWorkspace, "Nothing is taken to be deleted", "terraform state rm")
	var codes, webhooks = map[string]*fakeCode{}, map[string]*fakeWebhook{}
	swap := func(workspace string) func() {
		return func() {
			f.do(func() {
				f.workspace = workspace
				codes, f.codes = f.codes, codes
				webhooks, f.webhooks = f.webhooks, webhooks
			})
		}
	}
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{Config: config},
		{PreConfig: swap(stranger), Config: config, ExpectError: refusal},
		{Config: config, Destroy: true, ExpectError: refusal},
		{PreConfig: swap(fakeWorkspace), Config: config, ConfigPlanChecks: plansNothing()},
		{ // what is gone from the right workspace is gone
			PreConfig: func() { f.do(func() { clear(f.codes) }) }, Config: config, ConfigPlanChecks: plans(plancheck.ResourceActionCreate, front),
		},
	}})
	if n := f.count("/access_codes/create"); n != 2 {
		t.Errorf("created %d times", n)
	}
}

func TestWaitingForTheLockIsASetting(t *testing.T) {
	f := startFake(t)
	f.noAttempts, f.laterBy = true, 1000 // never
	byProvider := strings.Replace(f.config(accessCode(`code = "2468"`)), "{\n", "{\n  wait_for_set = false\n", 1)
	stays := []statecheck.StateCheck{has("status", isText("setting"))}
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: byProvider, ConfigStateChecks: stays},
		{Config: byProvider, ConfigPlanChecks: plansNothing()},
		{Config: strings.Replace(byProvider, "2468", "8642", 1), ConfigStateChecks: stays},
		{
			Config:      f.config(accessCode("code = \"1357\"\n  timeouts {\n    update = \"1s\"\n  }")),
			ExpectError: says("still setting when the time was up", "`wait_for_set = false`"),
		},
		{Config: f.config(accessCode("code = \"7531\"\n  wait_for_set = false")), ConfigStateChecks: stays},
		{PreConfig: func() { f.do(func() { clear(f.codes) }) }, Config: f.config("")},
	}})
}
