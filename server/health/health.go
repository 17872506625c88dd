package health

import (
	"context"
	"fmt"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// Condition is the state of the database.
type Condition struct {
	At       time.Time
	ReadOnly bool      // rejects writes
	Outdated bool      // lacks a migration that this program needs
	Full     time.Time // when a statement last failed because of a full disk; zero: never
	Keys     error     // why an encryption key cannot be opened
}

// Condition returns the state of the database. It fails where the database does not answer or rejects a write
// that it should accept.
func (s *Service) Condition(ctx context.Context) (Condition, error) {
	c, err := s.db.Condition(ctx)
	return Condition{
		At:       c.At,
		ReadOnly: c.ReadOnly,
		Outdated: err == nil && c.Schema < store.NewestSchema(),
		Full:     c.Full,
		Keys:     s.keys.UnwrapError(),
	}, err
}

// Lateness is how long unleased work has been due, in all workspaces.
type Lateness struct {
	Devices    time.Duration
	Deliveries time.Duration // to healthy endpoints
	Events     time.Duration // without deliveries
}

// Lateness returns how long work has been due.
func (s *Service) Lateness(ctx context.Context) (Lateness, error) {
	r, err := s.db.SideQueries.Lateness(ctx)
	if err != nil {
		return Lateness{}, fmt.Errorf("read the lateness: %w", err)
	}
	events, err := s.db.SideQueries.OldestEvent(ctx)
	if err != nil {
		return Lateness{}, fmt.Errorf("read the oldest event: %w", err)
	}
	return Lateness{
		Devices:    domain.Seconds(r.Devices),
		Deliveries: domain.Seconds(r.Deliveries),
		Events:     domain.Seconds(events),
	}, nil
}
