package device

import (
	"context"
	"reflect"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// noFence is the Fence of records that need no lease, such as reports of a vendor.
type noFence struct{}

// Check always succeeds.
func (noFence) Check(context.Context, store.Tx) error { return nil }

// emitDeviceEvents emits the events of the changes of a device since its last announced state, once they have lasted
// for the debounce time. It returns when to call it again. Lock operations have their own events (lock_events.go).
func (s *Service) emitDeviceEvents(ctx context.Context, tx store.Tx, d *dbsqlc.Device) (again *time.Time, err error) {
	if d.RemovedAt != nil {
		return nil, nil
	}
	was := *d
	now := s.opt.Now().UTC()
	var steady *time.Time
	if d.IsManaged {
		if steady, err = s.updateFlapping(ctx, tx, d); err != nil {
			return nil, err
		}
	}
	switch lasting := d.OnlineChangedAt.Add(s.opt.OfflineDebounce); {
	case d.Online && !d.AnnouncedOnline:
		d.AnnouncedOnline = true
		err = s.events.Emit(ctx, tx, ofDevice(*d, "connected"), event.AboutDevice(*d))
	case !d.Online && d.AnnouncedOnline && lasting.After(now):
		again = &lasting
	case !d.Online && d.AnnouncedOnline:
		d.AnnouncedOnline = false
		err = s.emitDisconnected(ctx, tx, *d)
	}
	if err != nil {
		return nil, err
	}
	if steady != nil {
		again = earlier(again, *steady)
	}
	if d.IsManaged {
		err = s.emitBatteryStatus(ctx, tx, d)
	}
	if err != nil {
		return nil, err
	}
	// The first known position of the lock is no operation.
	if d.AnnouncedLocked == nil {
		d.AnnouncedLocked = d.Locked
	}
	if reflect.DeepEqual(was, *d) {
		return again, nil
	}
	return again, saveAnnounced(ctx, tx, *d)
}

func saveAnnounced(ctx context.Context, tx store.Tx, d dbsqlc.Device) error {
	return tx.SetDeviceAnnounced(ctx, dbsqlc.SetDeviceAnnouncedParams{
		DeviceID:          d.DeviceID,
		AnnouncedOnline:   d.AnnouncedOnline,
		AnnouncedLocked:   d.AnnouncedLocked,
		AnnouncedBattery:  d.AnnouncedBattery,
		RecentDisconnects: d.RecentDisconnects,
		FlakySince:        d.FlakySince,
		OperatedAt:        d.OperatedAt,
	})
}

// emitDisconnected emits the event of a device that has been offline for the debounce time.
func (s *Service) emitDisconnected(ctx context.Context, tx store.Tx, d dbsqlc.Device) error {
	a, err := s.withProblems(ctx, tx, event.AboutDevice(d), d)
	if err != nil {
		return err
	}
	a.At = &d.OnlineChangedAt
	why := "device_disconnected"
	if d.HubDisconnected {
		why = hubDisconnected
	}
	return s.events.Emit(ctx, tx, ofDevice(d, "disconnected"), a.With("error_code", why))
}

// ofDevice returns the type of a device event, which differs for unmanaged devices.
func ofDevice(d dbsqlc.Device, what string) string {
	if d.IsManaged {
		return "device." + what
	}
	return "device.unmanaged." + what
}

// emitBatteryStatus emits the events of a battery status that differs from the last announced one.
func (s *Service) emitBatteryStatus(ctx context.Context, tx store.Tx, d *dbsqlc.Device) error {
	if d.BatteryLevel == nil {
		return nil
	}
	level := *d.BatteryLevel
	status := nextBatteryStatus(domain.Value(d.AnnouncedBattery), level)
	if status == domain.Value(d.AnnouncedBattery) {
		return nil
	}
	was := domain.Value(d.AnnouncedBattery)
	d.AnnouncedBattery = &status
	// The first known status is no change.
	if was == "" {
		return nil
	}
	a := event.AboutDevice(*d).With("battery_level", level)
	if lowBattery(status) && !lowBattery(was) {
		if err := s.events.Emit(ctx, tx, "device.low_battery", a); err != nil {
			return err
		}
	}
	return s.events.Emit(ctx, tx, "device.battery_status_changed", a.With("battery_status", status))
}

// BatteryStatus returns the battery_status of the API (critical, low, good, or full) for a level from 0 to 1.
func BatteryStatus(level float64) string {
	switch {
	case level < 0.1:
		return "critical"
	case level < 0.25:
		return "low"
	case level < 0.75:
		return "good"
	default:
		return "full"
	}
}

func lowBattery(status string) bool { return status == "critical" || status == "low" }

// nextBatteryStatus returns the status that follows was at the level. Hysteresis absorbs levels that vary around a
// bound: a better status needs a level well above the bound.
func nextBatteryStatus(was string, level float64) string {
	const well = 0.05
	status := BatteryStatus(level)
	if was != "" && status != was && BatteryStatus(max(level-well, 0)) == was {
		return was
	}
	return status
}

// withProblems adds the current errors and warnings of a device and its account to an event.
func (s *Service) withProblems(ctx context.Context, tx store.Tx, a event.About, d dbsqlc.Device) (event.About, error) {
	acct, err := tx.GetAccount(ctx, d.ConnectedAccountID)
	if err != nil {
		return a, err
	}
	a = a.With("device_errors", domain.ProblemFields("error_code", toDevice(toAnnouncedDevice(d)).ownErrors())).
		With("device_warnings", domain.ProblemFields("warning_code", toDevice(toAnnouncedDevice(d)).Warnings()))
	return account.WithAccountTrouble(a, acct), nil
}

// RecordDevice records the current description of one device by its vendor. If the lock state then still differs from
// the announced one, it emits a lock event with an unknown method, because the vendor does not report who moved it.
func (s *Service) RecordDevice(ctx context.Context, h store.Fence, device uuid.UUID, f FoundDevice) error {
	ctx = WithInventoryLimit(ctx)
	err := s.onDevice(ctx, h, device, "record the state", func(t *deviceTx) error {
		// The device list of its account handles these.
		if t.d.RemovedAt != nil || isReplaced(t.d, f) {
			return nil
		}
		if err := t.s.refreshDevice(ctx, t.tx, t.d, f); err != nil {
			return err
		}
		var err error
		if t.d, err = t.tx.LockDevice(ctx, device); err != nil {
			return err
		}
		if doubted, _ := t.s.lockUnconfirmed(t.d); !doubted {
			return nil
		}
		return t.recordOperation(ctx, Operation{Kind: BoltMoved, Locked: *t.d.Locked, Method: "unknown"})
	})
	if store.IsNoRows(err) { // erased with its workspace
		return nil
	}
	return err
}
