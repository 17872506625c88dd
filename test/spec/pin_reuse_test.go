package spec_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// stays is a lock whose time-bound codes have one PIN.
type stays struct {
	*testing.T
	s      *apptest.Server
	device string
	start  time.Time
}

const stayPIN = "746283"

func newStays(t *testing.T) stays {
	t.Helper()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	_, device := s.Connect(t, "august")
	return stays{t, s, device, time.Now().UTC().AddDate(0, 1, 0).Truncate(24 * time.Hour)}
}

// at returns a time of the day-th day, which is written as the server writes it in messages.
func (st stays) at(day int, after time.Duration) string {
	return st.start.AddDate(0, 0, day).Add(after).Format(time.RFC3339)
}

// frame lasts from noon of the first day to noon of the last.
func (st stays) frame(first, last int) params {
	return params{"starts_at": st.at(first, 12*time.Hour), "ends_at": st.at(last, 12*time.Hour)}
}

func merged(in params, more params) params {
	out := params{}
	maps.Copy(out, in)
	maps.Copy(out, more)
	return out
}

func (st stays) create(in params) api.AccessCode {
	st.Helper()
	var out api.AccessCodeCreatedResponse
	if status := st.s.Post(
		st.T, "/access_codes/create", merged(params{"device_id": st.device, "code": stayPIN}, in), &out,
	); status != http.StatusOK {
		st.Fatalf("create: %d", status)
	}
	return out.AccessCode
}

// refuses sends a request that must fail because of another code.
func (st stays) refuses(path string, in params, other api.AccessCode, says ...string) {
	st.Helper()
	var f struct {
		Error struct {
			Type    string
			Message string
			Data    map[string]any
		}
	}
	status := st.s.Post(st.T, path, in, &f)
	if status != http.StatusConflict || f.Error.Type != "duplicate_access_code" ||
		f.Error.Data["managed_access_code_id"] != other.AccessCodeID {
		st.Errorf("%s: %d %+v, want a duplicate of %s", path, status, f.Error, other.AccessCodeID)
	}
	for _, text := range append(says, other.AccessCodeID) {
		if !strings.Contains(f.Error.Message, text) {
			st.Errorf("%s: %q lacks %q", path, f.Error.Message, text)
		}
	}
	if strings.Contains(f.Error.Message, stayPIN) {
		st.Errorf("%s: the message has the PIN", path)
	}
}

func (st stays) refusesNew(in params, other api.AccessCode, says ...string) {
	st.Helper()
	st.refuses("/access_codes/create", merged(params{"device_id": st.device, "code": stayPIN}, in), other, says...)
}

// refusesChange sends a change that must fail and change nothing.
func (st stays) refusesChange(code api.AccessCode, in params, other api.AccessCode, says ...string) {
	st.Helper()
	st.refuses("/access_codes/update", merged(params{"access_code_id": code.AccessCodeID}, in), other, says...)
	if now := codeOf(st, code); !now.StartsAt.Equal(*code.StartsAt) || !now.EndsAt.Equal(*code.EndsAt) {
		st.Errorf("the code has changed to %s, %s", now.StartsAt, now.EndsAt)
	}
}

func codeOf(st stays, c api.AccessCode) api.AccessCode {
	st.Helper()
	return code(st.T, st.s, c.AccessCodeID)
}

func TestPINReuse_StaysApart(t *testing.T) {
	t.Parallel()
	st := newStays(t)
	second := st.create(st.frame(3, 5))
	st.create(st.frame(0, 2))
	st.create(params{"starts_at": st.at(5, 12*time.Hour+15*time.Minute), "ends_at": st.at(6, 0)})
	if now := codeOf(st, second); len(now.Errors) > 0 || now.Status != api.Unset {
		t.Errorf("status %s, errors %v", now.Status, now.Errors)
	}
}

func TestPINReuse_OverlapIsRefused(t *testing.T) {
	t.Parallel()
	st := newStays(t)
	first := st.create(st.frame(0, 2))
	st.create(st.frame(4, 5)) // two days after the first
	known := []string{st.at(0, 12*time.Hour), st.at(2, 12*time.Hour)}
	day := st.at(2, 12*time.Hour+15*time.Minute)
	for name, c := range map[string]struct {
		frame params
		next  string
	}{
		"overlapping": {st.frame(1, 2), day},
		"overlapping and too long for the next gap": {st.frame(1, 3), st.at(5, 12*time.Hour+15*time.Minute)},
		"equal": {st.frame(0, 2), st.at(5, 12*time.Hour+15*time.Minute)},
		"less than the margin later": {
			params{"starts_at": st.at(2, 12*time.Hour+14*time.Minute), "ends_at": st.at(3, 0)}, day,
		},
		"less than the margin earlier": {
			params{"starts_at": st.at(0, 0), "ends_at": st.at(0, 11*time.Hour+46*time.Minute)}, day,
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := st
			st.T = t
			st.refusesNew(c.frame, first, append(known, "next free start is "+c.next)...)
		})
	}
	st.refusesNew(nil, first, known...) // ongoing
	st.create(params{"starts_at": day, "ends_at": st.at(4, 11*time.Hour)})
}

func TestPINReuse_OngoingCodeIsAlwaysInTheWay(t *testing.T) {
	t.Parallel()
	st := newStays(t)
	ongoing := st.create(nil)
	st.refusesNew(st.frame(0, 2), ongoing, "ongoing")
}

func TestPINReuse_ExtensionIntoNextStayIsRefused(t *testing.T) {
	t.Parallel()
	st := newStays(t)
	first, second := st.create(st.frame(0, 2)), st.create(st.frame(3, 5))
	times := []string{st.at(3, 12*time.Hour), st.at(5, 12*time.Hour)}
	st.refusesChange(first, params{"ends_at": st.at(3, 11*time.Hour+46*time.Minute)}, second, times...)
	st.refusesChange(first, params{"ends_at": st.at(9, 0)}, second, times...)
	st.refusesChange(first, params{"type": "ongoing"}, second, times...)
	st.refusesChange(second, params{"starts_at": st.at(1, 0)}, first)
	third := st.create(merged(st.frame(4, 6), params{"code": "538164"}))
	st.refusesChange(third, params{"code": stayPIN}, second, times...)

	for _, change := range []params{
		{"access_code_id": first.AccessCodeID, "ends_at": st.at(3, 11*time.Hour+45*time.Minute)},
		{"access_code_id": third.AccessCodeID, "code": stayPIN, "starts_at": st.at(6, 0), "ends_at": st.at(7, 0)},
	} {
		if status := st.s.Post(t, "/access_codes/update", change, nil); status != http.StatusOK {
			t.Errorf("a change that stays apart: %d", status)
		}
	}
}

// All codes of a key change together, so the refusal for one lock changes none.
func TestPINReuse_CommonCodes(t *testing.T) {
	t.Parallel()
	st := newStays(t)
	_, other := st.s.Connect(t, "nuki")
	one := createMultiple(t, st.s, merged(st.frame(0, 2), params{"device_ids": []string{st.device, other}}))
	next := params{"device_id": st.device, "code": *one[0].Code}
	second := st.create(merged(next, st.frame(3, 5)))
	st.refuses(
		"/access_codes/update_multiple",
		params{"common_code_key": *one[0].CommonCodeKey, "ends_at": st.at(4, 0), "starts_at": st.at(0, 0)},
		second, st.device,
	)
	for _, c := range one {
		if now := codeOf(st, c); !now.EndsAt.Equal(*c.EndsAt) {
			t.Errorf("a code of the key has changed to %s", now.EndsAt)
		}
	}
	joins := params{"device_id": st.device, "common_code_key": *one[0].CommonCodeKey}
	st.refuses("/access_codes/create", merged(joins, st.frame(1, 2)), one[0])
	if status := st.s.Post(t, "/access_codes/create", merged(joins, st.frame(6, 7)), nil); status != http.StatusOK {
		t.Errorf("a code that joins the key after the stays: %d", status)
	}
}

// Otherwise the lock would refuse the earlier stay, because it has the PIN already.
func TestPINReuse_LaterStayOnLock(t *testing.T) {
	t.Parallel()
	st := newStays(t)
	soon := func(from, until time.Duration) params {
		now := time.Now().UTC()
		return params{"starts_at": now.Add(from).Format(time.RFC3339), "ends_at": now.Add(until).Format(time.RFC3339)}
	}
	later := st.create(soon(4*time.Hour, 6*time.Hour))
	apptest.Until(t, "the lock has the later stay", func() bool { return st.s.Lock(t, st.device).Has(t, stayPIN) })
	st.refusesNew(soon(0, time.Hour), later, "on the lock")
	away := st.create(soon(8*time.Hour, 9*time.Hour))
	st.refusesChange(away, soon(time.Hour, 2*time.Hour), later, "on the lock")
	st.refusesChange(later, soon(12*time.Hour, 13*time.Hour), away, "on the lock")
}

// The server does not remove an unmanaged code at its end, so the next stay would not get its PIN.
func TestPINReuse_UnmanageBeforeNextStay(t *testing.T) {
	t.Parallel()
	st := newStays(t)
	now := time.Now().UTC()
	first := st.create(params{
		"starts_at": now.Format(time.RFC3339), "ends_at": now.Add(time.Hour).Format(time.RFC3339),
	})
	untilSet(t, st.s, []api.AccessCode{first})
	second := st.create(st.frame(0, 2))
	unmanage := params{"access_code_id": first.AccessCodeID, "is_managed": false}
	st.refuses("/access_codes/update", unmanage, second, st.at(0, 12*time.Hour), "unmanaged")
	if status := st.s.Post(
		t, "/access_codes/delete", params{"access_code_id": second.AccessCodeID}, nil,
	); status != http.StatusOK {
		t.Fatalf("delete: %d", status)
	}
	if status := st.s.Post(t, "/access_codes/update", unmanage, nil); status != http.StatusOK {
		t.Errorf("after the second is deleted: %d", status)
	}
}

func TestPINReuse_GetByPIN(t *testing.T) {
	t.Parallel()
	st := newStays(t)
	st.create(st.frame(6, 7))
	next := st.create(st.frame(3, 5))
	want := func(what string, c api.AccessCode) {
		t.Helper()
		var out api.AccessCodeResponse
		st.s.Post(t, "/access_codes/get", params{"device_id": st.device, "code": stayPIN}, &out)
		if out.AccessCode.AccessCodeID != c.AccessCodeID {
			t.Errorf("the code %s is not the answer", what)
		}
	}
	want("that comes next", next)
	now := time.Now().UTC()
	want("of now", st.create(params{
		"starts_at": now.Format(time.RFC3339), "ends_at": now.Add(time.Hour).Format(time.RFC3339),
	}))
}

// The pulled code gets the times of the code that it replaces, and must stay apart from the next stay, too.
func TestPINReuse_PulledBackupCode(t *testing.T) {
	t.Parallel()
	st := newStays(t)
	guest := backed(t, st.s, st.device, nil)
	untilAvailable(t, st.s, guest.AccessCodeID)
	out, status := pull(t, st.s, guest.AccessCodeID)
	if status != http.StatusOK {
		t.Fatalf("pull: %d", status)
	}
	next := st.create(merged(st.frame(0, 2), params{"code": *out.AccessCode.Code}))
	st.refusesChange(guest, params{"ends_at": st.at(1, 0)}, next, out.AccessCode.AccessCodeID, st.at(2, 12*time.Hour))
	if now := codeOf(st, out.AccessCode); !now.EndsAt.Equal(*guest.EndsAt) {
		t.Errorf("the pulled code has changed to %s", now.EndsAt)
	}
	if status := st.s.Post(
		t, "/access_codes/update", params{"access_code_id": guest.AccessCodeID, "ends_at": st.at(0, 0)}, nil,
	); status != http.StatusOK {
		t.Errorf("an extension that stays apart: %d", status)
	}
}
