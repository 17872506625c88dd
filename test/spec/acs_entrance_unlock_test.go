package spec_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// unlocks returns how often the first entrance of a system was unlocked.
func unlocks(t *testing.T, y *apptest.AccessSystem) int {
	t.Helper()
	return y.Memory(t).Entrances[0].Unlocks
}

// Each outcome at the access system ends the attempt, and no command is sent twice.
func TestAcsEntranceUnlock_Outcomes(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	y := s.AccessSystem(t)
	door := entranceNamed(t, s, y, y.Memory(t).Entrances[0].Name)
	unlock := func() api.ActionAttempt {
		t.Helper()
		var out api.ActionAttemptResponse
		if status := s.Post(t, "/acs/entrances/unlock", params{
			"acs_entrance_id": door, "acs_credential_id": uuid.Nil.String(),
		}, &out); status != http.StatusOK {
			t.Fatalf("unlock: %d", status)
		}
		return out.ActionAttempt
	}
	ended := func(a api.ActionAttempt) api.ActionAttempt {
		t.Helper()
		apptest.Until(t, "the attempt ends", func() bool {
			var out api.ActionAttemptResponse
			s.Post(t, "/action_attempts/get", params{"action_attempt_id": a.ActionAttemptID}, &out)
			a = out.ActionAttempt
			return a.Status != "pending"
		})
		return a
	}
	a := ended(unlock())
	if a.ActionType != "UNLOCK_DOOR" || a.Status != "success" ||
		a.Result.(params)["was_confirmed_by_device"] != true || unlocks(t, y) != 1 {
		t.Errorf("confirmed: %+v, %d unlocks", a, unlocks(t, y))
	}
	for _, f := range []struct {
		name   string
		faults params
		sent   int // unlocks
		want   string
	}{
		{"refused", params{"refuse_unlocks": true}, 0, "acs_system_refused"},
		{"unconfirmed", params{"failure_rate": params{"unconfirmed": 1}}, 1, "unlock_unconfirmed"},
	} {
		before := unlocks(t, y)
		y.Control(t, http.MethodPut, "/faults", f.faults, nil)
		a := ended(unlock())
		y.Control(t, http.MethodPut, "/faults", params{}, nil)
		y.Sync(t) // which must not send it again
		if a.Status != "error" || a.Error.Type != f.want || a.Error.Message == "" || unlocks(t, y) != before+f.sent {
			t.Errorf("%s: %+v, %d unlocks", f.name, a.Error, unlocks(t, y)-before)
		}
	}
	y.Control(t, http.MethodPost, "/offline", nil, nil)
	y.Sync(t)
	apptest.Until(t, "the system is known to be offline", func() bool {
		var out api.AcsSystemResponse
		s.Post(t, "/acs/systems/get", params{"acs_system_id": y.ID}, &out)
		return len(out.AcsSystem.Errors) > 0
	})
	if a := unlock(); a.Status != "error" || a.Error.Type != "acs_system_disconnected" {
		t.Errorf("offline: %+v", a)
	}
	var events api.EventsResponse
	s.Post(t, "/events/list", params{
		"since": "2020-01-01T00:00:00Z", "connected_account_id": y.AccountID,
		"event_types": []any{"action_attempt.unlock_door.succeeded", "action_attempt.unlock_door.failed"},
	}, &events)
	if len(events.Events) != 4 {
		t.Errorf("%d events about attempts, want 4", len(events.Events))
	}
	for in, want := range map[string]params{
		"404 acs_entrance_not_found":   {"acs_entrance_id": uuid.NewString()},
		"404 acs_credential_not_found": {"acs_entrance_id": door, "acs_credential_id": uuid.NewString()},
	} {
		if got := refused(t, s, s.APIKey, "/acs/entrances/unlock", want); got != in {
			t.Errorf("%v: %s", want, got)
		}
	}
}

// Attempts end when the access system leaves with its account.
func TestAcsEntranceUnlock_AccountDeleted(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	y := s.AccessSystem(t)
	door := entranceNamed(t, s, y, y.Memory(t).Entrances[0].Name)
	y.Control(t, http.MethodPut, "/faults", params{"failure_rate": params{"transient": 1}}, nil)
	var out api.ActionAttemptResponse
	s.Post(t, "/acs/entrances/unlock", params{"acs_entrance_id": door}, &out)
	madeBy(t, s, "/connected_accounts/delete", "", params{"connected_account_id": y.AccountID})
	s.Post(t, "/action_attempts/get", params{"action_attempt_id": out.ActionAttempt.ActionAttemptID}, &out)
	if a := out.ActionAttempt; a.Status != "error" || a.Error.Type != "acs_system_disconnected" {
		t.Errorf("%+v", a)
	}
}

// An attempt ends at its deadline even while the access system does not answer.
func TestAcsEntranceUnlock_NoAnswer(t *testing.T) {
	t.Parallel()
	s := apptest.Start(
		t,
		apptest.WithProfiles("august"),
		apptest.WithAccess(func(o *access.Options) { o.LockCommandTimeout = time.Second }),
	)
	y := s.AccessSystem(t)
	door := entranceNamed(t, s, y, y.Memory(t).Entrances[0].Name)
	y.Control(t, http.MethodPut, "/faults", params{"latency_ms": params{"min": 5000, "max": 5000}}, nil)
	var out api.ActionAttemptResponse
	s.Post(t, "/acs/entrances/unlock", params{"acs_entrance_id": door}, &out)
	apptest.Until(t, "the attempt expires", func() bool {
		s.Post(t, "/action_attempts/get", params{"action_attempt_id": out.ActionAttempt.ActionAttemptID}, &out)
		return out.ActionAttempt.Status != "pending"
	})
	if e := out.ActionAttempt.Error; e == nil || e.Type != "action_attempt_expired" || unlocks(t, y) != 0 {
		t.Errorf("%+v", out.ActionAttempt)
	}
}
