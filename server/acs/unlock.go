package acs

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// maxUnlocks is how many commands may wait for one access system, which runs one at a time. Later ones would expire
// before their turn.
const maxUnlocks = 20

// UnlockEntrance requests to unlock an entrance. It returns the attempt, which ends when the access system confirms. On
// an unreachable system the attempt has already failed, because a door must not open later than its user expects. It
// fails with NotFound, also for a credential, because there are none; and with TooMany. Some clients require a
// credential: uuid.Nil means none.
func (s *Service) UnlockEntrance(
	ctx context.Context,
	p domain.Principal,
	entrance, credential string,
) (a device.Attempt, err error) {
	if credential != "" && !domain.IsID(credential, uuid.Nil) {
		e := notFound("acs_credential", "acs_credential_id", credential)
		e.Message += " This server has no credentials: the connected account unlocks the entrance. " +
			"Omit acs_credential_id, or send " + uuid.Nil.String() + " if your client requires it."
		return a, e
	}
	found, err := s.GetEntrance(ctx, p, entrance)
	if err != nil {
		return a, err
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		system, err := lockSystem(ctx, tx, p.WorkspaceID, found.SystemID.String())
		if err != nil {
			return err
		}
		// A look at the system may have removed it meanwhile.
		e, err := getEntrance(ctx, tx.Queries, p.WorkspaceID, entrance)
		if err != nil {
			return err
		}
		if err := checkUnlockRoom(ctx, tx, system.AcsSystemID); err != nil {
			return err
		}
		why, message, err := unreachable(ctx, tx, system)
		if err != nil {
			return err
		}
		if a, err = s.devices.StartUnlock(ctx, tx, p.WorkspaceID); err != nil {
			return err
		}
		if why != "" {
			a.Status, a.ErrorType, a.Message = device.Failed, why, message
			return s.devices.EndUnlock(ctx, tx, system.ConnectedAccountID, a)
		}
		if err := tx.InsertAcsUnlock(ctx, dbsqlc.InsertAcsUnlockParams{
			ActionAttemptID: a.ID,
			AcsSystemID:     system.AcsSystemID,
			EntranceRef:     e.AcsEntrance.VendorRef,
		}); err != nil {
			return err
		}
		return s.wake(ctx, tx, system.AcsSystemID)
	})
	return a, domain.Wrap(err, "unlock an entrance")
}

// checkUnlockRoom fails with TooMany where the maximum of commands waits for a system, which the caller has locked.
func checkUnlockRoom(ctx context.Context, tx store.Tx, system uuid.UUID) error {
	n, err := tx.CountAcsUnlocks(ctx, system)
	if err != nil || n < maxUnlocks {
		return err
	}
	return &domain.Error{
		Kind: domain.TooMany,
		Type: "too_many_requests",
		Data: map[string]any{"acs_system_id": system},
		Message: fmt.Sprintf(
			"%d commands already wait for this access system. Try again when one of them has ended.", n),
	}
}

const unreachableMessage = "The access system is unreachable. Try again when it is back."

// unreachable returns why a system gets no commands, or "".
func unreachable(ctx context.Context, tx store.Tx, r dbsqlc.AcsSystem) (errorType, message string, err error) {
	if r.ErrorMessage != nil && !r.WriteRefused {
		return systemDisconnected, unreachableMessage, nil
	}
	with, err := tx.GetAcsSystem(ctx,
		dbsqlc.GetAcsSystemParams{WorkspaceID: r.WorkspaceID, AcsSystemID: r.AcsSystemID})
	if err != nil || with.AccountErrorCode == nil {
		return "", "", err
	}
	return *with.AccountErrorCode, text(with.AccountErrorMessage), nil
}

// Unlock is a command to unlock an entrance.
type Unlock struct {
	Attempt uuid.UUID
	Ref     string // of the entrance
}

// StartUnlock returns the next command to the entrances of a system, or false if there is none. It records that the
// command is about to be sent, so that it is not sent again after a crash. It ends commands that are late, and those
// that an earlier lease holder sent without recording the outcome.
func (s *Service) StartUnlock(
	ctx context.Context,
	h store.Fence,
	system uuid.UUID,
) (next Unlock, ok bool, err error) {
	err = s.onSystem(ctx, h, system, "start a command", func(tx store.Tx, r dbsqlc.AcsSystem) error {
		ok = false
		rows, err := tx.ListAcsUnlocks(ctx, system)
		if err != nil {
			return err
		}
		now := s.devices.Now()
		for _, u := range rows {
			switch {
			case u.StartedAt != nil:
				err = s.endUnlock(ctx, tx, r, u.ActionAttemptID, UnlockUnconfirmed, unconfirmedMessage)
			case !u.DeadlineAt.After(now):
				err = s.endUnlock(ctx, tx, r, u.ActionAttemptID, device.UnlockExpired, device.UnlockExpiredMessage)
			default:
				next, ok = Unlock{u.ActionAttemptID, u.EntranceRef}, true
				return tx.StartActionAttempt(ctx,
					dbsqlc.StartActionAttemptParams{ActionAttemptID: u.ActionAttemptID, StartedAt: &now})
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return next, ok, err
}

// UnlockUnconfirmed is the error type of a command whose outcome is unknown.
const UnlockUnconfirmed = "unlock_unconfirmed"

const unconfirmedMessage = "The access system did not confirm. The entrance may have opened: look at it before you try again."

// RecordUnlockNotStarted records that a command was not sent and may be sent again.
func (s *Service) RecordUnlockNotStarted(ctx context.Context, h store.Fence, system uuid.UUID, u Unlock) error {
	return s.onSystem(ctx, h, system, "record that a command did not start",
		func(tx store.Tx, _ dbsqlc.AcsSystem) error {
			return tx.StartActionAttempt(ctx, dbsqlc.StartActionAttemptParams{ActionAttemptID: u.Attempt})
		})
}

// RecordUnlock ends a command: successfully, or with the type and message of an error. The message of
// UnlockUnconfirmed and of an unreachable system may be empty.
func (s *Service) RecordUnlock(
	ctx context.Context,
	h store.Fence,
	system uuid.UUID,
	u Unlock,
	errorType, message string,
) error {
	switch errorType {
	case UnlockUnconfirmed:
		message = unconfirmedMessage
	case systemDisconnected:
		message = unreachableMessage
	}
	return s.onSystem(ctx, h, system, "record the end of a command", func(tx store.Tx, r dbsqlc.AcsSystem) error {
		return s.endUnlock(ctx, tx, r, u.Attempt, errorType, message)
	})
}

// endUnlock ends a command to a system, successfully if there is no error type.
func (s *Service) endUnlock(
	ctx context.Context,
	tx store.Tx,
	r dbsqlc.AcsSystem,
	attempt uuid.UUID,
	errorType, message string,
) error {
	a := device.Attempt{ID: attempt, Status: device.Succeeded}
	if errorType != "" {
		a.Status, a.ErrorType, a.Message = device.Failed, errorType, message
	}
	a.WorkspaceID = r.WorkspaceID
	return s.devices.EndUnlock(ctx, tx, r.ConnectedAccountID, a)
}

// endUnlocks fails the pending commands to a system that is removed.
func (s *Service) endUnlocks(ctx context.Context, tx store.Tx, r dbsqlc.AcsSystem) error {
	rows, err := tx.ListAcsUnlocks(ctx, r.AcsSystemID)
	for _, u := range rows {
		if err == nil {
			err = s.endUnlock(ctx, tx, r, u.ActionAttemptID, systemDisconnected, "The access system was removed.")
		}
	}
	return err
}
