// Package provider is the Terraform provider. It maps resources and data sources to the operations of package api. It
// must not know how a server is built, and works with every server of that API.
//
// Each resource is one file, x_resource.go, with its test; access_code_schema.go and access_code_plan.go hold the
// larger parts of the access code. access_code_operations.go has the operations that several resources share, and
// diagnostics.go the texts of errors. Checks of attributes are in package validators, rules for plans in package
// planmodifiers, and rules of locks in package lockrules, against which plan_checks.go checks plans. Rules of
// thermostats are in thermostat_rules.go.
package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
)

// New returns a constructor of the provider. The version is the one in required_providers.
func New(version string) func() provider.Provider {
	return func() provider.Provider { return &deviceAccess{version: version, walk: &walk{}} }
}

type deviceAccess struct {
	version string
	walk    *walk
}

var (
	_ provider.ProviderWithActions       = (*deviceAccess)(nil)
	_ provider.ProviderWithFunctions     = (*deviceAccess)(nil)
	_ provider.ProviderWithListResources = (*deviceAccess)(nil)
)

type settings struct {
	APIKey          types.String `tfsdk:"api_key"`
	Endpoint        types.String `tfsdk:"endpoint"`
	WorkspaceID     types.String `tfsdk:"workspace_id"`
	ConvertOnImport types.Bool   `tfsdk:"convert_on_import"`
	WaitUntilOnLock types.Bool   `tfsdk:"wait_until_on_lock"`
	CACertificate   types.String `tfsdk:"ca_certificate"`
	DefaultTimeouts types.Object `tfsdk:"default_timeouts"`

	MaxConcurrentRequests types.Int64 `tfsdk:"max_concurrent_requests"`
}

func (p *deviceAccess) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName, resp.Version = "deviceaccess", p.version
}

func (p *deviceAccess) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Manages access codes of door locks, users of access systems, schedules of thermostats, " +
			"thresholds of noise sensors, and webhooks, through a Device Access server.",
		Attributes: map[string]schema.Attribute{
			"api_key": schema.StringAttribute{
				Optional:  true,
				Sensitive: true,
				MarkdownDescription: "The API key (`seam_…`), or a personal access token (`seam_at…`) together with " +
					"`workspace_id`. By default the environment variable `DEVICEACCESS_API_KEY`.",
			},
			"endpoint": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "The address of the server, such as `http://127.0.0.1:8500`. By default the " +
					"environment variable `DEVICEACCESS_ENDPOINT`.",
			},
			"workspace_id": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "The workspace that the key must belong to; required with a personal access " +
					"token. By default the environment variable `DEVICEACCESS_WORKSPACE_ID`.",
				Validators: []validator.String{namesWorkspace},
			},
			"convert_on_import": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Whether importing an unmanaged code by its bare `access_code_id` converts it " +
					"immediately. By default the environment variable `DEVICEACCESS_CONVERT_ON_IMPORT`, else `true`.",
			},
			"wait_until_on_lock": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Whether creating, updating, and converting an access code waits until the " +
					"lock has it. By default `true`.",
			},
			"max_concurrent_requests": schema.Int64Attribute{
				Optional: true,
				MarkdownDescription: "How many requests the provider sends at the same time; lower it for a server " +
					"that answers 429. By default `10`.",
				Validators: []validator.Int64{validators.AtLeastOne{}},
			},
			"ca_certificate": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Certificates in PEM format to trust in addition to those of the system. By " +
					"default those in the file that the environment variable `DEVICEACCESS_CA_CERTIFICATE` names.",
			},
			"default_timeouts": defaultTimeoutsAttribute(),
		},
	}
}

func (p *deviceAccess) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var config settings
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	conn, diags := config.connect(ctx, userAgent(p.version, req.TerraformVersion))
	resp.Diagnostics.Append(diags...)
	if conn != nil {
		conn.walk = p.walk
	}
	resp.ResourceData, resp.DataSourceData = conn, conn
	resp.EphemeralResourceData, resp.ListResourceData, resp.ActionData = conn, conn, conn
}

func userAgent(version, terraform string) string {
	return "terraform-provider-deviceaccess/" + version + " Terraform/" + terraform
}

func (p *deviceAccess) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{
		newWebhookResource,
		newAccessCodeResource,
		newSharedAccessCodeResource,
		newAccessCodesExclusiveResource,
		newConnectWebviewResource,
		newDeviceResource,
		newACSUserResource,
		newUserIdentityResource,
		newClimatePresetResource,
		newThermostatScheduleResource,
		newNoiseThresholdResource,
	}
}

func (p *deviceAccess) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	return []func() ephemeral.EphemeralResource{newEphemeralAccessCode, newEphemeralWebhook}
}

func (p *deviceAccess) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{
		newWorkspaceDataSource,
		newDevicesDataSource,
		newDeviceDataSource,
		newDeviceProvidersDataSource,
		newUnmanagedAccessCodesDataSource,
		newAccessCodesDataSource,
		newWebhooksDataSource,
		newConnectedAccountsDataSource,
		newACSUsersDataSource,
		newAccessCodeDataSource,
		newWebhookDataSource,
		newConnectedAccountDataSource,
		newThermostatsDataSource,
		newNoiseSensorsDataSource,
	}
}

func (p *deviceAccess) Actions(context.Context) []func() action.Action {
	return []func() action.Action{
		newLockDoorAction,
		newUnlockDoorAction,
		newPullBackupAccessCodeAction,
		newWebhookTestAction,
		newWebhookRotateSecretAction,
	}
}

func (p *deviceAccess) Functions(context.Context) []func() function.Function {
	return []func() function.Function{newPINFitsFunction}
}

func (p *deviceAccess) ListResources(context.Context) []func() list.ListResource {
	return []func() list.ListResource{
		newAccessCodeList,
		newAccessCodesExclusiveList,
		newConnectWebviewList,
		newWebhookList,
		newDeviceList,
		newACSUserList,
		newUserIdentityList,
		newClimatePresetList,
		newThermostatScheduleList,
		newNoiseThresholdList,
	}
}
