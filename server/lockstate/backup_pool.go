package lockstate

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// A backup pool consists of codes that are programmed ahead of time, so that one opens immediately when another code
// does not work. They are managed codes and are reconciled like them. Until a code is pulled it is neither shown nor
// announced. Each plan derives the wanted size from the codes, so a crash loses nothing.

// poolSize is how many codes a pool holds where the device has room. The published API does not specify its own
// number.
const poolSize = 3

// poolName is the name of pool codes on the device.
const poolName = "Backup code"

// BackupPool is the state of the backup pool of a device.
type BackupPool struct {
	// Enabled means requested and not switched off since.
	Enabled bool `json:"enabled,omitempty"`
	// Wanted is how many codes the pool should have, and Ready how many it has.
	Wanted int `json:"wanted,omitempty"`
	Ready  int `json:"ready,omitempty"`
	// ShortSince is since when it has too few.
	ShortSince *time.Time `json:"short_since,omitempty"`
	// Announced means that it has been short for so long that a problem is shown.
	Announced bool `json:"told,omitempty"`
}

// shownAt returns when a problem becomes visible for a short pool. nil means never, or already visible.
func (p BackupPool) shownAt(after time.Duration) *time.Time {
	if p.ShortSince == nil || p.Announced {
		return nil
	}
	return new(p.ShortSince.Add(after))
}

// Errors returns the errors of the device about its pool.
func (p BackupPool) Errors() []domain.Problem {
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

// Warnings returns the warnings of the device about its pool.
func (p BackupPool) Warnings() []domain.Problem {
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

// BackupAvailable reports whether a backup code of the pool can be pulled for a code now.
func (p BackupPool) BackupAvailable(c *Code, now time.Time) bool {
	return c.asksForPool() && c.PulledBackup == uuid.Nil && p.Enabled && p.Ready > 0 && checkPullTime(c, now) == nil
}

func (c *Code) asksForPool() bool {
	return c.Managed && c.UsesBackupPool && c.StartsAt != nil && c.RemovingSince == nil
}

// isPullable reports whether a pool code can be pulled now: the device has confirmed it.
func (c *Code) isPullable() bool {
	return c.InPool && c.RemovingSince == nil && c.PIN != "" && c.AppliedGen > 0 && c.AppliedGen == c.DesiredGen
}

// keepPool brings the pool's codes to the wanted state. The device is then reconciled with them.
func (l *Lock) keepPool() {
	p := &l.Device.Pool
	p.Wanted, p.Ready = l.poolWanted(), 0
	var pool []*Code
	for _, c := range l.Codes {
		if c.InPool && c.RemovingSince == nil {
			pool = append(pool, c)
		}
	}
	slices.SortStableFunc(pool, func(a, b *Code) int { // keep those that are on the device
		return int(min(b.AppliedGen, 1) - min(a.AppliedGen, 1))
	})
	kept := 0
	for _, c := range pool {
		if kept >= p.Wanted || l.conflictsWithCode(c) {
			l.expire(c)
			continue
		}
		if kept++; c.isPullable() {
			p.Ready++
		}
		l.replaceRefusedPIN(c)
	}
	for kept < p.Wanted && l.addToPool() {
		kept++
	}
	switch late := p.shownAt(l.Timeouts.DelayAfter); {
	case p.Ready >= p.Wanted:
		p.ShortSince, p.Announced = nil, false
	case p.ShortSince == nil:
		p.ShortSince = new(l.Now)
	case late != nil && !late.After(l.Now):
		p.Announced = true
	}
}

// poolWanted returns how many codes the pool should hold: none if no code uses it, and never the last place of
// the device. Codes that are programmed later take the places of the pool then.
func (l *Lock) poolWanted() int {
	if !l.Device.Pool.Enabled || !l.caps().HasBackupPool() || !slices.ContainsFunc(l.Codes, (*Code).asksForPool) {
		return 0
	}
	if l.caps().MaxCodes == 0 {
		return poolSize
	}
	others := 0
	for _, c := range l.Codes {
		when := ProgramAt(c, l.caps())
		if !c.InPool && c.RemovingSince == nil && (c.mayBeOnDevice() || when == nil || !when.After(l.Now)) {
			others++
		}
	}
	return min(max(l.caps().MaxCodes-others-1, 0), poolSize)
}

// conflictsWithCode reports whether another code needs the PIN of a pool code.
func (l *Lock) conflictsWithCode(c *Code) bool {
	return slices.ContainsFunc(l.Codes, func(other *Code) bool {
		return other != c && !other.InPool && other.Managed && other.RemovingSince == nil && c.PIN != "" &&
			other.PIN == c.PIN
	})
}

// addToPool adds one more code. It adds none where no PIN is free.
func (l *Lock) addToPool() bool {
	c := &Code{
		ID:                     l.Sources.NewID(),
		Managed:                true,
		Name:                   new(poolName),
		Status:                 StatusSetting,
		PreferNativeScheduling: true,
		DesiredGen:             1,
		DesiredAt:              l.Now,
		IsBackup:               true,
		InPool:                 true,
	}
	if !l.inventPIN(c) {
		return false
	}
	l.add(c)
	return true
}

// inventPIN gives a pool code a PIN, unless its vendor does. It reports whether a PIN was free.
func (l *Lock) inventPIN(c *Code) bool {
	if l.caps().ProviderPIN {
		return true
	}
	taken := make([]PIN, len(l.Codes))
	for i, c := range l.Codes {
		taken[i] = c.PIN
	}
	pin, free := l.Sources.NewPIN(taken)
	if free {
		c.setPIN(pin)
	}
	return free
}

// replaceRefusedPIN gives a pool code another PIN where its device rejects the current one: because of a hidden
// code, or by a rule that its vendor does not report.
func (l *Lock) replaceRefusedPIN(c *Code) {
	refused := c.hasError(domain.ErrDuplicate) || c.hasError(domain.ErrConstraints)
	if c.AppliedGen > 0 || c.BlockedGen < c.DesiredGen || !refused || l.caps().ProviderPIN || !l.inventPIN(c) {
		return
	}
	c.Error = nil
	l.retryLater(c, 0)
	c.DesiredGen, c.Status = c.DesiredGen+1, StatusSetting
}

func (l *Lock) inPool() (pool []*Code) {
	for _, c := range l.Codes {
		if c.InPool {
			pool = append(pool, c)
		}
	}
	return pool
}

// DropPool removes the whole pool from the device. The codes of a pool are not shown to users and open at any
// time, so none may stay on a device that is given up.
func (l *Lock) DropPool() {
	for _, c := range l.inPool() {
		if c.RemovingSince == nil {
			l.expire(c)
		}
	}
}

// planPoolRemoval is Plan for an unmanaged device: the only work there is the removal of its pool.
func (l *Lock) planPoolRemoval() (p Plan) {
	for _, c := range l.inPool() {
		l.advance(c)
	}
	pool := l.inPool()
	for _, c := range pool {
		op, due := l.operation(c)
		if due != nil {
			p.Due = earlier(p.Due, *due)
		}
		if op.Action != Nothing {
			p.Operations = append(p.Operations, op)
		}
	}
	// Without a pool, only the presence of the device is checked.
	p.ReadNeeded = l.Device.ReadNeeded && (len(p.Operations) > 0 || len(pool) == 0)
	return p
}
