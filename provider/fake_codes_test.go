package provider

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/lockrules"
)

const fakeDevice = "22222222-2222-4222-8222-222222222222"

// fakeCode is an access code. Its device takes what it is told at once, unless it is offline.
type fakeCode struct {
	device           string
	name, code       any // a string or nil
	startsAt, endsAt any
	managed          bool
	status           string
	cannotBeManaged  bool
	cannotBeDeleted  bool
	errors           []map[string]any
	mutations        []map[string]any // that are pending
	external         bool
	offline          bool
	key              any // of those that share a PIN; null while it is not managed
}

// fakeAttempt ends at the look after `looks` more.
type fakeAttempt struct {
	actionType string
	looks      int
	failure    map[string]any
	effect     func()
}

// fakeEffect takes effect with the request of that number.
type fakeEffect struct {
	call int
	do   func()
}

func (f *fake) takeEffect() {
	f.effects = slices.DeleteFunc(f.effects, func(effect fakeEffect) bool {
		due := effect.call <= len(f.calls)
		if due {
			effect.do()
		}
		return due
	})
}

// unmanaged adds an unmanaged code to the lock.
func (f *fake) unmanaged(code fakeCode) (id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id = f.newID()
	code.device = fakeDevice
	if code.status == "" {
		code.status = "set"
	}
	f.codes[id] = &code
	return id
}

// only is the one code there is.
func (f *fake) only() (string, *fakeCode) {
	for id, code := range f.codes {
		return id, code
	}
	panic("there is no code")
}

func (f *fake) codeJSON(id string) map[string]any {
	c := f.codes[id]
	code := map[string]any{
		"access_code_id": id,
		"device_id":      c.device,
		"workspace_id":   fakeWorkspace,
		"name":           c.name,
		"status":         c.status,
		"created_at":     "2026-01-02T03:04:05.678Z",
		"is_managed":     c.managed,
		"errors":         c.errors,
		"warnings":       []any{},
		"type":           "ongoing",
	}
	if c.code != nil {
		code["code"] = c.code
	}
	if c.startsAt != nil {
		code["starts_at"], code["ends_at"], code["type"] = utc(c.startsAt), utc(c.endsAt), "time_bound"
	}
	switch {
	case c.managed:
		code["is_external_modification_allowed"], code["common_code_key"] = c.external, c.key
	case c.cannotBeManaged:
		code["cannot_be_managed"] = true
	}
	if c.mutations != nil {
		code["pending_mutations"] = c.mutations
	}
	if c.offline {
		code["is_offline_access_code"] = true
	}
	if c.cannotBeDeleted && !c.managed {
		code["cannot_delete_unmanaged_access_code"] = true
	}
	for _, field := range f.omits {
		delete(code, field)
	}
	return code
}

// utc is how servers write times, whatever was asked for.
func utc(value any) string {
	t, _ := time.Parse(time.RFC3339, value.(string))
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// onCode answers 404 for codes there are not, or that the operation is not for.
func (f *fake) onCode(
	w http.ResponseWriter,
	r *http.Request,
	body map[string]any,
	do func(id string, c *fakeCode) map[string]any,
) {
	id, _ := body["access_code_id"].(string)
	if !f.anyID && uuid.Validate(id) != nil {
		answerRaw(
			http.StatusBadRequest,
			"application/json",
			`{"ok": false, "error": {"type": "invalid_input", "message": "Invalid uuid for \"access_code_id\"",
			"validation_errors": {"_errors": [], "access_code_id": {"_errors": ["Invalid uuid"]}}}}`,
		)(
			w,
			r,
		)
		return
	}
	c := f.codes[id]
	mixed := f.mixesCodes && r.URL.Path == "/access_codes/get"
	if c == nil || c.managed == strings.Contains(r.URL.Path, "/unmanaged/") && !mixed {
		f.answerNotFound(
			"access_code_not_found",
			"Could not find an access_code with device_id or access_code_id",
		)(
			w,
			r,
		)
		return
	}
	answer(do(id, c))(w, r)
}

func (f *fake) createCode(w http.ResponseWriter, r *http.Request, body map[string]any) {
	if refusal := f.duplicateOf("", &fakeCode{
		device: body["device_id"].(string), code: body["code"], startsAt: body["starts_at"], endsAt: body["ends_at"],
	}); refusal != nil {
		refusal(w, r)
		return
	}
	id := f.newID()
	c := &fakeCode{
		device:   body["device_id"].(string),
		name:     body["name"],
		code:     body["code"],
		startsAt: body["starts_at"],
		endsAt:   body["ends_at"],
		key:      body["common_code_key"],
		managed:  true,
		status:   "setting",
	}
	c.external, _ = body["is_external_modification_allowed"].(bool)
	if c.name == nil {
		c.name = "New Access Code"
	}
	if c.code == nil {
		c.code = "7391"
	}
	f.codes[id] = c
	made := map[string]any{"access_code": f.codeJSON(id)}
	f.attempt(made, "CREATE_ACCESS_CODE", func() { f.settle(c) })
	answer(made)(w, r)
}

// duplicateOf refuses the PIN of another code on the lock than self. It is nil where the PIN is free.
func (f *fake) duplicateOf(self string, wanted *fakeCode) http.HandlerFunc {
	for id, c := range f.codes {
		if !f.uniquePINs || id == self || c.device != wanted.device || c.code != wanted.code ||
			c.status == "removing" || c.managed && c.frame().Apart(wanted.frame()) {
			continue
		}
		data := ""
		if !f.namesNoHolder {
			data = `, "data": {"` + map[bool]string{true: "managed", false: "unmanaged"}[c.managed] +
				`_access_code_id": "` + id + `"}`
		}
		return answerRaw(http.StatusConflict, "application/json; charset=utf-8",
			`{"ok": false, "error": {"type": "duplicate_access_code", "message": "The device already has this code."`+
				data+`}}`)
	}
	return nil
}

func (c *fakeCode) frame() lockrules.Frame {
	at := func(value any) *time.Time { return instant{types.StringValue(asText(value))}.time() }
	return lockrules.Frame{StartsAt: at(c.startsAt), EndsAt: at(c.endsAt)}
}

// settle is what the lock does: codes of the future wait.
func (f *fake) settle(c *fakeCode) {
	if f.neverSet {
		return
	}
	c.status = "set"
	if starts, err := time.Parse(time.RFC3339, asText(c.startsAt)); err == nil && starts.After(time.Now()) {
		c.status = "unset"
	}
}

func asText(value any) string {
	text, _ := value.(string)
	return text
}

func (f *fake) getCode(w http.ResponseWriter, r *http.Request, body map[string]any) {
	f.onCode(
		w,
		r,
		body,
		func(id string, _ *fakeCode) map[string]any { return map[string]any{"access_code": f.codeJSON(id)} },
	)
}

func (f *fake) updateCode(w http.ResponseWriter, r *http.Request, body map[string]any) {
	id := asText(body["access_code_id"])
	if before := f.codes[id]; before != nil {
		changed := *before
		changed.change(body)
		if refusal := f.duplicateOf(id, &changed); refusal != nil {
			refusal(w, r)
			return
		}
	}
	f.onCode(w, r, body, func(_ string, c *fakeCode) map[string]any {
		c.change(body)
		c.status = "setting"
		done := map[string]any{}
		f.attempt(done, "UPDATE_ACCESS_CODE", func() { f.settle(c) })
		return done
	})
}

// change applies the body of an update.
func (c *fakeCode) change(body map[string]any) {
	for name, field := range map[string]*any{
		"name": &c.name, "code": &c.code, "starts_at": &c.startsAt, "ends_at": &c.endsAt,
	} {
		if value, ok := body[name]; ok {
			*field = value
		}
	}
	if body["type"] == "ongoing" {
		c.startsAt, c.endsAt = nil, nil
	}
	if external, ok := body["is_external_modification_allowed"].(bool); ok {
		c.external = external
	}
}

func (f *fake) convertCode(w http.ResponseWriter, r *http.Request, body map[string]any) {
	f.onCode(w, r, body, func(_ string, c *fakeCode) map[string]any {
		c.external, _ = body["is_external_modification_allowed"].(bool)
		done := map[string]any{}
		f.attempt(done, "CONVERT_ACCESS_CODE_TO_MANAGED", func() { c.managed, c.status, c.key = true, "set", nil })
		return done
	})
}

func (f *fake) deleteCode(w http.ResponseWriter, r *http.Request, body map[string]any) {
	f.onCode(w, r, body, func(id string, c *fakeCode) map[string]any {
		actionType := "DELETE_ACCESS_CODE"
		if !c.managed {
			actionType = "DELETE_UNMANAGED_ACCESS_CODE"
		}
		done := map[string]any{}
		f.attempt(done, actionType, func() { delete(f.codes, id) })
		return done
	})
}

// attempt adds an action attempt to an answer, and takes effect when it has succeeded.
func (f *fake) attempt(answer map[string]any, actionType string, effect func()) {
	if f.noAttempts {
		f.effects = append(f.effects, fakeEffect{len(f.calls) + f.laterBy, effect})
		f.takeEffect()
		return
	}
	a := &fakeAttempt{actionType: actionType, looks: 1, effect: effect}
	if f.nextAttempt != nil {
		f.nextAttempt(a)
	}
	id := f.newID()
	f.attempts[id] = a
	answer["action_attempt"] = f.attemptJSON(id)
}

func (f *fake) attemptJSON(id string) map[string]any {
	a := f.attempts[id]
	attempt := map[string]any{
		"action_attempt_id": id,
		"action_type":       a.actionType,
		"status":            "pending",
		"result":            nil,
		"error":             nil,
	}
	switch {
	case a.looks > 0:
	case a.failure != nil:
		attempt["status"], attempt["error"] = "error", a.failure
	default:
		attempt["status"], attempt["result"] = "success", map[string]any{}
	}
	return attempt
}

func (f *fake) getAttempt(w http.ResponseWriter, r *http.Request, body map[string]any) {
	id, _ := body["action_attempt_id"].(string)
	a := f.attempts[id]
	if a == nil || f.forgetsAttempts {
		answerError(404, "action_attempt_not_found", "Could not find action attempt")(w, r)
		return
	}
	if a.looks--; a.looks == 0 && a.failure == nil {
		a.effect()
	}
	answer(map[string]any{"action_attempt": f.attemptJSON(id)})(w, r)
}
