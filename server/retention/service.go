package retention

import (
	"cmp"
	"log/slog"
	"sync"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/audit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/idempotency"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/operator"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
)

// Services are the other services that a Service calls.
type Services struct {
	Auth        *auth.Service
	Operators   *operator.Service
	Webhooks    *webhook.Service
	Devices     *device.Service
	Idempotency *idempotency.Service
	Audit       *audit.Service
}

// Service removes old rows.
type Service struct {
	db          *store.DB
	auth        *auth.Service
	operators   *operator.Service
	webhooks    *webhook.Service
	devices     *device.Service
	idempotency *idempotency.Service
	audit       *audit.Service
	now         func() time.Time
	started     time.Time
	log         *slog.Logger

	mu    sync.Mutex
	clock clock
}

// New creates a Service. db must be migrated. now is the clock of the server; nil is the system's. log may be nil.
func New(db *store.DB, r Services, now func() time.Time, log *slog.Logger) *Service {
	if now == nil {
		now = time.Now
	}
	return &Service{
		now:         now,
		started:     now(),
		log:         cmp.Or(log, slog.New(slog.DiscardHandler)),
		db:          db,
		auth:        r.Auth,
		operators:   r.Operators,
		webhooks:    r.Webhooks,
		devices:     r.Devices,
		idempotency: r.Idempotency,
		audit:       r.Audit,
	}
}
