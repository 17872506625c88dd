package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
)

// unknownInPlan checks which attributes of a resource a plan shows as known after apply.
type unknownInPlan struct {
	address string
	want    []string
}

func (u unknownInPlan) CheckPlan(_ context.Context, req plancheck.CheckPlanRequest, resp *plancheck.CheckPlanResponse) {
	for _, change := range req.Plan.ResourceChanges {
		if change.Address != u.address {
			continue
		}
		got := unknownParts("", change.Change.AfterUnknown)
		if slices.Sort(
			got,
		); !change.Change.Actions.Update() ||
			!slices.Equal(got, slices.Sorted(slices.Values(u.want))) {
			resp.Error = fmt.Errorf(
				"the plan is to %v, and unknown are %q, want %q",
				change.Change.Actions,
				got,
				u.want,
			)
		}
		return
	}
	resp.Error = fmt.Errorf("the plan has no %s", u.address)
}

// unknownParts are the paths of what is true in after_unknown.
func unknownParts(at string, value any) (paths []string) {
	switch value := value.(type) {
	case bool:
		if value {
			paths = append(paths, strings.TrimPrefix(at, "."))
		}
	case map[string]any:
		for name, part := range value {
			paths = append(paths, unknownParts(at+"."+name, part)...)
		}
	case []any:
		for i, part := range value {
			paths = append(paths, unknownParts(fmt.Sprint(at, ".", i), part)...)
		}
	}
	return paths
}

func leavesUnknown(address string, want ...string) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{unknownInPlan{address, want}}}
}

// replaces stands for attributes whose change replaces the resource.
var replaces = []string{"replaces"}

// A plan shows what changes, and not what is only read again.
func TestUpdatesLeaveNothingUnknownThatTheyDoNotChange(t *testing.T) {
	const longer = "  timeouts {\n    update = \"9m\"\n  }\n"
	later := frame(time.Hour, time.Hour)
	withName := func(more string) string { return "name = \"Guest\"\n  " + more }
	for typeName, c := range map[string]struct {
		address string
		config  func(more string) string // of a resource with this in its block
		before  string
		updates map[string]struct { // by attribute
			after   string
			unknown []string
		}
	}{
		"deviceaccess_access_code": {
			address: front,
			config:  accessCode,
			before:  withName(`code = "2468"`),
			updates: map[string]struct {
				after   string
				unknown []string
			}{
				"name":                             {"name = \"Cook\"\n  code = \"2468\"", nil},
				"code":                             {withName(`code = "8642"`), nil},
				"code_wo":                          {withName(writtenOnly("8642", 1)), nil},
				"code_wo_version":                  {withName(writtenOnly("2468", 2)), nil},
				"starts_at":                        {withName("code = \"2468\"\n" + later), []string{"status"}},
				"ends_at":                          {withName("code = \"2468\"\n" + later), []string{"status"}},
				"is_external_modification_allowed": {withName("code = \"2468\"\n  is_external_modification_allowed = true"), nil},
				"wait_until_on_lock":               {withName("code = \"2468\"\n  wait_until_on_lock = false"), nil},
				"attempt_for_offline_device":       {withName("code = \"2468\"\n  attempt_for_offline_device = false"), nil},
				"keepers":                          {withName("code = \"2468\"\n  keepers = { tenant = \"Ada\" }"), nil},
				"timeouts":                         {withName("code = \"2468\"\n" + longer), nil},
				"device_id":                        {"", replaces},
				"offline":                          {"", replaces},
				"backup":                           {"", replaces},
				"common_code_key":                  {"", replaces},
				"preferred_code_length":            {"", replaces},
				"prefer_native_scheduling":         {"", replaces},
			},
		},
		"deviceaccess_shared_access_code": {
			address: nanny,
			config: func(more string) string {
				return strings.Replace(codeSet("", lockA), "name = \"Nanny\"\n", more+"\n", 1)
			},
			before: withName(`code = "905173846251"`),
			updates: map[string]struct {
				after   string
				unknown []string
			}{
				"name":            {"name = \"Cook\"\n  code = \"905173846251\"", []string{"access_codes." + lockA}},
				"code":            {withName(`code = "905173846252"`), []string{"access_codes." + lockA}},
				"code_wo":         {withName(writtenOnly("905173846252", 1)), []string{"access_codes." + lockA}},
				"code_wo_version": {withName(writtenOnly("905173846251", 2)), []string{"access_codes." + lockA}},
				"starts_at":       {withName("code = \"905173846251\"\n" + later), []string{"access_codes." + lockA}},
				"ends_at":         {withName("code = \"905173846251\"\n" + later), []string{"access_codes." + lockA}},
				"keepers":         {withName("code = \"905173846251\"\n  keepers = { tenant = \"Ada\" }"), nil},
				"timeouts":        {withName("code = \"905173846251\"\n" + longer), nil},
				"device_ids":      {"", replaces}, // see TestUpdateOfOneLockLeavesTheOthersKnown
			},
		},
		"deviceaccess_access_codes_exclusive": {
			address: only,
			config: func(more string) string {
				return strings.Replace(exclusive(lockA), "access_code_ids = []\n", more+"\n", 1)
			},
			before: `access_code_ids = []`,
			updates: map[string]struct {
				after   string
				unknown []string
			}{
				"access_code_ids": {fmt.Sprintf("access_code_ids = [%q]", keeper), []string{"foreign_access_codes"}},
				"timeouts":        {"access_code_ids = []\n" + longer, nil},
				"device_id":       {"", replaces},
			},
		},
		"deviceaccess_webhook": {
			address: hook,
			config:  func(more string) string { return webhook("https://example.com/a", more) },
			updates: map[string]struct {
				after   string
				unknown []string
			}{
				"event_types":    {`event_types = ["device.connected"]`, nil},
				"secret_version": {"secret_version = 1", nil},
				"store_secret":   {"store_secret = false", nil},
				"url":            {"", replaces},
			},
		},
	} {
		tried := slices.DeleteFunc(
			slices.Sorted(maps.Keys(c.updates)),
			func(name string) bool { return name == "timeouts" },
		)
		if want := configurable(t, typeName); !slices.Equal(tried, want) {
			t.Errorf("%s has %q, this test tries %q", typeName, want, tried)
		}
		for attribute, update := range c.updates {
			if slices.Equal(update.unknown, replaces) {
				continue
			}
			t.Run(typeName+" "+attribute, func(t *testing.T) {
				f := startFakeLocks(t)
				run(t, resource.TestCase{Steps: []resource.TestStep{
					{Config: f.config(c.config(c.before))},
					{
						Config:           f.config(c.config(update.after)),
						ConfigPlanChecks: leavesUnknown(c.address, update.unknown...),
					},
					{Config: f.config(c.config(update.after)), ConfigPlanChecks: plansNothing()},
				}})
			})
		}
	}
}

func TestUpdateOfOneLockLeavesTheOthersKnown(t *testing.T) {
	f := startFakeLocks(t)
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: f.config(codeSet("", lockA, lockB))},
		{
			Config:           f.config(codeSet("", lockA, lockC)),
			ConfigPlanChecks: leavesUnknown(nanny, "access_codes."+lockC),
		},
	}})
}

// What a code is like now decides what an update can change.
func TestUpdateOfANameLeavesUnknownWhatMayChange(t *testing.T) {
	offline := []map[string]any{{"error_code": "device_offline", "message": "It is offline.", "is_device_error": true}}
	for name, c := range map[string]struct {
		more    string
		change  func(*fakeCode)
		unknown []string
	}{
		"on its lock":              {"", func(*fakeCode) {}, nil},
		"with a PIN of the server": {"", func(c *fakeCode) { c.code = nil }, nil},
		"scheduled":                {frame(time.Hour, time.Hour), func(*fakeCode) {}, nil},
		"on its way":               {"", func(c *fakeCode) { c.status = "setting" }, []string{"status"}},
		"with an error":            {"", func(c *fakeCode) { c.errors = offline }, []string{"errors", "status"}},
		"not waited for":           {"wait_until_on_lock = false", func(*fakeCode) {}, []string{"status"}},
		"unmanaged":                {"", func(c *fakeCode) { c.managed = false }, []string{"is_external_modification_allowed"}},
		"unmanaged, and off its lock": {
			"", func(c *fakeCode) { c.managed, c.status = false, "unset" },
			[]string{"is_external_modification_allowed", "status"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFakeLocks(t)
			run(t, resource.TestCase{Steps: []resource.TestStep{
				{Config: f.config(accessCode("name = \"Guest\"\n" + c.more))},
				{
					PreConfig:        func() { f.do(func() { _, code := f.only(); c.change(code) }) },
					Config:           f.config(accessCode("name = \"Cook\"\n" + c.more)),
					ConfigPlanChecks: leavesUnknown(front, c.unknown...),
				},
			}})
		})
	}
}

func TestAdoptionLeavesOnlyUnknownWhatTheServerChooses(t *testing.T) {
	f := startFake(t)
	id := f.unmanaged(fakeCode{name: "Plumber", code: "2468"})
	config := f.config(accessCode("") + importBlock(fakeDevice+"/"+id))
	run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config:           config,
		ConfigPlanChecks: leavesUnknown(front, "is_external_modification_allowed"),
	}}})
}
