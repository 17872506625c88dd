package reconcile

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

// An outage that another server saw end does not count toward a new one days later.
func TestOutages_OldOneDoesNotCount(t *testing.T) {
	t.Parallel()
	var o outages
	account, now := uuid.New(), time.Now()
	for _, step := range []struct{ after, lasts time.Duration }{
		{0, 0}, {10 * time.Second, 10 * time.Second}, {time.Minute, 70 * time.Second}, {72 * time.Hour, 0}, {5 * time.Second, 5 * time.Second},
	} {
		now = now.Add(step.after)
		if got := o.markDown(account, now, 2*time.Minute); got != step.lasts {
			t.Errorf("%s later: lasts %s, want %s", step.after, got, step.lasts)
		}
	}
	o.markUp(account)
	if got := o.markDown(account, now, 2*time.Minute); got != 0 {
		t.Errorf("after a success: lasts %s", got)
	}
}
