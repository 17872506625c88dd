package provider

import (
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

func TestServerExclusiveAccessCodesLeavesAnOfflineCodeThatWasIssued(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("igloohome"))
	device := srv.Device(t, "igloohome")
	for _, code := range srv.UnmanagedCodes(t, device) {
		srv.Post(t, "/access_codes/unmanaged/delete", map[string]any{"access_code_id": code.AccessCodeID, "sync": true}, nil)
	}
	begins := time.Now().Truncate(time.Hour)
	var issued api.AccessCodeCreatedResponse
	if status := srv.Post(t, "/access_codes/create", map[string]any{"device_id": device, "name": "Guest", "is_offline_access_code": true, "sync": true,
		"starts_at": begins, "ends_at": begins.Add(5 * time.Hour)}, &issued); status != http.StatusOK {
		t.Fatalf("create: %d", status)
	}
	id := issued.AccessCode.AccessCodeID
	stays := []statecheck.StateCheck{
		statecheck.ExpectKnownValue(only, tfjsonpath.New("foreign_access_codes").AtMapKey(id).AtMapKey("can_be_deleted"), knownvalue.Bool(false)),
		statecheck.ExpectKnownValue(only, tfjsonpath.New("foreign_access_codes").AtMapKey(id).AtMapKey("is_managed"), knownvalue.Bool(true)),
	}
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: onServer(srv, exclusive(device)), ConfigStateChecks: stays},
		{Config: onServer(srv, exclusive(device)), ConfigPlanChecks: plansNothing(), ConfigStateChecks: stays},
		{Config: onServer(srv, exclusive(device, `"`+id+`"`))},
		{Config: onServer(srv, exclusive(device)), ConfigStateChecks: stays}, // taken out
		{Config: onServer(srv, exclusive(device)), ConfigPlanChecks: plansNothing()},
	}})
	if n := srv.Count("/access_codes/delete"); n != 0 {
		t.Errorf("%d deletions", n)
	}
}

func TestExclusiveAccessCodesSaysOfAnOfflineCodeThatItStays(t *testing.T) {
	t.Parallel()
	f := startCrowdedFake(t)
	delete(f.codes, first)
	w := newDirectory(t, map[string]string{"versions.tf": required, "main.tf": f.config(exclusive(lockA, `"`+keeper+`"`))})
	w.expect(true, "apply", "-auto-approve")
	w.expect(true, "plan", "-out=plan")
	f.do(func() { // issued while it was planned
		f.codes[second].offline, f.codes[second].startsAt, f.codes[second].endsAt = true, "2026-01-01T15:00:00Z", "2999-01-01T15:00:00Z"
	})
	f.then("/access_codes/delete", answerError(http.StatusBadRequest, cannotDeleteOffline, "Nobody can take it back from afar"))
	w.expect(false, "apply", "-no-color", "plan")
	expectSaid(t, "the apply", plainly(w.seen.String()), "Error: Delete other access codes", "It stays on the lock until it ends")
	expectSaid(t, "the plan after it", w.plain("plan"), "No changes", "Access codes that cannot be deleted", second+` "Guest" (offline code)`, "until they end")
}
