package lockstate

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

func TestNextAction(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	in := func(d time.Duration) *time.Time { at := now.Add(d); return &at }
	ref := "r"
	native := capability.Set{NativeSchedule: true}
	managed := func(f func(*Code)) *Code {
		c := &Code{Managed: true, DesiredGen: 1, PreferNativeScheduling: true}
		f(c)
		return c
	}
	listed := capability.Set{ListCodes: true}
	inDoubt := func(asked int, next *time.Time) *Code {
		return managed(func(c *Code) {
			c.RemovingSince, c.WriteGen, c.WriteAt, c.Attempts, c.NextAttemptAt = in(0), 1, in(0), asked, next
		})
	}
	for _, c := range []struct {
		name string
		code *Code
		caps capability.Set
		want Action
		due  *time.Time
	}{
		{"new", managed(func(*Code) {}), capability.Set{}, Put, nil},
		{
			"applied",
			managed(func(c *Code) { c.AppliedGen, c.Ref = 1, ref }),
			capability.Set{},
			Nothing,
			nil,
		},
		{
			"changed since",
			managed(func(c *Code) { c.DesiredGen, c.AppliedGen, c.Ref = 2, 1, ref }),
			capability.Set{},
			Put,
			nil,
		},
		{"refused", managed(func(c *Code) { c.BlockedGen = 1 }), capability.Set{}, Nothing, nil},
		{
			"changed since refused",
			managed(func(c *Code) { c.DesiredGen, c.BlockedGen = 2, 1 }),
			capability.Set{},
			Put,
			nil,
		},
		{
			"accepted",
			managed(func(c *Code) { c.WriteGen, c.WriteAt, c.WriteAccepted = 1, in(-time.Second), true }),
			capability.Set{},
			Await,
			in(500 * time.Millisecond),
		},
		{
			"sent, uncertain",
			managed(func(c *Code) { c.WriteGen, c.WriteAt = 1, in(-time.Second) }),
			capability.Set{},
			Put,
			nil,
		},
		{
			"paused",
			managed(func(c *Code) { c.NextAttemptAt = in(time.Minute) }),
			capability.Set{},
			Nothing,
			in(time.Minute),
		},
		{
			"pause over",
			managed(func(c *Code) { c.NextAttemptAt = in(-time.Minute) }),
			capability.Set{},
			Put,
			nil,
		},
		{
			"far ahead",
			managed(func(c *Code) { c.StartsAt, c.EndsAt = in(100*time.Hour), in(101*time.Hour) }),
			capability.Set{},
			Nothing,
			in(99 * time.Hour),
		},
		{
			"far ahead, native",
			managed(func(c *Code) { c.StartsAt, c.EndsAt = in(100*time.Hour), in(101*time.Hour) }),
			native,
			Nothing,
			in(28 * time.Hour),
		},
		{
			"an hour ahead",
			managed(func(c *Code) { c.StartsAt, c.EndsAt = in(time.Hour), in(2*time.Hour) }),
			capability.Set{},
			Put,
			nil,
		},
		{
			"three days ahead, native",
			managed(func(c *Code) { c.StartsAt, c.EndsAt = in(72*time.Hour), in(73*time.Hour) }),
			native,
			Put,
			nil,
		},
		{"three days ahead, native not wanted", managed(func(c *Code) {
			c.StartsAt, c.EndsAt, c.PreferNativeScheduling = in(72*time.Hour), in(73*time.Hour), false
		}), native, Nothing, in(71 * time.Hour)},
		{
			"scheduled on the device",
			managed(
				func(c *Code) { c.AppliedGen, c.StartsAt, c.EndsAt = 1, in(time.Hour), in(2*time.Hour) },
			),
			native,
			Nothing,
			in(time.Hour),
		},
		{
			"open until",
			managed(
				func(c *Code) { c.AppliedGen, c.StartsAt, c.EndsAt = 1, in(-time.Hour), in(time.Hour) },
			),
			native,
			Nothing,
			in(time.Hour),
		},
		{
			"removing",
			managed(func(c *Code) { c.RemovingSince, c.Ref = in(0), ref }),
			capability.Set{},
			Delete,
			nil,
		},
		{"removing, accepted", managed(func(c *Code) {
			c.RemovingSince, c.Ref, c.WriteAccepted, c.WriteAt = in(0), ref, true, in(-20*time.Second)
		}), capability.Set{}, Await, in(5 * time.Second)},
		{"removing, paused", managed(func(c *Code) {
			c.RemovingSince, c.Ref, c.NextAttemptAt = in(0), ref, in(time.Second)
		}), capability.Set{}, Nothing, in(time.Second)},
		{"removing what may be on its way", inDoubt(0, nil), listed, Await, in(200 * time.Millisecond)},
		{"removing what may be on its way, unlisted", inDoubt(0, nil), capability.Set{}, Find, nil},
		{"removing what was just not found", inDoubt(1, in(time.Second)), capability.Set{}, Nothing, in(time.Second)},
		{
			"removing what was repeatedly not found",
			inDoubt(maxFindAttempts, in(time.Second)),
			capability.Set{},
			Await,
			in(200 * time.Millisecond),
		},
		{"unmanaged", &Code{DesiredGen: 1, Ref: ref}, capability.Set{}, Nothing, nil},
		{
			"unmanaged, removing",
			&Code{DesiredGen: 1, Ref: ref, RemovingSince: in(0)},
			capability.Set{},
			Delete,
			nil,
		},
	} {
		l := &Lock{Device: Device{Capabilities: c.caps}, Now: now}
		got, due := l.next(c.code, c.code.RemovingSince != nil)
		if got != c.want || !sameTime(due, c.due) {
			t.Errorf("%s: %q until %v, expected %q until %v", c.name, got, due, c.want, c.due)
		}
	}
}
