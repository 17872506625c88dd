package console_test

import (
	"sync/atomic"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// clock is a server's clock that tests move.
type clock struct{ ahead atomic.Int64 }

func newClock() *clock { return &clock{} }

func (c *clock) pass(d time.Duration) { c.ahead.Add(int64(d)) }

func (c *clock) option() apptest.Option {
	return func(o *app.Config) {
		o.Access.Now = func() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }
	}
}

// withFailures limits failed sign-ins per minute, with bursts of twice as many.
func withFailures(n int) apptest.Option {
	return func(o *app.Config) { o.Limits.FailuresPerMinute = n }
}
