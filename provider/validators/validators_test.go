package validators

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// A module may pass on a condition that its caller has left empty.
func TestOptionalIdentifierMayBeEmpty(t *testing.T) {
	t.Parallel()
	for value, valid := range map[string]bool{
		"":                                     true,
		"0191b7a4-5f2e-7c3d-8a4b-1f2e3d4c5b6a": true,
		"acct_7":                               true,
		"0191B7A4-5F2E-7C3D-8A4B-1F2E3D4C5B6A": false,
	} {
		var resp validator.StringResponse
		req := validator.StringRequest{ConfigValue: types.StringValue(value)}
		OptionalIdentifier{}.ValidateString(t.Context(), req, &resp)
		if resp.Diagnostics.HasError() == valid {
			t.Errorf("%q: %v", value, resp.Diagnostics)
		}
	}
}
