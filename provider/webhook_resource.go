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
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/boolplanmodifier"
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

type webhookResource struct{ identifiedResource }

func newWebhookResource() resource.Resource {
	return &webhookResource{identifiedResource{attribute: "webhook_id", noun: "webhook"}}
}

func (r *webhookResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_webhook"
}

func (r *webhookResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A webhook: a URL to which the server sends the events of the workspace.",
		Attributes: map[string]schema.Attribute{
			"webhook_id": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "The identifier of the webhook.",
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"url": schema.StringAttribute{
				Required: true,
				MarkdownDescription: "Where the server sends events: an `http` or `https` URL. A change replaces " +
					"the webhook, with a new secret.",
				Validators:    []validator.String{validators.URL{}},
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"event_types": schema.SetAttribute{
				Optional:    true,
				Computed:    true,
				ElementType: types.StringType,
				MarkdownDescription: "The event types to send, such as `device.connected`; see the list below. By " +
					"default `[\"*\"]`, which means all.",
				Default: setdefault.StaticValue(wildcard),
				Validators: []validator.Set{validators.NotEmpty{Hint: "Name the event types to receive, " +
					"or leave it out for all."}, setvalidator.ValueStringsAre(validators.EventType{})},
			},
			"secret": schema.StringAttribute{
				Computed:  true,
				Sensitive: true,
				MarkdownDescription: "The secret that signs each delivery, for the receiver to verify; the state " +
					"contains it. Null after an import from a server that returns it at creation only.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"store_secret": schema.BoolAttribute{
				Optional: true,
				Computed: true,
				MarkdownDescription: "Whether the state contains the secret. By default `true`; with `false`, `secret` " +
					"is null, and the ephemeral resource `deviceaccess_webhook` reads it.",
				Default: booldefault.StaticBool(true),
			},
			"secret_version": schema.Int64Attribute{
				Optional: true,
				MarkdownDescription: "A number of your choice. A change gives the webhook another secret; the first " +
					"number of an existing webhook does not.",
			},
			"disabled": schema.BoolAttribute{
				Computed:      true,
				PlanModifiers: []planmodifier.Bool{boolplanmodifier.UseStateForUnknown()},
				MarkdownDescription: "Whether the server has stopped sending, because the endpoint answered `410 " +
					"Gone` or failed for days. Null from a server that does not report it.",
			},
			"disabled_at": schema.StringAttribute{
				Computed:            true,
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
				MarkdownDescription: "When the server disabled the webhook, in RFC 3339.",
			},
			"disabled_reason": schema.StringAttribute{
				Computed:            true,
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
				MarkdownDescription: "Why the server disabled the webhook.",
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
		reportCreate(&resp.Diagnostics, "create webhook", err)
		return
	}
	expansion := model.expansion(ctx, &answer.Webhook)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, expansionKey, encodeExpansion(expansion))...)
	resp.Diagnostics.Append(r.rememberWorkspace(ctx, resp.Private, "")...)
	resp.Diagnostics.Append(model.fill(ctx, &answer.Webhook, expansion)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
	if !model.StoreSecret.ValueBool() {
		warnOfLostSecret(ctx, client, model.WebhookID, &resp.Diagnostics)
	}
}

func (r *webhookResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var model webhookModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	// The framework requires an identity even for a deleted resource, and Terraform before 1.12 stores none.
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
	stored, diags := req.Private.GetKey(ctx, expansionKey)
	resp.Diagnostics.Append(diags...)
	if !model.URL.IsNull() && r.skipsRefresh(&resp.Diagnostics) {
		return
	}
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	webhook, err := r.refreshWebhook(ctx, client, &model)
	switch {
	case err != nil && model.URL.IsNull():
		reportImport(&resp.Diagnostics, "import webhook", "webhook", model.WebhookID.ValueString(), "The data source "+
			"deviceaccess_webhooks lists webhooks.", err)
		return
	case api.IsNotFound(err):
		if r.isDeleted(ctx, req.Private, "read webhook", &resp.Diagnostics) {
			resp.State.RemoveResource(ctx)
		}
		return
	case err != nil:
		report(&resp.Diagnostics, "read webhook", err)
		return
	}
	resp.Diagnostics.Append(r.rememberWorkspace(ctx, resp.Private, "")...)
	resp.Diagnostics.Append(model.fill(ctx, webhook, decodeExpansion(stored))...)
	resp.Diagnostics.Append(model.warning()...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

func (r *webhookResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var model, state webhookModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &model)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if model.rotates(&state) {
		id := model.WebhookID.ValueString()
		rotated, err := rotateSecret(ctx, client, api.RotateWebhookSecretRequest{WebhookID: id})
		if err != nil {
			reportRotation(&resp.Diagnostics, path.Root("secret_version"), err)
			return
		}
		// Store these now, in case the rest fails: the next apply must not rotate again.
		model.keepSecret(rotated.Webhook.Secret)
		state.SecretVersion, state.StoreSecret, state.Secret = model.SecretVersion, model.StoreSecret, model.Secret
		resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	}
	if !model.EventTypes.Equal(state.EventTypes) {
		if _, err := api.Call[api.OkResponse](ctx, client.UpdateWebhook, model.updateRequest(ctx)); err != nil {
			report(&resp.Diagnostics, "update webhook", err)
			return
		}
	}
	webhook, err := readWebhook(ctx, client, model.WebhookID)
	if err != nil {
		report(&resp.Diagnostics, "read webhook after its update", err)
		return
	}
	expansion := model.expansion(ctx, webhook)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, expansionKey, encodeExpansion(expansion))...)
	planned := model
	resp.Diagnostics.Append(model.fill(ctx, webhook, expansion)...)
	resp.Diagnostics.Append(model.warning()...)
	// An update changes none of these. The next refresh reads what the server has changed since the plan.
	model.Disabled, model.DisabledAt, model.DisabledReason = planned.Disabled, planned.DisabledAt, planned.DisabledReason
	if !planned.Secret.IsUnknown() {
		model.Secret = planned.Secret
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

func (r *webhookResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var model webhookModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	_, err := api.Call[api.OkResponse](
		ctx,
		client.DeleteWebhook,
		api.WebhookRequest{WebhookID: model.WebhookID.ValueString()},
	)
	switch {
	case api.IsNotFound(err):
		r.isDeleted(ctx, req.Private, "delete webhook", &resp.Diagnostics)
	case err != nil:
		// Terraform does not name the resource in an error of a destroy.
		address, _, _ := strings.Cut(model.URL.ValueString(), "?") // the query may contain a token
		text := fmt.Sprintf("the webhook %s to %s: %v", model.WebhookID.ValueString(), address, err)
		report(&resp.Diagnostics, "delete webhook", &explainedError{text, err})
	}
}

func readWebhook(ctx context.Context, client *api.Client, id types.String) (*api.Webhook, error) {
	answer, err := api.Call[api.WebhookResponse](
		ctx,
		client.GetWebhook,
		api.WebhookRequest{WebhookID: id.ValueString()},
	)
	if err != nil {
		return nil, err
	}
	return &answer.Webhook, sameID("webhook", answer.Webhook.WebhookID, id.ValueString())
}

// refreshWebhook is readWebhook for many webhooks: it uses the list. It reads a webhook separately if the list does
// not have it, and an imported webhook if the list does not have its secret.
func (r *webhookResource) refreshWebhook(
	ctx context.Context,
	client *api.Client,
	model *webhookModel,
) (*api.Webhook, error) {
	listed := r.reads.Webhook(ctx, model.WebhookID.ValueString())
	if imported := model.URL.IsNull(); listed == nil || imported && listed.Secret == "" {
		return readWebhook(ctx, client, model.WebhookID)
	}
	return listed, nil
}

// expansionKey is the key of the private state for the list that the server has stored instead of "*".
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

// webhookIdentity identifies a webhook in Terraform 1.12 and newer.
type webhookIdentity struct {
	WebhookID types.String `tfsdk:"webhook_id"`
}

func (m *webhookModel) identity() webhookIdentity { return webhookIdentity{m.WebhookID} }

// ModifyPlan replaces a webhook whose event types change on a server that cannot update webhooks. It plans no change of
// them for an imported webhook with the list of all types, as some servers store "*".
func (r *webhookResource) ModifyPlan(
	ctx context.Context,
	req resource.ModifyPlanRequest,
	resp *resource.ModifyPlanResponse,
) {
	if req.Plan.Raw.IsNull() || req.Plan.Raw.Equal(req.State.Raw) {
		return
	}
	r.checkPlan(ctx, req, resp)
	if resp.Diagnostics.HasError() {
		return
	}
	var plan, state webhookModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if !req.State.Raw.IsNull() {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("secret"), plan.plannedSecret(&state))...)
	if req.State.Raw.IsNull() || !plan.URL.Equal(state.URL) {
		return
	}
	plan.warnOfSecret(&state, &resp.Diagnostics)
	if plan.EventTypes.Equal(state.EventTypes) || !r.isConnected() ||
		r.changesWebhooks(ctx, state.WebhookID.ValueString()) {
		return
	}
	changed, diags := req.Private.GetKey(ctx, expansionKey) // or created, by Terraform
	resp.Diagnostics.Append(diags...)
	if changed == nil && plan.EventTypes.Equal(wildcard) && state.isEverything(ctx) {
		if plan.StoreSecret.Equal(state.StoreSecret) && plan.SecretVersion.Equal(state.SecretVersion) {
			resp.Plan.Raw = req.State.Raw
			return
		}
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("event_types"), state.EventTypes)...)
		return
	}
	resp.RequiresReplace = append(resp.RequiresReplace, path.Root("event_types"))
	diagnostics.WarningAt(&resp.Diagnostics, path.Root("event_types"), "Webhook will be replaced",
		"This server cannot change the event types of a webhook, so applying this plan deletes the webhook and "+
			"creates another one with another secret. To keep the webhook, set `event_types` to the current event "+
			"types that the plan shows.")
}

// webhookChanges caches whether the server can update webhooks.
type webhookChanges struct {
	mu        sync.Mutex
	known     bool
	supported bool
}

// changesWebhooks reports whether the server can update webhooks. It sends one update without changes, which such a
// server rejects or accepts. Any other failure counts as supported, so that the update itself reports the problem.
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

// updateNothing calls UpdateWebhook without event types.
func (c *connection) updateNothing(
	ctx context.Context,
	request api.WebhookRequest,
	editors ...api.RequestEditorFn,
) (*http.Response, error) {
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

	StoreSecret   types.Bool  `tfsdk:"store_secret"`
	SecretVersion types.Int64 `tfsdk:"secret_version"`

	Disabled       types.Bool   `tfsdk:"disabled"`
	DisabledAt     types.String `tfsdk:"disabled_at"`
	DisabledReason types.String `tfsdk:"disabled_reason"`
}

// fill copies a webhook. The expansion is the list that this server has stored instead of "*", if any: as long as the
// list only grows, it means "*".
func (m *webhookModel) fill(ctx context.Context, webhook *api.Webhook, expansion []string) diag.Diagnostics {
	var diags diag.Diagnostics
	m.WebhookID = types.StringValue(webhook.WebhookID)
	m.URL = types.StringValue(webhook.URL)
	sendsEverything := slices.Contains(webhook.EventTypes, allEventTypes) ||
		len(expansion) > 0 && containsAll(webhook.EventTypes, expansion)
	if !m.wantsEverything(ctx) || !sendsEverything {
		m.EventTypes, diags = types.SetValueFrom(
			ctx,
			types.StringType,
			slices.Compact(slices.Sorted(slices.Values(webhook.EventTypes))),
		)
	}
	m.Disabled, m.DisabledAt, m.DisabledReason = disabled(webhook)
	m.keepSecret(webhook.Secret)
	return diags
}

// disabled returns whether, since when, and why a webhook is disabled. Values that the server does not report are null.
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

// warning warns if the webhook is disabled.
func (m *webhookModel) warning() diag.Diagnostics {
	var diags diag.Diagnostics
	if !m.Disabled.ValueBool() {
		return diags
	}
	detail := "The server has stopped sending to this webhook" // without its URL, which may contain a token
	if at := m.DisabledAt.ValueString(); at != "" {
		detail += ", since " + at
	}
	if reason := m.DisabledReason.ValueString(); reason != "" {
		detail += ": " + reason
	}
	id := m.WebhookID.ValueString()
	diagnostics.WarningAt(&diags, path.Root("url"), "Webhook is disabled", sentence(detail)+
		"\n\nWhen the endpoint works again, the operator of the server enables the webhook with "+
		"`deviceaccess-server webhooks enable "+id+"`. The server keeps the events; `deviceaccess-server webhooks "+
		"replay "+id+"` enables the webhook and sends them. Changing event_types does not enable it.")
	return diags
}

// expansion returns the list that the server has stored instead of "*", or nil.
func (m *webhookModel) expansion(ctx context.Context, webhook *api.Webhook) []string {
	if !m.wantsEverything(ctx) || slices.Contains(webhook.EventTypes, allEventTypes) {
		return nil
	}
	return webhook.EventTypes
}

func (m *webhookModel) wantsEverything(ctx context.Context) bool {
	return slices.Contains(m.eventTypes(ctx), allEventTypes)
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

// allEventTypes means all event types, including future ones.
const allEventTypes = "*"

var wildcard = types.SetValueMust(types.StringType, []attr.Value{types.StringValue(allEventTypes)})

// oldEventTypes are the event types in the list of the published test server of this API. A server that stores a list
// instead of "*" stores at least these.
var oldEventTypes = []string{
	"access_code.backup_access_code_pulled",
	"access_code.changed",
	"access_code.created",
	"access_code.delay_in_removing_from_device",
	"access_code.delay_in_setting_on_device",
	"access_code.deleted",
	"access_code.deleted_external_to_seam",
	"access_code.failed_to_remove_from_device",
	"access_code.failed_to_set_on_device",
	"access_code.modified_external_to_seam",
	"access_code.removed_from_device",
	"access_code.scheduled_on_device",
	"access_code.set_on_device",
	"access_code.unmanaged.converted_to_managed",
	"access_code.unmanaged.created",
	"access_code.unmanaged.failed_to_convert_to_managed",
	"access_code.unmanaged.removed",
	"acs_credential.deleted",
	"acs_user.deleted",
	"client_session.deleted",
	"connected_account.completed_first_sync",
	"connected_account.completed_first_sync_after_reconnection",
	"connected_account.connected",
	"connected_account.created",
	"connected_account.deleted",
	"connected_account.disconnected",
	"connected_account.successful_login",
	"device.battery_status_changed",
	"device.connected",
	"device.connection_became_flaky",
	"device.connection_stabilized",
	"device.converted_to_unmanaged",
	"device.deleted",
	"device.disconnected",
	"device.error.subscription_required",
	"device.error.subscription_required.resolved",
	"device.low_battery",
	"device.removed",
	"device.salto.privacy_mode_activated",
	"device.salto.privacy_mode_deactivated",
	"device.tampered",
	"device.third_party_integration_detected",
	"device.third_party_integration_no_longer_detected",
	"device.unmanaged.connected",
	"device.unmanaged.converted_to_managed",
	"device.unmanaged.disconnected",
	"enrollment_automation.deleted",
	"lock.locked",
	"lock.unlocked",
	"noise_sensor.noise_threshold_triggered",
	"phone.deactivated",
}

// isEverything reports whether the webhook has the list of all event types instead of "*".
func (m *webhookModel) isEverything(ctx context.Context) bool {
	return containsAll(m.eventTypes(ctx), oldEventTypes)
}
