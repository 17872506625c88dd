package spec_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// offlineCode creates an offline code and waits until its vendor has created it.
func offlineCode(t *testing.T, s *apptest.Server, device string, in map[string]any) api.AccessCode {
	t.Helper()
	body := map[string]any{"device_id": device, "is_offline_access_code": true}
	maps.Copy(body, in)
	var out api.AccessCodeCreatedResponse
	if status := s.Post(t, "/access_codes/create", body, &out); status != http.StatusOK {
		t.Fatalf("create: %d", status)
	}
	if c := out.AccessCode; c.Code != nil || !c.IsWaitingForCodeAssignment || !c.IsOfflineAccessCode {
		t.Errorf(
			"before its vendor has answered: waiting %t, offline %t",
			c.IsWaitingForCodeAssignment,
			c.IsOfflineAccessCode,
		)
	}
	var made api.AccessCode
	apptest.Until(t, "the vendor creates the code", func() bool {
		made = code(t, s, out.AccessCode.AccessCodeID)
		return made.Code != nil
	})
	if made.IsWaitingForCodeAssignment || len(*made.Code) != 9 {
		t.Errorf("it has %d digits, waiting %t", len(*made.Code), made.IsWaitingForCodeAssignment)
	}
	return made
}

func opens(t *testing.T, l *apptest.Lock, pin string) bool {
	t.Helper()
	var entered map[string]any
	l.Enter(t, pin, &entered)
	return entered["unlocked"] == true
}

// The lock is offline and gets no message: the vendor creates the code, and the lock accepts it.
func TestOfflineCode_OpensOfflineLock(t *testing.T) {
	t.Parallel()
	s := apptest.Start(
		t,
		apptest.WithProfiles("igloohome", "yale"),
		apptest.WithAccess(func(o *access.Options) { o.ReadLag = time.Millisecond }),
	)
	device := s.Device(t, "igloohome")
	l := s.Lock(t, device)
	if d := get(
		t,
		s,
		device,
	); !*d.CanProgramOfflineAccessCodes || !*d.Properties.SupportsOfflineAccessCodes ||
		*get(t, s, s.Device(t, "yale")).CanProgramOfflineAccessCodes {
		t.Error("devices with offline codes are not marked")
	}
	before := len(l.Memory(t))
	s.Post(t, "/devices/simulate/disconnect", map[string]any{"device_id": device}, nil)
	starts, ends := time.Now().UTC().Add(-time.Minute), time.Now().UTC().Add(90*time.Minute)
	c := offlineCode(t, s, device, map[string]any{"name": "Guest", "starts_at": starts, "ends_at": ends})
	if !c.StartsAt.Equal(starts.Truncate(time.Hour)) || c.EndsAt.Before(ends) || c.EndsAt.Sub(ends) > time.Hour ||
		!c.EndsAt.Equal(c.EndsAt.Truncate(time.Hour)) {
		t.Errorf("%s to %s became %s to %s", starts, ends, c.StartsAt, c.EndsAt)
	}
	apptest.Until(t, "it is set", func() bool { c = code(t, s, c.AccessCodeID); return c.Status == "set" })
	if len(c.Errors) > 0 || len(l.Memory(t)) != before || c.IsOneTimeUse || c.Type != api.TimeBound {
		t.Errorf("errors %+v, %d codes on the lock", c.Errors, len(l.Memory(t)))
	}
	for range 2 {
		if !opens(t, l, *c.Code) {
			t.Error("it does not open")
		}
	}

	// It stays unchanged until it ends.
	var f failure
	for field, value := range map[string]any{
		"code":       "746283",
		"name":       "Friend",
		"ends_at":    ends.Add(time.Hour),
		"type":       "ongoing",
		"is_managed": false,
	} {
		status := s.Post(t, "/access_codes/update", map[string]any{"access_code_id": c.AccessCodeID, field: value}, &f)
		if status != http.StatusBadRequest || f.Error.ValidationErrors[field] == nil {
			t.Errorf("changing %s: %d %+v", field, status, f.Error)
		}
	}
	status := s.Post(t, "/access_codes/delete", map[string]any{"access_code_id": c.AccessCodeID}, &f)
	if status != http.StatusBadRequest || f.Error.Type != "cannot_delete_offline_access_code" ||
		!strings.Contains(f.Error.Message, c.EndsAt.UTC().Format(time.RFC3339)) {
		t.Errorf("deleting it: %d %+v", status, f.Error)
	}

	// After its return, the lock does not list the code. This does not mean that the code is gone.
	s.Post(t, "/devices/simulate/connect", map[string]any{"device_id": device}, nil)
	var online api.AccessCodeCreatedResponse
	s.Post(t, "/access_codes/create", map[string]any{"device_id": device, "code": "7462", "sync": true}, &online)
	if got := code(t, s, c.AccessCodeID); got.Status != "set" || *got.Code != *c.Code {
		t.Errorf("after a read it is %s", got.Status)
	}
	var told api.EventsResponse
	apptest.Until(t, "the access event is listed", func() bool {
		s.Post(t, "/events/list", map[string]any{"since": "2020-01-01", "access_code_id": c.AccessCodeID}, &told)
		var types []string
		for _, e := range told.Events {
			types = append(types, e.EventType)
		}
		opens(t, l, *c.Code)
		return slices.Contains(types, "lock.unlocked") && slices.Contains(types, "access_code.issued") &&
			!slices.Contains(types, "access_code.deleted_external_to_seam")
	})
}

func TestOfflineCode_OneTime(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("igloohome"))
	device := s.Device(t, "igloohome")
	l := s.Lock(t, device)
	c := offlineCode(t, s, device, map[string]any{"is_one_time_use": true})
	if !c.IsOneTimeUse || c.EndsAt.Sub(*c.StartsAt) != 24*time.Hour {
		t.Errorf("one-time %t, %s to %s", c.IsOneTimeUse, c.StartsAt, c.EndsAt)
	}
	if !opens(t, l, *c.Code) || opens(t, l, *c.Code) {
		t.Error("it does not open once")
	}
	later := offlineCode(
		t,
		s,
		device,
		map[string]any{"starts_at": time.Now().Add(5 * time.Hour), "ends_at": time.Now().Add(9 * time.Hour)},
	)
	if later.Status != "unset" || opens(t, l, *later.Code) {
		t.Errorf("before it starts it is %s, or opens", later.Status)
	}
	l.Control(t, http.MethodPut, "/faults", map[string]any{"clock_skew_ms": (6 * time.Hour).Milliseconds()})
	if !opens(t, l, *later.Code) {
		t.Error("it does not open in its time")
	}
	l.Control(t, http.MethodPut, "/faults", map[string]any{"clock_skew_ms": (12 * time.Hour).Milliseconds()})
	if opens(t, l, *later.Code) {
		t.Error("it opens when it is over")
	}
}

func TestOfflineCode_HoursOrDays(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("igloohome"))
	device := s.Device(t, "igloohome")
	start := time.Now().UTC().Truncate(time.Hour).Add(48*time.Hour + 10*time.Minute)
	frame := func(lasts time.Duration, more map[string]any) map[string]any {
		in := map[string]any{"starts_at": start, "ends_at": start.Add(lasts)}
		maps.Copy(in, more)
		return in
	}
	const day = 24 * time.Hour
	days := map[string]any{"max_time_rounding": "1d"}
	for name, c := range map[string]struct {
		in    map[string]any
		lasts time.Duration
		warns bool
	}{
		"half an hour": {frame(30*time.Minute, nil), time.Hour, false},
		"hours":        {frame(90*time.Minute, nil), 2 * time.Hour, false},
		"two days":     {frame(2*day-10*time.Minute, nil), 2 * day, true},
		"a month":      {frame(30*day-time.Hour, days), 30 * day, true},
	} {
		got := offlineCode(t, s, device, c.in)
		warned := slices.ContainsFunc(
			got.Warnings,
			func(p api.Problem) bool { return p.WarningCode == "igloo_algopin_must_be_used_within_24_hours" },
		)
		if got.EndsAt.Sub(*got.StartsAt) != c.lasts || !got.StartsAt.Equal(start.Truncate(time.Hour)) ||
			warned != c.warns {
			t.Errorf("%s: %s to %s, warned %t", name, got.StartsAt, got.EndsAt, warned)
		}
	}
	for name, c := range map[string]struct {
		in    map[string]any
		field string
	}{
		"no time":         {nil, "starts_at"},
		"no end":          {map[string]any{"starts_at": start}, "ends_at"},
		"too many hours":  {frame(673*time.Hour, nil), "ends_at"},
		"too few days":    {frame(5*day, days), "ends_at"},
		"too many days":   {frame(368*day, days), "ends_at"},
		"a PIN":           {frame(day, map[string]any{"code": "746283"}), "code"},
		"a shared PIN":    {frame(day, map[string]any{"common_code_key": "k"}), "common_code_key"},
		"a backup":        {frame(day, map[string]any{"use_backup_access_code_pool": true}), "use_backup_access_code_pool"},
		"once, for hours": {frame(5*time.Hour, map[string]any{"is_one_time_use": true}), "ends_at"},
		"once, online":    {map[string]any{"is_offline_access_code": false, "is_one_time_use": true}, "is_one_time_use"},
	} {
		in := map[string]any{"device_id": device, "is_offline_access_code": true}
		maps.Copy(in, c.in)
		var f failure
		if status := s.Post(
			t,
			"/access_codes/create",
			in,
			&f,
		); status != http.StatusBadRequest ||
			f.Error.ValidationErrors[c.field] == nil {
			t.Errorf("%s: %d %+v", name, status, f.Error)
		}
	}

	// Three codes for the same hours are allowed. A code without a PIN can be deleted.
	same := frame(3*time.Hour, nil)
	pins := map[string]bool{}
	for range 3 {
		pins[*offlineCode(t, s, device, same).Code] = true
	}
	if len(pins) != 3 {
		t.Errorf("three codes have %d PINs", len(pins))
	}
	same["device_id"], same["is_offline_access_code"], same["sync"] = device, true, true
	var fourth api.AccessCodeCreatedResponse
	s.Post(t, "/access_codes/create", same, &fourth)
	if a := fourth.ActionAttempt; a.Status != "error" || a.Error.Type != "no_space_for_access_code_on_device" ||
		fourth.AccessCode.Code != nil {
		t.Errorf("a fourth for the same hours: %+v", a)
	}
	if status := s.Post(
		t,
		"/access_codes/delete",
		map[string]any{"access_code_id": fourth.AccessCode.AccessCodeID},
		nil,
	); status != http.StatusOK {
		t.Errorf("deleting a code without a PIN: %d", status)
	}
}

// issues are steps with offline codes.
var (
	offlineNow = map[string]any{
		"is_offline_access_code": true,
		"starts_at":              time.Now().Add(-time.Minute),
		"ends_at":                time.Now().Add(50 * time.Hour),
	}
	issues = []step{
		{
			"an account is connected",
			nothing,
			[]string{
				"connected_account.created", "connected_account.connected", "connected_account.completed_first_sync",
				"device.added", "device.connected", "access_code.unmanaged.created",
			},
		},
		{
			"an offline code is created",
			create(offlineNow),
			[]string{
				"access_code.created",
				"access_code.mutations_requested",
				"access_code.issued",
				"access_code.set_on_device",
			},
		},
		{
			"the vendor refuses one",
			all(
				control(http.MethodPut, "/faults", map[string]any{"failure_rate": map[string]any{"invalid": 1}}),
				create(offlineNow),
			),
			[]string{"access_code.created", "access_code.mutations_requested", "access_code.failed_to_issue"},
		},
		{"the code is deleted", remove, []string{"access_code.deleted"}},
		{
			"the vendor is busy for an hour",
			all(
				control(http.MethodPut, "/faults", map[string]any{"failure_rate": map[string]any{"busy": 1}}),
				create(offlineNow),
				anHourPasses,
			),
			[]string{
				"access_code.created",
				"access_code.mutations_requested",
				"access_code.delay_in_issuing",
				"access_code.failed_to_issue",
			},
		},
		{
			"it is no longer busy",
			all(control(http.MethodPut, "/faults", map[string]any{}), anHourPasses),
			[]string{"access_code.issued", "access_code.set_on_device"},
		},
	}
)
