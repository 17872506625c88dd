package device

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

func TestPINsObeyTheDevice(t *testing.T) {
	t.Parallel()
	constraint := func(kinds ...string) (c capability.Set) {
		for _, k := range kinds {
			c.Constraints = append(c.Constraints, capability.Constraint{Type: k})
		}
		return c
	}
	for _, c := range []struct {
		name, pin string
		caps      capability.Set
		ok        bool
	}{
		{"four digits", "1234", capability.Set{}, true},
		{"twelve digits", "123456789012", capability.Set{}, true},
		{"three digits", "123", capability.Set{}, false},
		{"thirteen digits", "1234567890123", capability.Set{}, false},
		{"letters", "12a4", capability.Set{}, false},
		{"other digits", "１２３４", capability.Set{}, false},
		{"supported length", "123456", capability.Set{CodeLengths: []int{4, 6}}, true},
		{"unsupported length", "12345", capability.Set{CodeLengths: []int{4, 6}}, false},
		{"zero", "1204", constraint("no_zeros"), false},
		{"no zero", "1234", constraint("no_zeros"), true},
		{"begins with 12", "1294", constraint("cannot_start_with_12"), false},
		{"12 later", "9124", constraint("cannot_start_with_12"), true},
		{"triple", "1222", constraint("no_triple_consecutive_ints"), false},
		{"double", "1223", constraint("no_triple_consecutive_ints"), true},
		{"ascending", "3456", constraint("no_ascending_or_descending_sequence"), false},
		{"descending", "6543", constraint("no_ascending_or_descending_sequence"), false},
		{"partly ascending", "3459", constraint("no_ascending_or_descending_sequence"), true},
		{"two different", "1212", constraint("at_least_three_unique_digits"), false},
		{"three different", "1213", constraint("at_least_three_unique_digits"), true},
		{"all the same", "7777", constraint("no_all_same_digits"), false},
		{"089", "1238", constraint("cannot_contain_089"), false},
		{"0789", "1237", constraint("cannot_contain_0789"), false},
		{"unknown constraint", "1237", constraint("invented_tomorrow"), true},
		{"all constraints count", "1023", constraint("cannot_start_with_12", "no_zeros"), false},
	} {
		err := checkPIN(c.pin, c.caps)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.name == "0789" && !strings.Contains(err.Error(), "A PIN on this device must not contain 0, 7, 8 or 9") {
			t.Errorf("the message does not state the rule: %v", err)
		}
		if err != nil && strings.Contains(err.Error(), c.pin) {
			t.Errorf("%s: the message shows the PIN", c.name)
		}
	}
}

func TestTimeFrames(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, starts, ends string
		field              string // of the error; empty: none
	}{
		{"none", "", "", ""},
		{"zones count", "2026-11-21T13:00:00Z", "2026-11-21T14:00:00+02:00", "ends_at"},
		{"begun already", "2026-11-20T13:00:00Z", "2026-11-22T14:00:00+02:00", ""},
		{"fractions", "2026-11-21T13:00:00.123Z", "2026-11-21T14:00:00.5Z", ""},
		{"no seconds", "2026-11-21T13:00Z", "2026-11-21T14:00Z", ""},
		{"no zone is UTC", "2026-11-21T13:00:00", "2026-11-21T14:00:00", ""},
		{"no end", "2026-11-21T13:00:00Z", "", "ends_at"},
		{"no start", "", "2026-11-21T13:00:00Z", "starts_at"},
		{"no time", "tomorrow", "2026-11-21T13:00:00Z", "starts_at"},
		{"ends before it starts", "2026-11-22T13:00:00Z", "2026-11-22T12:00:00Z", "ends_at"},
		{"ends as it starts", "2026-11-22T13:00:00Z", "2026-11-22T13:00:00Z", "ends_at"},
		{"over", "2026-11-20T13:00:00Z", "2026-11-21T11:59:59Z", "ends_at"},
	} {
		_, _, err := parseTimeFrame(c.starts, c.ends, now)
		e, _ := errors.AsType[*domain.Error](err)
		switch {
		case c.field == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.field != "" && (e == nil || e.Field != c.field):
			t.Errorf("%s: %v, expected an error on %s", c.name, err, c.field)
		}
	}
}

func TestNextAction(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	in := func(d time.Duration) *time.Time { at := now.Add(d); return &at }
	ref := "r"
	native := capability.Set{NativeSchedule: true}
	s := &Service{opt: Options{ConfirmTimeout: time.Minute}}
	managed := func(f func(*dbsqlc.AccessCode)) *dbsqlc.AccessCode {
		c := &dbsqlc.AccessCode{IsManaged: true, DesiredGen: 1, PreferNativeScheduling: true}
		f(c)
		return c
	}
	listed := capability.Set{ListCodes: true}
	inDoubt := func(asked int32, next *time.Time) *dbsqlc.AccessCode {
		return managed(func(c *dbsqlc.AccessCode) {
			c.RemovingSince, c.WriteGen, c.WriteAt, c.Attempts, c.NextAttemptAt = in(0), 1, in(0), asked, next
		})
	}
	for _, c := range []struct {
		name string
		code *dbsqlc.AccessCode
		caps capability.Set
		want Action
		due  *time.Time
	}{
		{"new", managed(func(*dbsqlc.AccessCode) {}), capability.Set{}, Put, nil},
		{
			"applied",
			managed(func(c *dbsqlc.AccessCode) { c.AppliedGen, c.VendorRef = 1, &ref }),
			capability.Set{},
			Nothing,
			nil,
		},
		{
			"changed since",
			managed(func(c *dbsqlc.AccessCode) { c.DesiredGen, c.AppliedGen, c.VendorRef = 2, 1, &ref }),
			capability.Set{},
			Put,
			nil,
		},
		{"refused", managed(func(c *dbsqlc.AccessCode) { c.BlockedGen = 1 }), capability.Set{}, Nothing, nil},
		{
			"changed since refused",
			managed(func(c *dbsqlc.AccessCode) { c.DesiredGen, c.BlockedGen = 2, 1 }),
			capability.Set{},
			Put,
			nil,
		},
		{
			"accepted",
			managed(func(c *dbsqlc.AccessCode) { c.WriteGen, c.WriteAt, c.WriteAccepted = 1, in(-time.Second), true }),
			capability.Set{},
			Await,
			in(500 * time.Millisecond),
		},
		{
			"sent, uncertain",
			managed(func(c *dbsqlc.AccessCode) { c.WriteGen, c.WriteAt = 1, in(-time.Second) }),
			capability.Set{},
			Put,
			nil,
		},
		{
			"paused",
			managed(func(c *dbsqlc.AccessCode) { c.NextAttemptAt = in(time.Minute) }),
			capability.Set{},
			Nothing,
			in(time.Minute),
		},
		{
			"pause over",
			managed(func(c *dbsqlc.AccessCode) { c.NextAttemptAt = in(-time.Minute) }),
			capability.Set{},
			Put,
			nil,
		},
		{
			"far ahead",
			managed(func(c *dbsqlc.AccessCode) { c.StartsAt, c.EndsAt = in(100*time.Hour), in(101*time.Hour) }),
			capability.Set{},
			Nothing,
			in(99 * time.Hour),
		},
		{
			"far ahead, native",
			managed(func(c *dbsqlc.AccessCode) { c.StartsAt, c.EndsAt = in(100*time.Hour), in(101*time.Hour) }),
			native,
			Nothing,
			in(28 * time.Hour),
		},
		{
			"an hour ahead",
			managed(func(c *dbsqlc.AccessCode) { c.StartsAt, c.EndsAt = in(time.Hour), in(2*time.Hour) }),
			capability.Set{},
			Put,
			nil,
		},
		{
			"three days ahead, native",
			managed(func(c *dbsqlc.AccessCode) { c.StartsAt, c.EndsAt = in(72*time.Hour), in(73*time.Hour) }),
			native,
			Put,
			nil,
		},
		{"three days ahead, native not wanted", managed(func(c *dbsqlc.AccessCode) {
			c.StartsAt, c.EndsAt, c.PreferNativeScheduling = in(72*time.Hour), in(73*time.Hour), false
		}), native, Nothing, in(71 * time.Hour)},
		{
			"scheduled on the device",
			managed(
				func(c *dbsqlc.AccessCode) { c.AppliedGen, c.StartsAt, c.EndsAt = 1, in(time.Hour), in(2*time.Hour) },
			),
			native,
			Nothing,
			in(time.Hour),
		},
		{
			"open until",
			managed(
				func(c *dbsqlc.AccessCode) { c.AppliedGen, c.StartsAt, c.EndsAt = 1, in(-time.Hour), in(time.Hour) },
			),
			native,
			Nothing,
			in(time.Hour),
		},
		{
			"removing",
			managed(func(c *dbsqlc.AccessCode) { c.RemovingSince, c.VendorRef = in(0), &ref }),
			capability.Set{},
			Delete,
			nil,
		},
		{"removing, accepted", managed(func(c *dbsqlc.AccessCode) {
			c.RemovingSince, c.VendorRef, c.WriteAccepted, c.WriteAt = in(0), &ref, true, in(-20*time.Second)
		}), capability.Set{}, Await, in(5 * time.Second)},
		{"removing, paused", managed(func(c *dbsqlc.AccessCode) {
			c.RemovingSince, c.VendorRef, c.NextAttemptAt = in(0), &ref, in(time.Second)
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
		{"unmanaged", &dbsqlc.AccessCode{DesiredGen: 1, VendorRef: &ref}, capability.Set{}, Nothing, nil},
		{
			"unmanaged, removing",
			&dbsqlc.AccessCode{DesiredGen: 1, VendorRef: &ref, RemovingSince: in(0)},
			capability.Set{},
			Delete,
			nil,
		},
	} {
		got, due := s.next(c.code, c.caps, c.code.RemovingSince != nil, now)
		if got != c.want || !sameTime(due, c.due) {
			t.Errorf("%s: %q until %v, expected %q until %v", c.name, got, due, c.want, c.due)
		}
	}
}
