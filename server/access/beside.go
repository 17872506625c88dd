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
func (s *Service) Emit(ctx context.Context, tx store.Tx, eventType string, workspace, account uuid.UUID, fields map[string]any) error {
	return s.emit(ctx, tx, eventType, about{workspace: workspace, account: account, fields: fields})
}

// EmitEach is Emit for n events of a type, each with its own fields.
func (s *Service) EmitEach(ctx context.Context, tx store.Tx, eventType string, workspace, account uuid.UUID, n int, fields func(int) map[string]any) error {
	all := make([]happening, n)
	for i := range all {
		all[i] = happening{eventType, about{workspace: workspace, account: account, fields: fields(i)}}
	}
	return s.emitAll(ctx, tx, all)
}

// OnAnswer records what an account has answered: that it works, and, by record, what it has told. For a disconnected
// account nothing is recorded.
func (s *Service) OnAnswer(ctx context.Context, h Holder, account uuid.UUID, record func(tx store.Tx, a dbsqlc.ConnectedAccount) error) error {
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

// NewID makes an identifier that sorts by when it was made.
func NewID() uuid.UUID { return newID() }

// Invalidf is an error about one parameter; field may be empty.
func Invalidf(field, format string, args ...any) *Error { return invalid(field, format, args...) }

// All is every violation that a request is refused for; what is no violation of a parameter is reported alone.
func All(errs ...error) error { return all(errs...) }

// Rows is how many rows to ask the database for: one more than the page holds.
func (p Page) Rows() int32 { return p.rows() }

// Cut is the page's part of rows, and whether more follow.
func Cut[T any](p Page, rows []T) ([]T, bool) { return cut(p, rows) }

// ParseTime reads a time as the API writes it. It fails with Invalid, about field.
func ParseTime(field, value string) (time.Time, error) { return parseTime(field, value) }

// Storable is a vendor's text without what Postgres takes in no text.
func Storable(s string) string { return storable(s) }

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

// OnCalendar is a vendor's time within the years that the API can write, 1 to 9999: what lies beyond is their end.
func OnCalendar(t *time.Time) *time.Time { return onCalendar(t) }
