package recurring

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// A problem that occurs each minute for two days is logged a few times, and again after it has ended.
func TestProblems_GrowingPauses(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	p := Problems{Now: func() time.Time { return now }}
	var logged []float64
	for at := time.Duration(0); at <= 48*time.Hour; at += time.Minute {
		now = time.Unix(0, 0).Add(at)
		if o := p.occurred("a", 0); o.due {
			logged = append(logged, at.Minutes())
			if o.lasting != at {
				t.Errorf("it has lasted for %s, want %s", o.lasting, at)
			}
		}
	}
	if minutes := []float64{0, 1, 5, 21, 85, 341, 1365, 2805}; !slices.Equal(logged, minutes) {
		t.Errorf("logged after %v minutes, want %v", logged, minutes)
	}
	if o := p.occurred("b", 0); !o.due || o.omitted != 0 {
		t.Errorf("another problem: %+v", o)
	}
	if lasted, said := p.ended("a"); !said || lasted != 48*time.Hour {
		t.Errorf("it ended after %s, logged: %t", lasted, said)
	}
	if _, said := p.ended("a"); said {
		t.Error("it ended twice")
	}
	if !p.occurred("a", 0).due {
		t.Error("it is not logged when it begins again")
	}
	now = now.Add(MaxPause + time.Second)
	if o := p.occurred("a", 0); !o.due || o.lasting != 0 {
		t.Errorf("an old problem goes on: %+v", o)
	}
}

func TestProblems_ToleratesAFew(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	p := Problems{Now: func() time.Time { return now }}
	for i := range 3 {
		if p.occurred("a", 3).due {
			t.Errorf("occurrence %d is logged", i+1)
		}
	}
	if o := p.occurred("a", 3); !o.due || o.omitted != 3 {
		t.Errorf("the fourth: %+v", o)
	}
	if p.occurred("a", 3).due {
		t.Error("the fifth is logged within a minute")
	}
	p.occurred("b", 3)
	if _, said := p.ended("b"); said {
		t.Error("the end of a problem that was not logged is")
	}
}

func TestProblems_Bounded(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	p := Problems{Now: func() time.Time { return now }}
	due := 0
	for i := range MaxProblems + 10 {
		if p.occurred(fmt.Sprint(i), 0).due {
			due++
		}
	}
	if due != MaxProblems {
		t.Errorf("%d were logged", due)
	}
	now = now.Add(MaxPause + time.Second)
	if !p.occurred("another", 0).due {
		t.Error("old problems are not forgotten")
	}
}
