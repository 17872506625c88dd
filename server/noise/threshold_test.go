package noise

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

func TestCheckLevel(t *testing.T) {
	t.Parallel()
	aware, minut := capability.NoiseSensor{NRS: true}, capability.NoiseSensor{}
	for _, c := range []struct {
		name          string
		decibels, nrs *float64
		caps          capability.NoiseSensor
		want          string // part of the error; empty: none
	}{
		{"decibels", new(50.0), nil, minut, ""},
		{"a score", nil, new(4.0), aware, ""},
		{"silence", new(0.0), nil, minut, ""},
		{"none", nil, nil, aware, "noise_threshold_decibels or noise_threshold_nrs"},
		{"both", new(50.0), new(4.0), aware, "only one"},
		{"a score for decibels", nil, new(4.0), minut, "Only NoiseAware"},
		{"too loud", new(201.0), nil, minut, "0 to 200"},
		{"negative", new(-1.0), nil, minut, "0 to 200"},
		{"not a number", new(math.NaN()), nil, minut, "0 to 200"},
		{"a high score", nil, new(1001.0), aware, "0 to 1000"},
	} {
		err := CheckLevel(c.decibels, c.nrs, c.caps)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestCheckRoom(t *testing.T) {
	t.Parallel()
	many := func(n int) []*Threshold { return make([]*Threshold, n) }
	for _, c := range []struct {
		name string
		all  []*Threshold
		caps capability.NoiseSensor
		want string
	}{
		{"room", many(3), capability.NoiseSensor{MaxThresholds: 4}, ""},
		{"no known bound", many(99), capability.NoiseSensor{}, ""},
		{"full", many(4), capability.NoiseSensor{MaxThresholds: 4}, "4 thresholds"},
		{"the bound of the server", many(100), capability.NoiseSensor{MaxThresholds: 200}, "100 thresholds"},
		{"fixed", many(1), capability.NoiseSensor{Fixed: true}, "fixed"},
	} {
		err := CheckRoom(c.all, c.caps)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestCheckDisjoint(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	day := &Threshold{ID: uuid.New(), Desired: State{Name: "Day", Window: Window{Starts: "07:00:00", Ends: "22:00:00"}}}
	leaving := &Threshold{
		ID:       uuid.New(),
		Desired:  State{Window: Window{Starts: "22:00:00", Ends: "07:00:00"}},
		Deleting: true,
	}
	all := []*Threshold{leaving, day}
	disjoint := capability.NoiseSensor{Disjoint: true}
	early := Window{Starts: "06:00:00", Ends: "08:00:00"}
	err := CheckDisjoint(all, uuid.New(), early, disjoint, now, time.UTC)
	if err == nil || !strings.Contains(err.Error(), `"Day" holds from 07:00:00 to 22:00:00`) {
		t.Errorf("an overlap: %v", err)
	}
	night := Window{Starts: "23:00:00", Ends: "06:00:00"}
	if err := CheckDisjoint(all, uuid.New(), night, disjoint, now, time.UTC); err != nil {
		t.Errorf("with one that leaves: %v", err)
	}
	if err := CheckDisjoint(all, day.ID, early, disjoint, now, time.UTC); err != nil {
		t.Errorf("with itself: %v", err)
	}
	if err := CheckDisjoint(all, uuid.New(), early, capability.NoiseSensor{}, now, time.UTC); err != nil {
		t.Errorf("on another device: %v", err)
	}
}

func TestState_Shows(t *testing.T) {
	t.Parallel()
	window := Window{Starts: "22:00:00", Ends: "07:00:00"}
	zoned := Window{Starts: "22:00:00", Ends: "07:00:00", Zone: "Europe/Berlin"}
	desired := State{Name: "Night", Window: window, Decibels: 50}
	scored := State{Name: "Night", Window: window, NRS: new(4.0)}
	for _, c := range []struct {
		name           string
		desired, found State
		want           bool
	}{
		{"the same", desired, desired, true},
		{"rounded", desired, State{Name: "Night", Window: window, Decibels: 50.4}, true},
		{"louder", desired, State{Name: "Night", Window: window, Decibels: 51}, false},
		{"without a name", desired, State{Window: window, Decibels: 50}, true},
		{"another name", desired, State{Name: "Day", Window: window, Decibels: 50}, false},
		{"the zone of the device", desired, State{Name: "Night", Window: zoned, Decibels: 50}, true},
		{"another zone", State{Name: "Night", Window: zoned, Decibels: 50}, desired, false},
		{"another end", desired, State{Name: "Night", Window: Window{Starts: "22:00:00", Ends: "08:00:00"}, Decibels: 50}, false},
		{"the score", scored, State{Name: "Night", Window: window, Decibels: 55, NRS: new(4.0)}, true},
		{"another score", scored, State{Name: "Night", Window: window, Decibels: 55, NRS: new(5.0)}, false},
		{"no score", scored, State{Name: "Night", Window: window, Decibels: 55}, false},
	} {
		if got := c.desired.shows(c.found); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}
