package zwavejs

import (
	"context"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// The command class Schedule Entry Lock stores a time frame for the user of a slot, in full minutes of the lock's
// clock. The adapter uses the first schedule slot of a user.

// supportsTimeFrames reports whether the lock applies time frames: it has the command class, and the zone of its
// clock is configured.
func (n *node) supportsTimeFrames(g gateway) bool {
	return g.zone != nil && n.has(ccScheduleEntryLock) && n.has(ccUserCode)
}

// checkTimeFrame fails if the lock cannot apply the time frame.
func (a *Adapter) checkTimeFrame(n *node, spec adapter.CodeSpec) error {
	switch {
	case spec.StartsAt == nil && spec.EndsAt == nil:
		return nil
	case !n.supportsTimeFrames(a.gateway):
		return adapter.Errorf(adapter.NotSupported,
			"the lock does not support time frames, or the time zone of its clock is not configured")
	case spec.StartsAt == nil || spec.EndsAt == nil:
		return adapter.Errorf(adapter.Invalid, "a time frame needs a start and an end")
	case !spec.EndsAt.After(*spec.StartsAt):
		return adapter.Errorf(adapter.Invalid, "the time frame ends before it starts")
	}
	for _, at := range []time.Time{*spec.StartsAt, *spec.EndsAt} {
		local := at.In(a.zone)
		switch {
		case !at.Truncate(time.Minute).Equal(at):
			return adapter.Errorf(adapter.Invalid,
				"the lock stores whole minutes; a time frame must start and end at second 0")
		case !time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute(), 0, 0, a.zone).Equal(at):
			return adapter.Errorf(adapter.Invalid,
				"the lock's clock shows %s twice that night, when it is set back, and would use the other one; "+
					"choose another time",
				local.Format("15:04"))
		}
	}
	return nil
}

// yearDay is a time frame of the command class: local time, years since 2000.
type yearDay struct {
	StartYear   *int `json:"startYear"`
	StartMonth  int  `json:"startMonth"`
	StartDay    int  `json:"startDay"`
	StartHour   int  `json:"startHour"`
	StartMinute int  `json:"startMinute"`
	StopYear    int  `json:"stopYear"`
	StopMonth   int  `json:"stopMonth"`
	StopDay     int  `json:"stopDay"`
	StopHour    int  `json:"stopHour"`
	StopMinute  int  `json:"stopMinute"`
}

func toYearDay(starts, ends time.Time) yearDay {
	year := starts.Year() - 2000
	return yearDay{
		&year, int(starts.Month()), starts.Day(), starts.Hour(), starts.Minute(),
		ends.Year() - 2000, int(ends.Month()), ends.Day(), ends.Hour(), ends.Minute(),
	}
}

func (y yearDay) times(zone *time.Location) (starts, ends time.Time) {
	starts = time.Date(2000+*y.StartYear, time.Month(y.StartMonth), y.StartDay, y.StartHour, y.StartMinute, 0, 0, zone)
	ends = time.Date(2000+y.StopYear, time.Month(y.StopMonth), y.StopDay, y.StopHour, y.StopMinute, 0, 0, zone)
	return starts.UTC(), ends.UTC()
}

func scheduleSlot(user int) map[string]int { return map[string]int{"userId": user, "slotId": 1} }

// readTimeFrame reads the time frame of an occupied slot from the lock.
func (a *Adapter) readTimeFrame(ctx context.Context, s *session, n *node, e *entry) error {
	if !n.supportsTimeFrames(a.gateway) {
		return nil
	}
	var got struct {
		Response *yearDay `json:"response"`
	}
	if err := a.invoke(ctx, s, n, ccScheduleEntryLock, "getYearDaySchedule", []any{scheduleSlot(e.user)},
		&got); err != nil {
		return err
	}
	if got.Response != nil && got.Response.StartYear != nil {
		starts, ends := got.Response.times(a.zone)
		e.starts, e.ends = &starts, &ends
	}
	return nil
}

// writeTimeFrame writes the time frame of a slot and verifies it.
func (a *Adapter) writeTimeFrame(ctx context.Context, s *session, n *node, slot int, found, wanted entry) error {
	if sameTime(found.starts, wanted.starts) && sameTime(found.ends, wanted.ends) || !n.supportsTimeFrames(a.gateway) {
		return nil
	}
	arguments := []any{scheduleSlot(wanted.user)}
	if wanted.starts != nil {
		arguments = append(arguments, toYearDay(wanted.starts.In(a.zone), wanted.ends.In(a.zone)))
	}
	var got supervised
	if err := a.invoke(ctx, s, n, ccScheduleEntryLock, "setYearDaySchedule", arguments, &got); err != nil {
		a.markUncertain(n, slot)
		return err
	}
	e, occupied, err := a.readSlot(ctx, s, n, slot)
	switch {
	case err != nil:
		return adapter.Errorf(adapter.Unconfirmed, "the time frame could not be read back: %s",
			adapter.AsError(err).Message)
	case got.failed() || !occupied || !sameTime(e.starts, wanted.starts) || !sameTime(e.ends, wanted.ends):
		return adapter.Errorf(adapter.Unconfirmed, "the lock has not accepted the time frame, and gave no reason")
	}
	return nil
}

func sameTime(a, b *time.Time) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Equal(*b)
}
