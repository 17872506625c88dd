package access

import (
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

const (
	pollFirst = 200 * time.Millisecond
	pollSoon  = 5 * time.Second // in the first minutes
	pollLast  = 10 * time.Minute
)

// poll is when to read next for a write on its way: soon at first, then less and less often.
func (s *Service) poll(c *dbsqlc.AccessCode, now time.Time) time.Time {
	since := c.WriteAt
	if since == nil {
		since = &now
	}
	return pollAfter(*since, now)
}

// pollAfter is when to look next for what was begun at since. What was begun in the time to come was so before the clock was stepped back.
func pollAfter(since, now time.Time) time.Time {
	passed := now.Sub(since)
	if passed < 0 {
		return now.Add(pollSoon)
	}
	return now.Add(max(pollFirst, min(passed/2, pollSoon), min(passed/24, pollLast)))
}
