package zwavejs

import (
	"context"
	"encoding/json"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// The command class User Code has numbered slots, each with a PIN and a status, without names. The adapter uses
// endpoint.invoke_cc_api, which all server versions support, slot by slot. Thus it knows for each slot whether the
// lock has answered.

// Statuses of a slot: zwave-js UserIDStatus.
const (
	slotAvailable    = 0
	slotEnabled      = 1
	slotNotAvailable = 254 // the slot does not exist, even if within the reported number of slots
)

// slotDisabled reports whether a code in a slot of that status does not open: Disabled, or Messaging, which only
// notifies the gateway of its use.
func slotDisabled(status int) bool { return status == 2 || status == 3 }

// readUserCode reads a slot from the lock and stores it.
func (a *Adapter) readUserCode(ctx context.Context, s *session, n *node, slot int) error {
	var got struct {
		Response *struct {
			Status *int            `json:"userIdStatus"`
			PIN    json.RawMessage `json:"userCode"` // a string or bytes
		} `json:"response"`
	}
	if err := a.invoke(ctx, s, n, ccUserCode, "get", []any{slot}, &got); err != nil {
		return err
	}
	if got.Response == nil || got.Response.Status == nil {
		return adapter.Errorf(adapter.Transient, "the lock did not answer for slot %d", slot)
	}
	e := entry{user: slot, disabled: slotDisabled(*got.Response.Status)}
	e.pin, _ = pinIn(got.Response.PIN) // bytes count as hidden
	none := *got.Response.Status == slotNotAvailable
	a.mu.Lock()
	n.codes.setBlocked(slot, none)
	a.mu.Unlock()
	occupied := *got.Response.Status != slotAvailable && !none
	if occupied {
		if err := a.readTimeFrame(ctx, s, n, &e); err != nil {
			return err
		}
	}
	a.storeSlot(n, slot, e, occupied)
	return nil
}

// supervised is the response to a command that the lock may confirm. Response is nil if it does not.
type supervised struct {
	Response *struct {
		Status int `json:"status"`
	} `json:"response"`
}

// failed reports whether the lock has rejected the command: SupervisionStatus NoSupport or Fail.
func (s supervised) failed() bool {
	return s.Response != nil && (s.Response.Status == 0 || s.Response.Status == 2)
}

// setUserCode writes a slot. The response at most means that the command has arrived.
func (a *Adapter) setUserCode(ctx context.Context, s *session, n *node, slot int,
	pin string,
) (refused bool, err error) {
	var got supervised
	err = a.invoke(ctx, s, n, ccUserCode, "set", []any{slot, slotEnabled, pin}, &got)
	return err == nil && got.failed(), err
}

// clearUserCode clears a slot.
func (a *Adapter) clearUserCode(ctx context.Context, s *session, n *node, slot int) error {
	return a.invoke(ctx, s, n, ccUserCode, "clear", []any{slot}, nil)
}
