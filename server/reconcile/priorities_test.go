package reconcile_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
)

// priorities records the priority of each request to a vendor.
type priorities struct {
	mu   sync.Mutex
	seen map[string][]adapter.Priority // by method and the end of the path
}

// RoundTrip implements http.RoundTripper.
func (p *priorities) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	call := r.Method + " " + r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	p.seen[call] = append(p.seen[call], adapter.PriorityOf(r.Context()))
	p.mu.Unlock()
	return http.DefaultTransport.RoundTrip(r)
}

// of returns the priorities of a call since the last one.
func (p *priorities) of(call string) []adapter.Priority {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer delete(p.seen, call)
	return p.seen[call]
}

// Only commands to the bolt use the calls that are reserved for a person at the door. What else precedes codes uses
// those of a write or of its confirmation.
func TestPriorities_OfUrgentWork(t *testing.T) {
	t.Parallel()
	record := func() (*priorities, *http.Client) {
		p := &priorities{seen: map[string][]adapter.Priority{}}
		return p, &http.Client{Transport: p}
	}
	only := func(t *testing.T, p *priorities, call string, want adapter.Priority) {
		t.Helper()
		got := slices.Compact(p.of(call))
		if len(got) != 1 || got[0] != want {
			t.Errorf("%s has the priorities %v, want only %v", call, got, want)
		}
	}
	t.Run("an issued code", func(t *testing.T) {
		t.Parallel()
		p, client := record()
		b := start(t, options{profile: "igloohome", http: client})
		_, a, err := b.access.Devices.CreateCode(t.Context(), b.p, device.NewCode{
			DeviceID: b.device,
			Offline:  true,
			StartsAt: time.Now().Format(time.RFC3339),
			EndsAt:   time.Now().Add(5 * time.Hour).Format(time.RFC3339),
		})
		b.must(err)
		b.succeeded(a)
		only(t, p, "POST offline_codes", adapter.PriorityWrite)
	})
	t.Run("the position of the bolt", func(t *testing.T) {
		t.Parallel()
		p, client := record()
		b := start(t, options{profile: "august", http: client})
		p.of("GET " + b.lock)
		_, err := b.db.Pool.Exec(t.Context(), `update devices set locked = true, announced_locked = false,
			locked_changed_at = now() - interval '1 hour', due_at = now(), wake_seq = wake_seq + 1`)
		b.must(err)
		var got []adapter.Priority
		b.until("the position is read", func() bool {
			got = append(got, p.of("GET "+b.lock)...)
			return slices.Contains(got, adapter.PriorityConfirm) || slices.Contains(got, adapter.PriorityCommand)
		})
		if slices.Contains(got, adapter.PriorityCommand) {
			t.Errorf("the priorities are %v", got)
		}
	})
	t.Run("a command", func(t *testing.T) {
		t.Parallel()
		p, client := record()
		b := start(t, options{profile: "august", http: client})
		b.succeeded(b.door(false))
		only(t, p, "POST actions", adapter.PriorityCommand)
	})
}
