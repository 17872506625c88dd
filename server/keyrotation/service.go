// Package keyrotation keeps the keys that columns are encrypted with, and those that all instances share, in the
// database, and replaces them. It knows which columns are encrypted or hashed, and nothing of what is in them.
package keyrotation

import (
	"cmp"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// Service keeps and rotates keys.
type Service struct {
	db   *store.DB
	keys *encryption.Keys
	opt  Options
}

// Options of a Service. The zero value is for production.
type Options struct {
	RotationWait time.Duration // how long a rotation of the encryption waits for writes in progress; 0: 10 s
}

// New creates a Service. db must be migrated.
func New(db *store.DB, keys *encryption.Keys, opt Options) *Service {
	opt.RotationWait = cmp.Or(opt.RotationWait, 10*time.Second)
	return &Service{db: db, keys: keys, opt: opt}
}
