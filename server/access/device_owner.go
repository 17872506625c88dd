package access

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// owner is the row that a code on the device belongs to, nil when there is none.
func (r *reading) owner(f Found) *dbsqlc.AccessCode {
	if c := r.byRef[f.Ref]; c != nil && f.Ref != "" && text(c.VendorRef) == f.Ref {
		return c
	}
	mac := r.mac(f.PIN)
	key, err := uuid.Parse(f.Key)
	keyed := err == nil && key.String() == f.Key
	for _, c := range r.managed {
		if c.VendorRef != nil && keyed && key == c.AccessCodeID && r.movedTo(c, f) {
			return c
		}
		if c.VendorRef != nil || offline(*c) {
			continue
		}
		// Its reference was never recorded: the vendor has kept ours, or the PIN tells, the wanted one or that which was sent, or the
		// place it was to have.
		placed := f.PIN == "" && !changed(*c, f) && f.Ref != "" && text(c.WriteRef) == f.Ref
		written := placed || encryption.Equal(c.PinMac, mac) || encryption.Equal(c.WritePinMac, mac)
		if keyed && key == c.AccessCodeID || f.Key == "" && c.WriteGen > 0 && written {
			return c
		}
	}
	return nil
}

// movedTo says whether a code was put anew by somebody who has left no note of that: before an older dump was restored.
func (r *reading) movedTo(c *dbsqlc.AccessCode, f Found) bool {
	if offline(*c) || f.Removing || r.onItsWay(c) || r.lags(c) { // what it is being replaced with, or was, may be listed beside it
		return false
	}
	return !slices.ContainsFunc(r.found, func(other Found) bool { return other.Ref == text(c.VendorRef) })
}

// echo is how long after a write a device may still tell of it as if it were done at its keypad. It tells all servers, of which one has
// written.
const echo = 15 * time.Second

// changed says whether the device has told that somebody has changed a hidden PIN since we wrote it.
func changed(c dbsqlc.AccessCode, f Found) bool {
	for _, ours := range []*time.Time{c.WriteAt, c.AppliedAt} {
		if ours != nil && !f.ChangedAt.After(ours.Add(echo)) {
			return false
		}
	}
	return !f.ChangedAt.IsZero()
}

func (r *reading) mac(pin string) []byte {
	if pin == "" {
		return nil
	}
	return r.s.keys.MAC(pinScope(r.d.DeviceID), []byte(pin))
}

// same says whether a code on the device is as it should be, as far as the device shows.
func (r *reading) same(c *dbsqlc.AccessCode, f Found) bool {
	if f.PIN != "" && !encryption.Equal(c.PinMac, r.mac(f.PIN)) || changed(*c, f) || f.Disabled {
		return false
	}
	if !nativeSchedule(*c, r.caps) {
		return true
	}
	// A start that was past when the code was put may have been put as the time of then.
	begun := r.caps.startsInFuture() && c.StartsAt != nil && f.StartsAt != nil && !c.StartsAt.After(r.now) && !f.StartsAt.After(r.now)
	return (begun || sameSecond(c.StartsAt, f.StartsAt)) && sameSecond(c.EndsAt, f.EndsAt)
}

// sameSecond compares times of which devices keep no fractions.
func sameSecond(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Truncate(time.Second).Equal(b.Truncate(time.Second))
}
