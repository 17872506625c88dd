// Package idempotency runs a request with an Idempotency-Key at most once and replays its stored answer to repetitions.
// It must not know resources: the caller passes the operation as a function.
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
