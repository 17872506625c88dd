package provider

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

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
	acsUserType = "deviceaccess_acs_user"
	visitor     = acsUserType + ".visitor"
)

// acsUser is a user of an access system with these attributes.
func acsUser(system, attributes string) string {
	return fmt.Sprintf("resource %q \"visitor\" {\n  acs_system_id = %q\n  %s\n}\n", acsUserType, system, attributes)
}

func TestServerACSUserIsCreatedUpdatedImportedAndDestroyed(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	system := srv.AccessSystem(t)
	groups := accessGroups(t, srv)
	onSystem := func(name string, check func(apptest.PersonOnSystem) bool) resource.TestCheckFunc {
		return func(*terraform.State) error {
			if people := system.Named(t, name); len(people) != 1 || !check(people[0]) {
				return fmt.Errorf("the access system has %+v", people)
			}
			return nil
		}
	}
	config := func(attributes string) string {
		return onServer(srv, userIdentity(`full_name = "Jane Doe"`)+acsUser(system.ID, attributes))
	}
	first := `full_name = "Jane Doe"
  email_address = "doe@example.com"
  phone_number = "+15555550100"
  user_identity_id = ` + guest + `.user_identity_id
  acs_access_group_ids = ["` + groups[0] + `"]
  starts_at = "2030-01-01T01:00:00+01:00"
  ends_at = "2031-01-01T00:00:00Z"`
	drive(t, resource.TestCase{
		CheckDestroy: func(*terraform.State) error {
			if left := system.Named(t, "Jane Roe"); len(left) != 0 {
				return fmt.Errorf("the access system still has %+v", left)
			}
			return nil
		},
		Steps: []resource.TestStep{
			{
				Config: config(first),
				ConfigStateChecks: known(visitor, map[string]string{
					"connected_account_id": system.AccountID, "starts_at": "2030-01-01T01:00:00+01:00",
				}),
				Check: onSystem("Jane Doe", func(p apptest.PersonOnSystem) bool {
					return p.Email == "doe@example.com" && p.EndsAt != nil && len(p.GroupIDs) == 1
				}),
			},
			{Config: config(first), ConfigPlanChecks: plansNothing()},
			// The same instant has another spelling, and groups that are not configured are not read.
			importsBy(visitor, "acs_user_id", "starts_at", "acs_access_group_ids.#", "acs_access_group_ids.0"),
			{ // other groups
				Config:           config(strings.Replace(first, groups[0], groups[1], 1)),
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, visitor),
				Check: onSystem("Jane Doe", func(p apptest.PersonOnSystem) bool {
					return len(p.GroupIDs) == 1 && inGroup(t, srv, groups[1])
				}),
			},
			{ // changed behind Terraform's back
				PreConfig: func() {
					srv.Post(t, "/acs/users/add_to_access_group", map[string]any{
						"acs_user_id": userNamed(t, srv, "Jane Doe"), "acs_access_group_id": groups[0],
					}, nil)
				},
				Config:           config(strings.Replace(first, groups[0], groups[1], 1)),
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, visitor),
				Check: onSystem(
					"Jane Doe",
					func(p apptest.PersonOnSystem) bool { return len(p.GroupIDs) == 1 },
				),
			},
			{ // servers cannot remove an address
				Config:           config(`full_name = "Jane Roe"`),
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, visitor),
				ConfigStateChecks: known(visitor, map[string]string{
					"email_address": "doe@example.com", "user_identity_id": "", "starts_at": "", "ends_at": "",
				}),
				Check: onSystem("Jane Roe", func(p apptest.PersonOnSystem) bool {
					return p.StartsAt == nil && p.EndsAt == nil && len(p.GroupIDs) == 1
				}),
			},
			{
				Config:           config("full_name = \"Jane Roe\"\n  is_suspended = true"),
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, visitor),
				Check:            onSystem("Jane Roe", func(p apptest.PersonOnSystem) bool { return p.Suspended }),
			},
			{ // a suspension stays unless the configuration ends it
				Config:           config(`full_name = "Jane Roe"`),
				ConfigPlanChecks: plansNothing(),
			},
			{
				Config:           config("full_name = \"Jane Roe\"\n  is_suspended = false"),
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, visitor),
				Check:            onSystem("Jane Roe", func(p apptest.PersonOnSystem) bool { return !p.Suspended }),
			},
			{ // deleted behind Terraform's back
				PreConfig: func() {
					srv.Post(t, "/acs/users/delete", map[string]any{
						"acs_user_id": userNamed(t, srv, "Jane Roe"),
					}, nil)
					apptest.Until(t, "the user is deleted", func() bool { return userNamed(t, srv, "Jane Roe") == "" })
				},
				Config:           config("full_name = \"Jane Roe\"\n  is_suspended = true"),
				ConfigPlanChecks: plans(plancheck.ResourceActionCreate, visitor),
				Check:            onSystem("Jane Roe", func(p apptest.PersonOnSystem) bool { return p.Suspended }),
			},
		},
	})
}

// accessGroups are the identifiers of all access groups.
func accessGroups(t *testing.T, srv *apptest.Server) (ids []string) {
	t.Helper()
	var list api.AcsAccessGroupsResponse
	srv.Post(t, "/acs/access_groups/list", map[string]any{}, &list)
	for _, group := range list.AcsAccessGroups {
		ids = append(ids, group.AcsAccessGroupID)
	}
	if len(ids) < 2 {
		t.Fatalf("%d access groups do not try it", len(ids))
	}
	return ids
}

// inGroup reports whether Jane Doe is in an access group, and in no other.
func inGroup(t *testing.T, srv *apptest.Server, group string) bool {
	t.Helper()
	var list api.AcsAccessGroupsResponse
	srv.Post(t, "/acs/access_groups/list", map[string]any{"acs_user_id": userNamed(t, srv, "Jane Doe")}, &list)
	return len(list.AcsAccessGroups) == 1 && list.AcsAccessGroups[0].AcsAccessGroupID == group
}

// userNamed is the identifier of the managed user with a name, or "".
func userNamed(t *testing.T, srv *apptest.Server, name string) string {
	t.Helper()
	var list struct {
		Users []struct {
			ID       string `json:"acs_user_id"`
			FullName string `json:"full_name"`
		} `json:"acs_users"`
	}
	srv.Post(t, "/acs/users/list", map[string]any{}, &list)
	for _, user := range list.Users {
		if user.FullName == name {
			return user.ID
		}
	}
	return ""
}

func TestServerACSUserOfAnOfflineSystemIsNotTainted(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	system := srv.AccessSystem(t)
	config := func(more string) string {
		return onServer(srv, acsUser(system.ID, `full_name = "Jane Doe"`+more+`
  timeouts {
    create = "2s"
    update = "2s"
    delete = "2s"
  }`))
	}
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{
			PreConfig: func() { system.Control(t, http.MethodPost, "/offline", nil, nil) },
			Config:    config(""),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(visitor, tfjsonpath.New("acs_user_id"), knownvalue.NotNull()),
			},
		},
		{Config: config(""), ConfigPlanChecks: plansNothing()},
		{
			Config:           config("\n  email_address = \"doe@example.com\""),
			ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, visitor),
		},
		{
			Config:      config("\n  email_address = \"doe@example.com\""),
			Destroy:     true,
			ExpectError: says("Jane Doe", "had not confirmed the change"),
		},
		{
			PreConfig: func() {
				system.Control(t, http.MethodPost, "/online", nil, nil)
				apptest.Until(t, "the user is deleted", func() bool { return userNamed(t, srv, "Jane Doe") == "" })
			},
			Config:           config(""),
			ConfigPlanChecks: plans(plancheck.ResourceActionCreate, visitor),
		},
	}})
}

func TestServerACSUserErrorsPointToTheAttribute(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	system := srv.AccessSystem(t)
	const sooner, later = "2031-01-01T00:00:00Z", "2031-01-02T00:00:00Z"
	for attributes, want := range map[string][]string{
		`phone_number = "123"`:                                          {"Could not create user", `phone_number = "123"`},
		`email_address = "nonsense"`:                                    {"Could not create user", `email_address = "nonsense"`},
		`ends_at = "2031-01-01T00:00:00Z"`:                              {"`ends_at` goes together with `starts_at`"},
		`user_identity_id = "` + keeper + `"`:                           {"user_identity_id =", "user_identity_not_found"},
		`acs_access_group_ids = ["` + keeper + `"]`:                     {"acs_access_group_ids =", "acs_access_group_not_found"},
		"starts_at = \"" + later + "\"\n  ends_at = \"" + sooner + "\"": {"The access ends before it starts"},
	} {
		drive(t, resource.TestCase{Steps: []resource.TestStep{
			{
				Config:      onServer(srv, acsUser(system.ID, "full_name = \"Jane\"\n  "+attributes)),
				ExpectError: says(want...),
			},
		}})
	}
}

func TestACSUserThatIsNotSuspended_NextApplySuspends(t *testing.T) {
	t.Parallel()
	const suspended = acsUserType + ", suspended"
	w := startRuleWalk(t, acsUserType, ruleRows()[suspended])
	w.writes = true
	end := w.strike(ruleFaults["the key is revoked"], false)
	w.expect(true, "apply", "-auto-approve")
	expectSaid(t, "the apply", plainly(w.seen.String()), "User may not be suspended", "can open doors", "Apply again")
	end()
	w.expect(true, "apply", "-auto-approve")
	for _, user := range w.f.acsUsers {
		if user["is_suspended"] != true {
			t.Error("the user is not suspended")
		}
	}
	w.expect(true, "plan", "-detailed-exitcode")
}
