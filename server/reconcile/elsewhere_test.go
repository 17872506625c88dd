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

// looked is a lane of devices that tells after each drain whether there is something to do: that is all that an instance goes by
// when another one has woken the device meanwhile.
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

// A device is woken by another instance while it is read, which may not have seen what it was woken for. The other leaves it to the one
// that has the lease.
func TestDeviceThatIsWokenElsewhereWhileItIsReadIsReadAgain(t *testing.T) {
	t.Parallel()
	var wake atomic.Pointer[func()] // once, while the device is read
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
			t.Error("nothing is to be done")
		}
	case <-time.After(testenv.Timeout(testenv.WaitTimeout)):
		t.Fatal("the device is not read")
	}
}
