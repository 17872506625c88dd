package access

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// NewCode asks for a managed access code. Zero values are not given.
type NewCode struct {
	DeviceID                    string
	Name                        *string
	PIN                         string
	PreferredLength             int
	StartsAt, EndsAt            string
	ExternalModificationAllowed bool
	NativeScheduling            bool
	CommonCodeKey               string // shares the PIN of the codes that have it
	BackupPool                  bool   // another code can be pulled in its place
	Offline                     bool   // its vendor makes it, and the device accepts it without being told of it
	OneTime                     bool   // Offline: it opens once
	Rounding                    string // Offline: how much its time frame may be widened; empty: 1h
	EvenIfOffline               bool   // wait for a device that is offline instead of refusing
}

const defaultName = "New Access Code"

// CreateCode writes down a code that is to be on a device, and the attempt to put it there.
//
// It fails with NotFound for the device; with Invalid where the device cannot hold codes or takes no such
// PIN, name or time frame, is full, or is offline and EvenIfOffline is false; with Conflict
// (duplicate_access_code) where the PIN is on the device already.
func (s *Service) CreateCode(ctx context.Context, p Principal, n NewCode) (c Code, a Attempt, err error) {
	device, err := uuid.Parse(n.DeviceID)
	if err != nil {
		return c, a, deviceNotFound("device_id", n.DeviceID)
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		n := n // what one try finds out is nothing to the next one
		if err := s.joinKey(ctx, tx, p, &n); err != nil {
			return err
		}
		at, err := lockPlace(ctx, tx, p, device)
		if err != nil {
			return err
		}
		row, err := s.newCode(at.device, at.taken, n)
		if err != nil {
			return err
		}
		r, attempt, err := s.insertCode(ctx, tx, at.device, row, tx.Conclude)
		if err != nil {
			return err
		}
		a = toAttempt(attempt)
		c, err = s.toCode(r, beside(told(at.device)))
		return err
	})
	if _, ok := asError(err); err != nil && !ok {
		err = fmt.Errorf("create an access code on device %s: %w", device, err)
	}
	return c, a, err
}

// insertCode writes down a new code and the attempt to put it on its device, all in one round trip of write, and the last
// that is done. Where it is to be put there later, that attempt has come to its end: there is nothing to do but to wait for
// the time.
func (s *Service) insertCode(ctx context.Context, tx store.Tx, d dbsqlc.Device, row dbsqlc.InsertAccessCodeParams, write together) (r dbsqlc.AccessCode, a dbsqlc.ActionAttempt, err error) {
	ahead, status, mutation := s.ahead(d, row), Pending, "creating"
	if ahead > 0 {
		status = Succeeded
	} else {
		tx.Begins()
	}
	if row.Status == string(StatusUnset) {
		mutation = "deferring_creation"
	}
	c := dbsqlc.AccessCode{AccessCodeID: row.AccessCodeID, WorkspaceID: row.WorkspaceID, DeviceID: row.DeviceID, DesiredGen: 1}
	attempt := s.attemptOf(c, CreateAccessCode, status, attemptOptions{})
	events := make([]dbsqlc.InsertEventParams, 2)
	if events[0], err = s.eventOf("access_code.created", aboutCode(d, c)); err != nil {
		return r, a, err
	}
	if events[1], err = s.eventOf(mutationsRequested, asking(aboutCode(d, c), mutation)); err != nil {
		return r, a, err
	}
	if row.UsesBackupPool {
		if err := s.enablePool(ctx, tx, d); err != nil {
			return r, a, err
		}
	}
	var waits bool
	if err := s.waker.WakeIf(ctx, tx, OutboxLane, d.WorkspaceID, &waits); err != nil {
		return r, a, err
	}
	if ahead == 0 {
		if err := s.waker.Wake(ctx, tx, DeviceLane, d.DeviceID); err != nil {
			return r, a, err
		}
	}
	err = write(ctx,
		func(tx store.Tx) (err error) { r, err = tx.InsertAccessCode(ctx, row); return err },
		func(tx store.Tx) (err error) { a, err = tx.InsertActionAttempt(ctx, attempt); return err },
		func(tx store.Tx) (err error) { waits, err = tx.InsertEvent(ctx, events[0]); return err },
		func(tx store.Tx) (err error) { _, err = tx.InsertEvent(ctx, events[1]); return err },
		func(tx store.Tx) error {
			if ahead > 0 {
				return tx.ExpectDevice(ctx, dbsqlc.ExpectDeviceParams{DeviceID: d.DeviceID, After: ahead})
			}
			return tx.WakeDevice(ctx, dbsqlc.WakeDeviceParams{DeviceID: d.DeviceID})
		})
	return r, a, err
}

// together is Tx.Together, or Tx.Conclude for the last that is done in a transaction.
type together func(context.Context, ...func(store.Tx) error) error

// ahead is how long nothing is to be done on a device for a new code; 0 where it has to be looked at now, as it has also
// where a backup pool may make room for the code.
func (s *Service) ahead(d dbsqlc.Device, row dbsqlc.InsertAccessCodeParams) time.Duration {
	when := programAt(dbsqlc.AccessCode{StartsAt: row.StartsAt, PreferNativeScheduling: row.PreferNativeScheduling, OfflineKind: row.OfflineKind}, capabilities(d))
	if when == nil || row.UsesBackupPool || readPool(d).Enabled {
		return 0
	}
	return max(when.Sub(s.opt.Now()), 0)
}

// newCode is the row of a code on d, checked against the device and the codes that are on it.
func (s *Service) newCode(d dbsqlc.Device, taken []dbsqlc.TakenOnDeviceRow, n NewCode) (r dbsqlc.InsertAccessCodeParams, err error) {
	caps := capabilities(d)
	if n.Offline || n.OneTime {
		return s.newOfflineCode(d, taken, n)
	}
	if !caps.OnlineCodes {
		return r, &Error{Kind: Invalid, Type: "device_type_not_supported", Field: "device_id", Message: "This device cannot hold access codes."}
	}
	if !d.Online && !n.EvenIfOffline {
		return r, &Error{Kind: Invalid, Type: "device_offline", Field: "device_id",
			Message: "The device is offline. Leave attempt_for_offline_device out to have the code set when it returns."}
	}
	if caps.ProviderPIN && n.CommonCodeKey != "" {
		return r, invalid("common_code_key", "The vendor of this device chooses the PINs, so none can be shared; leave `common_code_key` out")
	}
	name := defaultNameFor(caps)
	if n.Name != nil {
		name = *n.Name
	}
	starts, ends, err := parseTimeFrame(n.StartsAt, n.EndsAt, s.opt.Now())
	if err := all(checkName(name, caps), checkNewPIN(n.PIN, caps), err, checkPool(n.BackupPool, starts != nil || err != nil)); err != nil {
		return r, err
	}
	row := dbsqlc.AccessCode{AccessCodeID: newID(), DeviceID: d.DeviceID, IsManaged: true, StartsAt: starts, EndsAt: ends, PreferNativeScheduling: n.NativeScheduling}
	if err := checkRoom(caps, taken, row, s.opt.Now()); err != nil {
		return r, err
	}
	switch {
	case caps.ProviderPIN:
	case n.PIN == "":
		if n.PIN, err = s.generatePIN(d.DeviceID, caps, taken, n.PreferredLength); err != nil {
			return r, err
		}
	default:
		if err := s.checkFree(d.DeviceID, taken, uuid.Nil, n.PIN); err != nil {
			return r, err
		}
	}
	s.setPIN(&row, n.PIN)
	status := StatusSetting
	if when := programAt(row, caps); when != nil && when.After(s.opt.Now()) {
		status = StatusUnset
	}
	return dbsqlc.InsertAccessCodeParams{AccessCodeID: row.AccessCodeID, WorkspaceID: d.WorkspaceID, DeviceID: d.DeviceID, IsManaged: true, Name: &name,
		PinSealed: row.PinSealed, PinMac: row.PinMac, StartsAt: starts, EndsAt: ends, Status: string(status),
		ExternalModificationAllowed: n.ExternalModificationAllowed, PreferNativeScheduling: n.NativeScheduling, DesiredAt: s.opt.Now().UTC(),
		CommonCodeKey: nonEmpty(n.CommonCodeKey), UsesBackupPool: n.BackupPool}, nil
}

// checkNewPIN says why a device takes no such PIN for a new code; empty leaves the choice to others.
// It fails with Invalid.
func checkNewPIN(pin string, caps Capabilities) error {
	switch {
	case pin == "":
		return nil
	case caps.ProviderPIN:
		return invalid("code", "The vendor of this device chooses the PINs (cannot_specify_pin_code); leave `code` out")
	default:
		return checkPIN(pin, caps)
	}
}

// defaultNameFor is the name of a code that is given none, short enough for the device.
func defaultNameFor(caps Capabilities) string {
	for _, name := range []string{defaultName, "Access Code", "Code"} {
		if checkName(name, caps) == nil {
			return name
		}
	}
	return defaultName
}

// checkFree says whether another code than self has the PIN already. Those on their way off do not count, nor those of
// the backup pool, which give way: they are gone before this one is put.
func (s *Service) checkFree(device uuid.UUID, taken []dbsqlc.TakenOnDeviceRow, self uuid.UUID, pin string) error {
	mac := s.keys.MAC(pinScope(device), []byte(pin))
	i := slices.IndexFunc(taken, func(c dbsqlc.TakenOnDeviceRow) bool {
		return c.AccessCodeID != self && !c.Leaving && !c.InPool && encryption.Equal(c.PinMac, mac)
	})
	if i < 0 {
		return nil
	}
	e := &Error{Kind: Conflict, Type: "duplicate_access_code", Field: "code"}
	if other := taken[i]; other.IsManaged {
		e.Data = map[string]any{"managed_access_code_id": other.AccessCodeID}
		e.Message = fmt.Sprintf("The device already has this code: managed access code %s. Choose another code.", other.AccessCodeID)
	} else {
		e.Data = map[string]any{"unmanaged_access_code_id": other.AccessCodeID}
		e.Message = fmt.Sprintf("The device already has this code: unmanaged access code %s. Convert that one, delete it, or choose another code.", other.AccessCodeID)
	}
	return e
}
