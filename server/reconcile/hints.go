package reconcile

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"golang.org/x/time/rate"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// How often what a vendor tells of one account is taken in. What comes meanwhile is taken in together: it only says where
// to look, and a vendor that never stops is to have no more of the server than one that tells now and then.
const (
	hintsEvery, hintsFirst = 50 * time.Millisecond, 40 // what there is about devices
	listEvery, listsFirst  = time.Second, 10           // the account as a whole
	operated, operatedOnce = 100, 500                  // what somebody did at its locks, a second and at once: each is an event
	resyncIs               = 5                         // lists, as all its devices are read, too
)

// hints turns what the adapter of an account tells into records and wake-ups.
type hints struct {
	*Adapters
	account uuid.UUID
	pace    *rate.Limiter
	lists   *rate.Limiter
	doings  *rate.Limiter
	hurried rate.Sometimes // that there are more of them is logged

	owed   <-chan time.Time // when the account is to be looked at as a whole
	resync bool             // with all its devices
}

func listen(r *Adapters, account uuid.UUID, events <-chan adapter.Event) {
	h := &hints{Adapters: r, account: account, pace: rate.NewLimiter(rate.Every(hintsEvery), hintsFirst), lists: rate.NewLimiter(rate.Every(listEvery), listsFirst),
		doings: rate.NewLimiter(operated, operatedOnce), hurried: rate.Sometimes{Interval: time.Hour}}
	for {
		select {
		case e, open := <-events:
			if !open { // another instance may be the one that looks
				if h.owed != nil {
					h.whole()
				}
				return
			}
			h.wait()
			h.take(waiting(e, events))
		case <-h.owed:
			h.whole()
		}
	}
}

// waiting is the event with all that wait behind it.
func waiting(e adapter.Event, events <-chan adapter.Event) []adapter.Event {
	batch := []adapter.Event{e}
	for range cap(events) {
		select {
		case e, open := <-events:
			if !open {
				return batch
			}
			batch = append(batch, e)
		default:
			return batch
		}
	}
	return batch
}

func (h *hints) wait() {
	select {
	case <-h.stop:
	case <-time.After(h.pace.Reserve().Delay()):
	}
}

// operations are what somebody did at a lock, in the words of package access.
var operations = map[adapter.EventKind]access.OperationKind{
	adapter.LockOperated: access.BoltMoved, adapter.Jammed: access.BoltJammed, adapter.AccessDenied: access.AccessDenied,
}

func (h *hints) take(batch []adapter.Event) {
	refs := map[string]bool{}
	for _, e := range batch {
		kind, operation := operations[e.Kind]
		switch {
		case operation && !h.doings.Allow():
			h.hurried.Do(func() {
				h.log.Warn("a vendor tells of more at its locks than people do; what is beyond is not told", "account", h.account)
			})
			h.owe(false) // where the bolts are
		case operation:
			h.operated(e, kind)
		case e.Kind == adapter.DeviceRemoved:
			h.left(e)
		case e.Kind == adapter.Resync:
			h.owe(true)
		case e.Kind == adapter.DeviceListed, e.Kind == adapter.AccountRevoked, e.Kind == adapter.StatusChanged, e.Device == "":
			h.owe(false) // the list of devices tells
		default:
			refs[string(e.Device)] = true
		}
	}
	if len(refs) == 0 || h.resync {
		return
	}
	others := false
	err := h.do(func(ctx context.Context) (err error) {
		others, err = h.access.HintDevices(ctx, h.account, slices.Collect(maps.Keys(refs)))
		return err
	})
	if err != nil {
		h.owe(true)
	} else if others {
		h.owe(false)
	}
}

func (h *hints) operated(e adapter.Event, kind access.OperationKind) {
	known := true
	err := h.do(func(ctx context.Context) (err error) {
		known, err = h.access.RecordOperation(ctx, h.account, string(e.Device), access.Operation{Kind: kind, ID: e.Operation.ID, Locked: e.Operation.Locked,
			Method: string(e.Operation.Method), CodeRef: string(e.Code), At: e.Operation.At})
		return err
	})
	if err != nil || !known {
		h.owe(false)
	}
}

// owe has the account looked at as a whole as soon as that may be; resync: with all its devices.
func (h *hints) owe(resync bool) {
	if h.owed != nil && (h.resync || !resync) {
		return
	}
	cost := 1
	if resync {
		cost = resyncIs
	}
	h.resync = resync
	h.owed = time.After(h.lists.ReserveN(time.Now(), cost).Delay())
}

// whole does what is owed. What fails is owed further.
func (h *hints) whole() {
	resync := h.resync
	h.owed, h.resync = nil, false
	err := h.do(func(ctx context.Context) error {
		if resync {
			return h.access.Resync(ctx, h.account)
		}
		return h.access.Hint(ctx, h.account, "")
	})
	if err != nil {
		h.owe(resync)
	}
}

func (h *hints) do(what func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := what(ctx)
	if err != nil {
		h.log.Warn("what a vendor tells could not be taken in; the account is looked at again", "account", h.account, "error", err)
	}
	return err
}

// left records that a device has left, until it is written down: nothing else would tell of that.
func (h *hints) left(e adapter.Event) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		err := h.access.RecordLeft(ctx, h.account, string(e.Device), time.Since(e.At))
		cancel()
		if err == nil {
			return
		}
		h.log.Warn("a device has left its account, which could not be written down; it is repeated", "account", h.account, "error", err)
		select {
		case <-h.stop:
			return
		case <-time.After(time.Second):
		}
	}
}
