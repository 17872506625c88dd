package device

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// NewCode is a request for a managed access code. Zero values are not set.
type NewCode struct {
	DeviceID                    string
	Name                        *string
	PIN                         string
	PreferredLength             int
	StartsAt, EndsAt            string
	ExternalModificationAllowed bool
	NativeScheduling            bool
	CommonCodeKey               string // shares the PIN of the codes with this key
	BackupPool                  bool   // a backup code can be pulled for it
	Offline                     bool   // the vendor computes it, and the device accepts it without a connection
	OneTime                     bool   // Offline: opens once
	Rounding                    string // Offline: how much the time frame may be widened; empty: 1h
	EvenIfOffline               bool   // wait for an offline device instead of failing
}

const defaultName = "New Access Code"

// CreateCode creates a code for a device, and the attempt to program it.
//
// It fails with NotFound for the device, and with Conflict (duplicate_access_code) where another code has the PIN
// in this time. It fails with Invalid where the device does not support codes, does not accept the PIN or
// time frame, is full, or is offline while EvenIfOffline is false.
func (s *Service) CreateCode(ctx context.Context, p domain.Principal, n NewCode) (c Code, a Attempt, err error) {
	device, err := uuid.Parse(n.DeviceID)
	if err != nil {
		return c, a, deviceNotFound("device_id", n.DeviceID)
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		n := n // each retry of the transaction starts from the caller's values
		if err := s.joinKey(ctx, tx, p, &n); err != nil {
			return err
		}
		at, err := s.lockPlace(ctx, tx, p, device)
		if err != nil {
			return err
		}
		row, err := s.newCode(at.device, at.taken, n)
		if err != nil {
			return err
		}
		r, attempt, err := s.insertCode(ctx, tx, at.device, row, tx.BatchLast)
		if err != nil {
			return err
		}
		a = toAttempt(attempt)
		c, err = s.toCode(r, deviceOfCode(toAnnouncedDevice(at.device)))
		return err
	})
	if _, ok := domain.AsError(err); err != nil && !ok {
		err = fmt.Errorf("create an access code on device %s: %w", device, err)
	}
	return c, a, err
}

// insertCode inserts a new code and the attempt to program it in one round trip of write, the last of the
// transaction. A code that is programmed later has an attempt that already succeeded, because only the time
// must pass.
func (s *Service) insertCode(
	ctx context.Context,
	tx store.Tx,
	d dbsqlc.Device,
	row dbsqlc.InsertAccessCodeParams,
	write together,
) (r dbsqlc.AccessCode, a dbsqlc.ActionAttempt, err error) {
	ahead, status, mutation := s.ahead(d, row), Pending, "creating"
	if ahead > 0 {
		status = Succeeded
	} else {
		tx.Begins()
	}
	if row.Status == string(StatusUnset) {
		mutation = "deferring_creation"
	}
	c := dbsqlc.AccessCode{
		AccessCodeID: row.AccessCodeID,
		WorkspaceID:  row.WorkspaceID,
		DeviceID:     row.DeviceID,
		DesiredGen:   1,
	}
	attempt := s.attemptOf(c, domain.CreateAccessCode, status, attemptOptions{})
	events := make([]dbsqlc.InsertEventParams, 2)
	if events[0], err = s.events.NewRow("access_code.created", event.AboutCode(d, c)); err != nil {
		return r, a, err
	}
	if events[1], err = s.events.NewRow(
		lockstate.MutationsRequested,
		withRequestedMutation(event.AboutCode(d, c), mutation),
	); err != nil {
		return r, a, err
	}
	pool := readPool(d)
	enables := row.UsesBackupPool && !pool.Enabled
	pool.Enabled = true
	var waits bool
	if err := s.waker.WakeIf(ctx, tx, domain.OutboxLane, d.WorkspaceID, &waits); err != nil {
		return r, a, err
	}
	if ahead == 0 {
		if err := s.waker.Wake(ctx, tx, domain.DeviceLane, d.DeviceID); err != nil {
			return r, a, err
		}
	}
	steps := []func(store.Tx) error{
		func(tx store.Tx) (err error) { r, err = tx.InsertAccessCode(ctx, row); return err },
		func(tx store.Tx) (err error) { a, err = tx.InsertActionAttempt(ctx, attempt); return err },
		func(tx store.Tx) (err error) { waits, err = tx.InsertEvent(ctx, events[0]); return err },
		func(tx store.Tx) (err error) { _, err = tx.InsertEvent(ctx, events[1]); return err },
		func(tx store.Tx) error {
			if ahead > 0 {
				return tx.AdvanceDeviceDue(ctx, dbsqlc.AdvanceDeviceDueParams{DeviceID: d.DeviceID, After: ahead})
			}
			return tx.WakeDevice(ctx, dbsqlc.WakeDeviceParams{DeviceID: d.DeviceID})
		},
	}
	if enables {
		steps = append(steps, func(tx store.Tx) error {
			return tx.SetBackupPool(ctx, dbsqlc.SetBackupPoolParams{
				DeviceID:   d.DeviceID,
				BackupPool: domain.MustJSON(pool),
			})
		})
	}
	err = write(ctx, steps...)
	return r, a, err
}

// together is Tx.Batch, or Tx.BatchLast for the last batch of a transaction.
type together func(context.Context, ...func(store.Tx) error) error

// ahead returns how long a new code needs no work on its device. It is 0 where the device is due now, also
// where a backup pool may need to make room for the code.
func (s *Service) ahead(d dbsqlc.Device, row dbsqlc.InsertAccessCodeParams) time.Duration {
	when := lockstate.ProgramAt(
		&lockstate.Code{
			StartsAt:               row.StartsAt,
			PreferNativeScheduling: row.PreferNativeScheduling,
			Offline:                lockstate.OfflineKind(domain.Value(row.OfflineKind)),
		},
		capabilities(d),
	)
	if when == nil || row.UsesBackupPool || readPool(d).Enabled {
		return 0
	}
	return max(when.Sub(s.opt.Now()), 0)
}

// newCode returns the row of a code on d, checked against the device and its codes.
func (s *Service) newCode(
	d dbsqlc.Device,
	taken []lockstate.Occupant,
	n NewCode,
) (r dbsqlc.InsertAccessCodeParams, err error) {
	caps := capabilities(d)
	if n.Offline || n.OneTime {
		return s.newOfflineCode(d, taken, n)
	}
	if !caps.OnlineCodes {
		return r, &domain.Error{
			Kind:    domain.Invalid,
			Type:    "device_type_not_supported",
			Field:   "device_id",
			Message: "This device cannot hold access codes.",
		}
	}
	if !d.Online && !n.EvenIfOffline {
		return r, &domain.Error{
			Kind:    domain.Invalid,
			Type:    "device_offline",
			Field:   "device_id",
			Message: "The device is offline. Leave attempt_for_offline_device out to set the code when it returns.",
		}
	}
	if caps.ProviderPIN && n.CommonCodeKey != "" {
		return r, domain.Invalidf(
			"common_code_key",
			"The vendor of this device chooses the PINs, so none can be shared. Leave `common_code_key` out",
		)
	}
	name := defaultName
	if n.Name != nil {
		name = *n.Name
	}
	starts, ends, err := parseTimeFrame(n.StartsAt, n.EndsAt, s.opt.Now())
	if err := domain.All(
		checkNewPIN(n.PIN, caps),
		err,
		checkPool(n.BackupPool, starts != nil || err != nil),
	); err != nil {
		return r, err
	}
	c := &lockstate.Code{
		ID:                          domain.NewID(),
		Managed:                     true,
		Name:                        &name,
		StartsAt:                    starts,
		EndsAt:                      ends,
		ExternalModificationAllowed: n.ExternalModificationAllowed,
		PreferNativeScheduling:      n.NativeScheduling,
		CommonCodeKey:               n.CommonCodeKey,
		UsesBackupPool:              n.BackupPool,
		DesiredAt:                   s.opt.Now().UTC(),
	}
	if err := lockstate.CheckRoom(caps, taken, c.Occupant(), s.opt.Now()); err != nil {
		return r, err
	}
	switch {
	case caps.ProviderPIN:
	case n.PIN == "":
		if n.PIN, err = generatePIN(caps, n.PreferredLength, s.takenOn(d.DeviceID, taken)); err != nil {
			return r, err
		}
	default:
		c.PIN = s.pinsOn(d.DeviceID).of(n.PIN)
		if err := lockstate.CheckPIN(taken, c.Occupant()); err != nil {
			return r, err
		}
	}
	c.Status = lockstate.NewStatus(c, caps, taken, s.opt.Now())
	sealed := dbsqlc.AccessCode{AccessCodeID: c.ID, DeviceID: d.DeviceID}
	s.setPIN(&sealed, n.PIN)
	return insertOf(d, c, sealed), nil
}

// checkNewPIN fails with Invalid where a device does not accept the PIN for a new code. An empty PIN passes.
func checkNewPIN(pin string, caps capability.Set) error {
	switch {
	case pin == "":
		return nil
	case caps.ProviderPIN:
		return domain.Invalidf(
			"code",
			"The vendor of this device chooses the PINs (cannot_specify_pin_code). Leave `code` out",
		)
	default:
		return checkPIN(pin, caps)
	}
}
