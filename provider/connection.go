package provider

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

const (
	envAPIKey          = "DEVICEACCESS_API_KEY"
	envEndpoint        = "DEVICEACCESS_ENDPOINT"
	envWorkspaceID     = "DEVICEACCESS_WORKSPACE_ID"
	envConvertOnImport = "DEVICEACCESS_CONVERT_ON_IMPORT"
)

// connection is what the provider's settings come to.
type connection struct {
	api             *api.Client // nil while a setting is unknown
	unknown         string      // that setting
	convertOnImport bool
}

// client is the API, or nil and an error in diags: settings may be unknown while Terraform plans, which only
// matters once something asks the server.
func (c *connection) client(diags *diag.Diagnostics) *api.Client {
	if c == nil || c.api == nil {
		setting := "api_key"
		if c != nil {
			setting = c.unknown
		}
		diags.AddError("Connect to the server", fmt.Sprintf("The provider's setting %q depends on something that is not known yet, "+
			"so the server cannot be asked. Apply what it depends on first, with -target, or set the value directly.", setting))
		return nil
	}
	return c.api
}

// connect makes the connection. Settings that are not configured come from the environment.
func (s settings) connect(ctx context.Context, userAgent string) (*connection, diag.Diagnostics) {
	var diags diag.Diagnostics
	conn := &connection{convertOnImport: s.convertOnImport(&diags)}
	switch {
	case s.APIKey.IsUnknown():
		conn.unknown = "api_key"
	case s.Endpoint.IsUnknown():
		conn.unknown = "endpoint"
	case s.WorkspaceID.IsUnknown():
		conn.unknown = "workspace_id"
	}
	if conn.unknown != "" || diags.HasError() {
		return conn, diags
	}

	config := api.Config{
		Credential:  orEnvironment(s.APIKey, envAPIKey),
		Endpoint:    orEnvironment(s.Endpoint, envEndpoint),
		WorkspaceID: orEnvironment(s.WorkspaceID, envWorkspaceID),
		UserAgent:   userAgent,
		Transport:   logged{api.NewTransport()},
	}
	checkSettings(config, &diags)
	if diags.HasError() {
		return nil, diags
	}
	client, err := api.New(config)
	if err != nil {
		diags.AddError("Connect to the server", sentence(err.Error()))
		return nil, diags
	}
	if config.WorkspaceID != "" {
		checkWorkspace(ctx, client, config.WorkspaceID, &diags)
	}
	conn.api = client
	return conn, diags
}

func checkSettings(config api.Config, diags *diag.Diagnostics) {
	const hint = "\n\nFor a server of your own, `make server` starts one and prints the export lines for both."
	if config.Credential == "" {
		diags.AddAttributeError(path.Root("api_key"), "Connect to the server",
			"There is no API key. Set `api_key` in the provider block, or the environment variable "+envAPIKey+"."+hint)
	}
	// What holds a credential is not pointed to, because Terraform would show the line.
	if config.Endpoint == "" {
		diags.AddAttributeError(path.Root("endpoint"), "Connect to the server",
			"There is no endpoint. Set `endpoint` in the provider block, or the environment variable "+envEndpoint+"."+hint)
	} else if err := api.CheckEndpoint(config.Endpoint); err != nil {
		diags.AddError("Connect to the server", sentence(err.Error())+"\n\nCorrect `endpoint` in the provider block, or the environment variable "+envEndpoint+".")
	}
	if strings.ContainsFunc(config.Credential, func(r rune) bool { return r <= ' ' || r > '~' }) {
		diags.AddError("Connect to the server",
			"The API key holds a blank, a line break or another character that no key has. Copy it again.")
	}
	if api.NeedsWorkspace(config.Credential) && config.WorkspaceID == "" {
		diags.AddAttributeError(path.Root("workspace_id"), "Connect to the server",
			"A personal access token is not bound to a workspace. Set `workspace_id` in the provider block, or the environment variable "+
				envWorkspaceID+".")
	}
}

// checkWorkspace refuses a credential of another workspace, with which everything would look deleted.
func checkWorkspace(ctx context.Context, client *api.Client, wanted string, diags *diag.Diagnostics) {
	answer, err := api.Call[api.WorkspaceResponse](ctx, client.GetWorkspace, api.EmptyRequest{})
	if err != nil {
		report(diags, "Read the workspace of the API key", err)
		return
	}
	if actual := answer.Workspace; !strings.EqualFold(actual.WorkspaceID, wanted) {
		diags.AddAttributeError(path.Root("workspace_id"), "Connect to the server", fmt.Sprintf(
			"The API key belongs to workspace %s (%s), but `workspace_id` says %s. Nothing was read or changed. "+
				"Use a key of that workspace, or correct `workspace_id`.", actual.WorkspaceID, actual.Name, wanted))
	}
}

// convertOnImport is false where it is not known yet: imports do not write by accident.
func (s settings) convertOnImport(diags *diag.Diagnostics) bool {
	value := os.Getenv(envConvertOnImport)
	if !s.ConvertOnImport.IsNull() || value == "" {
		return s.ConvertOnImport.IsNull() || s.ConvertOnImport.ValueBool()
	}
	convert, err := strconv.ParseBool(value)
	if err != nil {
		diags.AddAttributeError(path.Root("convert_on_import"), "Connect to the server",
			fmt.Sprintf("The environment variable %s is neither true nor false. Set it to one of them, or leave it out.", envConvertOnImport))
	}
	return convert
}

func orEnvironment(value types.String, name string) string {
	if value.IsNull() {
		return os.Getenv(name)
	}
	return value.ValueString()
}
