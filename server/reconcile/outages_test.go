package reconcile

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

// A gateway that was away for a moment days ago, and has answered another server since, is away for a moment only when it is
// again.
func TestOutageOfDaysAgoIsAnother(t *testing.T) {
	t.Parallel()
	var o outages
	account, now := uuid.New(), time.Now()
	for _, step := range []struct{ after, lasts time.Duration }{
		{0, 0}, {10 * time.Second, 10 * time.Second}, {time.Minute, 70 * time.Second}, {72 * time.Hour, 0}, {5 * time.Second, 5 * time.Second},
	} {
		now = now.Add(step.after)
		if got := o.lasts(account, now, 2*time.Minute); got != step.lasts {
			t.Errorf("%s later it lasts %s, want %s", step.after, got, step.lasts)
		}
	}
	o.over(account)
	if got := o.lasts(account, now, 2*time.Minute); got != 0 {
		t.Errorf("after an answer it lasts %s", got)
	}
}
