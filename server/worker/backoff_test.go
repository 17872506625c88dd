package worker

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestBackoff_GrowsToMaximumAndEndsWithSuccess(t *testing.T) {
	t.Parallel()
	now := time.Now()
	p := newBackoffs(2*time.Second, func() time.Time { return now })
	w := wakeUp{"lane", uuid.New()}
	for i, seconds := range []int{2, 4, 8, 16, 32, 60, 60, 60} {
		mean := time.Duration(seconds) * time.Second
		d := p.failed(w)
		if d < mean/2 || d > mean*3/2 {
			t.Errorf("backoff %d is %v, want about %v", i, d, mean)
		}
		if now = now.Add(d - 1); !p.active(w) {
			t.Errorf("backoff %d ends early", i)
		}
		if now = now.Add(1); p.active(w) {
			t.Errorf("backoff %d does not end", i)
		}
	}
	if p.count("lane") != 1 || p.count("other") != 0 {
		t.Error("wrong count of failing keys")
	}
	p.succeeded(w)
	if d := p.failed(w); d > 3*time.Second {
		t.Errorf("the first backoff after a success is %v", d)
	}
	p.resetLane("lane")
	if p.active(w) || p.count("lane") != 0 {
		t.Error("the backoffs of the lane have not ended")
	}
}
