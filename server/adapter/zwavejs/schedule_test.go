package zwavejs

import (
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// A time that the lock's clock cannot show would be written, not read back, and written again forever.
func TestUnrepresentableTimesAreRefused(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	a, n := &Adapter{gateway: gateway{zone: berlin}}, &node{}
	n.traits.Store(&traits{commandClasses: map[int]int{ccUserCode: 1, ccScheduleEntryLock: 3}})
	for ends, says := range map[string]string{
		"2026-10-24T12:00:00Z":   "",
		"2026-10-25T01:30:00Z":   "", // the second 02:30
		"2026-10-25T00:30:00Z":   "02:30 twice",
		"2026-10-24T12:00:30Z":   "whole minutes",
		"2026-10-24T12:00:00.5Z": "whole minutes",
	} {
		from, to := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC), parsed(t, ends)
		err := a.checkTimeFrame(n, adapter.CodeSpec{StartsAt: &from, EndsAt: &to})
		if (err == nil) != (says == "") || err != nil &&
			(!strings.Contains(err.Error(), says) || adapter.AsError(err).Class != adapter.Invalid) {
			t.Errorf("%s: %v, want %q", ends, err, says)
		}
		if starts, stops := toYearDay(from.In(berlin), to.In(berlin)).times(berlin); err == nil &&
			(!starts.Equal(from) || !stops.Equal(to)) {
			t.Errorf("%s: the lock shows %s", ends, stops)
		}
	}
}

func parsed(t *testing.T, text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
