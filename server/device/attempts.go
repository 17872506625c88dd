package device

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Attempt is the progress of an asynchronous operation.
type Attempt struct {
	ID          uuid.UUID
	WorkspaceID uuid.UUID
	Type        string // an action_type of the API
	Status      AttemptStatus
	DeviceID    uuid.UUID // zero: not about a device
	CodeID      uuid.UUID // zero: not about a code
	Threshold   uuid.UUID // zero: not about a noise threshold
	ErrorType   string    // of a failed attempt
	Message     string    // of a failed attempt
	CreatedAt   time.Time
}

// AttemptStatus is the state of an attempt.
type AttemptStatus = lockstate.AttemptStatus

// Attempt states.
const (
	Pending   = lockstate.Pending
	Succeeded = lockstate.Succeeded
	Failed    = lockstate.Failed
)

// attemptOptions are applied when the attempt succeeds.
type attemptOptions struct {
	ExternalModificationAllowed *bool     `json:"external_modification_allowed,omitempty"` // convert
	AutoLock                    *AutoLock `json:"auto_lock,omitempty"`                     // configure
	// NoiseThreshold is what an attempt of package noisesensor is about.
	NoiseThreshold *uuid.UUID `json:"noise_threshold_id,omitempty"`
}

func toAttempt(r dbsqlc.ActionAttempt) Attempt {
	return Attempt{
		ID:          r.ActionAttemptID,
		WorkspaceID: r.WorkspaceID,
		Type:        r.ActionType,
		Status:      AttemptStatus(r.Status),
		DeviceID:    domain.Value(r.DeviceID),
		CodeID:      domain.Value(r.AccessCodeID),
		Threshold:   domain.Value(options(r).NoiseThreshold),
		ErrorType:   domain.Value(r.ErrorType),
		Message:     domain.Value(r.ErrorMessage),
		CreatedAt:   r.CreatedAt,
	}
}

// finish ends an attempt. ended reports whether it was still pending.
func (s *Service) finish(
	ctx context.Context,
	tx store.Tx,
	r dbsqlc.ActionAttempt,
	status AttemptStatus,
	errorType, message string,
) (ended bool, err error) {
	n, err := tx.FinishActionAttempt(ctx, finishOf(r.ActionAttemptID, status, errorType, message))
	if err != nil {
		return false, fmt.Errorf("finish the action attempt %s: %w", r.ActionAttemptID, err)
	}
	if n == 1 {
		tx.AfterCommit(func() { s.waiting.notify(r.ActionAttemptID) })
	}
	return n == 1, nil
}

// finishOf returns the columns of an ended attempt.
func finishOf(id uuid.UUID, status AttemptStatus, errorType, message string) dbsqlc.FinishActionAttemptParams {
	return dbsqlc.FinishActionAttemptParams{
		ActionAttemptID: id,
		Status:          string(status),
		ErrorType:       domain.NonEmpty(errorType),
		ErrorMessage:    domain.NonEmpty(domain.Storable(message)),
	}
}

func options(r dbsqlc.ActionAttempt) (o attemptOptions) {
	_ = json.Unmarshal(r.Options, &o) // written by this package
	return o
}

// GetAttempt reads an action attempt. It fails with NotFound.
func (s *Service) GetAttempt(ctx context.Context, p domain.Principal, id string) (Attempt, error) {
	notFound := &domain.Error{
		Kind:    domain.NotFound,
		Type:    "action_attempt_not_found",
		Message: "Could not find an action_attempt with this action_attempt_id.",
		Data:    map[string]any{"action_attempt_id": id},
	}
	parsed, err := uuid.Parse(id)
	if err != nil {
		return Attempt{}, notFound
	}
	r, err := s.db.GetActionAttempt(
		ctx,
		dbsqlc.GetActionAttemptParams{WorkspaceID: p.WorkspaceID, ActionAttemptID: parsed, Scope: p.Scope},
	)
	if store.IsNoRows(err) {
		return Attempt{}, notFound
	}
	if err != nil {
		return Attempt{}, fmt.Errorf("read the action attempt: %w", err)
	}
	return toAttempt(r), nil
}

// ListAttempts lists action attempts by identifiers, by device, or by both, oldest first, and reports whether
// more follow the page. It fails with Invalid if neither is given, and with NotFound if none of the identifiers
// exists.
func (s *Service) ListAttempts(
	ctx context.Context,
	p domain.Principal,
	ids *[]string,
	deviceID string,
	page domain.Page,
) ([]Attempt, bool, error) {
	if ids == nil && deviceID == "" {
		return nil, false, domain.Invalidf("", "Must specify at least one of action_attempt_ids or device_id")
	}
	var device *uuid.UUID
	if deviceID != "" {
		d, err := s.GetDevice(ctx, p, deviceID, "")
		if err != nil {
			return nil, false, err
		}
		device = &d.ID
	}
	var rows []dbsqlc.ActionAttempt
	var err error
	if ids != nil {
		rows, err = s.db.ListActionAttempts(ctx, dbsqlc.ListActionAttemptsParams{
			WorkspaceID:      p.WorkspaceID,
			AfterAt:          page.After.At,
			AfterID:          page.After.ID,
			ActionAttemptIds: domain.ParseIDs(ids),
			DeviceID:         device,
			MaxRows:          page.Rows(),
		})
	} else {
		rows, err = s.db.ListActionAttemptsOfDevice(ctx, dbsqlc.ListActionAttemptsOfDeviceParams{
			WorkspaceID: p.WorkspaceID,
			DeviceID:    *device,
			AfterAt:     page.After.At,
			AfterID:     page.After.ID,
			MaxRows:     page.Rows(),
		})
	}
	if err != nil {
		return nil, false, fmt.Errorf("list the action attempts: %w", err)
	}
	if len(rows) == 0 && ids != nil && len(*ids) > 0 && page.After.At.IsZero() {
		return nil, false, &domain.Error{
			Kind:    domain.NotFound,
			Type:    "action_attempts_not_found",
			Message: "Could not find any of these action attempts.",
		}
	}
	rows, more := domain.Cut(page, rows)
	out := make([]Attempt, len(rows))
	for i, r := range rows {
		out[i] = toAttempt(r)
	}
	return out, more, nil
}

// EndLateAttempts fails the attempts on a workspace itself, and those on entrances, whose deadline has passed.
func (s *Service) EndLateAttempts(ctx context.Context, workspace uuid.UUID) error {
	message := "The simulated devices did not answer in time. They appear when they answer. If they do not, " +
		"reset the workspace again."
	var ended []uuid.UUID
	err := s.db.InTx(ctx, func(tx store.Tx) (err error) {
		if err := s.endLateUnlocks(ctx, tx, workspace); err != nil {
			return err
		}
		ended, err = tx.FailLateWorkspaceAttempts(
			ctx,
			dbsqlc.FailLateWorkspaceAttemptsParams{
				WorkspaceID:  workspace,
				ActionType:   domain.ResetSandboxWorkspace,
				ErrorType:    new("action_attempt_expired"),
				ErrorMessage: &message,
			},
		)
		return err
	})
	if err != nil {
		return fmt.Errorf("fail late attempts on workspace %s: %w", workspace, err)
	}
	for _, id := range ended {
		s.waiting.notify(id)
	}
	return nil
}
