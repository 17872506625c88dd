package provider

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/boolplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/planmodifiers"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
)

var (
	_ resource.ResourceWithIdentity    = (*connectWebviewResource)(nil)
	_ resource.ResourceWithImportState = (*connectWebviewResource)(nil)
)

type connectWebviewResource struct{ identifiedResource }

func newConnectWebviewResource() resource.Resource {
	return &connectWebviewResource{identifiedResource{attribute: "connect_webview_id", noun: "page"}}
}

func (r *connectWebviewResource) Metadata(
	_ context.Context,
	req resource.MetadataRequest,
	resp *resource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_connect_webview"
}

func (r *connectWebviewResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	replace := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	returned, notReturned := []planmodifier.Set{
		planmodifiers.StateAfterImport{},
		planmodifiers.RequiresReplaceUnlessImported{},
	}, []planmodifier.Set{
		planmodifiers.RequiresReplaceUnlessImported{},
	}
	same := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	some := func(instead string, each validator.String) []validator.Set {
		return []validator.Set{validators.NotEmpty{Hint: instead}, setvalidator.ValueStringsAre(each)}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "An invitation to connect an account: a page on which a person, such as a homeowner, " +
			"chooses a vendor and logs in. The locks of the account then appear in the workspace. Send the person " +
			"`url`. The page accepts one login, and on the server of this project for seven days; `terraform apply " +
			"-replace` creates another page. Destroying the resource ends the invitation; a connected account stays.",
		Attributes: map[string]schema.Attribute{
			"connect_webview_id": schema.StringAttribute{
				Computed:            true,
				PlanModifiers:       same,
				MarkdownDescription: "The identifier of the page.",
			},
			"url": schema.StringAttribute{
				Computed:      true,
				Sensitive:     true,
				PlanModifiers: same,
				MarkdownDescription: "The page. Every person with this URL can log in on it, so it is sensitive: " +
					"send it to the right person, and use a backend that encrypts the state.",
			},
			"accepted_providers": schema.SetAttribute{
				Optional:      true,
				Computed:      true,
				ElementType:   types.StringType,
				PlanModifiers: returned,
				Validators: some("Name the vendors to offer, or leave it out for "+
					"all.", validators.NotEmpty{Hint: "Name a vendor."}),
				MarkdownDescription: "The vendors to offer, such as `august` or `nuki`; see the data source " +
					"`deviceaccess_device_providers`. By default all that the server can connect.",
			},
			"excluded_providers": schema.SetAttribute{
				Optional:      true,
				ElementType:   types.StringType,
				PlanModifiers: notReturned,
				Validators: some("Name vendors, or leave it "+
					"out.", validators.NotEmpty{Hint: "Name a vendor."}),
				MarkdownDescription: "Vendors not to offer. Servers do not return it: after an import it is null, " +
					"and setting it then changes nothing.",
			},
			"provider_category": schema.StringAttribute{
				Optional:      true,
				PlanModifiers: []planmodifier.String{planmodifiers.RequiresReplaceUnlessImported{}},
				Validators: []validator.String{validators.NotEmpty{Hint: "Name a kind of vendors, or " +
					"leave it out."}},
				MarkdownDescription: "Offer only vendors of this category, such as `stable` or " +
					"`consumer_smartlocks`. Servers do not return it: after an import it is null, and setting it " +
					"then changes nothing.",
			},
			"accepted_capabilities": schema.SetAttribute{
				Optional:      true,
				Computed:      true,
				ElementType:   types.StringType,
				PlanModifiers: returned,
				Validators: some("Name the kinds of devices to import, or leave it "+
					"out.", stringvalidator.OneOf("lock", "thermostat", "noise_sensor", "access_control", "camera")),
				MarkdownDescription: "The kinds of devices to import from the account: `lock`, `thermostat`, " +
					"`noise_sensor`, `access_control`, `camera`. By default the kinds that the server supports for " +
					"these vendors.",
			},
			"automatically_manage_new_devices": schema.BoolAttribute{
				Optional:      true,
				Computed:      true,
				Default:       booldefault.StaticBool(true),
				PlanModifiers: []planmodifier.Bool{boolplanmodifier.RequiresReplace()},
				MarkdownDescription: "Whether the workspace manages the devices of the account when they appear. " +
					"By default `true`.",
			},
			"wait_for_device_creation": schema.BoolAttribute{
				Optional:      true,
				Computed:      true,
				Default:       booldefault.StaticBool(false),
				PlanModifiers: []planmodifier.Bool{boolplanmodifier.RequiresReplace()},
				MarkdownDescription: "Whether the login counts as successful only after the devices of the account " +
					"have appeared. By default `false`.",
			},
			"custom_redirect_url": schema.StringAttribute{
				Optional:      true,
				PlanModifiers: replace,
				Validators:    []validator.String{validators.URL{}},
				MarkdownDescription: "Where the page sends the person after the login, with `connect_webview_id` " +
					"and `connected_account_id` in the query.",
			},
			"custom_redirect_failure_url": schema.StringAttribute{
				Optional:      true,
				PlanModifiers: replace,
				Validators:    []validator.String{validators.URL{}},
				MarkdownDescription: "Where the page sends the person when the login fails. By default " +
					"`custom_redirect_url`.",
			},
			"custom_metadata": schema.MapAttribute{
				Optional:      true,
				ElementType:   types.StringType,
				PlanModifiers: []planmodifier.Map{planmodifiers.RequiresReplaceUnlessEmpty()},
				Validators: []validator.Map{
					mapvalidator.NoNullValues(),
					mapvalidator.ValueStringsAre(validators.NotEmpty{Hint: "Give the key a text, or leave it out."}),
				},
				MarkdownDescription: "Your own data, which is also stored with the account: up to 50 keys of 40 " +
					"characters, with strings of up to 500 characters.",
			},
			"customer_key": schema.StringAttribute{
				Optional:      true,
				PlanModifiers: replace,
				Validators: []validator.String{validators.NotEmpty{Hint: "Name a customer, or leave it " +
					"out."}},
				MarkdownDescription: "The customer to whom the account will belong.",
			},
			"status": schema.StringAttribute{
				Computed:      true,
				PlanModifiers: same,
				MarkdownDescription: "`pending` until a person logs in, then `authorized`; `failed` after a " +
					"rejected login, which the person can retry. A refresh updates it.",
			},
			"login_successful": schema.BoolAttribute{
				Computed:      true,
				PlanModifiers: []planmodifier.Bool{planmodifiers.DefaultOrState{Default: false}},
				MarkdownDescription: "Whether a person has logged in, as of the last refresh. Known in every plan, " +
					"so `count` can depend on it.",
			},
			"connected_account_id": schema.StringAttribute{
				Computed:            true,
				PlanModifiers:       same,
				MarkdownDescription: "The connected account. Null until the login.",
			},
			"selected_provider": schema.StringAttribute{
				Computed:            true,
				PlanModifiers:       same,
				MarkdownDescription: "The vendor that the person has chosen. Null until the login.",
			},
			"authorized_at": schema.StringAttribute{
				Computed:            true,
				PlanModifiers:       same,
				MarkdownDescription: "When the person logged in, in RFC 3339. Null until the login.",
			},
			"created_at": schema.StringAttribute{
				Computed:            true,
				PlanModifiers:       same,
				MarkdownDescription: "When the page was created, in RFC 3339.",
			},
		},
	}
}

func (r *connectWebviewResource) Create(
	ctx context.Context,
	req resource.CreateRequest,
	resp *resource.CreateResponse,
) {
	var model connectWebviewModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &model)...)
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	answer, err := api.Call[api.ConnectWebviewResponse](ctx, client.CreateConnectWebview, model.request(ctx))
	if err == nil {
		err = hasID("connect webview", answer.ConnectWebview.ConnectWebviewID)
	}
	if err != nil {
		reportCreate(&resp.Diagnostics, "create connect webview", err)
		return
	}
	resp.Diagnostics.Append(r.rememberWorkspace(ctx, resp.Private, answer.ConnectWebview.WorkspaceID)...)
	model.applied(&answer.ConnectWebview)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
}

func (r *connectWebviewResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var model connectWebviewModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	// The framework requires an identity even for a deleted resource, and Terraform before 1.12 stores none.
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
	imported := model.CreatedAt.IsNull()
	if !imported && r.skipsRefresh(&resp.Diagnostics) {
		return
	}
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	webview, err := readConnectWebview(ctx, client, model.ConnectWebviewID.ValueString())
	switch {
	case err != nil && imported:
		id := model.ConnectWebviewID.ValueString()
		reportImport(&resp.Diagnostics, "import connect webview", "connect webview", id, "The server lists pages at "+
			"`/connect_webviews/list`.", err)
		return
	case api.IsNotFound(err):
		if r.isDeleted(ctx, req.Private, "read connect webview", &resp.Diagnostics) {
			resp.State.RemoveResource(ctx)
		}
		return
	case err != nil:
		report(&resp.Diagnostics, "read connect webview", err)
		return
	}
	resp.Diagnostics.Append(r.rememberWorkspace(ctx, resp.Private, webview.WorkspaceID)...)
	model.fill(webview)
	if imported {
		resp.Diagnostics.Append(planmodifiers.MarkImported(ctx, resp.Private)...)
		resp.Diagnostics.Append(model.fillSettings(ctx, webview)...)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

func readConnectWebview(ctx context.Context, client *api.Client, id string) (*api.ConnectWebview, error) {
	answer, err := api.Call[api.ConnectWebviewResponse](
		ctx,
		client.GetConnectWebview,
		api.ConnectWebviewRequest{ConnectWebviewID: id},
	)
	if err != nil {
		return nil, err
	}
	return &answer.ConnectWebview, sameID("connect webview", answer.ConnectWebview.ConnectWebviewID, id)
}

// Update stores settings of an imported page that the server does not return. Every other change replaces the page, so
// the plan is the state.
func (r *connectWebviewResource) Update(
	ctx context.Context,
	req resource.UpdateRequest,
	resp *resource.UpdateResponse,
) {
	var model connectWebviewModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &model)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
}

func (r *connectWebviewResource) Delete(
	ctx context.Context,
	req resource.DeleteRequest,
	resp *resource.DeleteResponse,
) {
	var model connectWebviewModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	_, err := api.Call[api.OkResponse](
		ctx,
		client.DeleteConnectWebview,
		api.ConnectWebviewRequest{ConnectWebviewID: model.ConnectWebviewID.ValueString()},
	)
	switch {
	case api.IsNotFound(err):
		r.isDeleted(ctx, req.Private, "delete connect webview", &resp.Diagnostics)
	case err != nil:
		// Terraform does not name the resource in an error of a destroy.
		report(
			&resp.Diagnostics,
			"delete connect webview",
			&explainedError{"the connect webview " + model.ConnectWebviewID.ValueString() + ": " + err.Error(), err},
		)
	}
}

// connectWebviewIdentity identifies a page in Terraform 1.12 and newer.
type connectWebviewIdentity struct {
	ConnectWebviewID types.String `tfsdk:"connect_webview_id"`
}

func (m *connectWebviewModel) identity() connectWebviewIdentity {
	return connectWebviewIdentity{m.ConnectWebviewID}
}

type connectWebviewModel struct {
	ConnectWebviewID              types.String `tfsdk:"connect_webview_id"`
	URL                           types.String `tfsdk:"url"`
	AcceptedProviders             types.Set    `tfsdk:"accepted_providers"`
	ExcludedProviders             types.Set    `tfsdk:"excluded_providers"`
	ProviderCategory              types.String `tfsdk:"provider_category"`
	AcceptedCapabilities          types.Set    `tfsdk:"accepted_capabilities"`
	AutomaticallyManageNewDevices types.Bool   `tfsdk:"automatically_manage_new_devices"`
	WaitForDeviceCreation         types.Bool   `tfsdk:"wait_for_device_creation"`
	CustomRedirectURL             types.String `tfsdk:"custom_redirect_url"`
	CustomRedirectFailureURL      types.String `tfsdk:"custom_redirect_failure_url"`
	CustomMetadata                types.Map    `tfsdk:"custom_metadata"`
	CustomerKey                   types.String `tfsdk:"customer_key"`

	Status             types.String `tfsdk:"status"`
	LoginSuccessful    types.Bool   `tfsdk:"login_successful"`
	ConnectedAccountID types.String `tfsdk:"connected_account_id"`
	SelectedProvider   types.String `tfsdk:"selected_provider"`
	AuthorizedAt       types.String `tfsdk:"authorized_at"`
	CreatedAt          types.String `tfsdk:"created_at"`
}

// fill copies the attributes that the server changes. It leaves out the settings, which cannot be changed on a server
// and which servers may expand, such as a category to its vendors.
func (m *connectWebviewModel) fill(w *api.ConnectWebview) {
	m.ConnectWebviewID = types.StringValue(w.ConnectWebviewID)
	m.URL = types.StringValue(w.URL)
	m.Status = types.StringValue(string(w.Status))
	m.LoginSuccessful = types.BoolValue(w.LoginSuccessful)
	m.ConnectedAccountID = types.StringPointerValue(w.ConnectedAccountID)
	m.SelectedProvider = types.StringPointerValue(w.SelectedProvider)
	m.AuthorizedAt = types.StringNull()
	if w.AuthorizedAt != nil {
		m.AuthorizedAt = types.StringValue(w.AuthorizedAt.UTC().Format(time.RFC3339))
	}
	m.CreatedAt = types.StringValue(w.CreatedAt.UTC().Format(time.RFC3339))
}

// applied is fill after an apply: login_successful stays as planned, and the next refresh updates it.
func (m *connectWebviewModel) applied(w *api.ConnectWebview) {
	planned := m.LoginSuccessful
	m.fill(w)
	m.LoginSuccessful = planned
}

// fillSettings copies the settings, for an import.
func (m *connectWebviewModel) fillSettings(ctx context.Context, w *api.ConnectWebview) (diags diag.Diagnostics) {
	m.AutomaticallyManageNewDevices = types.BoolValue(w.AutomaticallyManageNewDevices)
	m.WaitForDeviceCreation = types.BoolValue(w.WaitForDeviceCreation)
	m.CustomRedirectURL = types.StringPointerValue(w.CustomRedirectURL)
	m.CustomRedirectFailureURL = types.StringPointerValue(w.CustomRedirectFailureURL)
	if w.CustomerKey != "" {
		m.CustomerKey = types.StringValue(w.CustomerKey)
	}
	if !w.AnyProviderAllowed && len(w.AcceptedProviders) > 0 {
		providers := slices.Compact(slices.Sorted(slices.Values(w.AcceptedProviders)))
		m.AcceptedProviders, diags = types.SetValueFrom(ctx, types.StringType, providers)
	}
	if len(w.AcceptedCapabilities) > 0 {
		kinds, more := types.SetValueFrom(
			ctx,
			types.StringType,
			slices.Compact(slices.Sorted(slices.Values(w.AcceptedCapabilities))),
		)
		m.AcceptedCapabilities = kinds
		diags.Append(more...)
	}
	if len(w.CustomMetadata) > 0 {
		texts := map[string]string{}
		for key, value := range w.CustomMetadata {
			texts[key] = fmt.Sprint(value)
		}
		kept, more := types.MapValueFrom(ctx, types.StringType, texts)
		m.CustomMetadata = kept
		diags.Append(more...)
	}
	return diags
}

func (m *connectWebviewModel) request(ctx context.Context) api.CreateConnectWebviewRequest {
	request := api.CreateConnectWebviewRequest{
		ProviderCategory:              m.ProviderCategory.ValueString(),
		CustomRedirectURL:             m.CustomRedirectURL.ValueString(),
		CustomRedirectFailureURL:      m.CustomRedirectFailureURL.ValueString(),
		CustomerKey:                   m.CustomerKey.ValueString(),
		AutomaticallyManageNewDevices: m.AutomaticallyManageNewDevices.ValueBoolPointer(),
		WaitForDeviceCreation:         m.WaitForDeviceCreation.ValueBool(),
		ExcludedProviders:             sortedStrings(ctx, m.ExcludedProviders),
	}
	if !m.AcceptedProviders.IsNull() {
		request.AcceptedProviders = new(sortedStrings(ctx, m.AcceptedProviders))
	}
	if !m.AcceptedCapabilities.IsNull() {
		kinds := []api.AccountCapability{}
		for _, kind := range sortedStrings(ctx, m.AcceptedCapabilities) {
			kinds = append(kinds, api.AccountCapability(kind))
		}
		request.AcceptedCapabilities = &kinds
	}
	texts := map[string]string{}
	m.CustomMetadata.ElementsAs(ctx, &texts, false)
	for key, value := range texts {
		if request.CustomMetadata == nil {
			request.CustomMetadata = map[string]any{}
		}
		request.CustomMetadata[key] = value
	}
	return request
}

// sortedStrings returns the strings of a set, sorted.
func sortedStrings(ctx context.Context, set types.Set) []string {
	var texts []string
	set.ElementsAs(ctx, &texts, false)
	slices.Sort(texts)
	return texts
}
