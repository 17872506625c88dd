package audit

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/idempotency"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// The audit log records who changed what. Package store writes one entry for each act, in the transaction of the
// change. Events announce what the server does on its own and what it finds on devices.

// Kinds of actors in addition to those of credentials.
const (
	ByPage        = "connect_webview" // a person with the link of a connect webview
	ByCommandLine = "command_line"
)

// Act identifies the actor and the operation for the audit log.
type Act struct {
	Principal domain.Principal
	RequestID uuid.UUID
	Operation string           // a path of the contract
	Named     func() []Subject // returns the subjects that the request names
	Admit     func() bool      // reports whether the act gets an entry, asked before the first one; nil: always
}

// Subject is a changed resource: the kind and the value of its identifier.
type Subject = store.Subject

// IsSubject reports whether the audit log records identifiers of that name.
func IsSubject(name string) bool { return store.IsSubject(name) }

// Acting returns the context of a request's changes.
func Acting(ctx context.Context, a Act) context.Context {
	return store.WithAct(ctx, &store.Act{
		ActorKind:   string(a.Principal.Kind),
		ActorID:     a.Principal.CredentialID,
		ActorName:   a.Principal.Name,
		RequestID:   a.RequestID,
		Operation:   a.Operation,
		WorkspaceID: a.Principal.WorkspaceID,
		Named:       a.Named,
		Admit:       a.Admit,
	})
}

// ActingOnPage returns the context of the changes by a person who logs in on a webview.
func ActingOnPage(ctx context.Context, workspace, webview, request uuid.UUID, operation string) context.Context {
	return store.WithAct(ctx, &store.Act{
		ActorKind:   ByPage,
		ActorID:     webview,
		RequestID:   request,
		Operation:   operation,
		WorkspaceID: workspace,
	})
}

// ActingByCommand returns the context of the changes by a command that a user of this machine runs.
func ActingByCommand(ctx context.Context, user, command string) context.Context {
	return store.WithAct(ctx, &store.Act{ActorKind: ByCommandLine, ActorName: user, Operation: command})
}

// SameAct says what a request with a key created outside of the database, or found there from an earlier try.
// Repeated requests then update the same entry. Without a key, SameAct does nothing.
func SameAct(ctx context.Context, made string) {
	if name := idempotency.RequestName(ctx); name != "" {
		store.SameAct(ctx, name+"/"+made)
	}
}

// Unasked returns the context of changes without an actor.
func Unasked(ctx context.Context) context.Context { return store.WithAct(ctx, nil) }

// Entry is one act.
type Entry struct {
	ID          uuid.UUID
	At          time.Time
	WorkspaceID *uuid.UUID // nil: the whole installation
	ActorKind   string
	ActorID     *uuid.UUID
	ActorName   string
	RequestID   *uuid.UUID
	Operation   string
	Subjects    []Subject
	// Outcome is done or begun. After begun, the action attempt or the access system user among the subjects
	// has the result.
	Outcome string
}

// Filter is a set of conditions that must all hold. Zero fields are no condition.
type Filter struct {
	Since, Until time.Time
	WorkspaceID  *uuid.UUID
	// Actor is a kind, an identifier, or a name. The identifier of a credential includes the client sessions it
	// created.
	Actor       string
	Operation   string // the operation or a prefix of it
	RequestID   *uuid.UUID
	SubjectID   *uuid.UUID
	OldestFirst bool
}

const auditPage = 500

// Audit iterates over the audit log, a page at a time. It fails with Invalid. For administration only.
func (s *Service) Audit(ctx context.Context, f Filter) iter.Seq2[Entry, error] {
	if f.Since.IsZero() {
		f.Since = domain.LongAgo
	}
	if f.Until.IsZero() {
		f.Until = domain.Never
	}
	at := domain.Position{At: f.Until}
	if f.OldestFirst {
		at.At = f.Since.Add(-time.Microsecond)
		at.ID = uuid.Max
	}
	return func(yield func(Entry, error) bool) {
		if err := domain.All(
			domain.CheckText("actor", f.Actor),
			domain.CheckText("operation", f.Operation),
		); err != nil {
			yield(Entry{}, err)
			return
		}
		actors, err := s.resolveActors(ctx, f)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		for {
			rows, err := s.auditPage(ctx, f, actors, at)
			if err != nil {
				yield(Entry{}, fmt.Errorf("read the audit log: %w", err))
				return
			}
			for _, r := range rows {
				if !yield(toAuditEntry(r), nil) {
					return
				}
				at = domain.Position{At: r.OccurredAt, ID: r.AuditID}
			}
			if len(rows) < auditPage {
				return
			}
		}
	}
}

// resolveActors returns the actors of a filter. nil means all.
func (s *Service) resolveActors(ctx context.Context, f Filter) ([]string, error) {
	if f.Actor == "" {
		return nil, nil
	}
	ids := domain.ParseIDs(&[]string{f.Actor})
	if len(ids) == 0 {
		return []string{f.Actor}, nil
	}
	id := ids[0]
	actors, known, at := []string{id.String()}, map[uuid.UUID]bool{}, domain.Position{At: domain.LongAgo}
	for {
		rows, err := s.auditPage(
			ctx,
			Filter{Until: f.Until, Operation: "/client_sessions/", OldestFirst: true},
			nil,
			at,
		)
		if err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		for _, r := range rows {
			for _, subject := range toAuditEntry(r).Subjects {
				if subject.Kind != "client_session_id" || known[subject.ID] {
					continue
				}
				if known[subject.ID] = true; r.ActorID != nil && *r.ActorID == id { // its first change is its creation
					actors = append(actors, subject.ID.String())
				}
			}
			at = domain.Position{At: r.OccurredAt, ID: r.AuditID}
		}
		if len(rows) < auditPage {
			return actors, nil
		}
	}
}

func (s *Service) auditPage(
	ctx context.Context,
	f Filter,
	actors []string,
	at domain.Position,
) ([]dbsqlc.AuditLog, error) {
	if f.OldestFirst {
		return s.db.UnpreparedQueries.AuditAfter(ctx, dbsqlc.AuditAfterParams{
			AfterAt:     at.At,
			AfterID:     at.ID,
			Until:       f.Until,
			WorkspaceID: f.WorkspaceID,
			Actors:      actors,
			Operation:   f.Operation,
			RequestID:   f.RequestID,
			SubjectID:   f.SubjectID,
			MaxRows:     auditPage,
		})
	}
	return s.db.UnpreparedQueries.AuditBefore(ctx, dbsqlc.AuditBeforeParams{
		BeforeAt:    at.At,
		BeforeID:    at.ID,
		Since:       f.Since,
		WorkspaceID: f.WorkspaceID,
		Actors:      actors,
		Operation:   f.Operation,
		RequestID:   f.RequestID,
		SubjectID:   f.SubjectID,
		MaxRows:     auditPage,
	})
}

func toAuditEntry(r dbsqlc.AuditLog) Entry {
	e := Entry{
		ID:          r.AuditID,
		At:          r.OccurredAt,
		WorkspaceID: r.WorkspaceID,
		ActorKind:   r.ActorKind,
		ActorID:     r.ActorID,
		ActorName:   r.ActorName,
		RequestID:   r.RequestID,
		Operation:   r.Operation,
		Outcome:     r.Outcome,
		Subjects:    make([]Subject, len(r.SubjectIds)),
	}
	for i, id := range r.SubjectIds {
		e.Subjects[i] = Subject{Kind: r.SubjectKinds[i], ID: id}
	}
	return e
}

const oldAuditBatch = 1000 // entries deleted in one transaction

// DropOldAudit deletes entries of the audit log from before a time, in all workspaces, until none is left or goOn
// returns false.
func (s *Service) DropOldAudit(
	ctx context.Context,
	before time.Time,
	goOn func() bool,
) (dropped int64, err error) {
	for goOn() {
		n, err := s.db.DropAuditEntries(
			ctx,
			dbsqlc.DropAuditEntriesParams{Before: before, MaxRows: oldAuditBatch},
		)
		dropped += n
		if err != nil {
			return dropped, fmt.Errorf("remove old entries of the audit log: %w", err)
		}
		if n < oldAuditBatch {
			break
		}
	}
	return dropped, nil
}
