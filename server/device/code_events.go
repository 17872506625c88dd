package device

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// codeState holds the fields of a code that clients can change, and the name that its device got.
type codeState struct {
	Name     *string    `json:"name"`
	PIN      *string    `json:"code"`
	StartsAt *time.Time `json:"starts_at"`
	EndsAt   *time.Time `json:"ends_at"`
	// VendorName is nil in states without a name of their own for the device, which got Name.
	VendorName *string `json:"vendor_name,omitempty"`
}

func (s codeState) vendorName() string { return domain.Value(cmp.Or(s.VendorName, s.Name)) }

func (s *Service) stateOf(c dbsqlc.AccessCode) (codeState, error) {
	pin, err := s.pinOf(c)
	return codeState{
		Name:       c.Name,
		PIN:        domain.NonEmpty(pin),
		StartsAt:   utc(c.StartsAt),
		EndsAt:     utc(c.EndsAt),
		VendorName: c.VendorName,
	}, err
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

// codeChange is one difference between two states. Its names are those of the API's events.
type codeChange struct {
	// what is name, code, or time_frame.
	what       string
	properties []string
	from, to   map[string]any
}

// secret reports whether the change contains PINs.
func (c codeChange) secret() bool { return c.what == "code" }

// changes returns the changes that lead from one state to another.
func (from codeState) changes(to codeState) (out []codeChange) {
	if domain.Value(from.Name) != domain.Value(to.Name) {
		out = append(out, codeChange{
			what:       "name",
			properties: []string{"name"},
			from:       map[string]any{"name": from.Name},
			to:         map[string]any{"name": to.Name},
		})
	}
	if domain.Value(from.PIN) != domain.Value(to.PIN) {
		out = append(out, codeChange{
			what:       "code",
			properties: []string{"code"},
			from:       map[string]any{"code": from.PIN},
			to:         map[string]any{"code": to.PIN},
		})
	}
	if !sameTime(from.StartsAt, to.StartsAt) || !sameTime(from.EndsAt, to.EndsAt) {
		out = append(out, codeChange{
			what:       "time_frame",
			properties: []string{"starts_at", "ends_at"},
			from:       map[string]any{"starts_at": from.StartsAt, "ends_at": from.EndsAt},
			to:         map[string]any{"starts_at": to.StartsAt, "ends_at": to.EndsAt},
		})
	}
	return out
}

// emitRequested emits the events of a requested change of a code, which is not on its device yet.
func (s *Service) emitRequested(ctx context.Context, tx store.Tx, a event.About, changes []codeChange) error {
	mutations, properties := []map[string]any{}, []map[string]any{}
	secret := false
	for _, c := range changes {
		mutations = append(mutations, map[string]any{"mutation_code": "updating_" + c.what, "from": c.from, "to": c.to})
		for _, p := range c.properties {
			properties = append(properties, map[string]any{"property": p, "from": c.from[p], "to": c.to[p]})
		}
		secret = secret || c.secret()
	}
	put := event.About.With
	if secret {
		put = event.About.WithSecret
	}
	if err := s.events.Emit(ctx, tx, mutationsRequested, put(a, "requested_mutations", mutations)); err != nil {
		return err
	}
	return s.events.Emit(
		ctx, tx, "access_code.changed", put(a, "changed_properties", properties).With("change_reason", "requested"),
	)
}

// emitMutation emits the event of a requested creation or removal of a code.
func (s *Service) emitMutation(ctx context.Context, tx store.Tx, a event.About, mutation string) error {
	return s.events.Emit(ctx, tx, mutationsRequested, withRequestedMutation(a, mutation))
}

const mutationsRequested = "access_code.mutations_requested"

// withRequestedMutation adds a requested mutation to the fields of an event.
func withRequestedMutation(a event.About, mutation string) event.About {
	return a.With("requested_mutations", []map[string]any{{"mutation_code": mutation}})
}

func appliedPlace(code uuid.UUID) string { return "access_codes.applied/" + code.String() }

// appliedOf returns the state of a code that its device has confirmed, nil if unknown.
func (s *Service) appliedOf(c dbsqlc.AccessCode) (*codeState, error) {
	if c.AppliedSealed == nil {
		return nil, nil
	}
	opened, err := s.keys.Open(appliedPlace(c.AccessCodeID), c.AppliedSealed)
	if err != nil {
		return nil, fmt.Errorf("open the confirmed state of access code %s: %w", c.AccessCodeID, err)
	}
	var state codeState
	if json.Unmarshal(opened, &state) != nil {
		// The error may quote a PIN, so it is not wrapped.
		return nil, fmt.Errorf("read the confirmed state of access code %s", c.AccessCodeID)
	}
	return &state, nil
}

// recordConfirmed records that the device has the code's desired state and emits the differences from the last
// confirmed one. by describes the author of the change.
func (t *deviceTx) recordConfirmed(ctx context.Context, c *dbsqlc.AccessCode, by string) error {
	state, err := t.s.stateOf(*c)
	if err != nil {
		return err
	}
	return t.recordConfirmedAs(ctx, c, state, by)
}

// recordConfirmedAs is recordConfirmed for a state that differs from the desired one.
func (t *deviceTx) recordConfirmedAs(ctx context.Context, c *dbsqlc.AccessCode, state codeState, by string) error {
	was, err := t.s.appliedOf(*c)
	if err != nil {
		return err
	}
	c.AppliedSealed = t.s.keys.Seal(appliedPlace(c.AccessCodeID), domain.MustJSON(state))
	if was == nil {
		return nil
	}
	for _, change := range was.changes(state) {
		put := event.About.With
		if change.secret() {
			put = event.About.WithSecret
		}
		a := put(put(event.AboutCode(t.d, *c), "from", change.from), "to", change.to)
		if err := t.s.events.Emit(
			ctx,
			t.tx,
			"access_code."+change.what+"_changed",
			a.With("description", by),
		); err != nil {
			return err
		}
	}
	return nil
}

const (
	changedByRequest  = "The change was requested through the API and confirmed by the device."
	changedExternally = "The change was made at the device."
)

const (
	warnDelaySetting  = "delay_in_setting_on_device"
	warnDelayRemoving = "delay_in_removing_from_device"
	warnDelayIssuing  = "delay_in_issuing"
)

// warnsOfDelay reports whether the warning of a code is one of the delay warnings.
func warnsOfDelay(c dbsqlc.AccessCode) bool {
	return slices.Contains(
		[]string{warnDelaySetting, warnDelayRemoving, warnDelayIssuing},
		domain.Value(c.WarningCode),
	)
}

// delay returns the warning of a code that has a pending operation, and the time from which the operation counts as
// delayed. The warning is empty for a code without a pending operation.
func (t *deviceTx) delay(c *dbsqlc.AccessCode) (warning, message string, late time.Time) {
	var since time.Time
	switch {
	case !c.IsManaged:
	case c.RemovingSince != nil:
		warning, since = warnDelayRemoving, *c.RemovingSince
		message = "The code has not been removed from its device for a while. " +
			"The server keeps retrying: until then the code may still open."
	case c.AppliedGen < c.DesiredGen && c.BlockedGen < c.DesiredGen:
		warning, since = warnDelaySetting, c.DesiredAt
		if when := programAt(*c, t.caps); when != nil && when.After(since) {
			since = *when
		}
		if c.StartsAt != nil && c.Status == string(StatusUnset) && !mayBeOnDevice(*c) { // or waits for its turn
			since = *c.StartsAt
		}
		message = "The code has not been set on its device for a while. The server keeps retrying."
		if offline(*c) {
			warning = warnDelayIssuing
			message = "The vendor has not issued the code for a while. The server keeps retrying."
		}
	}
	return warning, message, since.Add(t.s.opt.DelayAfter)
}

// updateDelayWarning sets the warning of a delay, with one event, and clears the warning of a delay that has ended.
func (t *deviceTx) updateDelayWarning(ctx context.Context, c *dbsqlc.AccessCode) error {
	warning, message, late := t.delay(c)
	if warnsOfDelay(*c) && (domain.Value(c.WarningCode) != warning || domain.Value(c.WarningAt).Before(late)) {
		clearWarning(c)
	}
	if warning == "" || warning == domain.Value(c.WarningCode) || late.After(t.now) {
		return nil
	}
	t.warn(c, warning, message)
	return t.emitProblem(ctx, "access_code."+warning, c)
}

// aboutWithPIN returns the fields of an event about a code, including its PIN (null if unknown).
func (s *Service) aboutWithPIN(d dbsqlc.Device, c dbsqlc.AccessCode) (event.About, error) {
	a := event.AboutCode(d, c)
	pin, err := s.pinOf(c)
	if err != nil || pin == "" {
		return a.With("code", nil), err
	}
	return a.WithSecret("code", pin), nil
}
