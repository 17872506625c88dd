package device

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// UnlockExpired and UnlockExpiredMessage describe a command to an entrance whose deadline has passed.
const (
	UnlockExpired        = "action_attempt_expired"
	UnlockExpiredMessage = "The access system did not answer in time. Look at the entrance before you try again."
)

// StartUnlock creates the attempt of a command to unlock an entrance of an access system, which has no device. It fails
// after LockCommandTimeout in any case.
func (s *Service) StartUnlock(ctx context.Context, tx store.Tx, workspace uuid.UUID) (Attempt, error) {
	r, err := tx.InsertWorkspaceAttempt(ctx, dbsqlc.InsertWorkspaceAttemptParams{
		ActionAttemptID: domain.NewID(),
		WorkspaceID:     workspace,
		ActionType:      domain.UnlockDoor,
		Timeout:         s.opt.LockCommandTimeout,
	})
	if err != nil {
		return Attempt{}, fmt.Errorf("write the action attempt: %w", err)
	}
	tx.Begins()
	a := toAttempt(r)
	// The retention ends attempts without a device at their deadline.
	return a, tx.AdvanceRetention(ctx, dbsqlc.AdvanceRetentionParams{WorkspaceID: workspace, At: r.DeadlineAt})
}

// EndUnlock ends a command to an entrance with the status and the error of the attempt, and announces it. account is
// that of the access system. An attempt that has ended already does not change.
func (s *Service) EndUnlock(ctx context.Context, tx store.Tx, account uuid.UUID, a Attempt) error {
	ended, err := s.finish(ctx, tx, dbsqlc.ActionAttempt{ActionAttemptID: a.ID}, a.Status, a.ErrorType, a.Message)
	if err != nil || !ended {
		return err
	}
	if err := tx.DeleteAcsUnlock(ctx, a.ID); err != nil {
		return err
	}
	outcome := ".succeeded"
	if a.Status == Failed {
		outcome = ".failed"
	}
	return s.events.EmitFields(ctx, tx, event.AttemptEvents[domain.UnlockDoor]+outcome, a.WorkspaceID, account,
		map[string]any{"action_attempt_id": a.ID, "action_type": domain.UnlockDoor, "status": string(a.Status)})
}

// endLateUnlocks fails the commands to entrances of a workspace whose deadline has passed.
func (s *Service) endLateUnlocks(ctx context.Context, tx store.Tx, workspace uuid.UUID) error {
	late, err := tx.LateUnlocks(ctx, workspace)
	if err != nil {
		return err
	}
	for _, r := range late {
		a := Attempt{
			ID:          r.ActionAttemptID,
			WorkspaceID: workspace,
			Status:      Failed,
			ErrorType:   UnlockExpired,
			Message:     UnlockExpiredMessage,
		}
		if err := s.EndUnlock(ctx, tx, domain.Value(r.ConnectedAccountID), a); err != nil {
			return err
		}
	}
	return nil
}
