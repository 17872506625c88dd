package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
)

const (
	envAPIKey          = "DEVICEACCESS_API_KEY"
	envEndpoint        = "DEVICEACCESS_ENDPOINT"
	envWorkspaceID     = "DEVICEACCESS_WORKSPACE_ID"
	envConvertOnImport = "DEVICEACCESS_CONVERT_ON_IMPORT"

	// Clients of other servers of this API use these variables. The provider reads them if neither of its own is set.
	envOtherAPIKey   = "SEAM_API_KEY"
	envOtherEndpoint = "SEAM_ENDPOINT"
)

// connection is the configured provider.
type connection struct {
	api             *api.Client // nil while a setting is unknown
	reads           *api.Reads  // of api; nil with it
	unknown         []string    // those settings
	workspaceOfKey  workspaceCache
	changes         webhookChanges
	warnings        warningCounter
	convertOnImport bool
	waitUntilOnLock bool

	workspaceIsNamed bool // by workspace_id: the key belongs to that one
}

// client returns the API, or nil and an error in diags if a setting is still unknown during a plan. The texts in more
// are appended to the error.
func (c *connection) client(diags *diag.Diagnostics, more ...string) *api.Client {
	if !c.isConnected() {
		diagnostics.Failure(
			diags,
			"connect to the server",
			c.unconnectedReason()+", so the provider cannot connect.\n\nApply "+
				"in two steps: first the resource that the value comes from, with `terraform apply -target=ADDRESS`, "+
				"then everything. Or set the value directly, for example with a variable. "+strings.Join(more, " "),
		)
		return nil
	}
	return c.api
}

func (c *connection) isConnected() bool { return c != nil && c.api != nil }

// unconnectedReason says why the provider is not connected.
func (c *connection) unconnectedReason() string {
	if c == nil || len(c.unknown) == 0 {
		return "The provider is not configured yet"
	}
	return "The value of " + strings.Join(c.unknown, " and ") + " in the provider block is not known until apply"
}

// skipsRefresh warns that the provider is not connected yet, so the plan uses the state without a refresh.
func (c *connection) skipsRefresh(diags *diag.Diagnostics) bool {
	if c == nil || len(c.unknown) == 0 {
		return false
	}
	diagnostics.Warning(
		diags,
		"Not refreshed",
		c.unconnectedReason()+", so this plan uses the state without a refresh. Run "+
			"Terraform again after apply to see changes made elsewhere.",
	)
	return true
}

// connect connects to the server. Settings that are not configured come from the environment.
func (s settings) connect(ctx context.Context, userAgent string) (*connection, diag.Diagnostics) {
	var diags diag.Diagnostics
	conn := &connection{
		convertOnImport: s.convertOnImport(&diags),
		waitUntilOnLock: s.WaitUntilOnLock.IsNull() || s.WaitUntilOnLock.ValueBool(),
	}
	for _, setting := range []struct {
		name  string
		value types.String
	}{{"`endpoint`", s.Endpoint}, {"`api_key`", s.APIKey}, {"`workspace_id`", s.WorkspaceID}} {
		if setting.value.IsUnknown() {
			conn.unknown = append(conn.unknown, setting.name)
		}
	}
	if !s.WorkspaceID.IsUnknown() && !s.WorkspaceID.IsNull() &&
		strings.TrimSpace(s.WorkspaceID.ValueString()) == "" { // unknown during validation
		namesWorkspace.Report(&diags, path.Root("workspace_id"))
	}
	if conn.unknown != nil || diags.HasError() {
		return conn, diags
	}

	key, endpoint := s.keyAndEndpoint()
	config := api.Config{
		Credential:     key.value,
		CredentialFrom: key.from,
		Endpoint:       endpoint.value,
		WorkspaceID:    orEnvironment(s.WorkspaceID, "workspace_id", envWorkspaceID).value,
		UserAgent:      userAgent,
		Log:            logTry,

		MaxConcurrentRequests: int(s.MaxConcurrentRequests.ValueInt64()),
	}
	checkSettings(config, &diags)
	if diags.HasError() {
		return nil, diags
	}
	client, err := api.New(config)
	if err != nil {
		diagnostics.Failure(&diags, "connect to the server", sentence(err.Error()))
		return nil, diags
	}
	conn.api, conn.reads = client, api.NewReads(client)
	if config.WorkspaceID != "" {
		conn.workspaceIsNamed = true
		conn.checkWorkspace(ctx, config.WorkspaceID, &diags)
	}
	return conn, diags
}

func checkSettings(config api.Config, diags *diag.Diagnostics) {
	const hint = "\n\nTo start your own server, run `make server`; it prints the export lines for both."
	if config.Credential == "" {
		diagnostics.ErrorAt(
			diags,
			path.Root("api_key"),
			"Missing api_key",
			"The API key is missing. Set `api_key` in the provider block, or the environment variable "+envAPIKey+"."+readTogether+hint,
		)
	}
	// No attribute, because Terraform would show a line that contains a credential.
	if config.Endpoint == "" {
		diagnostics.ErrorAt(
			diags,
			path.Root("endpoint"),
			"Missing endpoint",
			"The endpoint is missing. Set `endpoint` in the provider block, or the environment variable "+envEndpoint+"."+readTogether+hint,
		)
	} else if err := api.CheckEndpoint(config.Endpoint); err != nil {
		diagnostics.Error(diags, "Invalid endpoint", sentence(err.Error())+"\n\nCorrect `endpoint` in the "+
			"provider block, or the environment variable "+envEndpoint+".")
	}
	if strings.ContainsFunc(config.Credential, func(r rune) bool { return r <= ' ' || r > '~' }) {
		diagnostics.Error(diags, "Invalid API key",
			"The API key contains a space, a line break, or another character that keys never contain. Copy it "+
				"again.")
	}
	if api.IsPublishable(config.Credential) {
		diagnostics.Error(diags, "Publishable API key", "`api_key` (or "+envAPIKey+") is a publishable key, "+
			"which public web pages use and which cannot manage anything. Use an API key: run `deviceaccess-server "+
			"keys create` on the server to create one.")
	}
	if api.NeedsWorkspace(config.Credential) && config.WorkspaceID == "" {
		diagnostics.ErrorAt(diags, path.Root("workspace_id"), "Missing workspace_id",
			"A personal access token is not bound to a workspace. Set `workspace_id` in the provider block, or the "+
				"environment variable "+
				envWorkspaceID+".")
	}
}

// checkWorkspace rejects a credential of another workspace, with which everything would look deleted.
func (c *connection) checkWorkspace(ctx context.Context, wanted string, diags *diag.Diagnostics) {
	actual, err := c.workspace(ctx)
	if err != nil {
		report(diags, "read the workspace of the API key", err)
		return
	}
	if !strings.EqualFold(actual.WorkspaceID, wanted) {
		diagnostics.ErrorAt(diags, path.Root("workspace_id"), "API key of another workspace", fmt.Sprintf(
			"The API key belongs to workspace %s (%s), but `workspace_id` says %s. Nothing was read or changed. "+
				"Use a key of that workspace, or correct `workspace_id`.", actual.WorkspaceID, actual.Name, wanted))
	}
}

// convertOnImport returns the setting. It is false while the setting is unknown, so that imports do not write by
// accident.
func (s settings) convertOnImport(diags *diag.Diagnostics) bool {
	value := os.Getenv(envConvertOnImport)
	if !s.ConvertOnImport.IsNull() || value == "" {
		return s.ConvertOnImport.IsNull() || s.ConvertOnImport.ValueBool()
	}
	convert, err := strconv.ParseBool(value)
	if err != nil {
		diagnostics.ErrorAt(diags, path.Root("convert_on_import"), "Invalid convert_on_import",
			fmt.Sprintf("The environment variable %s is neither true nor false. Set it to one of them, or unset "+
				"it.", envConvertOnImport))
	}
	return convert
}

// namesWorkspace rejects an empty workspace_id, which would disable the check of the workspace.
var namesWorkspace = validators.NotEmpty{Hint: "Name the workspace that the key must belong to, or leave it out: " +
	"then the provider reads " + envWorkspaceID + ". Null leaves it out, too."}

// setting is a value and its origin, for errors. An empty origin means that it is not set.
type setting struct{ value, from string }

// readTogether explains why the provider may not have read a variable of other clients.
const readTogether = " " + envOtherAPIKey + " and " + envOtherEndpoint + " are read together, and only if neither " +
	"a key nor an endpoint is set in another way: the provider sends a key only to the server that it was set for."

// keyAndEndpoint returns the key and the endpoint. It uses the variables of other clients only if neither is set in
// another way.
func (s settings) keyAndEndpoint() (key, endpoint setting) {
	key, endpoint = orEnvironment(s.APIKey, "api_key", envAPIKey), orEnvironment(s.Endpoint, "endpoint", envEndpoint)
	if key.from == "" && endpoint.from == "" {
		key, endpoint = orEnvironment(
			s.APIKey,
			"api_key",
			envOtherAPIKey,
		), orEnvironment(
			s.Endpoint,
			"endpoint",
			envOtherEndpoint,
		)
	}
	return key, endpoint
}

// orEnvironment returns the value of an attribute of the provider block, or of an environment variable.
func orEnvironment(value types.String, attribute, name string) setting {
	if !value.IsNull() {
		return setting{value.ValueString(), "`" + attribute + "` in the provider block"}
	}
	if found := os.Getenv(name); found != "" {
		return setting{found, "the environment variable " + name}
	}
	return setting{}
}

// connectionAdvice says what to do if no server has answered.
func connectionAdvice(err error) string {
	const nothingSent = "so nothing was sent. "
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		return "Check `endpoint` (or " + envEndpoint + "): the server uses plain HTTP, so the address must begin " +
			"with http://."
	case api.IsUntrusted(err):
		return "The server's TLS certificate is not trusted, " + nothingSent + "Correct the name in `endpoint` (or " +
			envEndpoint + "), or " + trustAdvice(runtime.GOOS) + "."
	case api.IsTLSRejected(err):
		return "The server at `endpoint` (or " + envEndpoint + ") has rejected the TLS connection, " + nothingSent + "It probably requires a client certificate, which the provider does not support: use an address of the server that requires none."
	case api.IsProxyAuthRequired(err):
		return proxyWantsPassword
	case api.IsAboutProxy(err):
		return "The proxy has failed, " + nothingSent + "Check that the proxy is running and forwards requests to " +
			"the server. The environment variable HTTPS_PROXY (HTTP_PROXY for an http address) names the proxy; " +
			"add the server to NO_PROXY if it can be reached directly."
	case api.IsNotConnected(err):
		return "Check that the server is running, and that `endpoint` (or " + envEndpoint + ") is its address."
	case notTried(err):
		return "The timeout ended before the provider sent the request. Raise the provider's " +
			"`max_concurrent_requests`, or the resource's `timeouts`."
	case api.IsBadResponse(err):
		return "The answer from `endpoint` (or " + envEndpoint + ") was cut off, too slow, or too long. Check that " +
			"the server itself answers there, and check proxies in between; then run Terraform again."
	}
	return ""
}

// proxyWantsPassword says what to do if a proxy answers 407.
const proxyWantsPassword = "The proxy requires a user name and a password. Write them into the environment " +
	"variable HTTPS_PROXY (HTTP_PROXY for an http address), as http://USER:PASSWORD@HOST:PORT; or add the server " +
	"to NO_PROXY if it can be reached directly."

// trustAdvice says how to trust a certificate on an operating system. Go reads SSL_CERT_FILE only on systems other
// than macOS and Windows.
func trustAdvice(system string) string {
	const authority = "the certificate of its certificate authority"
	switch system {
	case "darwin", "ios":
		return "add " + authority + " to the keychain and mark it as trusted"
	case "windows":
		return "add " + authority + " to the trusted root certification authorities of the Windows certificate store"
	}
	return "set SSL_CERT_FILE to the path of " + authority
}

// connectedResource gives every resource the connection of the provider.
type connectedResource struct{ *connection }

// Configure takes the connection. Terraform calls it without data when it only needs the schemas.
func (r *connectedResource) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	r.connection, _ = req.ProviderData.(*connection)
}

// cannotImport reports whether an import is impossible: an identifier is misspelled, or the provider is not connected
// yet. If Terraform allows it, the import is deferred until after apply.
func (r *connectedResource) cannotImport(req resource.ImportStateRequest, resp *resource.ImportStateResponse) bool {
	for _, id := range identifiersIn(req) {
		if problem := validators.CheckIdentifier(id); problem != "" {
			diagnostics.Error(&resp.Diagnostics, "Invalid identifier", problem)
			return true
		}
	}
	switch {
	case r.isConnected():
		return false
	case req.ClientCapabilities.DeferralAllowed:
		resp.State.Raw = tftypes.NewValue(resp.State.Raw.Type(), tftypes.UnknownValue)
		resp.Deferred = &resource.Deferred{Reason: resource.DeferredReasonProviderConfigUnknown}
	default:
		r.client(&resp.Diagnostics, "Or add the import block after that apply.")
	}
	return true
}

// identifiersIn returns the identifiers in the ID or the identity of an import.
func identifiersIn(req resource.ImportStateRequest) (ids []string) {
	texts := []string{req.ID}
	if req.ID == "" && req.Identity != nil {
		_ = tftypes.Walk(req.Identity.Raw, func(_ *tftypes.AttributePath, value tftypes.Value) (bool, error) {
			var text string
			if value.Type().Is(tftypes.String) && value.As(&text) == nil {
				texts = append(texts, text)
			}
			return true, nil
		})
	}
	for _, text := range texts {
		ids = append(ids, strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("/, ", r) })...)
	}
	return ids
}

// connectedEphemeralResource gives every ephemeral resource the connection of the provider.
type connectedEphemeralResource struct{ *connection }

// Configure takes the connection. Terraform calls it without data when it only needs the schemas.
func (e *connectedEphemeralResource) Configure(
	_ context.Context,
	req ephemeral.ConfigureRequest,
	_ *ephemeral.ConfigureResponse,
) {
	e.connection, _ = req.ProviderData.(*connection)
}

// client returns the API. If it is nil, the response has an error, or defers the read until after apply.
func (e *connectedEphemeralResource) client(req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) *api.Client {
	if !e.isConnected() && req.ClientCapabilities.DeferralAllowed {
		resp.Result.Raw = tftypes.NewValue(resp.Result.Raw.Type(), tftypes.UnknownValue)
		resp.Deferred = &ephemeral.Deferred{Reason: ephemeral.DeferredReasonProviderConfigUnknown}
		return nil
	}
	return e.connection.client(&resp.Diagnostics, "An ephemeral resource waits for apply automatically if one of "+
		"its arguments is also unknown.")
}

// connectedDataSource gives every data source the connection of the provider.
type connectedDataSource struct{ *connection }

// Configure takes the connection. Terraform calls it without data when it only needs the schemas.
func (d *connectedDataSource) Configure(
	_ context.Context,
	req datasource.ConfigureRequest,
	_ *datasource.ConfigureResponse,
) {
	d.connection, _ = req.ProviderData.(*connection)
}

// client returns the API. If it is nil, the response has an error, or defers the read until after apply.
func (d *connectedDataSource) client(req datasource.ReadRequest, resp *datasource.ReadResponse) *api.Client {
	if !d.isConnected() && req.ClientCapabilities.DeferralAllowed {
		resp.State.Raw = tftypes.NewValue(resp.State.Raw.Type(), tftypes.UnknownValue)
		resp.Deferred = &datasource.Deferred{Reason: datasource.DeferredReasonProviderConfigUnknown}
		return nil
	}
	return d.connection.client(&resp.Diagnostics, "Or let the data source wait for apply: add the resource that "+
		"the value comes from to its `depends_on`. Then write the `device_id` of access codes as a literal value: "+
		"a `device_id` from such a data source replaces the code whenever that resource changes.")
}
