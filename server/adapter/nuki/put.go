package nuki

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
)

// PutCode implements adapter.Adapter. A created code is found by what was sent (adapter.SentCodes). PutCode fails
// with Unconfirmed while the list does not show it, and sends it again only after Timing.Resend.
func (a *Adapter) PutCode(
	ctx context.Context, device adapter.DeviceRef, spec adapter.CodeSpec,
) (result adapter.PutResult, err error) {
	result, err = a.put(ctx, device, spec)
	// An earlier call with the same key may have written something.
	if err != nil && ctx.Err() != nil && adapter.ClassOf(err) == adapter.Transient {
		err = fmt.Errorf(
			"%w (%w)",
			adapter.Errorf(adapter.Unconfirmed, "the write ended before its outcome was known"),
			ctx.Err(),
		)
	}
	return result, err
}

func (a *Adapter) put(
	ctx context.Context, device adapter.DeviceRef, spec adapter.CodeSpec,
) (result adapter.PutResult, err error) {
	w, err := a.ready(ctx, device)
	if err != nil {
		return result, err
	}
	if err := check(w, spec); err != nil {
		return result, err
	}
	list, err := a.authsOf(ctx, w.ID)
	if err != nil {
		return result, unsent(err)
	}
	if spec.Ref == "" {
		return a.create(ctx, w, spec, list)
	}
	i := slices.IndexFunc(list, func(c wireAuth) bool { return c.ID == string(spec.Ref) })
	if i < 0 {
		return result, adapter.Errorf(adapter.NotFound, "the lock does not have this code")
	}
	return a.change(ctx, spec, list, list[i])
}

// check returns why a lock cannot accept spec.
func check(w wireLock, spec adapter.CodeSpec) error {
	length := utf8.RuneCountInString(spec.Name)
	switch {
	case !w.hasKeypad():
		return errNoKeypad()
	case len(spec.PIN) != pinLength || strings.Trim(spec.PIN, "123456789") != "":
		return adapter.Errorf(adapter.Invalid, "a PIN of a Nuki lock has six digits from 1 to 9")
	case strings.HasPrefix(spec.PIN, "12"):
		return adapter.Errorf(adapter.Invalid, "a PIN of a Nuki lock cannot start with 12")
	case length < 1 || length > maxNameLength:
		return adapter.Errorf(
			adapter.Invalid,
			"the name of a code of a Nuki lock has 1 to %d characters",
			maxNameLength,
		)
	case (spec.StartsAt == nil) != (spec.EndsAt == nil):
		return adapter.Errorf(adapter.Invalid, "a time frame needs a start and an end")
	case spec.StartsAt != nil && !spec.EndsAt.After(*spec.StartsAt):
		return adapter.Errorf(adapter.Invalid, "a time frame must end after its start")
	case len(spec.Key) > 64:
		return adapter.Errorf(adapter.Invalid, "the key has more than 64 characters")
	}
	return nil
}

// duplicate returns the error of a PIN that another code of the list has, or nil.
func duplicate(list []wireAuth, pin, own string) error {
	for _, c := range list {
		if c.pin() == pin && c.ID != own {
			e := adapter.Errorf(adapter.Duplicate, "the lock has a code with this PIN")
			e.Conflict = adapter.CodeRef(c.ID)
			return e
		}
	}
	return nil
}

func (a *Adapter) create(
	ctx context.Context, w wireLock, spec adapter.CodeSpec, list []wireAuth,
) (result adapter.PutResult, err error) {
	at := creation{w.ID, spec.Key}
	if c, ok := a.made.find(at, list); ok && spec.Key != "" {
		return a.complete(ctx, spec, list, c)
	}
	if err := duplicate(list, spec.PIN, ""); err != nil {
		return result, err
	}
	if left := a.made.pending(at, a.timing.Resend, time.Now()); left > 0 {
		return result, a.notShown(left)
	}
	if len(list) >= w.maxCodes() {
		return result, adapter.Errorf(adapter.Full, "the lock has %d codes, and has no room for another", len(list))
	}
	body, err := newRequest(spec)
	if err != nil {
		return result, err
	}
	body.Type = keypadCode
	before := a.made.send(at, spec, time.Now())
	err = a.write(ctx, vendorhttp.Call{Method: http.MethodPut, Path: lockPath(w.ID) + "/auth", JSON: body})
	switch class := adapter.ClassOf(err); {
	case err != nil && class == adapter.Duplicate && before: // the earlier creation has arrived after all
		return result, a.notShown(a.timing.Busy)
	case err != nil:
		if class != adapter.Unconfirmed {
			a.made.cancel(at)
		}
		return result, err
	}
	return a.readBack(ctx, w.ID, at)
}

// readBack waits for a created code in the list.
func (a *Adapter) readBack(ctx context.Context, id int64, at creation) (result adapter.PutResult, err error) {
	for _, pause := range a.timing.ReadBack {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return result, fmt.Errorf("%w (%w)", a.notShown(0), ctx.Err())
		}
		list, err := a.authsOf(ctx, id)
		if err != nil {
			continue
		}
		if c, ok := a.made.find(at, list); ok {
			return adapter.PutResult{Ref: adapter.CodeRef(c.ID), State: adapter.Accepted}, nil
		}
	}
	return result, a.notShown(a.made.pending(at, a.timing.Resend, time.Now()))
}

// lookAgain bounds the pause before the next look for a created code.
const lookAgain = 30 * time.Second

func (a *Adapter) notShown(left time.Duration) *adapter.Error {
	e := adapter.Errorf(adapter.Unconfirmed, "Nuki has accepted the code, and does not list it yet")
	e.RetryAfter = min(left, lookAgain)
	return e
}

// complete returns the existing code of a repeated creation, changed to spec if it differs.
func (a *Adapter) complete(
	ctx context.Context, spec adapter.CodeSpec, list []wireAuth, c wireAuth,
) (adapter.PutResult, error) {
	ref := adapter.CodeRef(c.ID)
	if c.matches(spec) {
		return adapter.PutResult{Ref: ref, State: adapter.Accepted}, nil
	}
	result, err := a.change(ctx, spec, list, c)
	result.Ref = ref // even if the change has failed
	return result, err
}

// change changes a code of the list. It keeps what the adapter does not manage.
func (a *Adapter) change(
	ctx context.Context, spec adapter.CodeSpec, list []wireAuth, c wireAuth,
) (result adapter.PutResult, err error) {
	if err := duplicate(list, spec.PIN, c.ID); err != nil {
		return result, err
	}
	body, err := newRequest(spec)
	if err != nil {
		return result, err
	}
	body.Enabled, body.Remote = new(true), c.Remote
	body.FromTime, body.UntilTime = c.FromTime, c.UntilTime
	if c.WeekDays != nil {
		body.WeekDays = *c.WeekDays
	}
	err = a.write(ctx, vendorhttp.Call{Method: http.MethodPost, Path: authPath(c.SmartlockID, c.ID), JSON: body})
	if err != nil {
		return result, err
	}
	return adapter.PutResult{Ref: adapter.CodeRef(c.ID), State: adapter.Accepted}, nil
}

// write sends a write of codes.
func (a *Adapter) write(ctx context.Context, call vendorhttp.Call) error {
	call.Write = true
	defer a.auths.forget()
	return a.do(ctx, call, nil)
}

// DeleteCode implements adapter.Adapter. A deletion that Nuki has accepted may be lost; only a list without the code
// confirms it.
func (a *Adapter) DeleteCode(
	ctx context.Context, device adapter.DeviceRef, code adapter.CodeRef,
) (adapter.State, error) {
	w, err := a.ready(ctx, device)
	if err != nil {
		return "", err
	}
	list, err := a.authsOf(ctx, w.ID)
	if err != nil {
		return "", unsent(err)
	}
	if !slices.ContainsFunc(list, func(c wireAuth) bool { return c.ID == string(code) }) {
		return adapter.Confirmed, nil
	}
	err = a.write(ctx, vendorhttp.Call{Method: http.MethodDelete, Path: authPath(w.ID, string(code))})
	switch {
	case err != nil && adapter.ClassOf(err) == adapter.NotFound:
		return adapter.Confirmed, nil
	case err != nil:
		return "", err
	}
	return adapter.Accepted, nil
}

// creation identifies a creation of this adapter.
type creation struct {
	lock int64
	key  string
}

// creations remembers which codes were created, and which creations have not shown yet. The zero value is ready.
type creations struct {
	mu sync.Mutex
	// keys are the creations of codes by identifier.
	keys map[string]creation
	sent map[creation]sentCode
}

type sentCode struct {
	codes adapter.SentCodes
	// at is the time of the last attempt.
	at time.Time
}

// maxCreations bounds each map of creations. Without their memory, a list still shows each code by its PIN.
const maxCreations = 10_000

// find returns the code of a creation.
func (m *creations) find(at creation, list []wireAuth) (wireAuth, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	sent, waits := m.sent[at]
	for _, c := range list {
		key, known := m.keys[c.ID]
		switch {
		case known && key == at && at.key != "":
			delete(m.sent, at)
			return c, true
		case !known && waits && sent.codes.Has(c.code()):
			if m.keys == nil || len(m.keys) >= maxCreations {
				m.keys = map[string]creation{}
			}
			m.keys[c.ID] = at
			delete(m.sent, at)
			return c, true
		}
	}
	return wireAuth{}, false
}

// pending returns how long a creation still may show; 0: it was not sent, or long ago.
func (m *creations) pending(at creation, within time.Duration, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	sent, waits := m.sent[at]
	if !waits || at.key == "" {
		return 0
	}
	return max(0, within-now.Sub(sent.at))
}

// send records that a creation is sent while no listed code has its PIN, and reports whether it was sent before.
func (m *creations) send(at creation, spec adapter.CodeSpec, now time.Time) (before bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	earlier, before := m.sent[at]
	if m.sent == nil || len(m.sent) >= maxCreations {
		m.sent = map[creation]sentCode{}
	}
	m.sent[at] = sentCode{earlier.codes.With(spec), now}
	return before
}

// cancel records that a creation was refused.
func (m *creations) cancel(at creation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sent, at)
}
