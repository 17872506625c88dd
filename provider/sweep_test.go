package provider

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// sweepable is what names begin with that tests give to things on servers that outlive them.
const sweepable = "tf-acc-"

func init() {
	resource.AddTestSweepers(
		"deviceaccess_access_code",
		&resource.Sweeper{Name: "deviceaccess_access_code", F: onConfiguredServer(sweepAccessCodes)},
	)
	resource.AddTestSweepers(
		"deviceaccess_webhook",
		&resource.Sweeper{Name: "deviceaccess_webhook", F: onConfiguredServer(sweepWebhooks)},
	)
	resource.AddTestSweepers(
		acsUserType,
		&resource.Sweeper{Name: acsUserType, F: onConfiguredServer(sweepACSUsers)},
	)
	resource.AddTestSweepers(
		identityType,
		&resource.Sweeper{Name: identityType, F: onConfiguredServer(sweepUserIdentities)},
	)
}

// sweepInstead runs the sweepers and ends, when the tests are started with -sweep.
func sweepInstead(m *testing.M) {
	flag.Parse()
	if flag.Lookup("sweep").Value.String() != "" {
		resource.TestMain(m)
	}
}

// onConfiguredServer sweeps the server that the environment names.
func onConfiguredServer(sweep func(context.Context, *api.Client) error) resource.SweeperFunc {
	return func(string) error {
		ctx := context.Background()
		conn, diags := settings{}.connect(ctx, userAgent("sweep", "none"))
		for _, d := range diags.Errors() {
			return errors.New(d.Summary() + ": " + d.Detail())
		}
		return sweep(ctx, conn.api)
	}
}

func sweepAccessCodes(ctx context.Context, client *api.Client) error {
	devices, err := api.Collect(client.Devices(ctx, api.ListDevicesRequest{}))
	if err != nil {
		return fmt.Errorf("list devices: %w", err)
	}
	var failed []error
	for _, device := range devices {
		codes, err := codesOn(ctx, client, device.DeviceID)
		if err != nil {
			return fmt.Errorf("list the codes of %s: %w", device.DeviceID, err)
		}
		for id, code := range codes {
			if strings.HasPrefix(code.Name.ValueString(), sweepable) {
				if err := deleteCode(ctx, client, device.DeviceID, id); !errors.Is(err, errGone) {
					failed = append(failed, err)
				}
			}
		}
	}
	return errors.Join(failed...)
}

func sweepWebhooks(ctx context.Context, client *api.Client) error {
	answer, err := api.Call[api.WebhooksResponse](ctx, client.ListWebhooks, api.EmptyRequest{})
	if err != nil {
		return fmt.Errorf("list webhooks: %w", err)
	}
	var failed []error
	for _, webhook := range answer.Webhooks {
		if strings.Contains(webhook.URL, sweepable) {
			_, err := api.Call[api.OkResponse](
				ctx,
				client.DeleteWebhook,
				api.WebhookRequest{WebhookID: webhook.WebhookID},
			)
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func sweepACSUsers(ctx context.Context, client *api.Client) error {
	var failed []error
	for user, err := range client.AcsUsers(ctx, api.ListAcsUsersRequest{}) {
		if err != nil {
			return fmt.Errorf("list users of access systems: %w", err)
		}
		if strings.HasPrefix(user.FullName, sweepable) {
			request := api.AcsUserRequest{AcsUserID: user.AcsUserID}
			_, err := api.Call[api.OkResponse](ctx, client.DeleteAcsUser, request)
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func sweepUserIdentities(ctx context.Context, client *api.Client) error {
	var failed []error
	for identity, err := range client.UserIdentities(ctx) {
		if err != nil {
			return fmt.Errorf("list user identities: %w", err)
		}
		if strings.HasPrefix(identity.DisplayName, sweepable) {
			request := api.UserIdentityRequest{UserIdentityID: identity.UserIdentityID}
			_, err := api.Call[api.OkResponse](ctx, client.DeleteUserIdentity, request)
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func TestSweepersDeleteOnlyWhatTestsHaveLeft(t *testing.T) {
	srv := apptest.Start(t, apptest.WithProfiles("august"))
	t.Setenv(envAPIKey, srv.APIKey)
	t.Setenv(envEndpoint, srv.URL)
	device := srv.Device(t, "august")
	for _, name := range []string{sweepable + "guest", "Owner " + sweepable} {
		if status := srv.Post(
			t,
			"/access_codes/create",
			map[string]any{"device_id": device, "name": name},
			nil,
		); status != http.StatusOK {
			t.Fatal(status)
		}
	}
	for _, url := range []string{"https://" + sweepable + "1.example.com/a", "https://example.com/a"} {
		if status := srv.Post(t, "/webhooks/create", map[string]any{"url": url}, nil); status != http.StatusOK {
			t.Fatal(status)
		}
	}
	system := srv.AccessSystem(t)
	for _, name := range []string{sweepable + "person", "Person " + sweepable} {
		srv.Post(t, "/user_identities/create", map[string]any{"full_name": name}, nil)
		srv.Post(t, "/acs/users/create", map[string]any{"acs_system_id": system.ID, "full_name": name}, nil)
	}
	unmanaged := len(srv.UnmanagedCodes(t, device))
	for _, sweep := range []func(context.Context, *api.Client) error{
		sweepAccessCodes, sweepWebhooks, sweepACSUsers, sweepUserIdentities,
	} {
		if err := onConfiguredServer(sweep)("all"); err != nil {
			t.Fatal(err)
		}
	}
	var codes api.AccessCodesResponse
	srv.Post(t, "/access_codes/list", map[string]any{"device_id": device}, &codes)
	var webhooks api.WebhooksResponse
	srv.Post(t, "/webhooks/list", map[string]any{}, &webhooks)
	apptest.Until(t, "the swept user is deleted", func() bool {
		return userNamed(t, srv, sweepable+"person") == ""
	})
	var people api.UserIdentitiesResponse
	srv.Post(t, "/user_identities/list", map[string]any{}, &people)
	left := []string{}
	for _, person := range people.UserIdentities {
		left = append(left, person.DisplayName)
	}
	if userNamed(t, srv, "Person "+sweepable) == "" {
		t.Error("a user is swept that no test has left")
	}
	for _, code := range codes.AccessCodes {
		left = append(left, *code.Name)
	}
	for _, webhook := range webhooks.Webhooks {
		left = append(left, webhook.URL)
	}
	if want := []string{
		"Person " + sweepable,
		"Owner " + sweepable,
		"https://example.com/a",
	}; !slices.Equal(left, want) ||
		len(srv.UnmanagedCodes(t, device)) != unmanaged {
		t.Errorf("%q are left, want %q, and %d unmanaged codes", left, want, unmanaged)
	}
}
