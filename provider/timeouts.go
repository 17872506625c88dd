package provider

import (
	"context"
	"time"

	actiontimeouts "github.com/hashicorp/terraform-plugin-framework-timeouts/action/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	actionschema "github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	providerschema "github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
)

// defaultTimeout is how long an operation waits for a lock unless the resource or the provider says otherwise.
// Battery-powered locks wake up every few minutes.
const defaultTimeout = 5 * time.Minute

// operationTimeouts are how long the operations of resources wait for a lock unless the resource says otherwise.
type operationTimeouts struct{ create, update, delete time.Duration }

// defaults returns the timeouts of the provider. c may be nil.
func (c *connection) defaults() operationTimeouts {
	if c == nil {
		return operationTimeouts{defaultTimeout, defaultTimeout, defaultTimeout}
	}
	return c.defaultTimeouts
}

// defaultTimeoutsAttribute describes the provider's default_timeouts.
func defaultTimeoutsAttribute() providerschema.Attribute {
	duration := func(operation string) providerschema.Attribute {
		return providerschema.StringAttribute{
			Optional:            true,
			MarkdownDescription: "How long " + operation + " waits, such as `30s` or `10m`. By default `5m`.",
			Validators:          []validator.String{validators.Duration{}},
		}
	}
	return providerschema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "How long resources wait for locks where their own `timeouts` do not say it. A changed " +
			"value takes effect without an apply, also for a destroy.",
		Attributes: map[string]providerschema.Attribute{
			"create": duration("a creation"),
			"update": duration("an update"),
			"delete": duration("a deletion"),
		},
	}
}

// timeouts returns the configured default timeouts. Values that were unknown during validation are checked here.
func (s settings) timeouts(diags *diag.Diagnostics) operationTimeouts {
	configured := s.DefaultTimeouts.Attributes()
	timeout := func(operation string) time.Duration {
		text, _ := configured[operation].(types.String)
		if text.IsNull() || text.IsUnknown() {
			return defaultTimeout
		}
		at := path.Root("default_timeouts").AtName(operation)
		duration, problem := validators.Duration{}.Parse(at, text.ValueString())
		if problem != "" {
			diagnostics.ErrorAt(diags, at, validators.InvalidTimeout, problem)
		}
		return duration
	}
	return operationTimeouts{timeout("create"), timeout("update"), timeout("delete")}
}

// hasUnknownTimeout reports whether default_timeouts or one of its values is unknown.
func (s settings) hasUnknownTimeout() bool {
	if s.DefaultTimeouts.IsUnknown() {
		return true
	}
	for _, value := range s.DefaultTimeouts.Attributes() {
		if value.IsUnknown() {
			return true
		}
	}
	return false
}

// timeoutsBlock returns the block timeouts of a resource. Each timeout must be longer than zero.
func timeoutsBlock(ctx context.Context, opts timeouts.Opts) schema.Block {
	block := timeouts.Block(ctx, opts).(schema.SingleNestedBlock)
	block.Validators = append(block.Validators, validators.PositiveTimeouts{})
	return block
}

// actionTimeoutsBlock returns the block timeouts of an action. The timeout must be longer than zero.
func actionTimeoutsBlock(ctx context.Context, description string) actionschema.Block {
	opts := actiontimeouts.Opts{InvokeDescription: description}
	block := actiontimeouts.BlockWithOpts(ctx, opts).(actionschema.SingleNestedBlock)
	block.Validators = append(block.Validators, validators.PositiveTimeouts{})
	return block
}
