package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

const (
	firstPIN  = "2468"
	secondPIN = "13579"
)

// run runs all steps of the demo.
func (d *demo) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		d.prepare,
		d.startServer,
		d.chooseCodes,
		d.initialise,
		d.adoptAtOnce,
		d.preview,
		d.apply,
		d.change,
		d.destroy,
		d.stopServer,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// chooseCodes picks a lock and two codes that are on it already.
func (d *demo) chooseCodes(ctx context.Context) error {
	step("A lock with unmanaged codes")
	var devices api.DevicesResponse
	if err := d.post(ctx, "/devices/list", map[string]any{"device_type": "august_lock"}, &devices); err != nil {
		return err
	}
	if len(devices.Devices) == 0 {
		return errors.New("the sandbox has no August lock")
	}
	d.lock = devices.Devices[0].DeviceID
	var unmanaged api.UnmanagedAccessCodesResponse
	if err := d.post(ctx, "/access_codes/unmanaged/list", map[string]any{"device_id": d.lock}, &unmanaged); err != nil {
		return err
	}
	if len(unmanaged.AccessCodes) < 2 {
		return fmt.Errorf("the lock has %d unmanaged codes, and the demo needs two", len(unmanaged.AccessCodes))
	}
	d.cleaner, d.neighbour = unmanaged.AccessCodes[0], unmanaged.AccessCodes[1]
	detail(
		"%s, device_id %s, holds %d codes. Two of them are adopted:",
		devices.Devices[0].DisplayName,
		d.lock,
		len(unmanaged.AccessCodes),
	)
	detail("  %q by an import block, %q by `terraform import`.", *d.cleaner.Name, *d.neighbour.Name)
	d.vars = []string{
		"TF_VAR_front_door=" + d.lock,
		"TF_VAR_cleaner_code_id=" + d.cleaner.AccessCodeID,
		"TF_VAR_guest_pin=" + firstPIN,
	}
	d.onLockAtFirst = len(unmanaged.AccessCodes)
	return nil
}

func (d *demo) initialise(ctx context.Context) error {
	step("terraform init, with the provider from this directory's own mirror")
	return d.tf(ctx, "init", "-input=false")
}

// adoptAtOnce imports by identifier.
func (d *demo) adoptAtOnce(ctx context.Context) error {
	step("terraform import converts %q immediately", *d.neighbour.Name)
	if err := d.tf(
		ctx,
		"import",
		"-input=false",
		"deviceaccess_access_code.neighbour",
		d.neighbour.AccessCodeID,
	); err != nil {
		return err
	}
	return d.expectManaged(ctx, d.neighbour, true)
}

// preview plans the import block, which must not convert the code yet.
func (d *demo) preview(ctx context.Context) error {
	step("terraform plan previews the conversion of %q and writes nothing", *d.cleaner.Name)
	if err := d.tf(ctx, "plan", "-input=false", "-out=demo.tfplan"); err != nil {
		return err
	}
	plan, err := d.plan(ctx, "demo.tfplan")
	if err != nil {
		return err
	}
	for address, want := range map[string]change{
		"deviceaccess_access_code.cleaner":   {actions: []string{"update"}, importing: true},
		"deviceaccess_access_code.guest":     {actions: []string{"create"}},
		"deviceaccess_access_code.neighbour": {actions: []string{"no-op"}},
		"deviceaccess_webhook.audit":         {actions: []string{"create"}},
	} {
		if got := plan[address]; !slices.Equal(got.actions, want.actions) || got.importing != want.importing {
			return fmt.Errorf(
				"the plan for %s is %v (import: %v), want %v (import: %v)",
				address,
				got.actions,
				got.importing,
				want.actions,
				want.importing,
			)
		}
	}
	return d.expectManaged(ctx, d.cleaner, false)
}

func (d *demo) apply(ctx context.Context) error {
	step("terraform apply creates the webhook and the guest's code, and converts %q", *d.cleaner.Name)
	if err := d.tf(ctx, "apply", "-input=false", "demo.tfplan"); err != nil {
		return err
	}
	for _, c := range []api.UnmanagedAccessCode{d.cleaner, d.neighbour} {
		if err := d.expectManaged(ctx, c, true); err != nil {
			return err
		}
	}
	return d.expectOnLock(ctx, map[string]bool{firstPIN: true, *d.cleaner.Code: true, *d.neighbour.Code: true})
}

// change changes the guest's PIN and the webhook's events.
func (d *demo) change(ctx context.Context) error {
	step("The guest's PIN and the webhook's events change")
	d.vars = append(d.vars, "TF_VAR_guest_pin="+secondPIN, `TF_VAR_event_types=["*"]`)
	if err := d.tf(ctx, "apply", "-input=false", "-auto-approve"); err != nil {
		return err
	}
	if err := d.expectOnLock(ctx, map[string]bool{firstPIN: false, secondPIN: true}); err != nil {
		return err
	}
	var hooks api.WebhooksResponse
	if err := d.post(ctx, "/webhooks/list", nil, &hooks); err != nil {
		return err
	}
	if len(hooks.Webhooks) != 1 || !slices.Equal(hooks.Webhooks[0].EventTypes, []string{"*"}) {
		return errors.New("the webhook does not receive all events")
	}
	detail("The webhook receives all events now.")
	detail("A further plan must be empty:")
	return d.tf(ctx, "plan", "-input=false", "-detailed-exitcode")
}

func (d *demo) destroy(ctx context.Context) error {
	step("terraform destroy removes everything, also from the lock")
	if err := d.tf(ctx, "destroy", "-input=false", "-auto-approve"); err != nil {
		return err
	}
	for _, c := range []api.UnmanagedAccessCode{d.cleaner, d.neighbour} {
		status, err := d.status(ctx, "/access_codes/get", map[string]any{"access_code_id": c.AccessCodeID})
		if err != nil {
			return err
		}
		if status != http.StatusNotFound {
			return fmt.Errorf("the API still answers %d for %q", status, *c.Name)
		}
		detail("The API does not know %q any more (404).", *c.Name)
	}
	if err := d.expectOnLock(
		ctx,
		map[string]bool{secondPIN: false, *d.cleaner.Code: false, *d.neighbour.Code: false},
	); err != nil {
		return err
	}
	var left api.UnmanagedAccessCodesResponse
	if err := d.post(ctx, "/access_codes/unmanaged/list", map[string]any{"device_id": d.lock}, &left); err != nil {
		return err
	}
	if len(left.AccessCodes) != d.onLockAtFirst-2 {
		return fmt.Errorf(
			"%d unmanaged codes are left, want the %d that were not adopted",
			len(left.AccessCodes),
			d.onLockAtFirst-2,
		)
	}
	detail("Other codes are untouched: %d unmanaged code is left on the lock.", len(left.AccessCodes))
	return nil
}
