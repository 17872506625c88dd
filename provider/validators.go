package provider

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
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// isPIN checks the shape of a PIN. Its error does not repeat the value.
type isPIN struct{}

var pinShape = regexp.MustCompile(`^[0-9]{4,12}$`)

func (isPIN) Description(context.Context) string             { return "4 to 12 digits" }
func (v isPIN) MarkdownDescription(c context.Context) string { return v.Description(c) }

func (isPIN) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if !req.ConfigValue.IsNull() && !req.ConfigValue.IsUnknown() && !pinShape.MatchString(req.ConfigValue.ValueString()) {
		refuseAt(&resp.Diagnostics, req.Path, "Check the PIN",
			fmt.Sprintf("`%s` must be 4 to 12 digits in quotes; without them Terraform drops zeros in front. Many locks take fewer lengths: `supported_code_lengths` of the data source deviceaccess_devices says which.", req.Path))
	}
}

// isAtLeastOne checks that a number is positive.
type isAtLeastOne struct{}

func (isAtLeastOne) Description(context.Context) string             { return "at least 1" }
func (v isAtLeastOne) MarkdownDescription(c context.Context) string { return v.Description(c) }

func (isAtLeastOne) ValidateInt64(_ context.Context, req validator.Int64Request, resp *validator.Int64Response) {
	if !req.ConfigValue.IsNull() && !req.ConfigValue.IsUnknown() && req.ConfigValue.ValueInt64() < 1 {
		refuseAt(&resp.Diagnostics, req.Path, "Check the number", fmt.Sprintf(
			"`%s` is %d. Set it to 1 or more, or leave it out for the default.", req.Path, req.ConfigValue.ValueInt64()))
	}
}

// isTimeout checks that each of the timeouts of a block leaves time. What is no duration at all the block itself refuses.
type isTimeout struct{}

func (isTimeout) Description(context.Context) string             { return "longer than nothing" }
func (v isTimeout) MarkdownDescription(c context.Context) string { return v.Description(c) }

func (isTimeout) ValidateObject(_ context.Context, req validator.ObjectRequest, resp *validator.ObjectResponse) {
	for name, value := range req.ConfigValue.Attributes() {
		text, ok := value.(types.String)
		if !ok || text.IsNull() || text.IsUnknown() {
			continue
		}
		if d, err := time.ParseDuration(text.ValueString()); err == nil && d <= 0 {
			at := req.Path.AtName(name)
			refuseAt(&resp.Diagnostics, at, "Check the timeout", fmt.Sprintf(
				"`%s` is %q, and nothing is done in no time. Set it to how long to wait, such as `30s` or `10m`, or leave it out for the default.", at, text.ValueString()))
		}
	}
}

// timeoutsBlock is the block of timeouts of a resource.
func timeoutsBlock(ctx context.Context, opts timeouts.Opts) schema.Block {
	block := timeouts.Block(ctx, opts).(schema.SingleNestedBlock)
	block.Validators = append(block.Validators, isTimeout{})
	return block
}

// isWebAddress checks that a string is the http or https address of an endpoint.
type isWebAddress struct{}

func (isWebAddress) Description(context.Context) string {
	return "an http or https URL without user name, at most 2048 characters"
}
func (v isWebAddress) MarkdownDescription(c context.Context) string { return v.Description(c) }

func (v isWebAddress) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	address := req.ConfigValue.ValueString()
	u, err := url.Parse(address)
	if err == nil && u.User != nil { // not pointed to, because Terraform would show the line, and a password in it
		refuse(&resp.Diagnostics, "Check the URL", fmt.Sprintf("`%s` must be %s: %s has one.", req.Path, v.Description(ctx), u.Redacted()))
		return
	}
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || len(address) > 2048 || strings.ContainsFunc(address, unicode.IsSpace) {
		refuseAt(&resp.Diagnostics, req.Path, "Check the URL", fmt.Sprintf("`%s` must be %s, such as https://example.com/events.", req.Path, v.Description(ctx)))
	}
}

// isEventType checks the shape of an event type only: new types appear all the time.
type isEventType struct{}

var eventTypeShape = regexp.MustCompile(`^(\*|[a-z0-9_]+(\.[a-z0-9_]+)+)$`)

func (isEventType) Description(context.Context) string             { return "`*`, or words with dots between them" }
func (v isEventType) MarkdownDescription(c context.Context) string { return v.Description(c) }

func (isEventType) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if !req.ConfigValue.IsNull() && !req.ConfigValue.IsUnknown() && !eventTypeShape.MatchString(req.ConfigValue.ValueString()) {
		refuseAt(&resp.Diagnostics, req.Path, "Check the event type", fmt.Sprintf("%q has not the shape of an event type. Write one such as "+
			"`device.connected`, or `*` for all; the documentation of deviceaccess_webhook lists them.", req.ConfigValue.ValueString()))
	}
}

// isNotEmpty checks that a string or a set has something in it; its error says what to do instead.
type isNotEmpty struct{ instead string }

func (isNotEmpty) Description(context.Context) string             { return "not empty" }
func (v isNotEmpty) MarkdownDescription(c context.Context) string { return v.Description(c) }

func (v isNotEmpty) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if !req.ConfigValue.IsNull() && !req.ConfigValue.IsUnknown() && strings.TrimSpace(req.ConfigValue.ValueString()) == "" {
		v.refuse(&resp.Diagnostics, req.Path)
	}
}

func (v isNotEmpty) ValidateSet(_ context.Context, req validator.SetRequest, resp *validator.SetResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	elements := req.ConfigValue.Elements()
	switch {
	case len(elements) == 0:
		v.refuse(&resp.Diagnostics, req.Path)
	case slices.ContainsFunc(elements, attr.Value.IsNull):
		refuseAt(&resp.Diagnostics, req.Path, "Check the value", fmt.Sprintf("`%s` has an element that is null. %s", req.Path, v.instead))
	}
}

func (v isNotEmpty) refuse(diags *diag.Diagnostics, attribute path.Path) {
	refuseAt(diags, attribute, "Check the value", fmt.Sprintf("`%s` is empty. %s", attribute, v.instead))
}

// isIdentifier checks that an identifier is there and is spelt as servers answer it. They take a UUID in capitals, too, but
// whatever compares it with their answers would take it for another one: a code that may be on a lock for one that is to go.
type isIdentifier struct{ instead string }

func (isIdentifier) Description(context.Context) string {
	return "a UUID in small letters, with hyphens"
}
func (v isIdentifier) MarkdownDescription(c context.Context) string { return v.Description(c) }

func (v isIdentifier) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	isNotEmpty(v).ValidateString(ctx, req, resp)
	if problem := misspelt(req.ConfigValue.ValueString()); problem != "" {
		refuseAt(&resp.Diagnostics, req.Path, "Check the identifier", problem)
	}
}

// isFilter is isIdentifier for a condition of a list: an empty one is none.
type isFilter struct{}

func (isFilter) Description(ctx context.Context) string { return isIdentifier{}.Description(ctx) }
func (isFilter) MarkdownDescription(ctx context.Context) string {
	return isIdentifier{}.Description(ctx)
}

func (isFilter) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.ValueString() != "" {
		isIdentifier{}.ValidateString(ctx, req, resp)
	}
}

// misspelt says how to write an identifier that is a UUID in another spelling than that of servers, and "" of all others:
// what else servers have for identifiers is their own affair.
func misspelt(id string) string {
	if uuid.Validate(id) != nil || uuid.MustParse(id).String() == id {
		return ""
	}
	return fmt.Sprintf("%q is not how servers spell this identifier, so that it would be taken for another one than they answer. Write %q.", id, uuid.MustParse(id))
}

// goesWith checks that another attribute is set beside this one; its error says what to do. While one of them is not
// known, nothing is said.
type goesWith struct{ other, instead string }

// goesWithUnless is goesWith, but for where a third attribute is true or not known.
type goesWithUnless struct {
	goesWith
	unless string
}

func (v goesWithUnless) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	var released types.Bool
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root(v.unless), &released)...)
	if !released.ValueBool() && !released.IsUnknown() {
		v.goesWith.ValidateString(ctx, req, resp)
	}
}

func (v goesWith) Description(context.Context) string           { return "only together with `" + v.other + "`" }
func (v goesWith) MarkdownDescription(c context.Context) string { return v.Description(c) }

func (v goesWith) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if isSet(req.ConfigValue) {
		v.check(ctx, req.Config, req.Path, &resp.Diagnostics)
	}
}

func (v goesWith) ValidateInt64(ctx context.Context, req validator.Int64Request, resp *validator.Int64Response) {
	if isSet(req.ConfigValue) {
		v.check(ctx, req.Config, req.Path, &resp.Diagnostics)
	}
}

// goesWithout checks that another attribute is not set beside this one. The validator of the framework that does points to the attribute, and
// so shows its line, with the PIN.
type goesWithout struct{ other string }

func (v goesWithout) Description(context.Context) string {
	return "not together with `" + v.other + "`"
}
func (v goesWithout) MarkdownDescription(c context.Context) string { return v.Description(c) }

func (v goesWithout) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	var other types.String
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root(v.other), &other)...)
	if !req.ConfigValue.IsNull() && !other.IsNull() && !req.ConfigValue.IsUnknown() && !other.IsUnknown() {
		refuseAt(&resp.Diagnostics, req.Path, "Check the value", fmt.Sprintf("`%s` and `%s` are both set. Set one of them, and leave the other out.", req.Path, v.other))
	}
}

func (v goesWith) check(ctx context.Context, config tfsdk.Config, attribute path.Path, diags *diag.Diagnostics) {
	matches, problems := config.PathMatches(ctx, path.MatchRoot(v.other))
	diags.Append(problems...)
	for _, match := range matches {
		var other attr.Value
		diags.Append(config.GetAttribute(ctx, match, &other)...)
		if other != nil && other.IsNull() {
			refuseAt(diags, attribute, "Check the value", fmt.Sprintf("`%s` goes together with `%s`, which is not set. %s", attribute, v.other, v.instead))
		}
	}
}
