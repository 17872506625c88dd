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

// PullBackupCode takes a code out of the pool of the device, to be used in place of another, whose time frame it gets.
// It opens at once, also while the device is offline: without a time frame until the device has taken that, so it is
// given to nobody before the other code's time, or after it. Pulled again, it is the same one.
// It fails with NotFound for the code, and (backup_access_code_not_found) where none can be pulled; with Invalid
// (access_code_not_time_bound, and access_code_inactive at another time than the code's); and with Conflict where the
// code is being deleted.
func (s *Service) PullBackupCode(ctx context.Context, p Principal, id string) (Code, error) {
	var pulled uuid.UUID
	_, err := s.onCode(ctx, p, id, true, func(tx store.Tx, d dbsqlc.Device, c dbsqlc.AccessCode) (a dbsqlc.ActionAttempt, err error) {
		switch {
		case c.RemovingSince != nil:
			return a, &Error{Kind: Conflict, Type: "access_code_being_deleted", Message: "The access code is being removed from its device, so nothing can be pulled in its place."}
		case c.StartsAt == nil:
			return a, &Error{Kind: Invalid, Type: "access_code_not_time_bound", Field: "access_code_id", Message: "Backup access codes can be pulled for time-bound access codes only; this one is ongoing."}
		case !c.UsesBackupPool:
			return a, noBackup("The access code does not use the backup pool. Create codes with use_backup_access_code_pool true.")
		}
		if b, err := s.pulledFor(ctx, tx, c); err != nil || b != nil {
			pulled = idOf(c.PulledBackupCodeID)
			return a, err
		}
		if err := checkPullTime(c, s.opt.Now()); err != nil {
			return a, err
		}
		codes, err := tx.AllCodesOfDevice(ctx, d.DeviceID)
		if err != nil {
			return a, err
		}
		at := slices.IndexFunc(codes, spare)
		if at < 0 || d.RemovedAt != nil {
			return a, noBackup("There is no backup access code on the device at the moment. Try again when is_backup_access_code_available is true.")
		}
		backup := codes[at]
		pulled = backup.AccessCodeID
		backup.InPool, backup.StartsAt, backup.EndsAt, backup.ExternalModificationAllowed = false, c.StartsAt, c.EndsAt, c.ExternalModificationAllowed
		backup.Status = string(StatusSetting)
		s.wantAnew(&backup)
		c.PulledBackupCodeID = &pulled
		for _, row := range []dbsqlc.AccessCode{backup, c} {
			if err := save(ctx, tx, row); err != nil {
				return a, err
			}
		}
		if err := s.emit(ctx, tx, "access_code.backup_access_code_pulled", aboutCode(d, c).with("backup_access_code_id", pulled)); err != nil {
			return a, err
		}
		return a, s.wakeDevice(ctx, tx, d.DeviceID, false)
	})
	if err != nil {
		return Code{}, err
	}
	return s.GetCode(ctx, p, true, pulled.String(), "", "")
}

// checkPullTime says why nothing can be pulled in place of a code at the moment. It fails with Invalid.
func checkPullTime(c dbsqlc.AccessCode, now time.Time) error {
	const what = "A backup access code opens as soon as it is pulled, "
	switch {
	case c.StartsAt.After(now):
		return &Error{Kind: Invalid, Type: "access_code_inactive", Field: "access_code_id", Message: what + "and this access code is not to open before " +
			c.StartsAt.UTC().Format(time.RFC3339) + ". Pull one then, or move starts_at of the access code ahead."}
	case c.EndsAt != nil && !c.EndsAt.After(now):
		return &Error{Kind: Invalid, Type: "access_code_inactive", Field: "access_code_id", Message: what + "and this access code is not to open since " +
			c.EndsAt.UTC().Format(time.RFC3339) + "."}
	}
	return nil
}

// unframed warns of a code that was pulled and is on its device as it was in the pool still: it opens at any time.
func (s *Service) unframed(c dbsqlc.AccessCode) ([]Problem, error) {
	if !c.IsBackup || c.InPool || c.EndsAt == nil || c.AppliedGen == 0 || c.AppliedGen >= c.DesiredGen {
		return nil, nil
	}
	applied, err := s.appliedOf(c)
	if err != nil || applied == nil || applied.EndsAt != nil {
		return nil, err
	}
	if c.RemovingSince != nil {
		return []Problem{{Code: warnDelayRemoving, Scope: OfCode, At: *c.RemovingSince,
			Message: "The device never took the time frame of the code, so it opens until it is removed. It is tried further."}}, nil
	}
	return []Problem{{Code: warnDelaySetting, Scope: OfCode, At: c.DesiredAt,
		Message: "The code opens, but the device does not have its time frame yet: until it has, the code opens after ends_at, too. It is tried further."}}, nil
}

func noBackup(message string) *Error {
	return &Error{Kind: NotFound, Type: "backup_access_code_not_found", Message: message}
}

// wantAnew notes that a code is to become another on its device, or is to be put there once more.
func (s *Service) wantAnew(c *dbsqlc.AccessCode) {
	if staysOff(*c) || warnsOfDelay(*c) {
		clearWarning(c)
	}
	c.DesiredGen++
	c.DesiredAt, c.Attempts, c.NextAttemptAt = s.opt.Now().UTC(), 0, nil
}

// alignBackup gives the code that was pulled in place of c the time frame that c has now, as written down. It fails with Invalid where
// the device has no room for both then.
func (s *Service) alignBackup(ctx context.Context, tx store.Tx, d dbsqlc.Device, c dbsqlc.AccessCode) error {
	b, err := s.pulledFor(ctx, tx, c)
	if err != nil || b == nil || (sameTime(b.StartsAt, c.StartsAt) && sameTime(b.EndsAt, c.EndsAt)) {
		return err
	}
	before := *b
	b.StartsAt, b.EndsAt = c.StartsAt, c.EndsAt
	if caps := capabilities(d); caps.MaxCodes > 0 {
		taken, err := tx.TakenOnDevice(ctx, d.DeviceID)
		if err != nil {
			return err
		}
		if err := checkMoreRoom(caps, taken, before, *b, s.opt.Now()); err != nil {
			return err
		}
	}
	s.wantAnew(b)
	return save(ctx, tx, *b)
}

// removeBackup removes, with a code, the one that was pulled in its place: whoever takes access away means all of it.
func (s *Service) removeBackup(ctx context.Context, tx store.Tx, d dbsqlc.Device, c dbsqlc.AccessCode) error {
	b, err := s.pulledFor(ctx, tx, c)
	if err != nil || b == nil {
		return err
	}
	_, err = s.remove(ctx, tx, d, *b, DeleteAccessCode)
	return err
}

// pulledFor is the managed code that was pulled in place of c and is not being removed; nil where there is none.
func (s *Service) pulledFor(ctx context.Context, tx store.Tx, c dbsqlc.AccessCode) (*dbsqlc.AccessCode, error) {
	if c.PulledBackupCodeID == nil {
		return nil, nil
	}
	b, err := tx.FindAccessCode(ctx, dbsqlc.FindAccessCodeParams{WorkspaceID: c.WorkspaceID, AccessCodeID: *c.PulledBackupCodeID})
	if store.IsNoRows(err) || (err == nil && (!b.IsManaged || b.RemovingSince != nil)) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the backup code that was pulled: %w", err)
	}
	return &b, nil
}
