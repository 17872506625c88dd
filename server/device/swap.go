package device

import (
	"context"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// A code whose new PIN is still in use by another code on the device waits until that code releases the PIN. Codes
// whose PINs are exchanged wait for each other in a ring. One code of a ring then steps aside: the server removes it
// from the device, and sets it again with its new PIN after the others. A crash in between loses nothing, because each
// step follows from the rows.

// holderOfPIN returns the code that has c's desired PIN on the device and is about to release it.
func (t *deviceTx) holderOfPIN(c *dbsqlc.AccessCode) *dbsqlc.AccessCode {
	return t.holderIn(t.codesByPIN(), c)
}

func (t *deviceTx) holderIn(all map[string][]*dbsqlc.AccessCode, c *dbsqlc.AccessCode) *dbsqlc.AccessCode {
	if len(c.PinMac) == 0 {
		return nil
	}
	for _, other := range all[string(c.PinMac)] {
		if other != c && t.releasesPIN(other) {
			return other
		}
	}
	return nil
}

// pinIndex caches the PIN of each code on the device, because a ring of hundreds is searched once per code.
type pinIndex struct {
	codes []asKept
	macs  [][]byte
	byMAC map[string][]*dbsqlc.AccessCode
}

// asKept holds the inputs of macOnDevice.
type asKept struct {
	code             *dbsqlc.AccessCode
	desired, applied int64
	removing         bool
	sealed, pin      *byte
	seen             *byte
}

func pinIndexKey(c *dbsqlc.AccessCode) asKept {
	return asKept{
		code:     c,
		desired:  c.DesiredGen,
		applied:  c.AppliedGen,
		removing: c.RemovingSince != nil,
		sealed:   first(c.AppliedSealed),
		pin:      first(c.PinMac),
		seen:     first(c.WritePinMac),
	}
}

func first(b []byte) *byte {
	if len(b) == 0 {
		return nil
	}
	return &b[0]
}

// codesByPIN returns the codes by the MAC of the known PIN that each has on the device, in their order.
func (t *deviceTx) codesByPIN() map[string][]*dbsqlc.AccessCode {
	was := t.pinIndex
	same := was.byMAC != nil && len(was.codes) == len(t.codes)
	for i := 0; same && i < len(t.codes); i++ {
		same = was.codes[i] == pinIndexKey(t.codes[i])
	}
	if same {
		return was.byMAC
	}
	t.pinIndex = pinIndex{byMAC: map[string][]*dbsqlc.AccessCode{}}
	for i, c := range t.codes {
		now := pinIndexKey(c)
		var mac []byte
		if i < len(was.codes) && was.codes[i] == now {
			mac = was.macs[i]
		} else {
			mac = t.macOnDevice(c)
		}
		t.pinIndex.codes, t.pinIndex.macs = append(t.pinIndex.codes, now), append(t.pinIndex.macs, mac)
		if len(mac) > 0 {
			t.pinIndex.byMAC[string(mac)] = append(t.pinIndex.byMAC[string(mac)], c)
		}
	}
	return t.pinIndex.byMAC
}

// unseenConflict reports whether the device refuses c's PIN as a duplicate although it shows no code with that PIN.
// Some vendors keep refusing for a moment after a deletion. After some attempts, the refusal is believed.
func (t *deviceTx) unseenConflict(c *dbsqlc.AccessCode, conflict string) bool {
	if !t.caps.PINVisible || !t.caps.ListCodes || int(c.Attempts)+1 >= failureThreshold ||
		t.codeByRef(conflict) != uuid.Nil {
		return false
	}
	for _, other := range t.codes {
		if other != c && other.VendorRef != nil && (other.PinMac == nil ||
			t.s.keys.Match(t.macOnDevice(other), c.PinMac)) {
			return false
		}
	}
	return true
}

// releasesPIN reports whether a code will lose the PIN that it has on the device.
func (t *deviceTx) releasesPIN(c *dbsqlc.AccessCode) bool {
	return c.RemovingSince != nil || (c.VendorRef != nil && (putOff(*c, t.caps, t.now) || hasPendingChange(c)))
}

// hasPendingChange reports whether a managed code has a desired state that is neither applied nor refused.
func hasPendingChange(c *dbsqlc.AccessCode) bool {
	return c.IsManaged && c.AppliedGen < c.DesiredGen && c.BlockedGen < c.DesiredGen
}

// macOnDevice returns the MAC of the PIN that a code has on the device, nil if unknown. For a code that was changed at
// the device, that is the observed PIN.
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

// yieldsPIN reports whether a code must leave the device temporarily so that others can have its PIN, or its temporary
// removal has started for any reason (RecordDeleteStarted).
func (t *deviceTx) yieldsPIN(c *dbsqlc.AccessCode) bool {
	if !c.IsManaged || c.RemovingSince != nil || c.VendorRef == nil {
		return false
	}
	return (c.WriteGen == 0 && c.WriteAt != nil) || t.breaksPINCycle(c)
}

// breaksPINCycle reports whether c is the code of its ring that steps aside. No code does while a write to one of the ring
// is pending.
func (t *deviceTx) breaksPINCycle(c *dbsqlc.AccessCode) bool {
	first := c
	var all map[string][]*dbsqlc.AccessCode
	for at, steps := c, 0; steps <= len(t.codes); steps++ {
		if at.RemovingSince != nil || !hasPendingChange(at) || (at.WriteGen > 0 && at.WriteAccepted) {
			return false
		}
		if at.AccessCodeID.String() < first.AccessCodeID.String() {
			first = at
		}
		if all == nil {
			all = t.codesByPIN()
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

// RecordDeleteStarted reports, before the removal of a code from its device, whether the code still must leave. For a
// temporary removal (the code steps aside, is recreated, or is postponed) it records the start of the removal, so that
// the missing code is not mistaken for one deleted at the device.
func (s *Service) RecordDeleteStarted(
	ctx context.Context, h domain.Fence, device uuid.UUID, w CodeWork,
) (still bool, err error) {
	err = s.onDevice(ctx, h, device, "record the start of a removal", func(t *deviceTx) error {
		c := t.code(w.ID)
		recreate := c != nil && t.needsRecreate(c)
		still = c != nil && (t.leaving(c) || recreate) && t.d.RemovedAt == nil && (t.d.IsManaged || c.InPool)
		if still && c.IsManaged && c.RemovingSince == nil {
			if recreate || t.yieldsPIN(c) {
				c.Status = string(StatusSetting)
			}
			c.WriteGen, c.WriteAt, c.WriteAccepted = 0, &t.now, false
		}
		return nil
	})
	return still, err
}
