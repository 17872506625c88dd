package seam

import (
	"context"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// Statuses of an action attempt.
const (
	attemptPending   = "pending"
	attemptSucceeded = "success"
	attemptFailed    = "error"
)

// Polling of an action attempt, or of another effect of a write.
const (
	minPoll  = 50 * time.Millisecond
	maxPoll  = time.Second
	pollTime = 10 * time.Second
)

// poll calls done with growing pauses until it returns true, or for pollTime.
func (a *Adapter) poll(ctx context.Context, done func(context.Context) bool) {
	ctx, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	for pause := minPoll; !done(ctx); pause = min(2*pause, maxPoll) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// attempt sends a write that answers with an action attempt. Servers may answer without one.
func (a *Adapter) attempt(ctx context.Context, path string, body any) (wireAttempt, error) {
	var got struct {
		Attempt wireAttempt `json:"action_attempt"`
	}
	_, err := a.do(ctx, call{path: path, body: body, write: true}, &got)
	return got.Attempt, err
}

// await waits for the end of an attempt. It returns the last known state; a failed read does not change the outcome.
func (a *Adapter) await(ctx context.Context, at wireAttempt) wireAttempt {
	if at.Status != attemptPending || !isID(at.ID) {
		return at
	}
	a.poll(ctx, func(ctx context.Context) bool {
		var got struct {
			Attempt wireAttempt `json:"action_attempt"`
		}
		err := a.read(ctx, "/action_attempts/get", map[string]any{"action_attempt_id": at.ID}, &got)
		if err == nil && got.Attempt.ID == at.ID {
			at = got.Attempt
		}
		return at.Status != attemptPending || err != nil && adapter.ClassOf(err) != adapter.Transient
	})
	return at
}

// Lock implements adapter.Locker.
func (a *Adapter) Lock(ctx context.Context, device adapter.DeviceRef) (adapter.State, error) {
	return a.move(ctx, device, true)
}

// Unlock implements adapter.Locker.
func (a *Adapter) Unlock(ctx context.Context, device adapter.DeviceRef) (adapter.State, error) {
	return a.move(ctx, device, false)
}

func (a *Adapter) move(ctx context.Context, device adapter.DeviceRef, lock bool) (adapter.State, error) {
	path, kind, can := "/locks/unlock_door", unlocks, func(c capability.Set) bool { return c.Unlock }
	if lock {
		path, kind, can = "/locks/lock_door", locks, func(c capability.Set) bool { return c.Lock }
	}
	caps, err := a.ready(ctx, device)
	switch {
	case err != nil:
		return "", err
	case !can(caps):
		return "", adapter.Errorf(adapter.NotSupported, "the device cannot be moved remotely in this direction")
	}
	if err := a.mayWrite(device, kind); err != nil {
		return "", err
	}
	attempt, err := a.attempt(ctx, path, map[string]any{"device_id": device})
	if err != nil {
		return "", err
	}
	attempt = a.await(ctx, attempt)
	if attempt.Status == attemptFailed && attempt.Error != nil && attempt.Error.isJam() {
		a.events.Send(adapter.Event{
			Kind:      adapter.Jammed,
			Device:    device,
			Operation: adapter.Operation{Locked: lock},
		})
		return adapter.Accepted, nil
	}
	return a.outcome(attempt)
}

// outcome returns the state of a command to the device itself. A command with an unclear error is not repeated.
func (a *Adapter) outcome(attempt wireAttempt) (adapter.State, error) {
	switch attempt.Status {
	case attemptSucceeded:
		return adapter.Confirmed, nil
	case attemptFailed:
		e := a.attemptError(attempt)
		if e.Class == adapter.Transient {
			e.Class = adapter.Unconfirmed
		}
		return "", e
	default:
		return adapter.Accepted, nil
	}
}

// ConfigureAutoLock implements adapter.AutoLocker.
func (a *Adapter) ConfigureAutoLock(
	ctx context.Context, device adapter.DeviceRef, setting adapter.AutoLock,
) (adapter.State, error) {
	caps, err := a.ready(ctx, device)
	switch {
	case err != nil:
		return "", err
	case !caps.AutoLock:
		return "", adapter.Errorf(adapter.NotSupported, "the device cannot lock itself")
	}
	body := map[string]any{"device_id": device, "auto_lock_enabled": setting.Enabled}
	if setting.Enabled {
		body["auto_lock_delay_seconds"] = setting.Delay.Seconds()
	}
	attempt, err := a.attempt(ctx, "/locks/configure_auto_lock", body)
	if err != nil {
		return "", err
	}
	return a.outcome(a.await(ctx, attempt))
}
