package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/action/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
)

// connectedAction gives every action the connection of the provider.
type connectedAction struct{ *connection }

// Configure takes the connection. Terraform calls it without data when it only needs the schemas.
func (a *connectedAction) Configure(_ context.Context, req action.ConfigureRequest, _ *action.ConfigureResponse) {
	a.connection, _ = req.ProviderData.(*connection)
}

// identifierArgument describes the required identifier of what an action is about.
func identifierArgument(description, hint string) schema.Attribute {
	return schema.StringAttribute{
		Required:            true,
		MarkdownDescription: description,
		Validators:          []validator.String{validators.Identifier{Hint: hint}},
	}
}

// invokeTimeout returns the context of an action, which ends with its timeout.
func invokeTimeout(
	ctx context.Context,
	configured timeouts.Value,
	resp *action.InvokeResponse,
) (context.Context, context.CancelFunc) {
	timeout, diags := configured.Invoke(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	return context.WithTimeout(ctx, timeout)
}

// progress reports what an action does. The text must contain no PIN and no secret.
func progress(resp *action.InvokeResponse, format string, values ...any) {
	resp.SendProgress(action.InvokeProgressEvent{Message: fmt.Sprintf(format, values...)})
}
