package access

import (
	"context"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// FoundDevice is one device as its vendor describes it.
type FoundDevice struct {
	Ref, Name, Type, Provider, Manufacturer, Model, SerialNumber string
	Online                                                       bool
	Locked                                                       *bool
	BatteryLevel                                                 *float64
	AutoLock                                                     *AutoLock // nil where unknown
	HubDisconnected                                              bool      // it is its hub that makes it offline
	SubscriptionMissing                                          bool      // its vendor puts no codes on it until it is paid for that
	Lossy                                                        bool      // its vendor may lose what it has to tell of it: see Options.ReadWithin
	Capabilities                                                 Capabilities
	CapabilitiesUnknown                                          bool // what it can do is not known yet: what it could before it still can
}

// outageFrom is after how long an account that did not work has all its devices read. A vendor that refuses one of them only, and lists
// all the same, would have them read again and again.
const outageFrom = 2 * time.Minute

// RecordDevices takes in the complete list of an account's devices: new ones are added, known ones brought
// up to date, with an event for each transition. A device that is missing is not taken away for that (a list
// can be empty for a moment) but looked at by itself.
func (s *Service) RecordDevices(ctx context.Context, h Holder, account uuid.UUID, found []FoundDevice) error {
	ctx = Listed(ctx)
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		if err := h.Check(ctx, tx); err != nil {
			return err
		}
		a, err := tx.LockAccount(ctx, account)
		if store.IsNoRows(err) || err == nil && a.DeletedAt != nil { // erased or disconnected meanwhile
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.accountWorks(ctx, tx, a); err != nil {
			return err
		}
		rows, err := tx.ListDevicesOfAccount(ctx, account)
		if err != nil {
			return err
		}
		moment, err := tx.Moment(ctx) // which is what reads are noted by
		if err != nil {
			return err
		}
		outage := a.ErrorCode != nil && a.ErrorAt != nil && !a.ErrorAt.Add(outageFrom).After(moment)
		known := map[string]dbsqlc.Device{}
		for _, r := range rows {
			known[r.VendorRef] = r
		}
		var unread []uuid.UUID
		seen := map[string]bool{}
		var fresh []FoundDevice
		exchanged := 0
		for _, f := range found {
			if seen[f.Ref] || !keepable(f.Ref) { // some vendors list a device once per owner
				continue
			}
			seen[f.Ref] = true
			for _, text := range []*string{&f.Name, &f.Type, &f.Provider, &f.Manufacturer, &f.Model, &f.SerialNumber} {
				*text = storable(*text)
			}
			r, ok := known[f.Ref]
			delete(known, f.Ref)
			if ok && replaced(r, f) {
				if err := s.replaceDevice(ctx, tx, r); err != nil {
					return err
				}
				ok = false
				exchanged++ // one comes in its place
			}
			if !ok {
				fresh = append(fresh, f)
				continue
			}
			if err := s.refreshDevice(ctx, tx, r, f); err != nil {
				return err
			}
			if outage || s.forgotten(r, f, moment) { // nobody has told of it meanwhile
				unread = append(unread, r.DeviceID)
			}
		}
		if err := s.addDevices(ctx, tx, a, fresh, len(rows)-exchanged); err != nil {
			return err
		}
		for _, r := range known {
			if r.RemovedAt == nil { // it is missing
				unread = append(unread, r.DeviceID)
			}
		}
		if err := tx.WakeToRead(ctx, unread); err != nil {
			return err
		}
		if err := s.waker.WakeEach(ctx, tx, DeviceLane, unread); err != nil {
			return err
		}
		return s.accountSynced(ctx, tx, a)
	})
	if err != nil {
		return fmt.Errorf("record the devices of account %s: %w", account, err)
	}
	return nil
}

// forgotten says whether the codes of a device at rest are to be read because nobody has for long. Those that were read at one time
// are so at times of their own: their vendor is not to be asked for all at once.
func (s *Service) forgotten(r dbsqlc.Device, f FoundDevice, moment time.Time) bool {
	if !f.Lossy || !f.Online || !f.Capabilities.ListCodes || !r.IsManaged || r.RemovedAt != nil || r.ReadNeeded || r.LastGoodReadAt == nil {
		return false
	}
	half := s.opt.ReadWithin / 2
	spread := half * time.Duration(binary.BigEndian.Uint16(r.DeviceID[14:])) / (1 << 16)
	return r.LastGoodReadAt.Add(half + spread).Before(moment)
}

// addDevices adds what an account that has so many has not been known to have.
func (s *Service) addDevices(ctx context.Context, tx store.Tx, a dbsqlc.ConnectedAccount, found []FoundDevice, has int) error {
	if !slices.Contains(a.AcceptedCapabilities, "lock") { // which is what all devices are so far
		return nil
	}
	found = found[:s.Room(a.ConnectedAccountID, has, len(found))]
	var rows []dbsqlc.InsertDeviceParams
	var ids []uuid.UUID
	var told []happening
	var unpaid []dbsqlc.Device
	for _, f := range found {
		row := s.deviceRow(a, f)
		d := dbsqlc.Device{DeviceID: row.DeviceID, WorkspaceID: row.WorkspaceID, ConnectedAccountID: row.ConnectedAccountID, IsManaged: row.IsManaged,
			Online: row.Online, HubDisconnected: row.HubDisconnected, SubscriptionMissingAt: row.SubscriptionMissingAt}
		rows, ids, told = append(rows, row), append(ids, row.DeviceID), append(told, happening{"device.added", aboutDevice(d)})
		if d.Online {
			told = append(told, happening{ofDevice(d, "connected"), aboutDevice(d)})
		}
		if d.SubscriptionMissingAt != nil {
			unpaid = append(unpaid, d)
		}
	}
	err := store.Each(ctx, tx, rows, func(tx store.Tx, row dbsqlc.InsertDeviceParams) error { return tx.InsertDevice(ctx, row) })
	if err != nil {
		return err
	}
	if err := s.emitAll(ctx, tx, told); err != nil {
		return err
	}
	for _, d := range unpaid {
		if err := s.tellSubscription(ctx, tx, dbsqlc.Device{}, d); err != nil {
			return err
		}
	}
	return s.waker.WakeEach(ctx, tx, DeviceLane, ids)
}

func (s *Service) deviceRow(a dbsqlc.ConnectedAccount, f FoundDevice) dbsqlc.InsertDeviceParams {
	now := s.opt.Now().UTC()
	row := dbsqlc.InsertDeviceParams{DeviceID: newID(), WorkspaceID: a.WorkspaceID, ConnectedAccountID: a.ConnectedAccountID, IsManaged: a.ManageNewDevices,
		VendorRef: f.Ref, DeviceType: f.Type, Provider: f.Provider, Manufacturer: f.Manufacturer, Model: f.Model, SerialNumber: f.SerialNumber,
		Name: f.Name, Online: f.Online, Locked: f.Locked, BatteryLevel: f.BatteryLevel, Capabilities: mustJSON(f.Capabilities), Flags: f.Capabilities.Flags(),
		SeenAt: now, HubDisconnected: f.HubDisconnected}
	row.AutoLockEnabled, row.AutoLockDelaySeconds = f.AutoLock.columns()
	if f.BatteryLevel != nil {
		row.AnnouncedBattery = new(BatteryStatus(*f.BatteryLevel))
	}
	if f.SubscriptionMissing {
		row.SubscriptionMissingAt = &now
	}
	return row
}

func (s *Service) refreshDevice(ctx context.Context, tx store.Tx, r dbsqlc.Device, f FoundDevice) error {
	if f.SerialNumber == "" { // it has not told yet
		f.SerialNumber = r.SerialNumber
	}
	if f.CapabilitiesUnknown {
		f.Capabilities = foundCapabilities(r)
	}
	same := r.RemovedAt == nil && r.Online == f.Online && r.Name == f.Name && r.DeviceType == f.Type && r.Provider == f.Provider &&
		r.Manufacturer == f.Manufacturer && r.Model == f.Model && r.SerialNumber == f.SerialNumber && reflect.DeepEqual(r.Locked, f.Locked) &&
		reflect.DeepEqual(r.BatteryLevel, f.BatteryLevel) && reflect.DeepEqual(foundCapabilities(r), f.Capabilities) && reflect.DeepEqual(autoLockOf(r), f.AutoLock) &&
		r.HubDisconnected == f.HubDisconnected && (r.SubscriptionMissingAt != nil) == f.SubscriptionMissing
	if same {
		return nil
	}
	onlineAt, lockedAt := r.OnlineChangedAt, r.LockedChangedAt
	if r.Online != f.Online {
		onlineAt = s.opt.Now().UTC()
	}
	if !reflect.DeepEqual(r.Locked, f.Locked) {
		lockedAt = s.opt.Now().UTC()
	}
	missing := r.SubscriptionMissingAt
	switch {
	case !f.SubscriptionMissing:
		missing = nil
	case missing == nil:
		missing = new(s.opt.Now().UTC())
	}
	on, delay := f.AutoLock.columns()
	err := tx.UpdateDevice(ctx, dbsqlc.UpdateDeviceParams{DeviceID: r.DeviceID, OnlineChangedAt: onlineAt, LockedChangedAt: lockedAt, DeviceType: f.Type, Provider: f.Provider, Manufacturer: f.Manufacturer,
		Model: f.Model, SerialNumber: f.SerialNumber, Name: f.Name, Online: f.Online, Locked: f.Locked, BatteryLevel: f.BatteryLevel,
		Capabilities: mustJSON(f.Capabilities), Flags: f.Capabilities.Flags(), AutoLockEnabled: on, AutoLockDelaySeconds: delay,
		HubDisconnected: f.HubDisconnected, SubscriptionMissingAt: missing})
	if err != nil {
		return err
	}
	was := r
	r.HubDisconnected, r.SubscriptionMissingAt, r.AutoLockEnabled, r.AutoLockDelaySeconds = f.HubDisconnected, missing, on, delay
	r.RemovedAt, r.Online, r.Locked, r.BatteryLevel, r.Name = nil, f.Online, f.Locked, f.BatteryLevel, f.Name
	r.OnlineChangedAt, r.LockedChangedAt = onlineAt, lockedAt
	switch {
	case was.RemovedAt != nil:
		err = s.emit(ctx, tx, "device.added", aboutDevice(r))
	case was.Name != r.Name && r.Nickname == nil && r.IsManaged:
		err = s.emit(ctx, tx, "device.name_changed", aboutDevice(r).with("device_name", r.Name))
	}
	if err != nil {
		return err
	}
	if _, err := s.tell(ctx, tx, &r); err != nil {
		return err
	}
	if err := s.tellSubscription(ctx, tx, was, r); err != nil {
		return err
	}
	switch {
	case (was.SubscriptionMissingAt != nil) != (r.SubscriptionMissingAt != nil): // what has waited for it is done, or waits
		return s.wakeDevice(ctx, tx, r.DeviceID, true)
	case was.RemovedAt != nil || was.Online != r.Online: // nobody knows what happened to it meanwhile
		return s.wakeDevice(ctx, tx, r.DeviceID, true)
	case foundCapabilities(was).PutAnew != f.Capabilities.PutAnew: // a change that was refused can be made
		return s.wakeDevice(ctx, tx, r.DeviceID, false)
	case lockedAt != was.LockedChangedAt: // should nobody tell of that, it does
		return s.wakeDevice(ctx, tx, r.DeviceID, false)
	}
	return nil
}
