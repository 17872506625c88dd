package access

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// A backup pool is made of codes that are on a device ahead of time, so that one is there at once when another code
// does not work. They are rows like those of all managed codes, and are put, put right and taken away like them; but
// until one is pulled nobody is shown it or told of it. How many there should be follows from the rows each time that
// the device is looked at, so a crash loses nothing.

// poolSize is how many codes a pool holds where the device has room. The published API does not say how many its own has.
const poolSize = 3

// poolName is what codes of a pool are called on the device.
const poolName = "Backup code"

// BackupPool is how the backup pool of a device stands.
type BackupPool struct {
	Enabled    bool       `json:"enabled,omitempty"`     // it was asked for, and has not been switched off since
	Wanted     int        `json:"wanted,omitempty"`      // how many codes there should be
	Ready      int        `json:"ready,omitempty"`       // how many there are
	ShortSince *time.Time `json:"short_since,omitempty"` // since when there are fewer
	Told       bool       `json:"told,omitempty"`        // for so long that it is shown
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
	if bytes.Equal(mustJSON(was), mustJSON(p)) {
		return nil
	}
	d.BackupPool = mustJSON(p)
	if err := tx.SetBackupPool(ctx, dbsqlc.SetBackupPoolParams{DeviceID: d.DeviceID, BackupPool: d.BackupPool}); err != nil {
		return fmt.Errorf("write how the backup pool stands: %w", err)
	}
	return nil
}

// late is when it is to be shown that the pool is short; nil: it is not, or is shown.
func (p BackupPool) late(after time.Duration) *time.Time {
	if p.ShortSince == nil || p.Told {
		return nil
	}
	at := p.ShortSince.Add(after)
	return &at
}

func (p BackupPool) errors() []Problem {
	if !p.Told || p.Ready > 0 {
		return nil
	}
	return []Problem{{Code: "empty_backup_access_code_pool", Scope: OfDevice, At: *p.ShortSince,
		Message: "There is no backup access code on the device. It is tried further to put some there; look at the other errors of the device."}}
}

func (p BackupPool) warnings() []Problem {
	if !p.Told || p.Ready == 0 {
		return nil
	}
	return []Problem{{Code: "partial_backup_access_code_pool", Scope: OfDevice, At: *p.ShortSince,
		Message: fmt.Sprintf("There are %d backup access codes on the device, and should be %d. It is tried further to put more there.", p.Ready, p.Wanted)}}
}

// HasBackupPool says whether a backup pool can be kept on the device.
func (c Capabilities) HasBackupPool() bool { return c.OnlineCodes }

// checkPool says why a new code cannot have a backup pool. It fails with Invalid.
func checkPool(asked, timeBound bool) error {
	if !asked || timeBound {
		return nil
	}
	return invalid("use_backup_access_code_pool", "Cannot use the backup pool for ongoing codes; give starts_at and ends_at")
}

// enablePool notes that a code of the device asks for the pool.
func (s *Service) enablePool(ctx context.Context, tx store.Tx, d dbsqlc.Device) error {
	p := readPool(d)
	p.Enabled = true
	return savePool(ctx, tx, &d, p)
}

// switchPool switches the pool on or off, whatever codes ask for. It fails with Invalid.
func (t *deviceTx) switchPool(ctx context.Context, on bool) error {
	if on && !t.caps.HasBackupPool() {
		return &Error{Kind: Invalid, Type: "device_type_not_supported", Field: "backup_access_code_pool_enabled", Message: "This device cannot hold access codes."}
	}
	p := readPool(t.d)
	if p.Enabled == on {
		return nil
	}
	p.Enabled = on
	if err := savePool(ctx, t.tx, &t.d, p); err != nil {
		return err
	}
	return t.s.wakeDevice(ctx, t.tx, t.d.DeviceID, false)
}

// backupAvailable says whether another code can be pulled in place of this one now.
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

// spare says whether a code can be pulled now: the device has confirmed it.
func spare(c dbsqlc.AccessCode) bool {
	return c.InPool && c.RemovingSince == nil && c.PinMac != nil && c.AppliedGen > 0 && c.AppliedGen == c.DesiredGen
}

// keepPool brings the pool's rows to what they should be; the device follows them.
func (t *deviceTx) keepPool(ctx context.Context) error {
	p := readPool(t.d)
	p.Wanted, p.Ready = t.poolWanted(p), 0
	var pool []*dbsqlc.AccessCode
	for _, c := range t.codes {
		if c.InPool && c.RemovingSince == nil {
			pool = append(pool, c)
		}
	}
	slices.SortStableFunc(pool, func(a, b *dbsqlc.AccessCode) int { // those that are on the device stay first
		return int(min(b.AppliedGen, 1) - min(a.AppliedGen, 1))
	})
	kept := 0
	for _, c := range pool {
		if kept >= p.Wanted || t.inTheWay(c) {
			if err := t.expire(ctx, c); err != nil {
				return err
			}
			continue
		}
		if kept++; spare(*c) {
			p.Ready++
		}
		if err := t.tryAnotherPIN(c); err != nil {
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
	switch late := p.late(t.s.opt.DelayAfter); {
	case p.Ready >= p.Wanted:
		p.ShortSince, p.Told = nil, false
	case p.ShortSince == nil:
		p.ShortSince = &t.now
	case late != nil && !late.After(t.now):
		p.Told = true
	}
	return savePool(ctx, t.tx, &t.d, p)
}

// poolWanted is how many codes the pool should hold: none where no code asks for it, and never the last place of the
// device. Those that are put there later have its places then.
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
		if !c.InPool && c.RemovingSince == nil && (mayBeThere(*c) || when == nil || !when.After(t.now)) {
			others++
		}
	}
	return min(max(t.caps.MaxCodes-others-1, 0), poolSize)
}

// inTheWay says whether another code is to have the PIN of one of the pool.
func (t *deviceTx) inTheWay(c *dbsqlc.AccessCode) bool {
	return slices.ContainsFunc(t.codes, func(other *dbsqlc.AccessCode) bool {
		return other != c && !other.InPool && other.IsManaged && other.RemovingSince == nil && c.PinMac != nil && encryption.Equal(other.PinMac, c.PinMac)
	})
}

// addToPool writes down one more code. It adds none where no PIN is free.
func (t *deviceTx) addToPool(ctx context.Context) (added bool, err error) {
	row := dbsqlc.AccessCode{AccessCodeID: newID(), DeviceID: t.d.DeviceID}
	if free, err := t.inventPIN(&row); err != nil || !free {
		return false, err
	}
	name := poolName
	if checkName(name, t.caps) != nil {
		name = defaultNameFor(t.caps)
	}
	c, err := t.tx.InsertAccessCode(ctx, dbsqlc.InsertAccessCodeParams{AccessCodeID: row.AccessCodeID, WorkspaceID: t.d.WorkspaceID, DeviceID: t.d.DeviceID,
		IsManaged: true, Name: &name, PinSealed: row.PinSealed, PinMac: row.PinMac, Status: string(StatusSetting), PreferNativeScheduling: true,
		DesiredAt: t.now, IsBackup: true, InPool: true})
	if err != nil {
		return false, fmt.Errorf("write a code of the backup pool: %w", err)
	}
	t.before[c.AccessCodeID] = c
	t.codes = append(t.codes, &c)
	return true, nil
}

// inventPIN gives a code of the pool a PIN, unless its vendor does. It says whether there was one.
func (t *deviceTx) inventPIN(c *dbsqlc.AccessCode) (bool, error) {
	if t.caps.ProviderPIN {
		return true, nil
	}
	taken := make([]dbsqlc.TakenOnDeviceRow, len(t.codes))
	for i, c := range t.codes {
		taken[i] = dbsqlc.TakenOnDeviceRow{PinMac: c.PinMac}
	}
	pin, err := t.s.generatePIN(t.d.DeviceID, t.caps, taken, 0)
	if _, refused := asError(err); refused {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	t.s.setPIN(c, pin)
	return true, nil
}

// tryAnotherPIN has a code of the pool have another PIN where its device refuses the one it has: for one that it hides,
// or by a rule that its vendor does not tell.
func (t *deviceTx) tryAnotherPIN(c *dbsqlc.AccessCode) error {
	refused := text(c.ErrorCode) == errDuplicate || text(c.ErrorCode) == errConstraints
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
