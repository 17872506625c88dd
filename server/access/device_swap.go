package access

import (
	"context"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// A code may be to have the PIN that another one still has on the device; then it waits until that has given it up.
// Where codes wait for each other in a ring, as two do whose PINs are exchanged, one of them steps aside: it leaves the
// device for as long as the others need, and is put back with the PIN that it is to have. A crash in between loses
// nothing, because each step follows from the rows.

// holder is the code that has on the device the PIN that c is to have, and is about to give it up.
func (t *deviceTx) holder(c *dbsqlc.AccessCode) *dbsqlc.AccessCode { return t.holderIn(t.holders(), c) }

func (t *deviceTx) holderIn(all map[string][]*dbsqlc.AccessCode, c *dbsqlc.AccessCode) *dbsqlc.AccessCode {
	if len(c.PinMac) == 0 {
		return nil
	}
	for _, other := range all[string(c.PinMac)] {
		if other != c && t.parts(other) {
			return other
		}
	}
	return nil
}

// swap is what each code has on the device. A ring of hundreds is looked through once for each of its codes.
type swap struct {
	codes []asKept
	macs  [][]byte
	byMAC map[string][]*dbsqlc.AccessCode
}

// asKept is what macOnDevice goes by.
type asKept struct {
	code             *dbsqlc.AccessCode
	desired, applied int64
	removing         bool
	sealed, pin      *byte
	seen             *byte
}

func kept(c *dbsqlc.AccessCode) asKept {
	return asKept{c, c.DesiredGen, c.AppliedGen, c.RemovingSince != nil, first(c.AppliedSealed), first(c.PinMac), first(c.WritePinMac)}
}

func first(b []byte) *byte {
	if len(b) == 0 {
		return nil
	}
	return &b[0]
}

// holders are the codes by what stands for the PIN that each has on the device, as far as that is known, in their order.
func (t *deviceTx) holders() map[string][]*dbsqlc.AccessCode {
	was := t.swap
	same := was.byMAC != nil && len(was.codes) == len(t.codes)
	for i := 0; same && i < len(t.codes); i++ {
		same = was.codes[i] == kept(t.codes[i])
	}
	if same {
		return was.byMAC
	}
	t.swap = swap{byMAC: map[string][]*dbsqlc.AccessCode{}}
	for i, c := range t.codes {
		now := kept(c)
		var mac []byte
		if i < len(was.codes) && was.codes[i] == now {
			mac = was.macs[i]
		} else {
			mac = t.macOnDevice(c)
		}
		t.swap.codes, t.swap.macs = append(t.swap.codes, now), append(t.swap.macs, mac)
		if len(mac) > 0 {
			t.swap.byMAC[string(mac)] = append(t.swap.byMAC[string(mac)], c)
		}
	}
	return t.swap.byMAC
}

// unseen says whether the device refuses the PIN of c as one that it has although it shows none such. It may have had it
// until just now: some vendors go on refusing for a moment after a deletion. That is believed after some tries.
func (t *deviceTx) unseen(c *dbsqlc.AccessCode, conflict string) bool {
	if !t.caps.PINVisible || !t.caps.ListCodes || int(c.Attempts)+1 >= patience || t.codeByRef(conflict) != uuid.Nil {
		return false
	}
	for _, other := range t.codes {
		if other != c && other.VendorRef != nil && (other.PinMac == nil || encryption.Equal(t.macOnDevice(other), c.PinMac)) {
			return false
		}
	}
	return true
}

// parts says whether a code will not keep the PIN that it has on the device.
func (t *deviceTx) parts(c *dbsqlc.AccessCode) bool {
	return c.RemovingSince != nil || (c.VendorRef != nil && (putOff(*c, t.caps, t.now) || changes(c)))
}

// changes says whether a managed code is to become another on its device.
func changes(c *dbsqlc.AccessCode) bool {
	return c.IsManaged && c.AppliedGen < c.DesiredGen && c.BlockedGen < c.DesiredGen
}

// macOnDevice stands for the PIN that a code has on the device; nil where that is not known. Of one that was changed there it is the one
// that was seen.
func (t *deviceTx) macOnDevice(c *dbsqlc.AccessCode) []byte {
	switch {
	case c.AppliedGen == c.DesiredGen || c.RemovingSince != nil && c.AppliedGen == 0:
		return c.PinMac
	case c.AppliedGen == 0:
		return c.WritePinMac
	}
	applied, err := t.s.appliedOf(*c)
	if err != nil || applied == nil || applied.PIN == nil {
		return nil
	}
	return t.s.keys.MAC(pinScope(c.DeviceID), []byte(*applied.PIN))
}

// aside says whether a code is to leave the device so that others can have its PIN, or has begun to leave in order to come back, for
// whatever reason (RecordDeleteStarted).
func (t *deviceTx) aside(c *dbsqlc.AccessCode) bool {
	if !c.IsManaged || c.RemovingSince != nil || c.VendorRef == nil {
		return false
	}
	return (c.WriteGen == 0 && c.WriteAt != nil) || t.breaksRing(c)
}

// breaksRing says whether c is the one to step aside of the codes that wait for each other. None does while a write to
// one of them is on its way.
func (t *deviceTx) breaksRing(c *dbsqlc.AccessCode) bool {
	first := c
	var all map[string][]*dbsqlc.AccessCode
	for at, steps := c, 0; steps <= len(t.codes); steps++ {
		if at.RemovingSince != nil || !changes(at) || (at.WriteGen > 0 && at.WriteAccepted) {
			return false
		}
		if at.AccessCodeID.String() < first.AccessCodeID.String() {
			first = at
		}
		if all == nil {
			all = t.holders()
		}
		if at = t.holderIn(all, at); at == nil {
			return false
		}
		if at == c {
			return first == c
		}
	}
	return false
}

// RecordDeleteStarted says, before a code is taken off its device, whether it still is to leave. Of one that is to come back, as it steps
// aside, is put anew, or its time is ahead, it notes that this is about to happen: after a crash, or where it is to be there after all, it
// is not taken for one that somebody else has deleted.
func (s *Service) RecordDeleteStarted(ctx context.Context, h Holder, device uuid.UUID, w CodeWork) (still bool, err error) {
	err = s.onDevice(ctx, h, device, "record the start of a removal", func(t *deviceTx) error {
		c := t.code(w.ID)
		anew := c != nil && t.putsAnew(c)
		still = c != nil && (t.leaving(c) || anew) && t.d.RemovedAt == nil && (t.d.IsManaged || c.InPool)
		if still && c.IsManaged && c.RemovingSince == nil {
			if anew || t.aside(c) {
				c.Status = string(StatusSetting)
			}
			c.WriteGen, c.WriteAt, c.WriteAccepted = 0, &t.now, false
		}
		return nil
	})
	return still, err
}
