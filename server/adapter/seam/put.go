package seam

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// PutCode implements adapter.Adapter. A code that is unmanaged upstream becomes managed upstream first.
func (a *Adapter) PutCode(
	ctx context.Context, device adapter.DeviceRef, spec adapter.CodeSpec,
) (result adapter.PutResult, err error) {
	caps, err := a.ready(ctx, device)
	if err == nil {
		err = check(caps, spec, time.Now())
	}
	switch {
	case err != nil:
	case spec.Ref != "":
		result, err = a.change(ctx, device, spec)
	default:
		result, err = a.create(ctx, device, spec, caps)
	}
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

// check returns why a device cannot accept spec.
func check(caps capability.Set, spec adapter.CodeSpec, now time.Time) error {
	digits := strings.Trim(spec.PIN, "0123456789") == ""
	future := slices.ContainsFunc(caps.Constraints, func(c capability.Constraint) bool {
		return c.Type == "start_date_in_future"
	})
	switch {
	case !caps.OnlineCodes:
		return adapter.Errorf(adapter.NotSupported, "the device has no access codes that can be programmed")
	case caps.ProviderPIN && spec.PIN != "":
		return adapter.Errorf(adapter.Invalid, "the vendor chooses the PIN of this device")
	case !caps.ProviderPIN && (spec.PIN == "" || !digits):
		return adapter.Errorf(adapter.Invalid, "this device needs a PIN of digits")
	case !caps.ProviderPIN && !slices.Contains(caps.CodeLengths, len(spec.PIN)):
		return adapter.Errorf(adapter.Invalid, "the device accepts no PINs of this length")
	case (spec.StartsAt == nil) != (spec.EndsAt == nil):
		return adapter.Errorf(adapter.Invalid, "a time frame needs a start and an end")
	case spec.StartsAt != nil && !spec.EndsAt.After(*spec.StartsAt):
		return adapter.Errorf(adapter.Invalid, "a time frame must end after its start")
	case spec.StartsAt != nil && future && !spec.StartsAt.After(now):
		return adapter.Errorf(adapter.Invalid, "a time frame of this device must start in the future")
	case len(spec.Key) > 64:
		return adapter.Errorf(adapter.Invalid, "the key has more than 64 characters")
	}
	return nil
}

// codeRequest is the body that creates or changes a code.
type codeRequest struct {
	DeviceID string     `json:"device_id"`
	CodeID   string     `json:"access_code_id,omitempty"`
	Name     string     `json:"name"`
	Code     string     `json:"code,omitempty"`
	Key      string     `json:"common_code_key,omitempty"`
	Type     string     `json:"type,omitempty"`
	StartsAt *time.Time `json:"starts_at,omitempty"`
	EndsAt   *time.Time `json:"ends_at,omitempty"`
	// Offline is false: the caller repeats the write when the device is back.
	Offline bool `json:"attempt_for_offline_device"`
}

func request(device adapter.DeviceRef, spec adapter.CodeSpec) codeRequest {
	return codeRequest{
		DeviceID: string(device),
		CodeID:   string(spec.Ref),
		Name:     spec.Name,
		Code:     spec.PIN,
		StartsAt: utc(spec.StartsAt),
		EndsAt:   utc(spec.EndsAt),
	}
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	return new(t.UTC())
}

// create creates a code unless one with the key exists.
func (a *Adapter) create(
	ctx context.Context, device adapter.DeviceRef, spec adapter.CodeSpec, caps capability.Set,
) (result adapter.PutResult, err error) {
	body := request(device, spec)
	// PINs that the vendor chooses cannot be shared, so such codes have no key.
	if spec.Key != "" && !caps.ProviderPIN {
		body.Key = keyPrefix + spec.Key
		there, err := a.byKey(ctx, device, body.Key)
		if err != nil {
			return result, err
		}
		if there != nil {
			return a.complete(ctx, device, spec, *there)
		}
	}
	if err := a.mayWrite(device, creates); err != nil {
		return result, err
	}
	made, err := a.createOnce(ctx, "/access_codes/create", body, spec.Key)
	if err != nil {
		return result, err
	}
	if caps.ProviderPIN && value(made.Code) == "" {
		made = a.awaitPIN(ctx, made)
	}
	result = adapter.PutResult{Ref: adapter.CodeRef(made.ID), State: adapter.Accepted}
	if caps.ProviderPIN {
		result.PIN = value(made.Code)
	}
	return result, nil
}

// complete returns the existing code of a repeated creation, changed to spec if it differs.
func (a *Adapter) complete(
	ctx context.Context, device adapter.DeviceRef, spec adapter.CodeSpec, there wireCode,
) (adapter.PutResult, error) {
	ref := adapter.CodeRef(there.ID)
	same := value(there.Code) == spec.PIN && value(there.Name) == spec.Name &&
		sameTime(there.StartsAt, spec.StartsAt) && sameTime(there.EndsAt, spec.EndsAt)
	if same {
		return adapter.PutResult{Ref: ref, State: adapter.Accepted}, nil
	}
	spec.Ref = ref
	result, err := a.change(ctx, device, spec)
	result.Ref = ref // even if the change has failed
	return result, err
}

// sameTime compares times in seconds, because servers may store no fractions.
func sameTime(a, b *time.Time) bool {
	return a == b || a != nil && b != nil && a.Truncate(time.Second).Equal(b.Truncate(time.Second))
}

// byKey returns the code of the device that was created with a common_code_key, or nil.
func (a *Adapter) byKey(ctx context.Context, device adapter.DeviceRef, key string) (*wireCode, error) {
	list, err := a.listCodes(ctx, device, true)
	if err != nil {
		return nil, err
	}
	for _, c := range list {
		if value(c.Key) == key && c.Status != "removing" {
			return &c, nil
		}
	}
	return nil, nil
}

// createOnce sends a creation with an Idempotency-Key. A server that repeats an earlier answer may describe a code
// that was deleted since; then the creation is sent without the key.
func (a *Adapter) createOnce(ctx context.Context, path string, body any, key string) (wireCode, error) {
	if key != "" {
		key = idempotencyKey(key, body)
	}
	for {
		var got struct {
			Code wireCode `json:"access_code"`
		}
		answer, err := a.do(ctx, call{path: path, body: body, write: true, key: key}, &got)
		switch {
		case err != nil:
			return wireCode{}, err
		case !isID(got.Code.ID):
			return wireCode{}, adapter.Errorf(adapter.Unconfirmed, "the created code has no access_code_id")
		case !answer.replayed:
			return got.Code, nil
		}
		now, err := a.getCode(ctx, got.Code.ID)
		if adapter.ClassOf(err) != adapter.NotFound || key == "" {
			return now, err
		}
		key = ""
	}
}

// idempotencyKey depends on the body, so that no server finds another body for a key.
func idempotencyKey(key string, body any) string {
	content, err := json.Marshal(body)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(content)
	return key + "-" + hex.EncodeToString(sum[:8])
}

// getCode reads a code that is managed upstream.
func (a *Adapter) getCode(ctx context.Context, id string) (wireCode, error) {
	var got struct {
		Code wireCode `json:"access_code"`
	}
	err := a.read(ctx, "/access_codes/get", map[string]any{"access_code_id": id}, &got)
	if err == nil && got.Code.ID != id {
		err = adapter.Errorf(adapter.Transient, "the response describes another code than requested")
	}
	return got.Code, err
}

// awaitPIN waits until the vendor has chosen the PIN of a code. It returns the code without a PIN after a while.
func (a *Adapter) awaitPIN(ctx context.Context, code wireCode) wireCode {
	a.poll(ctx, func(ctx context.Context) bool {
		now, err := a.getCode(ctx, code.ID)
		if err == nil {
			code = now
		}
		return value(code.Code) != "" || adapter.ClassOf(err) == adapter.NotFound && err != nil
	})
	return code
}

// change changes the code spec.Ref.
func (a *Adapter) change(
	ctx context.Context, device adapter.DeviceRef, spec adapter.CodeSpec,
) (result adapter.PutResult, err error) {
	body := request(device, spec)
	if spec.StartsAt == nil {
		body.Type = "ongoing"
	}
	err = a.update(ctx, device, body)
	if err != nil && adapter.ClassOf(err) == adapter.NotFound {
		if err = a.convert(ctx, device, spec.Ref); err == nil {
			err = a.update(ctx, device, body)
		}
	}
	if err != nil {
		return result, err
	}
	return adapter.PutResult{Ref: spec.Ref, State: adapter.Accepted}, nil
}

func (a *Adapter) update(ctx context.Context, device adapter.DeviceRef, body codeRequest) error {
	if err := a.mayWrite(device, updates); err != nil {
		return err
	}
	attempt, err := a.attempt(ctx, "/access_codes/update", body)
	if err == nil && attempt.Status == attemptFailed {
		return a.attemptError(attempt)
	}
	return err
}

// convert makes a code managed upstream. It fails with NotFound when there is no unmanaged code.
func (a *Adapter) convert(ctx context.Context, device adapter.DeviceRef, code adapter.CodeRef) error {
	id := map[string]any{"access_code_id": code}
	if err := a.read(ctx, "/access_codes/unmanaged/get", id, nil); err != nil {
		return err
	}
	if err := a.mayWrite(device, updates); err != nil {
		return err
	}
	attempt, err := a.attempt(ctx, "/access_codes/unmanaged/convert_to_managed", id)
	if err != nil {
		return err
	}
	if attempt = a.await(ctx, attempt); attempt.Status == attemptFailed {
		return a.attemptError(attempt)
	}
	managed := false
	a.poll(ctx, func(ctx context.Context) bool {
		_, err := a.getCode(ctx, string(code))
		managed = err == nil
		return managed
	})
	if !managed {
		return adapter.Errorf(adapter.Unconfirmed, "the server has not made the code managed yet")
	}
	return nil
}

// ConvertCode implements adapter.Converter. It refuses a code whose PIN is hidden, because nothing could restore it.
func (a *Adapter) ConvertCode(
	ctx context.Context, device adapter.DeviceRef, code adapter.CodeRef,
) (adapter.State, error) {
	if _, err := a.ready(ctx, device); err != nil {
		return "", err
	}
	var got struct {
		Code wireCode `json:"access_code"`
	}
	err := a.read(ctx, "/access_codes/unmanaged/get", map[string]any{"access_code_id": code}, &got)
	switch {
	case err != nil:
		return "", err
	case value(got.Code.Code) == "":
		return "", adapter.Errorf(adapter.NotSupported, "the upstream server hides the PIN of this code")
	}
	if err := a.convert(ctx, device, code); err != nil {
		return "", err
	}
	return adapter.Confirmed, nil
}

// DeleteCode implements adapter.Adapter.
func (a *Adapter) DeleteCode(
	ctx context.Context, device adapter.DeviceRef, code adapter.CodeRef,
) (adapter.State, error) {
	if _, err := a.ready(ctx, device); err != nil {
		return "", err
	}
	if err := a.mayWrite(device, deletes); err != nil {
		return "", err
	}
	attempt, err := a.attempt(ctx, "/access_codes/delete", map[string]any{"access_code_id": code, "device_id": device})
	if err != nil && adapter.ClassOf(err) == adapter.NotFound {
		return a.deleteUnmanaged(ctx, code)
	}
	switch {
	case err != nil:
		return "", err
	case attempt.Status == attemptFailed:
		return "", a.attemptError(attempt)
	case attempt.Status == attemptSucceeded:
		return adapter.Confirmed, nil
	}
	return adapter.Accepted, nil
}

// deleteUnmanaged deletes a code that is unmanaged upstream. It waits for the attempt, because no later read shows
// that the provider refuses the deletion.
func (a *Adapter) deleteUnmanaged(ctx context.Context, code adapter.CodeRef) (adapter.State, error) {
	attempt, err := a.attempt(ctx, "/access_codes/unmanaged/delete", map[string]any{"access_code_id": code})
	switch {
	case err != nil && adapter.ClassOf(err) == adapter.NotFound:
		return adapter.Confirmed, nil
	case err != nil:
		return "", err
	}
	switch attempt = a.await(ctx, attempt); attempt.Status {
	case attemptFailed:
		return "", a.attemptError(attempt)
	case attemptSucceeded:
		return adapter.Confirmed, nil
	default:
		return adapter.Accepted, nil
	}
}

// IssueCode implements adapter.OfflineIssuer. The server has no key for offline codes other than Idempotency-Key.
func (a *Adapter) IssueCode(
	ctx context.Context, device adapter.DeviceRef, spec adapter.OfflineSpec,
) (adapter.IssuedCode, error) {
	known, ok := a.known.of(device)
	if !ok {
		d, err := a.Device(ctx, device)
		if err != nil {
			return adapter.IssuedCode{}, err
		}
		known.caps = d.Capabilities
	}
	if !known.caps.OfflineCodes {
		return adapter.IssuedCode{}, adapter.Errorf(adapter.NotSupported, "the device has no offline codes")
	}
	body := map[string]any{
		"device_id":              device,
		"is_offline_access_code": true,
		"starts_at":              spec.StartsAt.UTC(),
		"ends_at":                spec.EndsAt.UTC(),
	}
	switch spec.Kind {
	case adapter.OfflineOneTime:
		body["is_one_time_use"] = true
	case adapter.OfflineDaily:
		body["max_time_rounding"] = "1day"
	case adapter.OfflineHourly:
		body["max_time_rounding"] = "1hour"
	}
	if err := a.mayWrite(device, creates); err != nil {
		return adapter.IssuedCode{}, err
	}
	made, err := a.createOnce(ctx, "/access_codes/create", body, spec.Key)
	if err != nil {
		return adapter.IssuedCode{}, err
	}
	if value(made.Code) == "" {
		made = a.awaitPIN(ctx, made)
	}
	if pin := value(made.Code); pin != "" && len(pin) <= maxPINLength {
		return adapter.IssuedCode{Ref: adapter.CodeRef(made.ID), PIN: pin}, nil
	}
	if failed := a.codeError(made.Errors); failed != nil {
		return adapter.IssuedCode{}, failed
	}
	return adapter.IssuedCode{}, adapter.Errorf(adapter.Transient, "the vendor has not issued the code yet")
}
