package overview

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// TimelineSource is where an item of a timeline comes from.
type TimelineSource string

// The sources of a timeline.
const (
	FromEvent   TimelineSource = "event"
	FromAttempt TimelineSource = "attempt"
	FromAudit   TimelineSource = "audit"
)

// TimelineItem is something that happened to a device or to one of its codes.
type TimelineItem struct {
	Source TimelineSource
	ID     uuid.UUID
	At     time.Time
	// What is an event type, an action type, or an operation.
	What string
	// Code is the code that the item is about; zero: none, or several.
	Code uuid.UUID
	// Status is that of an attempt (pending, success, or error), or the outcome of an audit entry (done or pending).
	Status string
	// Detail says more in words, such as why an attempt failed, or how a door was unlocked.
	Detail string
	// ActorKind and ActorName are the actor of an audit entry.
	ActorKind, ActorName string
	// Request is the request of an audit entry; zero: none.
	Request uuid.UUID
}

// TimelineFilter selects a device, and optionally one of its codes.
type TimelineFilter struct{ Device, Code uuid.UUID }

// maxTimelineCodes is the maximum number of codes of a device whose audit entries a timeline includes: the newest ones.
const maxTimelineCodes = 1000

// Timeline merges the events, the action attempts, and the audit entries of a device or of a code, newest first. Next is
// where the next page starts; zero: this is the last one.
func (s *Service) Timeline(
	ctx context.Context,
	workspace uuid.UUID,
	f TimelineFilter,
	from Position,
	limit int,
) (items []TimelineItem, next Position, err error) {
	for _, read := range []func(context.Context, uuid.UUID, TimelineFilter, Position, int32) ([]TimelineItem, error){
		s.timelineEvents, s.timelineAttempts, s.timelineAudit,
	} {
		some, err := read(ctx, workspace, f, from, int32(limit)+1)
		if err != nil {
			return nil, next, fmt.Errorf("read the timeline: %w", err)
		}
		items = append(items, some...)
	}
	slices.SortFunc(items, func(a, b TimelineItem) int {
		return cmp.Or(b.At.Compare(a.At), bytes.Compare(b.ID[:], a.ID[:]))
	})
	if len(items) > limit {
		items = items[:limit]
		next = Position{items[limit-1].At, items[limit-1].ID}
	}
	return items, next, nil
}

func (s *Service) timelineEvents(
	ctx context.Context,
	workspace uuid.UUID,
	f TimelineFilter,
	from Position,
	limit int32,
) (items []TimelineItem, err error) {
	at, id := from.before()
	_, until := store.EventIDs(at, at)
	rows, err := s.db.UnpreparedQueries.TimelineEvents(ctx, dbsqlc.TimelineEventsParams{
		WorkspaceID:  workspace,
		DeviceID:     f.Device,
		UntilID:      until,
		BeforeAt:     at,
		BeforeID:     id,
		AccessCodeID: nonZero(f.Code),
		MaxRows:      limit,
	})
	for _, r := range rows {
		items = append(items, TimelineItem{
			Source: FromEvent,
			ID:     r.EventID,
			At:     r.CreatedAt,
			What:   r.EventType,
			Code:   domain.Value(r.AccessCodeID),
			Detail: eventDetail(r.Payload),
		})
	}
	return items, err
}

// eventDetail returns the words of an event for people: the method, the state of the battery, or the newest problem.
func eventDetail(payload []byte) string {
	type problem struct {
		Message string `json:"message"`
	}
	var fields struct {
		Method  string    `json:"method"`
		Battery string    `json:"battery_status"`
		Errors  []problem `json:"access_code_errors"`
	}
	if json.Unmarshal(payload, &fields) != nil {
		return ""
	}
	if len(fields.Errors) > 0 {
		return fields.Errors[0].Message
	}
	return cmp.Or(fields.Method, fields.Battery)
}

func (s *Service) timelineAttempts(
	ctx context.Context,
	workspace uuid.UUID,
	f TimelineFilter,
	from Position,
	limit int32,
) (items []TimelineItem, err error) {
	at, id := from.before()
	rows, err := s.db.UnpreparedQueries.TimelineAttempts(ctx, dbsqlc.TimelineAttemptsParams{
		WorkspaceID:  workspace,
		DeviceID:     f.Device,
		BeforeAt:     at,
		BeforeID:     id,
		AccessCodeID: nonZero(f.Code),
		MaxRows:      limit,
	})
	for _, r := range rows {
		items = append(items, TimelineItem{
			Source: FromAttempt,
			ID:     r.ActionAttemptID,
			At:     r.CreatedAt,
			What:   r.ActionType,
			Code:   domain.Value(r.AccessCodeID),
			Status: r.Status,
			Detail: domain.Value(r.ErrorMessage),
		})
	}
	return items, err
}

func (s *Service) timelineAudit(
	ctx context.Context,
	workspace uuid.UUID,
	f TimelineFilter,
	from Position,
	limit int32,
) (items []TimelineItem, err error) {
	subjects := []uuid.UUID{f.Code}
	if f.Code == uuid.Nil {
		codes, err := s.db.CodeIDsOfDevice(
			ctx,
			dbsqlc.CodeIDsOfDeviceParams{DeviceID: f.Device, MaxRows: maxTimelineCodes},
		)
		if err != nil {
			return nil, err
		}
		subjects = append(codes, f.Device)
	}
	at, id := from.before()
	rows, err := s.db.UnpreparedQueries.TimelineAudit(ctx, dbsqlc.TimelineAuditParams{
		WorkspaceID: workspace,
		SubjectIds:  subjects,
		BeforeAt:    at,
		BeforeID:    id,
		MaxRows:     limit,
	})
	for _, r := range rows {
		items = append(items, TimelineItem{
			Source:    FromAudit,
			ID:        r.AuditID,
			At:        r.OccurredAt,
			What:      r.Operation,
			Code:      onlyCode(r.SubjectKinds, r.SubjectIds),
			Status:    r.Outcome,
			ActorKind: r.ActorKind,
			ActorName: r.ActorName,
			Request:   domain.Value(r.RequestID),
		})
	}
	return items, err
}

// onlyCode returns the code among the subjects of an audit entry; zero: there is none, or there are several.
func onlyCode(kinds []string, ids []uuid.UUID) (code uuid.UUID) {
	for i, kind := range kinds {
		switch {
		case kind != "access_code_id":
		case code != uuid.Nil:
			return uuid.Nil
		default:
			code = ids[i]
		}
	}
	return code
}
