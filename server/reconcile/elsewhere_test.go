package reconcile_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// looked is a device lane that reports after each drain whether work is due. An instance has no
// other sign of another instance's wake-up.
type looked struct {
	worker.Lane
	tell func(due bool)
}

func (l looked) Drain(ctx context.Context, lease *worker.Lease, id uuid.UUID) (time.Duration, error) {
	again, err := l.Lane.Drain(ctx, lease, id)
	if due, problem := l.Due(ctx, id); problem == nil {
		l.tell(due)
	}
	return again, err
}

// Another instance wakes a device during a read, which may miss the reason. It relies on the holder
// of the lease.
func TestRead_WokenMeanwhileIsRepeated(t *testing.T) {
	t.Parallel()
	var wake atomic.Pointer[func()] // once, during the read
	woken, looks := make(chan bool, 1), make(chan bool, 1)
	b := start(t, options{profile: "august", vendor: func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/access_codes") {
			if f := wake.Swap(nil); f != nil {
				(*f)()
				woken <- true
			}
		}
		return false
	}})
	b.stopEngine()
	b.watch = func(l worker.Lane) worker.Lane {
		if l.Name() != access.DeviceLane {
			return l
		}
		return looked{l, func(due bool) {
			select {
			case <-woken:
				looks <- due
			default:
			}
		}}
	}
	b.startEngine()
	waker, err := worker.NewWaker(b.db)
	b.must(err)
	other := access.New(b.db, b.keys, waker, access.Options{})
	f := func() {
		if err := other.Hint(context.WithoutCancel(t.Context()), b.account, b.lock); err != nil {
			t.Error(err)
		}
	}
	wake.Store(&f)
	b.must(b.access.Hint(t.Context(), b.account, b.lock))
	select {
	case due := <-looks:
		if !due {
			t.Error("no work is due")
		}
	case <-time.After(testenv.Timeout(testenv.WaitTimeout)):
		t.Fatal("the device was not read")
	}
}
