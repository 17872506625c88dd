package access

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Attempt is the progress of an asynchronous operation.
type Attempt struct {
	ID        uuid.UUID
	Type      string // an action_type of the API
	Status    AttemptStatus
	DeviceID  uuid.UUID // zero: not about a device
	CodeID    uuid.UUID // zero: not about a code
	ErrorType string    // of a failed attempt
	Message   string    // of a failed attempt
	CreatedAt time.Time
}

// AttemptStatus is the state of an attempt.
type AttemptStatus string

// Attempt states.
const (
	Pending   AttemptStatus = "pending"
	Succeeded AttemptStatus = "success"
	Failed    AttemptStatus = "error"
)

// Action types of the API.
const (
	LockDoor                  = "LOCK_DOOR"
	UnlockDoor                = "UNLOCK_DOOR"
	ConfigureAutoLock         = "CONFIGURE_AUTO_LOCK"
	SimulateKeypadCodeEntry   = "SIMULATE_KEYPAD_CODE_ENTRY"
	SimulateManualLock        = "SIMULATE_MANUAL_LOCK_VIA_KEYPAD"
	CreateAccessCode          = "CREATE_ACCESS_CODE"
	UpdateAccessCode          = "UPDATE_ACCESS_CODE"
	DeleteAccessCode          = "DELETE_ACCESS_CODE"
	ConvertAccessCode         = "CONVERT_ACCESS_CODE_TO_MANAGED"
	DeleteUnmanagedAccessCode = "DELETE_UNMANAGED_ACCESS_CODE"
	ResetSandboxWorkspace     = "RESET_SANDBOX_WORKSPACE"
)

// attemptOptions are applied when the attempt succeeds.
type attemptOptions struct {
	ExternalModificationAllowed *bool     `json:"external_modification_allowed,omitempty"` // convert
	AutoLock                    *AutoLock `json:"auto_lock,omitempty"`                     // configure
}

func toAttempt(r dbsqlc.ActionAttempt) Attempt {
	return Attempt{
		ID:        r.ActionAttemptID,
		Type:      r.ActionType,
		Status:    AttemptStatus(r.Status),
		DeviceID:  IDOf(r.DeviceID),
		CodeID:    IDOf(r.AccessCodeID),
		ErrorType: TextOf(r.ErrorType),
		Message:   TextOf(r.ErrorMessage),
		CreatedAt: r.CreatedAt,
	}
}

// maxWaiting is how many attempts of one type may wait for one code, because each pass over its device reads
// them all.
const maxWaiting = 20

// newAttempt inserts an attempt about a code on its locked device. At the maximum of waiting attempts a removal
// returns the last of them. Anything else fails with TooMany.
func (s *Service) newAttempt(
	ctx context.Context,
	tx store.Tx,
	c dbsqlc.AccessCode,
	actionType string,
	opt attemptOptions,
) (dbsqlc.ActionAttempt, error) {
	last, err := tx.WaitingBehind(ctx, dbsqlc.WaitingBehindParams{
		DeviceID:     c.DeviceID,
		AccessCodeID: c.AccessCodeID,
		ActionType:   actionType,
		Others:       maxWaiting - 1,
	})
	switch {
	case err == nil && (actionType == DeleteAccessCode || actionType == DeleteUnmanagedAccessCode):
		return last, nil
	case err == nil:
		return last, &Error{
			Kind: TooMany,
			Type: "too_many_requests",
			Data: map[string]any{"access_code_id": c.AccessCodeID},
			Message: fmt.Sprintf(
				"%d such requests already wait for the device of this access code. Try again when one of them "+
					"has ended; /action_attempts/list with its device_id shows them.",
				maxWaiting,
			),
		}
	case !store.IsNoRows(err):
		return last, fmt.Errorf("count what waits for access code %s: %w", c.AccessCodeID, err)
	}
	return s.insertAttempt(ctx, tx, c, actionType, Pending, opt)
}

// doneAttempt inserts an attempt that has already succeeded.
func (s *Service) doneAttempt(
	ctx context.Context,
	tx store.Tx,
	c dbsqlc.AccessCode,
	actionType string,
) (dbsqlc.ActionAttempt, error) {
	return s.insertAttempt(ctx, tx, c, actionType, Succeeded, attemptOptions{})
}

func (s *Service) insertAttempt(
	ctx context.Context,
	tx store.Tx,
	c dbsqlc.AccessCode,
	actionType string,
	status AttemptStatus,
	opt attemptOptions,
) (dbsqlc.ActionAttempt, error) {
	r, err := tx.InsertActionAttempt(ctx, s.attemptOf(c, actionType, status, opt))
	if err != nil {
		return r, fmt.Errorf("write the action attempt: %w", err)
	}
	if status == Pending {
		tx.Begins()
	}
	return r, nil
}

// attemptOf returns the row of an attempt about a code.
func (s *Service) attemptOf(
	c dbsqlc.AccessCode,
	actionType string,
	status AttemptStatus,
	opt attemptOptions,
) dbsqlc.InsertActionAttemptParams {
	return dbsqlc.InsertActionAttemptParams{
		ActionAttemptID: NewID(),
		WorkspaceID:     c.WorkspaceID,
		DeviceID:        &c.DeviceID,
		AccessCodeID:    &c.AccessCodeID,
		ActionType:      actionType,
		Gen:             c.DesiredGen,
		Options:         MustJSON(opt),
		Status:          string(status),
		Patience:        s.opt.AttemptPatience,
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
	n, err := tx.FinishActionAttempt(ctx, dbsqlc.FinishActionAttemptParams{
		ActionAttemptID: r.ActionAttemptID,
		Status:          string(status),
		ErrorType:       NonEmpty(errorType),
		ErrorMessage:    NonEmpty(Storable(message)),
	})
	if err != nil {
		return false, fmt.Errorf("finish the action attempt %s: %w", r.ActionAttemptID, err)
	}
	if n == 1 {
		tx.AfterCommit(func() { s.waiting.notify(r.ActionAttemptID) })
	}
	return n == 1, nil
}

func options(r dbsqlc.ActionAttempt) (o attemptOptions) {
	_ = json.Unmarshal(r.Options, &o) // written by this package
	return o
}

// GetAttempt reads an action attempt. It fails with NotFound.
func (s *Service) GetAttempt(ctx context.Context, p Principal, id string) (Attempt, error) {
	notFound := &Error{
		Kind:    NotFound,
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
	p Principal,
	ids *[]string,
	deviceID string,
	page Page,
) ([]Attempt, bool, error) {
	if ids == nil && deviceID == "" {
		return nil, false, Invalidf("", "Must specify at least one of action_attempt_ids or device_id")
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
			ActionAttemptIds: ParseIDs(ids),
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
		return nil, false, &Error{
			Kind:    NotFound,
			Type:    "action_attempts_not_found",
			Message: "Could not find any of these action attempts.",
		}
	}
	rows, more := Cut(page, rows)
	out := make([]Attempt, len(rows))
	for i, r := range rows {
		out[i] = toAttempt(r)
	}
	return out, more, nil
}
