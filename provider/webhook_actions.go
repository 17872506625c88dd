package provider

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
)

var (
	_ action.ActionWithConfigure = (*webhookTestAction)(nil)
	_ action.ActionWithConfigure = (*webhookRotateSecretAction)(nil)
)

type webhookTestAction struct{ connectedAction }

func newWebhookTestAction() action.Action { return &webhookTestAction{} }

type webhookTestModel struct {
	WebhookID types.String `tfsdk:"webhook_id"`
}

func (a *webhookTestAction) Metadata(_ context.Context, req action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_webhook_test"
}

func (a *webhookTestAction) Schema(_ context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Sends one signed event of type `webhook.test` to a webhook, and reports the answer of its " +
			"receiver. The action fails unless the receiver accepts the event. Requires Terraform 1.14 or newer.",
		Attributes: map[string]schema.Attribute{
			"webhook_id": identifierArgument("The webhook to test.", "Name the webhook to test."),
		},
	}
}

// Invoke sends a test event.
func (a *webhookTestAction) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	const action = "test webhook"
	var model webhookTestModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	client := a.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	id := model.WebhookID.ValueString()
	progress(resp, "Sending a test event to the webhook %s.", id)
	answer, err := api.Call[api.WebhookTestResponse](ctx, client.SendTestEvent, api.WebhookRequest{WebhookID: id})
	switch {
	case api.IsNoRoute(err):
		diagnostics.FailureAt(&resp.Diagnostics, path.Root("webhook_id"), action, sentence(err.Error())+"\n\nThis "+
			"server cannot send test events. Remove the action, or check `endpoint` (or "+envEndpoint+").")
		return
	case err != nil:
		report(&resp.Diagnostics, action, err)
		return
	}
	test := answer.WebhookTest
	took := time.Duration(test.LatencyMs) * time.Millisecond
	if !test.IsAccepted {
		detail := "The receiver has not accepted the test event."
		if test.Problem != "" {
			detail = sentence(test.Problem)
		}
		if test.Advice != "" {
			detail += "\n\n" + sentence(test.Advice)
		}
		diagnostics.FailureAt(&resp.Diagnostics, path.Root("webhook_id"), action, detail)
		return
	}
	progress(resp, "The receiver answered %d %s after %s.", test.StatusCode, http.StatusText(test.StatusCode), took)
}

type webhookRotateSecretAction struct{ connectedAction }

func newWebhookRotateSecretAction() action.Action { return &webhookRotateSecretAction{} }

type webhookRotateSecretModel struct {
	WebhookID types.String `tfsdk:"webhook_id"`
	Overlap   types.String `tfsdk:"overlap"`
}

func (a *webhookRotateSecretAction) Metadata(
	_ context.Context,
	req action.MetadataRequest,
	resp *action.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_webhook_rotate_secret"
}

func (a *webhookRotateSecretAction) Schema(
	_ context.Context,
	_ action.SchemaRequest,
	resp *action.SchemaResponse,
) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Gives a webhook a new secret, which signs immediately. The next refresh reads it; the " +
			"ephemeral resource `deviceaccess_webhook` reads it without the state. Requires Terraform 1.14 or newer.",
		Attributes: map[string]schema.Attribute{
			"webhook_id": identifierArgument("The webhook that gets a new secret.", "Name the webhook."),
			"overlap": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "How long the old secret signs, too, such as `1h`. With `0s`, it ends " +
					"immediately; by default after the time that the server sets, `24h`.",
				Validators: []validator.String{overlapDuration},
			},
		},
	}
}

var overlapDuration = validators.Duration{MayBeZero: true}

// Invoke rotates the secret. The secret does not appear in the progress.
func (a *webhookRotateSecretAction) Invoke(
	ctx context.Context,
	req action.InvokeRequest,
	resp *action.InvokeResponse,
) {
	var model webhookRotateSecretModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	client := a.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	request := api.RotateWebhookSecretRequest{WebhookID: model.WebhookID.ValueString()}
	if isSet(model.Overlap) {
		overlap, problem := overlapDuration.Parse(path.Root("overlap"), model.Overlap.ValueString())
		if problem != "" { // unknown during validation
			diagnostics.FailureAt(&resp.Diagnostics, path.Root("overlap"), rotation, problem)
			return
		}
		seconds := int((overlap + time.Second - 1) / time.Second)
		request.OverlapSeconds = &seconds
	}
	progress(resp, "Rotating the secret of the webhook %s.", request.WebhookID)
	rotated, err := rotateSecret(ctx, client, request)
	if err != nil {
		reportRotation(&resp.Diagnostics, path.Root("webhook_id"), err)
		return
	}
	progress(resp, "The webhook %s has a new secret. %s", request.WebhookID, oldSecretEnd(rotated))
}

// oldSecretEnd says when the old secret ends.
func oldSecretEnd(rotated *api.RotatedWebhookResponse) string {
	if until := rotated.OldSecretSignsUntil; until != nil {
		return fmt.Sprintf("The old secret signs, too, until %s: configure the new one in the receiver before.",
			until.UTC().Format(time.RFC3339))
	}
	return "The old secret has ended: configure the new one in the receiver now."
}
