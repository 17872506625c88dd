package access

import (
	"context"
	"reflect"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// anybody is the Holder of what may be noted at any time, as it is decided by nobody here: what a vendor tells.
type anybody struct{}

func (anybody) Check(context.Context, store.Tx) error { return nil }

// tell writes the events of what has become of a device since it was last told of, as far as that has lasted, and
// says when to ask again: a device that comes back soon was never gone. Bolts are told of by package access's
// operations (see bolt.go).
func (s *Service) tell(ctx context.Context, tx store.Tx, d *dbsqlc.Device) (again *time.Time, err error) {
	if d.RemovedAt != nil {
		return nil, nil
	}
	was := *d
	now := s.opt.Now().UTC()
	var steady *time.Time
	if d.IsManaged {
		if steady, err = s.tellFlaky(ctx, tx, d); err != nil {
			return nil, err
		}
	}
	switch lasting := d.OnlineChangedAt.Add(s.opt.OfflineDebounce); {
	case d.Online && !d.AnnouncedOnline:
		d.AnnouncedOnline = true
		err = s.emit(ctx, tx, ofDevice(*d, "connected"), aboutDevice(*d))
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
		err = s.tellBattery(ctx, tx, d)
	}
	if err != nil {
		return nil, err
	}
	if d.AnnouncedLocked == nil { // where the bolt was at first is no operation
		d.AnnouncedLocked = d.Locked
	}
	if reflect.DeepEqual(was, *d) {
		return again, nil
	}
	return again, saveTold(ctx, tx, *d)
}

func saveTold(ctx context.Context, tx store.Tx, d dbsqlc.Device) error {
	return tx.SetDeviceTold(ctx, dbsqlc.SetDeviceToldParams{DeviceID: d.DeviceID, AnnouncedOnline: d.AnnouncedOnline, AnnouncedLocked: d.AnnouncedLocked, AnnouncedBattery: d.AnnouncedBattery,
		RecentDisconnects: d.RecentDisconnects, FlakySince: d.FlakySince, OperatedAt: d.OperatedAt})
}

// emitDisconnected tells that a device was offline for long enough.
func (s *Service) emitDisconnected(ctx context.Context, tx store.Tx, d dbsqlc.Device) error {
	a, err := s.withTrouble(ctx, tx, aboutDevice(d), d)
	if err != nil {
		return err
	}
	a.at = &d.OnlineChangedAt
	why := "device_disconnected"
	if d.HubDisconnected {
		why = hubDisconnected
	}
	return s.emit(ctx, tx, ofDevice(d, "disconnected"), a.with("error_code", why))
}

// ofDevice is the type of an event that has one of its own for devices that are not managed.
func ofDevice(d dbsqlc.Device, what string) string {
	if d.IsManaged {
		return "device." + what
	}
	return "device.unmanaged." + what
}

// tellBattery tells of another battery status than the one last told.
func (s *Service) tellBattery(ctx context.Context, tx store.Tx, d *dbsqlc.Device) error {
	if d.BatteryLevel == nil {
		return nil
	}
	level := *d.BatteryLevel
	status := nextBatteryStatus(text(d.AnnouncedBattery), level)
	if status == text(d.AnnouncedBattery) {
		return nil
	}
	was := text(d.AnnouncedBattery)
	d.AnnouncedBattery = &status
	if was == "" { // as it was when the device was found
		return nil
	}
	a := aboutDevice(*d).with("battery_level", level)
	if lowBattery(status) && !lowBattery(was) {
		if err := s.emit(ctx, tx, "device.low_battery", a); err != nil {
			return err
		}
	}
	return s.emit(ctx, tx, "device.battery_status_changed", a.with("battery_status", status))
}

// BatteryStatus is the battery_status of the API: critical, low, good or full; level is 0 to 1.
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

// nextBatteryStatus is the status that follows was at the level. A level that goes to and fro about a bound, as
// levels do, changes nothing: it has to rise well above.
func nextBatteryStatus(was string, level float64) string {
	const well = 0.05
	status := BatteryStatus(level)
	if was != "" && status != was && BatteryStatus(max(level-well, 0)) == was {
		return was
	}
	return status
}

// withTrouble adds the errors and warnings of a device and its account as they are now.
func (s *Service) withTrouble(ctx context.Context, tx store.Tx, a about, d dbsqlc.Device) (about, error) {
	account, err := tx.GetAccount(ctx, d.ConnectedAccountID)
	if err != nil {
		return a, err
	}
	return a.with("device_errors", problems("error_code", toDevice(told(d)).ownErrors())).
		with("device_warnings", problems("warning_code", toDevice(told(d)).Warnings())).withAccountTrouble(account), nil
}

func (a about) withAccountTrouble(account dbsqlc.ConnectedAccount) about {
	return a.with("connected_account_errors", problems("error_code", accountErrors(account))).with("connected_account_warnings", []any{})
}

// problems are errors or warnings in the form that events carry; field is "error_code" or "warning_code".
func problems(field string, list []Problem) []map[string]any {
	out := []map[string]any{}
	for _, p := range list {
		shown := map[string]any{field: p.Code, "message": p.Message, "created_at": p.At.UTC()}
		if field == "error_code" {
			shown["is_"+string(p.Scope)+"_error"] = true
		}
		out = append(out, shown)
	}
	return out
}

// RecordDevice takes in one device as its vendor describes it now. What is then still different from what was
// last told of its bolt was done by somebody of whom the vendor does not tell.
func (s *Service) RecordDevice(ctx context.Context, h Holder, device uuid.UUID, f FoundDevice) error {
	ctx = Listed(ctx)
	return s.onDevice(ctx, h, device, "record the state", func(t *deviceTx) error {
		if t.d.RemovedAt != nil || replaced(t.d, f) { // its account's list tells of it
			return nil
		}
		if err := t.s.refreshDevice(ctx, t.tx, t.d, f); err != nil {
			return err
		}
		var err error
		if t.d, err = t.tx.LockDevice(ctx, device); err != nil {
			return err
		}
		if doubted, _ := t.s.boltDoubted(t.d); !doubted {
			return nil
		}
		return t.operated(ctx, Operation{Kind: BoltMoved, Locked: *t.d.Locked, Method: "unknown"})
	})
}
