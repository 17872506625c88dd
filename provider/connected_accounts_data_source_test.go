package provider

import (
	"net/http"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

func TestServerConnectedAccountsAreListed(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	var list api.ConnectedAccountsResponse
	srv.Post(t, "/connected_accounts/list", map[string]any{}, &list)
	account := map[string]any{"connected_account_id": list.ConnectedAccounts[0].ConnectedAccountID}
	const data = "data.deviceaccess_connected_accounts.these"
	these := func(conditions string) string {
		return onServer(srv, "data \"deviceaccess_connected_accounts\" \"these\" {\n"+conditions+"}\n")
	}
	has := func(n int, fields map[string]knownvalue.Check) []statecheck.StateCheck {
		accounts := tfjsonpath.New("connected_accounts")
		checks := []statecheck.StateCheck{statecheck.ExpectKnownValue(data, accounts, knownvalue.ListSizeExact(n))}
		if n > 0 {
			checks = append(
				checks,
				statecheck.ExpectKnownValue(data, accounts.AtSliceIndex(0), knownvalue.ObjectPartial(fields)),
			)
		}
		return checks
	}
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: these(""), ConfigStateChecks: has(1, map[string]knownvalue.Check{
			"display_name": isText(
				"Simulated devices",
			),
			"account_type":                     isText("sandbox"),
			"customer_key":                     knownvalue.Null(),
			"automatically_manage_new_devices": knownvalue.Bool(true),
			"problems":                         knownvalue.ListSizeExact(0),
		})},
		{
			PreConfig: func() {
				account["customer_key"] = "acme"
				if status := srv.Post(t, "/connected_accounts/update", account, nil); status != http.StatusOK {
					t.Errorf("update: %d", status)
				}
				if status := srv.Post(
					t,
					"/connected_accounts/simulate/disconnect",
					account,
					nil,
				); status != http.StatusOK {
					t.Errorf("disconnect: %d", status)
				}
			},
			Config: these("  customer_key = \"acme\"\n  search = \"simulated\"\n"),
			ConfigStateChecks: has(1, map[string]knownvalue.Check{
				"customer_key": isText(
					"acme",
				),
				"problems": knownvalue.ListExact([]knownvalue.Check{isText("account_disconnected")}),
			}),
		},
		{Config: these("  customer_key = \"another\"\n"), ConfigStateChecks: has(0, nil)},
	}})
}
