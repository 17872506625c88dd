package overview

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// ActivityFilter are conditions that must all hold. Zero fields are no condition.
type ActivityFilter struct {
	// Kind is AuditRow or EventRow; empty: both.
	Kind string
	// Actor is a kind, an identifier, or a part of a name. Events have no actor.
	Actor string
	// What is the beginning of an operation or of an event type.
	What      string
	Subject   uuid.UUID
	RequestID uuid.UUID // events have none
	// Installation adds the acts that concern the whole installation, such as those on operators.
	Installation bool
	// Since is inclusive, Until exclusive.
	Since, Until time.Time
}

// Values of ActivityRow.Kind.
const (
	AuditRow = "audit"
	EventRow = "event"
)

// Subject is a resource that a row of the activity concerns.
type Subject struct {
	// Kind is the name of its identifier, such as access_code_id.
	Kind string
	ID   uuid.UUID
}

// ActivityRow is an act of the audit log, or an event.
type ActivityRow struct {
	Kind      string
	ID        uuid.UUID
	At        time.Time
	ActorKind string // of acts
	ActorID   *uuid.UUID
	ActorName string
	RequestID *uuid.UUID
	// What is an operation or an event type.
	What     string
	Pending  bool // of acts: a device still has to act
	Subjects []Subject
}

func (r ActivityRow) compare(o ActivityRow) int {
	return cmp.Or(o.At.Compare(r.At), bytes.Compare(o.ID[:], r.ID[:]))
}

// requestLag is how much earlier or later than its request an act can be: clocks differ, and requests wait.
const requestLag = time.Hour

// period returns the bounds of the time. The identifier of a request has its time (RFC 9562, version 7), which makes
// the search short.
func (f ActivityFilter) period() (since, until time.Time) {
	since, until = f.Since, f.Until
	if since.IsZero() {
		since = domain.LongAgo
	}
	if until.IsZero() {
		until = domain.Never
	}
	if f.RequestID.Version() == 7 {
		sec, nsec := f.RequestID.Time().UnixTime()
		at := time.Unix(sec, nsec)
		if early := at.Add(-requestLag); early.After(since) {
			since = early
		}
		if late := at.Add(requestLag); late.Before(until) {
			until = late
		}
	}
	return since, until
}

// scannedActivity is how many entries and events a page searches for rare matches.
const scannedActivity = 10_000

// endOfScan is the identifier of positions after the rows of a time: no row has it.
var endOfScan = uuid.UUID{15: 1}

// Activity lists who changed what and what happened in a workspace, newest first, and where the next page starts. A
// page with a filter by actor or operation can have fewer rows than limit.
func (s *Service) Activity(
	ctx context.Context,
	workspace uuid.UUID,
	f ActivityFilter,
	from Position,
	limit int,
) (rows []ActivityRow, next Position, err error) {
	acts := f.Kind != EventRow
	events := f.Kind != AuditRow && f.Actor == "" && f.RequestID == uuid.Nil
	if f.Subject == uuid.Nil && f.RequestID == uuid.Nil && f.Actor+f.What != "" {
		end, err := s.scanEnd(ctx, workspace, f, from, acts, events)
		if err != nil {
			return nil, next, err
		}
		if !end.IsZero() {
			f.Since, next = end, Position{end, endOfScan}
		}
	}
	if acts {
		found, err := s.acts(ctx, workspace, f, from, limit+1)
		if err != nil {
			return nil, next, fmt.Errorf("read the audit log: %w", err)
		}
		rows = append(rows, found...)
	}
	if events {
		found, err := s.events(ctx, workspace, f, from, limit+1)
		if err != nil {
			return nil, next, fmt.Errorf("read the events: %w", err)
		}
		rows = append(rows, found...)
	}
	slices.SortFunc(rows, ActivityRow.compare)
	if len(rows) > limit {
		rows = rows[:limit]
		next = Position{rows[limit-1].At, rows[limit-1].ID}
	}
	return rows, next, nil
}

// scanEnd returns the time at which a page stops its search; zero: it searches everything.
func (s *Service) scanEnd(
	ctx context.Context,
	workspace uuid.UUID,
	f ActivityFilter,
	from Position,
	acts, events bool,
) (end time.Time, err error) {
	at, id := from.before()
	since, until := f.period()
	if acts {
		end, err = s.db.UnpreparedQueries.AuditScanEnd(ctx, dbsqlc.AuditScanEndParams{
			WorkspaceID:  workspace,
			Installation: f.Installation,
			BeforeAt:     at,
			BeforeID:     id,
			Since:        since,
			Until:        until,
			ScannedRows:  scannedActivity + 1,
			SkippedRows:  scannedActivity,
		})
		if err != nil && !store.IsNoRows(err) {
			return end, fmt.Errorf("read the audit log: %w", err)
		}
	}
	if !events {
		return end, nil
	}
	arg := dbsqlc.EventScanEndParams{
		WorkspaceID: workspace,
		BeforeAt:    at,
		BeforeID:    id,
		Since:       since,
		Until:       until,
		ScannedRows: scannedActivity,
	}
	arg.SinceID, arg.UntilID = store.EventIDs(since, earlier(until, at))
	last, err := s.db.UnpreparedQueries.EventScanEnd(ctx, arg)
	if err != nil && !store.IsNoRows(err) {
		return end, fmt.Errorf("read the events: %w", err)
	}
	if err == nil && last.After(end) {
		end = last
	}
	return end, nil
}

func (s *Service) acts(
	ctx context.Context,
	workspace uuid.UUID,
	f ActivityFilter,
	from Position,
	limit int,
) (rows []ActivityRow, err error) {
	at, id := from.before()
	since, until := f.period()
	if f.Subject != uuid.Nil {
		found, err := s.db.UnpreparedQueries.ActivityAuditOf(ctx, dbsqlc.ActivityAuditOfParams{
			SubjectID:    f.Subject,
			WorkspaceID:  workspace,
			Installation: f.Installation,
			BeforeAt:     at,
			BeforeID:     id,
			Since:        since,
			Until:        until,
			Actor:        f.Actor,
			Operation:    f.What,
			RequestID:    f.RequestID,
			MaxRows:      int32(limit),
		})
		for _, r := range found {
			rows = append(rows, toAct(dbsqlc.ActivityAuditRow(r)))
		}
		return rows, err
	}
	found, err := s.db.UnpreparedQueries.ActivityAudit(ctx, dbsqlc.ActivityAuditParams{
		WorkspaceID:  workspace,
		Installation: f.Installation,
		BeforeAt:     at,
		BeforeID:     id,
		Since:        since,
		Until:        until,
		Actor:        f.Actor,
		Operation:    f.What,
		RequestID:    f.RequestID,
		MaxRows:      int32(limit),
	})
	for _, r := range found {
		rows = append(rows, toAct(r))
	}
	return rows, err
}

func toAct(r dbsqlc.ActivityAuditRow) ActivityRow {
	row := ActivityRow{
		Kind:      AuditRow,
		ID:        r.AuditID,
		At:        r.OccurredAt,
		ActorKind: r.ActorKind,
		ActorID:   r.ActorID,
		ActorName: r.ActorName,
		RequestID: r.RequestID,
		What:      r.Operation,
		Pending:   r.Outcome != "done",
	}
	for i, id := range r.SubjectIds {
		row.Subjects = append(row.Subjects, Subject{r.SubjectKinds[i], id})
	}
	return row
}

func (s *Service) events(
	ctx context.Context,
	workspace uuid.UUID,
	f ActivityFilter,
	from Position,
	limit int,
) (rows []ActivityRow, err error) {
	at, id := from.before()
	since, until := f.period()
	if f.Subject != uuid.Nil {
		found, err := s.db.UnpreparedQueries.ActivityEventsOf(ctx, dbsqlc.ActivityEventsOfParams{
			WorkspaceID: workspace,
			SubjectID:   f.Subject,
			BeforeAt:    at,
			BeforeID:    id,
			Since:       since,
			Until:       until,
			EventType:   f.What,
			MaxRows:     int32(limit),
		})
		for _, r := range found {
			rows = append(rows, toActivity(dbsqlc.ActivityEventsRow(r)))
		}
		return rows, err
	}
	arg := dbsqlc.ActivityEventsParams{
		WorkspaceID: workspace,
		BeforeAt:    at,
		BeforeID:    id,
		Since:       since,
		Until:       until,
		EventType:   f.What,
		MaxRows:     int32(limit),
	}
	arg.SinceID, arg.UntilID = store.EventIDs(since, earlier(until, at))
	found, err := s.db.UnpreparedQueries.ActivityEvents(ctx, arg)
	for _, r := range found {
		rows = append(rows, toActivity(r))
	}
	return rows, err
}

// earlier returns the earlier time.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func toActivity(r dbsqlc.ActivityEventsRow) ActivityRow {
	row := ActivityRow{Kind: EventRow, ID: r.EventID, At: r.CreatedAt, What: r.EventType}
	for _, s := range []struct {
		kind string
		id   *uuid.UUID
	}{
		{"access_code_id", r.AccessCodeID},
		{"device_id", r.DeviceID},
		{"connected_account_id", r.ConnectedAccountID},
	} {
		if s.id != nil {
			row.Subjects = append(row.Subjects, Subject{s.kind, *s.id})
		}
	}
	return row
}

// Names returns the names of devices, codes, and accounts among subjects, by identifier. Deleted ones and those
// without a name are absent.
func (s *Service) Names(
	ctx context.Context,
	workspace uuid.UUID,
	subjects []Subject,
) (map[uuid.UUID]string, error) {
	of := map[string][]uuid.UUID{"device_id": {}, "access_code_id": {}, "connected_account_id": {}}
	for _, subject := range subjects {
		if ids, ok := of[subject.Kind]; ok && !slices.Contains(ids, subject.ID) {
			of[subject.Kind] = append(ids, subject.ID)
		}
	}
	names := map[uuid.UUID]string{}
	devices, err := s.NameDevices(ctx, workspace, of["device_id"])
	if err != nil {
		return nil, err
	}
	for id, d := range devices {
		names[id] = d.Name
	}
	codes, err := s.db.NameCodes(
		ctx,
		dbsqlc.NameCodesParams{WorkspaceID: workspace, AccessCodeIds: of["access_code_id"]},
	)
	if err != nil {
		return nil, fmt.Errorf("read the names of codes: %w", err)
	}
	for _, c := range codes {
		if c.Name != "" {
			names[c.AccessCodeID] = c.Name
		}
	}
	accounts, err := s.db.NameAccounts(
		ctx,
		dbsqlc.NameAccountsParams{WorkspaceID: workspace, ConnectedAccountIds: of["connected_account_id"]},
	)
	if err != nil {
		return nil, fmt.Errorf("read the names of accounts: %w", err)
	}
	for _, a := range accounts {
		names[a.ConnectedAccountID] = a.DisplayName
	}
	return names, nil
}
