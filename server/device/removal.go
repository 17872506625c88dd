package device

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// RecordRemoved records that the device has left its account. permanently says that a device with the same reference is
// a different one from now on; otherwise it is this one that has come back.
func (s *Service) RecordRemoved(ctx context.Context, h store.Fence, device uuid.UUID, permanently bool) error {
	return s.onDevice(ctx, h, device, "record the removal", func(t *deviceTx) error {
		if t.d.RemovedAt != nil {
			return nil
		}
		if err := s.removeDevice(ctx, t.tx, t.d); err != nil || !permanently {
			return err
		}
		return t.tx.DetachDevice(ctx, device)
	})
}

// RecordRemovedByRef records that the device with a reference has left its account permanently, as reported ago. The
// report may be late and repeated, so it does not affect a device that was added after it.
func (s *Service) RecordRemovedByRef(ctx context.Context, account uuid.UUID, ref string, ago time.Duration) error {
	if !domain.ValidRef(ref) { // no device of ours
		return nil
	}
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		// Accounts are locked before their devices, as in RecordDevices.
		_, err := tx.LockAccount(ctx, account)
		if store.IsNoRows(err) { // erased with its workspace
			return nil
		}
		if err != nil {
			return err
		}
		d, err := tx.LockDeviceByRef(ctx, dbsqlc.LockDeviceByRefParams{
			ConnectedAccountID: account,
			VendorRef:          ref,
			Ago:                ago,
		})
		switch {
		case store.IsNoRows(err):
			return nil
		case err != nil:
			return err
		}
		if err := s.replaceDevice(ctx, tx, d); err != nil {
			return err
		}
		if err := tx.WakeAccount(ctx, account); err != nil {
			return err
		}
		return s.waker.Wake(ctx, tx, domain.AccountLane, account)
	})
	if err != nil {
		return fmt.Errorf("record that a device has left account %s: %w", account, err)
	}
	return nil
}

// removeDevice marks a device as removed. The caller holds the device's lock.
func (s *Service) removeDevice(ctx context.Context, tx store.Tx, d dbsqlc.Device) error {
	if err := tx.RemoveDevice(ctx, d.DeviceID); err != nil {
		return err
	}
	if err := s.events.Emit(ctx, tx, "device.removed", event.AboutDevice(d)); err != nil {
		return err
	}
	return s.waker.Wake(ctx, tx, domain.DeviceLane, d.DeviceID)
}

// removeAll is removeDevice for all devices of an account that ends. If they are connected again, they belong to a
// new account. The caller holds the account's lock.
func (s *Service) removeAll(ctx context.Context, tx store.Tx, workspace, account uuid.UUID) error {
	devices, err := tx.LockDevicesOfAccount(ctx, account)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(devices, 1000) { // each device may have much metadata
		ids, gone := make([]uuid.UUID, len(some)), map[uuid.UUID]bool{}
		for i, d := range some {
			ids[i], gone[d.DeviceID] = d.DeviceID, d.Gone
		}
		removed, err := tx.DetachDevices(ctx, ids)
		if err != nil {
			return err
		}
		var told []event.Occurrence
		for _, d := range removed {
			if !gone[d.DeviceID] {
				told = append(told, event.Occurrence{Type: "device.removed", About: event.AboutDevice(dbsqlc.Device{
					WorkspaceID:        workspace,
					ConnectedAccountID: account,
					DeviceID:           d.DeviceID,
					CustomMetadata:     d.CustomMetadata,
				})})
			}
		}
		if err := s.events.EmitAll(ctx, tx, told); err != nil {
			return err
		}
		if err := s.waker.WakeEach(ctx, tx, domain.DeviceLane, ids); err != nil {
			return err
		}
	}
	return nil
}

// isReplaced reports whether the device that a vendor lists under a reference is a different one. A device that has not
// reported its serial number counts as the same.
func isReplaced(r dbsqlc.Device, f FoundDevice) bool {
	return OtherSerial(r.SerialNumber, f.SerialNumber)
}

// OtherSerial reports whether the serial number that a vendor reports differs from the known one.
func OtherSerial(known, reported string) bool {
	reported = domain.Storable(reported)
	return known != "" && reported != "" && known != reported
}

// replaceDevice detaches a device from its reference, which a different device has now. The caller holds its lock.
func (s *Service) replaceDevice(ctx context.Context, tx store.Tx, r dbsqlc.Device) error {
	if r.RemovedAt == nil {
		if err := s.removeDevice(ctx, tx, r); err != nil {
			return err
		}
	}
	return tx.DetachDevice(ctx, r.DeviceID)
}

// isDetached reports whether a device has lost its reference (DetachDevice, ForgetDevice), so that the vendor's next
// one is a different device.
func isDetached(d dbsqlc.Device) bool {
	return d.VendorRef == "detached:"+d.DeviceID.String() || d.VendorRef == "deleted:"+d.DeviceID.String()
}

// RecordAccountIdle records that a disconnected account has no work left.
func (s *Service) RecordAccountIdle(ctx context.Context, id uuid.UUID) error {
	s.inventoryLimit.forget(id)
	return s.db.ClearAccountDue(ctx, id)
}
