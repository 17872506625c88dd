// Package health measures the installation for probes and metrics: whether the database takes writes, and how much work waits
// for how long.
package health

import (
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// Service asks the database how it is.
type Service struct {
	db   *store.DB
	keys *encryption.Keys

	inventory *cache[Inventory]
	devices   *cache[[]DeviceState]
}

// New creates a Service. It caches Inventory and DeviceStates for ttl; 0 means 30 s.
func New(db *store.DB, keys *encryption.Keys, ttl time.Duration) *Service {
	s := &Service{db: db, keys: keys}
	s.inventory, s.devices = newCache(ttl, s.readInventory), newCache(ttl, s.readDeviceStates)
	return s
}
