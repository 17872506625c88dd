package device

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Change is a change of a workspace's own data about a device. Nil and zero fields stay unchanged.
type Change struct {
	// Name is the name in this workspace; empty restores the vendor's name.
	Name *string
	// Metadata is merged into the custom metadata; a null value removes its key.
	Metadata map[string]any
	// Managed says whether the server reads and writes the device.
	Managed *bool
	// BackupPool says whether the device has a pool of spare codes for the codes that use backup codes.
	BackupPool *bool
}

// UpdateDevice changes a managed device. It fails with NotFound, and with Invalid if metadata breaks a rule or
// (device_unmanaged) if the device is not managed.
func (s *Service) UpdateDevice(ctx context.Context, p domain.Principal, id string, c Change) error {
	return s.changeDevice(ctx, p, id, true, c)
}

// UpdateUnmanagedDevice changes an unmanaged device. It fails with NotFound, with Invalid if metadata breaks a rule or
// (device_managed) if the device is managed, and with Forbidden (writes_not_allowed) if it must stay read-only.
func (s *Service) UpdateUnmanagedDevice(ctx context.Context, p domain.Principal, id string, c Change) error {
	return s.changeDevice(ctx, p, id, false, c)
}

func (s *Service) changeDevice(ctx context.Context, p domain.Principal, id string, managed bool, c Change) error {
	return s.onWorkspaceDevice(ctx, p, id, "change", func(t *deviceTx) error {
		switch {
		case managed && !t.d.IsManaged:
			return deviceUnmanaged()
		case !managed && t.d.IsManaged:
			return &domain.Error{
				Kind:    domain.Invalid,
				Type:    "device_managed",
				Field:   "device_id",
				Message: "The device is managed. Change it with /devices/update.",
			}
		}
		data, err := domain.ApplyMetadata(t.d.CustomMetadata, c.Metadata)
		if err == nil {
			err = domain.CheckSessionMetadata(p, t.d.CustomMetadata, data)
		}
		if err != nil {
			return err
		}
		was := toDevice(toAnnouncedDevice(t.d)).Name
		if t.d.CustomMetadata = data; c.Name != nil {
			t.d.Nickname = domain.NonEmpty(*c.Name)
		}
		if err := t.tx.DescribeDevice(ctx, dbsqlc.DescribeDeviceParams{
			DeviceID:       t.d.DeviceID,
			CustomMetadata: t.d.CustomMetadata,
			Nickname:       t.d.Nickname,
		}); err != nil {
			return err
		}
		if name := toDevice(toAnnouncedDevice(t.d)).Name; name != was {
			if err := t.emit(ctx, "device.name_changed", event.AboutDevice(t.d).With("device_name", name)); err != nil {
				return err
			}
		}
		if c.BackupPool != nil {
			if err := t.switchPool(*c.BackupPool); err != nil {
				return err
			}
		}
		if c.Managed == nil || *c.Managed == t.d.IsManaged {
			return nil
		}
		if *c.Managed {
			a, err := t.tx.GetAccount(ctx, t.d.ConnectedAccountID)
			if err == nil {
				err = s.accounts.CheckWritesAllowed(a)
			}
			if err != nil {
				return err
			}
		}
		return t.manage(ctx, *c.Managed)
	})
}

// manage starts or ends the management of the device. Its codes stay as they are, except those of its backup pool:
// clients cannot see and remove these.
func (t *deviceTx) manage(ctx context.Context, managed bool) error {
	ev := "device.unmanaged.converted_to_managed"
	if t.d.IsManaged = managed; !managed {
		ev = "device.converted_to_unmanaged"
		t.lock.EndAll("device_unmanaged", "The device became unmanaged.")
		t.lock.DropPool()
	}
	if err := t.tx.SetDeviceManaged(ctx, dbsqlc.SetDeviceManagedParams{
		DeviceID:  t.d.DeviceID,
		IsManaged: managed,
	}); err != nil {
		return err
	}
	if err := t.emit(ctx, ev, event.AboutDevice(t.d)); err != nil {
		return err
	}
	return t.s.waker.Wake(ctx, t.tx, domain.DeviceLane, t.d.DeviceID)
}

// CheckManaged fails with Invalid (device_unmanaged) for an unmanaged device.
func (d Device) CheckManaged() error {
	if d.Managed {
		return nil
	}
	return deviceUnmanaged()
}

// deviceUnmanaged is the error of an operation on an unmanaged device.
func deviceUnmanaged() *domain.Error {
	return &domain.Error{
		Kind:  domain.Invalid,
		Type:  "device_unmanaged",
		Field: "device_id",
		Message: "The device is not managed, so the server does nothing on it. " +
			"Manage it with /devices/unmanaged/update and is_managed true.",
	}
}

// DeleteDevice deletes the record of a device and does nothing on the device itself. While its account has the device,
// it reappears as a new one. Its codes are deleted with it: they still open, and are unmanaged codes of the new device.
// Codes of its backup pool are removed when it reappears.
// It fails with NotFound.
func (s *Service) DeleteDevice(ctx context.Context, p domain.Principal, id string) error {
	var account uuid.UUID
	err := s.onWorkspaceDevice(ctx, p, id, "delete", func(t *deviceTx) error {
		account = t.d.ConnectedAccountID
		if err := t.tx.ForgetDevice(ctx, t.d.DeviceID); err != nil {
			return err
		}
		t.d.RemovedAt = &t.now
		t.lock.Forget()
		if err := t.emit(ctx, "device.deleted", event.AboutDevice(t.d)); err != nil {
			return err
		}
		return s.waker.Wake(ctx, t.tx, domain.DeviceLane, t.d.DeviceID)
	})
	if err != nil {
		return err
	}
	// The hint has its own transaction, because accounts are locked before their devices.
	return s.accounts.Hint(ctx, account, "")
}

// onWorkspaceDevice is onDevice for a device of the workspace that has not been removed. It fails with NotFound.
func (s *Service) onWorkspaceDevice(
	ctx context.Context,
	p domain.Principal,
	id, doing string,
	f func(*deviceTx) error,
) error {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return deviceNotFound("device_id", id)
	}
	err = s.onLockedDevice(ctx, parsed, doing, func(tx store.Tx) (store.LockedDevice, error) {
		return tx.LockWorkspaceDeviceWithCodes(ctx, dbsqlc.LockWorkspaceDeviceParams{
			WorkspaceID: p.WorkspaceID,
			DeviceID:    parsed,
			Scope:       p.Scope,
		})
	}, func(t *deviceTx) error {
		if t.d.RemovedAt != nil {
			return deviceNotFound("device_id", id)
		}
		return f(t)
	})
	if store.IsNoRows(err) {
		return deviceNotFound("device_id", id)
	}
	if e, ok := domain.AsError(err); ok {
		return e
	}
	if err != nil {
		return fmt.Errorf("change device %s: %w", id, err)
	}
	return nil
}

// ReportCodeLengths records the supported code lengths of a device in digits: a list, or a minimum and a maximum.
// It fails with NotFound, and with Invalid if both or neither is given, or if the device's vendor reports them.
func (s *Service) ReportCodeLengths(
	ctx context.Context,
	p domain.Principal,
	id string,
	lengths []int,
	least, most int,
) error {
	switch {
	case (len(lengths) > 0) == (least > 0 || most > 0):
		return domain.Invalidf("", "Must specify either supported_code_lengths or min_code_length and max_code_length")
	case len(lengths) == 0 && (least == 0 || most < least):
		return domain.Invalidf(
			"max_code_length",
			"min_code_length and max_code_length belong together, the greater one last",
		)
	}
	for n := least; n > 0 && n <= most; n++ {
		lengths = append(lengths, n)
	}
	var kept []int32
	for _, n := range slices.Compact(slices.Sorted(slices.Values(lengths))) {
		kept = append(kept, int32(n)) //nolint:gosec // 4 to 20
	}
	return s.onWorkspaceDevice(ctx, p, id, "report the constraints", func(t *deviceTx) error {
		switch {
		case !t.d.IsManaged:
			return deviceUnmanaged()
		case t.d.Provider != "smartthings":
			return &domain.Error{
				Kind:  domain.Invalid,
				Type:  "device_type_not_supported",
				Field: "device_id",
				Message: "The vendor of this device reports its code lengths. " +
					"Only SmartThings devices need them from you.",
			}
		}
		return t.tx.ReportCodeLengths(ctx, dbsqlc.ReportCodeLengthsParams{
			DeviceID:            t.d.DeviceID,
			ReportedCodeLengths: kept,
		})
	})
}
