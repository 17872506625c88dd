package recurring_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/recurring"
)

// A problem that occurs each minute for two days is logged a few times, and again after it has ended.
func TestProblems_GrowingPauses(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	p := recurring.Problems{Now: func() time.Time { return now }}
	var logged []time.Duration
	for at := time.Duration(0); at <= 48*time.Hour; at += time.Minute {
		now = time.Unix(0, 0).Add(at)
		if o := p.Occurred("a"); o.Due {
			logged = append(logged, at)
			if o.Lasting != at {
				t.Errorf("it has lasted for %s, want %s", o.Lasting, at)
			}
		}
	}
	minutes := []time.Duration{0, 1, 5, 21, 85, 341, 1365, 2805}
	for i := range minutes {
		minutes[i] *= time.Minute
	}
	if !slices.Equal(logged, minutes) {
		t.Errorf("logged after %v, want %v", logged, minutes)
	}
	if o := p.Occurred("b"); !o.Due || o.Omitted != 0 {
		t.Errorf("another problem: %+v", o)
	}
	if lasted, said := p.Ended("a"); !said || lasted != 48*time.Hour {
		t.Errorf("it ended after %s, logged: %t", lasted, said)
	}
	if _, said := p.Ended("a"); said {
		t.Error("it ended twice")
	}
	if !p.Occurred("a").Due {
		t.Error("it is not logged when it begins again")
	}
	now = now.Add(recurring.MaxPause + time.Second)
	if o := p.Occurred("a"); !o.Due || o.Lasting != 0 {
		t.Errorf("an old problem goes on: %+v", o)
	}
}

func TestProblems_ToleratesAFew(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	p := recurring.Problems{Now: func() time.Time { return now }}
	for i := range 3 {
		if p.OccurredAfter("a", 3).Due {
			t.Errorf("occurrence %d is logged", i+1)
		}
	}
	if o := p.OccurredAfter("a", 3); !o.Due || o.Omitted != 3 {
		t.Errorf("the fourth: %+v", o)
	}
	if p.OccurredAfter("a", 3).Due {
		t.Error("the fifth is logged within a minute")
	}
	p.OccurredAfter("b", 3)
	if _, said := p.Ended("b"); said {
		t.Error("the end of a problem that was not logged is")
	}
}

func TestProblems_Bounded(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	p := recurring.Problems{Now: func() time.Time { return now }}
	due := 0
	for i := range recurring.MaxProblems + 10 {
		if p.Occurred(fmt.Sprint(i)).Due {
			due++
		}
	}
	if due != recurring.MaxProblems {
		t.Errorf("%d were logged", due)
	}
	now = now.Add(recurring.MaxPause + time.Second)
	if !p.Occurred("another").Due {
		t.Error("old problems are not forgotten")
	}
}
