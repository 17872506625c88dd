package access

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Offline codes are made by the vendor's cloud, and the device accepts them without being told: from the digits and its
// clock it finds out whether one is good. So they are there at once, whether the device can be reached or not; but
// nobody can choose, change or take back one. Their rules are those of the published API for igloohome, whose codes
// are the only ones that it documents (spec/adapters.md section 4.5).

// OfflineKind says how long an offline code may last.
type OfflineKind string

const (
	OfflineHourly  OfflineKind = "hourly"   // 1 to 672 hours
	OfflineDaily   OfflineKind = "daily"    // 29 to 367 days
	OfflineOneTime OfflineKind = "one_time" // once, within 24 hours
)

const (
	day             = 24 * time.Hour
	offlineHours    = 672 * time.Hour
	offlineDaysFrom = 29 * day
	offlineDaysTo   = 367 * day
	activation      = day // within which a code that lasts longer has to be used first
)

func offline(c dbsqlc.AccessCode) bool { return c.OfflineKind != nil }

// newOfflineCode is the row of an offline code on d. It fails with Invalid.
func (s *Service) newOfflineCode(d dbsqlc.Device, taken []dbsqlc.TakenOnDeviceRow, n NewCode) (r dbsqlc.InsertAccessCodeParams, err error) {
	caps := capabilities(d)
	if !n.Offline {
		return r, invalid("is_one_time_use", "Only offline access codes open once; give is_offline_access_code true, or leave this out")
	}
	if !caps.OfflineCodes {
		return r, invalid("is_offline_access_code", "This device has no offline access codes: its can_program_offline_access_codes is false")
	}
	refused := func(field string, given bool, message string) error {
		if !given {
			return nil
		}
		return invalid(field, "%s", message)
	}
	kind, starts, ends, err := offlineTimeFrame(n, s.opt.Now())
	err = all(err,
		refused("code", n.PIN != "", "The vendor makes the digits of offline access codes (cannot_specify_pin_code); leave `code` out"),
		refused("common_code_key", n.CommonCodeKey != "", "The vendor makes the digits of offline access codes, so they cannot be shared; leave `common_code_key` out"),
		refused("use_backup_access_code_pool", n.BackupPool, "Offline access codes have no backup codes; leave it out"))
	if err != nil {
		return r, err
	}
	code := dbsqlc.AccessCode{IsManaged: true, StartsAt: &starts, EndsAt: &ends, OfflineKind: new(string(kind))}
	if err := checkRoom(caps, taken, code, s.opt.Now()); err != nil {
		return r, err
	}
	name := defaultName
	if n.Name != nil {
		name = *n.Name
	}
	return dbsqlc.InsertAccessCodeParams{AccessCodeID: newID(), WorkspaceID: d.WorkspaceID, DeviceID: d.DeviceID, IsManaged: true, Name: &name,
		StartsAt: &starts, EndsAt: &ends, Status: string(StatusSetting), PreferNativeScheduling: true, DesiredAt: s.opt.Now().UTC(),
		OfflineKind: code.OfflineKind}, nil
}

// offlineTimeFrame is the time frame that an offline code gets: that which was asked for, widened to whole hours or
// days. It fails with Invalid where it would be widened by more than was allowed, or beyond the times that there are.
func offlineTimeFrame(n NewCode, now time.Time) (kind OfflineKind, starts, ends time.Time, err error) {
	if n.OneTime {
		if starts, ends, err = oneTimeFrame(n, now); err == nil {
			err = checkYears("starts_at", ends)
		}
		return OfflineOneTime, starts, ends, err
	}
	if n.StartsAt == "" && n.EndsAt == "" {
		return kind, starts, ends, invalid("starts_at", "An offline access code needs starts_at and ends_at")
	}
	s, e, err := parseTimeFrame(n.StartsAt, n.EndsAt, now)
	if err != nil {
		return kind, starts, ends, err
	}
	starts, ends = s.Truncate(time.Hour), upTo(*e, time.Time{}, time.Hour)
	if !starts.Add(activation).After(now) {
		return kind, starts, ends, invalid("starts_at", "An offline access code has to be used first within 24 hours of starts_at, which are over: it would never open")
	}
	if n.Rounding == "1d" || n.Rounding == "1day" {
		ends = upTo(*e, starts, day)
		if lasts := ends.Sub(starts); lasts < offlineDaysFrom || lasts > offlineDaysTo {
			return kind, starts, ends, invalid("ends_at", "A daily-bound offline access code lasts 29 to 367 days. Leave max_time_rounding out for one of 1 to 672 hours")
		}
		return OfflineDaily, starts, ends, checkYears("ends_at", ends)
	}
	if ends.Sub(starts) > offlineHours {
		return kind, starts, ends, invalid("ends_at", "An hourly-bound offline access code lasts 1 to 672 hours. Give max_time_rounding 1d for one of 29 to 367 days")
	}
	return OfflineHourly, starts, ends, checkYears("ends_at", ends)
}

// upTo rounds up to a whole number of steps after from.
func upTo(t, from time.Time, step time.Duration) time.Time {
	if from.IsZero() {
		from = t.Truncate(step)
	}
	whole := t.Sub(from).Truncate(step)
	if at := from.Add(whole); !at.Before(t) {
		return at
	}
	return from.Add(whole + step)
}

// oneTimeFrame is that of a code that opens once: 24 hours, which need not be given.
func oneTimeFrame(n NewCode, now time.Time) (starts, ends time.Time, err error) {
	starts = now.UTC()
	if n.StartsAt != "" {
		if starts, err = parseTime("starts_at", n.StartsAt); err != nil {
			return starts, ends, err
		}
	}
	starts = starts.Truncate(time.Hour)
	ends = starts.Add(day)
	if !ends.After(now) {
		return starts, ends, invalid("starts_at", "An access code that opens once can be used within 24 hours of starts_at, which are over")
	}
	if n.EndsAt == "" {
		return starts, ends, nil
	}
	asked, err := parseTime("ends_at", n.EndsAt)
	if err == nil && asked.Sub(ends).Abs() > time.Hour {
		err = invalid("ends_at", "An access code that opens once can be used within 24 hours of starts_at; leave ends_at out")
	}
	return starts, ends, err
}

// offlineWarnings are of a code that has to be used soon.
func offlineWarnings(c dbsqlc.AccessCode) []Problem {
	if OfflineKind(text(c.OfflineKind)) == OfflineOneTime || c.EndsAt.Sub(*c.StartsAt) <= activation {
		return nil
	}
	return []Problem{{Code: "igloo_algopin_must_be_used_within_24_hours", Scope: OfCode, At: c.CreatedAt,
		Message: "The code has to be used at the lock within 24 hours of starts_at; otherwise it opens nothing later on."}}
}

// offlineUnchangeable says that an offline code stays as it is.
func offlineUnchangeable(ch CodeChange) error {
	field := "access_code_id"
	for _, given := range []struct {
		field string
		is    bool
	}{
		{"code", ch.PIN != ""}, {"starts_at", ch.StartsAt != ""}, {"ends_at", ch.EndsAt != ""}, {"type", ch.Type != ""},
		{"name", ch.Name != nil}, {"is_managed", ch.Managed != nil && !*ch.Managed},
	} {
		if given.is {
			field = given.field
			break
		}
	}
	return invalid(field, "An offline access code cannot be changed, as the lock knows it without being told. Create another one")
}

// checkOfflineDeletion says why an offline code cannot be deleted: it opens, and nobody can tell the lock not to.
func (s *Service) checkOfflineDeletion(d dbsqlc.Device, c dbsqlc.AccessCode) error {
	if !offline(c) || c.PinMac == nil || d.RemovedAt != nil { // its generation says less: it begins anew when the device was gone
		return nil
	}
	return &Error{Kind: Invalid, Type: "cannot_delete_offline_access_code", Field: "access_code_id", Message: "The vendor has made this offline access code, and the lock accepts it until " +
		c.EndsAt.UTC().Format(time.RFC3339) + " without being told: nobody can take it back from afar. Block it at the lock with the vendor's app; here it is gone when it ends."}
}

// IssueWork is an offline code that is to be made.
type IssueWork struct {
	ID               uuid.UUID
	Gen              int64
	Kind             OfflineKind
	StartsAt, EndsAt time.Time
}

// issue says whether an offline code is to be made now, and when there is something to do otherwise.
func (t *deviceTx) issue(c *dbsqlc.AccessCode) (*IssueWork, *time.Time) {
	switch {
	case c.AppliedGen >= c.DesiredGen && c.StartsAt.After(t.now):
		return nil, c.StartsAt
	case c.AppliedGen >= c.DesiredGen, c.BlockedGen >= c.DesiredGen:
		return nil, c.EndsAt
	case c.NextAttemptAt != nil && c.NextAttemptAt.After(t.now):
		return nil, c.NextAttemptAt
	}
	return &IssueWork{ID: c.AccessCodeID, Gen: c.DesiredGen, Kind: OfflineKind(*c.OfflineKind), StartsAt: *c.StartsAt, EndsAt: *c.EndsAt}, nil
}

// RecordIssued notes what the vendor has answered to the wish for an offline code.
func (s *Service) RecordIssued(ctx context.Context, h Holder, device uuid.UUID, w IssueWork, o PutOutcome) error {
	return s.onDevice(ctx, h, device, "record an offline code", func(t *deviceTx) error {
		o.check()
		c := t.code(w.ID)
		switch {
		case c == nil || c.AppliedGen >= w.Gen:
			return nil
		case o.Failure != nil:
			return t.failed(ctx, c, w.Gen, *o.Failure)
		}
		taken, err := t.claimIssued(ctx, c, o)
		if err != nil {
			return err
		}
		if taken != nil {
			return t.failed(ctx, c, w.Gen, *taken)
		}
		first := c.PinMac == nil // otherwise its device was gone, and is back
		t.s.setPIN(c, o.PIN)
		c.VendorRef, c.AppliedGen, c.AppliedAt = &o.Ref, w.Gen, &t.now
		c.Attempts, c.NextAttemptAt = 0, nil
		clearError(c)
		clearWarning(c)
		if err := t.settle(ctx, c, w.Gen, Succeeded, "", ""); err != nil {
			return err
		}
		if err := t.confirmed(ctx, c, changedByRequest); err != nil {
			return err
		}
		c.Status = string(StatusUnset)
		if !first {
			return nil
		}
		return t.emitWithPIN(ctx, "access_code.issued", c) // that it opens is told by the clock
	})
}

// claimIssued makes sure that no other row has the reference of an offline code that was just made, or says why that cannot be. A vendor
// that lists such codes, too, may have shown this one as an unmanaged one before its answer. One that makes them of their hours answers
// two wishes with the same code.
func (t *deviceTx) claimIssued(ctx context.Context, c *dbsqlc.AccessCode, o PutOutcome) (*Failure, error) {
	for _, other := range t.codes {
		if other == c || text(other.VendorRef) != o.Ref {
			continue
		}
		shows := other.PinMac == nil || encryption.Equal(other.PinMac, t.s.keys.MAC(pinScope(t.d.DeviceID), []byte(o.PIN)))
		if other.IsManaged || !shows {
			return &Failure{Class: FailedUnsupported, Message: "The vendor has answered with the reference of another code of this device, as one does that makes a single code for the same hours. " +
				"Use that one, or create an access code of other hours."}, nil
		}
		return nil, t.gone(ctx, other)
	}
	return nil, nil
}
