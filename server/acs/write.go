package acs

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Write is one thing to do at a system.
type Write struct {
	UserID  uuid.UUID
	Gen     int64
	Ref     string // empty: it is to be made
	Delete  bool
	Stray   bool // Delete: it arrived when nobody wanted it any more, and is not the user that is known
	Profile Profile
	Less    bool  // something that the user has there is taken away
	Tries   int32 // that have failed in a row
}

// Late says whether a write comes last and holds up no other: it is of a stray, or a deletion that has failed time and again.
func (w Write) Late() bool { return w.Stray || w.Delete && w.Tries >= patience }

// turn is what a write comes after: whoever is to be kept out does not wait for those who are to be let in, nor anybody who is known for strays.
func (w Write) turn() int {
	switch {
	case w.Stray:
		return 5
	case w.Late():
		return 4
	case w.Delete:
		return 0
	case w.Ref == "":
		return 3
	case w.Profile.Suspended || w.Less:
		return 1
	}
	return 2
}

// RecordWriteStarted notes, before something is sent to a system, that this is about to happen: after a crash the next
// holder knows that it may be there. It says whether it still is to be done so.
func (s *Service) RecordWriteStarted(ctx context.Context, h access.Holder, system uuid.UUID, w Write) (still bool, err error) {
	err = s.onSystem(ctx, h, system, "record the start of a write", func(tx store.Tx, _ dbsqlc.AcsSystem) error {
		if w.Stray { // unless its reference was given to one who was just put
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
		return tx.AcsUserSent(ctx, dbsqlc.AcsUserSentParams{AcsUserID: w.UserID, WriteAt: new(s.access.Now())})
	})
	return still, err
}

// RecordWritten notes that a system has taken a write, and says whether to look at it for what has come of that: of a
// deletion only what it shows then is believed. Nobody waits to be told of a stray's.
func (s *Service) RecordWritten(ctx context.Context, h access.Holder, system uuid.UUID, w Write, ref string) (look bool, err error) {
	err = s.onSystem(ctx, h, system, "record a write", func(tx store.Tx, r dbsqlc.AcsSystem) error {
		look = w.Delete && !w.Stray
		if r.WriteRefused {
			if err := s.reached(ctx, tx, r); err != nil {
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
			return s.deleteSent(ctx, tx, u, w)
		case !keepable(ref):
			return nil // the next look does not see it either
		}
		free, leaves, err := s.claim(ctx, tx, u, w, ref)
		if look = leaves; err != nil || !free {
			return err
		}
		return tx.AcsUserFound(ctx, dbsqlc.AcsUserFoundParams{AcsUserID: w.UserID, VendorRef: &ref, Applied: mustJSON(w.Profile), AsDesired: u.DesiredGen == w.Gen})
	})
	if w.Stray && err == nil {
		s.strays.try(strayKey{system, w.Ref}, s.access.Now(), 0)
	}
	return look, err
}

// deleteSent has a deletion be repeated in a while, should the system go on showing the user.
func (s *Service) deleteSent(ctx context.Context, tx store.Tx, u dbsqlc.AcsUser, w Write) error {
	arg := dbsqlc.AcsUserFailedParams{AcsUserID: w.UserID, Gen: w.Gen, NextAttemptAt: new(s.access.Now().Add(pause(u))), ErrorCode: u.ErrorCode, ErrorMessage: u.ErrorMessage}
	if u.Attempts >= patience {
		arg.ErrorCode, arg.ErrorMessage = new(failedToDelete), new("The access system says that it has deleted the user, and goes on showing it. The deletion is repeated from time to time.")
	}
	return tx.AcsUserFailed(ctx, arg)
}

// claim makes sure that no other user has the reference of the one that was just put. An unmanaged one turns out to be
// that user, as with vendors who know people by their address. Another managed one keeps it, and the user is refused for
// as long as that one is there. Whose of the two it is shows the next look where the other one leaves: it may have left.
func (s *Service) claim(ctx context.Context, tx store.Tx, u dbsqlc.AcsUser, w Write, ref string) (free, leaves bool, err error) {
	other, err := tx.FindAcsUserByRef(ctx, dbsqlc.FindAcsUserByRefParams{AcsSystemID: u.AcsSystemID, VendorRef: &ref})
	switch {
	case store.IsNoRows(err) || err == nil && other.AcsUserID == u.AcsUserID:
		return true, false, nil
	case err != nil:
		return false, false, err
	case !other.IsManaged:
		return true, false, tx.DeleteAcsUser(ctx, other.AcsUserID)
	case other.Applied == nil: // it is not there any more
		return true, false, tx.ForgetAcsUserRef(ctx, other.AcsUserID)
	}
	message := "The access system takes the user for the one whose acs_user_id is " + other.AcsUserID.String()
	if other.DeletingAt != nil {
		arg := dbsqlc.AcsUserFailedParams{AcsUserID: u.AcsUserID, Gen: w.Gen, NextAttemptAt: new(s.access.Now().Add(pause(u))), ErrorCode: u.ErrorCode, ErrorMessage: u.ErrorMessage}
		if u.Attempts >= patience {
			arg.ErrorCode, arg.ErrorMessage = new(failedTo(w)), new(message+", which is being deleted. It is tried again.")
		}
		return false, true, tx.AcsUserFailed(ctx, arg)
	}
	if err := tx.AcsUserSent(ctx, dbsqlc.AcsUserSentParams{AcsUserID: u.AcsUserID}); err != nil {
		return false, false, err
	}
	message += ". Give them different addresses and numbers, or delete one of them."
	return false, false, tx.AcsUserFailed(ctx, dbsqlc.AcsUserFailedParams{AcsUserID: u.AcsUserID, Gen: w.Gen, NextAttemptAt: new(s.access.Now().Add(longestPause)),
		Blocked: true, BlockedBy: &other.AcsUserID, ErrorCode: new(failedTo(w)), ErrorMessage: &message})
}

// Failure is why a write came to nothing.
type Failure struct {
	Message    string
	ForGood    bool          // it would fail again, until the user is changed
	Answered   bool          // the system itself has refused it: nothing of it is there, nor will be
	RetryAfter time.Duration // not before then; 0 where the vendor does not say
}

const (
	patience      = 3               // tries in a row until it is told that something keeps happening
	longestPause  = 5 * time.Minute // between two tries of what fails
	longestQuiet  = 30 * time.Minute
	disputeMemory = 2 * longestQuiet // after that a dispute is another one
)

// pause is before the next try of what has failed so often.
func pause(u dbsqlc.AcsUser) time.Duration { return pauseAfter(u.Attempts) }

func pauseAfter(attempts int32) time.Duration {
	return min(time.Second<<min(attempts, 16), longestPause)
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

// RecordFailure notes that a write came to nothing, and says in how long it is tried again.
func (s *Service) RecordFailure(ctx context.Context, h access.Holder, system uuid.UUID, w Write, f Failure) (again time.Duration, err error) {
	err = s.onSystem(ctx, h, system, "record a failure", func(tx store.Tx, r dbsqlc.AcsSystem) error {
		if f.Answered && r.WriteRefused {
			if err := s.reached(ctx, tx, r); err != nil {
				return err
			}
		}
		if w.Stray {
			return nil
		}
		u, err := tx.LockAcsUser(ctx, w.UserID)
		if store.IsNoRows(err) {
			again = max(longestPause, f.RetryAfter)
			return nil
		}
		if err != nil {
			return err
		}
		if f.Answered && w.Ref == "" {
			if err := tx.AcsUserSent(ctx, dbsqlc.AcsUserSentParams{AcsUserID: w.UserID}); err != nil {
				return err
			}
		}
		again = max(pause(u), f.RetryAfter)
		message := access.Storable(f.Message)
		return tx.AcsUserFailed(ctx, dbsqlc.AcsUserFailedParams{AcsUserID: w.UserID, Gen: w.Gen, NextAttemptAt: new(s.access.Now().Add(again)), Blocked: f.ForGood && !w.Delete,
			ErrorCode: new(failedTo(w)), ErrorMessage: &message})
	})
	if w.Stray && err == nil {
		again = s.strays.try(strayKey{system, w.Ref}, s.access.Now(), f.RetryAfter)
	}
	return again, err
}
