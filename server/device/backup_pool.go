package device

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// A backup pool consists of codes that are programmed ahead of time, so that one opens immediately when another code
// does not work. Their rows are those of managed codes and are reconciled like them. Until a code is pulled it is
// neither shown nor announced. Each pass over the device derives the wanted size from the rows, so a crash loses
// nothing.

// poolSize is how many codes a pool holds where the device has room. The published API does not specify its own
// number.
const poolSize = 3

// poolName is the name of pool codes on the device.
const poolName = "Backup code"

// BackupPool is the state of the backup pool of a device.
type BackupPool struct {
	Enabled    bool       `json:"enabled,omitempty"`     // requested and not switched off since
	Wanted     int        `json:"wanted,omitempty"`      // how many codes it should have
	Ready      int        `json:"ready,omitempty"`       // how many codes it has
	ShortSince *time.Time `json:"short_since,omitempty"` // since when it has too few
	Announced  bool       `json:"told,omitempty"`        // short for so long that a problem is shown
}

func readPool(d dbsqlc.Device) BackupPool { return toPool(d.BackupPool) }

func toPool(kept []byte) BackupPool {
	if string(kept) == "{}" { // most devices have none
		return BackupPool{}
	}
	var p BackupPool
	_ = json.Unmarshal(kept, &p) // written by this package
	return p
}

func savePool(ctx context.Context, tx store.Tx, d *dbsqlc.Device, p BackupPool) error {
	was := readPool(*d)
	if bytes.Equal(domain.MustJSON(was), domain.MustJSON(p)) {
		return nil
	}
	d.BackupPool = domain.MustJSON(p)
	if err := tx.SetBackupPool(
		ctx,
		dbsqlc.SetBackupPoolParams{DeviceID: d.DeviceID, BackupPool: d.BackupPool},
	); err != nil {
		return fmt.Errorf("write the state of the backup pool: %w", err)
	}
	return nil
}

// shownAt returns when a problem becomes visible for a short pool. nil means never, or already visible.
func (p BackupPool) shownAt(after time.Duration) *time.Time {
	if p.ShortSince == nil || p.Announced {
		return nil
	}
	at := p.ShortSince.Add(after)
	return &at
}

func (p BackupPool) errors() []domain.Problem {
	if !p.Announced || p.Ready > 0 {
		return nil
	}
	return []domain.Problem{
		{
			Code:  "empty_backup_access_code_pool",
			Scope: domain.OfDevice,
			At:    *p.ShortSince,
			Message: "There is no backup access code on the device. The server keeps retrying. Check the " +
				"other errors of the device.",
		},
	}
}

func (p BackupPool) warnings() []domain.Problem {
	if !p.Announced || p.Ready == 0 {
		return nil
	}
	return []domain.Problem{
		{
			Code:  "partial_backup_access_code_pool",
			Scope: domain.OfDevice,
			At:    *p.ShortSince,
			Message: fmt.Sprintf(
				"The device has %d of %d backup access codes. The server keeps retrying.",
				p.Ready,
				p.Wanted,
			),
		},
	}
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

// enablePool records that a code of the device uses the pool.
func (s *Service) enablePool(ctx context.Context, tx store.Tx, d dbsqlc.Device) error {
	p := readPool(d)
	p.Enabled = true
	return savePool(ctx, tx, &d, p)
}

// switchPool switches the pool on or off, regardless of its codes. It fails with Invalid.
func (t *deviceTx) switchPool(ctx context.Context, on bool) error {
	if on && !t.caps.HasBackupPool() {
		return &domain.Error{
			Kind:    domain.Invalid,
			Type:    "device_type_not_supported",
			Field:   "backup_access_code_pool_enabled",
			Message: "This device cannot hold access codes.",
		}
	}
	p := readPool(t.d)
	if p.Enabled == on {
		return nil
	}
	p.Enabled = on
	if err := savePool(ctx, t.tx, &t.d, p); err != nil {
		return err
	}
	return t.s.accounts.WakeDevice(ctx, t.tx, t.d.DeviceID, false)
}

// backupAvailable reports whether a backup code can be pulled for this code now.
func backupAvailable(c dbsqlc.AccessCode, pool []byte, now time.Time) bool {
	if !asksForPool(c) || c.PulledBackupCodeID != nil {
		return false
	}
	p := toPool(pool)
	return p.Enabled && p.Ready > 0 && checkPullTime(c, now) == nil
}

func asksForPool(c dbsqlc.AccessCode) bool {
	return c.IsManaged && c.UsesBackupPool && c.StartsAt != nil && c.RemovingSince == nil
}

// isPullable reports whether a pool code can be pulled now: the device has confirmed it.
func isPullable(c dbsqlc.AccessCode) bool {
	return c.InPool && c.RemovingSince == nil && c.PinMac != nil && c.AppliedGen > 0 && c.AppliedGen == c.DesiredGen
}

// keepPool brings the pool's rows to the wanted state. The device is then reconciled with them.
func (t *deviceTx) keepPool(ctx context.Context) error {
	p := readPool(t.d)
	p.Wanted, p.Ready = t.poolWanted(p), 0
	var pool []*dbsqlc.AccessCode
	for _, c := range t.codes {
		if c.InPool && c.RemovingSince == nil {
			pool = append(pool, c)
		}
	}
	slices.SortStableFunc(pool, func(a, b *dbsqlc.AccessCode) int { // keep those that are on the device
		return int(min(b.AppliedGen, 1) - min(a.AppliedGen, 1))
	})
	kept := 0
	for _, c := range pool {
		if kept >= p.Wanted || t.conflictsWithCode(c) {
			if err := t.expire(ctx, c); err != nil {
				return err
			}
			continue
		}
		if kept++; isPullable(*c) {
			p.Ready++
		}
		if err := t.replaceRefusedPIN(c); err != nil {
			return err
		}
	}
	for ; kept < p.Wanted; kept++ {
		added, err := t.addToPool(ctx)
		if err != nil {
			return err
		}
		if !added {
			break
		}
	}
	switch late := p.shownAt(t.s.opt.DelayAfter); {
	case p.Ready >= p.Wanted:
		p.ShortSince, p.Announced = nil, false
	case p.ShortSince == nil:
		p.ShortSince = &t.now
	case late != nil && !late.After(t.now):
		p.Announced = true
	}
	return savePool(ctx, t.tx, &t.d, p)
}

// poolWanted returns how many codes the pool should hold: none if no code uses it, and never the last place of
// the device. Codes that are programmed later take the places of the pool then.
func (t *deviceTx) poolWanted(p BackupPool) int {
	asked := slices.ContainsFunc(t.codes, func(c *dbsqlc.AccessCode) bool { return asksForPool(*c) })
	if !asked || !p.Enabled || !t.caps.HasBackupPool() {
		return 0
	}
	if t.caps.MaxCodes == 0 {
		return poolSize
	}
	others := 0
	for _, c := range t.codes {
		when := programAt(*c, t.caps)
		if !c.InPool && c.RemovingSince == nil && (mayBeOnDevice(*c) || when == nil || !when.After(t.now)) {
			others++
		}
	}
	return min(max(t.caps.MaxCodes-others-1, 0), poolSize)
}

// conflictsWithCode reports whether another code needs the PIN of a pool code.
func (t *deviceTx) conflictsWithCode(c *dbsqlc.AccessCode) bool {
	return slices.ContainsFunc(t.codes, func(other *dbsqlc.AccessCode) bool {
		return other != c && !other.InPool && other.IsManaged && other.RemovingSince == nil && c.PinMac != nil &&
			t.s.keys.Match(other.PinMac, c.PinMac)
	})
}

// addToPool inserts one more code. It adds none where no PIN is free.
func (t *deviceTx) addToPool(ctx context.Context) (added bool, err error) {
	row := dbsqlc.AccessCode{AccessCodeID: domain.NewID(), DeviceID: t.d.DeviceID}
	if free, err := t.inventPIN(&row); err != nil || !free {
		return false, err
	}
	name := poolName
	c, err := t.tx.InsertAccessCode(ctx, dbsqlc.InsertAccessCodeParams{
		AccessCodeID:           row.AccessCodeID,
		WorkspaceID:            t.d.WorkspaceID,
		DeviceID:               t.d.DeviceID,
		IsManaged:              true,
		Name:                   &name,
		PinSealed:              row.PinSealed,
		PinMac:                 row.PinMac,
		Status:                 string(StatusSetting),
		PreferNativeScheduling: true,
		DesiredAt:              t.now,
		IsBackup:               true,
		InPool:                 true,
	})
	if err != nil {
		return false, fmt.Errorf("write a code of the backup pool: %w", err)
	}
	t.before[c.AccessCodeID] = c
	t.codes = append(t.codes, &c)
	return true, nil
}

// inventPIN gives a pool code a PIN, unless its vendor does. It reports whether a PIN was free.
func (t *deviceTx) inventPIN(c *dbsqlc.AccessCode) (bool, error) {
	if t.caps.ProviderPIN {
		return true, nil
	}
	taken := make([]dbsqlc.ListOccupiedPINsRow, len(t.codes))
	for i, c := range t.codes {
		taken[i] = dbsqlc.ListOccupiedPINsRow{PinMac: c.PinMac}
	}
	pin, err := t.s.generatePIN(t.d.DeviceID, t.caps, taken, 0)
	if _, refused := domain.AsError(err); refused {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	t.s.setPIN(c, pin)
	return true, nil
}

// replaceRefusedPIN gives a pool code another PIN where its device rejects the current one: because of a hidden
// code, or by a rule that its vendor does not report.
func (t *deviceTx) replaceRefusedPIN(c *dbsqlc.AccessCode) error {
	refused := domain.Value(c.ErrorCode) == domain.ErrDuplicate || domain.Value(c.ErrorCode) == domain.ErrConstraints
	if c.AppliedGen > 0 || c.BlockedGen < c.DesiredGen || !refused || t.caps.ProviderPIN {
		return nil
	}
	if free, err := t.inventPIN(c); err != nil || !free {
		return err
	}
	clearError(c)
	c.Attempts++
	next := t.now.Add(backoff(int(c.Attempts)))
	c.DesiredGen, c.NextAttemptAt, c.Status = c.DesiredGen+1, &next, string(StatusSetting)
	return nil
}
