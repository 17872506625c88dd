package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/action/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

var _ action.ActionWithConfigure = (*pullBackupAccessCodeAction)(nil)

type pullBackupAccessCodeAction struct{ connectedAction }

func newPullBackupAccessCodeAction() action.Action { return &pullBackupAccessCodeAction{} }

type pullBackupAccessCodeModel struct {
	AccessCodeID types.String   `tfsdk:"access_code_id"`
	Timeouts     timeouts.Value `tfsdk:"timeouts"`
}

func (a *pullBackupAccessCodeAction) Metadata(
	_ context.Context,
	req action.MetadataRequest,
	resp *action.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_pull_backup_access_code"
}

func (a *pullBackupAccessCodeAction) Schema(
	ctx context.Context,
	_ action.SchemaRequest,
	resp *action.SchemaResponse,
) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Replaces an access code that does not work by a backup code that is already on the " +
			"lock, and reports which one. The ephemeral resource `deviceaccess_access_code` reads its PIN. Requires " +
			"Terraform 1.14 or newer.",
		Attributes: map[string]schema.Attribute{
			"access_code_id": identifierArgument(
				"The access code that does not work. It must use the pool of backup codes.",
				"Name the access code to replace.",
			),
		},
		Blocks: map[string]schema.Block{
			"timeouts": actionTimeoutsBlock(ctx, "How long to wait for the server, such as `30s`. By default `5m`."),
		},
	}
}

// Invoke pulls a backup code. Pulling again returns the same code.
func (a *pullBackupAccessCodeAction) Invoke(
	ctx context.Context,
	req action.InvokeRequest,
	resp *action.InvokeResponse,
) {
	var model pullBackupAccessCodeModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	ctx, cancel := invokeTimeout(ctx, model.Timeouts, resp)
	defer cancel()
	client := a.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	id := model.AccessCodeID.ValueString()
	progress(resp, "Pulling a backup code for the access code %s.", id)
	answer, err := api.Call[api.BackupAccessCodeResponse](
		ctx,
		client.PullBackupAccessCode,
		api.PullBackupAccessCodeRequest{AccessCodeID: id},
	)
	if err == nil {
		err = hasID("backup access code", answer.AccessCode.AccessCodeID)
	}
	if err != nil {
		report(&resp.Diagnostics, "pull backup access code", err)
		return
	}
	// Without the name, which may contain the PIN.
	backup := answer.AccessCode
	progress(resp, "The backup code %s on the lock %s now replaces the access code %s. To read its PIN, use the "+
		"ephemeral resource deviceaccess_access_code.", backup.AccessCodeID, backup.DeviceID, id)
}
