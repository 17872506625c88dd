package provider

import (
	"context"
	"errors"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
)

const rotation = "rotate webhook secret"

// rotateSecret gives a webhook another secret and returns the webhook with it.
func rotateSecret(
	ctx context.Context,
	client *api.Client,
	request api.RotateWebhookSecretRequest,
) (*api.RotatedWebhookResponse, error) {
	rotated, err := api.Call[api.RotatedWebhookResponse](ctx, client.RotateWebhookSecret, request)
	if err != nil {
		return nil, err
	}
	return rotated, sameID("webhook", rotated.Webhook.WebhookID, request.WebhookID)
}

// rotates reports whether an update rotates the secret. The first version of a webhook that exists does not.
func (m *webhookModel) rotates(state *webhookModel) bool {
	return !m.SecretVersion.IsNull() && !state.SecretVersion.IsNull() && !m.SecretVersion.Equal(state.SecretVersion)
}

// keepSecret sets the secret to what the server returned, or to null if the state must not contain it. An empty secret
// keeps the known one: not every server returns it again.
func (m *webhookModel) keepSecret(secret string) {
	if m.StoreSecret.IsNull() { // after an import
		m.StoreSecret = types.BoolValue(true)
	}
	switch {
	case !m.StoreSecret.ValueBool():
		m.Secret = types.StringNull()
	case secret != "":
		m.Secret = types.StringValue(secret)
	case m.Secret.IsUnknown():
		m.Secret = types.StringNull()
	}
}

// plannedSecret returns the secret of a plan. The state is empty for a creation.
func (m *webhookModel) plannedSecret(state *webhookModel) types.String {
	switch {
	case isSet(m.StoreSecret) && !m.StoreSecret.ValueBool():
		return types.StringNull()
	case m.StoreSecret.IsUnknown() || m.rotates(state) || isSet(state.StoreSecret) && !state.StoreSecret.ValueBool():
		return types.StringUnknown()
	}
	return m.Secret
}

// warnOfSecret warns about what an update does not do.
func (m *webhookModel) warnOfSecret(state *webhookModel, diags *diag.Diagnostics) {
	if isSet(m.SecretVersion) && state.SecretVersion.IsNull() {
		diagnostics.WarningAt(
			diags,
			path.Root("secret_version"),
			"Secret is not rotated",
			"The first `secret_version` "+
				"of an existing webhook is only noted. To rotate the secret, apply this, then change the number.",
		)
	}
	if isSet(m.StoreSecret) && !m.StoreSecret.ValueBool() && !state.Secret.IsNull() && !m.rotates(state) {
		diagnostics.WarningAt(diags, path.Root("store_secret"), "Secret was in the state", "This apply removes the "+
			"secret from the state, but earlier versions of the state, and plan files, still contain it. Rotate it "+
			"with `secret_version`, or with the action deviceaccess_webhook_rotate_secret.")
	}
}

// warnOfLostSecret warns if the server does not return the secret of a new webhook again. A failure to read it is left
// to the next refresh.
func warnOfLostSecret(ctx context.Context, client *api.Client, id types.String, diags *diag.Diagnostics) {
	webhook, err := readWebhook(ctx, client, id)
	if err != nil || webhook.Secret != "" {
		return
	}
	diagnostics.WarningAt(
		diags,
		path.Root("store_secret"),
		"Secret cannot be read",
		"The server returns the secret of "+
			"a webhook only at its creation, and `store_secret = false` has kept it out of the state. To use the secret, "+
			"remove `store_secret` and replace the webhook.",
	)
}

// reportRotation adds the error of a rotation, at the attribute unless the server rejects another one.
func reportRotation(diags *diag.Diagnostics, at path.Path, err error) {
	next := nextStep(err)
	switch {
	case api.IsNoRoute(err):
		next = "This server cannot rotate secrets. Undo the change of `secret_version`, or remove the action; to get " +
			"another secret, replace the webhook with `terraform apply -replace=ADDRESS`."
	case isOfType(err, "rotation_in_progress"):
		next = "Apply again after that time. If the secret has leaked, the action " +
			"deviceaccess_webhook_rotate_secret with `overlap = \"0s\"` ends the old secrets immediately."
	case api.MayHaveHappened(err):
		next = uncertainAdvice(err, "The next plan reads the current secret.")
	}
	if refused, ok := errors.AsType[*api.ResponseError](err); ok && len(refused.Fields) > 0 {
		reportNext(diags, rotation, err, next)
		return
	}
	diagnostics.FailureAt(diags, at, rotation, strings.TrimSpace(sentence(err.Error())+"\n\n"+next))
}
