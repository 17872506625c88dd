package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Act is a request or a command. Each transaction with its context that changes rows includes an entry of the audit log,
// so a crash leaves both or neither. All transactions of an act share one entry; an act outside of any workspace has one
// for each workspace that it changes.
type Act struct {
	ActorKind   string
	ActorID     uuid.UUID // zero: none
	ActorName   string
	RequestID   uuid.UUID // zero: not a request
	Operation   string
	WorkspaceID uuid.UUID        // zero: the workspaces that the changes name
	Named       func() []Subject // subjects that the request names; nil: none
	Admit       func() bool      // reports whether the act gets an entry, asked before the first one; nil: always

	admit    sync.Once
	refused  bool // by Admit
	mu       sync.Mutex
	same     string // the name that continuations of the act share; empty: none
	entries  []entryOf
	subjects []Subject // of committed changes
	begun    bool
}

// entryOf is the entry of an act in a workspace.
type entryOf struct{ workspace, id uuid.UUID }

// entry returns the identifier of the act's entry in a workspace, and whether the entry may exist. The caller holds
// a.mu.
func (a *Act) entry(workspace uuid.UUID) (id uuid.UUID, again bool) {
	for _, e := range a.entries {
		if e.workspace == workspace {
			return e.id, true
		}
	}
	if again = a.same != ""; again {
		id = uuid.NewSHA1(workspace, []byte(a.same))
	} else {
		id = uuid.Must(uuid.NewV7())
	}
	a.entries = append(a.entries, entryOf{workspace, id})
	return id, again
}

// Subject is a resource that was changed.
type Subject struct {
	Kind string // such as device_id
	ID   uuid.UUID
}

// maxSubjects is the maximum number of subjects of an entry.
const maxSubjects = 1000

type actKey struct{}

// WithAct returns the context of an act; nil: work of the server itself.
func WithAct(ctx context.Context, a *Act) context.Context { return context.WithValue(ctx, actKey{}, a) }

// SameAct marks an act without an entry as a continuation of interrupted acts with the same name. It extends their
// entry, if there is one.
func SameAct(ctx context.Context, name string) {
	if a := actOf(ctx); a != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.same = name
	}
}

func actOf(ctx context.Context) *Act {
	a, _ := ctx.Value(actKey{}).(*Act)
	return a
}

// change is what a transaction has changed so far.
type change struct {
	wrote      bool
	begun      bool
	subjects   []Subject
	workspaces []uuid.UUID
}

func (c *change) name(kind string, id uuid.UUID) {
	if kind == workspaceID {
		if !slices.Contains(c.workspaces, id) {
			c.workspaces = append(c.workspaces, id)
		}
		return
	}
	if one := (Subject{kind, id}); len(c.subjects) < maxSubjects && !slices.Contains(c.subjects, one) {
		c.subjects = append(c.subjects, one)
	}
}

func (c *change) record(s *statement, args []any) {
	c.wrote = true
	s.named(args, c.name)
}

// auditEntry is an entry to insert or to extend.
type auditEntry struct {
	dbsqlc.PutAuditEntryParams
	again bool // it may exist
}

// entriesFor returns the audit log entries of the act including a change, and a function to call after the commit.
func (a *Act) entriesFor(c *change) (entries []auditEntry, committed func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := change{subjects: slices.Clone(a.subjects)}
	if a.Named != nil {
		for _, s := range a.Named() {
			all.name(s.Kind, s.ID)
		}
	}
	for _, s := range c.subjects {
		all.name(s.Kind, s.ID)
	}
	entry := auditEntry{PutAuditEntryParams: dbsqlc.PutAuditEntryParams{
		ActorKind:    a.ActorKind,
		ActorID:      nonNilID(a.ActorID),
		ActorName:    a.ActorName,
		RequestID:    nonNilID(a.RequestID),
		Operation:    a.Operation,
		SubjectKinds: make([]string, len(all.subjects)),
		SubjectIds:   make([]uuid.UUID, len(all.subjects)),
		Outcome:      "done",
	}}
	for i, s := range all.subjects {
		entry.SubjectKinds[i], entry.SubjectIds[i] = s.Kind, s.ID
	}
	if a.begun || c.begun {
		entry.Outcome = "pending"
	}
	workspaces := c.workspaces
	if a.WorkspaceID != uuid.Nil || len(workspaces) == 0 {
		workspaces = []uuid.UUID{a.WorkspaceID}
	}
	for _, w := range workspaces {
		entry.WorkspaceID = nonNilID(w)
		entry.AuditID, entry.again = a.entry(w)
		entries = append(entries, entry)
	}
	return entries, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.subjects, a.begun = all.subjects, a.begun || c.begun
	}
}

func nonNilID(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}

// audits reports whether a change gets an entry. a may be nil.
func (a *Act) audits(c *change) bool {
	if a == nil || !c.wrote {
		return false
	}
	a.admit.Do(func() { a.refused = a.Admit != nil && !a.Admit() })
	return !a.refused
}

// commit inserts the entries of the act and commits the transaction in one round trip.
func commit(ctx context.Context, conn *pgx.Conn, tx pgx.Tx, act *Act, c *change) error {
	if !act.audits(c) {
		return tx.Commit(ctx)
	}
	batch := &pgx.Batch{}
	committed := act.end(batch, c)
	if err := conn.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	committed()
	return nil
}

// end queues the entries of the act and the commit. It returns a function to call after the commit.
func (a *Act) end(batch *pgx.Batch, c *change) (committed func()) {
	committed = func() {}
	if a.audits(c) {
		var entries []auditEntry
		entries, committed = a.entriesFor(c)
		for _, e := range entries {
			batch.Queue(e.statement(), e.args()...)
		}
	}
	batch.Queue("commit") // skipped if a statement before it in the batch fails
	return committed
}

func (e *auditEntry) statement() string {
	if e.again {
		return dbsqlc.AddToAuditEntry
	}
	return dbsqlc.PutAuditEntry
}

func (e *auditEntry) args() []any {
	return []any{
		e.AuditID,
		e.WorkspaceID,
		e.ActorKind,
		e.ActorID,
		e.ActorName,
		e.RequestID,
		e.Operation,
		e.SubjectKinds,
		e.SubjectIds,
		e.Outcome,
	}
}

// auditedQueries records what the queries of an act change.
type auditedQueries struct {
	dbsqlc.DBTX
	change *change
}

func (w auditedQueries) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	tag, err := w.DBTX.Exec(ctx, sql, args...)
	if s := statementOf(sql); err == nil && s.writes && (s.compound || tag.RowsAffected() > 0) {
		w.change.record(s, args)
	}
	return tag, err
}

func (w auditedQueries) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if s := statementOf(sql); s.writes {
		w.change.record(s, args)
	}
	return w.DBTX.Query(ctx, sql, args...)
}

func (w auditedQueries) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	row := w.DBTX.QueryRow(ctx, sql, args...)
	if s := statementOf(sql); s.writes {
		return auditedRow{row, func() { w.change.record(s, args) }}
	}
	return row
}

// auditedRow records a change once it returns a row.
type auditedRow struct {
	pgx.Row
	saw func()
}

func (r auditedRow) Scan(dest ...any) error {
	err := r.Row.Scan(dest...)
	if err == nil {
		r.saw()
	}
	return err
}

// audited runs a statement outside of a transaction together with its audit log entry, as one statement where possible,
// to save time. If the statement changes no row, there is no entry.
func (db *DB) audited(
	ctx context.Context,
	act *Act,
	s *statement,
	sql string,
	args []any,
) (tag pgconn.CommandTag, err error) {
	c := &change{}
	c.record(s, args)
	if !act.audits(c) {
		err = retryDeadlocks(ctx, func() error {
			tag, err = db.Pool.Exec(ctx, sql, args...)
			return err
		})
		return tag, err
	}
	entries, committed := act.entriesFor(c)
	if !s.alone || len(entries) != 1 {
		err = db.InTx(ctx, func(tx Tx) error {
			tag, err = auditedQueries{tx.in, tx.change}.Exec(ctx, sql, args...)
			return err
		})
		return tag, err
	}
	whole := withEntry(sql, entries[0].statement(), len(args), s.sure)
	err = retryDeadlocks(ctx, func() error {
		tag, err = db.Pool.Exec(ctx, whole, append(slices.Clip(args), entries[0].args()...)...)
		return err
	})
	if err == nil && tag.RowsAffected() > 0 {
		committed()
	}
	return tag, err
}

var withEntries sync.Map // statementAndEntry → text

type statementAndEntry struct {
	statement, entry string
	sure             bool
}

// withEntry returns a statement of n arguments that also inserts an audit log entry, whose arguments follow. Unless the
// statement is sure to change a row, the entry depends on the change.
func withEntry(sql, entry string, n int, sure bool) string {
	key := statementAndEntry{sql, entry, sure}
	if known, ok := withEntries.Load(key); ok {
		return known.(string)
	}
	types := []string{
		"uuid",
		"uuid",
		"text",
		"uuid",
		"text",
		"uuid",
		"text",
		"text[]",
		"uuid[]",
		"text",
	} // of PutAuditEntry
	for i, t := range types {
		types[i] = fmt.Sprintf("$%d::%s", n+i+1, t)
	}
	if strings.HasPrefix(entry, "-- ") { // the name of the query; the change keeps its own
		_, entry, _ = strings.Cut(entry, "\n")
	}
	head, rest, _ := strings.Cut(entry, "values (")
	_, tail, _ := strings.Cut(rest, ")")
	change, values := strings.TrimRight(sql, "\n; "), strings.Join(types, ", ")
	whole := "with change as (\n" + change + "\nreturning 1)\n" + head + "select " + values + "\nwhere exists (select from change)" + tail
	if sure {
		whole = "with entry as (\n" + head + "values (" + values + ")" + strings.TrimRight(
			tail,
			"\n; ",
		) + ")\n" + change
	}
	withEntries.Store(key, whole)
	return whole
}

// errUnaudited prevents a change that would be missing in the audit log.
var errUnaudited = errors.New("a requested change that returns rows must run in a transaction")

// Concerns names the workspaces of a change whose statements do not name them.
func (tx Tx) Concerns(workspaces ...uuid.UUID) {
	for _, w := range workspaces {
		tx.change.name(workspaceID, w)
	}
}

// Begins says that the rest of a change is left to a device, to an access system, or to the server itself in a while.
func (tx Tx) Begins() { tx.change.begun = true }

// errNoActor prevents a disclosure without an audit log entry.
var errNoActor = errors.New("a disclosure needs an actor for the audit log")

// Discloses adds the transaction to the audit log although it changes nothing, because the act shows a secret of a
// resource. The caller must show the secret only after the commit. It fails for work of the server itself.
func (tx Tx) Discloses(kind string, id uuid.UUID) error {
	if tx.act == nil {
		return errNoActor
	}
	tx.change.wrote = true
	tx.change.name(kind, id)
	return nil
}
