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

	inventory *inventoryCache
}

// New creates a Service. It caches an Inventory for inventoryTTL; 0 means 30 s.
func New(db *store.DB, keys *encryption.Keys, inventoryTTL time.Duration) *Service {
	return &Service{db: db, keys: keys, inventory: newInventoryCache(inventoryTTL)}
}
