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

	// What clients of other servers of this API have set already, read where neither of ours is set.
	envOtherAPIKey   = "SEAM_API_KEY"
	envOtherEndpoint = "SEAM_ENDPOINT"
)

// connection is what the provider's settings come to.
type connection struct {
	api             *api.Client // nil while a setting is unknown
	reads           *api.Reads  // of api; nil with it
	unknown         []string    // those settings
	asked           asked
	changes         webhookChanges
	troubles        troubles
	convertOnImport bool
	waitForSet      bool

	workspaceIsNamed bool // by workspace_id: the key belongs to that one
}

// client is the API, or nil and an error in diags: settings may be unknown while Terraform plans, which only
// matters once something asks the server. More is what else can be done about it.
func (c *connection) client(diags *diag.Diagnostics, more ...string) *api.Client {
	if !c.isConnected() {
		diagnostics.Error(diags, "Connect to the server", c.reason()+", so the server cannot be asked.\n\nApply in two steps: first the resource that it comes from, with "+
			"`terraform apply -target=ADDRESS`, then everything. Or set the value directly, such as by a variable. "+strings.Join(more, " "))
		return nil
	}
	return c.api
}

func (c *connection) isConnected() bool { return c != nil && c.api != nil }

// reason is why the server cannot be asked.
func (c *connection) reason() string {
	if c == nil || len(c.unknown) == 0 {
		return "The provider is not configured yet"
	}
	return "What the provider block sets for " + strings.Join(c.unknown, " and ") + " comes from something that is only known after apply"
}

// readsLater says that the server cannot be asked yet, so that what the state says stands until apply.
func (c *connection) readsLater(diags *diag.Diagnostics) bool {
	if c == nil || len(c.unknown) == 0 {
		return false
	}
	diagnostics.Warning(diags, "Not refreshed", c.reason()+", so the server was not asked: "+
		"this plan takes the state for true. Run Terraform again after apply to see what has changed elsewhere.")
	return true
}

// connect makes the connection. Settings that are not configured come from the environment.
func (s settings) connect(ctx context.Context, userAgent string) (*connection, diag.Diagnostics) {
	var diags diag.Diagnostics
	conn := &connection{convertOnImport: s.convertOnImport(&diags), waitForSet: s.WaitForSet.IsNull() || s.WaitForSet.ValueBool()}
	for _, setting := range []struct {
		name  string
		value types.String
	}{{"`endpoint`", s.Endpoint}, {"`api_key`", s.APIKey}, {"`workspace_id`", s.WorkspaceID}} {
		if setting.value.IsUnknown() {
			conn.unknown = append(conn.unknown, setting.name)
		}
	}
	if !s.WorkspaceID.IsUnknown() && !s.WorkspaceID.IsNull() && strings.TrimSpace(s.WorkspaceID.ValueString()) == "" { // which was not known when the configuration was checked
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
		diagnostics.Error(&diags, "Connect to the server", sentence(err.Error()))
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
	const hint = "\n\nFor a server of your own, `make server` starts one and prints the export lines for both."
	if config.Credential == "" {
		diagnostics.ErrorAt(diags, path.Root("api_key"), "Connect to the server",
			"There is no API key. Set `api_key` in the provider block, or the environment variable "+envAPIKey+"."+readTogether+hint)
	}
	// What holds a credential is not pointed to, because Terraform would show the line.
	if config.Endpoint == "" {
		diagnostics.ErrorAt(diags, path.Root("endpoint"), "Connect to the server",
			"There is no endpoint. Set `endpoint` in the provider block, or the environment variable "+envEndpoint+"."+readTogether+hint)
	} else if err := api.CheckEndpoint(config.Endpoint); err != nil {
		diagnostics.Error(diags, "Connect to the server", sentence(err.Error())+"\n\nCorrect `endpoint` in the provider block, or the environment variable "+envEndpoint+".")
	}
	if strings.ContainsFunc(config.Credential, func(r rune) bool { return r <= ' ' || r > '~' }) {
		diagnostics.Error(diags, "Connect to the server",
			"The API key holds a blank, a line break or another character that no key has. Copy it again.")
	}
	if api.IsPublishable(config.Credential) {
		diagnostics.Error(diags, "Connect to the server", "`api_key` (or "+envAPIKey+") is a publishable key: it is for pages that everybody sees, and manages nothing. "+
			"Use an API key: where the server runs, `deviceaccess-server keys create` makes one.")
	}
	if api.NeedsWorkspace(config.Credential) && config.WorkspaceID == "" {
		diagnostics.ErrorAt(diags, path.Root("workspace_id"), "Connect to the server",
			"A personal access token is not bound to a workspace. Set `workspace_id` in the provider block, or the environment variable "+
				envWorkspaceID+".")
	}
}

// checkWorkspace refuses a credential of another workspace, with which everything would look deleted.
func (c *connection) checkWorkspace(ctx context.Context, wanted string, diags *diag.Diagnostics) {
	actual, err := c.workspace(ctx)
	if err != nil {
		report(diags, "Read the workspace of the API key", err)
		return
	}
	if !strings.EqualFold(actual.WorkspaceID, wanted) {
		diagnostics.ErrorAt(diags, path.Root("workspace_id"), "Connect to the server", fmt.Sprintf(
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
		diagnostics.ErrorAt(diags, path.Root("convert_on_import"), "Connect to the server",
			fmt.Sprintf("The environment variable %s is neither true nor false. Set it to one of them, or leave it out.", envConvertOnImport))
	}
	return convert
}

// namesWorkspace keeps an empty setting from switching off what it is there for, also where the environment names a workspace.
var namesWorkspace = validators.NotEmpty{Hint: "Name the workspace that the key must belong to, or leave it out: then " + envWorkspaceID + " is read. Null leaves it out, too."}

// setting is a value and where it comes from.
type setting struct{ value, from string }

// readTogether is why a variable of other clients may not have been read.
const readTogether = " " + envOtherAPIKey + " and " + envOtherEndpoint + " are read together, where neither of the two is set otherwise: a key is only sent to the server that it was set for."

// keyAndEndpoint are ours, as far as one of them is set; else those of other clients.
func (s settings) keyAndEndpoint() (key, endpoint setting) {
	key, endpoint = orEnvironment(s.APIKey, "api_key", envAPIKey), orEnvironment(s.Endpoint, "endpoint", envEndpoint)
	if key.from == "" && endpoint.from == "" {
		key, endpoint = orEnvironment(s.APIKey, "api_key", envOtherAPIKey), orEnvironment(s.Endpoint, "endpoint", envOtherEndpoint)
	}
	return key, endpoint
}

// orEnvironment is the value that an attribute of the provider block has, or that of the variable; from nowhere if neither is set.
func orEnvironment(value types.String, attribute, name string) setting {
	if !value.IsNull() {
		return setting{value.ValueString(), "`" + attribute + "` in the provider block"}
	}
	if found := os.Getenv(name); found != "" {
		return setting{found, "the environment variable " + name}
	}
	return setting{}
}

// connectionAdvice is what can be done where no server has answered.
func connectionAdvice(err error) string {
	const nothingSent = "so nothing was sent. "
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		return "Check `endpoint` (or " + envEndpoint + "): that server speaks plain http, so the address begins with http://."
	case api.IsUntrusted(err):
		return "The server's TLS certificate is not trusted, " + nothingSent + "Correct the name in `endpoint` (or " + envEndpoint + "), or " + howToTrust(runtime.GOOS) + "."
	case api.IsTurnedAway(err):
		return "What answers at `endpoint` (or " + envEndpoint + ") has refused the TLS connection, " + nothingSent + "As a rule it demands a certificate of the client, and the " +
			"provider has none to show: name an address of the server that demands none."
	case api.IsProxyPasswordWanted(err):
		return proxyWantsPassword
	case api.IsAboutProxy(err):
		return "Requests go through a proxy here, " + nothingSent + "Check that the proxy is running and lets requests to the server through. The environment variable HTTPS_PROXY " +
			"(for an http address HTTP_PROXY) names it; name the server in NO_PROXY if it can be reached without."
	case api.IsNotConnected(err):
		return "Check that the server is running, and that `endpoint` (or " + envEndpoint + ") is its address."
	case notTried(err):
		return "It was not tried before the time was up. Raise the provider's `max_concurrent_requests`, or the resource's `timeouts`."
	case api.IsBadAnswer(err):
		return "Something at `endpoint` (or " + envEndpoint + ") answers, but its answer broke off, was too slow or too long. Check that it is the " +
			"server itself, and what is between it and here, such as a proxy; then run Terraform again."
	}
	return ""
}

// proxyWantsPassword is what can be done where a proxy, and no server, answers 407.
const proxyWantsPassword = "The proxy between here and the server wants a user name and a password. Write them into the environment variable HTTPS_PROXY (for an http address " +
	"HTTP_PROXY), as http://USER:PASSWORD@HOST:PORT; or name the server in NO_PROXY if it can be reached without."

// howToTrust is how to have a certificate trusted on such a system. Go asks those of macOS and Windows themselves, and reads a file only
// elsewhere.
func howToTrust(system string) string {
	const authority = "the certificate of the authority that has signed it"
	switch system {
	case "darwin", "ios":
		return "add " + authority + " to the keychain and have it trusted there"
	case "windows":
		return "add " + authority + " to the trusted root certification authorities of the Windows certificate store"
	}
	return "let SSL_CERT_FILE name " + authority
}

// connectedResource is embedded by every resource and gives it the connection of the provider.
type connectedResource struct{ *connection }

// Configure is called with no data when Terraform only asks for schemas.
func (r *connectedResource) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	r.connection, _ = req.ProviderData.(*connection)
}

// cannotImport says that there is nothing to import: an identifier is misspelt, or the server cannot be asked yet. A
// Terraform that allows it comes back after apply then.
func (r *connectedResource) cannotImport(req resource.ImportStateRequest, resp *resource.ImportStateResponse) bool {
	for _, id := range identifiersIn(req) {
		if problem := validators.CheckIdentifier(id); problem != "" {
			diagnostics.Error(&resp.Diagnostics, "Check the identifier", problem)
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

// identifiersIn are the identifiers that an import names, by its ID or its identity.
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

// connectedEphemeralResource is embedded by every ephemeral resource and gives it the connection of the provider.
type connectedEphemeralResource struct{ *connection }

// Configure is called with no data when Terraform only asks for schemas.
func (e *connectedEphemeralResource) Configure(_ context.Context, req ephemeral.ConfigureRequest, _ *ephemeral.ConfigureResponse) {
	e.connection, _ = req.ProviderData.(*connection)
}

// client is the API. Where it is nil, the response says why, or that Terraform is to come back after apply.
func (e *connectedEphemeralResource) client(req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) *api.Client {
	if !e.isConnected() && req.ClientCapabilities.DeferralAllowed {
		resp.Result.Raw = tftypes.NewValue(resp.Result.Raw.Type(), tftypes.UnknownValue)
		resp.Deferred = &ephemeral.Deferred{Reason: ephemeral.DeferredReasonProviderConfigUnknown}
		return nil
	}
	return e.connection.client(&resp.Diagnostics, "An ephemeral resource waits for apply by itself where one of its arguments is not known yet either.")
}

// connectedDataSource is embedded by every data source and gives it the connection of the provider.
type connectedDataSource struct{ *connection }

// Configure is called with no data when Terraform only asks for schemas.
func (d *connectedDataSource) Configure(_ context.Context, req datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	d.connection, _ = req.ProviderData.(*connection)
}

// client is the API. Where it is nil, the response says why, or that Terraform is to come back after apply.
func (d *connectedDataSource) client(req datasource.ReadRequest, resp *datasource.ReadResponse) *api.Client {
	if !d.isConnected() && req.ClientCapabilities.DeferralAllowed {
		resp.State.Raw = tftypes.NewValue(resp.State.Raw.Type(), tftypes.UnknownValue)
		resp.Deferred = &datasource.Deferred{Reason: datasource.DeferredReasonProviderConfigUnknown}
		return nil
	}
	return d.connection.client(&resp.Diagnostics, "Or let the data source wait for apply, by naming in its `depends_on` the resource that the value comes from. "+
		"Then write the `device_id` of access codes itself: one that such a data source tells replaces the code whenever that resource changes.")
}
