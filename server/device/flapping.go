package device

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// A connection is flaky after flakyLosses losses within flakyWithin, until it has been stable for flakyWithin.
const (
	flakyLosses = 3
	flakyWithin = 10 * time.Minute
)

// updateFlapping detects the start and end of a flapping connection and emits their events. RecentDisconnects count
// even if they are too short for an event of their own. It returns when to call it again.
func (s *Service) updateFlapping(ctx context.Context, tx store.Tx, d *dbsqlc.Device) (again *time.Time, err error) {
	if lost(*d) {
		since := d.OnlineChangedAt.Add(-flakyWithin)
		recent := slices.DeleteFunc(
			slices.Clone(d.RecentDisconnects),
			func(t time.Time) bool { return t.Before(since) },
		)
		d.RecentDisconnects = append(recent[max(0, len(recent)-flakyLosses+1):], d.OnlineChangedAt)
		if d.FlakySince != nil || len(d.RecentDisconnects) < flakyLosses {
			return nil, nil
		}
		d.FlakySince = &d.RecentDisconnects[len(d.RecentDisconnects)-1]
		a, err := s.withProblems(ctx, tx, event.AboutDevice(*d), *d)
		if err != nil {
			return nil, err
		}
		return nil, s.events.Emit(ctx, tx, "device.connection_became_flaky", a)
	}
	if d.FlakySince == nil || !d.Online {
		return nil, nil
	}
	steady := d.OnlineChangedAt.Add(flakyWithin)
	if steady.After(s.opt.Now()) {
		return &steady, nil
	}
	d.FlakySince, d.RecentDisconnects = nil, []time.Time{}
	return nil, s.events.Emit(ctx, tx, "device.connection_stabilized", event.AboutDevice(*d))
}

// lost reports whether a device has an uncounted connection loss. A device that was announced as offline, or was never
// online, has none.
func lost(d dbsqlc.Device) bool {
	counted := len(d.RecentDisconnects) > 0 &&
		!d.RecentDisconnects[len(d.RecentDisconnects)-1].Before(d.OnlineChangedAt)
	return !d.Online && d.AnnouncedOnline && !counted
}

// Warnings returns the problems that impair the device without preventing it from working.
func (d Device) Warnings() []domain.Problem {
	warnings := slices.Concat(d.verificationWarnings(), d.BackupPool.Warnings(), d.thermostatWarnings())
	if d.FlakySince.IsZero() {
		return warnings
	}
	return append(warnings, domain.Problem{
		Code:  "device_has_flaky_connection",
		Scope: domain.OfDevice,
		At:    d.FlakySince,
		Message: fmt.Sprintf("The device has lost its connection %d times within %d minutes. "+
			"Check its radio and its power. Pending changes may take long.",
			flakyLosses, flakyWithin/time.Minute),
	})
}

// verificationWarnings warns about an adapter that never met its vendor.
func (d Device) verificationWarnings() []domain.Problem {
	if d.Capabilities.Unverified == "" {
		return nil
	}
	return []domain.Problem{{
		Code:    "adapter_not_verified",
		Scope:   domain.OfDevice,
		At:      d.CreatedAt,
		Message: "How this server reaches the device was tested " + d.Capabilities.Unverified + ".",
	}}
}
