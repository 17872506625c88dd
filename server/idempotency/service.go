// Package idempotency gives requests with an Idempotency-Key their effect once: a repeated request is answered as it was
// the first time. It knows no resources; what a request does is a function to it.
package idempotency

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// Options of a Service. The zero value is for production.
type Options struct {
	WaitTimeout time.Duration // how long a request waits for another one with its Idempotency-Key; 0: 15 s
	Log         *slog.Logger
}

// Service keeps the answers to requests with a key.
type Service struct {
	db       *store.DB
	keys     *encryption.Keys
	opt      Options
	underWay underWay
}

// New creates a Service. db must be migrated.
func New(db *store.DB, keys *encryption.Keys, opt Options) *Service {
	opt.WaitTimeout = cmp.Or(opt.WaitTimeout, 15*time.Second)
	opt.Log = cmp.Or(opt.Log, slog.New(slog.DiscardHandler))
	return &Service{db: db, keys: keys, opt: opt}
}
