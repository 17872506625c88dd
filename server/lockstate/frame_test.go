package lockstate

import (
	"testing"
	"time"
)

func TestFrame_Apart(t *testing.T) {
	t.Parallel()
	at := func(minute int) *time.Time {
		return new(time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC).Add(time.Duration(minute) * time.Minute))
	}
	frame := func(from, until int) Frame { return Frame{at(from), at(until)} }
	stay := frame(0, 60)
	for name, c := range map[string]struct {
		other Frame
		apart bool
	}{
		"an hour later":                   {frame(120, 180), true},
		"the margin later":                {frame(75, 90), true},
		"a minute less than the margin":   {frame(74, 90), false},
		"immediately after":               {frame(60, 90), false},
		"overlapping":                     {frame(30, 90), false},
		"within":                          {frame(10, 20), false},
		"around":                          {frame(-10, 70), false},
		"equal":                           {stay, false},
		"the margin earlier":              {frame(-30, -15), true},
		"earlier by less than the margin": {frame(-30, -14), false},
		"ongoing":                         {Frame{}, false},
		"later without an end":            {Frame{StartsAt: at(120)}, false},
		"earlier without a start":         {Frame{EndsAt: at(-60)}, false},
		"earlier without an end":          {Frame{StartsAt: at(-60)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := stay.Apart(c.other); got != c.apart {
				t.Errorf("apart: %t, want %t", got, c.apart)
			}
			if got := c.other.Apart(stay); got != c.apart {
				t.Errorf("apart in the other order: %t, want %t", got, c.apart)
			}
		})
	}
}

// Both zones show the same moment, so a vendor's zone must not matter.
func TestFrame_ApartInOtherZones(t *testing.T) {
	t.Parallel()
	end := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	start := end.Add(PINReuseMargin).In(time.FixedZone("", 5*60*60))
	first := Frame{new(end.Add(-time.Hour)), &end}
	if second := (Frame{&start, new(start.Add(time.Hour))}); !first.Apart(second) {
		t.Error("the frames are not apart")
	}
}
