package noise

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

func TestParseWindow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		starts, ends string
		want         Window
		problem      string // the field of the error
	}{
		{starts: "07:00:00", ends: "22:00:00", want: Window{Starts: "07:00:00", Ends: "22:00:00"}},
		{
			starts: "22:00:00[America/Los_Angeles]",
			ends:   "07:00:00[America/Los_Angeles]",
			want:   Window{Starts: "22:00:00", Ends: "07:00:00", Zone: "America/Los_Angeles"},
		},
		{
			starts: "00:00:00[America/Argentina/Buenos_Aires]",
			ends:   "23:59:59[America/Argentina/Buenos_Aires]",
			want:   Window{Starts: "00:00:00", Ends: "23:59:59", Zone: "America/Argentina/Buenos_Aires"},
		},
		{starts: "7:00:00", ends: "22:00:00", problem: "starts_daily_at"},
		{starts: "07:00", ends: "22:00:00", problem: "starts_daily_at"},
		{starts: "24:00:00", ends: "22:00:00", problem: "starts_daily_at"},
		{starts: "07:00:00[UTC]", ends: "22:00:00[UTC]", problem: "starts_daily_at"},
		{starts: "07:00:00[Mars/Base]", ends: "22:00:00[Mars/Base]", problem: "starts_daily_at"},
		{starts: "07:00:00", ends: "22:60:00", problem: "ends_daily_at"},
		{starts: "07:00:00", ends: "22:00:00[Europe/Berlin]", problem: "ends_daily_at"},
		{starts: "07:00:00", ends: "07:00:00", problem: "ends_daily_at"},
		{starts: "07:00:00[../../etc/passwd]", ends: "08:00:00", problem: "starts_daily_at"},
	} {
		w, err := ParseWindow(c.starts, c.ends)
		e, _ := domain.AsError(err)
		switch {
		case c.problem == "" && err != nil:
			t.Errorf("%s to %s: %v", c.starts, c.ends, err)
		case c.problem != "" && (e == nil || e.Field != c.problem || e.Kind != domain.Invalid):
			t.Errorf("%s to %s: %v, want an error of %s", c.starts, c.ends, err, c.problem)
		case w != c.want:
			t.Errorf("%s to %s: %+v", c.starts, c.ends, w)
		case err == nil && (w.StartsAt() != c.starts || w.EndsAt() != c.ends):
			t.Errorf("%s to %s is shown as %s to %s", c.starts, c.ends, w.StartsAt(), w.EndsAt())
		}
	}
	if err := CheckTime("soon"); err == nil {
		t.Error("a time that is none is accepted")
	}
	if err := CheckTime("07:00:00[Europe/Berlin]"); err != nil {
		t.Errorf("a time: %v", err)
	}
}

func TestWindow_Holds(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	night := Window{Starts: "22:00:00", Ends: "07:00:00"}
	for _, c := range []struct {
		name   string
		window Window
		at     string // UTC
		want   bool
	}{
		{"at its start in winter", night, "2026-01-10T21:00:00Z", true},
		{"before its start in winter", night, "2026-01-10T20:59:59Z", false},
		{"at its start in summer", night, "2026-07-10T20:00:00Z", true},
		{"after midnight", night, "2026-01-10T23:30:00Z", true},
		{"at its end", night, "2026-01-10T06:00:00Z", false},
		{"before its end", night, "2026-01-10T05:59:59Z", true},
		{"in the hour that is skipped in spring", night, "2026-03-29T01:30:00Z", true},
		{"in the hour that is repeated in autumn", night, "2026-10-25T01:30:00Z", true},
		{"in a zone of its own", Window{"22:00:00", "07:00:00", "America/New_York"}, "2026-01-10T21:00:00Z", false},
		{"in an unknown zone", Window{"22:00:00", "07:00:00", "Mars/Base"}, "2026-01-10T21:00:00Z", true},
		{"in the last second of the day", Window{"00:00:00", "23:59:59", ""}, "2026-01-10T22:59:59Z", true},
		{"all day", Window{"07:00:00", "07:00:00", ""}, "2026-01-10T12:00:00Z", true},
		{"with a time that is none", Window{"soon", "07:00:00", ""}, "2026-01-10T01:00:00Z", true},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.window.Holds(at, berlin); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestWindow_Overlaps(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		a, b Window
		want bool
	}{
		{"one after the other", Window{"07:00:00", "22:00:00", ""}, Window{"22:00:00", "07:00:00", ""}, false},
		{"one second", Window{"07:00:00", "22:00:01", ""}, Window{"22:00:00", "07:00:00", ""}, true},
		{"both over midnight", Window{"22:00:00", "01:00:00", ""}, Window{"23:00:00", "02:00:00", ""}, true},
		{"one within the other", Window{"00:00:00", "23:59:59", ""}, Window{"03:00:00", "04:00:00", ""}, true},
		{"until the last second", Window{"12:00:00", "23:59:59", ""}, Window{"00:00:00", "12:00:00", ""}, false},
		{
			"in two zones",
			Window{"10:00:00", "11:00:00", "Europe/Berlin"},
			Window{"09:00:00", "10:00:00", "Europe/London"},
			true,
		},
		{
			"in two zones that change on one day",
			Window{"10:00:00", "11:00:00", "Europe/Berlin"},
			Window{"10:00:00", "11:00:00", "Europe/London"},
			false,
		},
		// For some weeks, New York is only 5 hours behind Berlin.
		{
			"in two zones that change on different days",
			Window{"12:00:00", "13:00:00", "Europe/Berlin"},
			Window{"07:00:00", "08:00:00", "America/New_York"},
			true,
		},
		{
			"in the zone of the device",
			Window{"12:00:00", "13:00:00", ""},
			Window{"13:00:00", "14:00:00", "Europe/Berlin"},
			true,
		},
		{
			"on two dates at one moment",
			Window{"01:00:00", "02:00:00", "Asia/Tokyo"},
			Window{"16:00:00", "17:00:00", "Etc/GMT"},
			true,
		},
	} {
		for _, pair := range [][2]Window{{c.a, c.b}, {c.b, c.a}} {
			if got := pair[0].Overlaps(pair[1], now, time.UTC); got != c.want {
				t.Errorf("%s: %v and %v: %t", c.name, pair[0], pair[1], got)
			}
		}
	}
}
