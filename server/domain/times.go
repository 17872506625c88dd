package domain

import (
	"time"
)

// Bounds for conditions that are not set.
var (
	LongAgo = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	Never   = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
)

// timeLayouts are the forms of ISO 8601 that clients of this API send. A time without a zone is in UTC.
var timeLayouts = []string{
	time.RFC3339Nano,
	"2006-01-02T15:04Z07:00",
	"2006-01-02T15:04:05.999999999",
	"2006-01-02T15:04",
	"2006-01-02",
}

// The API can represent times between firstTime and lastTime, in UTC.
var (
	firstTime = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	lastTime  = time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC)
)

// OnCalendar clamps a vendor's time to the range that the API can represent, and converts it to UTC, because JSON
// cannot represent zones of 24 hours.
func OnCalendar(t *time.Time) *time.Time {
	switch {
	case t == nil:
		return nil
	case t.Before(firstTime):
		return new(firstTime)
	case t.After(lastTime):
		return new(lastTime.Truncate(time.Second))
	}
	return new(t.UTC())
}

// CheckTime returns the error of ParseTime for a text, or nil.
func CheckTime(text string) *Error {
	_, err := ParseTime("", text)
	e, _ := AsError(err)
	return e
}

// ParseTime parses a time in one of the layouts of the API. It fails with Invalid.
func ParseTime(field, text string) (time.Time, error) {
	for _, l := range timeLayouts {
		t, err := time.Parse(l, text)
		if err != nil {
			continue
		}
		t = t.UTC().Truncate(time.Microsecond)
		if err := CheckYears(field, t); err != nil {
			return time.Time{}, err
		}
		return t, nil
	}
	return time.Time{}, Invalidf(field, "Not a time; write it like 2026-11-21T15:00:00Z")
}

// CheckYears refuses times that ISO 8601 cannot represent. It fails with Invalid.
func CheckYears(field string, t time.Time) error {
	if t.Before(firstTime) || t.After(lastTime) {
		return Invalidf(field, "Must be within the years 1 to 9999 (UTC)")
	}
	return nil
}
