// Package idempotency runs a request with an Idempotency-Key at most once and replays its stored answer to repetitions.
// It must not know resources: the caller passes the operation as a function.
package idempotency

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// PublicKeys is the default of Options.PublicKeys.
const PublicKeys = 10_000

// Options of a Service. The zero value is for production.
type Options struct {
	WaitTimeout time.Duration // how long a request waits for another one with its Idempotency-Key; 0: 15 s
	// PublicKeys is the maximum number of stored keys in a workspace of publishable keys, and of client sessions that
	// were created with one and reach nothing. The oldest make room; 0: PublicKeys.
	PublicKeys int
	Now        func() time.Time // the clock; nil: the system's
	Log        *slog.Logger
}

// Service keeps the answers to requests with a key.
type Service struct {
	db       *store.DB
	keys     *encryption.Keys
	opt      Options
	underWay underWay
	public   domain.Headroom // of public keys
}

// New creates a Service. db must be migrated.
func New(db *store.DB, keys *encryption.Keys, opt Options) *Service {
	opt.WaitTimeout = cmp.Or(opt.WaitTimeout, 15*time.Second)
	opt.PublicKeys = cmp.Or(opt.PublicKeys, PublicKeys)
	if opt.Now == nil {
		opt.Now = time.Now
	}
	opt.Log = cmp.Or(opt.Log, slog.New(slog.DiscardHandler))
	return &Service{db: db, keys: keys, opt: opt}
}
