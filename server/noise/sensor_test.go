package noise

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
)

// bed is a sensor with a simulated device.
type bed struct {
	*Sensor
	device []Found
}

func newBed(found ...Found) *bed {
	b := &bed{
		device: found,
		Sensor: &Sensor{
			Now:            time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC),
			ConfirmTimeout: time.Minute,
			NewID:          uuid.New,
		},
	}
	b.read()
	return b
}

// read observes the device in a new transaction.
func (b *bed) read() {
	b.removed, b.refused = nil, nil
	b.Observe(b.device)
}

func (b *bed) add(name string) *Threshold {
	t := &Threshold{ID: uuid.New()}
	t.Request(stateOf(name, 50), false)
	b.Thresholds = append(b.Thresholds, t)
	return t
}

func (b *bed) ops(t *testing.T, n int) []Operation {
	t.Helper()
	ops, _ := b.Plan()
	if len(ops) != n {
		t.Fatalf("operations %+v, want %d", ops, n)
	}
	return ops
}

func stateOf(name string, level float64) State {
	return State{Name: name, Window: Window{Starts: "22:00:00", Ends: "07:00:00"}, Decibels: level}
}

func onDevice(ref, name string, level float64) Found {
	return Found{
		Ref:         ref,
		Name:        name,
		StartsDaily: "22:00:00",
		EndsDaily:   "07:00:00",
		Decibels:    level,
	}
}

func TestSensor_ShowsWhatItFinds(t *testing.T) {
	t.Parallel()
	b := newBed(onDevice("a", "Vendor", 60), onDevice("a", "Twice", 60), Found{Name: "no reference"})
	if len(b.Thresholds) != 1 || b.Thresholds[0].Desired.Name != "Vendor" || b.Thresholds[0].Managed {
		t.Fatalf("thresholds %+v", b.Thresholds)
	}
	vendors := b.Thresholds[0]
	b.device[0].Decibels = 65
	b.read()
	if vendors.Desired.Decibels != 65 {
		t.Errorf("a change at the device: %+v", vendors)
	}
	b.ops(t, 0)
	b.device = nil
	b.read()
	if len(b.Thresholds) != 0 || !slices.Equal(b.Removed(), []uuid.UUID{vendors.ID}) {
		t.Errorf("a deletion at the device: %+v", b.Thresholds)
	}
	for i := range MaxThresholds + 1 {
		b.device = append(b.device, onDevice(string(rune('a'+i)), "Many", 60))
	}
	b.read()
	if len(b.Thresholds) != MaxThresholds {
		t.Errorf("%d thresholds", len(b.Thresholds))
	}
}

func TestSensor_CreatesUpdatesAndDeletes(t *testing.T) {
	t.Parallel()
	b := newBed()
	night := b.add("Night")
	op := b.ops(t, 1)[0]
	if op.Delete || op.Ref != "" || !op.State.equal(night.Desired) {
		t.Fatalf("operation %+v", op)
	}
	b.Record(op, Outcome{Ref: "n"})
	b.read() // it does not show yet
	if ops, due := b.Plan(); len(ops) > 0 || due == nil || !due.After(b.Now) || night.Ref != "n" {
		t.Fatalf("operations %v, due %v, %+v", ops, due, night)
	}
	b.device = []Found{onDevice("n", "Night", 50)}
	b.read()
	b.ops(t, 0)
	if ends := b.Ends([]Attempt{{ID: uuid.New(), Threshold: night.ID}}); len(ends) != 1 || ends[0].ErrorType != "" {
		t.Errorf("ends %+v", ends)
	}
	night.Request(stateOf("Night", 55), false)
	op = b.ops(t, 1)[0]
	if op.Ref != "n" || op.State.Decibels != 55 {
		t.Errorf("operation %+v", op)
	}
	b.Record(op, Outcome{Ref: "n"})
	b.device[0].Decibels = 55
	b.read()
	night.Request(night.Desired, true)
	pending := []Attempt{{ID: uuid.New(), Threshold: night.ID, Delete: true}}
	if ends := b.Ends(pending); ends != nil {
		t.Errorf("ended early: %+v", ends)
	}
	op = b.ops(t, 1)[0]
	b.Record(op, Outcome{})
	b.read() // the list lags
	b.ops(t, 0)
	b.device = nil
	b.read()
	if ends := b.Ends(pending); len(b.Thresholds) != 0 || len(ends) != 1 || ends[0].ErrorType != "" {
		t.Errorf("after the deletion: %+v, %+v", b.Thresholds, ends)
	}
}

// A crash between an operation and its record is repaired by the next read.
func TestSensor_RecognizesLostCreation(t *testing.T) {
	t.Parallel()
	b := newBed()
	night := b.add("Night")
	found := onDevice("n", "Night", 50)
	found.Key = night.ID.String()
	b.device = []Found{found}
	b.read()
	if len(b.Thresholds) != 1 || night.Ref != "n" {
		t.Fatalf("thresholds %+v", b.Thresholds)
	}
	b.ops(t, 0)
	// Two with its key: the vendor copied the threshold.
	copied := found
	copied.Ref = "copy"
	b.device = append(b.device, copied)
	b.read()
	if len(b.Thresholds) != 2 || night.Ref != "n" {
		t.Errorf("with a copy: %+v", b.Thresholds)
	}
}

func TestSensor_RevertsDrift(t *testing.T) {
	t.Parallel()
	b := newBed()
	night := b.add("Night")
	b.Record(b.ops(t, 1)[0], Outcome{Ref: "n"})
	b.device = []Found{onDevice("n", "Night", 50)}
	b.read()
	b.device[0].Decibels = 90
	b.read()
	if op := b.ops(t, 1)[0]; op.Ref != "n" || op.State.Decibels != 50 {
		t.Errorf("after a change: %+v", op)
	}
	b.device = nil
	b.read()
	if op := b.ops(t, 1)[0]; op.Ref != "" || op.Delete || night.Observed != nil {
		t.Errorf("after a deletion: %+v", op)
	}
}

func TestSensor_OutcomesOfFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failure Failure
		again   time.Duration // when the operation is repeated
		ref     string
	}{
		"transient":     {Failure{}, time.Second, "n"},
		"asks to wait":  {Failure{RetryAfter: 5 * time.Second}, 5 * time.Second, "n"},
		"unsure":        {Failure{Unsure: true}, time.Minute, "n"},
		"absent":        {Failure{Absent: true}, time.Second, ""},
		"asks too late": {Failure{RetryAfter: time.Hour}, time.Hour, "n"},
	} {
		b := newBed(onDevice("n", "Night", 60))
		night := b.Thresholds[0]
		night.Request(stateOf("Night", 50), false)
		op := b.ops(t, 1)[0]
		b.Record(op, Outcome{Failure: &c.failure})
		if night.Ref != c.ref {
			t.Errorf("%s: reference %q", name, night.Ref)
		}
		b.ops(t, 0)
		b.Now = b.Now.Add(c.again)
		b.ops(t, 1)
	}
}

func TestSensor_RefusalKeepsTheDevice(t *testing.T) {
	t.Parallel()
	b := newBed(onDevice("n", "Night", 60))
	night := b.Thresholds[0]
	night.Request(stateOf("Night", 50), false)
	attempt := []Attempt{{ID: uuid.New(), Threshold: night.ID}}
	b.Record(b.ops(t, 1)[0], Outcome{Failure: &Failure{Refused: true, Message: "too quiet"}})
	ends := b.Ends(attempt)
	if night.Desired.Decibels != 60 || night.Managed || len(ends) != 1 || ends[0].ErrorType != "device_refused" ||
		ends[0].Message != "too quiet" {
		t.Errorf("after the refusal of a change: %+v, %+v", night, ends)
	}
	night.Request(night.Desired, true)
	b.Record(b.ops(t, 1)[0], Outcome{Failure: &Failure{Refused: true}})
	if night.Deleting || b.Threshold(night.ID) == nil {
		t.Errorf("after the refusal of a deletion: %+v", night)
	}
	day := b.add("Day")
	b.Record(b.ops(t, 1)[0], Outcome{Failure: &Failure{Refused: true}})
	if b.Threshold(day.ID) != nil || !slices.Contains(b.Removed(), day.ID) {
		t.Error("a refused creation stays")
	}
}

// A request during an operation prevails over its outcome.
func TestSensor_RequestDuringOperation(t *testing.T) {
	t.Parallel()
	b := newBed()
	night := b.add("Night")
	op := b.ops(t, 1)[0]
	night.Request(stateOf("Night", 55), false)
	b.Record(op, Outcome{Ref: "n"})
	if op := b.ops(t, 1)[0]; op.Ref != "n" || op.State.Decibels != 55 {
		t.Errorf("after an update: %+v", op)
	}
	b.Record(op, Outcome{Failure: &Failure{Refused: true}})
	if b.Threshold(night.ID) == nil || night.Desired.Decibels != 55 {
		t.Errorf("an obsolete refusal: %+v", night)
	}

	b = newBed()
	night = b.add("Night")
	op = b.ops(t, 1)[0]
	night.Request(night.Desired, true)
	pending := []Attempt{{ID: uuid.New(), Threshold: night.ID}, {ID: uuid.New(), Threshold: night.ID, Delete: true}}
	ends := b.Ends(pending)
	if len(ends) != 1 || ends[0].Attempt != pending[0].ID || ends[0].ErrorType != "noise_threshold_deleted" {
		t.Errorf("the creation ends with %+v", ends)
	}
	b.Record(op, Outcome{Ref: "n"})
	b.read()
	b.ops(t, 0) // the creation does not show yet
	if b.Threshold(night.ID) == nil {
		t.Fatal("a threshold that will show is forgotten")
	}
	b.device = []Found{onDevice("n", "Night", 50)}
	b.Now = b.Now.Add(time.Second)
	b.read() // shows the creation, so that the deletion does not wait for it
	if op := b.ops(t, 1)[0]; !op.Delete || op.Ref != "n" {
		t.Errorf("operation %+v", op)
	}
	b.Record(Operation{Threshold: uuid.New()}, Outcome{}) // removed meanwhile
}

// Deletions come first, because they make room.
func TestSensor_DeletesFirst(t *testing.T) {
	t.Parallel()
	b := newBed(onDevice("a", "A", 60), onDevice("b", "B", 60))
	b.add("Night")
	b.Thresholds[1].Request(b.Thresholds[1].Desired, true)
	if ops := b.ops(t, 2); !ops[0].Delete || ops[1].Delete {
		t.Errorf("operations %+v", ops)
	}
}

// The level in decibels of a score is what the device makes of it.
func TestSensor_LevelOfScore(t *testing.T) {
	t.Parallel()
	b := newBed()
	night := &Threshold{ID: uuid.New()}
	night.Request(State{Name: "Night", Window: stateOf("", 0).Window, NRS: new(4.0)}, false)
	b.Thresholds = append(b.Thresholds, night)
	b.Record(b.ops(t, 1)[0], Outcome{Ref: "n"})
	found := onDevice("n", "Night", 55)
	found.NRS = new(4.0)
	b.device = []Found{found}
	b.read()
	if night.Desired.Decibels != 55 || *night.Desired.NRS != 4 {
		t.Errorf("threshold %+v", night)
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]time.Duration{
		1:    time.Second,
		2:    2 * time.Second,
		10:   512 * time.Second,
		12:   maxPause,
		1000: maxPause,
	} {
		if got := backoff(n); got != want {
			t.Errorf("backoff(%d) = %s", n, got)
		}
	}
}
