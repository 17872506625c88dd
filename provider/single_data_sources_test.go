package provider

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// The tests of this file are about data sources that find one record.

// single is a data source with these conditions.
func single(typeName, conditions string) string {
	return fmt.Sprintf("data %q \"this\" {\n%s}\n", typeName, conditions)
}

func of(typeName, attributeName string, check knownvalue.Check) statecheck.StateCheck {
	return statecheck.ExpectKnownValue("data."+typeName+".this", tfjsonpath.New(attributeName), check)
}

func errorCodes(codes ...string) knownvalue.Check {
	checks := make([]knownvalue.Check, len(codes))
	for i, code := range codes {
		checks[i] = knownvalue.ObjectPartial(map[string]knownvalue.Check{
			"error_code": isText(code),
			"message":    knownvalue.NotNull(),
		})
	}
	return knownvalue.ListExact(checks)
}

func TestServerAccessCodeIsFoundByIDAndByName(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	device := srv.Device(t, "august")
	var made api.AccessCodeResponse
	if status := srv.Post(t, "/access_codes/create", map[string]any{
		"device_id": device, "name": "Nanny", "code": "905173", "sync": true,
	}, &made); status != http.StatusOK {
		t.Fatal(status)
	}
	id, unmanaged := made.AccessCode.AccessCodeID, srv.UnmanagedCodes(t, device)[0]
	byID := func(id string) string { return single(codeType, fmt.Sprintf("  access_code_id = %q\n", id)) }
	byName := func(name string) string {
		return single(codeType, fmt.Sprintf("  device_id = %q\n  name = %q\n", device, name))
	}
	has := func(id, pin string, managed bool) []statecheck.StateCheck {
		return []statecheck.StateCheck{
			of(codeType, "access_code_id", isText(id)),
			of(codeType, "device_id", isText(device)),
			of(codeType, "code", isText(pin)),
			statecheck.ExpectSensitiveValue("data."+codeType+".this", tfjsonpath.New("code")),
			of(codeType, "is_managed", knownvalue.Bool(managed)),
			of(codeType, "errors", errorCodes()),
		}
	}
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: onServer(srv, byID(id)), ConfigStateChecks: has(id, "905173", true)},
		{Config: onServer(srv, byName("Nanny")), ConfigStateChecks: has(id, "905173", true)},
		{
			Config:            onServer(srv, byID(unmanaged.AccessCodeID)),
			ConfigStateChecks: has(unmanaged.AccessCodeID, *unmanaged.Code, false),
		},
		{
			Config:            onServer(srv, byName(*unmanaged.Name)),
			ConfigStateChecks: has(unmanaged.AccessCodeID, *unmanaged.Code, false),
		},
		{Config: onServer(srv, byName("nanny")), ExpectError: says(`name = "nanny"`, "There is no such access code")},
		{Config: onServer(srv, byID(lockA)), ExpectError: says("There is no such access code")},
		{
			Config: onServer(
				srv,
				single(codeType, fmt.Sprintf("  device_id = %q\n  access_code_id = %q\n", lockA, id)),
			),
			ExpectError: says("The code is on the device " + device),
		},
		{Config: onServer(srv, single(codeType, "  name = \"Nanny\"\n")), ExpectError: says("`device_id`")},
		{Config: onServer(srv, single(codeType, "")), ExpectError: says("Missing Attribute Configuration")},
		{
			PreConfig: func() {
				srv.Post(t, "/access_codes/create", map[string]any{"device_id": device, "name": "Nanny"}, nil)
			},
			Config:      onServer(srv, byName("Nanny")),
			ExpectError: says("2 codes on the lock have this name", "Name one by its access_code_id"),
		},
	}})
}

func TestServerWebhookIsFoundByIDAndByURL(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	var made api.WebhookResponse
	create := map[string]any{"url": "https://example.com/a", "event_types": []string{"device.connected"}}
	srv.Post(t, "/webhooks/create", map[string]any{"url": "https://example.com/b"}, nil)
	if status := srv.Post(t, "/webhooks/create", create, &made); status != http.StatusOK {
		t.Fatal(status)
	}
	byURL := single(webhookType, "  url = \"https://example.com/a\"\n")
	has := []statecheck.StateCheck{
		of(webhookType, "webhook_id", isText(made.Webhook.WebhookID)),
		of(webhookType, "event_types", knownvalue.SetExact([]knownvalue.Check{isText("device.connected")})),
		of(webhookType, "disabled", knownvalue.Bool(false)),
	}
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: onServer(srv, byURL), ConfigStateChecks: has},
		{
			Config: onServer(
				srv,
				single(webhookType, fmt.Sprintf("  webhook_id = %q\n", made.Webhook.WebhookID)),
			),
			ConfigStateChecks: append(has, of(webhookType, "url", isText("https://example.com/a"))),
		},
		{
			Config:      onServer(srv, single(webhookType, "  url = \"https://example.com/c?token=hush\"\n")),
			ExpectError: says("has no webhook with this `url`"),
		},
		{
			Config:      onServer(srv, single(webhookType, fmt.Sprintf("  webhook_id = %q\n", lockA))),
			ExpectError: says("404"),
		},
		{
			PreConfig:   func() { srv.Post(t, "/webhooks/create", create, nil) },
			Config:      onServer(srv, byURL),
			ExpectError: says("2 webhooks have this URL", made.Webhook.WebhookID, "Name one by its webhook_id"),
		},
	}})
}

func TestServerConnectedAccountIsFoundByIDAndByLogin(t *testing.T) {
	t.Parallel()
	const account = "deviceaccess_connected_account"
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	srv.AccessSystem(t)
	var list api.ConnectedAccountsResponse
	srv.Post(t, "/connected_accounts/list", map[string]any{}, &list)
	id := list.ConnectedAccounts[0].ConnectedAccountID
	byID := single(account, fmt.Sprintf("  connected_account_id = %q\n", id))
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: onServer(srv, byID), ConfigStateChecks: []statecheck.StateCheck{
			of(account, "display_name", isText("Simulated devices")),
			of(account, "errors", errorCodes()),
		}},
		{
			PreConfig: func() {
				if status := srv.Post(t, "/connected_accounts/simulate/disconnect",
					map[string]any{"connected_account_id": id}, nil); status != http.StatusOK {
					t.Errorf("disconnect: %d", status)
				}
			},
			Config:            onServer(srv, byID),
			ConfigStateChecks: []statecheck.StateCheck{of(account, "errors", errorCodes("account_disconnected"))},
		},
		{
			Config:      onServer(srv, single(account, "  user_identifier = \"owner@example.com\"\n")),
			ExpectError: says("has no account with this email address"),
		},
	}})
}

func TestConnectedAccountIsFoundByWhatItsOwnerLogsInWith(t *testing.T) {
	t.Parallel()
	const account = "deviceaccess_connected_account"
	accounts := answer(map[string]any{"connected_accounts": []map[string]any{
		{"connected_account_id": "a1", "user_identifier": map[string]any{"email": "Jane@example.com"}},
		{"connected_account_id": "a2", "user_identifier": map[string]any{"username": "jane"}},
		{"connected_account_id": "a3", "user_identifier": map[string]any{"api_url": "ws://gateway:3000"}},
		{"connected_account_id": "a4", "user_identifier": map[string]any{"username": "twin"}},
		{"connected_account_id": "a5", "user_identifier": map[string]any{"username": "twin"}},
	}})
	for identifier, id := range map[string]string{
		"jane@example.com": "a1", "jane": "a2", "ws://gateway:3000": "a3", "twin": "",
	} {
		f := startFake(t)
		for range 5 { // as often as Terraform reads it
			f.then("/connected_accounts/list", accounts)
		}
		step := resource.TestStep{
			Config: f.config(single(account, fmt.Sprintf("  user_identifier = %q\n", identifier))),
		}
		if id == "" {
			step.ExpectError = says("2 accounts have this user identifier: a4, a5")
		} else {
			step.ConfigStateChecks = []statecheck.StateCheck{of(account, "connected_account_id", isText(id))}
		}
		drive(t, resource.TestCase{Steps: []resource.TestStep{step}})
	}
}
