package acs

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Write is one operation on a system.
type Write struct {
	UserID uuid.UUID
	Gen    int64
	Ref    string // empty: create
	Delete bool
	// Stray marks the deletion of an unwanted user that arrived late and is not the known user.
	Stray     bool
	Profile   Profile
	Restricts bool  // the write takes access away
	Failures  int32 // consecutive failures
}

// Deferred reports whether a write comes last and delays no other: it concerns a stray, or a
// deletion that failed repeatedly.
func (w Write) Deferred() bool { return w.Stray || w.Delete && w.Failures >= reportAfterFailures }

// priority returns the rank of a write; lower runs first. Writes that take access away precede
// those that grant it, and all known users precede strays.
func (w Write) priority() int {
	switch {
	case w.Stray:
		return 5
	case w.Deferred():
		return 4
	case w.Delete:
		return 0
	case w.Ref == "":
		return 3
	case w.Profile.Suspended || w.Restricts:
		return 1
	}
	return 2
}

// RecordWriteStarted notes that a write is about to be sent, so that the next lease holder after a
// crash knows that it may have arrived. It reports whether the write is still wanted.
func (s *Service) RecordWriteStarted(
	ctx context.Context,
	h store.Fence,
	system uuid.UUID,
	w Write,
) (still bool, err error) {
	err = s.onSystem(ctx, h, system, "record the start of a write", func(tx store.Tx, _ dbsqlc.AcsSystem) error {
		// The write is still wanted unless its reference now belongs to another user.
		if w.Stray {
			_, err := tx.FindAcsUserByRef(ctx, dbsqlc.FindAcsUserByRefParams{AcsSystemID: system, VendorRef: &w.Ref})
			if still = store.IsNoRows(err); still {
				return nil
			}
			return err
		}
		u, err := tx.LockAcsUser(ctx, w.UserID)
		if store.IsNoRows(err) {
			return nil
		}
		if err != nil {
			return err
		}
		still = u.IsManaged && u.DesiredGen == w.Gen && w.Delete == (u.DeletingAt != nil)
		if !still || w.Ref != "" {
			return nil
		}
		return tx.AcsUserSent(ctx, dbsqlc.AcsUserSentParams{AcsUserID: w.UserID, WriteAt: new(s.devices.Now())})
	})
	return still, err
}

// RecordWritten records that a system accepted a write. It reports whether to look at the system
// for the result. A deletion counts only once the system shows it. No client waits for the deletion
// of a stray.
func (s *Service) RecordWritten(
	ctx context.Context,
	h store.Fence,
	system uuid.UUID,
	w Write,
	ref string,
) (look bool, err error) {
	err = s.onSystem(ctx, h, system, "record a write", func(tx store.Tx, r dbsqlc.AcsSystem) error {
		look = w.Delete && !w.Stray
		if r.WriteRefused {
			if err := s.markReachable(ctx, tx, r); err != nil {
				return err
			}
		}
		if w.Stray {
			return nil
		}
		u, err := tx.LockAcsUser(ctx, w.UserID)
		switch {
		case store.IsNoRows(err):
			return nil
		case err != nil:
			return err
		case w.Delete:
			return s.recordDeleteSent(ctx, tx, u, w)
		case !isStorableRef(ref):
			return nil // the next look skips the user as well
		}
		free, leaves, err := s.claimRef(ctx, tx, u, w, ref)
		if look = leaves; err != nil || !free {
			return err
		}
		return tx.AcsUserFound(ctx, dbsqlc.AcsUserFoundParams{
			AcsUserID: w.UserID,
			VendorRef: &ref,
			Applied:   mustJSON(w.Profile),
			AsDesired: u.DesiredGen == w.Gen,
		})
	})
	if w.Stray && err == nil {
		s.strays.recordTry(strayKey{system, w.Ref}, s.devices.Now(), 0)
	}
	return look, err
}

// recordDeleteSent schedules a retry of a deletion, in case the system keeps showing the user.
func (s *Service) recordDeleteSent(ctx context.Context, tx store.Tx, u dbsqlc.AcsUser, w Write) error {
	arg := dbsqlc.AcsUserFailedParams{
		AcsUserID:     w.UserID,
		Gen:           w.Gen,
		NextAttemptAt: new(s.devices.Now().Add(retryPause(u))),
		ErrorCode:     u.ErrorCode,
		ErrorMessage:  u.ErrorMessage,
	}
	if u.Attempts >= reportAfterFailures {
		arg.ErrorCode, arg.ErrorMessage = new(
			failedToDelete,
		), new(
			"The access system confirmed the deletion but still shows the user. "+
				"The server repeats the deletion from time to time.",
		)
	}
	return tx.AcsUserFailed(ctx, arg)
}

// claimRef ensures that no other user has the reference of the user that was just written. An
// unmanaged user with the reference is the same user, since some vendors identify people by
// address. A managed one keeps the reference, and the new user is refused as long as the other
// exists. If the other user is being deleted, the next look decides.
func (s *Service) claimRef(
	ctx context.Context,
	tx store.Tx,
	u dbsqlc.AcsUser,
	w Write,
	ref string,
) (free, leaves bool, err error) {
	other, err := tx.FindAcsUserByRef(ctx, dbsqlc.FindAcsUserByRefParams{AcsSystemID: u.AcsSystemID, VendorRef: &ref})
	switch {
	case store.IsNoRows(err) || err == nil && other.AcsUserID == u.AcsUserID:
		return true, false, nil
	case err != nil:
		return false, false, err
	case !other.IsManaged:
		return true, false, tx.DeleteAcsUser(ctx, other.AcsUserID)
	// The other user left the system.
	case other.Applied == nil:
		return true, false, tx.ForgetAcsUserRef(ctx, other.AcsUserID)
	}
	message := "The access system treats the user as the same as acs_user_id " + other.AcsUserID.String()
	if other.DeletingAt != nil {
		arg := dbsqlc.AcsUserFailedParams{
			AcsUserID:     u.AcsUserID,
			Gen:           w.Gen,
			NextAttemptAt: new(s.devices.Now().Add(retryPause(u))),
			ErrorCode:     u.ErrorCode,
			ErrorMessage:  u.ErrorMessage,
		}
		if u.Attempts >= reportAfterFailures {
			arg.ErrorCode, arg.ErrorMessage = new(
				failedTo(w),
			), new(
				message+", which is being deleted. The server retries.",
			)
		}
		return false, true, tx.AcsUserFailed(ctx, arg)
	}
	if err := tx.AcsUserSent(ctx, dbsqlc.AcsUserSentParams{AcsUserID: u.AcsUserID}); err != nil {
		return false, false, err
	}
	message += ". Give the two users different email addresses and phone numbers, or delete one of them."
	return false, false, tx.AcsUserFailed(ctx, dbsqlc.AcsUserFailedParams{
		AcsUserID:     u.AcsUserID,
		Gen:           w.Gen,
		NextAttemptAt: new(s.devices.Now().Add(maxRetryPause)),
		Blocked:       true,
		BlockedBy:     &other.AcsUserID,
		ErrorCode:     new(failedTo(w)),
		ErrorMessage:  &message,
	})
}

// Failure describes why a write failed.
type Failure struct {
	Message    string
	Permanent  bool          // a retry fails until the user changes
	Rejected   bool          // the system refused the write, so nothing of it is there
	RetryAfter time.Duration // minimum delay until the retry; 0 if the vendor gives none
}

const (
	// reportAfterFailures is the number of consecutive failures before the user reports an error.
	reportAfterFailures = 3
	// maxRetryPause is the maximum delay between two retries.
	maxRetryPause   = 5 * time.Minute
	maxDisputePause = 30 * time.Minute
	// driftWindow is how long disputes count as recurring.
	driftWindow = 2 * maxDisputePause
)

// retryPause returns the delay until the next try.
func retryPause(u dbsqlc.AcsUser) time.Duration { return pauseAfter(u.Attempts) }

func pauseAfter(attempts int32) time.Duration {
	return min(time.Second<<min(attempts, 16), maxRetryPause)
}

const failedToDelete = "failed_to_delete_on_acs_system"

func failedTo(w Write) string {
	switch {
	case w.Delete:
		return failedToDelete
	case w.Ref == "":
		return "failed_to_create_on_acs_system"
	}
	return "failed_to_update_on_acs_system"
}

// RecordFailure records that a write failed and returns the delay until its retry.
func (s *Service) RecordFailure(
	ctx context.Context,
	h store.Fence,
	system uuid.UUID,
	w Write,
	f Failure,
) (again time.Duration, err error) {
	err = s.onSystem(ctx, h, system, "record a failure", func(tx store.Tx, r dbsqlc.AcsSystem) error {
		if f.Rejected && r.WriteRefused {
			if err := s.markReachable(ctx, tx, r); err != nil {
				return err
			}
		}
		if w.Stray {
			return nil
		}
		u, err := tx.LockAcsUser(ctx, w.UserID)
		if store.IsNoRows(err) {
			again = max(maxRetryPause, f.RetryAfter)
			return nil
		}
		if err != nil {
			return err
		}
		if f.Rejected && w.Ref == "" {
			if err := tx.AcsUserSent(ctx, dbsqlc.AcsUserSentParams{AcsUserID: w.UserID}); err != nil {
				return err
			}
		}
		again = max(retryPause(u), f.RetryAfter)
		message := domain.Storable(f.Message)
		return tx.AcsUserFailed(ctx, dbsqlc.AcsUserFailedParams{
			AcsUserID:     w.UserID,
			Gen:           w.Gen,
			NextAttemptAt: new(s.devices.Now().Add(again)),
			Blocked:       f.Permanent && !w.Delete,
			ErrorCode:     new(failedTo(w)),
			ErrorMessage:  &message,
		})
	})
	if w.Stray && err == nil {
		again = s.strays.recordTry(strayKey{system, w.Ref}, s.devices.Now(), f.RetryAfter)
	}
	return again, err
}
