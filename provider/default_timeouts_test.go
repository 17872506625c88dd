package provider

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// timeoutsOf is the provider block with default timeouts.
func (f *fake) timeoutsOf(defaults, more string) string {
	return required + strings.Replace(f.config(more), "{\n", "{\n  default_timeouts = {"+defaults+"}\n", 1)
}

func TestDefaultTimeoutsCountWhereAResourceSetsNone(t *testing.T) {
	t.Parallel()
	const none, own = "", "\n  timeouts {\n    create = \"5m\"\n    update = \"5m\"\n    delete = \"5m\"\n  }"
	const ended = "context deadline exceeded"
	for name, one := range map[string]func(name, more string) string{
		"a code": func(name, more string) string { return accessCode(fmt.Sprintf("name = %q", name) + more) },
		"a shared code": func(name, more string) string {
			return strings.Replace(codeSet(more, lockA), `"Nanny"`, fmt.Sprintf("%q", name), 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFakeLocks(t)
			w := newDirectory(t, map[string]string{"main.tf": f.timeoutsOf(`create = "1ns"`, one("Ana", none))})
			fails := func(what string, args ...string) {
				t.Helper()
				from := w.seen.Len()
				w.expect(false, args...)
				expectSaid(t, what, plainly(w.seen.String()[from:]), ended)
			}
			fails("a creation", "apply", "-auto-approve")
			w.rewrite(f.timeoutsOf(`create = "1ns"`, one("Ana", own)))
			w.expect(true, "apply", "-auto-approve")
			w.rewrite(f.timeoutsOf("", one("Ana", none)))
			w.expect(true, "apply", "-auto-approve")
			w.rewrite(f.timeoutsOf(`update = "1ns"`, one("Eva", none)))
			fails("an update", "apply", "-auto-approve")
			w.rewrite(f.timeoutsOf(`update = "1ns"`, one("Eva", own)))
			w.expect(true, "apply", "-auto-approve")
			w.rewrite(f.timeoutsOf(`delete = "1ns"`, one("Eva", own)))
			w.expect(true, "plan", "-detailed-exitcode")
			w.rewrite(f.timeoutsOf("", one("Eva", none)))
			w.expect(true, "apply", "-auto-approve")
			w.rewrite(f.timeoutsOf(`delete = "1ns"`, one("Eva", none)))
			fails("a deletion", "destroy", "-auto-approve")
			w.rewrite(f.timeoutsOf("", one("Eva", none)))
			w.expect(true, "destroy", "-auto-approve")
		})
	}
	t.Run("exclusive codes", func(t *testing.T) {
		t.Parallel()
		f := startFakeLocks(t)
		w := newDirectory(t, map[string]string{"main.tf": f.timeoutsOf("", exclusive(lockA))})
		w.expect(true, "apply", "-auto-approve")
		f.unmanaged(fakeCode{name: "Intruder", code: "905173846251"})
		w.rewrite(f.timeoutsOf(`update = "1ns"`, exclusive(lockA)))
		w.expect(false, "apply", "-auto-approve")
		w.rewrite(f.timeoutsOf(`create = "1ns", delete = "1ns"`, exclusive(lockA)))
		w.expect(true, "apply", "-auto-approve")
	})
}

// A resource without its own timeouts must fail, or warn, when the provider's end at once.
func TestDefaultTimeoutsReachEachResourceWithTimeouts(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		config string
		create string // what is said of a creation
		other  string // what is said of a change
	}{
		deviceType: {"device_id = \"" + lockA + "\"\n  name = %q", "adopt device", "update device"},
		thresholdType: {
			"device_id = \"" + lockA + "\"\n  starts_daily_at = \"22:00:00\"\n  ends_daily_at = \"07:00:00\"\n  " +
				"noise_threshold_decibels = 60\n  name = %q",
			"create noise threshold", "update noise threshold",
		},
		acsUserType: {"acs_system_id = \"" + keeper + "\"\n  full_name = %q", "create user", "update user"},
	}
	for typeName, schema := range providerSchemas(t).ResourceSchemas {
		operations := map[string]bool{}
		for _, block := range schema.Block.BlockTypes {
			for _, attribute := range block.Block.Attributes {
				operations[attribute.Name] = block.TypeName == "timeouts"
			}
		}
		row, exists := rows[typeName]
		switch typeName {
		case codeType, setType, "deviceaccess_access_codes_exclusive": // TestDefaultTimeoutsCountWhereAResourceSetsNone
			continue
		}
		if !exists && len(operations) > 0 {
			t.Errorf("add a row for %s", typeName)
		}
		if !exists {
			continue
		}
		t.Run(typeName, func(t *testing.T) {
			t.Parallel()
			f := startFakeLocks(t)
			one := func(name string) string {
				return "resource \"" + typeName + "\" \"one\" {\n  " + fmt.Sprintf(row.config, name) + "\n}\n"
			}
			w := newDirectory(t, map[string]string{"main.tf": f.timeoutsOf(`create = "1ns"`, one("Ana"))})
			fails := func(says string, args ...string) {
				t.Helper()
				from := w.seen.Len()
				w.expect(false, args...)
				expectSaid(t, says, plainly(w.seen.String()[from:]), says, "context deadline exceeded")
			}
			fails(row.create, "apply", "-auto-approve")
			w.rewrite(f.timeoutsOf(`update = "1ns", delete = "1ns"`, one("Ana")))
			w.expect(true, "apply", "-auto-approve")
			w.rewrite(f.timeoutsOf(`update = "1ns"`, one("Eva")))
			fails(row.other, "apply", "-auto-approve")
			w.rewrite(f.timeoutsOf(`delete = "1ns"`, one("Eva")))
			w.expect(true, "apply", "-auto-approve")
			if operations["delete"] {
				fails("delete", "destroy", "-auto-approve")
			}
		})
	}
}

func TestDefaultTimeoutsAreCheckedBeforeAndAfterTheyAreKnown(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	for _, operation := range []string{"create", "update", "delete"} {
		for timeout, says := range map[string]string{
			"0s": "which leaves no time", "-5m": "which leaves no time", "soon": "which is not a duration",
			"5": "which is not a duration",
		} {
			w := newDirectory(t, map[string]string{
				"main.tf": f.timeoutsOf(fmt.Sprintf("%s = %q", operation, timeout), workspaceData),
			})
			w.expect(false, "plan")
			expectSaid(t, "the plan", plainly(w.seen.String()), "`default_timeouts."+operation+"`", timeout, says)
			var diags diag.Diagnostics
			settings{DefaultTimeouts: timeoutsObject(t, operation, timeout)}.timeouts(&diags)
			if len(diags) != 1 || !strings.Contains(diags[0].Detail(), says) {
				t.Errorf("%s = %q, known later: %v", operation, timeout, diags)
			}
		}
	}
	if got := (*connection)(
		nil,
	).defaults(); got != (operationTimeouts{5 * time.Minute, 5 * time.Minute, 5 * time.Minute}) {
		t.Errorf("by default: %v", got)
	}
}

func timeoutsObject(t *testing.T, operation, timeout string) types.Object {
	t.Helper()
	kinds, values := map[string]attr.Type{}, map[string]attr.Value{}
	for _, one := range []string{"create", "update", "delete"} {
		kinds[one], values[one] = types.StringType, types.StringNull()
	}
	values[operation] = types.StringValue(timeout)
	return types.ObjectValueMust(kinds, values)
}

// Whatever setting is unknown, the provider waits.
func TestEverySettingMayBeUnknown(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	whole := map[string]tftypes.Value{"endpoint": text(f.URL), "api_key": text(fakeKey)}
	schema := startPluginWith(t, whole).schemas.Provider
	// These change nothing about the connection, and have a safe value while they are unknown.
	harmless := map[string]bool{"convert_on_import": true, "wait_until_on_lock": true, "max_concurrent_requests": true}
	for _, attribute := range schema.Block.Attributes {
		config := map[string]tftypes.Value{
			attribute.Name: tftypes.NewValue(attribute.ValueType(), tftypes.UnknownValue),
		}
		for name, value := range whole {
			if name != attribute.Name {
				config[name] = value
			}
		}
		p := startPluginWith(t, config)
		progress, diagnostics := p.invokes("deviceaccess_webhook_test", argument("webhook_id", "x"))
		waits := strings.Contains(
			told(progress, diagnostics),
			"of `"+attribute.Name+"` in the provider block is not known",
		)
		if waits == harmless[attribute.Name] {
			t.Errorf("an unknown %s: %s", attribute.Name, told(progress, diagnostics))
		}
	}
}
