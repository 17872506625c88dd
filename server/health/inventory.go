package health

import (
	"context"
	"fmt"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

const (
	// InventoryCap is the maximum of each count in an Inventory, which bounds the cost of the queries.
	InventoryCap = 100_000
	// OverdueAfter is how long an online device may take to set or remove a code before the code counts as overdue.
	OverdueAfter = 10 * time.Minute
	// MaxDeviceStates is the maximum number of devices that DeviceStates returns.
	MaxDeviceStates = 10_000
	// inventoryTimeout limits the queries of InventoryNow.
	inventoryTimeout = 5 * time.Second
	// maxProbeWait is how long InventoryNow waits for these queries.
	maxProbeWait = 300 * time.Millisecond
)

// Inventory counts what operators watch over: devices, accounts, codes, and users, in all workspaces. Unmanaged and
// removed devices don't count, because the server doesn't read them.
type Inventory struct {
	Online          int64 // devices
	Offline         int64 // devices
	BatteryLow      int64 // devices with battery_status low
	BatteryCritical int64 // devices with battery_status critical
	// Accounts are the connected accounts.
	Accounts []AccountCount
	// Codes are the managed access codes by status, without the backup codes in the pool.
	Codes map[string]int64
	// Overdue are the codes that an online device has not set for more than OverdueAfter.
	Overdue int64
	// Failing are the codes with an error: their device refuses them, or does not take or remove them.
	Failing int64
	// RemovalOverdue are the codes that an online device has not removed for more than OverdueAfter.
	RemovalOverdue int64
	// OldestUnset is how long the oldest unset code of an online device has waited.
	OldestUnset time.Duration
	// UsersPending are the users of access systems with changes that the system has not confirmed.
	UsersPending int64
	// UsersFailing are the users of access systems with changes that failed or that the system refuses.
	UsersFailing int64
	// LastBackup is when the last backup ended. Before the first backup, it is when the installation began.
	LastBackup time.Time
}

// AccountConnected is the state of an account that works.
const AccountConnected = "connected"

// AccountCount counts the accounts of an adapter in a state.
type AccountCount struct {
	Adapter string
	State   string // AccountConnected, or the code of the account's error
	Number  int64
}

// AccountsFailing returns the number of accounts with an error.
func (i Inventory) AccountsFailing() (n int64) {
	for _, a := range i.Accounts {
		if a.State != AccountConnected {
			n += a.Number
		}
	}
	return n
}

// DeviceState is what a monitoring system shows of a managed device.
type DeviceState struct {
	ID      string
	Name    string
	Online  bool
	Battery *float64 // level from 0 to 1; nil: unknown
	Unset   int64    // codes that the device has not set yet
}

// Inventory returns the counts of devices, accounts, codes, and users. The result is cached.
func (s *Service) Inventory(ctx context.Context) (Inventory, error) { return s.inventory.get(ctx) }

// InventoryNow is Inventory for probes, which must not wait for long. It returns whether the counts are known.
func (s *Service) InventoryNow() (_ Inventory, known bool) {
	return s.inventory.peek(maxProbeWait, inventoryTimeout)
}

func (s *Service) readInventory(ctx context.Context) (i Inventory, err error) {
	devices, err := s.db.CountDevices(ctx, InventoryCap)
	if err != nil {
		return i, fmt.Errorf("count the devices: %w", err)
	}
	i.Offline, i.Online = devices.Offline, max(devices.Total-devices.Offline, 0)
	i.BatteryLow, i.BatteryCritical = devices.BatteryLow, devices.BatteryCritical
	accounts, err := s.db.CountAccounts(ctx, InventoryCap)
	if err != nil {
		return i, fmt.Errorf("count the accounts: %w", err)
	}
	for _, a := range accounts {
		i.Accounts = append(i.Accounts, AccountCount{a.Adapter, a.State, a.Accounts})
	}
	if err := s.countCodes(ctx, &i); err != nil {
		return i, err
	}
	users, err := s.db.CountPendingAcsUsers(ctx, InventoryCap)
	if err != nil {
		return i, fmt.Errorf("count the users: %w", err)
	}
	i.UsersPending, i.UsersFailing = users.Waiting, users.Failing
	if i.LastBackup, err = s.db.GetLastBackup(ctx); err != nil {
		return i, fmt.Errorf("read the time of the last backup: %w", err)
	}
	return i, nil
}

func (s *Service) countCodes(ctx context.Context, i *Inventory) error {
	all, err := s.db.CountAccessCodes(ctx, InventoryCap)
	if err != nil {
		return fmt.Errorf("count the access codes: %w", err)
	}
	others, err := s.db.CountCodesNotSet(ctx, InventoryCap)
	if err != nil {
		return fmt.Errorf("count the access codes: %w", err)
	}
	set := all.Managed - all.Pooled
	i.Codes = map[string]int64{}
	for _, c := range others {
		i.Codes[c.Status] = c.Codes
		set -= c.Codes
	}
	i.Codes["set"] = max(set, 0)
	overdue, err := s.db.FindOverdueCodes(ctx, dbsqlc.FindOverdueCodesParams{
		OverdueSeconds: OverdueAfter.Seconds(),
		Most:           InventoryCap,
	})
	if err != nil {
		return fmt.Errorf("find the overdue access codes: %w", err)
	}
	i.Overdue, i.OldestUnset = overdue.Overdue, domain.Seconds(overdue.Oldest)
	if i.Failing, err = s.db.CountFailingCodes(ctx, InventoryCap); err != nil {
		return fmt.Errorf("count the failing access codes: %w", err)
	}
	i.RemovalOverdue, err = s.db.CountOverdueRemovals(ctx, dbsqlc.CountOverdueRemovalsParams{
		OverdueSeconds: OverdueAfter.Seconds(),
		Most:           InventoryCap,
	})
	if err != nil {
		return fmt.Errorf("count the overdue removals: %w", err)
	}
	return nil
}

// DeviceStates returns the state of each managed device, up to MaxDeviceStates of them. The result is cached.
func (s *Service) DeviceStates(ctx context.Context) ([]DeviceState, error) { return s.devices.get(ctx) }

func (s *Service) readDeviceStates(ctx context.Context) ([]DeviceState, error) {
	rows, err := s.db.ListDeviceStates(ctx, MaxDeviceStates)
	if err != nil {
		return nil, fmt.Errorf("list the states of the devices: %w", err)
	}
	out := make([]DeviceState, len(rows))
	for i, r := range rows {
		out[i] = DeviceState{
			ID:      r.DeviceID.String(),
			Name:    r.Name,
			Online:  r.Online,
			Battery: r.BatteryLevel,
			Unset:   r.Setting,
		}
	}
	return out, nil
}
