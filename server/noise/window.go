package noise

import (
	"fmt"
	"regexp"
	"time"
	_ "time/tzdata" // zones do not depend on the machine

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// Window is the time of day in which a threshold holds.
type Window struct {
	// Starts and Ends are HH:MM:SS. An end before the start is on the next day. 23:59:59 includes that second.
	Starts string `json:"starts"`
	Ends   string `json:"ends"`
	// Zone is of the IANA database; empty for that of the device.
	Zone string `json:"zone,omitempty"`
}

// dailyTime is the form of starts_daily_at and ends_daily_at of the API.
var dailyTime = regexp.MustCompile(
	`^((?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9])(?:\[([A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)+)\])?$`,
)

// ParseTime parses a starts_daily_at or ends_daily_at, such as 20:00:00[America/Los_Angeles]. zone is empty if the text
// names none. It fails with Invalid on the field.
func ParseTime(field, text string) (clock, zone string, err error) {
	m := dailyTime.FindStringSubmatch(text)
	if m == nil {
		return "", "", domain.Invalidf(
			field,
			"Not a time of day; write it like 20:00:00 or 20:00:00[America/Los_Angeles]",
		)
	}
	if m[2] != "" {
		if _, err := time.LoadLocation(m[2]); err != nil {
			return "", "", domain.Invalidf(field, "There is no time zone %s; use one of the IANA database", m[2])
		}
	}
	return m[1], m[2], nil
}

// CheckTime returns the error of ParseTime for a text, or nil.
func CheckTime(text string) *domain.Error {
	_, _, err := ParseTime("", text)
	e, _ := domain.AsError(err)
	return e
}

// ParseWindow parses the two times of a threshold. It fails with Invalid if they are equal, or in two time zones.
func ParseWindow(starts, ends string) (w Window, err error) {
	if w.Starts, w.Zone, err = ParseTime("starts_daily_at", starts); err != nil {
		return Window{}, err
	}
	var zone string
	if w.Ends, zone, err = ParseTime("ends_daily_at", ends); err != nil {
		return Window{}, err
	}
	switch {
	case zone != w.Zone:
		return Window{}, domain.Invalidf("ends_daily_at", "Must be in the time zone of starts_daily_at")
	case w.Ends == w.Starts:
		return Window{}, domain.Invalidf("ends_daily_at",
			"Must differ from starts_daily_at. For all day, use 00:00:00 and 23:59:59")
	}
	return w, nil
}

// StartsAt returns the start in the form of the API.
func (w Window) StartsAt() string { return w.shown(w.Starts) }

// EndsAt returns the end in the form of the API.
func (w Window) EndsAt() string { return w.shown(w.Ends) }

func (w Window) shown(clock string) string {
	if w.Zone == "" {
		return clock
	}
	return clock + "[" + w.Zone + "]"
}

// Holds reports whether the window contains a moment. device is the time zone of the device.
func (w Window) Holds(moment time.Time, device *time.Location) bool {
	at := moment.In(w.location(device))
	clock := at.Hour()*3600 + at.Minute()*60 + at.Second()
	for _, s := range w.spans(0) {
		if s.from <= clock && clock < s.to {
			return true
		}
	}
	return false
}

// Overlaps reports whether both windows contain the same moment on any day of the year after now. Daylight saving
// moves windows of different time zones against each other.
func (w Window) Overlaps(other Window, now time.Time, device *time.Location) bool {
	mine, theirs := w.location(device), other.location(device)
	tried := map[int]bool{}
	for day := range 366 {
		at := now.AddDate(0, 0, day)
		_, my := at.In(mine).Zone()
		_, their := at.In(theirs).Zone()
		shift := my - their
		if tried[shift] {
			continue
		}
		tried[shift] = true
		if overlap(w.spans(0), other.spans(shift)) {
			return true
		}
	}
	return false
}

func (w Window) location(device *time.Location) *time.Location {
	if w.Zone == "" {
		return device
	}
	loc, err := time.LoadLocation(w.Zone)
	if err != nil { // a vendor's name for a zone
		return device
	}
	return loc
}

// span is a part of one day, in seconds from midnight.
type span struct{ from, to int }

const daySeconds = 24 * 60 * 60

// spans returns the parts of the day that the window contains, shifted by seconds. A time that is not HH:MM:SS counts
// as midnight.
func (w Window) spans(shift int) []span {
	from, to := seconds(w.Starts), seconds(w.Ends)
	if to == daySeconds-1 {
		to = daySeconds
	}
	length := (to - from + daySeconds) % daySeconds
	if length == 0 {
		length = daySeconds
	}
	from = ((from+shift)%daySeconds + daySeconds) % daySeconds
	if from+length <= daySeconds {
		return []span{{from, from + length}}
	}
	return []span{{from, daySeconds}, {0, from + length - daySeconds}}
}

func seconds(clock string) int {
	var h, m, s int
	if _, err := fmt.Sscanf(clock, "%2d:%2d:%2d", &h, &m, &s); err != nil {
		return 0
	}
	return h*3600 + m*60 + s
}

func overlap(a, b []span) bool {
	for _, x := range a {
		for _, y := range b {
			if x.from < y.to && y.from < x.to {
				return true
			}
		}
	}
	return false
}
