package device

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/climate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/noise"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// FoundDevice is the description of one device by its vendor.
type FoundDevice struct {
	// Ref is the vendor's identifier; Type and Provider are the device_type and device_provider_name of the API.
	Ref, Name, Type, Provider, Manufacturer, Model, SerialNumber string

	Online bool
	// Locked is nil if unknown.
	Locked *bool
	// BatteryLevel is 0 to 1; nil if unknown.
	BatteryLevel *float64
	// KeypadBattery is that of the connected accessory keypad; nil if there is none.
	KeypadBattery *float64
	// DoorOpen is nil if unknown.
	DoorOpen *bool
	// AutoLock is nil if unknown.
	AutoLock *AutoLock
	// HubDisconnected is true if the device is offline because of its hub.
	HubDisconnected bool
	// SubscriptionMissing is true if the vendor sets no codes without a subscription.
	SubscriptionMissing bool
	// Lossy is true if the vendor may lose events of the device (see Options.RereadInterval).
	Lossy bool
	// RereadInterval replaces Options.RereadInterval for the device; 0: it does not.
	RereadInterval time.Duration
	Capabilities   capability.Set
	// CapabilitiesUnknown is true if the capabilities are not known yet; the last known ones stay.
	CapabilitiesUnknown bool
	// Asked is when the vendor was asked.
	Asked time.Time
	// Thermostat is the state of a thermostat; nil if unknown.
	Thermostat *climate.Observed
	// NoiseSensor is the state of a noise sensor; nil if unknown.
	NoiseSensor *noise.Observed
}

// maxReadTime bounds how long a vendor takes to answer. Larger differences come from clocks.
const maxReadTime = time.Minute

// IsOvertaken reports whether news of a device was recorded after its vendor was asked, so that the answer may be older
// than the news.
func IsOvertaken(asked, news time.Time) bool {
	return asked.Before(news) && news.Sub(asked) < maxReadTime
}

// OnFound registers what the services of thermostats and noise sensors record of a device that a vendor has described.
// record runs in a transaction that holds the account or the device.
func (s *Service) OnFound(record func(ctx context.Context, tx store.Tx, d dbsqlc.Device, f FoundDevice) error) {
	s.found = append(s.found, record)
}

// recordFound calls what OnFound has registered, for thermostats and noise sensors.
func (s *Service) recordFound(ctx context.Context, tx store.Tx, d dbsqlc.Device, f FoundDevice) error {
	if f.Thermostat == nil && f.NoiseSensor == nil {
		return nil
	}
	for _, record := range s.found {
		if err := record(ctx, tx, d, f); err != nil {
			return err
		}
	}
	return nil
}

// outageFrom is the minimum duration of an account's outage after which the server reads all its devices. A
// shorter threshold would repeat these reads for a vendor that refuses one device but lists all of them.
const outageFrom = 2 * time.Minute

// RecordDevices records the complete device list of an account: it adds new devices and updates known ones, with an
// event for each transition. A missing device is not removed, because lists can be empty for a moment, but read.
func (s *Service) RecordDevices(ctx context.Context, h store.Fence, account uuid.UUID, found []FoundDevice) error {
	ctx = WithInventoryLimit(ctx)
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
		if err := s.accounts.ClearAccountError(ctx, tx, a); err != nil {
			return err
		}
		rows, err := tx.ListDevicesOfAccount(ctx, account)
		if err != nil {
			return err
		}
		moment, err := tx.Now(ctx) // reads are recorded by the database's clock
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
			if seen[f.Ref] || !domain.ValidRef(f.Ref) { // some vendors list a device once per owner
				continue
			}
			seen[f.Ref] = true
			for _, text := range []*string{&f.Type, &f.Provider, &f.SerialNumber} {
				*text = domain.Storable(*text)
			}
			for _, name := range []*string{&f.Name, &f.Manufacturer, &f.Model} {
				*name = domain.CleanName(*name)
			}
			r, ok := known[f.Ref]
			delete(known, f.Ref)
			if ok && isReplaced(r, f) {
				if err := s.replaceDevice(ctx, tx, r); err != nil {
					return err
				}
				ok = false
				exchanged++
			}
			if !ok {
				fresh = append(fresh, f)
				continue
			}
			if err := s.refreshDevice(ctx, tx, r, f); err != nil {
				return err
			}
			if outage || s.needsReread(r, f, moment) { // events may have been lost
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
		if err := s.waker.WakeEach(ctx, tx, domain.DeviceLane, unread); err != nil {
			return err
		}
		return s.accounts.AccountSynced(ctx, tx, a)
	})
	if err != nil {
		return fmt.Errorf("record the devices of account %s: %w", account, err)
	}
	return nil
}

// needsReread reports whether the last read of an idle device is too old. The interval varies by device, so that
// devices that were read together are not reread together.
func (s *Service) needsReread(r dbsqlc.Device, f FoundDevice, moment time.Time) bool {
	if !f.Lossy || !f.Online || !f.Capabilities.ListCodes || !r.IsManaged || r.RemovedAt != nil || r.ReadNeeded ||
		r.LastGoodReadAt == nil {
		return false
	}
	half := cmp.Or(f.RereadInterval, s.opt.RereadInterval) / 2
	spread := half * time.Duration(binary.BigEndian.Uint16(r.DeviceID[14:])) / (1 << 16)
	return r.LastGoodReadAt.Add(half + spread).Before(moment)
}

// addDevices adds new devices to an account that has a number of devices.
func (s *Service) addDevices(
	ctx context.Context, tx store.Tx, a dbsqlc.ConnectedAccount, found []FoundDevice, has int,
) error {
	found = slices.DeleteFunc(found, func(f FoundDevice) bool {
		return !slices.Contains(a.AcceptedCapabilities, f.Capabilities.Accepted())
	})
	found = found[:s.accounts.Room(a.ConnectedAccountID, has, len(found))]
	var rows []dbsqlc.InsertDeviceParams
	var ids []uuid.UUID
	var told []event.Occurrence
	var unpaid []dbsqlc.Device
	for _, f := range found {
		row := s.deviceRow(a, f)
		d := dbsqlc.Device{
			DeviceID:              row.DeviceID,
			WorkspaceID:           row.WorkspaceID,
			ConnectedAccountID:    row.ConnectedAccountID,
			IsManaged:             row.IsManaged,
			Online:                row.Online,
			HubDisconnected:       row.HubDisconnected,
			SubscriptionMissingAt: row.SubscriptionMissingAt,
		}
		rows, ids, told = append(rows, row), append(ids, row.DeviceID), append(told, event.Occurrence{
			Type:  "device.added",
			About: event.AboutDevice(d),
		})
		if d.Online {
			told = append(told, event.Occurrence{Type: ofDevice(d, "connected"), About: event.AboutDevice(d)})
		}
		if d.SubscriptionMissingAt != nil {
			unpaid = append(unpaid, d)
		}
	}
	err := store.Each(
		ctx, tx, rows, func(tx store.Tx, row dbsqlc.InsertDeviceParams) error { return tx.InsertDevice(ctx, row) },
	)
	if err != nil {
		return err
	}
	if err := s.events.EmitAll(ctx, tx, told); err != nil {
		return err
	}
	for _, d := range unpaid {
		if err := s.emitSubscription(ctx, tx, dbsqlc.Device{}, d); err != nil {
			return err
		}
	}
	for i, row := range rows {
		if found[i].Thermostat == nil && found[i].NoiseSensor == nil {
			continue
		}
		d, err := tx.LockDevice(ctx, row.DeviceID)
		if err != nil {
			return err
		}
		if err := s.recordFound(ctx, tx, d, found[i]); err != nil {
			return err
		}
	}
	return s.waker.WakeEach(ctx, tx, domain.DeviceLane, ids)
}

func (s *Service) deviceRow(a dbsqlc.ConnectedAccount, f FoundDevice) dbsqlc.InsertDeviceParams {
	now := s.opt.Now().UTC()
	row := dbsqlc.InsertDeviceParams{
		DeviceID:           domain.NewID(),
		WorkspaceID:        a.WorkspaceID,
		ConnectedAccountID: a.ConnectedAccountID,
		IsManaged:          a.ManageNewDevices && s.accounts.CheckWritesAllowed(a) == nil,
		VendorRef:          f.Ref,
		DeviceType:         f.Type,
		Provider:           f.Provider,
		Manufacturer:       f.Manufacturer,
		Model:              f.Model,
		SerialNumber:       f.SerialNumber,
		Name:               f.Name,
		Online:             f.Online,
		Locked:             f.Locked,
		BatteryLevel:       f.BatteryLevel,
		KeypadBattery:      f.KeypadBattery,
		DoorOpen:           f.DoorOpen,
		Capabilities:       domain.MustJSON(f.Capabilities),
		Flags:              f.Capabilities.Flags(),
		SeenAt:             now,
		HubDisconnected:    f.HubDisconnected,
	}
	row.AutoLockEnabled, row.AutoLockDelaySeconds = autoLockColumns(f.AutoLock)
	if f.BatteryLevel != nil {
		row.AnnouncedBattery = new(BatteryStatus(*f.BatteryLevel))
	}
	if f.SubscriptionMissing {
		row.SubscriptionMissingAt = &now
	}
	return row
}

func (s *Service) refreshDevice(ctx context.Context, tx store.Tx, r dbsqlc.Device, f FoundDevice) error {
	if f.SerialNumber == "" { // not reported yet
		f.SerialNumber = r.SerialNumber
	}
	if f.CapabilitiesUnknown {
		f.Capabilities = foundCapabilities(r)
	}
	same := r.RemovedAt == nil && r.Online == f.Online && r.Name == f.Name && r.DeviceType == f.Type &&
		r.Provider == f.Provider &&
		r.Manufacturer == f.Manufacturer && r.Model == f.Model && r.SerialNumber == f.SerialNumber &&
		reflect.DeepEqual(r.Locked, f.Locked) &&
		reflect.DeepEqual(r.BatteryLevel, f.BatteryLevel) &&
		reflect.DeepEqual(r.KeypadBattery, f.KeypadBattery) && reflect.DeepEqual(r.DoorOpen, f.DoorOpen) &&
		reflect.DeepEqual(foundCapabilities(r), f.Capabilities) && reflect.DeepEqual(autoLockOf(r), f.AutoLock) &&
		r.HubDisconnected == f.HubDisconnected && (r.SubscriptionMissingAt != nil) == f.SubscriptionMissing
	if same {
		return s.recordFound(ctx, tx, r, f)
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
	on, delay := autoLockColumns(f.AutoLock)
	err := tx.UpdateDevice(ctx, dbsqlc.UpdateDeviceParams{
		DeviceID:              r.DeviceID,
		OnlineChangedAt:       onlineAt,
		LockedChangedAt:       lockedAt,
		DeviceType:            f.Type,
		Provider:              f.Provider,
		Manufacturer:          f.Manufacturer,
		Model:                 f.Model,
		SerialNumber:          f.SerialNumber,
		Name:                  f.Name,
		Online:                f.Online,
		Locked:                f.Locked,
		BatteryLevel:          f.BatteryLevel,
		KeypadBattery:         f.KeypadBattery,
		DoorOpen:              f.DoorOpen,
		Capabilities:          domain.MustJSON(f.Capabilities),
		Flags:                 f.Capabilities.Flags(),
		AutoLockEnabled:       on,
		AutoLockDelaySeconds:  delay,
		HubDisconnected:       f.HubDisconnected,
		SubscriptionMissingAt: missing,
	})
	if err != nil {
		return err
	}
	was := r
	r.HubDisconnected, r.SubscriptionMissingAt = f.HubDisconnected, missing
	r.AutoLockEnabled, r.AutoLockDelaySeconds = on, delay
	r.RemovedAt, r.Online, r.Locked, r.BatteryLevel, r.Name = nil, f.Online, f.Locked, f.BatteryLevel, f.Name
	r.OnlineChangedAt, r.LockedChangedAt = onlineAt, lockedAt
	switch {
	case was.RemovedAt != nil:
		err = s.events.Emit(ctx, tx, "device.added", event.AboutDevice(r))
	case was.Name != r.Name && r.Nickname == nil && r.IsManaged:
		err = s.events.Emit(ctx, tx, "device.name_changed", event.AboutDevice(r).With("device_name", r.Name))
	}
	if err != nil {
		return err
	}
	if _, err := s.emitDeviceEvents(ctx, tx, &r); err != nil {
		return err
	}
	if err := s.emitSubscription(ctx, tx, was, r); err != nil {
		return err
	}
	if err := s.recordFound(ctx, tx, r, f); err != nil {
		return err
	}
	switch {
	case (was.SubscriptionMissingAt != nil) != (r.SubscriptionMissingAt != nil): // pending changes start or pause
		return s.accounts.WakeDevice(ctx, tx, r.DeviceID, true)
	case was.RemovedAt != nil || was.Online != r.Online: // its codes may have changed meanwhile
		return s.accounts.WakeDevice(ctx, tx, r.DeviceID, true)
	case foundCapabilities(was).RecreateToChange() != f.Capabilities.RecreateToChange(): // a refused change may succeed
		return s.accounts.WakeDevice(ctx, tx, r.DeviceID, false)
	case lockedAt != was.LockedChangedAt: // emits the lock event if the vendor reports none
		return s.accounts.WakeDevice(ctx, tx, r.DeviceID, false)
	}
	return nil
}
