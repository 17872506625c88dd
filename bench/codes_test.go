package main

import (
	"errors"
	"testing"
	"time"
)

// BenchmarkCodeSet measures the way of a code from its request to a simulated lock without latency. `make benchstat`
// compares it with an older version. Compare the transactions, which include those of the server's background work, and
// the processor time, because the other values depend on the machine.
func BenchmarkCodeSet(b *testing.B) {
	bed, err := newCodeBed(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(bed.close)
	count := func() float64 {
		b.Helper()
		if err := wait(b.Context(), statsDelay); err != nil {
			b.Fatal(err)
		}
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
