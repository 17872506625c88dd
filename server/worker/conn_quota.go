package worker

import (
	"sync"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// connQuotas are the owners' quotas of database connections, across all lanes.
type parts struct {
	make func(eighths int) store.Part
	mu   sync.Mutex
	of   map[uuid.UUID]*part
}

type part struct {
	store.Part
	takers int
}

func newParts(of func(eighths int) store.Part) *parts {
	return &parts{make: of, of: map[uuid.UUID]*part{}}
}

// acquire returns the quota of an owner. The quota exists until release is called as often.
func (p *parts) take(owner uuid.UUID, eighths int) store.Part {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.of[owner]
	if one == nil {
		one = &part{Part: p.make(eighths)}
		p.of[owner] = one
	}
	one.takers++
	return one.Part
}

func (p *parts) leave(owner uuid.UUID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.of[owner]; one.takers > 1 {
		one.takers--
	} else {
		delete(p.of, owner)
	}
}
