package provider

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
)

// otherServers are servers of this API that are odd, each in one way. All live through the same story, and differ in
// what they are asked for.
var otherServers = map[string]struct {
	odd      func(*fake)
	settings string // of the provider
	asked    map[string]int
	replaces bool // a webhook, where others change it
}{
	"the usual one": {
		odd:   func(*fake) {},
		asked: map[string]int{converting: 1, oldConverting: 0, "/webhooks/create": 1},
	},
	"without attempts or pagination": {
		odd:   func(f *fake) { f.noAttempts, f.noPagination = true, true },
		asked: map[string]int{"/action_attempts/get": 0, converting: 1},
	},
	"that forgets attempts": {
		odd:   func(f *fake) { f.forgetsAttempts, f.nextAttempt = true, settlesAtOnce },
		asked: map[string]int{converting: 1},
	},
	"that expands the wildcard": {
		odd:   func(f *fake) { f.expandsWildcard = true },
		asked: map[string]int{"/webhooks/create": 1},
	},
	"that tells a secret once": {
		odd:   func(f *fake) { f.secretOnce = true },
		asked: map[string]int{"/webhooks/create": 1},
	},
	"whose 404 has no reason": {
		odd:   func(f *fake) { f.plainNotFound = true },
		asked: map[string]int{converting: 1},
	},
	"whose identifiers are no UUIDs": {
		odd:   func(f *fake) { f.anyID, f.newID = true, numbered("id:") },
		asked: map[string]int{converting: 1},
	},
	"that lists every device's codes": {
		odd:   func(f *fake) { f.listsAllDevices, f.lacks = true, []string{"/access_codes/unmanaged/get"} },
		asked: map[string]int{converting: 1},
	},
	"that does not say what the route and the time frame tell": {
		odd: func(f *fake) {
			f.omits = []string{"is_managed", "type", "is_external_modification_allowed", "errors", "warnings"}
		},
		asked: map[string]int{converting: 1},
	},
	"that mixes managed and unmanaged codes": {
		odd:   func(f *fake) { f.mixesCodes = true },
		asked: map[string]int{converting: 1},
	},
	"that cannot change webhooks": {
		odd:   func(f *fake) { f.lacks = []string{"/webhooks/update"} },
		asked: map[string]int{"/webhooks/create": 2, "/webhooks/delete": 1}, replaces: true,
	},
	"that converts by an update": {
		odd:   func(f *fake) { f.lacks = []string{converting, "/access_codes/unmanaged/get"} },
		asked: map[string]int{converting: 1, oldConverting: 1},
	},
	"whose codes are never set": {
		odd:      func(f *fake) { f.noAttempts, f.neverSet = true, true },
		settings: "wait_until_on_lock = false",
		asked:    map[string]int{converting: 1},
	},
}

const oldConverting = "/access_codes/unmanaged/update"

func TestOtherServersOfThisAPI(t *testing.T) {
	for name, server := range otherServers {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			server.odd(f)
			id := f.unmanaged(fakeCode{name: "Plumber", code: "640297"})
			f.do(func() {
				f.codes["elsewhere"] = &fakeCode{
					device: "another",
					name:   "Cook",
					code:   "715938",
					status: "set",
				}
			})
			config := func(eventTypes, name string) string {
				return fmt.Sprintf(
					"provider \"deviceaccess\" {\n  endpoint = %q\n  api_key = %q\n  %s\n}\n",
					f.URL,
					fakeKey,
					server.settings,
				) +
					webhook(
						"https://example.com/a",
						eventTypes,
					) + accessCode(
					"code = \"905173\"\n  name = \""+name+"\"",
				) + fmt.Sprintf(
					`
resource "deviceaccess_access_code" "adopted" {
  device_id = %[1]q
  name      = "Plumber"
}
import {
  to = deviceaccess_access_code.adopted
  id = "%[1]s/%[2]s"
}
data "deviceaccess_unmanaged_access_codes" "these" {
  device_id  = %[1]q
  depends_on = [deviceaccess_access_code.adopted]
}
`,
					fakeDevice,
					id,
				)
			}
			run(t, resource.TestCase{
				CheckDestroy: func(*terraform.State) error {
					if len(f.codes) != 1 || len(f.webhooks) != 0 {
						return fmt.Errorf("%d codes and %d webhooks are left", len(f.codes), len(f.webhooks))
					}
					return nil
				},
				Steps: []resource.TestStep{
					{Config: config("", "Guest"), ConfigStateChecks: []statecheck.StateCheck{
						eventTypes("*"),
						has("is_managed", knownvalue.Bool(true)),
						statecheck.ExpectKnownValue(
							"data.deviceaccess_unmanaged_access_codes.these",
							tfjsonpath.New("access_codes"),
							knownvalue.ListSizeExact(0),
						),
					}},
					{Config: config("", "Guest"), ConfigPlanChecks: plansNothing()},
					{
						Config: config(`event_types = ["device.connected"]`, "Cleaner"),
						ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
							plancheck.ExpectResourceAction(hook, webhookChange(server.replaces)),
							plancheck.ExpectResourceAction(front, plancheck.ResourceActionUpdate),
						}},
					},
					{ // deleted elsewhere
						PreConfig: func() {
							f.do(func() {
								clear(f.webhooks)
								for id, c := range f.codes {
									if c.name == "Cleaner" {
										delete(f.codes, id)
									}
								}
							})
						},
						Config: config(
							`event_types = ["device.connected"]`,
							"Cleaner",
						),
						PlanOnly:           true,
						ExpectNonEmptyPlan: true,
					},
					{Config: f.config("")},
				},
			})
			for path, want := range server.asked {
				if got := f.count(path); got != want {
					t.Errorf("%s was asked for %d times, want %d", path, got, want)
				}
			}
			if n := f.count("/access_codes/create"); n != 1 {
				t.Errorf("%d codes were created", n)
			}
		})
	}
}

func webhookChange(replaces bool) plancheck.ResourceActionType {
	if replaces {
		return plancheck.ResourceActionDestroyBeforeCreate
	}
	return plancheck.ResourceActionUpdate
}

// settlesAtOnce is an attempt that takes effect before anybody looks at it.
func settlesAtOnce(a *fakeAttempt) { a.effect() }

// numbered makes identifiers of its own kind.
func numbered(prefix string) func() string {
	n := 0
	return func() string { n++; return fmt.Sprintf("%s%d", prefix, n) }
}

// isMissing says whether the fake does not have an operation.
func (f *fake) isMissing(path string) bool { return slices.Contains(f.lacks, path) }
