// Package planmodifiers decides what Terraform plans for attributes whose rules the framework's modifiers do not cover,
// such as settings that servers use at creation and do not return. The package must not know resources or the API.
package planmodifiers

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
)

// PrivateState is what Terraform stores for a resource in addition to its attributes.
type PrivateState interface {
	// GetKey returns the JSON stored under key, or nil.
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
	// SetKey stores JSON under key.
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

// importedKey is the key of a resource's private state that records an import.
const importedKey = "imported"

// MarkImported records that the resource was imported: its settings at creation are not known. A setting that is
// applied later is in the state from then on.
func MarkImported(ctx context.Context, private PrivateState) diag.Diagnostics {
	return private.SetKey(ctx, importedKey, []byte("true"))
}

// WasImported reports whether MarkImported was called for the resource.
func WasImported(ctx context.Context, private PrivateState, diags *diag.Diagnostics) bool {
	imported, problems := private.GetKey(ctx, importedKey)
	diags.Append(problems...)
	return string(imported) == "true"
}

// RequiresReplaceUnlessImported replaces a resource when a setting changes that servers use at creation only. Servers
// do not return most of these settings, so an imported resource has null in the state. Setting it then warns instead.
type RequiresReplaceUnlessImported struct {
	// Default is the value that servers use if none is configured: null counts as Default. It may be nil.
	Default attr.Value
	// Attribute is the name of the setting within an object.
	Attribute string
}

// Description implements planmodifier.Describer.
func (RequiresReplaceUnlessImported) Description(context.Context) string {
	return "A change replaces the resource, unless the value is null because of an import."
}

// MarkdownDescription implements planmodifier.Describer.
func (m RequiresReplaceUnlessImported) MarkdownDescription(ctx context.Context) string {
	return m.Description(ctx)
}

// PlanModifyBool implements planmodifier.Bool.
func (m RequiresReplaceUnlessImported) PlanModifyBool(
	ctx context.Context, req planmodifier.BoolRequest, resp *planmodifier.BoolResponse,
) {
	c := change{
		at:      req.Path,
		all:     req.State,
		state:   req.StateValue,
		plan:    req.PlanValue,
		private: req.Private,
	}
	resp.RequiresReplace = m.replaces(ctx, c, &resp.Diagnostics)
}

// PlanModifyInt64 implements planmodifier.Int64.
func (m RequiresReplaceUnlessImported) PlanModifyInt64(
	ctx context.Context, req planmodifier.Int64Request, resp *planmodifier.Int64Response,
) {
	c := change{
		at:      req.Path,
		all:     req.State,
		state:   req.StateValue,
		plan:    req.PlanValue,
		private: req.Private,
	}
	resp.RequiresReplace = m.replaces(ctx, c, &resp.Diagnostics)
}

// PlanModifyString implements planmodifier.String.
func (m RequiresReplaceUnlessImported) PlanModifyString(
	ctx context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse,
) {
	c := change{
		at:      req.Path,
		all:     req.State,
		state:   req.StateValue,
		plan:    req.PlanValue,
		private: req.Private,
	}
	resp.RequiresReplace = m.replaces(ctx, c, &resp.Diagnostics)
}

// PlanModifySet implements planmodifier.Set.
func (m RequiresReplaceUnlessImported) PlanModifySet(
	ctx context.Context, req planmodifier.SetRequest, resp *planmodifier.SetResponse,
) {
	c := change{
		at:      req.Path,
		all:     req.State,
		state:   req.StateValue,
		plan:    req.PlanValue,
		private: req.Private,
	}
	resp.RequiresReplace = m.replaces(ctx, c, &resp.Diagnostics)
}

// PlanModifyObject implements planmodifier.Object. It looks at Attribute only.
func (m RequiresReplaceUnlessImported) PlanModifyObject(
	ctx context.Context, req planmodifier.ObjectRequest, resp *planmodifier.ObjectResponse,
) {
	c := change{
		at:      req.Path.AtName(m.Attribute),
		all:     req.State,
		state:   m.within(req.StateValue),
		plan:    m.within(req.PlanValue),
		private: req.Private,
	}
	resp.RequiresReplace = m.replaces(ctx, c, &resp.Diagnostics)
}

// within returns the setting of an object.
func (m RequiresReplaceUnlessImported) within(object types.Object) attr.Value {
	switch value, ok := object.Attributes()[m.Attribute]; {
	case object.IsUnknown():
		return types.DynamicUnknown()
	case !ok:
		return types.DynamicNull()
	default:
		return value
	}
}

// PresenceRequiresReplace replaces a resource when an object is added or removed.
func PresenceRequiresReplace() planmodifier.Object {
	const description = "Adding or removing the object replaces the resource."
	return objectplanmodifier.RequiresReplaceIf(func(
		_ context.Context, req planmodifier.ObjectRequest, resp *objectplanmodifier.RequiresReplaceIfFuncResponse,
	) {
		resp.RequiresReplace = req.PlanValue.IsUnknown() || req.PlanValue.IsNull() != req.StateValue.IsNull()
	}, description, description)
}

// change is one attribute of a plan. The field all is the state of the whole resource.
type change struct {
	at          path.Path
	all         tfsdk.State
	state, plan attr.Value
	private     PrivateState
}

func (m RequiresReplaceUnlessImported) replaces(ctx context.Context, c change, diags *diag.Diagnostics) bool {
	if c.all.Raw.IsNull() || !m.Differs(c.state, c.plan) {
		return false
	}
	if imported := WasImported(ctx, c.private, diags); !imported || !c.state.IsNull() {
		return true
	}
	diagnostics.WarningAt(diags, c.at, "Setting that counts at creation only", fmt.Sprintf(
		"Servers do not return `%s`, so Terraform cannot know whether the imported resource was created with this "+
			"value. Applying this plan stores the value in the state and changes nothing on the server. To create "+
			"the "+
			"resource with this value, use `terraform apply -replace`.", c.at))
	return false
}

// Differs reports whether state and plan differ after Default has replaced null.
func (m RequiresReplaceUnlessImported) Differs(state, plan attr.Value) bool {
	return !m.orDefault(plan).Equal(m.orDefault(state))
}

func (m RequiresReplaceUnlessImported) orDefault(value attr.Value) attr.Value {
	if value.IsNull() && m.Default != nil {
		return m.Default
	}
	return value
}

// DefaultOrState plans the value of the state if none is configured, and Default if the state has none either.
type DefaultOrState struct {
	// Default is the value that servers use if none is configured.
	Default bool
}

// Description implements planmodifier.Describer.
func (DefaultOrState) Description(context.Context) string {
	return "Without a configured value, the current one stays."
}

// MarkdownDescription implements planmodifier.Describer.
func (m DefaultOrState) MarkdownDescription(ctx context.Context) string { return m.Description(ctx) }

// PlanModifyBool implements planmodifier.Bool.
func (m DefaultOrState) PlanModifyBool(
	_ context.Context, req planmodifier.BoolRequest, resp *planmodifier.BoolResponse,
) {
	switch {
	case !req.ConfigValue.IsNull():
	case req.StateValue.IsNull():
		resp.PlanValue = types.BoolValue(m.Default)
	default:
		resp.PlanValue = req.StateValue
	}
}

// StateUnlessConfigured plans the value of the state, which may be null, if none is configured.
type StateUnlessConfigured struct{}

// Description implements planmodifier.Describer.
func (StateUnlessConfigured) Description(context.Context) string {
	return "Without a configured value, the current one stays."
}

// MarkdownDescription implements planmodifier.Describer.
func (m StateUnlessConfigured) MarkdownDescription(ctx context.Context) string {
	return m.Description(ctx)
}

// PlanModifyString implements planmodifier.String.
func (StateUnlessConfigured) PlanModifyString(
	_ context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse,
) {
	if req.ConfigValue.IsNull() {
		resp.PlanValue = req.StateValue
	}
}

// StateAfterImport plans null if no value is configured. After an import it plans the value of the state, which the
// server may have chosen.
type StateAfterImport struct{}

// Description implements planmodifier.Describer.
func (StateAfterImport) Description(context.Context) string {
	return "Without a configured value, the one that an import has read stays."
}

// MarkdownDescription implements planmodifier.Describer.
func (m StateAfterImport) MarkdownDescription(ctx context.Context) string { return m.Description(ctx) }

// PlanModifySet implements planmodifier.Set.
func (StateAfterImport) PlanModifySet(
	ctx context.Context, req planmodifier.SetRequest, resp *planmodifier.SetResponse,
) {
	switch {
	case !req.ConfigValue.IsNull():
	case !req.State.Raw.IsNull() && WasImported(ctx, req.Private, &resp.Diagnostics):
		resp.PlanValue = req.StateValue
	default:
		resp.PlanValue = types.SetNull(types.StringType)
	}
}

// AlwaysTrue plans true whatever the state has. For is_managed, an unmanaged code shows up as an update, which converts
// the code.
type AlwaysTrue struct{}

// Description implements planmodifier.Describer.
func (AlwaysTrue) Description(context.Context) string {
	return "An unmanaged code is converted by apply."
}

// MarkdownDescription implements planmodifier.Describer.
func (m AlwaysTrue) MarkdownDescription(ctx context.Context) string { return m.Description(ctx) }

// PlanModifyBool implements planmodifier.Bool.
func (AlwaysTrue) PlanModifyBool(
	_ context.Context, _ planmodifier.BoolRequest, resp *planmodifier.BoolResponse,
) {
	resp.PlanValue = types.BoolValue(true)
}

// SameInstant plans the state's spelling of a time if the configuration only spells the same instant differently, as it
// may after an import.
type SameInstant struct{}

// Description implements planmodifier.Describer.
func (SameInstant) Description(context.Context) string {
	return "Another spelling of the same instant is not a change."
}

// MarkdownDescription implements planmodifier.Describer.
func (m SameInstant) MarkdownDescription(ctx context.Context) string { return m.Description(ctx) }

// PlanModifyString implements planmodifier.String.
func (SameInstant) PlanModifyString(
	_ context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse,
) {
	if IsSameInstant(req.PlanValue.ValueString(), req.StateValue.ValueString()) {
		resp.PlanValue = req.StateValue
	}
}

// IsSameInstant reports whether both texts are times in RFC 3339 and name the same instant.
func IsSameInstant(a, b string) bool {
	ta, errA := time.Parse(time.RFC3339, a)
	tb, errB := time.Parse(time.RFC3339, b)
	return errA == nil && errB == nil && ta.Equal(tb)
}

// Keepers replaces a resource when its keepers change.
type Keepers struct{}

// Description implements planmodifier.Describer.
func (Keepers) Description(context.Context) string {
	return "A change replaces the resource, unless the first values are set or all are removed."
}

// MarkdownDescription implements planmodifier.Describer.
func (m Keepers) MarkdownDescription(ctx context.Context) string { return m.Description(ctx) }

// PlanModifyMap implements planmodifier.Map.
func (Keepers) PlanModifyMap(
	_ context.Context, req planmodifier.MapRequest, resp *planmodifier.MapResponse,
) {
	resp.RequiresReplace = !req.State.Raw.IsNull() && KeepersDiffer(req.StateValue, req.PlanValue)
}

// KeepersDiffer reports whether a change of keepers requires a replacement. Elements that are null do not count.
// Setting the first keepers and removing all of them require none.
func KeepersDiffer(state, plan types.Map) bool {
	if plan.IsUnknown() {
		return len(knownKeepers(state)) > 0
	}
	from, to := knownKeepers(state), knownKeepers(plan)
	return len(from) > 0 && len(to) > 0 && !maps.EqualFunc(from, to, attr.Value.Equal)
}

func knownKeepers(keepers types.Map) map[string]attr.Value {
	all := maps.Clone(keepers.Elements())
	maps.DeleteFunc(all, func(_ string, v attr.Value) bool { return v.IsNull() })
	return all
}

// RequiresReplaceUnlessEmpty replaces a resource when a map changes. An empty map equals null: servers treat both
// alike, and an import reads null.
func RequiresReplaceUnlessEmpty() planmodifier.Map {
	const description = "A change replaces the resource."
	return mapplanmodifier.RequiresReplaceIf(func(
		_ context.Context, req planmodifier.MapRequest, resp *mapplanmodifier.RequiresReplaceIfFuncResponse,
	) {
		resp.RequiresReplace = req.PlanValue.IsUnknown() ||
			len(req.PlanValue.Elements()) > 0 || len(req.StateValue.Elements()) > 0
	}, description, description)
}
