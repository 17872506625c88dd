package access

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// codeState is what can be changed about a code.
type codeState struct {
	Name     *string    `json:"name"`
	PIN      *string    `json:"code"`
	StartsAt *time.Time `json:"starts_at"`
	EndsAt   *time.Time `json:"ends_at"`
}

func (s *Service) stateOf(c dbsqlc.AccessCode) (codeState, error) {
	pin, err := s.pinOf(c)
	return codeState{Name: c.Name, PIN: nonEmpty(pin), StartsAt: utc(c.StartsAt), EndsAt: utc(c.EndsAt)}, err
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

// codeChange is a difference between two states; the names are those of the API's events.
type codeChange struct {
	what       string // name, code or time_frame
	properties []string
	from, to   map[string]any
}

// secret says whether it has PINs in it.
func (c codeChange) secret() bool { return c.what == "code" }

// changes are the differences that lead from one state to another.
func (from codeState) changes(to codeState) (out []codeChange) {
	if text(from.Name) != text(to.Name) {
		out = append(out, codeChange{"name", []string{"name"}, map[string]any{"name": from.Name}, map[string]any{"name": to.Name}})
	}
	if text(from.PIN) != text(to.PIN) {
		out = append(out, codeChange{"code", []string{"code"}, map[string]any{"code": from.PIN}, map[string]any{"code": to.PIN}})
	}
	if !sameTime(from.StartsAt, to.StartsAt) || !sameTime(from.EndsAt, to.EndsAt) {
		out = append(out, codeChange{"time_frame", []string{"starts_at", "ends_at"},
			map[string]any{"starts_at": from.StartsAt, "ends_at": from.EndsAt}, map[string]any{"starts_at": to.StartsAt, "ends_at": to.EndsAt}})
	}
	return out
}

// emitRequested tells what was asked for about a code; the change is not on its device yet.
func (s *Service) emitRequested(ctx context.Context, tx store.Tx, a about, changes []codeChange) error {
	mutations, properties := []map[string]any{}, []map[string]any{}
	secret := false
	for _, c := range changes {
		mutations = append(mutations, map[string]any{"mutation_code": "updating_" + c.what, "from": c.from, "to": c.to})
		for _, p := range c.properties {
			properties = append(properties, map[string]any{"property": p, "from": c.from[p], "to": c.to[p]})
		}
		secret = secret || c.secret()
	}
	put := about.with
	if secret {
		put = about.hiding
	}
	if err := s.emit(ctx, tx, mutationsRequested, put(a, "requested_mutations", mutations)); err != nil {
		return err
	}
	return s.emit(ctx, tx, "access_code.changed", put(a, "changed_properties", properties).with("change_reason", "requested"))
}

// emitMutation tells that a code was asked for, or asked to be taken away.
func (s *Service) emitMutation(ctx context.Context, tx store.Tx, a about, mutation string) error {
	return s.emit(ctx, tx, mutationsRequested, asking(a, mutation))
}

const mutationsRequested = "access_code.mutations_requested"

// asking is about a code for which that mutation was asked.
func asking(a about, mutation string) about {
	return a.with("requested_mutations", []map[string]any{{"mutation_code": mutation}})
}

func appliedPlace(code uuid.UUID) string { return "access_codes.applied/" + code.String() }

// appliedOf is what the device has confirmed of a code; nil where that is not known.
func (s *Service) appliedOf(c dbsqlc.AccessCode) (*codeState, error) {
	if c.AppliedSealed == nil {
		return nil, nil
	}
	opened, err := s.keys.Open(appliedPlace(c.AccessCodeID), c.AppliedSealed)
	if err != nil {
		return nil, fmt.Errorf("open what the device has of access code %s: %w", c.AccessCodeID, err)
	}
	var state codeState
	if json.Unmarshal(opened, &state) != nil {
		return nil, fmt.Errorf("read what the device has of access code %s", c.AccessCodeID) // the error may quote a PIN
	}
	return &state, nil
}

// confirmed notes what the device has of a code now, and tells how that differs from what it had before; by says
// through whom it has changed.
func (t *deviceTx) confirmed(ctx context.Context, c *dbsqlc.AccessCode, by string) error {
	state, err := t.s.stateOf(*c)
	if err != nil {
		return err
	}
	return t.confirmedAs(ctx, c, state, by)
}

func (t *deviceTx) confirmedAs(ctx context.Context, c *dbsqlc.AccessCode, state codeState, by string) error {
	was, err := t.s.appliedOf(*c)
	if err != nil {
		return err
	}
	c.AppliedSealed = t.s.keys.Seal(appliedPlace(c.AccessCodeID), mustJSON(state))
	if was == nil {
		return nil
	}
	for _, change := range was.changes(state) {
		put := about.with
		if change.secret() {
			put = about.hiding
		}
		a := put(put(aboutCode(t.d, *c), "from", change.from), "to", change.to)
		if err := t.s.emit(ctx, t.tx, "access_code."+change.what+"_changed", a.with("description", by)); err != nil {
			return err
		}
	}
	return nil
}

const (
	changedByRequest  = "It was changed through the API, and the device has confirmed."
	changedExternally = "It was changed at the device."
)

const (
	warnDelaySetting  = "delay_in_setting_on_device"
	warnDelayRemoving = "delay_in_removing_from_device"
	warnDelayIssuing  = "delay_in_issuing"
)

// warnsOfDelay says whether the warning that a code has is that of a delay.
func warnsOfDelay(c dbsqlc.AccessCode) bool {
	return slices.Contains([]string{warnDelaySetting, warnDelayRemoving, warnDelayIssuing}, text(c.WarningCode))
}

// delay is the warning of a code that is not yet as it should be, and since when that is a delay; empty where it is as
// it should be, or waits for nothing.
func (t *deviceTx) delay(c *dbsqlc.AccessCode) (warning, message string, late time.Time) {
	var since time.Time
	switch {
	case !c.IsManaged:
	case c.RemovingSince != nil:
		warning, since = warnDelayRemoving, *c.RemovingSince
		message = "The code has not been removed from its device for a while. It is tried further: until then the code may still open."
	case c.AppliedGen < c.DesiredGen && c.BlockedGen < c.DesiredGen:
		warning, since = warnDelaySetting, c.DesiredAt
		if when := programAt(*c, t.caps); when != nil && when.After(since) {
			since = *when
		}
		message = "The code has not been set on its device for a while. It is tried further."
		if offline(*c) {
			warning, message = warnDelayIssuing, "The vendor has not made the code for a while. It is asked further."
		}
	}
	return warning, message, since.Add(t.s.opt.DelayAfter)
}

// tellDelay warns of a delay, once, and of none any more that is over.
func (t *deviceTx) tellDelay(ctx context.Context, c *dbsqlc.AccessCode) error {
	warning, message, late := t.delay(c)
	if warnsOfDelay(*c) && (text(c.WarningCode) != warning || at(c.WarningAt).Before(late)) {
		clearWarning(c)
	}
	if warning == "" || warning == text(c.WarningCode) || late.After(t.now) {
		return nil
	}
	t.warn(c, warning, message)
	return t.emitTrouble(ctx, "access_code."+warning, c)
}

// aboutWithPIN is about a code, with its PIN for the types that carry one: null where it is not known.
func (s *Service) aboutWithPIN(d dbsqlc.Device, c dbsqlc.AccessCode) (about, error) {
	a := aboutCode(d, c)
	pin, err := s.pinOf(c)
	if err != nil || pin == "" {
		return a.with("code", nil), err
	}
	return a.hiding("code", pin), nil
}
