package access

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// RecordRemoved notes that the account no longer has the device. For good says that what has its reference from
// then on is another device; otherwise it is this one that has come back.
func (s *Service) RecordRemoved(ctx context.Context, h Holder, device uuid.UUID, forGood bool) error {
	return s.onDevice(ctx, h, device, "record the removal", func(t *deviceTx) error {
		if t.d.RemovedAt != nil {
			return nil
		}
		if err := s.removeDevice(ctx, t.tx, t.d); err != nil || !forGood {
			return err
		}
		return t.tx.GiveUpDeviceRef(ctx, device)
	})
}

// RecordLeft notes that the device with that reference has left its account for good, as was heard ago. It may be
// told late, and more than once: a device that was added since then is not meant.
func (s *Service) RecordLeft(ctx context.Context, account uuid.UUID, ref string, ago time.Duration) error {
	if !keepable(ref) { // no device of ours
		return nil
	}
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		_, err := tx.LockAccount(ctx, account) // before its devices, as whoever lists them does
		if store.IsNoRows(err) {               // erased with its workspace, and its devices with it
			return nil
		}
		if err != nil {
			return err
		}
		d, err := tx.LockDeviceByRef(ctx, dbsqlc.LockDeviceByRefParams{ConnectedAccountID: account, VendorRef: ref, Ago: ago})
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
		return s.waker.Wake(ctx, tx, AccountLane, account)
	})
	if err != nil {
		return fmt.Errorf("record that a device has left account %s: %w", account, err)
	}
	return nil
}

// removeDevice is for those who hold the device's lock.
func (s *Service) removeDevice(ctx context.Context, tx store.Tx, d dbsqlc.Device) error {
	if err := tx.RemoveDevice(ctx, d.DeviceID); err != nil {
		return err
	}
	if err := s.emit(ctx, tx, "device.removed", aboutDevice(d)); err != nil {
		return err
	}
	return s.waker.Wake(ctx, tx, DeviceLane, d.DeviceID)
}

// removeAll is removeDevice for all devices of an account that ends: connected again, they are another account's. It is for
// those who hold the account's lock.
func (s *Service) removeAll(ctx context.Context, tx store.Tx, a dbsqlc.ConnectedAccount) error {
	devices, err := tx.LockDevicesOfAccount(ctx, a.ConnectedAccountID)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(devices, 1000) { // each of which may have much metadata
		ids, gone := make([]uuid.UUID, len(some)), map[uuid.UUID]bool{}
		for i, d := range some {
			ids[i], gone[d.DeviceID] = d.DeviceID, d.Gone
		}
		removed, err := tx.RemoveForGood(ctx, ids)
		if err != nil {
			return err
		}
		var told []happening
		for _, d := range removed {
			if !gone[d.DeviceID] {
				told = append(told, happening{"device.removed", aboutDevice(dbsqlc.Device{WorkspaceID: a.WorkspaceID, ConnectedAccountID: a.ConnectedAccountID,
					DeviceID: d.DeviceID, CustomMetadata: d.CustomMetadata})})
			}
		}
		if err := s.emitAll(ctx, tx, told); err != nil {
			return err
		}
		if err := s.waker.WakeEach(ctx, tx, DeviceLane, ids); err != nil {
			return err
		}
	}
	return nil
}

// replaced says whether what a vendor lists under the reference of a device is another one. What has not told its
// serial number yet is not.
func replaced(r dbsqlc.Device, f FoundDevice) bool {
	return OtherSerial(r.SerialNumber, f.SerialNumber)
}

// OtherSerial says whether the serial number that a vendor tells is another than the one that is known.
func OtherSerial(known, told string) bool {
	told = storable(told)
	return known != "" && told != "" && known != told
}

// replaceDevice makes room for another device that has the reference by now. It is for those who hold its lock.
func (s *Service) replaceDevice(ctx context.Context, tx store.Tx, r dbsqlc.Device) error {
	if r.RemovedAt == nil {
		if err := s.removeDevice(ctx, tx, r); err != nil {
			return err
		}
	}
	return tx.GiveUpDeviceRef(ctx, r.DeviceID)
}

// deviceGone ends what waits for a device that was removed. Its codes stay, so that nothing is lost should it come back, but can be
// deleted at once. Those that were to leave stay, too, if they may be on it: it may come back with them.
func (t *deviceTx) deviceGone(ctx context.Context) error {
	all := func(dbsqlc.ActionAttempt) bool { return true }
	const message = "The device was removed from its vendor account."
	returns := !leftForGood(t.d)
	if returns {
		if err := t.end(ctx, all, Failed, "device_removed", message); err != nil {
			return err
		}
	}
	for _, c := range append([]*dbsqlc.AccessCode(nil), t.codes...) {
		if ends(*c) && !c.EndsAt.After(t.now) { // it may come back with it
			if err := t.expire(ctx, c); err != nil {
				return err
			}
		}
		stays := c.InPool || c.RemovingSince == nil || returns && (c.VendorRef != nil || c.WriteGen > 0)
		if !c.IsManaged || !stays { // a code of the pool is known again, wherever it shows
			if err := t.gone(ctx, c); err != nil {
				return err
			}
			continue
		}
		c.WriteAccepted = false // the rest is needed to know it again
		if c.RemovingSince == nil || c.InPool {
			c.Status, c.AppliedGen = string(StatusUnknown), 0
		}
	}
	return t.end(ctx, all, Failed, "device_removed", message)
}

// nextEnd is when the next of the codes ends that stay of a device that was removed.
func (t *deviceTx) nextEnd() (next *time.Time) {
	for _, c := range t.codes {
		if ends(*c) {
			next = earlier(next, *c.EndsAt)
		}
	}
	return next
}

// ends says whether a code has a time to be taken away at.
func ends(c dbsqlc.AccessCode) bool { return c.IsManaged && c.RemovingSince == nil && c.EndsAt != nil }

// leftForGood says whether what its vendor lists from now on is another device (GiveUpDeviceRef, ForgetDevice).
func leftForGood(d dbsqlc.Device) bool {
	return d.VendorRef == "left/"+d.DeviceID.String() || d.VendorRef == "deleted:"+d.DeviceID.String()
}
