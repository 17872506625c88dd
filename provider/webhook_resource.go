package provider

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/setdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

var _ resource.ResourceWithImportState = (*webhookResource)(nil)

type webhookResource struct{ connectedResource }

func newWebhookResource() resource.Resource { return &webhookResource{} }

func (r *webhookResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_webhook"
}

func (r *webhookResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A webhook: an address that receives the events of the workspace.",
		Attributes: map[string]schema.Attribute{
			"webhook_id": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "The identifier of the webhook.",
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"url": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "Where events are sent: an `http` or `https` URL. Changing it makes a new webhook, with a new secret.",
				Validators:          []validator.String{isWebAddress{}},
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"event_types": schema.SetAttribute{
				Optional: true, Computed: true, ElementType: types.StringType,
				MarkdownDescription: "The event types to receive, such as `device.connected`, `device.disconnected`, " +
					"`access_code.unmanaged.converted_to_managed` or `access_code.unmanaged.failed_to_convert_to_managed`. " +
					"By default `[\"*\"]`, which stands for all. They are listed below.",
				Default:    setdefault.StaticValue(types.SetValueMust(types.StringType, []attr.Value{types.StringValue(everything)})),
				Validators: []validator.Set{setvalidator.SizeAtLeast(1), setvalidator.ValueStringsAre(isEventType())},
			},
			"secret": schema.StringAttribute{
				Computed: true, Sensitive: true,
				MarkdownDescription: "The secret that signs what is sent, by which the receiver knows that it is genuine. It is kept in the state, " +
					"so use a backend that encrypts. Null after an import from a server that tells it only once, at creation.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseNonNullStateForUnknown()},
			},
		},
	}
}

func (r *webhookResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var model webhookModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &model)...)
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	answer, err := api.Call[api.WebhookResponse](ctx, client.CreateWebhook, model.createRequest(ctx))
	if err == nil {
		err = hasID("webhook", answer.Webhook.WebhookID)
	}
	if err != nil {
		reportCreate(&resp.Diagnostics, "Create webhook", err)
		return
	}
	expansion := model.expansion(ctx, &answer.Webhook)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, expansionKey, encodeExpansion(expansion))...)
	resp.Diagnostics.Append(model.fill(ctx, &answer.Webhook, expansion)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

func (r *webhookResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var model webhookModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	stored, diags := req.Private.GetKey(ctx, expansionKey)
	resp.Diagnostics.Append(diags...)
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	webhook, err := readWebhook(ctx, client, model.WebhookID)
	switch {
	case api.IsNotFound(err):
		resp.State.RemoveResource(ctx)
		return
	case err != nil:
		report(&resp.Diagnostics, "Read webhook", err)
		return
	}
	resp.Diagnostics.Append(model.fill(ctx, webhook, decodeExpansion(stored))...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

func (r *webhookResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var model webhookModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &model)...)
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if _, err := api.Call[api.OkResponse](ctx, client.UpdateWebhook, model.updateRequest(ctx)); err != nil {
		report(&resp.Diagnostics, "Update webhook", err)
		return
	}
	webhook, err := readWebhook(ctx, client, model.WebhookID)
	if err != nil {
		report(&resp.Diagnostics, "Read webhook after its update", err)
		return
	}
	expansion := model.expansion(ctx, webhook)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, expansionKey, encodeExpansion(expansion))...)
	resp.Diagnostics.Append(model.fill(ctx, webhook, expansion)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

func (r *webhookResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var model webhookModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	_, err := api.Call[api.OkResponse](ctx, client.DeleteWebhook, api.WebhookRequest{WebhookID: model.WebhookID.ValueString()})
	if err != nil && !api.IsNotFound(err) {
		// Terraform does not say which resource an error of a destroy is about.
		text := fmt.Sprintf("the webhook %s to %s: %v", model.WebhookID.ValueString(), model.URL.ValueString(), err)
		report(&resp.Diagnostics, "Delete webhook", &explained{text, err})
	}
}

func (r *webhookResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	resource.ImportStatePassthroughID(ctx, path.Root("webhook_id"), req, resp)
}

func readWebhook(ctx context.Context, client *api.Client, id types.String) (*api.Webhook, error) {
	answer, err := api.Call[api.WebhookResponse](ctx, client.GetWebhook, api.WebhookRequest{WebhookID: id.ValueString()})
	if err != nil {
		return nil, err
	}
	return &answer.Webhook, sameID("webhook", answer.Webhook.WebhookID, id.ValueString())
}

// expansionKey is where the resource's private state keeps what the server has made of "*".
const expansionKey = "expansion"

func encodeExpansion(expansion []string) []byte {
	encoded, _ := json.Marshal(expansion) // strings always encode
	return encoded
}

func decodeExpansion(stored []byte) []string {
	var expansion []string
	if json.Unmarshal(stored, &expansion) != nil {
		return nil // an import has stored nothing
	}
	return expansion
}
