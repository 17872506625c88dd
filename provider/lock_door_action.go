package provider

import (
	"context"
	"errors"
	"fmt"

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
		next := nextStep(err)
		if api.MayHaveHappened(err) {
			next = uncertainAdvice(err, "Check the door before you run the action again.")
		}
		reportNext(&resp.Diagnostics, what, err, next)
		return
	}
	progress(resp, "Waiting for the lock %s to confirm.", id)
	if err := a.await(ctx, client, id, answer.ActionAttempt); err != nil {
		diagnostics.FailureAt(
			&resp.Diagnostics,
			path.Root("device_id"),
			what,
			sentence(err.Error())+"\n\n"+adviceForDoor(err),
		)
		return
	}
	progress(resp, "The lock %s is %sed.", id, a.verb)
}

// await waits until the lock confirms. If the server does not know the attempt, it waits until the server reports the
// position of the bolt, and otherwise fails with api.ErrOutcomeUnknown.
func (a *doorAction) await(ctx context.Context, client *api.Client, id string, attempt api.ActionAttempt) error {
	err := client.AwaitKnown(ctx, attempt)
	if !errors.Is(err, api.ErrOutcomeUnknown) {
		return err
	}
	err = api.Poll(ctx, func() (bool, error) {
		device, err := api.Call[api.DeviceResponse](ctx, client.GetDevice, api.GetDeviceRequest{DeviceID: id})
		if err != nil {
			return false, err
		}
		locked := device.Device.Properties.Locked
		if locked == nil {
			return false, errPositionUnknown
		}
		return *locked == (a.verb == "lock"), nil
	})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w, and it did not report the lock as %sed in time%s", api.ErrOutcomeUnknown, a.verb,
			api.PollFailureSuffix(err))
	}
	return fmt.Errorf("%w: %w", api.ErrOutcomeUnknown, err)
}

// errPositionUnknown reports that the server does not know whether a door is locked.
var errPositionUnknown = errors.New("it does not report whether the door is locked either")

// adviceForDoor says what to do after a command was sent.
func adviceForDoor(err error) string {
	failed, ok := errors.AsType[*api.AttemptError](err)
	switch {
	case errors.Is(err, api.ErrOutcomeUnknown):
		return "The lock may have done it, or may still do it. Check the door before you run the action again."
	case ok && failed.Err == nil:
		return "The lock has not done it. Check that the lock is online, then run the action again."
	case errors.Is(err, context.DeadlineExceeded):
		return "The lock may still do it. Check the door before you run the action again; for a slow lock, raise " +
			"`timeouts { invoke }`."
	}
	return nextStep(err)
}
