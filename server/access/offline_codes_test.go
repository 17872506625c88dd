package access

import (
	"errors"
	"testing"
	"time"
)

// What an offline code is widened to has to be a time that can be told, too.
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
		{"after the last day", NewCode{StartsAt: "9999-11-01T10:00:00Z", EndsAt: "9999-12-31T10:00:01Z", Rounding: "1d"}, "ends_at"},
		{"once, and the day is over in time", NewCode{OneTime: true, StartsAt: "9999-12-30T23:59:00Z"}, ""},
		{"once, on the last day", NewCode{OneTime: true, StartsAt: "9999-12-31T00:00:00Z"}, "starts_at"},
		{"once, with an end that can be told", NewCode{OneTime: true, StartsAt: "9999-12-31T00:00:00Z", EndsAt: "9999-12-31T23:30:00Z"}, "starts_at"},
	} {
		_, _, ends, err := offlineTimeFrame(c.code, now)
		e, _ := errors.AsType[*Error](err)
		switch {
		case c.field == "" && (err != nil || ends.Year() != 9999):
			t.Errorf("%s: until %s, %v", c.name, ends, err)
		case c.field != "" && (e == nil || e.Kind != Invalid || e.Field != c.field):
			t.Errorf("%s: until %s, %v, expected an error on %s", c.name, ends, err, c.field)
		}
	}
}
