package access

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// DeviceChange says what is to change of what a workspace keeps about a device; nil and zero fields stay.
type DeviceChange struct {
	Name     *string        // the name it goes by here; empty: the one that it has at its vendor
	Metadata map[string]any // null takes a key away
	Managed  *bool          // false: it is neither read nor written any more; true: it is again

	BackupPool *bool // whether codes are kept on it ahead of time for those codes that ask for that
}

// UpdateDevice changes a managed device. It fails with NotFound; with Invalid where metadata breaks a rule, and
// (device_unmanaged) where the device is not managed.
func (s *Service) UpdateDevice(ctx context.Context, p Principal, id string, c DeviceChange) error {
	return s.changeDevice(ctx, p, id, true, c)
}

// UpdateUnmanagedDevice changes an unmanaged device. It fails with NotFound; with Invalid where metadata breaks a
// rule, and (device_managed) where the device is managed.
func (s *Service) UpdateUnmanagedDevice(ctx context.Context, p Principal, id string, c DeviceChange) error {
	return s.changeDevice(ctx, p, id, false, c)
}

func (s *Service) changeDevice(ctx context.Context, p Principal, id string, managed bool, c DeviceChange) error {
	return s.onWorkspaceDevice(ctx, p, id, "change", func(t *deviceTx) error {
		switch {
		case managed && !t.d.IsManaged:
			return deviceUnmanaged()
		case !managed && t.d.IsManaged:
			return &Error{Kind: Invalid, Type: "device_managed", Field: "device_id", Message: "The device is managed. Change it with /devices/update."}
		}
		data, err := changeMetadata(t.d.CustomMetadata, c.Metadata)
		if err != nil {
			return err
		}
		was := toDevice(told(t.d)).Name
		if t.d.CustomMetadata = data; c.Name != nil {
			t.d.Nickname = nonEmpty(*c.Name)
		}
		if err := t.tx.DescribeDevice(ctx, dbsqlc.DescribeDeviceParams{DeviceID: t.d.DeviceID, CustomMetadata: t.d.CustomMetadata, Nickname: t.d.Nickname}); err != nil {
			return err
		}
		if name := toDevice(told(t.d)).Name; name != was {
			if err := s.emit(ctx, t.tx, "device.name_changed", aboutDevice(t.d).with("device_name", name)); err != nil {
				return err
			}
		}
		if c.BackupPool != nil {
			if err := t.switchPool(ctx, *c.BackupPool); err != nil {
				return err
			}
		}
		if c.Managed == nil || *c.Managed == t.d.IsManaged {
			return nil
		}
		return t.manage(ctx, *c.Managed)
	})
}

// manage takes the device into management or gives that up. The codes that are on it stay as they are, except those of
// its backup pool: nobody is told of these, so nobody else could take them off.
func (t *deviceTx) manage(ctx context.Context, managed bool) error {
	event := "device.unmanaged.converted_to_managed"
	if t.d.IsManaged = managed; !managed {
		event = "device.converted_to_unmanaged"
		if err := t.end(ctx, func(dbsqlc.ActionAttempt) bool { return true }, Failed, "device_unmanaged", "The device is no longer managed."); err != nil {
			return err
		}
		if err := t.dropPool(ctx); err != nil {
			return err
		}
	}
	if err := t.tx.SetDeviceManaged(ctx, dbsqlc.SetDeviceManagedParams{DeviceID: t.d.DeviceID, IsManaged: managed}); err != nil {
		return err
	}
	if err := t.s.emit(ctx, t.tx, event, aboutDevice(t.d)); err != nil {
		return err
	}
	return t.s.waker.Wake(ctx, t.tx, DeviceLane, t.d.DeviceID)
}

// CheckManaged fails with Invalid for a device that nothing is done on.
func (d Device) CheckManaged() error {
	if d.Managed {
		return nil
	}
	return deviceUnmanaged()
}

// deviceUnmanaged refuses what would be done on a device that nothing is done on.
func deviceUnmanaged() *Error {
	return &Error{Kind: Invalid, Type: "device_unmanaged", Field: "device_id",
		Message: "The device is not managed, so nothing is done on it. Manage it with /devices/unmanaged/update and is_managed true."}
}

// DeleteDevice forgets a device. Nothing is touched on the device itself; while its account still has it, it appears
// again, as another one. Its codes stay, deletable at once, as those of a device that was removed; those of its backup
// pool are taken off when it appears again.
// It fails with NotFound.
func (s *Service) DeleteDevice(ctx context.Context, p Principal, id string) error {
	var account uuid.UUID
	err := s.onWorkspaceDevice(ctx, p, id, "delete", func(t *deviceTx) error {
		account = t.d.ConnectedAccountID
		if err := t.tx.ForgetDevice(ctx, t.d.DeviceID); err != nil {
			return err
		}
		if err := s.emit(ctx, t.tx, "device.deleted", aboutDevice(t.d)); err != nil {
			return err
		}
		return s.waker.Wake(ctx, t.tx, DeviceLane, t.d.DeviceID)
	})
	if err != nil {
		return err
	}
	return s.Hint(ctx, account, "") // in a transaction of its own: accounts are locked before their devices
}

// onWorkspaceDevice is onDevice for a device of the workspace that was not removed. It fails with NotFound.
func (s *Service) onWorkspaceDevice(ctx context.Context, p Principal, id, doing string, f func(*deviceTx) error) error {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return deviceNotFound("device_id", id)
	}
	err = s.onLockedDevice(ctx, parsed, doing, func(tx store.Tx) (store.LockedDevice, error) {
		return tx.LockWorkspaceDeviceWithCodes(ctx, dbsqlc.LockWorkspaceDeviceParams{WorkspaceID: p.WorkspaceID, DeviceID: parsed, Scope: p.Reach})
	}, func(t *deviceTx) error {
		if t.d.RemovedAt != nil {
			return deviceNotFound("device_id", id)
		}
		return f(t)
	})
	if store.IsNoRows(err) {
		return deviceNotFound("device_id", id)
	}
	if e, ok := asError(err); ok {
		return e
	}
	if err != nil {
		return fmt.Errorf("change device %s: %w", id, err)
	}
	return nil
}

// ReportCodeLengths notes how many digits the codes of a device have: each number, or the least and the greatest.
// It fails with NotFound, and with Invalid where both or neither is given, or the device's vendor tells itself.
func (s *Service) ReportCodeLengths(ctx context.Context, p Principal, id string, lengths []int, least, most int) error {
	switch {
	case (len(lengths) > 0) == (least > 0 || most > 0):
		return invalid("", "Must specify either supported_code_lengths or min_code_length and max_code_length")
	case len(lengths) == 0 && (least == 0 || most < least):
		return invalid("max_code_length", "min_code_length and max_code_length belong together, the greater one last")
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
			return &Error{Kind: Invalid, Type: "device_type_not_supported", Field: "device_id",
				Message: "The vendor of this device tells how many digits its codes have; only those of SmartThings do not."}
		}
		return t.tx.ReportCodeLengths(ctx, dbsqlc.ReportCodeLengthsParams{DeviceID: t.d.DeviceID, ReportedCodeLengths: kept})
	})
}
