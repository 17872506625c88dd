package provider

import (
	"context"
	"net/url"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// isPIN checks the shape of a PIN. Its error neither repeats the value nor points to it, because Terraform would
// show the line.
type isPIN struct{}

var pinShape = regexp.MustCompile(`^[0-9]{4,12}$`)

func (isPIN) Description(context.Context) string             { return "4 to 12 digits" }
func (v isPIN) MarkdownDescription(c context.Context) string { return v.Description(c) }

func (isPIN) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if !req.ConfigValue.IsNull() && !req.ConfigValue.IsUnknown() && !pinShape.MatchString(req.ConfigValue.ValueString()) {
		resp.Diagnostics.AddError("Check the PIN",
			"`code` must be 4 to 12 digits. Many locks take fewer lengths: `supported_code_lengths` of the data source deviceaccess_devices says which.")
	}
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
		resp.Diagnostics.AddError("Check the URL", "The value must be "+v.Description(ctx)+": "+u.Redacted()+" has one.")
		return
	}
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || len(address) > 2048 {
		resp.Diagnostics.AddAttributeError(req.Path, "Check the URL", "The value must be "+v.Description(ctx)+", such as https://example.com/events.")
	}
}

// isEventType checks the shape of an event type only: new types appear all the time.
func isEventType() validator.String {
	return stringvalidator.RegexMatches(regexp.MustCompile(`^(\*|[a-z0-9_]+(\.[a-z0-9_]+)+)$`),
		"must be `*` or an event type such as `device.connected`")
}
