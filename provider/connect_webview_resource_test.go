package provider

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

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

const invitation = "deviceaccess_connect_webview.invitation"

func invite(more string) string {
	return "resource \"deviceaccess_connect_webview\" \"invitation\" {\n" + more + "}\n"
}

// invitations are the pages that the server has.
func invitations(t *testing.T, srv *apptest.Server) []api.ConnectWebview {
	t.Helper()
	var out api.ConnectWebviewsResponse
	if status := srv.Post(t, "/connect_webviews/list", map[string]any{}, &out); status != http.StatusOK {
		t.Fatalf("list the webviews: %d", status)
	}
	return out.ConnectWebviews
}

func TestServerConnectWebviewInvitesSomebodyToLogIn(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	at := func(attribute string, check knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue(invitation, tfjsonpath.New(attribute), check)
	}
	same, other := statecheck.CompareValue(compare.ValuesSame()), statecheck.CompareValue(compare.ValuesDiffer())
	id := tfjsonpath.New("connect_webview_id")
	const settings = `  accepted_providers  = ["nuki", "yale"]
  custom_redirect_url = "https://app.example.com/back"
  customer_key        = "flat-7"
  custom_metadata     = { flat = "7" }
`
	config := onServer(srv, invite(settings))
	drive(t, resource.TestCase{
		CheckDestroy: func(*terraform.State) error {
			if left := invitations(t, srv); len(left) != 0 {
				return fmt.Errorf("%d webviews are left", len(left))
			}
			return nil
		},
		Steps: []resource.TestStep{
			{
				Config: config,
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectSensitiveValue(invitation, tfjsonpath.New("url")),
					at(
						"url",
						knownvalue.StringRegexp(regexp.MustCompile("^"+regexp.QuoteMeta(srv.URL)+"/connect/")),
					),
					at("status", isText("pending")),
					at(
						"login_successful",
						knownvalue.Bool(false),
					),
					at("connected_account_id", knownvalue.Null()),
					at("automatically_manage_new_devices", knownvalue.Bool(true)),
					same.AddStateValue(invitation, id),
					other.AddStateValue(invitation, id),
				},
			},
			{
				ResourceName:                         invitation,
				ImportState:                          true,
				ImportStateVerify:                    true,
				ImportStateVerifyIdentifierAttribute: "connect_webview_id",
				ImportStateVerifyIgnore: []string{
					"accepted_capabilities",
				},
				ImportStateIdFunc: func(*terraform.State) (string, error) {
					return invitations(t, srv)[0].ConnectWebviewID, nil
				},
			},
			{
				PreConfig: func() {
					client := http.Client{
						CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
					}
					res, err := client.PostForm(
						invitations(t, srv)[0].URL+"/nuki",
						url.Values{"email": {"jane@example.com"}, "password": {"1234"}},
					)
					if err != nil {
						t.Fatal(err)
					}
					res.Body.Close()
				},
				Config:           config,
				ConfigPlanChecks: plansNothing(),
				ConfigStateChecks: []statecheck.StateCheck{
					at("status", isText("authorized")),
					at("login_successful", knownvalue.Bool(true)),
					at("selected_provider", isText("nuki")),
					at(
						"connected_account_id",
						knownvalue.NotNull(),
					),
					at("authorized_at", knownvalue.NotNull()),
					same.AddStateValue(invitation, id),
				},
			},
			{
				Config:           onServer(srv, invite(settings+"  wait_for_device_creation = true\n")),
				ConfigPlanChecks: plans(plancheck.ResourceActionDestroyBeforeCreate, invitation),
				ConfigStateChecks: []statecheck.StateCheck{
					at("status", isText("pending")),
					other.AddStateValue(invitation, id),
				},
			},
			{ // taken away elsewhere
				PreConfig: func() {
					srv.Post(
						t,
						"/connect_webviews/delete",
						map[string]any{"connect_webview_id": invitations(t, srv)[0].ConnectWebviewID},
						nil,
					)
				},
				Config:           onServer(srv, invite("  excluded_providers = [\"sandbox\"]\n")),
				ConfigPlanChecks: plans(plancheck.ResourceActionCreate, invitation),
			},
			{Config: onServer(srv, invite("  excluded_providers = [\"sandbox\"]\n")), ConfigPlanChecks: plansNothing()},
			{
				Config:      onServer(srv, invite("  accepted_providers = [\"wyze\"]\n")),
				ExpectError: says("No vendor is left to choose", "august"),
			},
			{
				Config:      onServer(srv, invite("  custom_redirect_url = \"javascript:alert(1)\"\n")),
				ExpectError: says("must be an http or https URL"),
			},
			{
				Config:      onServer(srv, invite("  custom_metadata = { flat = \"\" }\n")),
				ExpectError: says("is empty", "Give the key a text"),
			},
			{ // what was connected stays
				Config: onServer(srv, ""),
			},
		},
	})
	var accounts api.ConnectedAccountsResponse
	if srv.Post(
		t,
		"/connected_accounts/list",
		map[string]any{"customer_key": "flat-7"},
		&accounts,
	); len(
		accounts.ConnectedAccounts,
	) != 1 {
		t.Errorf("%d accounts of the customer are left", len(accounts.ConnectedAccounts))
	}
}

func TestServerConnectWebviewWithoutMetadataIsOneWithNoneInIt(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	same := statecheck.CompareValue(compare.ValuesSame())
	keeps := func() []statecheck.StateCheck {
		return []statecheck.StateCheck{same.AddStateValue(invitation, tfjsonpath.New("connect_webview_id"))}
	}
	empty := onServer(srv, invite("  custom_metadata = {}\n"))
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: empty, ConfigStateChecks: keeps()},
		{Config: onServer(srv, "removed {\n  from = "+invitation+"\n  lifecycle {\n    destroy = false\n  }\n}\n")},
		{
			Config:             empty,
			ResourceName:       invitation,
			ImportState:        true,
			ImportStatePersist: true,
			ImportStateIdFunc: func(*terraform.State) (string, error) {
				return invitations(t, srv)[0].ConnectWebviewID, nil
			},
		},
		{
			Config:            empty,
			ConfigStateChecks: keeps(),
			ConfigPlanChecks:  plans(plancheck.ResourceActionUpdate, invitation),
		},
		{
			Config:            onServer(srv, invite("")),
			ConfigStateChecks: keeps(),
			ConfigPlanChecks:  plans(plancheck.ResourceActionUpdate, invitation),
		},
		{
			Config:           onServer(srv, invite("  custom_metadata = { flat = \"7\" }\n")),
			ConfigPlanChecks: plans(plancheck.ResourceActionDestroyBeforeCreate, invitation),
		},
		{Config: empty, ConfigPlanChecks: plans(plancheck.ResourceActionDestroyBeforeCreate, invitation)},
	}})
}

func TestServerConnectWebviewExampleIsAppliedAsItStands(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	const owner, devices = "deviceaccess_connect_webview.owner", "data.deviceaccess_devices.of_the_owner[0]"
	w := newWorkspace(t, map[string]string{
		"versions.tf": required,
		"provider.tf": onServer(srv, ""),
		"main.tf":     read(t, "../examples/resources/deviceaccess_connect_webview/resource.tf"),
	})
	expectDevices := func(when string, want bool) {
		t.Helper()
		if got := slices.Contains(strings.Fields(w.read("state", "list")), devices); got != want {
			t.Errorf("%s: the devices of the owner are listed: %t", when, got)
		}
	}
	logIn := func() {
		t.Helper()
		client := http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
		res, err := client.PostForm(
			invitations(t, srv)[0].URL+"/nuki",
			url.Values{"email": {"jane@example.com"}, "password": {"1234"}},
		)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	w.expect(true, "apply", "-auto-approve")
	expectDevices("before anybody logs in", false)
	logIn()
	w.expect(true, "apply", "-auto-approve")
	expectDevices("after the login", true)
	w.expect(true, "apply", "-auto-approve", "-replace="+owner)
	expectDevices("with a new invitation", false)

	id := invitations(t, srv)[0].ConnectWebviewID
	w.expect(true, "state", "rm", owner)
	w.write("import.tf", fmt.Sprintf("import {\n  to = %s\n  id = %q\n}\n", owner, id))
	expectSaid(
		t,
		"the plan of an import",
		w.plain("plan", "-out=plan"),
		"1 to import, 0 to add, 1 to change, 0 to destroy",
	)
	logIn() // between the plan and the update
	w.expect(true, "apply", "plan")
	expectDevices("right after the import", false)
	w.expect(true, "apply", "-auto-approve")
	expectDevices("after the import and a login", true)
	w.expect(true, "destroy", "-auto-approve")
}

// A setting that servers do not return must not replace the page, because the owner has only the link of the old one.
func TestServerConnectWebviewThatWasImportedIsNotReplaced(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]struct {
		config  string
		adopted bool // into the state, by an apply that changes nothing on the server
	}{
		"nothing":      {"", false},
		"a selection":  {"  accepted_providers = [\"nuki\", \"yale\"]\n  accepted_capabilities = [\"lock\"]\n", false},
		"an exclusion": {"  excluded_providers = [\"sandbox\", \"nuki\"]\n", true},
		"a kind":       {"  provider_category = \"stable\"\n  customer_key = \"flat-7\"\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := apptest.Shared(t, apptest.WithProfiles("august"))
			config := onServer(srv, invite(settings.config))
			steps := []resource.TestStep{
				{Config: config},
				{
					Config: onServer(
						srv,
						"removed {\n  from = "+invitation+"\n  lifecycle {\n    destroy = false\n  }\n}\n",
					),
				},
				{
					Config:             config,
					ResourceName:       invitation,
					ImportState:        true,
					ImportStatePersist: true,
					ImportStateIdFunc: func(*terraform.State) (string, error) {
						return invitations(t, srv)[0].ConnectWebviewID, nil
					},
				},
			}
			if settings.adopted {
				steps = append(
					steps,
					resource.TestStep{
						Config:           config,
						ConfigPlanChecks: leavesUnknown(invitation),
					},
				)
			}
			drive(
				t,
				resource.TestCase{
					Steps: append(steps, resource.TestStep{Config: config, ConfigPlanChecks: plansNothing()},
						resource.TestStep{
							Config: onServer(
								srv,
								invite(settings.config+"  custom_redirect_url = \"https://app.example.com/back\"\n"),
							),
							ConfigPlanChecks: plans(plancheck.ResourceActionDestroyBeforeCreate, invitation),
						}),
				},
			)
		})
	}
}
