package provider

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/planmodifiers"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/tfcore"
)

// behindWebhook is a code whose values come from a data source that waits for a webhook: they are not known in a plan
// that changes the event types.
func behindWebhook(f *fake, eventType, more string) string {
	return required + f.config(webhook("https://example.com/a", fmt.Sprintf("event_types = [%q]", eventType))+`
data "deviceaccess_device" "lock" {
  name       = "Front Door"
  depends_on = [`+hook+`]
}
resource "deviceaccess_access_code" "front" {
  code = "`+longPIN+`"
  `+more+`
}
`)
}

const (
	onLookedUpLock = "device_id = data.deviceaccess_device.lock.device_id"
	onKnownLock    = `device_id = "` + lockA + `"` + "\n  "
)

// swapDoors gives two locks the name of the other one.
func (f *fake) swapDoors() {
	f.do(func() {
		for _, d := range f.devices {
			switch d["display_name"] {
			case "Front Door":
				d["display_name"] = "Back Door"
			case "Back Door":
				d["display_name"] = "Front Door"
			}
		}
	})
}

// codeWrites are the requests that change a code.
func (f *fake) codeWrites() []string {
	return slices.DeleteFunc(f.writes(), func(path string) bool { return strings.HasPrefix(path, "/webhooks/") })
}

func (f *fake) expectCodeWrites(t *testing.T, when string, want ...string) {
	t.Helper()
	if got := f.codeWrites(); !slices.Equal(got, want) {
		t.Errorf("%s: %q were requested, want %q", when, got, want)
	}
}

func TestUnknownValueOfCode_NeverTakesPINOffDoor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ config, says string }{
		"device_id": {onLookedUpLock, "The lock of this code turned out to be another one. This resource was not changed."},
		"keepers": {
			onKnownLock + "keepers = { id = data.deviceaccess_device.lock.device_id }",
			"`keepers` turned out to have another value than in the state. This resource was not changed.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startListedLocks(t)
			w := newDirectory(t, map[string]string{"main.tf": behindWebhook(f, "access_code.created", c.config)})
			w.expect(true, "apply", "-auto-approve")

			w.rewrite(behindWebhook(f, "device.connected", c.config))
			w.expect(true, "apply", "-auto-approve")
			if action := w.saved.Action(front); action != tfcore.Update {
				t.Errorf("an unknown value plans to %s the code", action)
			}
			f.expectCodeWrites(t, "the same value", "/access_codes/create")
			w.expect(true, "plan", "-detailed-exitcode")

			w.rewrite(behindWebhook(f, "device.disconnected", c.config))
			w.expect(true, "plan")
			f.swapDoors()
			w.expect(false, "apply", "plan")
			expectSaid(t, "another value", plainly(w.seen.String()), c.says,
				"Run `terraform apply` again: the next plan shows the replacement.")
			f.expectCodeWrites(t, "another value", "/access_codes/create")
			for _, args := range [][]string{{"plan"}, {"plan", "-refresh=false"}} {
				w.expect(true, args...)
				if action := w.saved.Action(front); action != tfcore.Replace {
					t.Errorf("terraform %q would %s the code", args, action)
				}
			}
			w.expect(true, "apply", "-auto-approve")
			f.expectCodeWrites(t, "in the end", "/access_codes/create", "/access_codes/delete", "/access_codes/create")
		})
	}
}

func TestUnknownSettingOfCode_PlansUpdate(t *testing.T) {
	t.Parallel()
	text := types.StringValue
	for name, modifier := range map[string]planmodifiers.RequiresReplaceUnlessImported{
		"without a default": {}, "with a default": {Default: text("1h")},
	} {
		for state, plan := range map[attr.Value]attr.Value{
			text("1d"): types.StringUnknown(), types.StringNull(): types.StringUnknown(),
		} {
			if modifier.Differs(state, plan) {
				t.Errorf("%s: an unknown value replaces %s", name, state)
			}
		}
		if !modifier.Differs(text("1d"), text("2d")) {
			t.Errorf("%s: a known value replaces nothing", name)
		}
	}
}

func TestKeepersDiffer_OnlyForCertain(t *testing.T) {
	t.Parallel()
	keepers := func(pairs ...string) types.Map {
		elements := map[string]attr.Value{}
		for i := 0; i < len(pairs); i += 2 {
			elements[pairs[i]] = types.StringValue(pairs[i+1])
			switch pairs[i+1] {
			case "?":
				elements[pairs[i]] = types.StringUnknown()
			case "-":
				elements[pairs[i]] = types.StringNull()
			}
		}
		return types.MapValueMust(types.StringType, elements)
	}
	for name, c := range map[string]struct {
		state, plan types.Map
		want        bool
	}{
		"the same":                     {keepers("a", "1"), keepers("a", "1"), false},
		"another":                      {keepers("a", "1"), keepers("a", "2"), true},
		"one more":                     {keepers("a", "1"), keepers("a", "1", "b", "2"), true},
		"one less":                     {keepers("a", "1", "b", "2"), keepers("a", "1"), true},
		"the first":                    {keepers(), keepers("a", "1"), false},
		"none left":                    {keepers("a", "1"), keepers("a", "-"), false},
		"all unknown":                  {keepers("a", "1"), types.MapUnknown(types.StringType), false},
		"unknown":                      {keepers("a", "1"), keepers("a", "?"), false},
		"unknown, and the same":        {keepers("a", "1", "b", "2"), keepers("a", "1", "b", "?"), false},
		"unknown, and another":         {keepers("a", "1", "b", "2"), keepers("a", "3", "b", "?"), true},
		"unknown, and one less":        {keepers("a", "1", "b", "2"), keepers("a", "1", "c", "?"), true},
		"unknown, may be null":         {keepers("a", "1"), keepers("a", "1", "b", "?"), false},
		"unknown, may be none at all":  {keepers("a", "1"), keepers("b", "?"), false},
		"unknown, the rest is another": {keepers("a", "1"), keepers("a", "?", "b", "2"), true},
	} {
		if got := planmodifiers.KeepersDiffer(c.state, c.plan); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestTerraformCodeBehindDataSourceKeepsItsPIN(t *testing.T) {
	t.Parallel()
	f := startListedLocks(t)
	w := newWorkspace(t, map[string]string{"main.tf": behindWebhook(f, "access_code.created", onLookedUpLock)})
	w.expect(true, "apply", "-auto-approve")
	w.write("main.tf", behindWebhook(f, "device.connected", onLookedUpLock))
	expectSaid(t, "an unknown lock", w.plain("plan"), "0 to add, 2 to change, 0 to destroy", "(known after apply)")
	w.expect(true, "apply", "-auto-approve")
	f.expectCodeWrites(t, "the same lock", "/access_codes/create")

	w.write("main.tf", behindWebhook(f, "device.disconnected", onLookedUpLock))
	w.expect(true, "plan", "-out=plan")
	f.swapDoors()
	w.expect(false, "apply", "plan")
	said := plainly(w.seen.String())
	expectSaid(
		t,
		"another lock",
		said,
		"The lock of this code turned out to be another one. This resource was not changed.",
	)
	if strings.Contains(said, "bug in the provider") {
		t.Errorf("Terraform finds a bug:\n%s", said)
	}
	f.expectCodeWrites(t, "another lock", "/access_codes/create")
	expectSaid(t, "the next plan", w.plain("plan"), "1 to add, 0 to change, 1 to destroy", "forces replacement")
	expectSaid(t, "without a refresh", w.plain("plan", "-refresh=false"), "forces replacement")
}

// Before its first change, an apply looks like a plan without a refresh. Terraform then reports the error itself.
func TestTerraformLockThatAnotherProviderDecides_KeepsItsPIN(t *testing.T) {
	t.Parallel()
	f := startListedLocks(t)
	config := func(input string) string {
		const trigger = "resource \"terraform_data\" \"before\" {\n  input = \"%s\"\n}\n"
		return strings.ReplaceAll(behindWebhook(f, "device.connected", onLookedUpLock), hook, "terraform_data.before") +
			fmt.Sprintf(trigger, input)
	}
	w := newWorkspace(t, map[string]string{"main.tf": config("1")})
	expectSaid(t, "a new code", w.plain("apply", "-auto-approve"), "3 added")
	w.write("main.tf", config("2"))
	w.expect(true, "plan", "-out=plan")
	f.swapDoors()
	w.expect(false, "apply", "plan")
	expectSaid(t, "another lock", plainly(w.seen.String()), "Warning: Replacement without a refresh",
		"run `terraform apply` again", "Provider produced inconsistent final plan")
	f.expectCodeWrites(t, "another lock", "/access_codes/create")
	expectSaid(t, "the next plan", w.plain("plan"), "1 to add, 0 to change, 1 to destroy")
}
