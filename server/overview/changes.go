package overview

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Change identifies the latest change in a workspace.
type Change struct {
	// At is when it happened, in microseconds since 1970.
	At int64
	// Recent is the number of events up to five seconds before the latest one. Events become visible in another order than
	// they are created, so Recent differs after one that became visible late. A negative number is unknown.
	Recent int64
}

// String returns the change as text, which ParseChange reads.
func (c Change) String() string { return fmt.Sprintf("%d-%d", c.At, c.Recent) }

// ParseChange reads what String returns, or its first number. Another text is the zero Change.
func ParseChange(text string) Change {
	at, recent, found := strings.Cut(text, "-")
	c := Change{Recent: -1}
	var err error
	if c.At, err = strconv.ParseInt(at, 10, 64); err != nil {
		return Change{}
	}
	if found {
		if c.Recent, err = strconv.ParseInt(recent, 10, 64); err != nil {
			return Change{}
		}
	}
	return c
}

// Follows reports whether c is a change after seen. After a Change that is only a time, it is any change since then.
func (c Change) Follows(seen Change) bool {
	switch {
	case seen == Change{}:
		return false
	case seen.Recent < 0:
		return c.At >= seen.At
	}
	return c != seen
}

// LastChange returns the latest change in a workspace.
func (s *Service) LastChange(ctx context.Context, workspace uuid.UUID) (Change, error) {
	r, err := s.db.NewestChange(ctx, workspace)
	if err != nil {
		return Change{}, fmt.Errorf("look for changes: %w", err)
	}
	return Change{r.At.UnixMicro(), r.Recent}, nil
}

// Event is an event of a device.
type Event struct {
	ID         uuid.UUID
	Type       string
	OccurredAt time.Time
	// Fields are those of the type. None is a PIN.
	Fields map[string]any
}

// EventsOfDevice returns a page of the events of a device, newest first, and where the next page starts.
func (s *Service) EventsOfDevice(
	ctx context.Context,
	workspace, device uuid.UUID,
	from Position,
	limit int,
) (out []Event, next Position, err error) {
	at, id := from.before()
	rows, err := s.db.LatestEventsOfDevice(ctx, dbsqlc.LatestEventsOfDeviceParams{
		WorkspaceID: workspace,
		DeviceID:    &device,
		BeforeAt:    at,
		BeforeID:    id,
		MaxRows:     int32(limit) + 1,
	})
	if err != nil {
		return nil, Position{}, fmt.Errorf("list the events of a device: %w", err)
	}
	for i, r := range rows {
		if i == limit {
			return out, Position{rows[i-1].CreatedAt, rows[i-1].EventID}, nil
		}
		e := Event{ID: r.EventID, Type: r.EventType, OccurredAt: r.OccurredAt}
		if err := json.Unmarshal(r.Payload, &e.Fields); err != nil {
			return nil, Position{}, fmt.Errorf("read an event: %w", err)
		}
		out = append(out, e)
	}
	return out, Position{}, nil
}

// CurrentSchedules returns the name or the preset of the running schedule of each thermostat that has one.
func (s *Service) CurrentSchedules(ctx context.Context, devices []uuid.UUID) (map[uuid.UUID]string, error) {
	rows, err := s.db.CurrentSchedules(ctx, devices)
	if err != nil {
		return nil, fmt.Errorf("list the running schedules: %w", err)
	}
	out := map[uuid.UUID]string{}
	for _, r := range rows {
		out[r.DeviceID] = r.Name
	}
	return out, nil
}

// CountThresholds counts the thresholds of noise sensors. Sensors without thresholds are absent.
func (s *Service) CountThresholds(ctx context.Context, devices []uuid.UUID) (map[uuid.UUID]int, error) {
	rows, err := s.db.ThresholdsOfDevices(ctx, devices)
	if err != nil {
		return nil, fmt.Errorf("count the thresholds of noise sensors: %w", err)
	}
	out := map[uuid.UUID]int{}
	for _, r := range rows {
		out[r.DeviceID] = int(r.Thresholds)
	}
	return out, nil
}
