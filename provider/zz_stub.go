package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

type problem struct {
	ErrorCode types.String `tfsdk:"error_code"`
	Message   types.String `tfsdk:"message"`
}

func problemsOf(problems []api.Problem, pins ...string) []problem {
	converted := make([]problem, len(problems))
	for i, p := range problems {
		converted[i] = problem{textOrNull(p.ErrorCode), types.StringValue(api.Redact(p.Message, pins...))}
	}
	return converted
}
