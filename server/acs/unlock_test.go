package acs_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// unlock requests to unlock an entrance and returns the attempt.
func (h *house) unlock(entrance string) uuid.UUID {
	h.Helper()
	a, err := h.s.UnlockEntrance(h.Context(), h.p, entrance, "")
	if err != nil {
		h.Fatal(err)
	}
	return a.ID
}

// started returns the next command that must be sent.
func (h *house) started() (acs.Unlock, bool) {
	h.Helper()
	u, ok, err := h.s.StartUnlock(h.Context(), alone{}, h.system)
	if err != nil {
		h.Fatal(err)
	}
	return u, ok
}

// outcome returns the status of an attempt and the type of its error.
func (h *house) outcome(attempt uuid.UUID) (out string) {
	h.Helper()
	err := h.db.Pool.QueryRow(h.Context(), `select concat_ws(' ', status, error_type) from action_attempts
		where action_attempt_id = $1`, attempt).Scan(&out)
	if err != nil {
		h.Fatal(err)
	}
	return out
}

// A command is sent once, in the order of the requests, whatever happens to the lease holder.
func TestUnlock_SentOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ids := h.withEntrances()
	first, second := h.unlock(ids[0]), h.unlock(ids[1])
	u, ok := h.started()
	if !ok || u.Attempt != first || u.Ref != "e1" {
		t.Fatalf("started %+v", u)
	}
	if err := h.s.RecordUnlockNotStarted(t.Context(), alone{}, h.system, u); err != nil {
		t.Fatal(err)
	}
	if again, ok := h.started(); !ok || again != u {
		t.Errorf("a command that was not sent is not tried again: %+v", again)
	}
	// The lease holder crashes here.
	next, ok := h.started()
	if !ok || next.Attempt != second || h.outcome(first) != "error unlock_unconfirmed" {
		t.Errorf("after a crash: %+v, the first one: %s", next, h.outcome(first))
	}
	if err := h.s.RecordUnlock(t.Context(), alone{}, h.system, next, "", ""); err != nil {
		t.Fatal(err)
	}
	if _, ok := h.started(); ok || h.outcome(second) != "success" {
		t.Errorf("confirmed: %s", h.outcome(second))
	}
}

// A command that waits too long is not sent, and one system gets a bounded number of them.
func TestUnlock_ExpiresAndIsBounded(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	door := h.withEntrances()[0]
	first := h.unlock(door)
	for range 19 {
		h.unlock(door)
	}
	_, err := h.s.UnlockEntrance(t.Context(), h.p, door, "")
	if e, ok := domain.AsError(err); !ok || e.Kind != domain.TooMany {
		t.Errorf("one too many: %v", err)
	}
	h.now = h.now.Add(time.Hour)
	if u, ok := h.started(); ok || h.outcome(first) != "error action_attempt_expired" {
		t.Errorf("late: %+v, %s", u, h.outcome(first))
	}
	h.unlock(door) // there is room again
}
