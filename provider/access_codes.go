package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

// What follows are the operations on access codes that take more than one request.

// managedCode reads a managed code. It fails with api.IsNotFound when there is none, also where the server answers with
// one that it calls unmanaged.
func managedCode(ctx context.Context, client *api.Client, id string) (*api.AccessCode, error) {
	answer, err := api.Call[api.AccessCodeResponse](ctx, client.GetAccessCode, api.GetAccessCodeRequest{AccessCodeID: id})
	if err != nil {
		return nil, err
	}
	if err := sameID("access code", answer.AccessCode.AccessCodeID, id); err != nil {
		return nil, err
	}
	if !answer.AccessCode.IsManaged {
		return nil, &api.ResponseError{Status: http.StatusNotFound, Type: "access_code_not_found", Message: "the access code is not managed"}
	}
	return &answer.AccessCode, nil
}

// unmanagedCode reads an unmanaged code. Some servers do not do that by identifier, but only list the codes
// of a device: there it fails with api.IsNoRoute when the device is not known. Where there is no such code
// it answers nil.
func unmanagedCode(ctx context.Context, client *api.Client, deviceID, id string) (*api.UnmanagedAccessCode, error) {
	answer, err := api.Call[api.UnmanagedAccessCodeResponse](ctx, client.GetUnmanagedAccessCode, api.GetAccessCodeRequest{AccessCodeID: id})
	switch {
	case err == nil:
		return &answer.AccessCode, sameID("access code", answer.AccessCode.AccessCodeID, id)
	case api.IsNotFound(err):
		return nil, nil
	case !api.IsNoRoute(err) || deviceID == "":
		return nil, err
	}
	codes, err := unmanagedCodes(ctx, client, deviceID)
	if err != nil {
		return nil, err
	}
	for i := range codes {
		if codes[i].AccessCodeID == id {
			return &codes[i], nil
		}
	}
	return nil, nil
}

// unmanagedCodes lists the unmanaged codes of a device.
func unmanagedCodes(ctx context.Context, client *api.Client, deviceID string) ([]api.UnmanagedAccessCode, error) {
	codes, err := api.Collect(client.UnmanagedAccessCodes(ctx, deviceID))
	// Some servers list the codes of all devices, whichever was asked for.
	return slices.DeleteFunc(codes, func(code api.UnmanagedAccessCode) bool { return code.DeviceID != deviceID }), err
}

// findCode reads a code, managed or not. Where there is none, both are nil.
func findCode(ctx context.Context, client *api.Client, deviceID, id string) (*api.AccessCode, *api.UnmanagedAccessCode, error) {
	managed, err := managedCode(ctx, client, id)
	if !api.IsNotFound(err) {
		return managed, nil, err
	}
	unmanaged, err := unmanagedCode(ctx, client, deviceID, id)
	return nil, unmanaged, err
}

// refreshCode is findCode for reading many codes: lists answer most of it. What they do not tell is asked for by
// itself before it is called gone.
func (c *connection) refreshCode(ctx context.Context, client *api.Client, deviceID, id string) (*api.AccessCode, *api.UnmanagedAccessCode, error) {
	if managed := c.reads.AccessCode(ctx, deviceID, id); managed != nil {
		return managed, nil, nil
	}
	if unmanaged := c.reads.UnmanagedAccessCode(ctx, deviceID, id); unmanaged != nil {
		return nil, unmanaged, nil
	}
	return findCode(ctx, client, deviceID, id)
}

// errCannotBeManaged is what convertCode fails with when the vendor does not allow it.
var errCannotBeManaged = errors.New("the vendor of this lock does not let existing codes be converted to managed, as igloohome, Kwikset and SmartThings do not")

// convertCode makes an unmanaged code managed. Conversions are known to report a failure and to have happened
// all the same, so the code itself is asked before an error is believed.
func convertCode(ctx context.Context, client *api.Client, request api.ConvertAccessCodeRequest) (*api.AccessCode, error) {
	answer, err := api.Call[api.ActionAttemptResponse](ctx, client.ConvertUnmanagedAccessCode, request)
	if api.IsNoRoute(err) { // older servers convert by an update
		answer, err = api.Call[api.ActionAttemptResponse](ctx, client.UpdateUnmanagedAccessCode, api.UpdateUnmanagedAccessCodeRequest{
			AccessCodeID: request.AccessCodeID, IsManaged: true, IsExternalModificationAllowed: request.IsExternalModificationAllowed,
		})
	}
	if err == nil {
		err = client.Await(ctx, answer.ActionAttempt)
	}
	if err != nil {
		last, cancel := lastLook(ctx)
		defer cancel()
		if code, readErr := managedCode(last, client, request.AccessCodeID); readErr == nil {
			return code, nil
		}
		if isExpired(err) && ctx.Err() == nil { // nobody goes on with a conversion
			return convertCode(ctx, client, request)
		}
		return nil, err
	}
	var code *api.AccessCode
	err = api.Poll(ctx, func() (bool, error) {
		code, err = managedCode(ctx, client, request.AccessCodeID)
		if api.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	return code, err
}

// convertPlanned makes the code managed, unless its vendor is known not to allow it.
func convertPlanned(ctx context.Context, client *api.Client, plan, state *accessCodeModel) (*api.AccessCode, error) {
	managed, unmanaged, err := findCode(ctx, client, state.DeviceID.ValueString(), state.AccessCodeID.ValueString())
	switch {
	case err != nil || managed != nil:
		return managed, untried(err)
	case unmanaged != nil && unmanaged.CannotBeManaged:
		return nil, errCannotBeManaged
	}
	return convertCode(ctx, client, plan.convertRequest())
}

// changePlanned changes what the plan changes, and answers the code as it is then: on its lock, if that is to be
// waited for.
func changePlanned(ctx context.Context, client *api.Client, plan, state *accessCodeModel, wait bool) (*api.AccessCode, error) {
	id := state.AccessCodeID.ValueString()
	request, changes := plan.updateRequest(state)
	if !changes {
		return managedCode(ctx, client, id)
	}
	answer, err := api.Call[api.ActionAttemptResponse](ctx, client.UpdateAccessCode, request)
	if err != nil {
		return nil, err
	}
	if !wait {
		return managedCode(ctx, client, id)
	}
	return awaitLock(ctx, client, id, answer.ActionAttempt)
}

// errNotTried is what work on a code fails with when the time was up before the server was asked for it.
var errNotTried = errors.New("not tried")

// untried is the error of a read without which nothing was written.
func untried(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w: %w", errNotTried, err)
	}
	return err
}

// notTried says of an error that the server was not asked, because the time was up before.
func notTried(err error) bool { return errors.Is(err, errNotTried) || api.IsNotSent(err) }

// keepsTrying says of an error that the time was up, but the server was asked and goes on by itself.
func keepsTrying(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && !notTried(err) && !api.IsNotConnected(err)
}

// errGone is what deleteCode fails with when the server does not know the code.
var errGone = errors.New("the server does not know the access code")

var errCannotBeDeleted = errors.New("the vendor of this lock does not let codes be deleted that the workspace does not manage")

// deleteCode takes a code off its lock, by the operation that is right for what the code is now.
func deleteCode(ctx context.Context, client *api.Client, deviceID, id string) error {
	managed, unmanaged, err := findCode(ctx, client, deviceID, id)
	if err != nil {
		return untried(err)
	}
	var answer *api.ActionAttemptResponse
	switch {
	case managed != nil:
		answer, err = api.Call[api.ActionAttemptResponse](ctx, client.DeleteAccessCode, api.DeleteAccessCodeRequest{AccessCodeID: id})
	case unmanaged != nil && unmanaged.CannotDeleteUnmanagedAccessCode:
		return errCannotBeDeleted
	case unmanaged != nil:
		answer, err = api.Call[api.ActionAttemptResponse](ctx, client.DeleteUnmanagedAccessCode, api.DeleteUnmanagedAccessCodeRequest{AccessCodeID: id})
	}
	if api.IsNotFound(err) || answer == nil && err == nil {
		return errGone
	}
	if err != nil {
		return err
	}
	return awaitGone(ctx, client, deviceID, id, answer.ActionAttempt)
}
