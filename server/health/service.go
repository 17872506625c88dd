// Package health measures the installation for probes and metrics: whether the database takes writes, and how much work waits
// for how long.
package health

import (
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// Service asks the database how it is.
type Service struct {
	db   *store.DB
	keys *encryption.Keys
}

// New creates a Service.
func New(db *store.DB, keys *encryption.Keys) *Service { return &Service{db: db, keys: keys} }
