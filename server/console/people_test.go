package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// guest is a person with a user on an access system.
type guest struct{ identity, user string }

// addGuest creates a person with a user on an access system.
func addGuest(t *testing.T, b *bed, system *apptest.AccessSystem, name, email string) guest {
	t.Helper()
	var identity struct {
		UserIdentity struct {
			UserIdentityID string   `json:"user_identity_id"`
			AcsUserIDs     []string `json:"acs_user_ids"`
		} `json:"user_identity"`
	}
	if status := b.Post(t, "/user_identities/create", map[string]any{
		"full_name": name, "email_address": email, "acs_system_ids": []string{system.ID},
	}, &identity); status != http.StatusOK {
		t.Fatalf("create a person: %d", status)
	}
	var users struct {
		AcsUsers []struct {
			AcsUserID string `json:"acs_user_id"`
		} `json:"acs_users"`
	}
	b.Post(t, "/acs/users/list", map[string]any{"user_identity_id": identity.UserIdentity.UserIdentityID}, &users)
	if len(users.AcsUsers) != 1 {
		t.Fatalf("the person has %d users", len(users.AcsUsers))
	}
	return guest{identity.UserIdentity.UserIdentityID, users.AcsUsers[0].AcsUserID}
}

func TestPeople_ListsAndFilters(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("august"))
	system := b.AccessSystem(t)
	ada := addGuest(t, b, system, "Ada Adams", "ada@example.com")
	addGuest(t, b, system, "Bo Brown", "bo@example.com")

	mustContain(t, mustOpen(t, b, "/people"), "Ada Adams", "Bo Brown", "/people/"+ada.identity)
	mustLack(t, mainPart(mustOpen(t, b, "/people?q=ada@")), "Bo Brown")
	mustContain(t, mustOpen(t, b, "/people?q=ADA&system="+system.ID), "Ada Adams")
	mustContain(t, mustOpen(t, b, "/people?q=absent"), "No people here")

	mustContain(t, mustOpen(t, b, "/people/users?q=ada"), "/people/users/"+ada.user)
	mustLack(t, mustOpen(t, b, "/people/users?state=suspended"), "Ada Adams")
	mustLack(t, mustOpen(t, b, "/people/users?state=unmanaged"), "Ada Adams")
	mustContain(t, mustOpen(t, b, "/people/users?state=unmanaged&system="+system.ID), "Created at the system")

	groups := mustOpen(t, b, "/people/groups")
	group := regexp.MustCompile(`/people/groups/[0-9a-f-]{36}`).FindString(groups)
	mustContain(t, mustOpen(t, b, group), "Entrances", "Users")

	identity := mustOpen(t, b, "/people/"+ada.identity)
	mustContain(t, identity, "Ada Adams", "ada@example.com", "/people/users/"+ada.user)
	mustLack(t, identity, "/remove")
	if status, _ := openPage(t, b, domain.RoleViewer, "/people/"+ada.user); status != http.StatusNotFound {
		t.Errorf("the page of a user as a person: %d", status)
	}
}

func TestPeople_GroupsHavePages(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("august"))
	system := b.AccessSystem(t)
	b.Exec(t, `insert into acs_access_groups
			(acs_access_group_id, workspace_id, acs_system_id, vendor_ref, name, entrance_refs, created_at)
		select gen_random_uuid(), $1, $2, 'copy ' || i, 'Paged group ' || i, '{}', now() - i / 3 * interval '1 s'
		from generate_series(1, 120) i`, b.WorkspaceID, system.ID)
	checkPages(t, b, b.page("/people/groups?q=Paged"), "after", `Paged group \d+`)
}

func TestPeople_SuspendUnsuspendRemove(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("august"))
	system := b.AccessSystem(t)
	ada := addGuest(t, b, system, "Ada Adams", "ada@example.com")
	user := "/people/users/" + ada.user
	isActive := func() bool { return strings.Contains(mustOpen(t, b, user), "Active") }
	apptest.Until(t, "the user is on the system", isActive)

	for _, path := range []string{user + "/suspend", user + "/unsuspend", user + "/remove", "/people/" + ada.identity + "/remove"} {
		if status, _ := sendForm(t, b, domain.RoleViewer, path); status != http.StatusForbidden {
			t.Errorf("a viewer posts %s: %d", path, status)
		}
	}
	mustContain(t, mustSend(t, b, user+"/suspend"), "Unsuspend", "is suspended")
	apptest.Until(t, "the user is suspended on the system", func() bool {
		on := system.Named(t, "Ada Adams")
		return len(on) == 1 && on[0].Suspended
	})
	mustContain(t, mustOpen(t, b, "/people/users?state=suspended"), "Ada Adams")
	mustContain(t, mustSend(t, b, user+"/unsuspend"), "no longer suspended")
	apptest.Until(t, "the user is active again", isActive)

	mustContain(t, mustSend(t, b, user+"/remove"), "is being removed")
	apptest.Until(t, "the user has left the system", func() bool { return len(system.Named(t, "Ada Adams")) == 0 })

	mustContain(t, mustSend(t, b, "/people/"+ada.identity+"/remove"), "The person was removed")
	if status, _ := openPage(t, b, domain.RoleViewer, "/people/"+ada.identity); status != http.StatusNotFound {
		t.Errorf("a removed person: %d", status)
	}
}

func TestPeople_ShowWhatTheSystemHasNotTaken(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("august"))
	system := b.AccessSystem(t)
	system.Account(t, "revoke")
	ada := addGuest(t, b, system, "Ada Adams", "ada@example.com")
	mustContain(t, mustOpen(t, b, "/people/users?state=pending"), "Ada Adams", "Waiting for the system")
	mustContain(t, mustOpen(t, b, "/people/users/"+ada.user), "has not taken these changes yet")
}

func TestLooks_PeopleSettingsAndSearch(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("august", "yale"))
	system := b.AccessSystem(t)
	ada := addGuest(t, b, system, "Ada Adams", "ada@example.com")
	addGuest(t, b, system, "Bo Brown", "bo@example.com")
	group := regexp.MustCompile(`/people/groups/[0-9a-f-]{36}`).FindString(mustOpen(t, b, "/people/groups"))
	checkLooks(t, b,
		visit{"people", "/people"}, visit{"person", "/people/" + ada.identity},
		visit{"users", "/people/users"}, visit{"user", "/people/users/" + ada.user},
		visit{"groups", "/people/groups"}, visit{"group", group},
		visit{"settings", "/settings"}, visit{"search", "/search?q=a"}, visit{"search hits", "/search?q=ad"},
	)
}
