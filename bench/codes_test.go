package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

// fakeSide sets each code at once. It fails with err after limit codes on a lock.
type fakeSide struct {
	codeSide
	set   [codeLocks]atomic.Int64
	limit int64
	err   error
}

func (s *fakeSide) create(_ context.Context, lock int) error {
	if s.set[lock].Add(1) > s.limit {
		return s.err
	}
	return nil
}

func (s *fakeSide) awaitSet(_ context.Context, lock, n int) error {
	if set := s.set[lock].Load(); set != int64(n) {
		return errors.New("more than one code of a lock is outstanding")
	}
	return nil
}

func TestSetCodes_SetsTheSameNumberOnEachLock(t *testing.T) {
	t.Parallel()
	s := &fakeSide{limit: 3}
	if n, err := setCodes(t.Context(), s, func(n int) bool { return n < 3 }); n != 3*codeLocks || err != nil {
		t.Errorf("%d codes, %v; want %d", n, err, 3*codeLocks)
	}
	for lock := range codeLocks {
		if n := s.set[lock].Load(); n != 3 {
			t.Errorf("lock %d has %d codes, want 3", lock, n)
		}
	}
}

func TestSetCodes_EndsWhenAllLocksFail(t *testing.T) {
	t.Parallel()
	s := &fakeSide{limit: 2, err: errors.New("the lock is full")}
	if n, err := setCodes(t.Context(), s, func(int) bool { return true }); n != 0 || !errors.Is(err, s.err) {
		t.Errorf("%d codes, %v; want the lock's error", n, err)
	}
}

func TestSustainedCodes_ReturnsTheErrorOfACode(t *testing.T) {
	t.Parallel()
	s := &fakeSide{err: errors.New("the lock is full")}
	if _, _, err := (&codeBed{}).sustainedCodes(t.Context(), s, time.Minute); !errors.Is(err, s.err) {
		t.Errorf("%v, want the lock's error", err)
	}
}

// BenchmarkCodeSet measures the way of a code from its request to a simulated lock without latency. `make benchstat`
// compares it with an older version. Compare the writing transactions, which include those of the server's background
// work, and the processor time, because the other values depend on the machine.
func BenchmarkCodeSet(b *testing.B) {
	bed, err := newCodeBed(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(bed.close)
	count := func() float64 {
		b.Helper()
		n, err := bed.transactions(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		return n
	}
	took, err := oneCodeAtATime(b.Context(), bed, 2*codeLocks)
	if err != nil {
		b.Fatal(err)
	}
	if err := bed.clear(b.Context()); err != nil {
		b.Fatal(err)
	}
	transactions := count()
	processor, err := bed.processorTime(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	begin := time.Now()
	n := setInLoop(b, bed)
	perSecond := float64(n) / time.Since(begin).Seconds()
	if err := bed.settle(b.Context()); err != nil {
		b.Fatal(err)
	}
	spent, err := bed.processorTime(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(perSecond, "codes/s")
	b.ReportMetric((count()-transactions)/float64(n), "tx/code")
	b.ReportMetric(ms(spent-processor)/float64(n), "cpu-ms/code")
	b.ReportMetric(percentile(took, 50), "ms-to-lock")
	b.ReportMetric(0, "ns/op") // in codes/s
}

// setInLoop sets one code for each iteration of the benchmark's loop, and returns their number.
func setInLoop(b *testing.B, s codeSide) int {
	b.Helper()
	next, ended := make(chan struct{}), make(chan struct{})
	var n int
	var err error
	go func() {
		defer close(ended)
		n, err = setCodes(b.Context(), s, func(int) bool { _, more := <-next; return more })
	}()
	for b.Loop() {
		select {
		case next <- struct{}{}:
		case <-ended:
			b.Fatal(errors.Join(errors.New("no lock accepts another code"), err))
		}
	}
	close(next)
	<-ended
	if err != nil {
		b.Fatal(err)
	}
	return n
}
