package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/setdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

var (
	_ resource.ResourceWithIdentity    = (*webhookResource)(nil)
	_ resource.ResourceWithImportState = (*webhookResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*webhookResource)(nil)
)

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
					"By default `[\"*\"]`, which stands for all. They are listed below. Changing them makes a new webhook on a server that cannot change one.",
				Default:    setdefault.StaticValue(wildcard),
				Validators: []validator.Set{isNotEmpty{"Name the event types to receive, or leave it out for all."}, setvalidator.ValueStringsAre(isEventType{})},
			},
			"secret": schema.StringAttribute{
				Computed: true, Sensitive: true,
				MarkdownDescription: "The secret that signs what is sent, by which the receiver knows that it is genuine. It is kept in the state, " +
					"so use a backend that encrypts. Null after an import from a server that tells it only once, at creation. " +
					"When the server rotates it, the next refresh shows the new one.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseNonNullStateForUnknown()},
			},
			"disabled": schema.BoolAttribute{
				Computed: true,
				MarkdownDescription: "Whether the server sends nothing any more, because the endpoint answered `410 Gone` or failed for days. " +
					"Events are kept and can be replayed. Null from a server that does not tell.",
			},
			"disabled_at": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "Since when the webhook is disabled, in RFC 3339.",
			},
			"disabled_reason": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "Why the webhook is disabled.",
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
	resp.Diagnostics.Append(r.rememberWorkspace(ctx, resp.Private, "")...)
	resp.Diagnostics.Append(model.fill(ctx, &answer.Webhook, expansion)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
}

func (r *webhookResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var model webhookModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	// Also for what turns out to be gone: the framework insists, and Terraform before 1.12 stores no identity.
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
	stored, diags := req.Private.GetKey(ctx, expansionKey)
	resp.Diagnostics.Append(diags...)
	if !model.URL.IsNull() && r.readsLater(&resp.Diagnostics) {
		return
	}
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	webhook, err := r.refreshWebhook(ctx, client, &model)
	switch {
	case api.IsNotFound(err):
		if model.URL.IsNull() || r.mayForget(ctx, req.Private, "Read webhook", &resp.Diagnostics) {
			resp.State.RemoveResource(ctx)
		}
		return
	case err != nil:
		report(&resp.Diagnostics, "Read webhook", err)
		return
	}
	resp.Diagnostics.Append(r.rememberWorkspace(ctx, resp.Private, "")...)
	resp.Diagnostics.Append(model.fill(ctx, webhook, decodeExpansion(stored))...)
	resp.Diagnostics.Append(model.warning()...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

func (r *webhookResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var model webhookModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &model)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
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
	planned := model.Secret
	resp.Diagnostics.Append(model.fill(ctx, webhook, expansion)...)
	if !planned.IsUnknown() {
		model.Secret = planned // one that was rotated since the plan is for the next refresh
	}
	resp.Diagnostics.Append(model.warning()...)
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
	switch {
	case api.IsNotFound(err):
		r.mayForget(ctx, req.Private, "Delete webhook", &resp.Diagnostics)
	case err != nil:
		// Terraform does not say which resource an error of a destroy is about.
		address, _, _ := strings.Cut(model.URL.ValueString(), "?") // what follows may be a token
		text := fmt.Sprintf("the webhook %s to %s: %v", model.WebhookID.ValueString(), address, err)
		report(&resp.Diagnostics, "Delete webhook", &explained{text, err})
	}
}

func readWebhook(ctx context.Context, client *api.Client, id types.String) (*api.Webhook, error) {
	answer, err := api.Call[api.WebhookResponse](ctx, client.GetWebhook, api.WebhookRequest{WebhookID: id.ValueString()})
	if err != nil {
		return nil, err
	}
	return &answer.Webhook, sameID("webhook", answer.Webhook.WebhookID, id.ValueString())
}

// refreshWebhook is readWebhook for reading many webhooks: the list answers most of it. What it does not tell is
// asked for by itself, which is also where a webhook just imported may get its secret from.
func (r *webhookResource) refreshWebhook(ctx context.Context, client *api.Client, model *webhookModel) (*api.Webhook, error) {
	listed := r.reads.Webhook(ctx, model.WebhookID.ValueString())
	if imported := model.URL.IsNull(); listed == nil || imported && listed.Secret == "" {
		return readWebhook(ctx, client, model.WebhookID)
	}
	return listed, nil
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
