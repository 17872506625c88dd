package provider

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

func TestServerAccessCodeSetOnLocksOfSeveralVendors(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august", "nuki", "ttlock"))
	august, nuki, ttlock := srv.Device(t, "august"), srv.Device(t, "nuki"), srv.Device(t, "ttlock")
	config := func(more string, locks ...string) string { return onServer(srv, codeSet(more, locks...)) }
	pinOnAll := func(s *terraform.State) error {
		pin := attribute(s, nanny, "code")
		if len(pin) != 6 { // the only length of a Nuki
			return fmt.Errorf("the PIN has %d digits", len(pin))
		}
		for _, lock := range []string{august, nuki, ttlock} {
			if !srv.Lock(t, lock).Has(t, pin) {
				return fmt.Errorf("the PIN is not on %s", lock)
			}
		}
		return nil
	}
	offline := func(path string) func() {
		return func() { srv.Lock(t, ttlock).Control(t, http.MethodPost, path, nil) }
	}
	drive(t, resource.TestCase{
		CheckDestroy: func(*terraform.State) error {
			for _, lock := range []string{august, nuki, ttlock} {
				for _, code := range srv.Lock(t, lock).Memory(t) {
					if code.Name == "Nanny" {
						return fmt.Errorf("the code is still on %s", lock)
					}
				}
			}
			return nil
		},
		Steps: []resource.TestStep{
			{Config: config("", august, nuki, ttlock), ConfigStateChecks: allSet(august, nuki, ttlock), Check: pinOnAll},
			{Config: config("", august, nuki, ttlock), ConfigPlanChecks: plansNothing()},
			{
				PreConfig:   offline("/offline"),
				Config:      config("code = \"452613\"\n  timeouts {\n    update = \"15s\"\n  }", august, nuki, ttlock),
				ExpectError: says("Error: Set the access code on a lock", "("+ttlock+")", "The server keeps trying", "The other locks of the set are not affected"),
			},
			{
				PreConfig: func() {
					offline("/online")()
					apptest.Until(t, "the lock that was offline has the PIN", func() bool { return srv.Lock(t, ttlock).Has(t, "452613") })
					apptest.Until(t, "the server knows", func() bool { return managedOn(t, srv, ttlock)[0].Status == "set" })
				},
				Config:            config(`code = "452613"`, august, nuki, ttlock),
				ConfigStateChecks: append(allSet(august, nuki, ttlock), statecheck.ExpectKnownValue(nanny, tfjsonpath.New("code"), knownvalue.StringExact("452613"))),
				Check:             pinOnAll,
			},
		},
	})
}
