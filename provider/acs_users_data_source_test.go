package provider

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

func TestServerACSUsersAreListed(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	first, second := srv.AccessSystem(t), srv.AccessSystem(t)
	var person api.UserIdentityResponse
	srv.Post(t, "/user_identities/create", map[string]any{"email_address": "jane@example.com"}, &person)
	create := func(params map[string]any) {
		t.Helper()
		if status := srv.Post(t, "/acs/users/create", params, nil); status != http.StatusOK {
			t.Fatalf("create: %d", status)
		}
	}
	create(
		map[string]any{
			"acs_system_id":    first.ID,
			"full_name":        "Jane Doe",
			"email_address":    "doe@example.com",
			"phone_number":     "+15555550100",
			"user_identity_id": person.UserIdentity.UserIdentityID,
			"access_schedule":  map[string]any{"starts_at": "2030-01-01T00:00:00Z", "ends_at": "2031-01-01T00:00:00Z"},
		},
	)
	create(map[string]any{"acs_system_id": second.ID, "full_name": "Joe"})
	apptest.Until(t, "the users are on their systems", func() bool {
		return len(first.Named(t, "Jane Doe")) == 1 && len(second.Named(t, "Joe")) == 1
	})
	var joe api.AcsUsersResponse
	apptest.Until(t, "that is known", func() bool {
		joe = api.AcsUsersResponse{}
		srv.Post(t, "/acs/users/list", map[string]any{}, &joe)
		return len(joe.AcsUsers) == 2 &&
			len(joe.AcsUsers[0].PendingMutations)+len(joe.AcsUsers[1].PendingMutations) == 0
	})
	const data = "data.deviceaccess_acs_users.these"
	these := func(conditions string) string {
		return onServer(srv, "data \"deviceaccess_acs_users\" \"these\" {\n"+conditions+"}\n")
	}
	has := func(n int, fields map[string]knownvalue.Check) []statecheck.StateCheck {
		users := tfjsonpath.New("acs_users")
		checks := []statecheck.StateCheck{statecheck.ExpectKnownValue(data, users, knownvalue.ListSizeExact(n))}
		if n > 0 {
			checks = append(
				checks,
				statecheck.ExpectKnownValue(data, users.AtSliceIndex(0), knownvalue.ObjectPartial(fields)),
			)
		}
		return checks
	}
	jane := map[string]knownvalue.Check{
		"full_name": isText(
			"Jane Doe",
		),
		"email_address": isText("doe@example.com"),
		"phone_number":  isText("+15555550100"),
		"acs_system_id": isText(first.ID),
		"connected_account_id": isText(
			first.AccountID,
		),
		"user_identity_id": isText(person.UserIdentity.UserIdentityID),
		"is_suspended":     knownvalue.Bool(false),
		"starts_at": isText(
			"2030-01-01T00:00:00Z",
		),
		"ends_at":    isText("2031-01-01T00:00:00Z"),
		"is_pending": knownvalue.Bool(false),
		"problems":   knownvalue.ListSizeExact(0),
	}
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: these(""), ConfigStateChecks: has(2, jane)},
		{Config: these("  user_identity_email_address = \"JANE@example.com\"\n"), ConfigStateChecks: has(1, jane)},
		{
			Config: these(
				fmt.Sprintf("  user_identity_id = %q\n  search = \"doe\"\n", person.UserIdentity.UserIdentityID),
			),
			ConfigStateChecks: has(1, jane),
		},
		{Config: these("  user_identity_phone_number = \"+15555550100\"\n"), ConfigStateChecks: has(0, nil)},
		{
			PreConfig: func() {
				second.Control(t, http.MethodPost, "/offline", nil, nil)
				if status := srv.Post(
					t,
					"/acs/users/suspend",
					map[string]any{"acs_user_id": joe.AcsUsers[1].AcsUserID},
					nil,
				); status != http.StatusOK {
					t.Errorf("suspend: %d", status)
				}
				apptest.Until(t, "the failure is told", func() bool {
					var got api.AcsUserResponse
					srv.Post(t, "/acs/users/get", map[string]any{"acs_user_id": joe.AcsUsers[1].AcsUserID}, &got)
					return len(got.AcsUser.Errors) == 1
				})
			},
			Config: these(fmt.Sprintf("  acs_system_id = %q\n", second.ID)),
			ConfigStateChecks: has(
				1,
				map[string]knownvalue.Check{
					"full_name":        isText("Joe"),
					"user_identity_id": knownvalue.Null(),
					"starts_at":        knownvalue.Null(),
					"is_suspended":     knownvalue.Bool(true),
					"is_pending":       knownvalue.Bool(true),
					"problems": knownvalue.ListExact(
						[]knownvalue.Check{isText("failed_to_update_on_acs_system")},
					),
				},
			),
		},
	}})
}

func TestACSUserWithoutAnEndIsFilled(t *testing.T) {
	t.Parallel()
	var m acsUserModel
	m.fill(&api.AcsUser{AccessSchedule: &api.AcsAccessSchedule{StartsAt: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}})
	if m.StartsAt.ValueString() != "2030-01-01T00:00:00Z" || !m.EndsAt.IsNull() || !m.IsSuspended.IsNull() {
		t.Errorf("%+v", m)
	}
}
