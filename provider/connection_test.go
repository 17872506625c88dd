package provider

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
)

func TestSettingsOfOtherClientsAreReadWhereOursAreNotSet(t *testing.T) {
	f := startFake(t)
	t.Setenv(envOtherAPIKey, fakeKey)
	t.Setenv(envOtherEndpoint, f.URL)
	drive(
		t,
		resource.TestCase{
			Steps: []resource.TestStep{{Config: workspaceData, ConfigStateChecks: workspaceIs(fakeWorkspace)}},
		},
	)
}

// A key of one server is told no other: it may manage the doors of another house.
func TestKeyIsNeverSentToAnEndpointThatWasMeantForAnother(t *testing.T) {
	const ours, theirs, elsewhere = "seam_ours12_secret", "seam_theirs_secret", "http://127.0.0.1:1"
	null := types.StringNull()
	for name, c := range map[string]struct {
		block       settings
		environment map[string]string
		missing     string
	}{
		"their key, our endpoint in the block":       {settings{Endpoint: types.StringValue(elsewhere), APIKey: null}, map[string]string{envOtherAPIKey: theirs}, "The API key is missing"},
		"their pair, our endpoint in the block":      {settings{Endpoint: types.StringValue(elsewhere), APIKey: null}, map[string]string{envOtherAPIKey: theirs, envOtherEndpoint: elsewhere}, "The API key is missing"},
		"their key, our endpoint in the environment": {settings{Endpoint: null, APIKey: null}, map[string]string{envOtherAPIKey: theirs, envEndpoint: elsewhere}, "The API key is missing"},
		"our key in the block, their endpoint":       {settings{Endpoint: null, APIKey: types.StringValue(ours)}, map[string]string{envOtherEndpoint: elsewhere}, "The endpoint is missing"},
		"our key in the environment, their endpoint": {settings{Endpoint: null, APIKey: null}, map[string]string{envAPIKey: ours, envOtherEndpoint: elsewhere, envOtherAPIKey: theirs}, "The endpoint is missing"},
		"their key alone":                            {settings{Endpoint: null, APIKey: null}, map[string]string{envOtherAPIKey: theirs}, "The endpoint is missing"},
		"an empty endpoint in the block, their two":  {settings{Endpoint: types.StringValue(""), APIKey: null}, map[string]string{envOtherAPIKey: theirs, envOtherEndpoint: elsewhere}, "is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range c.environment {
				t.Setenv(variable, value)
			}
			conn, diags := c.block.connect(t.Context(), "test")
			if conn.isConnected() || !diags.HasError() {
				t.Fatal("it is connected")
			}
			said := ""
			for _, d := range diags.Errors() {
				said += d.Detail() + "\n"
			}
			expectSaid(t, "the error", said, c.missing, envOtherAPIKey+" and "+envOtherEndpoint+" are read together")
		})
	}
}

func TestRefusedKeySaysWhereItComesFrom(t *testing.T) {
	f := startFake(t)
	const wrong = "seam_wrong1_secret"
	for name, c := range map[string]struct {
		block       settings
		environment map[string]string
		said        string
	}{
		"the block":          {settings{APIKey: types.StringValue(wrong), Endpoint: types.StringValue(f.URL)}, nil, "Check `api_key` in the provider block"},
		"our variable":       {settings{APIKey: types.StringNull(), Endpoint: types.StringValue(f.URL)}, map[string]string{envAPIKey: wrong, envOtherAPIKey: fakeKey}, "Check the environment variable " + envAPIKey},
		"another's variable": {settings{APIKey: types.StringNull(), Endpoint: types.StringNull()}, map[string]string{envOtherAPIKey: wrong, envOtherEndpoint: f.URL}, "Check the environment variable " + envOtherAPIKey},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range c.environment {
				t.Setenv(variable, value)
			}
			conn, diags := c.block.connect(t.Context(), "test")
			if diags.HasError() {
				t.Fatal(diags)
			}
			_, err := conn.workspace(t.Context())
			if next := nextStep(err); !strings.HasPrefix(next, c.said+": the server does not accept it.") {
				t.Errorf("%v: %s", err, next)
			}
		})
	}
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
	story(t, resource.TestCase{Steps: []resource.TestStep{
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
	refusal := says(
		"belongs to workspace "+stranger,
		"the resource was in workspace "+fakeWorkspace,
		"Nothing is removed from the state",
		"terraform state rm",
	)
	codes, webhooks := map[string]*fakeCode{}, map[string]*fakeWebhook{}
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
			PreConfig:        func() { f.do(func() { clear(f.codes) }) },
			Config:           config,
			ConfigPlanChecks: plans(plancheck.ResourceActionCreate, front),
		},
	}})
	if n := f.count("/access_codes/create"); n != 2 {
		t.Errorf("created %d times", n)
	}
}

func TestWaitingForTheLockIsASetting(t *testing.T) {
	f := startFake(t)
	f.noAttempts, f.laterBy = true, 1000 // never
	byProvider := strings.Replace(f.config(accessCode(`code = "2468"`)), "{\n", "{\n  wait_until_on_lock = false\n", 1)
	stays := []statecheck.StateCheck{has("status", isText("setting"))}
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: byProvider, ConfigStateChecks: stays},
		{Config: byProvider, ConfigPlanChecks: plansNothing()},
		{Config: strings.Replace(byProvider, "2468", "8642", 1), ConfigStateChecks: stays},
		{
			Config:      f.config(accessCode("code = \"1357\"\n  timeouts {\n    update = \"1s\"\n  }")),
			ExpectError: says("still setting when the time was up", "`wait_until_on_lock = false`"),
		},
		{Config: f.config(accessCode("code = \"7531\"\n  wait_until_on_lock = false")), ConfigStateChecks: stays},
		{PreConfig: func() { f.do(func() { clear(f.codes) }) }, Config: f.config("")},
	}})
}

// A newcomer has not heard of the variables of other clients.
func TestMissingSettings_NameOtherVariablesOnlyIfOneIsSet(t *testing.T) {
	for name, variables := range map[string]map[string]string{
		"none": {}, "their key": {envOtherAPIKey: fakeKey}, "their endpoint": {envOtherEndpoint: "http://127.0.0.1:9"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, variable := range []string{envAPIKey, envEndpoint, envOtherAPIKey, envOtherEndpoint} {
				t.Setenv(variable, variables[variable])
			}
			_, diags := settings{}.connect(t.Context(), "test")
			if !diags.HasError() {
				t.Fatal("it connects")
			}
			for _, d := range diags {
				if named := strings.Contains(d.Detail(), "SEAM_"); named != (len(variables) > 0) {
					t.Errorf("%s: it names them: %t: %s", d.Summary(), named, d.Detail())
				}
			}
		})
	}
}
