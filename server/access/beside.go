package access

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// What stands here is for the packages beside this one: groups of resources that share no rule with access codes, but
// the workspace, its accounts, its events and the way errors and pages are told.

// EndOfAccount does, in the transaction that ends an account, what a package beside this one has to do for it.
type EndOfAccount func(ctx context.Context, tx store.Tx, workspace, account uuid.UUID) error

// AtEndOfAccount has f called for each account that ends. It is for when the program is put together.
func (s *Service) AtEndOfAccount(f EndOfAccount) { s.endOfAccount = append(s.endOfAccount, f) }

// Emit writes an event in the transaction of what it reports. Its type must be one of EmittedEvents, and fields what
// that must carry beside the account.
func (s *Service) EmitFields(ctx context.Context, tx store.Tx, eventType string, workspace, account uuid.UUID, fields map[string]any) error {
	return s.Emit(ctx, tx, eventType, About{Workspace: workspace, Account: account, Fields: fields})
}

// EmitEach is Emit for n events of a type, each with its own fields.
func (s *Service) EmitEach(ctx context.Context, tx store.Tx, eventType string, workspace, account uuid.UUID, n int, fields func(int) map[string]any) error {
	all := make([]Occurrence, n)
	for i := range all {
		all[i] = Occurrence{eventType, About{Workspace: workspace, Account: account, Fields: fields(i)}}
	}
	return s.EmitAll(ctx, tx, all)
}

// OnAnswer records what an account has answered: that it works, and, by record, what it has told. For a disconnected
// account nothing is recorded.
func (s *Service) OnAnswer(ctx context.Context, h Fence, account uuid.UUID, record func(tx store.Tx, a dbsqlc.ConnectedAccount) error) error {
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

// EmptyDoubt is how long a vendor's list that is empty all of a sudden is not believed.
func (s *Service) EmptyDoubt() time.Duration { return s.opt.EmptyDoubt }

// doubtMemory is for how much longer than it lasts a doubt is remembered.
const doubtMemory = 10 * time.Minute

// DoubtedSince is since when what a vendor says has been doubted; since is when that is written down, if it is. A doubt that nobody has
// gone into for long, as while the server was stopped, is another one: what was said in between nobody knows. So is one of a time to come: the
// clock was stepped back.
func (s *Service) DoubtedSince(since *time.Time, now time.Time) *time.Time {
	if since == nil || since.After(now) || now.Sub(*since) > s.opt.EmptyDoubt+doubtMemory {
		return &now
	}
	return since
}

// ConfirmTimeout is when a write that has not shown counts as come to nothing.
func (s *Service) ConfirmTimeout() time.Duration { return s.opt.ConfirmTimeout }
