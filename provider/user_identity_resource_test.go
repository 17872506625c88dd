package provider

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

const (
	identityType = "deviceaccess_user_identity"
	guest        = identityType + ".guest"
)

// userIdentity is a user identity resource with these attributes.
func userIdentity(attributes string) string {
	return fmt.Sprintf("resource %q \"guest\" {\n  %s\n}\n", identityType, attributes)
}

// known are checks of attributes that are strings. An empty string means null.
func known(address string, attributes map[string]string) []statecheck.StateCheck {
	var checks []statecheck.StateCheck
	for name, value := range attributes {
		check := isText(value)
		if value == "" {
			check = knownvalue.Null()
		}
		checks = append(checks, statecheck.ExpectKnownValue(address, tfjsonpath.New(name), check))
	}
	return checks
}

// importsBy is a step that imports a resource by an attribute and compares it with the state.
func importsBy(address, attributeName string, ignored ...string) resource.TestStep {
	return resource.TestStep{
		ResourceName:                         address,
		ImportState:                          true,
		ImportStateVerify:                    true,
		ImportStateVerifyIdentifierAttribute: attributeName,
		ImportStateVerifyIgnore:              ignored,
		ImportStateIdFunc: func(s *terraform.State) (string, error) {
			return attribute(s, address, attributeName), nil
		},
	}
}

func TestServerUserIdentityIsCreatedUpdatedImportedAndDestroyed(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	identities := func() []api.UserIdentity {
		var list api.UserIdentitiesResponse
		srv.Post(t, "/user_identities/list", map[string]any{}, &list)
		return list.UserIdentities
	}
	first := `user_identity_key = "guest-1"
  full_name = "Jane Doe"
  email_address = "jane@example.com"
  phone_number = "+15555550100"`
	drive(t, resource.TestCase{
		CheckDestroy: func(*terraform.State) error {
			if left := identities(); len(left) != 0 {
				return fmt.Errorf("%d user identities are left", len(left))
			}
			return nil
		},
		Steps: []resource.TestStep{
			{Config: onServer(srv, userIdentity(first)), ConfigStateChecks: known(guest, map[string]string{
				"user_identity_key": "guest-1", "full_name": "Jane Doe", "phone_number": "+15555550100",
			})},
			{Config: onServer(srv, userIdentity(first)), ConfigPlanChecks: plansNothing()},
			importsBy(guest, "user_identity_id"),
			{
				Config:           onServer(srv, userIdentity(`full_name = "Jane Roe"`)),
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, guest),
				ConfigStateChecks: known(guest, map[string]string{
					"user_identity_key": "", "full_name": "Jane Roe", "email_address": "", "phone_number": "",
				}),
				Check: func(*terraform.State) error {
					is := identities()[0]
					if is.UserIdentityKey != nil || is.EmailAddress != nil || is.PhoneNumber != nil {
						return fmt.Errorf("removed attributes stay: %+v", is)
					}
					return nil
				},
			},
			{ // changed behind Terraform's back
				PreConfig: func() {
					srv.Post(t, "/user_identities/update", map[string]any{
						"user_identity_id": identities()[0].UserIdentityID, "email_address": "other@example.com",
					}, nil)
				},
				Config:            onServer(srv, userIdentity(`full_name = "Jane Roe"`)),
				ConfigPlanChecks:  plans(plancheck.ResourceActionUpdate, guest),
				ConfigStateChecks: known(guest, map[string]string{"email_address": ""}),
			},
			{ // deleted behind Terraform's back
				PreConfig: func() {
					srv.Post(t, "/user_identities/delete", map[string]any{
						"user_identity_id": identities()[0].UserIdentityID,
					}, nil)
				},
				Config:           onServer(srv, userIdentity(`full_name = "Jane Roe"`)),
				ConfigPlanChecks: plans(plancheck.ResourceActionCreate, guest),
			},
			{
				PreConfig: func() {
					srv.Post(t, "/user_identities/create", map[string]any{"email_address": "taken@example.com"}, nil)
				},
				Config:      onServer(srv, userIdentity(`email_address = "taken@example.com"`)),
				ExpectError: says("Another user identity has this email_address"),
			},
			{
				PreConfig: func() {
					for _, identity := range identities() {
						if identity.EmailAddress != nil {
							srv.Post(t, "/user_identities/delete",
								map[string]any{"user_identity_id": identity.UserIdentityID}, nil)
						}
					}
				},
				Config: onServer(srv, userIdentity(`full_name = "Jane Roe"`)),
			},
		},
	})
}

func TestUpdatesOfAUserIdentityAskForWhatDiffers(t *testing.T) {
	t.Parallel()
	state := userIdentityModel{UserIdentityID: types.StringValue("i1"), FullName: types.StringValue("Jane")}
	for attributeName, change := range map[string]func(*userIdentityModel){
		"user_identity_key": func(m *userIdentityModel) { m.UserIdentityKey = types.StringValue("x") },
		"full_name":         func(m *userIdentityModel) { m.FullName = types.StringNull() },
		"email_address":     func(m *userIdentityModel) { m.EmailAddress = types.StringValue("x") },
		"phone_number":      func(m *userIdentityModel) { m.PhoneNumber = types.StringValue("x") },
	} {
		plan := state
		change(&plan)
		asked := slices.Sorted(maps.Keys(asks(t, plan.updateRequest(&state))))
		want := slices.Sorted(slices.Values([]string{attributeName, "user_identity_id"}))
		if !slices.Equal(asked, want) {
			t.Errorf("%s: asks for %q", attributeName, asked)
		}
	}
}
