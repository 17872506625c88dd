package device

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
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
		c, a, err = s.create(ctx, tx, at, n, tx.BatchLast)
		return err
	})
	if _, ok := domain.AsError(err); err != nil && !ok {
		err = fmt.Errorf("create an access code on device %s: %w", device, err)
	}
	return c, a, err
}

// create adds a new code and the attempt to program it, in one round trip of last, which is the last of the transaction
// for Tx.BatchLast.
func (s *Service) create(
	ctx context.Context, tx store.Tx, at place, n NewCode, last together,
) (c Code, a Attempt, err error) {
	code, err := s.newCode(at, n)
	if err != nil {
		return c, a, err
	}
	t := s.txOn(tx, at.device, at.pins)
	requested, err := t.lock.Create(code, at.taken)
	if err != nil {
		return c, a, err
	}
	if err := t.collect(ctx); err != nil {
		return c, a, err
	}
	if ahead := s.ahead(at.device, &code); ahead > 0 {
		t.changes.Wake = false
		due := dbsqlc.AdvanceDeviceDueParams{DeviceID: at.device.DeviceID, After: ahead}
		t.last = append(t.last, func(tx store.Tx) error { return tx.AdvanceDeviceDue(ctx, due) })
	}
	if err := t.write(ctx, last); err != nil {
		return c, a, err
	}
	c, err = s.toCode(t.inserted[code.ID], deviceOfCode(toAnnouncedDevice(at.device)))
	return c, toAttempt(t.attempt(requested)), err
}

// together is Tx.Batch, or Tx.BatchLast for the last batch of a transaction.
type together func(context.Context, ...func(store.Tx) error) error

// ahead returns how long a new code needs no work on its device. It is 0 where the device is due now, also
// where a backup pool may need to make room for the code.
func (s *Service) ahead(d dbsqlc.Device, c *lockstate.Code) time.Duration {
	when := lockstate.ProgramAt(c, capabilities(d))
	if when == nil || c.UsesBackupPool || readPool(d).Enabled {
		return 0
	}
	return max(when.Sub(s.opt.Now()), 0)
}

// newCode returns a new code, checked against the rules of its device. It fails with Invalid.
func (s *Service) newCode(at place, n NewCode) (c lockstate.Code, err error) {
	d, caps := at.device, capabilities(at.device)
	if n.Offline || n.OneTime {
		return s.newOfflineCode(caps, n)
	}
	if !caps.OnlineCodes {
		return c, &domain.Error{
			Kind:    domain.Invalid,
			Type:    "device_type_not_supported",
			Field:   "device_id",
			Message: "This device cannot hold access codes.",
		}
	}
	if !d.Online && !n.EvenIfOffline {
		return c, &domain.Error{
			Kind:    domain.Invalid,
			Type:    "device_offline",
			Field:   "device_id",
			Message: "The device is offline. Leave attempt_for_offline_device out to set the code when it returns.",
		}
	}
	if caps.ProviderPIN && n.CommonCodeKey != "" {
		return c, domain.Invalidf(
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
		return c, err
	}
	if n.PIN == "" && !caps.ProviderPIN {
		if n.PIN, err = generatePIN(caps, n.PreferredLength, at.isTaken); err != nil {
			return c, err
		}
	}
	return lockstate.Code{
		ID:                          domain.NewID(),
		Name:                        &name,
		PIN:                         at.pins.of(n.PIN),
		StartsAt:                    starts,
		EndsAt:                      ends,
		ExternalModificationAllowed: n.ExternalModificationAllowed,
		PreferNativeScheduling:      n.NativeScheduling,
		CommonCodeKey:               n.CommonCodeKey,
		UsesBackupPool:              n.BackupPool,
	}, nil
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
