package zwavejs

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Codes implements adapter.Adapter. Without fresh, and if the lock was not read on this connection, it returns the
// gateway's copy. A slot that the lock does not answer fails the whole call, because its content is unknown.
func (a *Adapter) Codes(ctx context.Context, device adapter.DeviceRef, fresh bool) (adapter.Codes, error) {
	s, n, err := a.find(ctx, device)
	if err != nil {
		return adapter.Codes{}, err
	}
	if err := a.checkCodes(s, n); err != nil {
		if fresh && adapter.ClassOf(err) == adapter.Offline { // a response starts the interview
			err = cmp.Or(a.ensureAwake(ctx, s, n), err)
		}
		return adapter.Codes{}, err
	}
	if !fresh {
		return a.knownCodes(n), nil
	}
	release, err := a.acquire(ctx, n)
	if err != nil {
		return adapter.Codes{}, err
	}
	defer release()
	if err := a.ensureAwake(ctx, s, n); err != nil {
		return adapter.Codes{}, err
	}
	// Events that precede this response are processed when it returns.
	if err := a.callNode(ctx, s, gatewayTimeout, pingCommand, nil, nil); err != nil {
		return adapter.Codes{}, asRead(err)
	}
	if err := a.refresh(ctx, s, n); err != nil {
		return adapter.Codes{}, asRead(err)
	}
	return a.knownCodes(n), nil
}

// checkCodes fails if the lock has no codes, or if that is not known yet.
func (a *Adapter) checkCodes(s *session, n *node) error {
	if n.climate != nil {
		return adapter.Errorf(adapter.NotSupported, "a thermostat has no codes")
	}
	d, ready := a.device(n), n.traits.Load().ready
	switch {
	case !ready && !d.Online:
		return adapter.Errorf(adapter.Offline,
			"the lock does not answer the gateway's radio, and its interview is incomplete")
	case !ready:
		return adapter.Errorf(adapter.Transient,
			"the gateway's interview of the lock is incomplete: if this persists, interview it again")
	case s.tooOld(n):
		return adapter.Errorf(adapter.NotSupported,
			"the gateway's server does not support the named users of the lock: bring its zwave-js-server up to "+
				"date, to schema %d at least", accessControlSchema)
	case d.Capabilities.OnlineCodes:
		return nil
	case d.CapabilitiesUnknown:
		return adapter.Errorf(adapter.Transient,
			"the gateway's interview has not read how many codes the lock supports: if this persists, interview it "+
				"again")
	default:
		return adapter.Errorf(adapter.NotSupported, "the lock accepts no remote codes")
	}
}

// refresh reads the slots whose content is uncertain.
func (a *Adapter) refresh(ctx context.Context, s *session, n *node) error {
	a.mu.Lock()
	if !n.reportsChanges() {
		n.codes.markAllUncertain()
	}
	all := n.codes.allUncertain || n.hasUsers() && len(n.codes.uncertain) > 0
	doubts := slices.Sorted(maps.Keys(n.codes.uncertain))
	full := a.storedCodes()-len(n.codes.slots) >= maxCodes
	a.mu.Unlock()
	if full && (all || len(doubts) > 0) {
		return adapter.Errorf(adapter.Transient,
			"the other locks of the network hold %d codes, the maximum per gateway: move some locks to another "+
				"gateway", maxCodes)
	}
	if all {
		return a.readAll(ctx, s, n)
	}
	for _, slot := range doubts {
		if _, _, err := a.readSlot(ctx, s, n, slot); err != nil {
			return err
		}
	}
	return nil
}

// readAll reads all slots of the lock.
func (a *Adapter) readAll(ctx context.Context, s *session, n *node) (err error) {
	a.mu.Lock()
	n.codes.beginRead(0)
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		n.codes.finishRead(0, err == nil)
		a.mu.Unlock()
	}()
	a.readSerial(ctx, s, n)
	if n.hasUsers() {
		return a.readUsers(ctx, s, n)
	}
	for slot := 1; slot <= n.traits.Load().slots; slot++ {
		if err := a.readUserCode(ctx, s, n, slot); err != nil {
			return err
		}
	}
	return nil
}

// readSlot reads one slot of the lock.
func (a *Adapter) readSlot(ctx context.Context, s *session, n *node, slot int) (e entry, occupied bool, err error) {
	a.mu.Lock()
	n.codes.beginRead(slot)
	a.mu.Unlock()
	if n.hasUsers() {
		err = a.readCredential(ctx, s, n, slot)
	} else {
		err = a.readUserCode(ctx, s, n, slot)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	n.codes.finishRead(slot, err == nil)
	e, occupied = n.codes.slots[slot]
	return e, occupied, err
}

// storeSlot stores the content of a slot as read from the lock. A lock that returns asterisks counts as hiding PINs
// from then on.
func (a *Adapter) storeSlot(n *node, slot int, e entry, occupied bool) {
	masked := occupied && isMasked(e.pin)
	if masked {
		e.pin = ""
	}
	a.mu.Lock()
	first := masked && !n.masked
	n.masked = n.masked || masked
	n.codes.storeSlot(slot, e, occupied)
	ref := n.ref
	a.mu.Unlock()
	if first {
		a.hints.Send(adapter.Event{Kind: adapter.StatusChanged, Device: ref})
	}
}

// knownCodes returns the known codes of the lock.
func (a *Adapter) knownCodes(n *node) adapter.Codes {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := &n.codes
	codes := adapter.Codes{Codes: []adapter.Code{}, SerialNumber: n.traits.Load().serial, Stale: m.allUncertain ||
		len(m.uncertain) > 0}
	for _, slot := range m.occupied() {
		e := m.slots[slot]
		c := adapter.Code{
			Ref:        codeRef(slot),
			Key:        m.key(slot),
			KeyGuessed: e.pin == "",
			PIN:        e.pin,
			Name:       e.name,
			State:      adapter.Confirmed,
			StartsAt:   e.starts,
			EndsAt:     e.ends,
			Disabled:   e.disabled,
		}
		if n.masked {
			c.PIN, c.ChangedAt = "", m.touched[slot]
		}
		codes.Codes = append(codes.Codes, c)
	}
	return codes
}

func codeRef(slot int) adapter.CodeRef { return adapter.CodeRef(strconv.Itoa(slot)) }
