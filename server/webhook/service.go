package webhook

import (
	"cmp"
	"net/netip"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// ServiceOptions are the options of a Service. The zero value is for production.
type ServiceOptions struct {
	MaxWebhooks int              // webhooks of a workspace; 0: 10,000
	Now         func() time.Time // the clock; nil: the system's

	// RefusedAddress reports whether nothing is sent to webhooks at an address; nil: every address is allowed.
	RefusedAddress func(netip.Addr) bool
}

// Service keeps webhooks, their deliveries and the log of these.
type Service struct {
	db       *store.DB
	keys     *encryption.Keys
	waker    *worker.Waker
	events   *event.Service
	opt      ServiceOptions
	webhooks domain.Headroom
}

// NewService creates a Service. db must be migrated.
func NewService(
	db *store.DB,
	keys *encryption.Keys,
	waker *worker.Waker,
	events *event.Service,
	opt ServiceOptions,
) *Service {
	opt.MaxWebhooks = cmp.Or(opt.MaxWebhooks, 10_000)
	if opt.Now == nil {
		opt.Now = time.Now
	}
	return &Service{
		db:     db,
		keys:   keys,
		waker:  waker,
		events: events,
		opt:    opt,
	}
}
