package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

// holderTimeout is how long a creation waits until another managed code of the same PIN leaves the lock. Terraform
// does not order the destruction of one resource and the creation of another.
const holderTimeout = 20 * time.Second

// heldError is the refusal of a PIN that another managed code on the lock has.
type heldError struct {
	error
	holder string
}

func (e heldError) Unwrap() error { return e.error }

// holderAdvice says what to do about a PIN that another managed code has, or returns "".
func holderAdvice(err error) string {
	held, ok := errors.AsType[heldError](err)
	if !ok {
		return ""
	}
	return fmt.Sprintf("The managed access code %s has this PIN, and did not leave the lock. If only the address of "+
		"the resource has changed, declare that with a moved block. If another resource has the code, remove that "+
		"resource with a removed block and `destroy = false`, and import its codes into this one. Otherwise choose "+
		"another PIN.", held.holder)
}

// createWhenFree creates a code. If another managed code on the lock has the PIN, it waits until that code leaves.
func createWhenFree(
	ctx context.Context,
	client *api.Client,
	request api.CreateAccessCodeRequest,
) (*api.AccessCodeCreatedResponse, error) {
	until, cancel := context.WithTimeout(ctx, holderTimeout)
	defer cancel()
	for tries := 0; ; tries++ {
		answer, err := api.Call[api.AccessCodeCreatedResponse](ctx, client.CreateAccessCode, request)
		if !isOfType(err, "duplicate_access_code") {
			return answer, err
		}
		holder, readErr := holderOf(until, client, request.DeviceID, request.Code)
		switch {
		case readErr != nil || holder == "" && tries > 0:
			return nil, err
		case holder != "" && awaitLeaving(until, client, holder) != nil:
			return nil, heldError{err, holder}
		}
	}
}

// holderOf returns the managed code on a lock that has the PIN and stays there, or "".
func holderOf(ctx context.Context, client *api.Client, deviceID, pin string) (id string, err error) {
	codes, err := managedCodes(ctx, client, deviceID)
	for _, code := range codes {
		if code.Code != nil && *code.Code == pin && code.Status != api.Removing {
			return code.AccessCodeID, err
		}
	}
	return "", err
}

// awaitLeaving waits until a code is gone or is being removed.
func awaitLeaving(ctx context.Context, client *api.Client, id string) error {
	return api.Poll(ctx, func() (bool, error) {
		code, err := managedCode(ctx, client, id)
		if api.IsNotFound(err) {
			return true, nil
		}
		return err == nil && code.Status == api.Removing, err
	})
}
