package provider

import (
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

func TestServerOfflineCodeWhoseTimeFrameIsNotKnownYet(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("igloohome"))
	device := srv.Device(t, "igloohome")
	begins := time.Now().Truncate(time.Hour).Add(20 * time.Minute).UTC()
	// The output is known again when the run has come to it.
	config := func(run int, ends time.Time) string {
		return onServer(srv, fmt.Sprintf("resource \"terraform_data\" \"stay\" {\n  input = [%q, %q]\n  triggers_replace = %d\n}\n",
			begins.Format(time.RFC3339), ends.Format(time.RFC3339), run)+
			accessCodeOn(device, "is_offline_access_code = true\n  name = \"Guest\"\n  starts_at = terraform_data.stay.output[0]\n  ends_at = terraform_data.stay.output[1]"))
	}
	ends := begins.Add(3 * time.Hour)
	play(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config(1, ends)},
		{Config: config(2, ends), ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front)},
		{Config: config(2, ends), ConfigPlanChecks: plansNothing()},
		{Config: config(3, ends.Add(9*time.Hour)), ExpectError: says("ends_at", "neither changed nor deleted")},
		{Config: config(4, ends), ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front)},
		{Config: onServer(srv, forgotten)},
	}})
	if n := srv.Count("/access_codes/create"); n != 1 {
		t.Errorf("%d codes were created", n)
	}
}
