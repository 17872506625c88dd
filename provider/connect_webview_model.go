package provider

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

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

// fill takes over what changes by itself. What is configured cannot be changed on a server; what one makes of it, such
// as the vendors of a kind, is its own business.
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

// applied is fill after an apply: whether somebody has logged in stays as it was planned, and the next refresh shows it.
func (m *connectWebviewModel) applied(w *api.ConnectWebview) {
	planned := m.LoginSuccessful
	m.fill(w)
	m.LoginSuccessful = planned
}

// fillSettings takes over what was configured, for an import.
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
		kinds, more := types.SetValueFrom(ctx, types.StringType, slices.Compact(slices.Sorted(slices.Values(w.AcceptedCapabilities))))
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
		ProviderCategory: m.ProviderCategory.ValueString(), CustomRedirectURL: m.CustomRedirectURL.ValueString(),
		CustomRedirectFailureURL: m.CustomRedirectFailureURL.ValueString(), CustomerKey: m.CustomerKey.ValueString(),
		AutomaticallyManageNewDevices: m.AutomaticallyManageNewDevices.ValueBoolPointer(), WaitForDeviceCreation: m.WaitForDeviceCreation.ValueBool(),
		ExcludedProviders: elements(ctx, m.ExcludedProviders),
	}
	if !m.AcceptedProviders.IsNull() {
		request.AcceptedProviders = new(elements(ctx, m.AcceptedProviders))
	}
	if !m.AcceptedCapabilities.IsNull() {
		kinds := []api.AccountCapability{}
		for _, kind := range elements(ctx, m.AcceptedCapabilities) {
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

// elements are the texts of a set, sorted.
func elements(ctx context.Context, set types.Set) []string {
	var texts []string
	set.ElementsAs(ctx, &texts, false)
	slices.Sort(texts)
	return texts
}
