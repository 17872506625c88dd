package provider

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/attr/xattr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/planmodifiers"
)

// instantType is the type of a time in RFC 3339. Two spellings of one instant, such as 17:00+02:00 and 15:00Z, are
// equal; in terraform-plugin-framework-timetypes they differ.
type instantType struct{ basetypes.StringType }

type instant struct{ basetypes.StringValue }

var (
	_ basetypes.StringTypable                    = instantType{}
	_ basetypes.StringValuableWithSemanticEquals = instant{}
	_ xattr.ValidateableAttribute                = instant{}
)

// instantOf converts a time of a server. It returns null for nil and the zero time.
func instantOf(t *time.Time) instant {
	if t == nil || t.IsZero() {
		return instant{types.StringNull()}
	}
	return instant{types.StringValue(t.UTC().Format(time.RFC3339Nano))}
}

func (instantType) String() string { return "provider.instantType" }

func (t instantType) Equal(other attr.Type) bool {
	o, ok := other.(instantType)
	return ok && t.StringType.Equal(o.StringType)
}

func (instantType) ValueType(context.Context) attr.Value { return instant{} }

func (instantType) ValueFromString(
	_ context.Context,
	value basetypes.StringValue,
) (basetypes.StringValuable, diag.Diagnostics) {
	return instant{value}, nil
}

func (t instantType) ValueFromTerraform(ctx context.Context, value tftypes.Value) (attr.Value, error) {
	text, err := t.StringType.ValueFromTerraform(ctx, value)
	if err != nil {
		return nil, err
	}
	known, ok := text.(basetypes.StringValue)
	if !ok {
		return nil, fmt.Errorf("read a string as a %T", text)
	}
	return instant{known}, nil
}

func (v instant) Type(context.Context) attr.Type { return instantType{} }

func (v instant) Equal(other attr.Value) bool {
	o, ok := other.(instant)
	return ok && v.StringValue.Equal(o.StringValue)
}

// StringSemanticEquals keeps the spelling of the configuration if the server returns another one.
func (v instant) StringSemanticEquals(_ context.Context, other basetypes.StringValuable) (bool, diag.Diagnostics) {
	o, ok := other.(instant)
	return ok && v.same(o), nil
}

// same reports whether both are the same instant, or both null.
func (v instant) same(other instant) bool {
	return v.StringValue.Equal(other.StringValue) || planmodifiers.IsSameInstant(v.ValueString(), other.ValueString())
}

// ValidateAttribute rejects a text that is not a time.
func (v instant) ValidateAttribute(
	_ context.Context,
	req xattr.ValidateAttributeRequest,
	resp *xattr.ValidateAttributeResponse,
) {
	if v.IsNull() || v.IsUnknown() {
		return
	}
	if _, err := time.Parse(time.RFC3339, v.ValueString()); err != nil {
		diagnostics.ErrorAt(&resp.Diagnostics, req.Path, "Invalid time",
			fmt.Sprintf("%q is not a time in RFC 3339. Write it with its time zone, such as 2026-11-21T15:00:00Z "+
				"or 2026-11-21T16:00:00+01:00.", v.ValueString()))
	}
}
