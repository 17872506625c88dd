package provider

import (
	"cmp"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/echoprovider"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/tfcore"
)

// TestMain keeps the machine's own settings of Terraform and of the provider out of the tests.
func TestMain(m *testing.M) {
	sweepInstead(m)
	duplicateTimeout = 2 * time.Minute // longer than any test needs; see boundDuplicates
	os.Setenv("TF_CLI_CONFIG_FILE", os.DevNull)
	for _, name := range []string{envAPIKey, envEndpoint, envWorkspaceID, envConvertOnImport, envOtherAPIKey, envOtherEndpoint} {
		os.Unsetenv(name)
	}
	dir, err := os.MkdirTemp("", "deviceaccess-mirror-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	mirrorDir = dir
	apptest.Main(
		m, // what the provider asks of one server right after another has answered
		TestServerAccessCodeIsChangedReplacedAndRepaired,
		TestServerCodeThatIsBeingDeletedIsReplaced,
		TestServerCodesAreRefreshedByAListPerLock,
		TestServerImportByBareIDConvertsAtOnce,
		TestServerImportByDeviceAndIDIsPreviewedAndConvertsOnce,
		TestServerListsAreReadToTheirEnd,
		TestServerTerminatedApplyLosesNoCode,
		TestServerWebhookIsCreatedChangedReplacedAndDestroyed,
	)
}

// run drives the provider through the plugin protocol, inside this process, in parallel with other tests.
func run(t *testing.T, test resource.TestCase) {
	t.Helper()
	t.Parallel()
	drive(t, test)
}

// drive is run for tests that change the environment or are parallel already.
func drive(t *testing.T, test resource.TestCase) {
	t.Helper()
	tfcore.Test(t, "deviceaccess", NewServer("test"), test)
}

// story plays a test case with the terraform command, in parallel with other tests.
func story(t *testing.T, test resource.TestCase) {
	t.Helper()
	t.Parallel()
	play(t, test)
}

// play is story for tests that change the environment or are parallel already.
func play(t *testing.T, test resource.TestCase) {
	t.Helper()
	needTerraform(t)
	test.IsUnitTest = true // needs no account anywhere, so it always runs
	test.ProtoV6ProviderFactories = map[string]func() (tfprotov6.ProviderServer, error){
		"deviceaccess": func() (tfprotov6.ProviderServer, error) { return NewServer("test")(), nil },
		"echo":         echoprovider.NewProviderServer(), // shows what ephemeral resources hold
	}
	resource.Test(t, test)
}

// needTerraform skips a test with -short. Without the terraform command, or the one that TF_ACC_TERRAFORM_PATH names,
// it fails.
func needTerraform(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it runs the terraform command")
	}
	if _, err := exec.LookPath(cmp.Or(os.Getenv("TF_ACC_TERRAFORM_PATH"), "terraform")); err != nil {
		t.Fatalf("install terraform 1.11 or newer, or leave these tests out with -short: %v", err)
	}
}

// says matches an error that has all of these texts, in this order. Terraform breaks lines where it likes.
func says(texts ...string) *regexp.Regexp {
	for i, text := range texts {
		texts[i] = strings.Join(strings.Fields(regexp.QuoteMeta(text)), `\s+`)
	}
	return regexp.MustCompile(`(?s)` + strings.Join(texts, `.*`))
}

const workspaceData = `data "deviceaccess_workspace" "this" {}
`

func workspaceIs(id string) []statecheck.StateCheck {
	return []statecheck.StateCheck{
		statecheck.ExpectKnownValue(
			"data.deviceaccess_workspace.this",
			tfjsonpath.New("workspace_id"),
			knownvalue.StringExact(id),
		),
	}
}

func TestSettingsComeFromTheEnvironment(t *testing.T) {
	f := startFake(t)
	t.Setenv(envAPIKey, fakeKey)
	t.Setenv(envEndpoint, f.URL+"/")
	t.Setenv(envWorkspaceID, fakeWorkspace)
	play(
		t,
		resource.TestCase{
			Steps: []resource.TestStep{{Config: workspaceData, ConfigStateChecks: workspaceIs(fakeWorkspace)}},
		},
	)
}

func TestConvertOnImport_ConfigurationOverridesEnvironment(t *testing.T) {
	cases := map[string]struct {
		environment string
		config      types.Bool
		want, fails bool
	}{
		"nothing":                  {"", types.BoolNull(), true, false},
		"environment":              {"false", types.BoolNull(), false, false},
		"environment, the other":   {"1", types.BoolNull(), true, false},
		"configuration":            {"", types.BoolValue(false), false, false},
		"configuration goes first": {"false", types.BoolValue(true), true, false},
		"not known yet":            {"", types.BoolUnknown(), false, false},
		"neither":                  {"perhaps", types.BoolNull(), false, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv(envConvertOnImport, c.environment)
			var diags diag.Diagnostics
			if got := (settings{ConvertOnImport: c.config}).convertOnImport(
				&diags,
			); got != c.want ||
				diags.HasError() != c.fails {
				t.Errorf("%v, %v", got, diags)
			}
		})
	}
}

func TestMissingAndWrongSettingsSayWhatToDo(t *testing.T) {
	f := startFake(t)
	const key, pat = fakeKey, "seam_at_2bMS94SrGUXuNR2JmJkjtvBQDg5c"
	cases := map[string]struct {
		settings string
		problem  []string
	}{
		"nothing": {
			``,
			[]string{
				"API key is missing",
				"DEVICEACCESS_API_KEY",
				"make server",
				"endpoint is missing",
				"DEVICEACCESS_ENDPOINT",
				"make server",
			},
		},
		"endpoint, no key": {`endpoint = "` + f.URL + `"`, []string{"The API key is missing"}},
		"endpoint no URL": {
			`endpoint = "localhost:8500", api_key = "` + key + `"`,
			[]string{"is not an http or https URL; write it like", "Correct `endpoint`", "DEVICEACCESS_ENDPOINT"},
		},
		"endpoint https": {
			`endpoint = "` + strings.Replace(f.URL, "http:", "https:", 1) + `", api_key = "` + key + `"`,
			[]string{"HTTP response to HTTPS client", "Check `endpoint`", "must begin with http://"},
		},
		"key in endpoint": {
			`endpoint = "http://k:pw123456@localhost:1", api_key = "` + key + `"`,
			[]string{"must have no user name"},
		},
		"key with newline": {
			`endpoint = "` + f.URL + `", api_key = "` + key + `\n"`,
			[]string{"a line break, or another character that keys never contain"},
		},
		"publishable key": {
			`endpoint = "` + f.URL + `", api_key = "seam_pk12bMS94Sr_GUXuNR2JmJkjtvBQDg5cAAAA"`,
			[]string{"is a publishable key", "Use an API key", "run `deviceaccess-server keys create` on the server"},
		},
		"key not accepted": {
			`endpoint = "` + f.URL + `", api_key = "seam_other"`,
			[]string{"API Key not found", "Check `api_key` in the provider block"},
		},
		"other workspace": {
			`endpoint = "` + f.URL + `", api_key = "` + key + `", workspace_id = "99999999-2222-4333-8444-555555555555"`,
			[]string{"belongs to workspace 11111111-", "Nothing was read or changed"},
		},
		"empty workspace": {
			`endpoint = "` + f.URL + `", api_key = "` + key + `", workspace_id = ""`,
			[]string{"`workspace_id` is empty", "leave it out"},
		},
		"token, no workspace": {
			`endpoint = "` + f.URL + `", api_key = "` + pat + `"`,
			[]string{"not bound to a workspace", "DEVICEACCESS_WORKSPACE_ID"},
		},
		"not this API": {
			`endpoint = "` + f.URL + `/nowhere", api_key = "` + key + `"`,
			[]string{"which is not an answer of this API", "Check `endpoint`"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			settings := regexp.MustCompile(`, (\w+ =)`).ReplaceAllString(c.settings, "\n  $1")
			run(t, resource.TestCase{Steps: []resource.TestStep{
				{
					Config:      "provider \"deviceaccess\" {\n  " + settings + "\n}\n" + workspaceData,
					ExpectError: says(c.problem...),
				},
			}})
		})
	}
}

// It would switch off the guard, also the one that the environment has set.
func TestWorkspaceThatTurnsOutToBeEmptyIsRefused(t *testing.T) {
	f := startFake(t)
	t.Setenv(envWorkspaceID, fakeWorkspace)
	for _, empty := range []string{"", " "} {
		_, diags := settings{
			APIKey:      types.StringValue(fakeKey),
			Endpoint:    types.StringValue(f.URL),
			WorkspaceID: types.StringValue(empty),
		}.connect(
			t.Context(),
			"test",
		)
		if !diags.HasError() || !strings.Contains(diags.Errors()[0].Detail(), "`workspace_id` is empty") {
			t.Errorf("%q: %v", empty, diags)
		}
	}
}

func TestServerThatIsNotThereIsToldApartFromRefusals(t *testing.T) {
	run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: `provider "deviceaccess" {
  endpoint = "http://127.0.0.1:1"
  api_key  = "` + fakeKey + `"
}
` + workspaceData,
		ExpectError: says("connection refused", "Check that the server is running"),
	}}})
}

func TestPersonalAccessTokenNamesTheWorkspaceInAHeader(t *testing.T) {
	f := startFake(t)
	const pat = "seam_at_2bMS94SrGUXuNR2JmJkjtvBQDg5c"
	var seen []string
	look := func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("seam-workspace")+" "+r.Header.Get("Authorization"))
		f.getWorkspace(w, r, nil)
	}
	for range 20 {
		f.then("/workspaces/get", look)
	}
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config: fmt.Sprintf(
				"provider \"deviceaccess\" {\n endpoint = %q\n api_key = %q\n workspace_id = %q\n}\n",
				f.URL,
				pat,
				fakeWorkspace,
			) + workspaceData,
			ConfigStateChecks: workspaceIs(fakeWorkspace),
		},
	}})
	for _, headers := range seen {
		if headers != fakeWorkspace+" Bearer "+pat {
			t.Errorf("headers %q", headers)
		}
	}
	if len(seen) == 0 {
		t.Error("the workspace was never asked for")
	}
}

func TestKeyOfOneWorkspaceSendsNoWorkspaceHeader(t *testing.T) {
	f := startFake(t)
	sent := false
	f.then("/webhooks/create", func(w http.ResponseWriter, r *http.Request) {
		_, sent = r.Header["Seam-Workspace"]
		f.createWebhook(w, r, map[string]any{"url": "https://example.com/a", "event_types": []any{"*"}})
	})
	run(t, resource.TestCase{Steps: []resource.TestStep{{Config: f.config(webhook("https://example.com/a", ""))}}})
	if sent {
		t.Error("the header was sent")
	}
}

func TestReadsSurviveATroubledNetwork(t *testing.T) {
	f := startFake(t)
	f.then(
		"/workspaces/get",
		answerRaw(http.StatusTooManyRequests, "application/json", `{}`, "Retry-After", "1"),
		answerRaw(http.StatusBadGateway, "text/html", "<html>Bad gateway</html>"),
		func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		answerRaw(
			http.StatusServiceUnavailable,
			"text/plain",
			"",
			"Retry-After",
			time.Now().Add(time.Second).UTC().Format(http.TimeFormat),
		),
	)
	run(
		t,
		resource.TestCase{
			Steps: []resource.TestStep{
				{Config: f.config(workspaceData), ConfigStateChecks: workspaceIs(fakeWorkspace)},
			},
		},
	)
}

func TestCreateThatMayHaveHappenedIsNotRepeated(t *testing.T) {
	cases := map[string]struct {
		odd     http.HandlerFunc
		problem string
	}{
		"cut off": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
		"HTML gateway": {
			answerRaw(http.StatusBadGateway, "text/html", "<html><style>x{}</style><h1>Bad gateway</h1></html>"),
			"answered 502 Bad Gateway, which is not an answer of this API: Bad gateway (HTTP 502",
		},
		"empty": {
			answerRaw(http.StatusInternalServerError, "text/plain", ""),
			"answered 500 Internal Server Error without saying why",
		},
		"truncated": {
			answerRaw(http.StatusOK, "application/json", `{"ok": true, "webhook": {"webh`),
			"not what the contract says",
		},
		"nothing in it": {answerRaw(http.StatusOK, "application/json", `{"ok": true}`), "contains no webhook"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			f.then("/webhooks/create", c.odd)
			run(t, resource.TestCase{Steps: []resource.TestStep{
				{
					Config: f.config(
						webhook("https://example.com/a", ""),
					),
					ExpectError: says(c.problem, "The server may have done it"),
				},
			}})
			if creates := f.count("/webhooks/create"); creates != 1 {
				t.Errorf("asked %d times", creates)
			}
		})
	}
}

func TestCreateThatMayHaveHappenedIsInDoubtWhateverItsLastTrySays(t *testing.T) {
	f := startFake(t)
	f.then(
		"/webhooks/create",
		answerRaw(http.StatusBadGateway, "text/html", "<h1>Bad gateway</h1>", "Accept-Idempotency-Key", "true"),
		answerRaw(
			http.StatusUnauthorized,
			"application/json",
			`{"ok": false, "error": {"type": "unauthorized", "message": "API Key not found"}}`,
		),
	)
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config: f.config(
				webhook("https://example.com/a", ""),
			),
			ExpectError: says("HTTP 401", "Check `api_key`", "The server may have done it", "create a second webhook"),
		},
	}})
}

func TestCreateThatWasNotCarriedOutIsRepeated(t *testing.T) {
	f := startFake(t)
	f.then(
		"/webhooks/create",
		answerRaw(
			http.StatusTooManyRequests,
			"application/json",
			`{}`,
			"Retry-After",
			"1",
		),
		answerRaw(http.StatusServiceUnavailable, "text/plain", ""),
	)
	run(t, resource.TestCase{Steps: []resource.TestStep{{Config: f.config(webhook("https://example.com/a", ""))}}})
	if creates := f.count("/webhooks/create"); creates != 3 {
		t.Errorf("asked %d times", creates)
	}
}

func TestRefusedReadsNeverEmptyTheState(t *testing.T) {
	for name, refusal := range map[string]http.HandlerFunc{
		"401":                   answerError(http.StatusUnauthorized, "unauthorized", "API Key not found"),
		"403":                   answerError(http.StatusForbidden, "forbidden", "Not for this key"),
		"404 of another server": answerRaw(http.StatusNotFound, "text/html", "<h1>404</h1>"),
		"404 of another path":   answerError(http.StatusNotFound, "route_not_found", "There is nothing at this path"),
	} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			f.elsewhere = strings.Contains(name, "another server")
			config := f.config(webhook("https://example.com/a", "") + accessCode(`code = "2468"`))
			run(t, resource.TestCase{Steps: []resource.TestStep{
				{Config: config},
				{
					PreConfig:    func() { f.then("/webhooks/list", refusal); f.then("/webhooks/get", refusal) },
					RefreshState: true,
					ExpectError:  says("Error: Could not read webhook"),
				},
				{
					PreConfig:    func() { f.refuseCodes(refusal) },
					RefreshState: true,
					ExpectError:  says("Error: Could not read access code"),
				},
				{Config: config, ConfigPlanChecks: plansNothing()},
			}})
		})
	}
}
