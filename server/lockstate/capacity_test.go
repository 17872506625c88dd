package lockstate

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// A lock has room for a code if it is never full during the code's occupancy.
func TestRoomDependsOnOccupancy(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 6, 1, 12, 0, 0, 0, time.UTC)
	in := func(hours int) *time.Time { return new(now.Add(time.Duration(hours) * time.Hour)) }
	managed := func(from, until *time.Time) Occupant {
		return Occupant{
			ID:       uuid.New(),
			Managed:  true,
			StartsAt: from,
			EndsAt:   until,
		}
	}
	var (
		there  = func(r Occupant) Occupant { r.OnDevice = true; return r }
		native = func(r Occupant) Occupant {
			r.PreferNativeScheduling = true
			return r
		}
		issued  = func(r Occupant) Occupant { r.Offline = true; return r }
		foreign = func(r Occupant) Occupant {
			r.Managed, r.OnDevice = false, true
			return r
		}
		leaving = func(r Occupant) Occupant { r.Removing = true; return r }
		spare   = func(r Occupant) Occupant { r.InPool = true; return r }
	)
	ongoing := managed(nil, nil)
	type rows = []Occupant
	for _, c := range []struct {
		name   string
		caps   capability.Set // of a lock that holds two
		taken  rows
		code   Occupant
		fullAt *time.Time // nil: there is room
	}{
		{"nothing is there", capability.Set{}, nil, ongoing, nil},
		{"one place is left", capability.Set{}, rows{ongoing}, ongoing, nil},
		{"none is left", capability.Set{}, rows{ongoing, ongoing}, ongoing, in(0)},
		{"others leave", capability.Set{}, rows{ongoing, leaving(ongoing)}, ongoing, nil},
		{"a pool does not count", capability.Set{}, rows{ongoing, spare(ongoing)}, ongoing, nil},
		{
			"stays one after the other",
			capability.Set{},
			rows{managed(in(100), in(120)), managed(in(100), in(120)), managed(in(130), in(150))},
			managed(in(160), in(170)),
			nil,
		},
		{
			"a stay before others",
			capability.Set{},
			rows{managed(in(100), in(120)), managed(in(100), in(120))},
			managed(in(50), in(99)),
			nil,
		},
		{
			"a stay that ends while others are put",
			capability.Set{},
			rows{managed(in(100), in(120)), managed(in(100), in(120))},
			managed(in(50), in(100)),
			in(99),
		},
		{
			"a stay that is put while others are there",
			capability.Set{},
			rows{managed(in(100), in(120)), managed(in(100), in(120))},
			managed(in(120), in(130)),
			in(119),
		},
		{
			"a stay that is put when others leave",
			capability.Set{},
			rows{managed(in(100), in(120)), managed(in(100), in(120))},
			managed(in(121), in(130)),
			nil,
		},
		{
			"others that never overlap",
			capability.Set{},
			rows{managed(in(100), in(120)), managed(in(130), in(150))},
			managed(in(90), in(160)),
			nil,
		},
		{
			"others that overlap",
			capability.Set{},
			rows{managed(in(100), in(120)), managed(in(110), in(150))},
			managed(in(90), in(160)),
			in(109),
		},
		{
			"an ongoing one before a full stay",
			capability.Set{},
			rows{managed(in(100), in(120)), managed(in(100), in(120))},
			ongoing,
			in(99),
		},
		{
			"a stay with ongoing ones",
			capability.Set{},
			rows{ongoing, foreign(managed(nil, nil))},
			managed(in(100), in(120)),
			in(99),
		},
		{
			"an unmanaged code stays, whatever its time frame",
			capability.Set{},
			rows{ongoing, foreign(managed(in(1), in(2)))},
			managed(in(100), in(120)),
			in(99),
		},
		{
			"a lock that keeps time frames has them three days ahead",
			capability.Set{NativeSchedule: true},
			rows{
				native(managed(in(200), in(220))),
				native(managed(in(200), in(220))),
			},
			native(managed(in(100), in(130))), in(128),
		},
		{
			"and may have one already that was moved",
			capability.Set{NativeSchedule: true},
			rows{ongoing, there(native(managed(in(900), in(920))))},
			managed(in(100), in(130)),
			in(99),
		},
		{
			"another one takes it off until then",
			capability.Set{},
			rows{ongoing, there(managed(in(900), in(920)))},
			managed(in(100), in(130)),
			nil,
		},
		{
			"offline codes count from the day they are made",
			capability.Set{},
			rows{issued(managed(in(900), in(920))), issued(managed(in(900), in(920)))},
			managed(in(100), in(130)),
			in(99),
		},
		{
			"until they end",
			capability.Set{},
			rows{issued(managed(in(90), in(92))), issued(managed(in(90), in(92)))},
			managed(in(100), in(130)),
			nil,
		},
		{
			"an offline code with future ones",
			capability.Set{},
			rows{managed(in(100), in(120)), managed(in(100), in(120))},
			issued(managed(in(90), in(101))),
			in(99),
		},
	} {
		c.caps.MaxCodes, c.code.ID = 2, uuid.New()
		err := CheckRoom(c.caps, c.taken, c.code, now)
		e, _ := errors.AsType[*domain.Error](err)
		switch {
		case c.fullAt == nil && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.fullAt == nil:
		case e == nil || e.Type != domain.ErrNoSpace:
			t.Errorf("%s: %v, but it is full at %v", c.name, err, c.fullAt)
		case c.fullAt.After(now) != strings.Contains(e.Message, c.fullAt.Format(time.RFC3339)):
			t.Errorf("%s: %v, but it is full at %v", c.name, err, c.fullAt)
		}
		c.caps.MaxCodes = 0
		if err := CheckRoom(c.caps, c.taken, c.code, now); err != nil {
			t.Errorf("%s, on a lock with an unknown capacity: %v", c.name, err)
		}
	}
}

// A code keeps its own time on a full lock, but cannot move to a time at which the lock is full.
func TestRoomForAnotherTimeFrame(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 6, 1, 12, 0, 0, 0, time.UTC)
	in := func(hours int) *time.Time { return new(now.Add(time.Duration(hours) * time.Hour)) }
	code := func(from, until *time.Time) Occupant {
		return Occupant{
			ID:       uuid.UUID{1},
			Managed:  true,
			StartsAt: from,
			EndsAt:   until,
		}
	}
	full := []Occupant{
		{ID: uuid.UUID{1}, Managed: true},
		{
			ID:       uuid.UUID{2},
			Managed:  true,
			StartsAt: in(100),
			EndsAt:   in(200),
		},
		{
			ID:       uuid.UUID{3},
			Managed:  true,
			StartsAt: in(100),
			EndsAt:   in(200),
		},
	}
	for _, c := range []struct {
		name          string
		before, after Occupant
		room          bool
	}{
		{"begins earlier", code(in(110), in(150)), code(in(100), in(150)), false},
		{"begins when there is room", code(in(150), in(190)), code(in(50), in(190)), false},
		{"ends later", code(in(110), in(150)), code(in(110), in(160)), false},
		{"ends never", code(in(110), in(150)), code(nil, nil), false},
		{"is shorter", code(in(110), in(150)), code(in(120), in(140)), true},
		{"is before", code(in(110), in(150)), code(in(10), in(90)), true},
		{"is afterwards", code(in(110), in(150)), code(in(210), in(290)), true},
		{"goes on afterwards", code(in(110), in(200)), code(in(110), in(290)), true},
		{"comes into the full time", code(in(10), in(90)), code(in(10), in(120)), false},
		{"is bound by time", code(nil, nil), code(in(110), in(150)), true},
	} {
		if err := checkMoreRoom(capability.Set{MaxCodes: 2}, full, c.before, c.after, now); (err == nil) != c.room {
			t.Errorf("a code that %s: %v", c.name, err)
		}
	}
}
