package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/setdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
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
				Validators:          []validator.String{validators.URL{}},
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"event_types": schema.SetAttribute{
				Optional: true, Computed: true, ElementType: types.StringType,
				MarkdownDescription: "The event types to receive, such as `device.connected`, `device.disconnected`, " +
					"`access_code.unmanaged.converted_to_managed` or `access_code.unmanaged.failed_to_convert_to_managed`. " +
					"By default `[\"*\"]`, which stands for all. They are listed below. Changing them makes a new webhook on a server that cannot change one.",
				Default:    setdefault.StaticValue(wildcard),
				Validators: []validator.Set{validators.NotEmpty{Hint: "Name the event types to receive, or leave it out for all."}, setvalidator.ValueStringsAre(validators.EventType{})},
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

// webhookIdentity is what Terraform 1.12 and newer know a webhook by.
type webhookIdentity struct {
	WebhookID types.String `tfsdk:"webhook_id"`
}

// IdentitySchema describes webhookIdentity.
func (r *webhookResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"webhook_id": identityschema.StringAttribute{RequiredForImport: true, Description: "The identifier of the webhook."},
	}}
}

func (m *webhookModel) identity() webhookIdentity { return webhookIdentity{m.WebhookID} }

// ImportState takes the identifier, or an identity. Neither asks the server for anything before Read does.
func (r *webhookResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	if r.cannotImport(req, resp) {
		return
	}
	resource.ImportStatePassthroughWithIdentity(ctx, path.Root("webhook_id"), path.Root("webhook_id"), req, resp)
}

// ModifyPlan replaces a webhook whose event types change on a server that cannot change webhooks. One that was imported
// and has the list of all types, as some servers store "*", is left alone.
func (r *webhookResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() || req.State.Raw.IsNull() || req.Plan.Raw.Equal(req.State.Raw) {
		return
	}
	var plan, state webhookModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() || plan.EventTypes.Equal(state.EventTypes) || !plan.URL.Equal(state.URL) {
		return
	}
	if !r.isConnected() || r.changesWebhooks(ctx, state.WebhookID.ValueString()) {
		return
	}
	changed, diags := req.Private.GetKey(ctx, expansionKey) // or created, by Terraform
	resp.Diagnostics.Append(diags...)
	if changed == nil && plan.EventTypes.Equal(wildcard) && state.isEverything(ctx) {
		resp.Plan.Raw = req.State.Raw
		return
	}
	resp.RequiresReplace = append(resp.RequiresReplace, path.Root("event_types"))
	diagnostics.WarningAt(&resp.Diagnostics, path.Root("event_types"), "Webhook will be replaced",
		"This server cannot change the event types of a webhook, so applying this plan deletes the webhook and makes another, with another secret. "+
			"To keep it, write the event types into `event_types` that the plan shows for it now.")
}

// webhookChanges is whether the server can change webhooks, once that is known.
type webhookChanges struct {
	mu        sync.Mutex
	known     bool
	supported bool
}

// changesWebhooks says whether the server can change webhooks. It is asked once, to change nothing: a server that can
// refuses that, or does it. What cannot be found out counts as supported, so that the change itself shows what is wrong.
func (c *connection) changesWebhooks(ctx context.Context, id string) bool {
	c.changes.mu.Lock()
	defer c.changes.mu.Unlock()
	if c.changes.known {
		return c.changes.supported
	}
	_, err := api.Call[api.OkResponse](ctx, c.updateNothing, api.WebhookRequest{WebhookID: id})
	c.changes.known = err == nil || api.StatusOf(err)/100 == 4 && !api.IsDenied(err)
	c.changes.supported = !api.IsNoRoute(err)
	return c.changes.supported
}

// updateNothing is the operation UpdateWebhook without event types.
func (c *connection) updateNothing(ctx context.Context, request api.WebhookRequest, editors ...api.RequestEditorFn) (*http.Response, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	return c.api.UpdateWebhookWithBody(ctx, "application/json", bytes.NewReader(body), editors...)
}

type webhookModel struct {
	WebhookID  types.String `tfsdk:"webhook_id"`
	URL        types.String `tfsdk:"url"`
	EventTypes types.Set    `tfsdk:"event_types"`
	Secret     types.String `tfsdk:"secret"`

	Disabled       types.Bool   `tfsdk:"disabled"`
	DisabledAt     types.String `tfsdk:"disabled_at"`
	DisabledReason types.String `tfsdk:"disabled_reason"`
}

// fill takes over what the server says. Expansion is what this server has made of "*" before, if it is one
// that stores the list of all types instead: as long as the list only grows, it still means "*".
func (m *webhookModel) fill(ctx context.Context, webhook *api.Webhook, expansion []string) diag.Diagnostics {
	var diags diag.Diagnostics
	m.WebhookID = types.StringValue(webhook.WebhookID)
	m.URL = types.StringValue(webhook.URL)
	sendsEverything := slices.Contains(webhook.EventTypes, everything) || len(expansion) > 0 && containsAll(webhook.EventTypes, expansion)
	if !m.wantsEverything(ctx) || !sendsEverything {
		m.EventTypes, diags = types.SetValueFrom(ctx, types.StringType, slices.Compact(slices.Sorted(slices.Values(webhook.EventTypes))))
	}
	m.Disabled, m.DisabledAt, m.DisabledReason = disabled(webhook)
	// Servers need not say the secret again. One that does may have rotated it.
	if webhook.Secret != "" {
		m.Secret = types.StringValue(webhook.Secret)
	} else if m.Secret.IsUnknown() {
		m.Secret = types.StringNull()
	}
	return diags
}

// disabled is whether, since when and why a webhook receives nothing, as far as the server tells.
func disabled(webhook *api.Webhook) (is types.Bool, at, reason types.String) {
	is, at, reason = types.BoolPointerValue(webhook.Disabled), types.StringNull(), types.StringNull()
	if webhook.DisabledAt != nil {
		at = types.StringValue(webhook.DisabledAt.UTC().Format(time.RFC3339))
	}
	if webhook.DisabledReason != "" {
		reason = types.StringValue(webhook.DisabledReason)
	}
	return is, at, reason
}

// warning tells of a webhook that receives nothing.
func (m *webhookModel) warning() diag.Diagnostics {
	var diags diag.Diagnostics
	if !m.Disabled.ValueBool() {
		return diags
	}
	detail := "The server sends nothing to this webhook any more" // without its URL, which may carry a token
	if at := m.DisabledAt.ValueString(); at != "" {
		detail += ", since " + at
	}
	if reason := m.DisabledReason.ValueString(); reason != "" {
		detail += ": " + reason
	}
	id := m.WebhookID.ValueString()
	diagnostics.WarningAt(&diags, path.Root("url"), "Webhook is disabled", sentence(detail)+
		"\n\nOnce the endpoint works again, whoever runs the server enables it with `deviceaccess-server webhooks enable "+id+"`. "+
		"Events are kept meanwhile; `deviceaccess-server webhooks replay "+id+"` enables it and sends them. Changing event_types does not enable it.")
	return diags
}

// expansion is what the server has made of "*", or nil if it keeps it.
func (m *webhookModel) expansion(ctx context.Context, webhook *api.Webhook) []string {
	if !m.wantsEverything(ctx) || slices.Contains(webhook.EventTypes, everything) {
		return nil
	}
	return webhook.EventTypes
}

func (m *webhookModel) wantsEverything(ctx context.Context) bool {
	return slices.Contains(m.eventTypes(ctx), everything)
}

func (m *webhookModel) eventTypes(ctx context.Context) []string {
	var eventTypes []string
	m.EventTypes.ElementsAs(ctx, &eventTypes, false)
	slices.Sort(eventTypes)
	return eventTypes
}

func (m *webhookModel) createRequest(ctx context.Context) api.CreateWebhookRequest {
	return api.CreateWebhookRequest{URL: m.URL.ValueString(), EventTypes: m.eventTypes(ctx)}
}

func (m *webhookModel) updateRequest(ctx context.Context) api.UpdateWebhookRequest {
	return api.UpdateWebhookRequest{WebhookID: m.WebhookID.ValueString(), EventTypes: m.eventTypes(ctx)}
}

func containsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(one string) bool { return !slices.Contains(all, one) })
}

// everything stands for all event types, also those to come.
const everything = "*"

var wildcard = types.SetValueMust(types.StringType, []attr.Value{types.StringValue(everything)})

// oldEventTypes are all there were when the published test server of this API made its list. A server that stores all
// event types instead of "*" stores at least these.
var oldEventTypes = []string{
	"access_code.backup_access_code_pulled", "access_code.changed", "access_code.created", "access_code.delay_in_removing_from_device",
	"access_code.delay_in_setting_on_device", "access_code.deleted", "access_code.deleted_external_to_seam", "access_code.failed_to_remove_from_device",
	"access_code.failed_to_set_on_device", "access_code.modified_external_to_seam", "access_code.removed_from_device",
	"access_code.scheduled_on_device", "access_code.set_on_device", "access_code.unmanaged.converted_to_managed", "access_code.unmanaged.created",
	"access_code.unmanaged.failed_to_convert_to_managed", "access_code.unmanaged.removed", "acs_credential.deleted", "acs_user.deleted",
	"client_session.deleted", "connected_account.completed_first_sync", "connected_account.completed_first_sync_after_reconnection",
	"connected_account.connected", "connected_account.created", "connected_account.deleted", "connected_account.disconnected",
	"connected_account.successful_login", "device.battery_status_changed", "device.connected", "device.connection_became_flaky",
	"device.connection_stabilized", "device.converted_to_unmanaged", "device.deleted", "device.disconnected", "device.error.subscription_required",
	"device.error.subscription_required.resolved", "device.low_battery", "device.removed", "device.salto.privacy_mode_activated",
	"device.salto.privacy_mode_deactivated", "device.tampered", "device.third_party_integration_detected",
	"device.third_party_integration_no_longer_detected", "device.unmanaged.connected", "device.unmanaged.converted_to_managed",
	"device.unmanaged.disconnected", "enrollment_automation.deleted", "lock.locked", "lock.unlocked", "noise_sensor.noise_threshold_triggered",
	"phone.deactivated",
}

// isEverything says that the webhook receives all event types there are, as a list instead of "*".
func (m *webhookModel) isEverything(ctx context.Context) bool {
	return containsAll(m.eventTypes(ctx), oldEventTypes)
}
