package webhooks_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhooks"
)

// BenchmarkIdle measures how long after its commit began an event is received, one at a time: alone, and with
// 10,000 deliveries queued for 200 endpoints that hang.
func BenchmarkIdle(b *testing.B) {
	for name, hanging := range map[string]int{"alone": 0, "beside 200 that hang": 200} {
		b.Run(name, func(b *testing.B) {
			bed := start(b, webhooks.Options{AllowPrefixes: loopback})
			defer hang(bed, hanging)()
			arrived := make(chan time.Time, 1)
			s := newSink(b, func(http.ResponseWriter, *http.Request, int) { arrived <- time.Now() })
			bed.hook(s.URL, "device.connected")
			var took []time.Duration
			for b.Loop() {
				begin := time.Now()
				bed.emit(bed.p, "device.connected", "")
				took = append(took, (<-arrived).Sub(begin))
				b.StopTimer()
				<-time.After(20 * time.Millisecond) // idle again
				b.StartTimer()
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

// hang makes endpoints that do not answer, with 50 deliveries each, and returns when they are being tried.
func hang(b *bed, endpoints int) (release func()) {
	b.Helper()
	released := make(chan struct{})
	stuck := newSink(b, func(http.ResponseWriter, *http.Request, int) { <-released })
	for range endpoints {
		b.hook(stuck.URL, "device.added")
	}
	for range min(endpoints, 50) {
		b.emit(b.p, "device.added", "")
	}
	b.until("all hang", stuck.got(endpoints*30))
	return func() { close(released) }
}

// BenchmarkLoad measures deliveries per second to one endpoint; with 200 others that hang
// it shows what those cost.
func BenchmarkLoad(b *testing.B) {
	for name, hanging := range map[string]int{"alone": 0, "beside 200 that hang": 200} {
		b.Run(name, func(b *testing.B) {
			bed := start(b, webhooks.Options{AllowPrefixes: loopback})
			defer hang(bed, hanging)()
			s := newSink(b, nil)
			bed.hook(s.URL, "device.connected")
			var publishers sync.WaitGroup
			todo := make(chan struct{})
			for range 16 {
				publishers.Go(func() {
					for range todo {
						bed.emit(bed.p, "device.connected", "")
					}
				})
			}
			n, begin := 0, time.Now()
			for b.Loop() {
				todo <- struct{}{}
				n++
			}
			close(todo)
			publishers.Wait()
			published := time.Since(begin)
			bed.until("all are received", s.got(n))
			b.ReportMetric(float64(n)/time.Since(begin).Seconds(), "delivered/s")
			b.ReportMetric(float64(n)/published.Seconds(), "published/s")
		})
	}
}
