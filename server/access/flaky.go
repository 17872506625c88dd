package access

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// A connection is flaky once it is lost so often within the time, and until it has held for as long.
const (
	flakyLosses = 3
	flakyWithin = 10 * time.Minute
)

// tellFlaky tells of a connection that is lost again and again, also where each loss is too short to be told by
// itself, and of its end. It says when to ask again.
func (s *Service) tellFlaky(ctx context.Context, tx store.Tx, d *dbsqlc.Device) (again *time.Time, err error) {
	if lost(*d) {
		since := d.OnlineChangedAt.Add(-flakyWithin)
		recent := slices.DeleteFunc(slices.Clone(d.RecentDisconnects), func(t time.Time) bool { return t.Before(since) })
		d.RecentDisconnects = append(recent[max(0, len(recent)-flakyLosses+1):], d.OnlineChangedAt)
		if d.FlakySince != nil || len(d.RecentDisconnects) < flakyLosses {
			return nil, nil
		}
		d.FlakySince = &d.RecentDisconnects[len(d.RecentDisconnects)-1]
		a, err := s.withTrouble(ctx, tx, aboutDevice(*d), *d)
		if err != nil {
			return nil, err
		}
		return nil, s.emit(ctx, tx, "device.connection_became_flaky", a)
	}
	if d.FlakySince == nil || !d.Online {
		return nil, nil
	}
	steady := d.OnlineChangedAt.Add(flakyWithin)
	if steady.After(s.opt.Now()) {
		return &steady, nil
	}
	d.FlakySince, d.RecentDisconnects = nil, []time.Time{}
	return nil, s.emit(ctx, tx, "device.connection_stabilized", aboutDevice(*d))
}

// lost says whether a device has gone offline and that is not counted yet. One that was told to be offline, or never
// was online, has not.
func lost(d dbsqlc.Device) bool {
	counted := len(d.RecentDisconnects) > 0 && !d.RecentDisconnects[len(d.RecentDisconnects)-1].Before(d.OnlineChangedAt)
	return !d.Online && d.AnnouncedOnline && !counted
}

// Warnings are what keeps the device from working well.
func (d Device) Warnings() []Problem {
	if d.FlakySince.IsZero() {
		return d.BackupPool.warnings()
	}
	return append(d.BackupPool.warnings(), Problem{Code: "device_has_flaky_connection", Scope: OfDevice, At: d.FlakySince,
		Message: fmt.Sprintf("The device has lost its connection %d times within %d minutes. Look at its radio and its power; what is to be done on it may take long.",
			flakyLosses, flakyWithin/time.Minute)})
}
