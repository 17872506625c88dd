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

// PullBackupCode takes a code out of the device's pool to replace another one, and gives it the time frame of
// that one. It opens immediately, also on an offline device, where it has no time frame until the device
// confirms. So it can be pulled only within the time frame of the other code. A second call returns the same
// code.
//
// It fails with NotFound for the code, and (backup_access_code_not_found) where none can be pulled. It fails
// with Invalid (access_code_not_time_bound, or access_code_inactive outside of the code's time frame), and with
// Conflict where the code is being deleted.
func (s *Service) PullBackupCode(ctx context.Context, p domain.Principal, id string) (Code, error) {
	var pulled uuid.UUID
	_, err := s.onCode(
		ctx,
		p,
		id,
		true,
		func(tx store.Tx, d dbsqlc.Device, c dbsqlc.AccessCode) (a dbsqlc.ActionAttempt, err error) {
			switch {
			case c.RemovingSince != nil:
				return a, &domain.Error{
					Kind:    domain.Conflict,
					Type:    "access_code_being_deleted",
					Message: "The access code is being removed from its device, so no backup code can replace it.",
				}
			case c.StartsAt == nil:
				return a, &domain.Error{
					Kind:    domain.Invalid,
					Type:    "access_code_not_time_bound",
					Field:   "access_code_id",
					Message: "Backup access codes can be pulled for time-bound access codes only. This one is ongoing.",
				}
			case !c.UsesBackupPool:
				return a, noBackup(
					"The access code does not use the backup pool. Create codes with use_backup_access_code_pool true.",
				)
			}
			if b, err := s.pulledFor(ctx, tx, c); err != nil || b != nil {
				pulled = domain.Value(c.PulledBackupCodeID)
				return a, err
			}
			if err := checkPullTime(c, s.opt.Now()); err != nil {
				return a, err
			}
			codes, err := tx.AllCodesOfDevice(ctx, d.DeviceID)
			if err != nil {
				return a, err
			}
			at := slices.IndexFunc(codes, func(b dbsqlc.AccessCode) bool {
				return isPullable(b) && !s.isWanted(codes, b)
			})
			if at < 0 || d.RemovedAt != nil {
				return a, noBackup(
					"There is no backup access code on the device at the moment. Try again when " +
						"is_backup_access_code_available is true.",
				)
			}
			backup := codes[at]
			pulled = backup.AccessCodeID
			backup.InPool, backup.StartsAt, backup.EndsAt = false, c.StartsAt, c.EndsAt
			backup.ExternalModificationAllowed = c.ExternalModificationAllowed
			backup.Status = string(StatusSetting)
			s.requestWrite(&backup)
			c.PulledBackupCodeID = &pulled
			for _, row := range []dbsqlc.AccessCode{backup, c} {
				if err := saveCode(ctx, tx, row); err != nil {
					return a, err
				}
			}
			if err := s.events.Emit(
				ctx,
				tx,
				"access_code.backup_access_code_pulled",
				event.AboutCode(d, c).With("backup_access_code_id", pulled),
			); err != nil {
				return a, err
			}
			return a, s.accounts.WakeDevice(ctx, tx, d.DeviceID, false)
		},
	)
	if err != nil {
		return Code{}, err
	}
	return s.GetCode(ctx, p, true, pulled.String(), "", "")
}

// checkPullTime fails with Invalid outside of a code's time frame.
func checkPullTime(c dbsqlc.AccessCode, now time.Time) error {
	const what = "A backup access code opens when it is pulled, "
	switch {
	case c.StartsAt.After(now):
		return &domain.Error{
			Kind:  domain.Invalid,
			Type:  "access_code_inactive",
			Field: "access_code_id",
			Message: what + "and this access code must not open before " +
				c.StartsAt.UTC().Format(time.RFC3339) + ". Pull one then, or set an earlier starts_at.",
		}
	case c.EndsAt != nil && !c.EndsAt.After(now):
		return &domain.Error{
			Kind:  domain.Invalid,
			Type:  "access_code_inactive",
			Field: "access_code_id",
			Message: what + "and this access code ended at " +
				c.EndsAt.UTC().Format(time.RFC3339) + ".",
		}
	}
	return nil
}

// pendingTimeFrame returns a warning for a pulled code whose device does not have its time frame yet: it opens
// at any time.
func (s *Service) pendingTimeFrame(c dbsqlc.AccessCode) ([]domain.Problem, error) {
	if !c.IsBackup || c.InPool || c.EndsAt == nil || c.AppliedGen == 0 || c.AppliedGen >= c.DesiredGen {
		return nil, nil
	}
	applied, err := s.appliedOf(c)
	if err != nil || applied == nil || applied.EndsAt != nil {
		return nil, err
	}
	if c.RemovingSince != nil {
		return []domain.Problem{
			{
				Code:  warnDelayRemoving,
				Scope: domain.OfCode,
				At:    *c.RemovingSince,
				Message: "The device never accepted the time frame of the code, so the code opens until it is " +
					"removed. The server keeps retrying.",
			},
		}, nil
	}
	return []domain.Problem{
		{
			Code:  warnDelaySetting,
			Scope: domain.OfCode,
			At:    c.DesiredAt,
			Message: "The code opens, but the device does not have its time frame yet. Until then the code " +
				"also opens after ends_at. The server keeps retrying.",
		},
	}, nil
}

func noBackup(message string) *domain.Error {
	return &domain.Error{Kind: domain.NotFound, Type: "backup_access_code_not_found", Message: message}
}

// requestWrite starts a new generation of the code, so that the device is programmed again.
func (s *Service) requestWrite(c *dbsqlc.AccessCode) {
	if staysOff(*c) || warnsOfDelay(*c) {
		clearWarning(c)
	}
	c.DesiredGen++
	c.DesiredAt, c.Attempts, c.NextAttemptAt = s.opt.Now().UTC(), 0, nil
}

// alignBackup gives the code that was pulled for c the current time frame of c. It fails with Invalid where the
// device has no room for both, and with Conflict where another code has the PIN of the pulled one in that time.
func (s *Service) alignBackup(ctx context.Context, tx store.Tx, d dbsqlc.Device, c dbsqlc.AccessCode) error {
	b, err := s.pulledFor(ctx, tx, c)
	if err != nil || b == nil || (sameTime(b.StartsAt, c.StartsAt) && sameTime(b.EndsAt, c.EndsAt)) {
		return err
	}
	before := *b
	b.StartsAt, b.EndsAt = c.StartsAt, c.EndsAt
	taken, err := tx.ListOccupiedPINs(ctx, d.DeviceID)
	if err != nil {
		return err
	}
	if err := s.checkFree(inTurnWith(taken, before), *b); err != nil {
		return onBackupError(err, b.AccessCodeID)
	}
	if err := checkMoreRoom(capabilities(d), taken, before, *b, s.opt.Now()); err != nil {
		return err
	}
	s.requestWrite(b)
	return saveCode(ctx, tx, *b)
}

// onBackupError says that an error is about the code that was pulled for the code to change.
func onBackupError(err error, backup uuid.UUID) error {
	if e, ok := domain.AsError(err); ok {
		e.Message = fmt.Sprintf("Backup access code %s replaces this code and gets its times. %s", backup, e.Message)
	}
	return err
}

// removeBackup removes the code that was pulled for c, because the removal of c revokes both.
func (s *Service) removeBackup(ctx context.Context, tx store.Tx, d dbsqlc.Device, c dbsqlc.AccessCode) error {
	b, err := s.pulledFor(ctx, tx, c)
	if err != nil || b == nil {
		return err
	}
	_, err = s.remove(ctx, tx, d, *b, domain.DeleteAccessCode)
	return err
}

// pulledFor returns the managed code that was pulled for c and is not being removed, or nil.
func (s *Service) pulledFor(ctx context.Context, tx store.Tx, c dbsqlc.AccessCode) (*dbsqlc.AccessCode, error) {
	if c.PulledBackupCodeID == nil {
		return nil, nil
	}
	b, err := tx.FindAccessCode(
		ctx,
		dbsqlc.FindAccessCodeParams{WorkspaceID: c.WorkspaceID, AccessCodeID: *c.PulledBackupCodeID},
	)
	if store.IsNoRows(err) || (err == nil && (!b.IsManaged || b.RemovingSince != nil)) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the backup code that was pulled: %w", err)
	}
	return &b, nil
}
