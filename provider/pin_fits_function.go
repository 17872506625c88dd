package provider

import (
	"context"
	"math/big"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/lockrules"
)

// pinFitsFunction tells whether a lock accepts a PIN. It sends no request.
type pinFitsFunction struct{}

func newPINFitsFunction() function.Function { return pinFitsFunction{} }

// Metadata implements function.Function.
func (pinFitsFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "pin_fits"
}

// Definition implements function.Function.
func (pinFitsFunction) Definition(
	_ context.Context,
	_ function.DefinitionRequest,
	resp *function.DefinitionResponse,
) {
	resp.Definition = function.Definition{
		Summary: "Whether a lock accepts a PIN",
		MarkdownDescription: "Returns whether a lock accepts a PIN, by the lengths and the digits that the lock " +
			"allows. The codes on the lock do not count.\n\nThe function sends no request, so it works in the " +
			"`validation` of a variable and in a `precondition`. What the device does not report restricts nothing. " +
			"Requires Terraform 1.8 or newer.",
		Parameters: []function.Parameter{
			function.DynamicParameter{
				Name:               "device",
				AllowUnknownValues: true,
				MarkdownDescription: "A device, as the data source `deviceaccess_device` returns it. An entry of " +
					"`devices` of the data source `deviceaccess_devices` works, too.",
			},
			function.StringParameter{
				Name:                "pin",
				MarkdownDescription: "The PIN.",
			},
		},
		Return: function.BoolReturn{},
	}
}

// Run implements function.Function.
func (pinFitsFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var device types.Dynamic
	var pin string
	if resp.Error = req.Arguments.Get(ctx, &device, &pin); resp.Error != nil {
		return
	}
	value, err := device.ToTerraformValue(ctx)
	if err != nil {
		resp.Error = function.NewArgumentFuncError(0, "Could not read the device: "+err.Error())
		return
	}
	lock, known, ok := lockOfObject(value)
	switch {
	case !ok:
		resp.Error = function.NewArgumentFuncError(0, "This is not a device. Pass a device of the data source "+
			"deviceaccess_device or deviceaccess_devices.")
	case !known:
		resp.Error = resp.Result.Set(ctx, types.BoolUnknown())
	default:
		resp.Error = resp.Result.Set(ctx, lockrules.Fits(lock, pin))
	}
}

// lockOfObject returns what a device of a configuration says about PINs. It returns false for known while that is not
// known, and for ok if the value is not a device.
func lockOfObject(value tftypes.Value) (lock lockrules.Lock, known, ok bool) {
	if !value.IsKnown() {
		return lock, false, true
	}
	var device map[string]tftypes.Value
	if value.IsNull() || value.As(&device) != nil {
		return lock, false, false
	}
	rules := map[string]tftypes.Value{}
	for _, name := range []string{"can_program_online_access_codes", "supported_code_lengths", "code_constraints"} {
		attribute, exists := device[name]
		switch {
		case !exists || attribute.IsNull():
		case !attribute.IsFullyKnown():
			return lock, false, true
		default:
			rules[name] = attribute
		}
		ok = ok || exists
	}
	return lock, ok, ok && readLock(rules, &lock) == nil
}

// readLock reads the attributes of a device that are not null.
func readLock(device map[string]tftypes.Value, lock *lockrules.Lock) error {
	if attribute, reported := device["can_program_online_access_codes"]; reported {
		var programmable bool
		if err := attribute.As(&programmable); err != nil {
			return err
		}
		lock.RejectsCodes = !programmable
	}
	if attribute, reported := device["supported_code_lengths"]; reported {
		var lengths []tftypes.Value
		if err := attribute.As(&lengths); err != nil {
			return err
		}
		for _, element := range lengths {
			var length big.Float
			if err := element.As(&length); err != nil {
				return err
			}
			digits, _ := length.Int64()
			lock.CodeLengths = append(lock.CodeLengths, int(digits))
		}
	}
	if attribute, reported := device["code_constraints"]; reported {
		var constraints []tftypes.Value
		if err := attribute.As(&constraints); err != nil {
			return err
		}
		for _, element := range constraints {
			var constraint map[string]tftypes.Value
			var kind string
			if err := element.As(&constraint); err != nil {
				return err
			}
			if err := constraint["constraint_type"].As(&kind); err != nil {
				return err
			}
			lock.Constraints = append(lock.Constraints, kind)
		}
	}
	return nil
}
