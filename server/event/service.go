// Package event writes events in the transaction of what they report, and reads them. It knows the types of events
// and the fields that each carries. It knows neither webhooks nor how events are delivered.
package event

import (
	"context"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// Service writes and reads events.
type Service struct {
	db     *store.DB
	keys   *encryption.Keys
	waker  *worker.Waker
	onEmit func(ctx context.Context, tx store.Tx, account uuid.UUID, events int)
}

// New creates a Service. db must be migrated.
func New(db *store.DB, keys *encryption.Keys, waker *worker.Waker) *Service {
	return &Service{
		db:     db,
		keys:   keys,
		waker:  waker,
		onEmit: func(context.Context, store.Tx, uuid.UUID, int) {},
	}
}

// OnEmit sets what is called in the transaction of each event of an account. It must be set before the Service is used.
func (s *Service) OnEmit(f func(ctx context.Context, tx store.Tx, account uuid.UUID, events int)) {
	s.onEmit = f
}
