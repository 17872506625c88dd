package tedee

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
)

// checkPIN returns why Tedee refuses a PIN (endpoints/lockpin/create). The error does not contain it.
func checkPIN(pin string) error {
	distinct, up, down := map[rune]bool{}, true, true
	for i, digit := range pin {
		distinct[digit] = true
		if i > 0 {
			up = up && pin[i] == pin[i-1]+1
			down = down && pin[i] == pin[i-1]-1
		}
	}
	switch {
	case strings.Trim(pin, "0123456789") != "" || len(pin) < minPINLength || len(pin) > maxPINLength:
		return adapter.Errorf(adapter.Invalid, "a PIN of this lock has %d to %d digits", minPINLength, maxPINLength)
	case len(distinct) < 3:
		return adapter.Errorf(adapter.Invalid, "a PIN of this lock has at least three different digits")
	case up || down:
		return adapter.Errorf(adapter.Invalid, "a PIN of this lock is no ascending or descending sequence")
	}
	return nil
}

// check returns why a lock refuses spec.
func check(spec adapter.CodeSpec) error {
	if err := checkPIN(spec.PIN); err != nil {
		return err
	}
	length := utf8.RuneCountInString(spec.Name)
	switch {
	case length < 1 || length > maxNameLength:
		return adapter.Errorf(adapter.Invalid, "a name of a code has 1 to %d characters", maxNameLength)
	case (spec.StartsAt == nil) != (spec.EndsAt == nil):
		return adapter.Errorf(adapter.Invalid, "a time frame needs a start and an end")
	case spec.StartsAt != nil && !spec.EndsAt.After(*spec.StartsAt):
		return adapter.Errorf(adapter.Invalid, "a time frame must end after its start")
	}
	return nil
}

func stamp(t *time.Time) *string {
	if t == nil {
		return nil
	}
	return new(t.UTC().Format("2006-01-02T15:04:05.000Z"))
}

// body returns the body that writes spec. Days and hours stay those of before.
func body(spec adapter.CodeSpec, before wirePIN) wirePIN {
	return wirePIN{
		Alias:        spec.Name,
		PIN:          spec.PIN,
		StartDate:    stamp(spec.StartsAt),
		EndDate:      stamp(spec.EndsAt),
		DayStartTime: before.DayStartTime,
		DayEndTime:   before.DayEndTime,
		WeekDays:     before.WeekDays,
	}
}

// creation is a creation that was sent.
type creation struct {
	sent adapter.SentCodes
	// id is the created code; 0 if no response arrived.
	id int64
}

// has reports whether the creation created a code.
func (c creation) has(p wirePIN) bool { return p.ID == c.id || c.id == 0 && c.sent.Has(p.code()) }

type creationKey struct {
	device adapter.DeviceRef
	key    string
}

// maxCreations bounds the remembered creations. Without its memory, a repeated creation is refused as a duplicate.
const maxCreations = 10_000

// creationIndex remembers creations, because Tedee stores no key. Its zero value is ready.
type creationIndex struct {
	mu   sync.Mutex
	sent map[creationKey]creation
}

func (x *creationIndex) of(key creationKey) (creation, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	c, ok := x.sent[key]
	return c, ok
}

func (x *creationIndex) keep(key creationKey, c creation) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.sent == nil || len(x.sent) >= maxCreations {
		x.sent = map[creationKey]creation{}
	}
	if key.key != "" {
		x.sent[key] = c
	}
}

func (x *creationIndex) forget(key creationKey) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.sent, key)
}

// PutCode implements adapter.Adapter.
func (a *Adapter) PutCode(
	ctx context.Context, device adapter.DeviceRef, spec adapter.CodeSpec,
) (result adapter.PutResult, err error) {
	err = a.withCodes(ctx, device, func(known knownLock, list *pinList) (err error) {
		w := write{Adapter: a, known: known, list: list, device: device, spec: spec}
		switch err = check(spec); {
		case err != nil:
		case spec.Ref != "":
			result, err = w.change(ctx, idOf(spec.Ref))
		default:
			result, err = w.create(ctx)
		}
		return err
	})
	err = settled(err)
	// An earlier call with the same key may have written something.
	if err != nil && ctx.Err() != nil && adapter.ClassOf(err) == adapter.Transient {
		err = fmt.Errorf("%w (%w)",
			adapter.Errorf(adapter.Unconfirmed, "the write ended before its outcome was known"), ctx.Err())
	}
	return result, err
}

// write is a write of a code by the holder of the lock's line.
type write struct {
	*Adapter
	known  knownLock
	list   *pinList
	device adapter.DeviceRef
	spec   adapter.CodeSpec
}

// create creates a code, unless an earlier call with the key did.
func (w write) create(ctx context.Context) (result adapter.PutResult, err error) {
	key := creationKey{w.device, w.spec.Key}
	if sent, ok := w.creates.of(key); ok {
		there, err := w.find(ctx, sent)
		switch {
		case err != nil:
			return result, err
		case there != nil:
			return w.complete(ctx, *there)
		}
		w.creates.forget(key)
	}
	if w.list.version < 0 { // what is on the lock now belongs to others
		if err := w.readList(ctx, w.known, w.list); err != nil {
			return result, err
		}
	}
	var made struct {
		ID int64 `json:"id"`
	}
	sent := creation{sent: adapter.SentCodes{}.With(w.spec, w.list.named(w.spec.Name)...)}
	w.creates.keep(key, sent)
	pin := body(w.spec, wirePIN{})
	call := vendorhttp.Call{Method: http.MethodPost, Path: w.known.path() + "/pin", JSON: pin, Write: true}
	err = w.do(ctx, call, &made)
	switch {
	case err != nil && adapter.ClassOf(err) != adapter.Unconfirmed:
		w.creates.forget(key)
		return result, w.explainDuplicate(ctx, err)
	case err != nil:
		return result, err
	case made.ID <= 0:
		return result, adapter.Errorf(adapter.Unconfirmed, "the created code has no id")
	}
	sent.id, pin.ID = made.ID, made.ID
	w.creates.keep(key, sent)
	w.list.noteWrite(made.ID, &pin)
	return adapter.PutResult{Ref: refOf(made.ID), State: adapter.Confirmed}, nil
}

// find returns the code of an earlier creation, or nil.
func (w write) find(ctx context.Context, sent creation) (*wirePIN, error) {
	pins, err := w.readPINs(ctx, w.known, w.list)
	for _, p := range pins {
		if sent.has(p) {
			return &p, nil
		}
	}
	return nil, err
}

// complete returns the existing code of a repeated creation, changed to the specification if it differs.
func (w write) complete(ctx context.Context, there wirePIN) (adapter.PutResult, error) {
	w.creates.keep(creationKey{w.device, w.spec.Key}, creation{id: there.ID})
	same := there.PIN == w.spec.PIN && there.Alias == w.spec.Name &&
		sameTime(timeOf(there.StartDate), w.spec.StartsAt) && sameTime(timeOf(there.EndDate), w.spec.EndsAt)
	if same {
		return adapter.PutResult{Ref: refOf(there.ID), State: adapter.Confirmed}, nil
	}
	result, err := w.change(ctx, there.ID)
	result.Ref = refOf(there.ID) // even if the change has failed
	return result, err
}

// sameTime compares times in milliseconds, because writes have no smaller fractions.
func sameTime(a, b *time.Time) bool {
	return a == b || a != nil && b != nil && a.Truncate(time.Millisecond).Equal(b.Truncate(time.Millisecond))
}

// change overwrites a code. It reads a code first whose days and hours are unknown.
func (w write) change(ctx context.Context, id int64) (result adapter.PutResult, err error) {
	if id == 0 {
		return result, adapter.Errorf(adapter.NotFound, "the lock has no such code")
	}
	before, there := w.list.details[id]
	if w.list.ours != nil {
		before, there = w.list.ours[id]
	}
	if !there {
		if before, err = w.readPIN(ctx, w.known, id); err != nil {
			return result, err
		}
	}
	pin := body(w.spec, before)
	call := vendorhttp.Call{Method: http.MethodPut, Path: w.known.pinPath(id), JSON: pin, Write: true}
	if err := w.do(ctx, call, nil); err != nil {
		return result, w.explainDuplicate(ctx, err)
	}
	pin.ID = id
	w.list.noteWrite(id, &pin)
	return adapter.PutResult{Ref: refOf(id), State: adapter.Confirmed}, nil
}

func (k knownLock) pinPath(id int64) string { return k.path() + "/pin/" + strconv.FormatInt(id, 10) }

// explainDuplicate adds the code that has the PIN to a Duplicate, if it can be found.
func (w write) explainDuplicate(ctx context.Context, err error) error {
	e := adapter.AsError(err)
	if e == nil || e.Class != adapter.Duplicate {
		return err
	}
	duplicate := adapter.Errorf(adapter.Duplicate, "the PIN is on the lock already; choose another PIN")
	pins, read := w.readPINs(ctx, w.known, w.list)
	for _, p := range pins {
		if read == nil && p.PIN == w.spec.PIN {
			duplicate.Conflict = refOf(p.ID)
		}
	}
	return duplicate
}

// DeleteCode implements adapter.Adapter.
func (a *Adapter) DeleteCode(
	ctx context.Context, device adapter.DeviceRef, code adapter.CodeRef,
) (adapter.State, error) {
	id := idOf(code)
	err := a.withCodes(ctx, device, func(known knownLock, list *pinList) error {
		if id == 0 { // no code has such a reference, if the lock can be reached
			_, _, err := a.fetchList(ctx, known, -1)
			return err
		}
		call := vendorhttp.Call{Method: http.MethodDelete, Path: known.pinPath(id), Write: true}
		if err := a.do(ctx, call, nil); err != nil {
			return err
		}
		list.noteWrite(id, nil)
		return nil
	})
	// The vendor deletes a code after its end. onLock has made sure that the lock is there.
	if err != nil && statusOf(err) != http.StatusNotFound {
		return "", settled(err)
	}
	return adapter.Confirmed, nil
}
