package provider

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/action/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
)

var _ action.ActionWithConfigure = (*doorAction)(nil)

// doorAction locks or unlocks a door.
type doorAction struct {
	connectedAction
	verb string // lock or unlock
}

func newLockDoorAction() action.Action   { return &doorAction{verb: "lock"} }
func newUnlockDoorAction() action.Action { return &doorAction{verb: "unlock"} }

type doorActionModel struct {
	DeviceID types.String   `tfsdk:"device_id"`
	Timeouts timeouts.Value `tfsdk:"timeouts"`
}

func (a *doorAction) Metadata(_ context.Context, req action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + a.verb + "_door"
}

func (a *doorAction) Schema(ctx context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	state := a.verb + "ed"
	resp.Schema = schema.Schema{
		MarkdownDescription: "Remotely " + a.verb + "s a door, and waits until its lock confirms. The command is sent " +
			"once: the action fails if the lock is offline. Requires Terraform 1.14 or newer.",
		Attributes: map[string]schema.Attribute{
			"device_id": identifierArgument("The lock of the door.", "Name the lock of the door."),
		},
		Blocks: map[string]schema.Block{
			"timeouts": actionTimeoutsBlock(ctx, "How long to wait until the door is "+state+
				", such as `30s`. By default `5m`."),
		},
	}
}

// Invoke sends the command and waits until the lock confirms.
func (a *doorAction) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	var model doorActionModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	ctx, cancel := invokeTimeout(ctx, model.Timeouts, resp)
	defer cancel()
	client := a.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	what, command := a.verb+" door", client.LockDoor
	if a.verb == "unlock" {
		command = client.UnlockDoor
	}
	id := model.DeviceID.ValueString()
	progress(resp, "Sending the command to the lock %s.", id)
	answer, err := api.Call[api.ActionAttemptResponse](ctx, command, api.BoltRequest{DeviceID: id})
	if err != nil {
		report(&resp.Diagnostics, what, err)
		return
	}
	progress(resp, "Waiting for the lock %s to confirm.", id)
	if err := client.Await(ctx, answer.ActionAttempt); err != nil {
		next := nextStep(err)
		failed, ok := errors.AsType[*api.AttemptError](err)
		switch {
		case ok && failed.Err == nil:
			next = "The lock has not done it. Check that the lock is online, then run the action again."
		case errors.Is(err, context.DeadlineExceeded):
			next = "The lock may still do it. Check the door before you run the action again; for a slow lock, raise " +
				"`timeouts { invoke }`."
		}
		diagnostics.FailureAt(&resp.Diagnostics, path.Root("device_id"), what, sentence(err.Error())+"\n\n"+next)
		return
	}
	progress(resp, "The lock %s is %sed.", id, a.verb)
}
