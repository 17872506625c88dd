package access

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// EndOfAccount cleans up an extension's resources in the transaction that ends an account.
type EndOfAccount func(ctx context.Context, tx store.Tx, workspace, account uuid.UUID) error

// AtEndOfAccount registers f for each account that ends. Call it only during start-up.
func (s *Service) AtEndOfAccount(f EndOfAccount) { s.endOfAccount = append(s.endOfAccount, f) }

// EmitFields writes an event in the transaction of the change that it reports. Its type must be one of
// EmittedEvents. fields are those of the type, in addition to the account.
func (s *Service) EmitFields(
	ctx context.Context,
	tx store.Tx,
	eventType string,
	workspace, account uuid.UUID,
	fields map[string]any,
) error {
	return s.Emit(ctx, tx, eventType, About{Workspace: workspace, Account: account, Fields: fields})
}

// EmitEach is EmitFields for n events of a type, each with its own fields.
func (s *Service) EmitEach(
	ctx context.Context,
	tx store.Tx,
	eventType string,
	workspace, account uuid.UUID,
	n int,
	fields func(int) map[string]any,
) error {
	all := make([]Occurrence, n)
	for i := range all {
		all[i] = Occurrence{Type: eventType, About: About{Workspace: workspace, Account: account, Fields: fields(i)}}
	}
	return s.EmitAll(ctx, tx, all)
}

// OnAnswer records that an account answers, and runs record with its answer in the same transaction. It skips a
// disconnected account.
func (s *Service) OnAnswer(
	ctx context.Context,
	h Fence,
	account uuid.UUID,
	record func(tx store.Tx, a dbsqlc.ConnectedAccount) error,
) error {
	return s.db.InTx(ctx, func(tx store.Tx) error {
		if err := h.Check(ctx, tx); err != nil {
			return err
		}
		a, err := tx.LockAccount(ctx, account)
		if store.IsNoRows(err) || err == nil && a.DeletedAt != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.accountWorks(ctx, tx, a); err != nil {
			return err
		}
		if err := record(tx, a); err != nil {
			return err
		}
		return s.accountSynced(ctx, tx, a)
	})
}

// EmptyListGrace returns how long an unexpectedly empty list of a vendor is ignored.
func (s *Service) EmptyListGrace() time.Duration { return s.opt.EmptyDoubt }

// doubtMemory is how much longer than the grace period its start is remembered.
const doubtMemory = 10 * time.Minute

// DoubtedSince returns the start of the grace period for an empty list. since is the stored start, if any. A
// start that is too old, for example from before a stop of the server, or in the future after a clock step, is
// replaced by now.
func (s *Service) DoubtedSince(since *time.Time, now time.Time) *time.Time {
	if since == nil || since.After(now) || now.Sub(*since) > s.opt.EmptyDoubt+doubtMemory {
		return &now
	}
	return since
}

// ConfirmTimeout returns when an unconfirmed write counts as lost.
func (s *Service) ConfirmTimeout() time.Duration { return s.opt.ConfirmTimeout }
