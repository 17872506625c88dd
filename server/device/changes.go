package device

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// maxBatch is how many statements a transaction sends in its last round trip.
const maxBatch = 100

// write writes the changes of the lock. last sends the last statements.
func (t *deviceTx) write(ctx context.Context, last together) error {
	steps, err := t.statements(ctx)
	if err != nil {
		return err
	}
	events, err := t.eventStatements(ctx)
	if err != nil {
		return err
	}
	steps = append(append(steps, events...), t.last...)
	for len(steps) > maxBatch {
		if err := t.tx.Batch(ctx, steps[:maxBatch]...); err != nil {
			return err
		}
		steps = steps[maxBatch:]
	}
	if len(steps) == 0 {
		return nil
	}
	return last(ctx, steps...)
}

// collect moves the changes of the lock, so that later events follow theirs.
func (t *deviceTx) collect(ctx context.Context) error {
	return t.merge(ctx, t.lock.Changes(nil))
}

// merge adds changes of the lock to those that were collected.
func (t *deviceTx) merge(ctx context.Context, c lockstate.Changes) error {
	for _, e := range c.Events {
		if err := t.announce(ctx, e); err != nil {
			return err
		}
	}
	t.changes.Append(c)
	return nil
}

// emit adds an event after those of the lock.
func (t *deviceTx) emit(ctx context.Context, eventType string, about event.About) error {
	if err := t.collect(ctx); err != nil {
		return err
	}
	t.events = append(t.events, event.Occurrence{Type: eventType, About: about})
	return nil
}

// statements returns the statements that write the changes of the lock, besides its events.
func (t *deviceTx) statements(ctx context.Context) (steps []func(store.Tx) error, err error) {
	changes := t.lock.Changes(t.before)
	if err := t.merge(ctx, changes); err != nil {
		return nil, err
	}
	t.changes.Updated = changes.Updated
	if steps, err = t.codeStatements(ctx); err != nil {
		return nil, err
	}
	for _, r := range t.changes.Requested {
		row := t.newAttempt(r)
		steps = append(steps, func(tx store.Tx) (err error) {
			t.answered[r.ID], err = tx.InsertActionAttempt(ctx, row)
			return err
		})
	}
	for _, e := range t.changes.Ended {
		steps = append(steps, t.endStatement(ctx, e))
	}
	device, err := t.deviceStatements(ctx)
	return append(steps, device...), err
}

// moved returns the codes whose reference becomes free or changes.
func (t *deviceTx) moved() (codes []uuid.UUID) {
	for _, c := range t.changes.Updated {
		if was := t.before[c.ID].Ref; was != "" && was != c.Ref {
			codes = append(codes, c.ID)
		}
	}
	return codes
}

// codeStatements returns the statements that write the codes. References are unique, so those that become free come
// first.
func (t *deviceTx) codeStatements(ctx context.Context) (steps []func(store.Tx) error, err error) {
	if gone := t.changes.Deleted; len(gone) > 0 {
		steps = append(steps, func(tx store.Tx) error { return tx.DeleteAccessCodes(ctx, gone) })
	}
	if len(t.changes.Tombstones) > 0 {
		steps = append(steps, t.tombstoneStatements(ctx)...)
	}
	if moved := t.moved(); len(moved) > 0 {
		steps = append(steps, func(tx store.Tx) error { return tx.ClearVendorRefs(ctx, moved) })
	}
	for _, c := range t.changes.Updated {
		before := t.before[c.ID]
		sealed, err := t.pins.sealPINs(c, &before, t.rows[c.ID])
		if err != nil {
			return nil, err
		}
		row := updateOf(c, sealed)
		steps = append(steps, func(tx store.Tx) error { return tx.UpdateAccessCode(ctx, row) })
	}
	for _, c := range t.changes.Added {
		if slices.Contains(t.changes.Deleted, c.ID) {
			continue
		}
		added, err := t.insertStatements(ctx, c)
		if err != nil {
			return nil, err
		}
		steps = append(steps, added...)
	}
	return steps, nil
}

// insertStatements returns the statements that write a new code. What the insertion cannot store follows in an update.
func (t *deviceTx) insertStatements(ctx context.Context, c *lockstate.Code) (steps []func(store.Tx) error, err error) {
	sealed, err := t.pins.sealPINs(c, nil, dbsqlc.AccessCode{})
	if err != nil {
		return nil, err
	}
	row, whole := insertOf(t.d, c, sealed), updateOf(c, sealed)
	steps = append(steps, func(tx store.Tx) (err error) {
		t.inserted[c.ID], err = tx.InsertAccessCode(ctx, row)
		return err
	})
	pin := dbsqlc.AccessCode{PinSealed: sealed.PinSealed, PinMac: sealed.PinMac}
	if !reflect.DeepEqual(whole, updateOf(inserted(c), pin)) {
		steps = append(steps, func(tx store.Tx) error { return tx.UpdateAccessCode(ctx, whole) })
	}
	return steps, nil
}

// tombstoneTTL is how long a tombstone recognizes the late arrival of a deleted code.
const tombstoneTTL = 30 * 24 * time.Hour

func (t *deviceTx) tombstoneStatements(ctx context.Context) []func(store.Tx) error {
	old := dbsqlc.DeleteOldAccessCodeTombstonesParams{DeviceID: t.d.DeviceID, Before: t.now.Add(-tombstoneTTL)}
	steps := []func(store.Tx) error{
		func(tx store.Tx) error { return tx.DeleteOldAccessCodeTombstones(ctx, old) },
	}
	for _, id := range t.changes.Tombstones {
		steps = append(steps, func(tx store.Tx) error {
			return tx.InsertAccessCodeTombstone(ctx, dbsqlc.InsertAccessCodeTombstoneParams{
				AccessCodeID: id,
				DeviceID:     t.d.DeviceID,
				DeletedAt:    t.now,
			})
		})
	}
	return steps
}

func (t *deviceTx) endStatement(ctx context.Context, e lockstate.Ended) func(store.Tx) error {
	t.tx.AfterCommit(func() { t.s.waiting.notify(e.Attempt.ID) })
	row := finishOf(e.Attempt.ID, e.Status, e.ErrorType, e.Message)
	return func(tx store.Tx) error { _, err := tx.FinishActionAttempt(ctx, row); return err }
}

// deviceStatements returns the statements that write what the lock changed about the device.
func (t *deviceTx) deviceStatements(ctx context.Context) (steps []func(store.Tx) error, err error) {
	if pool := domain.MustJSON(t.lock.Device.Pool); string(pool) != string(domain.MustJSON(readPool(t.d))) {
		steps = append(steps, func(tx store.Tx) error {
			return tx.SetBackupPool(ctx, dbsqlc.SetBackupPoolParams{DeviceID: t.d.DeviceID, BackupPool: pool})
		})
	}
	if read := t.changes.Read; read != nil {
		row := dbsqlc.SetDeviceReadParams{
			DeviceID:   t.d.DeviceID,
			WakeSeq:    t.seq,
			RereadAt:   read.RereadAt,
			EmptySince: read.EmptySince,
		}
		steps = append(steps, func(tx store.Tx) error { return tx.SetDeviceRead(ctx, row) })
	}
	if t.changes.Wake {
		if !t.inPass {
			if err := t.s.waker.Wake(ctx, t.tx, domain.DeviceLane, t.d.DeviceID); err != nil {
				return nil, err
			}
		}
		row := dbsqlc.WakeDeviceParams{DeviceID: t.d.DeviceID, ReadNeeded: t.changes.WakeToRead}
		steps = append(steps, func(tx store.Tx) error { return tx.WakeDevice(ctx, row) })
	}
	return steps, nil
}

// eventStatements returns the statements that write the events. Each payload may have 100 kB of metadata, so it writes
// many of them itself.
func (t *deviceTx) eventStatements(ctx context.Context) (steps []func(store.Tx) error, err error) {
	if len(t.events) > maxBatch/2 {
		return nil, t.s.events.EmitAll(ctx, t.tx, t.events)
	}
	return t.s.events.Statements(ctx, t.tx, t.events)
}

// announce adds an event of the lock.
func (t *deviceTx) announce(ctx context.Context, e lockstate.Event) error {
	if e.Ended != nil {
		t.announceEnd(*e.Ended)
		return nil
	}
	about := event.AboutDevice(t.d)
	about.Code, about.Silent = &e.Code, e.Silent
	var err error
	switch {
	case e.HasPIN:
		if about, err = t.withPIN(about, e.PIN); err != nil {
			return err
		}
	case e.Change != nil:
		if about, err = t.withChange(about, *e.Change, e.Description); err != nil {
			return err
		}
	case e.Requested != nil:
		if about, err = t.withRequested(about, e); err != nil {
			return err
		}
	case e.Mutation != "":
		about = withRequestedMutation(about, e.Mutation)
	case e.BackupCode != uuid.Nil:
		about = about.With("backup_access_code_id", e.BackupCode)
	case e.Problems:
		if about, err = t.s.withProblems(ctx, t.tx, about, t.d); err != nil {
			return err
		}
		about = about.With("access_code_errors", problemFields("error_code", e.Errors)).
			With("access_code_warnings", problemFields("warning_code", e.Warnings))
	}
	t.events = append(t.events, event.Occurrence{Type: e.Type, About: about})
	return nil
}

// announceEnd adds the event of the end of an attempt, if its type has one.
func (t *deviceTx) announceEnd(e lockstate.Ended) {
	if occurrence, announced := endOf(t.d, e.Attempt.ID, e.Attempt.Type, e.Status); announced {
		t.events = append(t.events, occurrence)
	}
}

// endOf returns the event of the end of an attempt, if its type has one.
func endOf(d dbsqlc.Device, id uuid.UUID, actionType string, status AttemptStatus) (event.Occurrence, bool) {
	prefix, announced := event.AttemptEvents[actionType]
	outcome := ".succeeded"
	if status == Failed {
		outcome = ".failed"
	}
	return event.Occurrence{
		Type: prefix + outcome,
		About: event.AboutDevice(d).With("action_attempt_id", id).With("action_type", actionType).
			With("status", string(status)),
	}, announced
}

func problemFields(field string, problems []lockstate.Problem) []map[string]any {
	var out []domain.Problem
	for _, p := range problems {
		out = append(out, domain.Problem{Code: p.Code, Message: p.Message, Scope: domain.OfCode, At: p.At})
	}
	return domain.ProblemFields(field, out)
}

// withPIN adds the PIN of a code to an event, null if unknown.
func (t *deviceTx) withPIN(about event.About, pin lockstate.PIN) (event.About, error) {
	digits, err := t.pins.digits(pin)
	if err != nil || digits == "" {
		return about.With("code", nil), err
	}
	return about.WithSecret("code", digits), nil
}

// withChange adds a confirmed change to an event.
func (t *deviceTx) withChange(about event.About, c lockstate.FieldChange, by string) (event.About, error) {
	change, err := t.changeFields(c)
	if err != nil {
		return about, err
	}
	put := change.put()
	return put(put(about, "from", change.from), "to", change.to).With("description", by), nil
}

// withRequested adds requested changes to an event, in the form of its type.
func (t *deviceTx) withRequested(about event.About, e lockstate.Event) (event.About, error) {
	mutations, properties := []map[string]any{}, []map[string]any{}
	put := event.About.With
	for _, requested := range e.Requested {
		c, err := t.changeFields(requested)
		if err != nil {
			return about, err
		}
		mutations = append(mutations, map[string]any{"mutation_code": "updating_" + c.what, "from": c.from, "to": c.to})
		for _, p := range c.properties {
			properties = append(properties, map[string]any{"property": p, "from": c.from[p], "to": c.to[p]})
		}
		if c.secret() {
			put = event.About.WithSecret
		}
	}
	if e.Type == lockstate.MutationsRequested {
		return put(about, "requested_mutations", mutations), nil
	}
	return put(about, "changed_properties", properties).With("change_reason", "requested"), nil
}

// withRequestedMutation adds a requested mutation to the fields of an event.
func withRequestedMutation(a event.About, mutation string) event.About {
	return a.With("requested_mutations", []map[string]any{{"mutation_code": mutation}})
}

// codeChange is one difference between two states. Its names are those of the API's events.
type codeChange struct {
	// what is name, code, or time_frame.
	what       string
	properties []string
	from, to   map[string]any
}

// secret reports whether the change contains PINs.
func (c codeChange) secret() bool { return c.what == lockstate.CodeField }

// put returns the function that adds a field of the change to an event.
func (c codeChange) put() func(event.About, string, any) event.About {
	if c.secret() {
		return event.About.WithSecret
	}
	return event.About.With
}

func (t *deviceTx) changeFields(c lockstate.FieldChange) (codeChange, error) {
	return t.pins.changeFields(c)
}

// changeFields returns a change with its digits.
func (p pinDigits) changeFields(c lockstate.FieldChange) (codeChange, error) {
	from, err := p.state(c.From)
	if err != nil {
		return codeChange{}, err
	}
	to, err := p.state(c.To)
	if err != nil {
		return codeChange{}, err
	}
	out := codeChange{what: c.Field}
	switch c.Field {
	case lockstate.NameField:
		out.properties = []string{"name"}
		out.from, out.to = map[string]any{"name": from.Name}, map[string]any{"name": to.Name}
	case lockstate.CodeField:
		out.properties = []string{"code"}
		out.from, out.to = map[string]any{"code": from.PIN}, map[string]any{"code": to.PIN}
	case lockstate.TimeFrameField:
		out.properties = []string{"starts_at", "ends_at"}
		out.from = map[string]any{"starts_at": from.StartsAt, "ends_at": from.EndsAt}
		out.to = map[string]any{"starts_at": to.StartsAt, "ends_at": to.EndsAt}
	default:
		return out, fmt.Errorf("the change of %q has no event", c.Field)
	}
	return out, nil
}
