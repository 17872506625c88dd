package device

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// owner returns the row that an observed code belongs to, nil if there is none.
func (r *reading) owner(f Found) *dbsqlc.AccessCode {
	if c := r.byRef[f.Ref]; c != nil && f.Ref != "" && domain.Value(c.VendorRef) == f.Ref {
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
		// The code's reference was never recorded. The vendor kept our identifier, or the desired or the sent PIN
		// matches, or the recorded place of the write does.
		placed := f.PIN == "" && !pinChangedAtDevice(*c, f) && f.Ref != "" && domain.Value(c.WriteRef) == f.Ref
		written := placed || r.s.keys.Match(c.PinMac, mac) || r.s.keys.Match(c.WritePinMac, mac)
		if keyed && key == c.AccessCodeID || f.Key == "" && c.WriteGen > 0 && written {
			return c
		}
	}
	return nil
}

// movedTo reports whether a code was recreated without a record of it, as happens before an older dump is restored.
func (r *reading) movedTo(c *dbsqlc.AccessCode, f Found) bool {
	// During a replacement, the vendor may list both the old and the new code.
	if offline(*c) || f.Removing || r.onItsWay(c) || r.staleRead(c) {
		return false
	}
	return !slices.ContainsFunc(r.found, func(other Found) bool { return other.Ref == domain.Value(c.VendorRef) })
}

// echo is how long after a write a device may report it as a change at its keypad. The device reports to all
// servers, of which only one wrote.
const echo = 15 * time.Second

// pinChangedAtDevice reports whether the device reported a change of a hidden PIN after the last write.
func pinChangedAtDevice(c dbsqlc.AccessCode, f Found) bool {
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

// same reports whether the observed state of a code equals its desired state, as far as the device shows it.
func (r *reading) same(c *dbsqlc.AccessCode, f Found) bool {
	if f.PIN != "" && !r.s.keys.Match(c.PinMac, r.mac(f.PIN)) || pinChangedAtDevice(*c, f) || f.Disabled {
		return false
	}
	if !nativeSchedule(*c, r.caps) {
		return true
	}
	// A device that accepts no past start may have got the time of the write instead.
	begun := r.caps.StartsInFuture() && c.StartsAt != nil && f.StartsAt != nil && !c.StartsAt.After(r.now) &&
		!f.StartsAt.After(r.now)
	return (begun || sameSecond(c.StartsAt, f.StartsAt)) && sameSecond(c.EndsAt, f.EndsAt)
}

// sameSecond compares times without their fractions, which devices do not keep.
func sameSecond(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Truncate(time.Second).Equal(b.Truncate(time.Second))
}
