package ttlock

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// wireCode is a passcode in a list.
type wireCode struct {
	ID     number  `json:"keyboardPwdId"`
	PIN    string  `json:"keyboardPwd"`
	Name   string  `json:"keyboardPwdName"`
	Type   number  `json:"keyboardPwdType"`
	Start  number  `json:"startDate"`
	End    number  `json:"endDate"`
	Custom *number `json:"isCustom"`
	Status number  `json:"status"`
}

// Values of keyboardPwdType.
const (
	typeOneTime   = 1
	typePermanent = 2
	typePeriod    = 3
)

// Values of status, which NB-IoT locks have.
const (
	statusPending      = 3
	statusAdding       = 4
	statusAddFailed    = 5
	statusChanging     = 6
	statusChangeFailed = 7
	statusDeleting     = 8
)

// maxPINLength bounds what counts as a PIN.
const maxPINLength = 20

// offlineName begins the names of the offline codes that this program has requested. The key of the request follows.
const offlineName = "deviceaccess-"

// isOurOffline reports whether the code is an offline code of this program.
func (w wireCode) isOurOffline() bool {
	return w.Custom != nil && *w.Custom == 0 && strings.HasPrefix(w.Name, offlineName)
}

func (w wireCode) ref() adapter.CodeRef { return adapter.CodeRef(strconv.FormatInt(int64(w.ID), 10)) }

// code converts a passcode. Only period and one-time codes have a time frame that the server knows.
func (w wireCode) code() adapter.Code {
	c := adapter.Code{
		Ref:      w.ref(),
		PIN:      w.PIN,
		Name:     w.Name,
		State:    adapter.Confirmed,
		Removing: w.Status == statusDeleting,
	}
	if len(c.PIN) > maxPINLength {
		c.PIN = ""
	}
	if w.Type == typePeriod || w.Type == typeOneTime {
		c.StartsAt, c.EndsAt = w.Start.time(), w.End.time()
	}
	switch w.Status {
	case statusPending, statusAdding, statusChanging:
		c.State = adapter.Accepted
	case statusAddFailed, statusChangeFailed:
		c.State = adapter.Accepted
		c.Failed = adapter.Errorf(adapter.Transient, "the lock did not take the passcode")
	}
	return c
}

// Codes implements adapter.Adapter. TTLock lists what its cloud knows, also with fresh.
func (a *Adapter) Codes(ctx context.Context, device adapter.DeviceRef, fresh bool) (adapter.Codes, error) {
	known, err := a.ready(ctx, device)
	offline := err != nil && adapter.ClassOf(err) == adapter.Offline
	if err != nil && (fresh || !offline) {
		return adapter.Codes{}, err
	}
	list, err := a.listCodes(ctx, device)
	if err != nil {
		return adapter.Codes{}, a.missing(device, err)
	}
	out := adapter.Codes{Codes: []adapter.Code{}, Stale: offline, SerialNumber: known.device.SerialNumber}
	for _, w := range list {
		if !w.isOurOffline() {
			out.Codes = append(out.Codes, w.code())
		}
	}
	return out, nil
}

// maxListed bounds the passcodes of a lock.
const maxListed = 5000

// listCodes reads the passcodes of a lock.
func (a *Adapter) listCodes(ctx context.Context, device adapter.DeviceRef) ([]wireCode, error) {
	var list []wireCode
	params := url.Values{"lockId": {string(device)}, "orderBy": {"1"}}
	err := listPages(ctx, a, "/v3/lock/listKeyboardPwd", params, 200, func(w wireCode) error {
		switch {
		case w.ID < 1:
			return adapter.Errorf(adapter.Transient, "a passcode in TTLock's list has no keyboardPwdId")
		case len(list) == maxListed:
			return adapter.Errorf(adapter.Transient, "the lock has more than %d passcodes", maxListed)
		}
		list = append(list, w)
		return nil
	})
	if err != nil && codeOf(err) != codeNoPasscodes {
		return nil, err
	}
	refs := refsByPIN(list)
	a.known.change(device, func(l *lock) { l.refs = refs })
	return list, nil
}

func refsByPIN(list []wireCode) map[string]adapter.CodeRef {
	refs := make(map[string]adapter.CodeRef, len(list))
	for _, w := range list {
		refs[w.PIN] = w.ref()
	}
	return refs
}

// PutCode implements adapter.Adapter. TTLock stores no keys, but refuses a PIN that is on the lock: so a creation whose
// answer was lost never leads to a second code. The adapter takes the code of such a creation only if no other person
// can have made it (adapter.SentCodes).
func (a *Adapter) PutCode(
	ctx context.Context, device adapter.DeviceRef, spec adapter.CodeSpec,
) (result adapter.PutResult, err error) {
	known, err := a.ready(ctx, device)
	if err == nil {
		err = check(known.device.Capabilities, spec)
	}
	if err == nil {
		err = a.onLine(ctx, known.link, func() (err error) {
			if spec.Ref != "" {
				result, err = a.change(ctx, device, known.link, spec)
			} else {
				result, err = a.create(ctx, device, known.link, spec)
			}
			return err
		})
	}
	err = a.missing(device, err)
	// An earlier call with the same key may have written something.
	if err != nil && ctx.Err() != nil && adapter.ClassOf(err) == adapter.Transient {
		unknown := adapter.Errorf(adapter.Unconfirmed, "the write ended before its outcome was known")
		err = fmt.Errorf("%w (%w)", unknown, ctx.Err())
	}
	return result, err
}

// onLine runs a write while no other one occupies the gateway.
func (a *Adapter) onLine(ctx context.Context, l link, write func() error) error {
	release, err := a.lines.Hold(ctx, cmp.Or(l.line, "unknown"))
	if err != nil {
		return fmt.Errorf("%w (%w)", err, ctx.Err())
	}
	defer release()
	return write()
}

// check returns why a lock cannot accept spec.
func check(caps capability.Set, spec adapter.CodeSpec) error {
	incomplete := len(caps.Constraints) > 0
	switch {
	case !caps.OnlineCodes:
		return adapter.Errorf(adapter.NotSupported, "the lock has no keypad")
	case spec.PIN == "" || strings.Trim(spec.PIN, "0123456789") != "":
		return adapter.Errorf(adapter.Invalid, "TTLock needs a PIN of digits")
	case len(spec.PIN) < 4 || len(spec.PIN) > 9:
		return adapter.Errorf(adapter.Invalid, "TTLock accepts PINs of 4 to 9 digits")
	case incomplete && strings.ContainsAny(spec.PIN, "0789"):
		return adapter.Errorf(adapter.Invalid, "the keypad of this lock has no 0, 7, 8, and 9")
	case (spec.StartsAt == nil) != (spec.EndsAt == nil):
		return adapter.Errorf(adapter.Invalid, "a time frame needs a start and an end")
	case spec.StartsAt != nil && !spec.EndsAt.After(*spec.StartsAt):
		return adapter.Errorf(adapter.Invalid, "a time frame must end after its start")
	case len(spec.Key) > 64:
		return adapter.Errorf(adapter.Invalid, "the key has more than 64 characters")
	}
	return nil
}

// isLike reports whether a listed passcode equals spec, and the lock has it or will have it.
func (w wireCode) isLike(spec adapter.CodeSpec) bool {
	failed := w.Status == statusAddFailed || w.Status == statusChangeFailed
	return w.PIN == spec.PIN && w.Name == spec.Name && w.hasTimes(spec) && !failed
}

func (w wireCode) hasTimes(spec adapter.CodeSpec) bool {
	c := w.code()
	return sameSecond(c.StartsAt, spec.StartsAt) && sameSecond(c.EndsAt, spec.EndsAt)
}

// sameSecond compares times without their fractions, which a lock may not store.
func sameSecond(a, b *time.Time) bool {
	return a == b || a != nil && b != nil && a.Truncate(time.Second).Equal(b.Truncate(time.Second))
}

// setTimes sets the time frame of spec in a request; a permanent code starts and ends at 0.
func setTimes(params url.Values, spec adapter.CodeSpec) {
	start, end := int64(0), int64(0)
	if spec.StartsAt != nil {
		start, end = spec.StartsAt.UnixMilli(), spec.EndsAt.UnixMilli()
	}
	params.Set("startDate", strconv.FormatInt(start, 10))
	params.Set("endDate", strconv.FormatInt(end, 10))
}

// create creates a passcode, unless an earlier call with the key has.
func (a *Adapter) create(
	ctx context.Context, device adapter.DeviceRef, l link, spec adapter.CodeSpec,
) (adapter.PutResult, error) {
	key := attempt{device, spec.Key}
	earlier, tried := a.writes.of(key)
	if tried && earlier.pin != spec.PIN {
		// The earlier PIN must not stay as a second code.
		there, err := a.find(ctx, device, earlier.has)
		if err != nil {
			return adapter.PutResult{}, err
		}
		if there != nil {
			return a.complete(ctx, device, l, spec, *there)
		}
	}
	before, err := a.listedWith(ctx, device, spec.PIN)
	if err != nil {
		return adapter.PutResult{}, err
	}
	result, err := a.add(ctx, device, l, spec)
	switch {
	case err == nil || adapter.ClassOf(err) == adapter.Unconfirmed:
		a.writes.keep(key, creation{pin: spec.PIN, sent: earlier.sent.With(spec, before...), ref: result.Ref})
		return result, err
	case codeOf(err) != codeDuplicate:
		return result, err
	}
	there, failed := a.findPIN(ctx, device, spec.PIN)
	switch {
	case there != nil && there.Status == statusDeleting:
		if !tried {
			a.writes.keep(key, creation{pin: spec.PIN})
		}
		return result, adapter.Errorf(adapter.Transient, "the lock still has to delete a passcode with this PIN")
	case tried && failed != nil:
		return result, adapter.Errorf(adapter.Unconfirmed, "an earlier write may have created the passcode")
	case tried && there == nil:
		return result, adapter.Errorf(adapter.Unconfirmed, "TTLock does not list the passcode yet")
	case tried && earlier.has(*there):
		return a.complete(ctx, device, l, spec, *there)
	case there != nil:
		adapter.AsError(err).Conflict = there.ref()
	}
	return result, err
}

// listedWith returns the passcodes with a PIN in the last list. It reads the list if there is none: a passcode that was
// on the lock before a creation belongs to another person.
func (a *Adapter) listedWith(
	ctx context.Context, device adapter.DeviceRef, pin string,
) (listed []adapter.CodeRef, err error) {
	known, _ := a.known.of(device)
	refs := known.refs
	if refs == nil {
		list, err := a.listCodes(ctx, device)
		if err != nil {
			return nil, err
		}
		refs = refsByPIN(list)
	}
	if ref, ok := refs[pin]; ok {
		listed = append(listed, ref)
	}
	return listed, nil
}

// add creates a passcode.
func (a *Adapter) add(
	ctx context.Context, device adapter.DeviceRef, l link, spec adapter.CodeSpec,
) (result adapter.PutResult, err error) {
	params := url.Values{
		"lockId":          {string(device)},
		"keyboardPwd":     {spec.PIN},
		"keyboardPwdName": {spec.Name},
		"keyboardPwdType": {strconv.Itoa(typePermanent)},
		"addType":         {l.via()},
	}
	if spec.StartsAt != nil {
		params.Set("keyboardPwdType", strconv.Itoa(typePeriod))
		setTimes(params, spec)
	}
	var made wireCode
	if err := a.write(ctx, "/v3/keyboardPwd/add", params, &made); err != nil {
		return result, err
	}
	if made.ID < 1 {
		return result, adapter.Errorf(adapter.Unconfirmed, "TTLock does not name the passcode that it created")
	}
	a.known.change(device, func(known *lock) {
		known.refs = maps.Clone(known.refs)
		if known.refs == nil {
			known.refs = map[string]adapter.CodeRef{}
		}
		known.refs[spec.PIN] = made.ref()
	})
	return adapter.PutResult{Ref: made.ref(), State: l.state()}, nil
}

// state returns the state of a write that TTLock has accepted.
func (l link) state() adapter.State {
	if l.isAsync() {
		return adapter.Accepted
	}
	return adapter.Confirmed
}

// findPIN returns the passcode with a PIN, or nil.
func (a *Adapter) findPIN(ctx context.Context, device adapter.DeviceRef, pin string) (*wireCode, error) {
	return a.find(ctx, device, func(w wireCode) bool { return w.PIN == pin })
}

func (a *Adapter) find(
	ctx context.Context, device adapter.DeviceRef, is func(wireCode) bool,
) (*wireCode, error) {
	list, err := a.listCodes(ctx, device)
	for _, w := range list {
		if is(w) {
			return &w, err
		}
	}
	return nil, err
}

// complete returns the existing code of a repeated creation, changed to spec if it differs.
func (a *Adapter) complete(
	ctx context.Context, device adapter.DeviceRef, l link, spec adapter.CodeSpec, there wireCode,
) (adapter.PutResult, error) {
	if there.isLike(spec) {
		return adapter.PutResult{Ref: there.ref(), State: there.code().State}, nil
	}
	spec.Ref = there.ref()
	result, err := a.change(ctx, device, l, spec)
	if result.Ref == "" {
		result.Ref = spec.Ref // even if the change has failed
	}
	return result, err
}

// change changes the passcode spec.Ref. TTLock reports success for an absent passcode and for values that it ignores,
// so the list decides before and afterwards.
func (a *Adapter) change(
	ctx context.Context, device adapter.DeviceRef, l link, spec adapter.CodeSpec,
) (result adapter.PutResult, err error) {
	isIt := func(w wireCode) bool { return w.ref() == spec.Ref }
	there, err := a.find(ctx, device, isIt)
	switch {
	case err != nil:
		return result, err
	case there == nil:
		return result, adapter.Errorf(adapter.NotFound, "the passcode is no longer on the lock")
	case there.isLike(spec):
		return adapter.PutResult{Ref: spec.Ref, State: there.code().State}, nil
	case there.Status == statusAddFailed:
		return a.replace(ctx, device, l, spec)
	}
	params := url.Values{
		"lockId":          {string(device)},
		"keyboardPwdId":   {string(spec.Ref)},
		"keyboardPwdName": {spec.Name},
		"changeType":      {l.via()},
	}
	if there.PIN != spec.PIN {
		params.Set("newKeyboardPwd", spec.PIN)
	}
	if !there.hasTimes(spec) {
		setTimes(params, spec)
	}
	err = a.write(ctx, "/v3/keyboardPwd/change", params, nil)
	switch {
	case codeOf(err) == codeNeverUsed:
		return a.replace(ctx, device, l, spec)
	case codeOf(err) == codeDuplicate:
		if other, _ := a.findPIN(ctx, device, spec.PIN); other != nil {
			adapter.AsError(err).Conflict = other.ref()
		}
		return result, err
	case err != nil:
		return result, err
	}
	result = adapter.PutResult{Ref: spec.Ref, State: l.state()}
	if l.isAsync() {
		return result, nil
	}
	switch there, err = a.find(ctx, device, isIt); {
	case err != nil:
		return adapter.PutResult{}, adapter.Errorf(adapter.Unconfirmed, "the change cannot be read back")
	case there == nil:
		return adapter.PutResult{}, adapter.Errorf(adapter.NotFound, "the passcode is no longer on the lock")
	case there.isLike(spec):
		return result, nil
	case spec.StartsAt == nil && there.PIN == spec.PIN && there.Name == spec.Name:
		// The list is old, or TTLock keeps the time frame.
		again := attempt{device, "unlimited " + string(spec.Ref)}
		if _, tried := a.writes.of(again); tried {
			return a.replace(ctx, device, l, spec)
		}
		a.writes.keep(again, creation{pin: spec.PIN, ref: spec.Ref})
	}
	return adapter.PutResult{}, adapter.Errorf(adapter.Unconfirmed, "TTLock lists the old passcode after its change")
}

// replace deletes the passcode spec.Ref and creates another one.
func (a *Adapter) replace(
	ctx context.Context, device adapter.DeviceRef, l link, spec adapter.CodeSpec,
) (adapter.PutResult, error) {
	if err := a.delete(ctx, device, l, spec.Ref); err != nil {
		return adapter.PutResult{}, err
	}
	spec.Ref = ""
	return a.create(ctx, device, l, spec)
}

func (a *Adapter) delete(ctx context.Context, device adapter.DeviceRef, l link, code adapter.CodeRef) error {
	err := a.write(ctx, "/v3/keyboardPwd/delete", url.Values{
		"lockId":        {string(device)},
		"keyboardPwdId": {string(code)},
		"deleteType":    {l.via()},
	}, nil)
	if c := codeOf(err); c == codeNoPasscode || c == codeNoPasscodes {
		err = nil
	}
	if err == nil {
		a.writes.forget(device, code)
	}
	return err
}

// DeleteCode implements adapter.Adapter.
func (a *Adapter) DeleteCode(
	ctx context.Context, device adapter.DeviceRef, code adapter.CodeRef,
) (adapter.State, error) {
	known, err := a.ready(ctx, device)
	if err != nil {
		return "", err
	}
	if !isCodeID(code) {
		return adapter.Confirmed, nil
	}
	if known.link.isAsync() { // the answer does not say whether there is something to delete
		there, err := a.find(ctx, device, func(w wireCode) bool { return w.ref() == code })
		switch {
		case err != nil:
			return "", a.missing(device, err)
		case there == nil:
			return adapter.Confirmed, nil
		}
	}
	err = a.onLine(ctx, known.link, func() error { return a.delete(ctx, device, known.link, code) })
	if err != nil {
		return "", a.missing(device, err)
	}
	return known.link.state(), nil
}

// isCodeID reports whether TTLock can have a passcode with the identifier.
func isCodeID(code adapter.CodeRef) bool {
	id, err := strconv.ParseInt(string(code), 10, 64)
	return err == nil && id > 0
}

// Bounds of random passcodes: euopen.ttlock.com, "get a passcode".
const (
	maxOneTime = 6 * time.Hour
	// maxHourly is the longest time frame whose ends are exact to the hour.
	maxHourly = 365 * 24 * time.Hour
)

// IssueCode implements adapter.OfflineIssuer. The name of the code carries the key.
func (a *Adapter) IssueCode(
	ctx context.Context, device adapter.DeviceRef, spec adapter.OfflineSpec,
) (issued adapter.IssuedCode, err error) {
	known, _ := a.known.of(device)
	if known.device.Ref == "" {
		d, err := a.Device(ctx, device)
		if err != nil {
			return issued, err
		}
		known.device = d
	}
	frame := spec.EndsAt.Sub(spec.StartsAt)
	kind := typePeriod
	if spec.Kind == adapter.OfflineOneTime {
		kind = typeOneTime
	}
	switch {
	case !known.device.Capabilities.OfflineCodes:
		return issued, adapter.Errorf(adapter.NotSupported, "the lock has no offline codes")
	case kind == typeOneTime && frame > maxOneTime:
		return issued, adapter.Errorf(adapter.Invalid, "a one-time passcode of TTLock is valid for at most 6 hours")
	case frame > maxHourly:
		return issued, adapter.Errorf(adapter.Invalid, "an offline passcode of TTLock is valid for at most a year")
	}
	name := offlineName + spec.Key
	made, err := a.find(ctx, device, func(w wireCode) bool { return w.isOurOffline() && w.Name == name })
	if err != nil {
		return issued, a.missing(device, err)
	}
	if made == nil {
		made = &wireCode{}
		err = a.write(ctx, "/v3/keyboardPwd/get", url.Values{
			"lockId":          {string(device)},
			"keyboardPwdType": {strconv.Itoa(kind)},
			"keyboardPwdName": {name},
			"startDate":       {strconv.FormatInt(spec.StartsAt.UnixMilli(), 10)},
			"endDate":         {strconv.FormatInt(spec.EndsAt.UnixMilli(), 10)},
		}, made)
	}
	switch {
	case err != nil:
		return issued, a.missing(device, err)
	case made.ID < 1 || made.PIN == "" || len(made.PIN) > maxPINLength:
		return issued, adapter.Errorf(adapter.Transient, "TTLock did not issue a passcode")
	}
	return adapter.IssuedCode{Ref: made.ref(), PIN: made.PIN}, nil
}

// attempt identifies a creation.
type attempt struct {
	device adapter.DeviceRef
	key    string
}

// maxAttempts bounds the creations that are remembered. Beyond it, all are forgotten: the PIN still prevents a second
// code, and the server finds the code by its PIN.
const maxAttempts = 10_000

// attempts remembers the creations that have, or may have, created a code. The zero value is ready.
type attempts struct {
	mu   sync.Mutex
	made map[attempt]creation
}

// creation is what is known about a creation.
type creation struct {
	// pin is the last PIN that was sent.
	pin string
	// sent are the attempts.
	sent adapter.SentCodes
	// ref is the created code; empty if the outcome is unknown.
	ref adapter.CodeRef
}

// has reports whether the creation created a passcode.
func (c creation) has(w wireCode) bool {
	if c.ref != "" {
		return w.ref() == c.ref
	}
	return c.sent.Has(w.code())
}

func (s *attempts) of(key attempt) (creation, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.made[key]
	return c, ok
}

func (s *attempts) keep(key attempt, c creation) {
	if key.key == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made == nil || len(s.made) >= maxAttempts {
		s.made = map[attempt]creation{}
	}
	s.made[key] = c
}

// forget drops the creation of a deleted code.
func (s *attempts) forget(device adapter.DeviceRef, code adapter.CodeRef) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.made, func(key attempt, c creation) bool { return key.device == device && c.ref == code })
}
