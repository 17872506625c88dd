package device

import (
	"encoding/json"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

func readPool(d dbsqlc.Device) lockstate.BackupPool { return toPool(d.BackupPool) }

func toPool(stored []byte) lockstate.BackupPool {
	if string(stored) == "{}" { // most devices have none
		return lockstate.BackupPool{}
	}
	var p lockstate.BackupPool
	_ = json.Unmarshal(stored, &p) // written by this package
	return p
}

// checkPool fails with Invalid where a new code cannot use a backup pool.
func checkPool(asked, timeBound bool) error {
	if !asked || timeBound {
		return nil
	}
	return domain.Invalidf(
		"use_backup_access_code_pool",
		"Cannot use the backup pool for ongoing codes. Set starts_at and ends_at",
	)
}

// switchPool switches the pool on or off, regardless of its codes. It fails with Invalid.
func (t *deviceTx) switchPool(on bool) error {
	pool := &t.lock.Device.Pool
	if on && !t.lock.Device.Capabilities.HasBackupPool() {
		return &domain.Error{
			Kind:    domain.Invalid,
			Type:    "device_type_not_supported",
			Field:   "backup_access_code_pool_enabled",
			Message: "This device cannot hold access codes.",
		}
	}
	if pool.Enabled == on {
		return nil
	}
	pool.Enabled = on
	t.wake(false)
	return nil
}
