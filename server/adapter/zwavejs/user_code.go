package zwavejs

import (
	"context"
	"encoding/json"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// The command class User Code: numbered slots, each with a PIN and a status, no names. It is spoken through
// endpoint.invoke_cc_api, which servers of all ages have, slot by slot: so it is known of each slot whether the
// lock has answered for it.

// Statuses of a slot: zwave-js UserIDStatus.
const (
	slotAvailable    = 0
	slotEnabled      = 1
	slotNotAvailable = 254 // the lock has no such slot, whatever it has said of their number
)

// slotDisabled says whether a code in a slot of that status opens nothing: Disabled, or Messaging, which only tells
// the gateway that it was typed in.
func slotDisabled(status int) bool { return status == 2 || status == 3 }

// readUserCode asks the lock for a slot, and keeps what it shows.
func (a *Adapter) readUserCode(ctx context.Context, s *session, n *node, slot int) error {
	var got struct {
		Response *struct {
			Status *int            `json:"userIdStatus"`
			PIN    json.RawMessage `json:"userCode"` // bytes, where it is no text
		} `json:"response"`
	}
	if err := a.invoke(ctx, s, n, ccUserCode, "get", []any{slot}, &got); err != nil {
		return err
	}
	if got.Response == nil || got.Response.Status == nil {
		return adapter.Errorf(adapter.Transient, "the lock did not answer for slot %d", slot)
	}
	e := entry{user: slot, disabled: slotDisabled(*got.Response.Status)}
	e.pin, _ = pinIn(got.Response.PIN) // what is no text is hidden
	none := *got.Response.Status == slotNotAvailable
	a.mu.Lock()
	n.codes.bar(slot, none)
	a.mu.Unlock()
	occupied := *got.Response.Status != slotAvailable && !none
	if occupied {
		if err := a.readTimeFrame(ctx, s, n, &e); err != nil {
			return err
		}
	}
	a.shown(n, slot, e, occupied)
	return nil
}

// supervised is the answer to a command that the lock may confirm; there is none where it does not.
type supervised struct {
	Response *struct {
		Status int `json:"status"`
	} `json:"response"`
}

// failed says whether the lock has said no: SupervisionStatus NoSupport or Fail.
func (s supervised) failed() bool {
	return s.Response != nil && (s.Response.Status == 0 || s.Response.Status == 2)
}

// setUserCode writes a slot. The answer says no more than that the command has arrived, if that.
func (a *Adapter) setUserCode(ctx context.Context, s *session, n *node, slot int, pin string) (refused bool, err error) {
	var got supervised
	err = a.invoke(ctx, s, n, ccUserCode, "set", []any{slot, slotEnabled, pin}, &got)
	return err == nil && got.failed(), err
}

// clearUserCode empties a slot.
func (a *Adapter) clearUserCode(ctx context.Context, s *session, n *node, slot int) error {
	return a.invoke(ctx, s, n, ccUserCode, "clear", []any{slot}, nil)
}
