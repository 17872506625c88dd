package access

import (
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

const (
	// pollFirst is the shortest interval between reads for a pending write.
	pollFirst = 200 * time.Millisecond
	// pollSoon is the longest interval in the first minutes.
	pollSoon = 5 * time.Second
	// pollLast is the longest interval.
	pollLast = 10 * time.Minute
)

// poll returns when to read next for a pending write, at growing intervals.
func (s *Service) poll(c *dbsqlc.AccessCode, now time.Time) time.Time {
	since := c.WriteAt
	if since == nil {
		since = &now
	}
	return pollAfter(*since, now)
}

// pollAfter returns when to read next for an operation started at since. A start in the future means that the clock was
// stepped back.
func pollAfter(since, now time.Time) time.Time {
	passed := now.Sub(since)
	if passed < 0 {
		return now.Add(pollSoon)
	}
	return now.Add(max(pollFirst, min(passed/2, pollSoon), min(passed/24, pollLast)))
}
