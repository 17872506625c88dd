package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// GetProviderSchema adds the capability to generate configurations, which the framework omits.
func (s contextScrubber) GetProviderSchema(
	ctx context.Context,
	r *tfprotov6.GetProviderSchemaRequest,
) (*tfprotov6.GetProviderSchemaResponse, error) {
	answer, err := s.ProviderServer.GetProviderSchema(ctx, r)
	if err == nil && answer.ServerCapabilities != nil {
		answer.ServerCapabilities.GenerateResourceConfig = true
	}
	return answer, err
}

// GenerateResourceConfig shortens the generated configuration of a resource. Terraform 1.14 and newer call it for an
// import block and for a query. Of the attributes that are null, Terraform leaves out only the computed ones.
func (s contextScrubber) GenerateResourceConfig(
	ctx context.Context,
	r *tfprotov6.GenerateResourceConfigRequest,
) (*tfprotov6.GenerateResourceConfigResponse, error) {
	answer, err := s.ProviderServer.GenerateResourceConfig(ctx, r)
	if err != nil || answer == nil || answer.Config == nil {
		return answer, err
	}
	schemas, err := s.schemas()
	if err != nil {
		return nil, err
	}
	answer.Config, err = shortenConfig(schemas.ResourceSchemas[r.TypeName], answer.Config)
	return answer, err
}

// trueByDefault lists the settings that are on if they are not configured. All others are off.
var trueByDefault = map[string]bool{"automatically_manage_new_devices": true}

// shortenConfig removes the settings that have their default, the secrets, and the second one of two units. The plan for the rest is the same,
// because a computed attribute that is not configured keeps its value.
func shortenConfig(
	schema *tfprotov6.Schema,
	config *tfprotov6.DynamicValue,
) (*tfprotov6.DynamicValue, error) {
	if schema == nil {
		return config, nil
	}
	value, err := config.Unmarshal(schema.ValueType())
	if err != nil || value.IsNull() {
		return config, err
	}
	var attributes map[string]tftypes.Value
	if err := value.As(&attributes); err != nil {
		return nil, fmt.Errorf("read the generated configuration: %w", err)
	}
	for _, a := range schema.Block.Attributes {
		if a.Optional && a.Computed &&
			(a.Sensitive || isDefault(a.Name, attributes[a.Name]) || isConverted(a.Name, attributes)) {
			attributes[a.Name] = tftypes.NewValue(a.ValueType(), nil)
		}
	}
	short, err := tfprotov6.NewDynamicValue(schema.ValueType(), tftypes.NewValue(schema.ValueType(), attributes))
	return &short, err
}

// isDefault reports whether a value is the default of a setting that is on or off.
func isDefault(name string, value tftypes.Value) bool {
	var on bool
	return value.Type().Is(tftypes.Bool) && !value.IsNull() && value.IsKnown() && value.As(&on) == nil &&
		on == trueByDefault[name]
}

// isConverted reports whether an attribute has the value of another one in another unit. A configuration has one of
// them.
func isConverted(name string, attributes map[string]tftypes.Value) bool {
	other := "noise_threshold_nrs"
	if quantity, ok := strings.CutSuffix(name, "_fahrenheit"); ok {
		other = quantity + "_celsius"
	} else if name != "noise_threshold_decibels" {
		return false
	}
	value, exists := attributes[other]
	return exists && !value.IsNull()
}
