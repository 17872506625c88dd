package reconcile

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"golang.org/x/time/rate"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
)

// Limits for the events of one account. Events that arrive in between are handled together, because
// an event only says where to look. A vendor that never stops gets no larger share of the server
// than a quiet one.
const (
	// Events about devices.
	eventInterval, eventBurst = 50 * time.Millisecond, 40
	// Listings of the account.
	refreshInterval, refreshBurst = time.Second, 10
	// Lock operations per second, and their burst. Each one becomes an event.
	operationsPerSecond, operationBurst = 100, 500
	// A resync costs as much as this many listings, because it reads all devices.
	resyncCost = 5
)

// hints turns the events of an account's adapter into records and wake-ups.
type hints struct {
	*Adapters
	account        uuid.UUID
	eventLimit     *rate.Limiter
	refreshLimit   *rate.Limiter
	operationLimit *rate.Limiter
	// logLimit limits the log messages about dropped operations.
	logLimit rate.Sometimes

	// refreshAt fires when the account must be listed.
	refreshAt <-chan time.Time
	// resync requests a read of all devices as well.
	resync bool
}

func listen(r *Adapters, account uuid.UUID, events <-chan adapter.Event) {
	h := &hints{
		Adapters:       r,
		account:        account,
		eventLimit:     rate.NewLimiter(rate.Every(eventInterval), eventBurst),
		refreshLimit:   rate.NewLimiter(rate.Every(refreshInterval), refreshBurst),
		operationLimit: rate.NewLimiter(operationsPerSecond, operationBurst),
		logLimit:       rate.Sometimes{Interval: time.Hour},
	}
	for {
		select {
		case e, open := <-events:
			// Another instance may run the listing.
			if !open {
				if h.refreshAt != nil {
					h.refresh()
				}
				return
			}
			h.wait()
			h.handle(drainPending(e, events))
		case <-h.refreshAt:
			h.refresh()
		}
	}
}

// drainPending returns the event and all that are queued behind it.
func drainPending(e adapter.Event, events <-chan adapter.Event) []adapter.Event {
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
	case <-time.After(h.eventLimit.Reserve().Delay()):
	}
}

// operations maps vendor events about lock operations to the kinds of package device.
var operations = map[adapter.EventKind]device.OperationKind{
	adapter.LockOperated: device.BoltMoved,
	adapter.Jammed:       device.BoltJammed,
	adapter.AccessDenied: device.AccessDenied,
	adapter.Tampered:     device.Tampered,
}

func (h *hints) handle(batch []adapter.Event) {
	refs := map[string]bool{}
	for _, e := range batch {
		kind, operation := operations[e.Kind]
		switch {
		case operation && !h.operationLimit.Allow():
			h.logLimit.Do(func() {
				h.log.Warn("the vendor exceeds the rate limit of lock operations; the server drops the excess",
					"connected_account_id", h.account)
			})
			// List the account to learn the lock states.
			h.requestRefresh(false)
		case operation:
			h.recordOperation(e, kind)
		case e.Kind == adapter.DeviceRemoved:
			h.recordRemoval(e)
		case e.Kind == adapter.Resync:
			h.requestRefresh(true)
		case e.Kind == adapter.DeviceListed,
			e.Kind == adapter.AccountRevoked,
			e.Kind == adapter.StatusChanged,
			e.Device == "":
			// The device list shows the change.
			h.requestRefresh(false)
		default:
			refs[string(e.Device)] = true
		}
	}
	if len(refs) == 0 || h.resync {
		return
	}
	others := false
	err := h.do(func(ctx context.Context) (err error) {
		others, err = h.access.Accounts.HintDevices(ctx, h.account, slices.Collect(maps.Keys(refs)))
		return err
	})
	if err != nil {
		h.requestRefresh(true)
	} else if others {
		h.requestRefresh(false)
	}
}

func (h *hints) recordOperation(e adapter.Event, kind device.OperationKind) {
	known := true
	err := h.do(func(ctx context.Context) (err error) {
		known, err = h.access.Devices.RecordOperation(ctx, h.account, string(e.Device), device.Operation{
			Kind:    kind,
			ID:      e.Operation.ID,
			Locked:  e.Operation.Locked,
			Method:  string(e.Operation.Method),
			CodeRef: string(e.Code),
			At:      e.Operation.At,
		})
		return err
	})
	if err != nil || !known {
		h.requestRefresh(false)
	}
}

// requestRefresh schedules a listing of the account as soon as the rate limit allows; with resync,
// all devices are read as well.
func (h *hints) requestRefresh(resync bool) {
	if h.refreshAt != nil && (h.resync || !resync) {
		return
	}
	cost := 1
	if resync {
		cost = resyncCost
	}
	h.resync = resync
	h.refreshAt = time.After(h.refreshLimit.ReserveN(time.Now(), cost).Delay())
}

// refresh runs the requested listing. If it fails, it is requested again.
func (h *hints) refresh() {
	resync := h.resync
	h.refreshAt, h.resync = nil, false
	err := h.do(func(ctx context.Context) error {
		if resync {
			return h.access.Accounts.Resync(ctx, h.account)
		}
		return h.access.Accounts.Hint(ctx, h.account, "")
	})
	if err != nil {
		h.requestRefresh(resync)
	}
}

func (h *hints) do(what func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := what(ctx)
	if err != nil {
		h.log.Warn(
			"failed to handle a vendor event; the server lists the account again",
			"connected_account_id",
			h.account,
			"error",
			err,
		)
	}
	return err
}

// recordRemoval records that a device left its account. It retries until it succeeds, because no
// other event reports a removal.
func (h *hints) recordRemoval(e adapter.Event) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		err := h.access.Devices.RecordRemovedByRef(ctx, h.account, string(e.Device), time.Since(e.At))
		cancel()
		if err == nil {
			return
		}
		h.log.Warn(
			"failed to record the removal of a device; the server retries",
			"connected_account_id",
			h.account,
			"error",
			err,
		)
		select {
		case <-h.stop:
			return
		case <-time.After(time.Second):
		}
	}
}
