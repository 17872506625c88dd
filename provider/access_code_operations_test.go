package provider

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// The table has every error with which a server ends the creation or the change of a code (server/device).
func TestIsRefusal_OnlyIfServerStops(t *testing.T) {
	t.Parallel()
	for errorType, refused := range map[string]bool{
		"action_attempt_expired":             false,
		"account_disconnected":               false,
		"device_disconnected":                false,
		"device_offline":                     false,
		"device_removed":                     false,
		"device_unmanaged":                   false,
		"hub_disconnected":                   false,
		"subscription_required":              false,
		"access_code_deleted":                true,
		"code_constraints_violated":          true,
		"duplicate_code_on_device":           true,
		"failed_to_issue":                    true,
		"failed_to_set_on_device":            true,
		"failed_to_update":                   true,
		"lock_rejected":                      true,
		"no_space_for_access_code_on_device": true,
	} {
		err := &api.AttemptError{Reason: &api.ActionAttemptError{Type: errorType}}
		if isRefusal(err) != refused {
			t.Errorf("%s counts as a refusal: %t", errorType, !refused)
		}
		if shared := (lockResult{err: err, code: lockCode{AccessCodeID: types.StringValue("a")}}); shared.isRefused() != refused {
			t.Errorf("%s counts as a refusal of a shared code: %t", errorType, !refused)
		}
	}
	if !isRefusal(&api.AttemptError{}) {
		t.Error("a failure without a reason counts as no refusal")
	}
}

// The server has no field that tells the two failures apart.
func TestIsFinal_KnowsTheTextOfTheServer(t *testing.T) {
	t.Parallel()
	refused := api.Problem{ErrorCode: domain.ErrFailedToSet, Message: "The lock is busy.", IsAccessCodeError: true}
	retried := refused
	retried.Message += domain.RetriedSuffix
	if !isFinal(refused) || isFinal(retried) {
		t.Errorf("final: %t without %q, %t with it", isFinal(refused), domain.RetriedSuffix, isFinal(retried))
	}
}

func TestWithProblems_SaysTheReasonOnce(t *testing.T) {
	t.Parallel()
	unpaid := api.Problem{ErrorCode: "subscription_required", Message: "There is no subscription."}
	offline := api.Problem{ErrorCode: "device_offline", Message: "The lock is offline."}
	failed := &api.AttemptError{Reason: &api.ActionAttemptError{Type: unpaid.ErrorCode, Message: unpaid.Message}}
	for name, c := range map[string]struct {
		err      error
		problems []api.Problem
		adds     string
	}{
		"the reason":            {failed, []api.Problem{unpaid}, ""},
		"the reason and others": {failed, []api.Problem{unpaid, offline}, "The lock is offline (device_offline)"},
		"another error": {
			context.DeadlineExceeded, []api.Problem{unpaid}, "There is no subscription (subscription_required)",
		},
	} {
		want := c.err.Error()
		if c.adds != "" {
			want += "; the access code says: " + c.adds
		}
		err := withProblems(c.err, c.problems)
		if err.Error() != want {
			t.Errorf("%s: %v", name, err)
		}
		if _, ok := errors.AsType[*problemError](err); !ok {
			t.Errorf("%s: the problems are lost", name)
		}
	}
}

// leavingLock refuses a PIN until its holder, which has this status, has left.
type leavingLock struct {
	status string
	leaves time.Time
}

func (l leavingLock) RoundTrip(r *http.Request) (*http.Response, error) {
	code := `{"access_code": {"access_code_id": "a", "device_id": "d", "is_managed": true, "status": "` + l.status + `"}}`
	status, body := http.StatusOK, code
	if strings.HasSuffix(r.URL.Path, "/create") && time.Now().Before(l.leaves) {
		status, body = http.StatusConflict, `{"error": {"type": "duplicate_access_code", "message": "It is taken.",
			"data": {"managed_access_code_id": "a"}}}`
	}
	return &http.Response{
		StatusCode: status,
		Header:     http.Header{"Content-Type": {"application/json"}},
		Body:       io.NopCloser(strings.NewReader(body)),
		Request:    r,
	}, nil
}

func TestCreation_WaitsForLeavingHolderUntilTimeout(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status           string
		leaves, min, max time.Duration
		created          bool
	}{
		"that leaves slowly": {"removing", 3 * time.Minute, 3 * time.Minute, 4 * time.Minute, true},
		"that never leaves":  {"removing", time.Hour, 5 * time.Minute, 5 * time.Minute, false},
		"that stays":         {"set", time.Hour, duplicateTimeout, duplicateTimeout, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				client, err := api.New(api.Config{
					Endpoint:   "http://server.example",
					Credential: fakeKey,
					Transport:  leavingLock{c.status, start.Add(c.leaves)},
				})
				if err != nil {
					t.Fatal(err)
				}
				_, err = createRetryingDuplicates(ctx, client, api.CreateAccessCodeRequest{DeviceID: "d"})
				took := time.Since(start)
				if (err == nil) != c.created || took < c.min || took > c.max {
					t.Errorf("after %s: %v", took, err)
				}
				if err != nil && managedHolder(err) == "" {
					t.Errorf("the holder is not named: %v", err)
				}
			})
		})
	}
}
