package access

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// AutoLock says whether a device locks itself, and how many seconds after it was unlocked.
type AutoLock struct {
	Enabled bool    `json:"enabled"`
	Delay   float64 `json:"delay_seconds"`
}

func autoLockOf(d dbsqlc.Device) *AutoLock {
	return toAutoLock(d.AutoLockEnabled, d.AutoLockDelaySeconds)
}

func toAutoLock(enabled *bool, delaySeconds *float64) *AutoLock {
	if enabled == nil {
		return nil
	}
	a := &AutoLock{Enabled: *enabled}
	if delaySeconds != nil {
		a.Delay = *delaySeconds
	}
	return a
}

func (a *AutoLock) columns() (enabled *bool, delay *float64) {
	if a == nil {
		return nil, nil
	}
	return &a.Enabled, &a.Delay
}

// AutoLockWork is a device that is to be told whether to lock itself.
type AutoLockWork struct {
	Attempt uuid.UUID
	AutoLock
	Started bool // it may have been told so: it is told once only, what it has made of that it shows
}

// ConfigureAutoLock asks for a device to lock itself a while after it was unlocked, or not to any more. It returns the
// attempt, which ends when the device has confirmed; one of a device that is offline has failed already.
// It fails with NotFound, with Invalid where the device cannot do that, or it is not said how long the while is, and with TooMany.
func (s *Service) ConfigureAutoLock(ctx context.Context, p Principal, deviceID string, enabled bool, delay *float64) (a Attempt, err error) {
	if enabled && delay == nil {
		return a, invalid("auto_lock_delay_seconds", "Say after how many seconds, 1 to 60, the lock is to lock itself")
	}
	setting := AutoLock{Enabled: enabled}
	if enabled {
		setting.Delay = *delay
	}
	if enabled && (setting.Delay < 1 || setting.Delay > 60) {
		return a, invalid("auto_lock_delay_seconds", "The delay is 1 to 60 seconds")
	}
	id, err := uuid.Parse(deviceID)
	if err != nil {
		return a, deviceNotFound("device_id", deviceID)
	}
	if err := s.hasTurns(ctx, p, id); err != nil {
		return a, err
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		d, err := lockManagedDevice(ctx, tx, p, id)
		if err != nil {
			return err
		}
		if !capabilities(d).AutoLock {
			return &Error{Kind: Invalid, Type: "device_type_not_supported", Field: "device_id",
				Message: "This device cannot be told to lock itself: its can_configure_auto_lock is false."}
		}
		if err := mayCommand(ctx, tx, d); err != nil {
			return err
		}
		r, err := s.newDeviceAttemptWith(ctx, tx, d, ConfigureAutoLock, s.opt.BoltPatience, attemptOptions{AutoLock: &setting})
		if err != nil {
			return err
		}
		a = toAttempt(r)
		if !d.Online {
			a.Status, a.ErrorType, a.Message = Failed, "device_offline", "The device is offline. Try again when it is back."
			_, err := s.finish(ctx, tx, r, Failed, a.ErrorType, a.Message)
			return err
		}
		return s.wakeDevice(ctx, tx, d.DeviceID, false)
	})
	if _, ok := asError(err); err != nil && !ok {
		err = fmt.Errorf("configure the automatic of device %s: %w", id, err)
	}
	return a, err
}

// autoLock is the next of what was asked for, in the order it was asked for, and when to look whether it shows.
func (t *deviceTx) autoLock() (work *AutoLockWork, poll *time.Time) {
	for _, a := range t.pending {
		setting := options(a).AutoLock
		if a.ActionType != ConfigureAutoLock || setting == nil {
			continue
		}
		if a.StartedAt != nil {
			again := pollAfter(*a.StartedAt, t.now)
			poll = &again
		}
		return &AutoLockWork{Attempt: a.ActionAttemptID, AutoLock: *setting, Started: a.StartedAt != nil}, poll
	}
	return nil, nil
}

// RecordAutoLockSet notes that the device has taken it.
func (s *Service) RecordAutoLockSet(ctx context.Context, h Holder, device uuid.UUID, w AutoLockWork) error {
	return s.onDevice(ctx, h, device, "record a setting", func(t *deviceTx) error {
		setting := w.AutoLock
		if was := autoLockOf(t.d); !setting.Enabled && was != nil { // what it keeps for when it is enabled again
			setting.Delay = was.Delay
		}
		on, delay := setting.columns()
		err := t.tx.SetDeviceAutoLock(ctx, dbsqlc.SetDeviceAutoLockParams{DeviceID: device, AutoLockEnabled: on, AutoLockDelaySeconds: delay})
		if err != nil {
			return err
		}
		return t.end(ctx, func(a dbsqlc.ActionAttempt) bool { return a.ActionAttemptID == w.Attempt }, Succeeded, "", "")
	})
}

const (
	hubDisconnected      = "hub_disconnected"
	subscriptionRequired = "subscription_required"

	unpaid = "The vendor of the device wants a subscription for access codes, and there is none."
)

func (d Device) subscriptionErrors() []Problem {
	if d.SubscriptionMissing.IsZero() || d.Removed {
		return nil
	}
	return []Problem{{Code: subscriptionRequired, Scope: OfDevice, At: d.SubscriptionMissing,
		Message: unpaid + " What is to be done about codes is done when it is renewed."}}
}

// tellSubscription tells that the vendor wants to be paid, or has been.
func (s *Service) tellSubscription(ctx context.Context, tx store.Tx, was, is dbsqlc.Device) error {
	if (was.SubscriptionMissingAt != nil) == (is.SubscriptionMissingAt != nil) || !is.IsManaged {
		return nil
	}
	a, err := s.withTrouble(ctx, tx, aboutDevice(is), is)
	if err != nil {
		return err
	}
	event := "device.error.subscription_required"
	if is.SubscriptionMissingAt == nil {
		event += ".resolved"
	}
	return s.emit(ctx, tx, event, a)
}
