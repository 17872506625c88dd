package access

import (
	"context"
	"fmt"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// Condition is how the database is.
type Condition struct {
	At       time.Time
	ReadOnly bool      // it takes no writes
	Outdated bool      // it lacks a migration that this program needs
	Full     time.Time // when a statement last failed because a disk of its is full; zero: none has
	Keys     error     // why a key that secrets are sealed with cannot be opened
}

// Condition asks the database how it is, and fails where it does not answer, or refuses a write that it should take.
func (s *Service) Condition(ctx context.Context) (Condition, error) {
	c, err := s.db.Condition(ctx)
	return Condition{At: c.At, ReadOnly: c.ReadOnly, Outdated: err == nil && c.Schema < store.NewestSchema(), Full: c.Full, Keys: s.keys.Trouble()}, err
}

// Lateness is for how long what nobody works on has been due, in all workspaces.
type Lateness struct {
	Devices    time.Duration
	Deliveries time.Duration // to endpoints that work
	Events     time.Duration // that webhooks have not been given
}

// Lateness asks what waits.
func (s *Service) Lateness(ctx context.Context) (Lateness, error) {
	r, err := s.db.Beside.Lateness(ctx)
	if err != nil {
		return Lateness{}, fmt.Errorf("ask what is late: %w", err)
	}
	events, err := s.db.Beside.OldestEvent(ctx)
	if err != nil {
		return Lateness{}, fmt.Errorf("ask which event is late: %w", err)
	}
	return Lateness{Devices: Seconds(r.Devices), Deliveries: Seconds(r.Deliveries), Events: Seconds(events)}, nil
}
