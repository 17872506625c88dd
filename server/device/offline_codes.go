package device

import (
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// The vendor's cloud generates offline codes, and the device validates them by their digits and its clock, without a
// message. They are available immediately, even if the device is unreachable, but cannot be chosen, changed, or
// revoked. Their rules are those of the published API for igloohome, whose codes are the only ones that it documents
// (developers.igloohome.co, algoPIN).

// OfflineKind is the kind of validity of an offline code.
type OfflineKind = lockstate.OfflineKind

// The offline kinds.
const (
	OfflineHourly  = lockstate.OfflineHourly
	OfflineDaily   = lockstate.OfflineDaily
	OfflineOneTime = lockstate.OfflineOneTime
)

const (
	day             = 24 * time.Hour
	offlineHours    = 672 * time.Hour
	offlineDaysFrom = 29 * day
	offlineDaysTo   = 367 * day
	// activation is the time after its start within which a longer code must be used for the first time.
	activation = day
)

// offline reports whether a code is an offline code.
func offline(c dbsqlc.AccessCode) bool { return c.OfflineKind != nil }

// newOfflineCode returns a new offline code. It fails with Invalid.
func (s *Service) newOfflineCode(caps capability.Set, n NewCode) (c lockstate.Code, err error) {
	if !n.Offline {
		return c, domain.Invalidf(
			"is_one_time_use", "Only offline access codes open once; set is_offline_access_code to true, or omit this",
		)
	}
	if !caps.OfflineCodes {
		return c, domain.Invalidf(
			"is_offline_access_code", "This device has no offline access codes: "+
				"its can_program_offline_access_codes is false",
		)
	}
	refused := func(field string, given bool, message string) error {
		if !given {
			return nil
		}
		return domain.Invalidf(field, "%s", message)
	}
	kind, starts, ends, err := offlineTimeFrame(n, s.opt.Now())
	err = domain.All(err,
		refused("code", n.PIN != "",
			"The vendor generates the digits of offline access codes (cannot_specify_pin_code); omit `code`"),
		refused("common_code_key", n.CommonCodeKey != "",
			"The vendor generates the digits of offline access codes, so they cannot be shared; "+
				"omit `common_code_key`"),
		refused("use_backup_access_code_pool", n.BackupPool, "Offline access codes have no backup codes; omit it"))
	if err != nil {
		return c, err
	}
	name := defaultName
	if n.Name != nil {
		name = *n.Name
	}
	return lockstate.Code{
		ID:                     domain.NewID(),
		Name:                   &name,
		StartsAt:               &starts,
		EndsAt:                 &ends,
		PreferNativeScheduling: true,
		Offline:                kind,
	}, nil
}

// offlineTimeFrame returns the time frame of an offline code: the requested one, widened to whole hours or days. It
// fails with Invalid if the result has an unsupported duration, exceeds the representable times, or could never open.
func offlineTimeFrame(n NewCode, now time.Time) (kind OfflineKind, starts, ends time.Time, err error) {
	if n.OneTime {
		if starts, ends, err = oneTimeFrame(n, now); err == nil {
			err = domain.CheckYears("starts_at", ends)
		}
		return OfflineOneTime, starts, ends, err
	}
	if n.StartsAt == "" && n.EndsAt == "" {
		return kind, starts, ends, domain.Invalidf("starts_at", "An offline access code needs starts_at and ends_at")
	}
	s, e, err := parseTimeFrame(n.StartsAt, n.EndsAt, now)
	if err != nil {
		return kind, starts, ends, err
	}
	starts, ends = s.Truncate(time.Hour), upTo(*e, time.Time{}, time.Hour)
	if !starts.Add(activation).After(now) {
		return kind, starts, ends, domain.Invalidf("starts_at",
			"An offline access code must first be used within 24 hours of starts_at, which have passed: "+
				"it would never open")
	}
	if n.Rounding == "1d" || n.Rounding == "1day" {
		ends = upTo(*e, starts, day)
		if lasts := ends.Sub(starts); lasts < offlineDaysFrom || lasts > offlineDaysTo {
			return kind, starts, ends, domain.Invalidf("ends_at",
				"A daily-bound offline access code lasts 29 to 367 days. "+
					"Omit max_time_rounding for one of 1 to 672 hours")
		}
		return OfflineDaily, starts, ends, domain.CheckYears("ends_at", ends)
	}
	if ends.Sub(starts) > offlineHours {
		return kind, starts, ends, domain.Invalidf("ends_at",
			"An hourly-bound offline access code lasts 1 to 672 hours. "+
				"Set max_time_rounding to 1d for one of 29 to 367 days")
	}
	return OfflineHourly, starts, ends, domain.CheckYears("ends_at", ends)
}

// upTo rounds t up to a whole number of steps after from.
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

// oneTimeFrame returns the time frame of a code that opens once: 24 hours. It fails with Invalid.
func oneTimeFrame(n NewCode, now time.Time) (starts, ends time.Time, err error) {
	starts = now.UTC()
	if n.StartsAt != "" {
		if starts, err = domain.ParseTime("starts_at", n.StartsAt); err != nil {
			return starts, ends, err
		}
	}
	starts = starts.Truncate(time.Hour)
	ends = starts.Add(day)
	if !ends.After(now) {
		return starts, ends, domain.Invalidf("starts_at",
			"An access code that opens once can be used within 24 hours of starts_at, which have passed")
	}
	if n.EndsAt == "" {
		return starts, ends, nil
	}
	asked, err := domain.ParseTime("ends_at", n.EndsAt)
	if err == nil && asked.Sub(ends).Abs() > time.Hour {
		err = domain.Invalidf("ends_at",
			"An access code that opens once can be used within 24 hours of starts_at; omit ends_at")
	}
	return starts, ends, err
}

// offlineWarnings returns the warning of a code that must be used soon.
func offlineWarnings(c dbsqlc.AccessCode) []domain.Problem {
	if OfflineKind(domain.Value(c.OfflineKind)) == OfflineOneTime || c.EndsAt.Sub(*c.StartsAt) <= activation {
		return nil
	}
	return []domain.Problem{{
		Code:    "igloo_algopin_must_be_used_within_24_hours",
		Scope:   domain.OfCode,
		At:      c.CreatedAt,
		Message: "The code must first be used at the lock within 24 hours of starts_at; otherwise it never opens.",
	}}
}

// offlineUnchangeable returns the error of a change of an offline code.
func offlineUnchangeable(ch CodeChange) error {
	field := "access_code_id"
	for _, given := range []struct {
		field string
		is    bool
	}{
		{"code", ch.PIN != ""},
		{"starts_at", ch.StartsAt != ""},
		{"ends_at", ch.EndsAt != ""},
		{"type", ch.Type != ""},
		{"name", ch.Name != nil},
		{"is_managed", ch.Managed != nil && !*ch.Managed},
	} {
		if given.is {
			field = given.field
			break
		}
	}
	return domain.Invalidf(
		field, "An offline access code cannot be changed, because the lock validates it offline. Create another one",
	)
}

// checkOfflineDeletion checks that a code is not an issued offline code, which cannot be revoked. It fails with
// Invalid.
func checkOfflineDeletion(d dbsqlc.Device, c *lockstate.Code) error {
	// The PIN is the sign of issuance, because the generations restart when the device returns.
	if c.Offline == "" || c.PIN == "" || d.RemovedAt != nil {
		return nil
	}
	return &domain.Error{
		Kind:  domain.Invalid,
		Type:  "cannot_delete_offline_access_code",
		Field: "access_code_id",
		Message: "The vendor has issued this offline access code, and the lock accepts it until " +
			c.EndsAt.UTC().Format(time.RFC3339) +
			". It cannot be revoked remotely. Block it at the lock with the vendor's app; " +
			"the server deletes it when it ends.",
	}
}
