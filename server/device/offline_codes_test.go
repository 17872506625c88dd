package device

import (
	"errors"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// A lock accepts the first use of a code only within a day of its start.
func TestOfflineCodesCanStillOpen(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 6, 10, 12, 30, 0, 0, time.UTC)
	at := func(d time.Duration) string { return now.Add(d).Format(time.RFC3339) }
	for _, c := range []struct {
		name  string
		code  NewCode
		field string // of the error; empty: none
	}{
		{"hourly, a day ago", NewCode{StartsAt: at(-day), EndsAt: at(48 * time.Hour)}, "starts_at"},
		{"hourly, three days ago", NewCode{StartsAt: at(-3 * day), EndsAt: at(48 * time.Hour)}, "starts_at"},
		{
			"hourly, and the day is over at the widened start",
			NewCode{StartsAt: at(-day + 10*time.Minute), EndsAt: at(48 * time.Hour)},
			"starts_at",
		},
		{"hourly, today", NewCode{StartsAt: at(-day + time.Hour), EndsAt: at(48 * time.Hour)}, ""},
		{"hourly, and over within the day", NewCode{StartsAt: at(-2 * time.Hour), EndsAt: at(time.Hour)}, ""},
		{"daily, three days ago", NewCode{StartsAt: at(-3 * day), EndsAt: at(40 * day), Rounding: "1d"}, "starts_at"},
		{"daily, today", NewCode{StartsAt: at(-time.Hour), EndsAt: at(40 * day), Rounding: "1d"}, ""},
	} {
		_, _, _, err := offlineTimeFrame(c.code, now)
		if e, _ := errors.AsType[*domain.Error](
			err,
		); (err != nil) != (c.field != "") ||
			e != nil && (e.Kind != domain.Invalid ||
				e.Field != c.field) {
			t.Errorf("%s: %v, expected an error on %q", c.name, err, c.field)
		}
	}
}

// The widened end of an offline code must be representable, too.
func TestOfflineCodesEndWithinTheYear9999(t *testing.T) {
	t.Parallel()
	now := time.Date(9999, 10, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name  string
		code  NewCode
		field string // of the error; empty: none
	}{
		{"the last hour", NewCode{StartsAt: "9999-12-31T10:00:00Z", EndsAt: "9999-12-31T23:00:00Z"}, ""},
		{"after the last hour", NewCode{StartsAt: "9999-12-31T10:00:00Z", EndsAt: "9999-12-31T23:00:01Z"}, "ends_at"},
		{"the last day", NewCode{StartsAt: "9999-11-01T10:00:00Z", EndsAt: "9999-12-31T10:00:00Z", Rounding: "1d"}, ""},
		{
			"after the last day",
			NewCode{StartsAt: "9999-11-01T10:00:00Z", EndsAt: "9999-12-31T10:00:01Z", Rounding: "1d"},
			"ends_at",
		},
		{"once, and the day is over in time", NewCode{OneTime: true, StartsAt: "9999-12-30T23:59:00Z"}, ""},
		{"once, on the last day", NewCode{OneTime: true, StartsAt: "9999-12-31T00:00:00Z"}, "starts_at"},
		{
			"once, with a representable end",
			NewCode{OneTime: true, StartsAt: "9999-12-31T00:00:00Z", EndsAt: "9999-12-31T23:30:00Z"},
			"starts_at",
		},
	} {
		_, _, ends, err := offlineTimeFrame(c.code, now)
		e, _ := errors.AsType[*domain.Error](err)
		switch {
		case c.field == "" && (err != nil || ends.Year() != 9999):
			t.Errorf("%s: until %s, %v", c.name, ends, err)
		case c.field != "" && (e == nil || e.Kind != domain.Invalid || e.Field != c.field):
			t.Errorf("%s: until %s, %v, expected an error on %s", c.name, ends, err, c.field)
		}
	}
}
