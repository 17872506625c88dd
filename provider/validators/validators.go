// Package validators checks attribute values in the provider's schemas. Each error says what to write instead. The
// package must not know resources or the API.
package validators

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
)

// PIN checks that a string has 4 to 12 digits. Its error does not repeat the value.
type PIN struct{}

var pinShape = regexp.MustCompile(`^[0-9]{4,12}$`)

// IsPIN reports whether text has the shape of a PIN.
func IsPIN(text string) bool { return pinShape.MatchString(text) }

// Description implements validator.String.
func (PIN) Description(context.Context) string { return "4 to 12 digits" }

// MarkdownDescription implements validator.String.
func (v PIN) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

// ValidateString implements validator.String.
func (PIN) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if isSet(req.ConfigValue) && !IsPIN(req.ConfigValue.ValueString()) {
		diagnostics.ErrorAt(&resp.Diagnostics, req.Path, "Invalid PIN", fmt.Sprintf(
			"`%s` must be 4 to 12 digits in quotes; without quotes Terraform drops leading zeros. Many locks "+
				"accept fewer lengths: see `supported_code_lengths` of the data source "+
				"deviceaccess_devices.", req.Path))
	}
}

// AtLeastOne checks that a number is 1 or more.
type AtLeastOne struct{}

// Description implements validator.Int64.
func (AtLeastOne) Description(context.Context) string { return "at least 1" }

// MarkdownDescription implements validator.Int64.
func (v AtLeastOne) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

// ValidateInt64 implements validator.Int64.
func (AtLeastOne) ValidateInt64(_ context.Context, req validator.Int64Request, resp *validator.Int64Response) {
	if isSet(req.ConfigValue) && req.ConfigValue.ValueInt64() < 1 {
		diagnostics.ErrorAt(&resp.Diagnostics, req.Path, "Invalid number", fmt.Sprintf(
			"`%s` is %d. Set it to 1 or more, or leave it out for the "+
				"default.", req.Path, req.ConfigValue.ValueInt64()))
	}
}

// PositiveTimeouts checks that each timeout of a block is longer than zero. The block itself rejects what is not a
// duration.
type PositiveTimeouts struct{}

// Description implements validator.Object.
func (PositiveTimeouts) Description(context.Context) string { return "longer than zero" }

// MarkdownDescription implements validator.Object.
func (v PositiveTimeouts) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

// ValidateObject implements validator.Object.
func (PositiveTimeouts) ValidateObject(_ context.Context, req validator.ObjectRequest, resp *validator.ObjectResponse) {
	for name, value := range req.ConfigValue.Attributes() {
		text, ok := value.(types.String)
		if !ok || text.IsNull() || text.IsUnknown() {
			continue
		}
		if d, err := time.ParseDuration(text.ValueString()); err == nil && d <= 0 {
			at := req.Path.AtName(name)
			_, problem := Duration{}.Parse(at, text.ValueString())
			diagnostics.ErrorAt(&resp.Diagnostics, at, InvalidTimeout, problem)
		}
	}
}

// InvalidTimeout is the summary of errors about timeouts.
const InvalidTimeout = "Invalid timeout"

// Duration checks that a string is a duration longer than zero, such as 30s or 10m.
type Duration struct {
	// MayBeZero also accepts 0s.
	MayBeZero bool
}

// Description implements validator.String.
func (v Duration) Description(context.Context) string {
	if v.MayBeZero {
		return "a duration of zero or longer"
	}
	return "a duration longer than zero"
}

// MarkdownDescription implements validator.String.
func (v Duration) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

// ValidateString implements validator.String.
func (v Duration) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if !isSet(req.ConfigValue) {
		return
	}
	if _, problem := v.Parse(req.Path, req.ConfigValue.ValueString()); problem != "" {
		diagnostics.ErrorAt(&resp.Diagnostics, req.Path, InvalidTimeout, problem)
	}
}

// Parse returns the duration, or what is wrong with it.
func (v Duration) Parse(at path.Path, text string) (d time.Duration, problem string) {
	const advice = "Set it to how long to wait, such as `30s` or `10m`, or leave it out for the default."
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		problem = fmt.Sprintf("`%s` is %q, which is not a duration. %s", at, text, advice)
	case d < 0, d == 0 && !v.MayBeZero:
		problem = fmt.Sprintf("`%s` is %q, which leaves no time. %s", at, text, advice)
	}
	return d, problem
}

// URL checks that a string is the http or https URL of an endpoint.
type URL struct{}

// Description implements validator.String.
func (URL) Description(context.Context) string {
	return "an http or https URL without user name, at most 2048 characters"
}

// MarkdownDescription implements validator.String.
func (v URL) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

// ValidateString implements validator.String.
func (v URL) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if !isSet(req.ConfigValue) {
		return
	}
	address := req.ConfigValue.ValueString()
	u, err := url.Parse(address)
	if err == nil && u.User != nil { // without the attribute: Terraform would print the line, and the password in it
		diagnostics.Error(&resp.Diagnostics, "Invalid URL",
			fmt.Sprintf("`%s` must be %s: %s has one.", req.Path, v.Description(ctx), u.Redacted()))
		return
	}
	isHTTP := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
	if !isHTTP || len(address) > 2048 || strings.ContainsFunc(address, unicode.IsSpace) {
		diagnostics.ErrorAt(&resp.Diagnostics, req.Path, "Invalid URL",
			fmt.Sprintf("`%s` must be %s, such as https://example.com/events.", req.Path, v.Description(ctx)))
	}
}

// EventType checks the shape of an event type, not its name: servers add new types.
type EventType struct{}

var eventTypeShape = regexp.MustCompile(`^(\*|[a-z0-9_]+(\.[a-z0-9_]+)+)$`)

// Description implements validator.String.
func (EventType) Description(context.Context) string { return "`*`, or words separated by dots" }

// MarkdownDescription implements validator.String.
func (v EventType) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

// ValidateString implements validator.String.
func (EventType) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if isSet(req.ConfigValue) && !eventTypeShape.MatchString(req.ConfigValue.ValueString()) {
		diagnostics.ErrorAt(&resp.Diagnostics, req.Path, "Invalid event type", fmt.Sprintf(
			"%q is not an event type. Write one such as `device.connected`, or `*` for all; the documentation of "+
				"deviceaccess_webhook lists them.", req.ConfigValue.ValueString()))
	}
}

// DailyTime checks that a string is a time of day, such as 22:00:00 or 22:00:00[Europe/Paris]. It does not check that
// the time zone exists: servers have another list than the machine that runs Terraform.
type DailyTime struct{}

var dailyTimeShape = regexp.MustCompile(`^(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\[[A-Za-z][A-Za-z0-9_+/-]*\])?$`)

// SplitDailyTime splits a time of day into the time and its time zone, which is empty for that of the device.
func SplitDailyTime(text string) (clock, zone string) {
	clock, zone, _ = strings.Cut(strings.TrimSuffix(text, "]"), "[")
	return clock, zone
}

// Description implements validator.String.
func (DailyTime) Description(context.Context) string { return "a time of day such as 22:00:00" }

// MarkdownDescription implements validator.String.
func (v DailyTime) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

// ValidateString implements validator.String.
func (DailyTime) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if isSet(req.ConfigValue) && !dailyTimeShape.MatchString(req.ConfigValue.ValueString()) {
		diagnostics.ErrorAt(&resp.Diagnostics, req.Path, "Invalid time of day", fmt.Sprintf(
			"%q is not a time of day. Write it with seconds, such as `22:00:00`, or with a time zone, such as "+
				"`22:00:00[Europe/Paris]`.", req.ConfigValue.ValueString()))
	}
}

// NotEmpty checks that a string is not blank, or that a set has elements and none of them is null.
type NotEmpty struct {
	// Hint is a sentence that says what to do instead.
	Hint string
}

// Description implements validator.String and validator.Set.
func (NotEmpty) Description(context.Context) string { return "not empty" }

// MarkdownDescription implements validator.String and validator.Set.
func (v NotEmpty) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

// ValidateString implements validator.String.
func (v NotEmpty) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if isSet(req.ConfigValue) && strings.TrimSpace(req.ConfigValue.ValueString()) == "" {
		v.Report(&resp.Diagnostics, req.Path)
	}
}

// ValidateSet implements validator.Set.
func (v NotEmpty) ValidateSet(_ context.Context, req validator.SetRequest, resp *validator.SetResponse) {
	if !isSet(req.ConfigValue) {
		return
	}
	elements := req.ConfigValue.Elements()
	switch {
	case len(elements) == 0:
		v.Report(&resp.Diagnostics, req.Path)
	case slices.ContainsFunc(elements, attr.Value.IsNull):
		diagnostics.ErrorAt(&resp.Diagnostics, req.Path, "Null in "+rootOf(req.Path),
			fmt.Sprintf("`%s` has an element that is null. %s", req.Path, v.Hint))
	}
}

// Report adds the error for an empty attribute.
func (v NotEmpty) Report(diags *diag.Diagnostics, attribute path.Path) {
	diagnostics.ErrorAt(diags, attribute, "Empty "+rootOf(attribute),
		fmt.Sprintf("`%s` is empty. %s", attribute, v.Hint))
}

// rootOf returns the name of the attribute at the root of a path.
func rootOf(attribute path.Path) string {
	root, _ := attribute.Steps().NextStep()
	return root.String()
}

// Identifier checks that an identifier is present and is spelled as servers return it. Servers accept a UUID in
// capital letters, but the provider compares identifiers as text. It would take the other spelling for another code
// and delete it.
type Identifier struct {
	// Hint is a sentence that says what to do if the identifier is empty.
	Hint string
}

// Description implements validator.String.
func (Identifier) Description(context.Context) string {
	return "a UUID in lowercase letters, with hyphens"
}

// MarkdownDescription implements validator.String.
func (v Identifier) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

// ValidateString implements validator.String.
func (v Identifier) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	NotEmpty(v).ValidateString(ctx, req, resp)
	if problem := CheckIdentifier(req.ConfigValue.ValueString()); problem != "" {
		diagnostics.ErrorAt(&resp.Diagnostics, req.Path, "Invalid identifier", problem)
	}
}

// CheckIdentifier returns an error text for a UUID that is not spelled as servers return it. It returns "" for every
// other text: servers may use other identifiers than UUIDs.
func CheckIdentifier(id string) string {
	if uuid.Validate(id) != nil || uuid.MustParse(id).String() == id {
		return ""
	}
	return fmt.Sprintf("%q is not how servers spell this identifier, so Terraform would take it for another one. "+
		"Write %q.",
		id, uuid.MustParse(id))
}

// OptionalIdentifier is Identifier for a condition of a data source: an empty string means no condition.
type OptionalIdentifier struct{}

// Description implements validator.String.
func (OptionalIdentifier) Description(ctx context.Context) string {
	return Identifier{}.Description(ctx)
}

// MarkdownDescription implements validator.String.
func (OptionalIdentifier) MarkdownDescription(ctx context.Context) string {
	return Identifier{}.Description(ctx)
}

// ValidateString implements validator.String.
func (OptionalIdentifier) ValidateString(
	ctx context.Context, req validator.StringRequest, resp *validator.StringResponse,
) {
	if req.ConfigValue.ValueString() != "" {
		Identifier{}.ValidateString(ctx, req, resp)
	}
}

// AlsoRequires checks that another attribute is set, too. It accepts attributes that are not known yet.
type AlsoRequires struct {
	// Attribute is the name of the other attribute.
	Attribute string
	// Hint is a sentence that says what to do.
	Hint string
}

// Description implements validator.String and validator.Int64.
func (v AlsoRequires) Description(context.Context) string {
	return "only together with `" + v.Attribute + "`"
}

// MarkdownDescription implements validator.String and validator.Int64.
func (v AlsoRequires) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

// ValidateString implements validator.String.
func (v AlsoRequires) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if isSet(req.ConfigValue) {
		v.check(ctx, req.Config, req.Path, &resp.Diagnostics)
	}
}

// ValidateInt64 implements validator.Int64.
func (v AlsoRequires) ValidateInt64(ctx context.Context, req validator.Int64Request, resp *validator.Int64Response) {
	if isSet(req.ConfigValue) {
		v.check(ctx, req.Config, req.Path, &resp.Diagnostics)
	}
}

func (v AlsoRequires) check(ctx context.Context, config tfsdk.Config, attribute path.Path, diags *diag.Diagnostics) {
	matches, problems := config.PathMatches(ctx, path.MatchRoot(v.Attribute))
	diags.Append(problems...)
	for _, match := range matches {
		var other attr.Value
		diags.Append(config.GetAttribute(ctx, match, &other)...)
		if other != nil && other.IsNull() {
			diagnostics.ErrorAt(diags, attribute, "Missing "+v.Attribute,
				fmt.Sprintf("`%s` goes together with `%s`, which is not set. %s", attribute, v.Attribute, v.Hint))
		}
	}
}

// AlsoRequiresUnless is AlsoRequires that accepts everything if a third attribute is true or not known yet.
type AlsoRequiresUnless struct {
	AlsoRequires

	// Unless is the third attribute, a boolean.
	Unless path.Path
}

// ValidateString implements validator.String.
func (v AlsoRequiresUnless) ValidateString(
	ctx context.Context, req validator.StringRequest, resp *validator.StringResponse,
) {
	var unless types.Bool
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, v.Unless, &unless)...)
	if !unless.ValueBool() && !unless.IsUnknown() {
		v.AlsoRequires.ValidateString(ctx, req, resp)
	}
}

// ConflictsWith checks that another attribute is not set. The framework's validator adds its error at the attribute, so
// that Terraform prints the line with the PIN.
type ConflictsWith struct {
	// Attribute is the name of the other attribute.
	Attribute string
}

// Description implements validator.String.
func (v ConflictsWith) Description(context.Context) string {
	return "not together with `" + v.Attribute + "`"
}

// MarkdownDescription implements validator.String.
func (v ConflictsWith) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

// ValidateString implements validator.String.
func (v ConflictsWith) ValidateString(
	ctx context.Context,
	req validator.StringRequest,
	resp *validator.StringResponse,
) {
	var other types.String
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root(v.Attribute), &other)...)
	if isSet(req.ConfigValue) && isSet(other) {
		diagnostics.ErrorAt(&resp.Diagnostics, req.Path, "Conflicting arguments",
			fmt.Sprintf("`%s` and `%s` are both set. Set one of them, and leave the other "+
				"out.", req.Path, v.Attribute))
	}
}

func isSet(value attr.Value) bool { return !value.IsNull() && !value.IsUnknown() }
