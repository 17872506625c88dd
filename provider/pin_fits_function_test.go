package provider

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// callsPINFits calls the function pin_fits as Terraform does.
func (p *plugin) callsPINFits(device tftypes.Value, pin string) (fits tftypes.Value, problem string) {
	p.t.Helper()
	argument, err := tfprotov6.NewDynamicValue(tftypes.DynamicPseudoType, device)
	if err != nil {
		p.t.Fatal(err)
	}
	answer, err := p.server.CallFunction(p.t.Context(), &tfprotov6.CallFunctionRequest{
		Name:      "pin_fits",
		Arguments: []*tfprotov6.DynamicValue{&argument, p.pack(text(pin))},
	})
	if err != nil {
		p.t.Fatal(err)
	}
	if answer.Error != nil {
		return fits, answer.Error.Text
	}
	if fits, err = answer.Result.Unmarshal(tftypes.Bool); err != nil {
		p.t.Fatal(err)
	}
	return fits, ""
}

func TestPINFits_JudgesByTheDevice(t *testing.T) {
	t.Parallel()
	p := startFake(t).plugin(t)
	constraintType := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"constraint_type": tftypes.String}}
	constraintsType := tftypes.List{ElementType: constraintType}
	lengthsType := tftypes.List{ElementType: tftypes.Number}
	lengths := func(numbers ...int) tftypes.Value {
		values := []tftypes.Value{}
		for _, number := range numbers {
			values = append(values, tftypes.NewValue(tftypes.Number, number))
		}
		return tftypes.NewValue(lengthsType, values)
	}
	rule := tftypes.NewValue(constraintsType, []tftypes.Value{
		tftypes.NewValue(constraintType, map[string]tftypes.Value{"constraint_type": text("no_zeros")}),
	})
	no := tftypes.NewValue(tftypes.Bool, false)
	lock := func(programmable, lengths, constraints tftypes.Value) tftypes.Value {
		attributes := map[string]tftypes.Value{
			"can_program_online_access_codes": programmable,
			"supported_code_lengths":          lengths,
			"code_constraints":                constraints,
		}
		types := map[string]tftypes.Type{}
		for name, value := range attributes {
			types[name] = value.Type()
		}
		return tftypes.NewValue(tftypes.Object{AttributeTypes: types}, attributes)
	}
	null := func(of tftypes.Type) tftypes.Value { return tftypes.NewValue(of, nil) }
	unknown := func(of tftypes.Type) tftypes.Value { return tftypes.NewValue(of, tftypes.UnknownValue) }
	tuple := tftypes.NewValue(
		tftypes.Tuple{ElementTypes: []tftypes.Type{tftypes.Number}},
		[]tftypes.Value{tftypes.NewValue(tftypes.Number, 6)},
	)
	nothing := lock(null(tftypes.Bool), null(lengthsType), null(constraintsType))
	for _, c := range []struct {
		name   string
		device tftypes.Value
		pin    string
		want   string
	}{
		{"nothing reported", nothing, "4815", "true"},
		{"no PIN", nothing, "48", "false"},
		{"letters", nothing, "48a5", "false"},
		{"length", lock(null(tftypes.Bool), lengths(4, 6), null(constraintsType)), "481562", "true"},
		{"other length", lock(null(tftypes.Bool), lengths(4, 6), null(constraintsType)), "48156", "false"},
		{"empty list", lock(null(tftypes.Bool), lengths(), null(constraintsType)), "48156", "true"},
		{"literal list", lock(null(tftypes.Bool), tuple, null(constraintsType)), "4815", "false"},
		{"rule", lock(null(tftypes.Bool), lengths(4), rule), "4810", "false"},
		{"no codes", lock(no, lengths(4), rule), "4815", "false"},
		{"unknown device", unknown(nothing.Type()), "4815", "unknown"},
		{"unknown lengths", lock(null(tftypes.Bool), unknown(lengthsType), rule), "4815", "unknown"},
		{"null", null(nothing.Type()), "4815", "not a device"},
		{"text", text("4815"), "4815", "not a device"},
		{"another object", tftypes.NewValue(
			tftypes.Object{AttributeTypes: map[string]tftypes.Type{"name": tftypes.String}},
			map[string]tftypes.Value{"name": text("a")},
		), "4815", "not a device"},
	} {
		fits, problem := p.callsPINFits(c.device, c.pin)
		got := problem
		var yes bool
		switch {
		case problem != "":
		case !fits.IsKnown():
			got = "unknown"
		case fits.As(&yes) == nil && yes:
			got = "true"
		default:
			got = "false"
		}
		if got != c.want && (problem == "" || !strings.Contains(problem, c.want)) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestTerraformChecksAPINWithTheFunction(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	f.devices = append(f.devices, plainLock(fakeDevice, map[string]any{
		"code_constraints": []map[string]any{{"constraint_type": "no_zeros"}},
	}))
	w := newWorkspace(t, map[string]string{"main.tf": required + f.config(`
data "deviceaccess_device" "door" {
  name = "Front Door"
}
variable "pin" {
  type      = string
  sensitive = true
}
variable "spare" {
  type    = string
  default = "4815"
  validation {
    condition     = provider::deviceaccess::pin_fits(data.deviceaccess_device.door, var.spare)
    error_message = "The front door does not accept the spare PIN."
  }
}
resource "deviceaccess_access_code" "guest" {
  device_id = data.deviceaccess_device.door.device_id
  lifecycle {
    precondition {
      condition     = provider::deviceaccess::pin_fits(data.deviceaccess_device.door, var.pin)
      error_message = "The front door does not accept this PIN."
    }
  }
}
`)})
	w.expect(true, "plan", "-no-color", "-var", "pin=4815")
	w.expect(false, "plan", "-no-color", "-var", "pin=4805")
	expectSaid(t, "the plan", plainly(w.seen.String()), "The front door does not accept this PIN.")
	if said := w.seen.String(); strings.Contains(said, "4805") {
		t.Errorf("the PIN is shown:\n%s", said)
	}
}
