package device

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// AutoLock is the auto-lock setting of a device.
type AutoLock = lockstate.AutoLock

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

// autoLockColumns returns the columns of a setting.
func autoLockColumns(a *AutoLock) (enabled *bool, delay *float64) {
	if a == nil {
		return nil, nil
	}
	return &a.Enabled, &a.Delay
}

// ConfigureAutoLock requests a change of a device's auto-lock setting; delay is in seconds, 1 to 60. It returns the
// attempt, which ends when the device has confirmed. The attempt of an offline device has failed already.
// It fails with NotFound, with TooMany, and with Invalid if the device lacks auto-lock or the delay is missing or
// invalid.
func (s *Service) ConfigureAutoLock(
	ctx context.Context, p domain.Principal, deviceID string, enabled bool, delay *float64,
) (a Attempt, err error) {
	if enabled && delay == nil {
		return a, domain.Invalidf(
			"auto_lock_delay_seconds",
			"Specify the delay after which the lock locks, 1 to 60 seconds",
		)
	}
	setting := AutoLock{Enabled: enabled}
	if enabled {
		setting.Delay = *delay
	}
	if enabled && (setting.Delay < 1 || setting.Delay > 60) {
		return a, domain.Invalidf("auto_lock_delay_seconds", "The delay is 1 to 60 seconds")
	}
	id, err := uuid.Parse(deviceID)
	if err != nil {
		return a, deviceNotFound("device_id", deviceID)
	}
	if err := s.checkCommandQueue(ctx, p, id); err != nil {
		return a, err
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		d, err := lockManagedDevice(ctx, tx, p, id)
		if err != nil {
			return err
		}
		if !capabilities(d).AutoLock {
			return &domain.Error{
				Kind:    domain.Invalid,
				Type:    "device_type_not_supported",
				Field:   "device_id",
				Message: "The auto-lock of this device cannot be configured: its can_configure_auto_lock is false.",
			}
		}
		if err := checkCommandRoom(ctx, tx, d); err != nil {
			return err
		}
		r, err := s.newDeviceAttemptWith(
			ctx, tx, d, domain.ConfigureAutoLock, s.opt.LockCommandTimeout, attemptOptions{AutoLock: &setting},
		)
		if err != nil {
			return err
		}
		a = toAttempt(r)
		if !d.Online {
			a.Status, a.ErrorType = Failed, "device_offline"
			a.Message = "The device is offline. Try again when it is back."
			_, err := s.finish(ctx, tx, r, Failed, a.ErrorType, a.Message)
			return err
		}
		return s.accounts.WakeDevice(ctx, tx, d.DeviceID, false)
	})
	if _, ok := domain.AsError(err); err != nil && !ok {
		err = fmt.Errorf("configure the auto-lock of device %s: %w", id, err)
	}
	return a, err
}

// RecordAutoLockSet records that the device has applied an auto-lock change.
func (s *Service) RecordAutoLockSet(
	ctx context.Context,
	h store.Fence,
	device uuid.UUID,
	w lockstate.AutoLockCommand,
) error {
	return s.onDevice(ctx, h, device, "record a setting", func(t *deviceTx) error {
		setting := w.AutoLock
		if was := autoLockOf(t.d); !setting.Enabled && was != nil { // the device keeps its delay
			setting.Delay = was.Delay
		}
		on, delay := autoLockColumns(&setting)
		err := t.tx.SetDeviceAutoLock(ctx, dbsqlc.SetDeviceAutoLockParams{
			DeviceID:             device,
			AutoLockEnabled:      on,
			AutoLockDelaySeconds: delay,
		})
		if err != nil {
			return err
		}
		t.lock.End(w.Attempt, Succeeded, "", "")
		return nil
	})
}

const (
	hubDisconnected = "hub_disconnected"
)

func (d Device) subscriptionErrors() []domain.Problem {
	if d.SubscriptionMissing.IsZero() || d.Removed {
		return nil
	}
	return []domain.Problem{{
		Code:    lockstate.SubscriptionRequired,
		Scope:   domain.OfDevice,
		At:      d.SubscriptionMissing,
		Message: lockstate.Unpaid + " The server applies pending changes when the subscription is renewed.",
	}}
}

// emitSubscription emits the event of a missing or renewed subscription.
func (s *Service) emitSubscription(ctx context.Context, tx store.Tx, was, is dbsqlc.Device) error {
	if (was.SubscriptionMissingAt != nil) == (is.SubscriptionMissingAt != nil) || !is.IsManaged {
		return nil
	}
	a, err := s.withProblems(ctx, tx, event.AboutDevice(is), is)
	if err != nil {
		return err
	}
	event := "device.error.subscription_required"
	if is.SubscriptionMissingAt == nil {
		event += ".resolved"
	}
	return s.events.Emit(ctx, tx, event, a)
}
