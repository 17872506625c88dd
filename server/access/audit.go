package access

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// The audit log tells who has changed what. Package store writes it: one entry for each act that has changed something,
// in the transaction of the change. What the server does by itself, and what it finds on devices, is told by events.

// Kinds of actors besides those of credentials.
const (
	ByPage        = "connect_webview" // a person who has a connect webview's link
	ByCommandLine = "command_line"
)

// Act is who does what, for the audit log.
type Act struct {
	Principal Principal
	RequestID uuid.UUID
	Operation string // a path of the contract
	Named     func() []Subject
}

// Subject is something that is changed, by the kind and the value of its identifier.
type Subject = store.Subject

// IsSubject says whether identifiers of that name are told of in the audit log.
func IsSubject(name string) bool { return store.IsSubject(name) }

// Acting is the context for what a request does.
func Acting(ctx context.Context, a Act) context.Context {
	return store.Acting(ctx, &store.Act{ActorKind: string(a.Principal.Kind), ActorID: a.Principal.CredentialID, ActorName: a.Principal.Name, RequestID: a.RequestID,
		Operation: a.Operation, WorkspaceID: a.Principal.WorkspaceID, Named: a.Named})
}

// ActingOnPage is the context for what a person does who logs in on a webview.
func ActingOnPage(ctx context.Context, workspace, webview, request uuid.UUID, operation string) context.Context {
	return store.Acting(ctx, &store.Act{ActorKind: ByPage, ActorID: webview, RequestID: request, Operation: operation, WorkspaceID: workspace})
}

// ActingByCommand is the context for what a command does that a user of this machine has given.
func ActingByCommand(ctx context.Context, user, command string) context.Context {
	return store.Acting(ctx, &store.Act{ActorKind: ByCommandLine, ActorName: user, Operation: command})
}

// SameAct says what a request with a key has made outside of the database, or has found there as it had made it before it was cut
// off: each time that it comes to the same, it tells in the same entry. For requests without a key nothing is done.
func SameAct(ctx context.Context, made string) {
	if name := RequestName(ctx); name != "" {
		store.SameAct(ctx, name+"/"+made)
	}
}

// Unasked is the context for what nobody has asked for.
func Unasked(ctx context.Context) context.Context { return store.Acting(ctx, nil) }

// AuditEntry is one act.
type AuditEntry struct {
	ID          uuid.UUID
	At          time.Time
	WorkspaceID *uuid.UUID // nil: the whole installation
	ActorKind   string
	ActorID     *uuid.UUID
	ActorName   string
	RequestID   *uuid.UUID
	Operation   string
	Subjects    []Subject
	Outcome     string // done; begun: the action attempt among the subjects tells how it ended, or the user of an access system
}

// AuditFilter says which entries are wanted; zero fields are no condition.
type AuditFilter struct {
	Since, Until time.Time
	WorkspaceID  *uuid.UUID
	Actor        string // its kind, identifier or name; of a credential by its identifier also the client sessions that it has made
	Operation    string // or how it begins
	RequestID    *uuid.UUID
	SubjectID    *uuid.UUID
	OldestFirst  bool
}

const auditPage = 500

// Ends of all times, for conditions that are none.
var (
	LongAgo = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	Never   = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Audit walks through the audit log, a page at a time. It fails with Invalid. For administration only.
func (s *Service) Audit(ctx context.Context, f AuditFilter) iter.Seq2[AuditEntry, error] {
	if f.Since.IsZero() {
		f.Since = LongAgo
	}
	if f.Until.IsZero() {
		f.Until = Never
	}
	at := Position{At: f.Until}
	if f.OldestFirst {
		at.At = f.Since.Add(-time.Microsecond)
		at.ID = uuid.Max
	}
	return func(yield func(AuditEntry, error) bool) {
		if err := All(CheckText("actor", f.Actor), CheckText("operation", f.Operation)); err != nil {
			yield(AuditEntry{}, err)
			return
		}
		actors, err := s.actors(ctx, f)
		if err != nil {
			yield(AuditEntry{}, err)
			return
		}
		for {
			rows, err := s.auditPage(ctx, f, actors, at)
			if err != nil {
				yield(AuditEntry{}, fmt.Errorf("read the audit log: %w", err))
				return
			}
			for _, r := range rows {
				if !yield(toAuditEntry(r), nil) {
					return
				}
				at = Position{r.At, r.AuditID}
			}
			if len(rows) < auditPage {
				return
			}
		}
	}
}

// actors are who is asked for; nil: everybody.
func (s *Service) actors(ctx context.Context, f AuditFilter) ([]string, error) {
	if f.Actor == "" {
		return nil, nil
	}
	ids := ParseIDs(&[]string{f.Actor})
	if len(ids) == 0 {
		return []string{f.Actor}, nil
	}
	id := ids[0]
	actors, known, at := []string{id.String()}, map[uuid.UUID]bool{}, Position{At: LongAgo}
	for {
		rows, err := s.auditPage(ctx, AuditFilter{Until: f.Until, Operation: "/client_sessions/", OldestFirst: true}, nil, at)
		if err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		for _, r := range rows {
			for _, subject := range toAuditEntry(r).Subjects {
				if subject.Kind != "client_session_id" || known[subject.ID] {
					continue
				}
				if known[subject.ID] = true; r.ActorID != nil && *r.ActorID == id { // who is the first to change one has made it
					actors = append(actors, subject.ID.String())
				}
			}
			at = Position{r.At, r.AuditID}
		}
		if len(rows) < auditPage {
			return actors, nil
		}
	}
}

func (s *Service) auditPage(ctx context.Context, f AuditFilter, actors []string, at Position) ([]dbsqlc.AuditLog, error) {
	if f.OldestFirst {
		return s.db.PlannedAnew.AuditAfter(ctx, dbsqlc.AuditAfterParams{AfterAt: at.At, AfterID: at.ID, Until: f.Until, WorkspaceID: f.WorkspaceID,
			Actors: actors, Operation: f.Operation, RequestID: f.RequestID, SubjectID: f.SubjectID, MaxRows: auditPage})
	}
	return s.db.PlannedAnew.AuditBefore(ctx, dbsqlc.AuditBeforeParams{BeforeAt: at.At, BeforeID: at.ID, Since: f.Since, WorkspaceID: f.WorkspaceID,
		Actors: actors, Operation: f.Operation, RequestID: f.RequestID, SubjectID: f.SubjectID, MaxRows: auditPage})
}

func toAuditEntry(r dbsqlc.AuditLog) AuditEntry {
	e := AuditEntry{ID: r.AuditID, At: r.At, WorkspaceID: r.WorkspaceID, ActorKind: r.ActorKind, ActorID: r.ActorID, ActorName: r.ActorName,
		RequestID: r.RequestID, Operation: r.Operation, Outcome: r.Outcome, Subjects: make([]Subject, len(r.SubjectIds))}
	for i, id := range r.SubjectIds {
		e.Subjects[i] = Subject{Kind: r.SubjectKinds[i], ID: id}
	}
	return e
}

const oldAuditBatch = 1000 // entries removed in one transaction

// DropOldAudit removes entries of the audit log that are older than the retention, of all workspaces, until none is left
// or goOn says no.
func (s *Service) DropOldAudit(ctx context.Context, retention time.Duration, goOn func() bool) (dropped int64, err error) {
	for goOn() {
		n, err := s.db.DropAuditEntries(ctx, dbsqlc.DropAuditEntriesParams{Retention: retention, MaxRows: oldAuditBatch})
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
