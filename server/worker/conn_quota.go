package worker

import (
	"sync"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// connQuotas are the owners' quotas of database connections, across all lanes.
type connQuotas struct {
	newPart func(eighths int) store.Part
	mu      sync.Mutex
	byOwner map[uuid.UUID]*connQuota
}

type connQuota struct {
	store.Part
	users int
}

func newConnQuotas(of func(eighths int) store.Part) *connQuotas {
	return &connQuotas{newPart: of, byOwner: map[uuid.UUID]*connQuota{}}
}

// acquire returns the quota of an owner. The quota exists until release is called as often.
func (p *connQuotas) acquire(owner uuid.UUID, eighths int) store.Part {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.byOwner[owner]
	if one == nil {
		one = &connQuota{Part: p.newPart(eighths)}
		p.byOwner[owner] = one
	}
	one.users++
	return one.Part
}

func (p *connQuotas) release(owner uuid.UUID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.byOwner[owner]; one.users > 1 {
		one.users--
	} else {
		delete(p.byOwner, owner)
	}
}
