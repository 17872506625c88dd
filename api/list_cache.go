package api

import (
	"context"
	"iter"
	"sync"
	"time"
)

const (
	// listTTL is how long a list is used, counted from its request.
	listTTL = time.Minute
	// maxRecords bounds the cached records of one kind: about 20 MB of access codes.
	maxRecords = 20_000
)

// listCache caches the records of lists. Each list has a key, such as its device, and is requested once for all
// concurrent readers. Bypassed keys and identifiers are never read from the cache.
type listCache[T any] struct {
	list  func(ctx context.Context, key string) iter.Seq2[T, error]
	names func(*T) (key, id string)
	// limit is the maximum number of records.
	limit int

	mu sync.Mutex
	// loads has the lists by key.
	loads map[string]*load[T]
	// kept counts the records of complete loads.
	kept int
	// bypassed has the keys and identifiers that were written to, and the keys whose list failed.
	bypassed map[string]bool
	// unfiltered is set if the server ignores the filter. The list with the key "" then serves all keys.
	unfiltered bool
}

// load is a list request and its records.
type load[T any] struct {
	key       string
	startedAt time.Time
	waiting   int
	cancel    context.CancelFunc
	done      chan struct{}
	// records are keyed by identifier. They are nil until the load is done, and if it fails.
	records map[string]*T
}

// newListCache returns an empty cache. names returns the key and the identifier of a record.
func newListCache[T any](
	list func(context.Context, string) iter.Seq2[T, error],
	names func(*T) (key, id string),
) *listCache[T] {
	return &listCache[T]{
		list:     list,
		names:    names,
		limit:    maxRecords,
		loads:    map[string]*load[T]{},
		bypassed: map[string]bool{},
	}
}

// find returns the record from the list of the key, or nil if the list cannot be used.
func (p *listCache[T]) find(ctx context.Context, key, id string) *T {
	l := p.join(ctx, key, id)
	if l == nil {
		return nil
	}
	select {
	case <-l.done:
	case <-ctx.Done():
	}
	return p.leave(l, id)
}

// all returns the records of the key, or false if its list cannot be used.
func (p *listCache[T]) all(ctx context.Context, key string) ([]T, bool) {
	l := p.join(ctx, key, key)
	if l == nil {
		return nil, false
	}
	select {
	case <-l.done:
	case <-ctx.Done():
	}
	p.leave(l, key)
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.records == nil || len(l.records) == p.limit || p.bypassed[key] {
		return nil, false
	}
	records := []T{}
	for _, record := range l.records {
		if of, _ := p.names(record); of == key {
			records = append(records, *record)
		}
	}
	return records, true
}

// join waits for the list of a key, and starts it if necessary. It returns nil if there is no list to wait for.
func (p *listCache[T]) join(ctx context.Context, key, id string) *load[T] {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bypassed[key] || p.bypassed[id] || p.unfiltered && p.bypassed[""] {
		return nil
	}
	if p.unfiltered {
		key = ""
	}
	l := p.loads[key]
	if l == nil || time.Since(l.startedAt) > listTTL {
		p.dropOld()
		if p.kept >= p.limit {
			return nil
		}
		l = p.startLoad(ctx, key)
	}
	l.waiting++
	return l
}

// startLoad requests a list. The request ends early only if all waiting readers give up.
func (p *listCache[T]) startLoad(ctx context.Context, key string) *load[T] {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l := &load[T]{
		key:       key,
		startedAt: time.Now(),
		cancel:    cancel,
		done:      make(chan struct{}),
	}
	p.loads[key] = l
	go func() {
		defer cancel()
		records, others, err := p.collect(ctx, key)
		p.completeLoad(l, records, others, err)
	}()
	return l
}

// collect reads a list up to the limit, and reports whether it contains records of other keys.
func (p *listCache[T]) collect(ctx context.Context, key string) (records map[string]*T, others bool, err error) {
	records = map[string]*T{}
	for record, err := range p.list(ctx, key) {
		if err != nil {
			return nil, false, err
		}
		of, id := p.names(&record)
		others = others || of != key
		records[id] = &record
		if len(records) == p.limit {
			break
		}
	}
	return records, others, nil
}

// completeLoad stores the result of a load and wakes its readers.
func (p *listCache[T]) completeLoad(l *load[T], records map[string]*T, others bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer close(l.done)
	current := p.loads[l.key] == l
	if err != nil {
		if current { // otherwise all readers gave up
			p.drop(l)
			p.bypassed[l.key] = true
		}
		return
	}
	l.records = records
	if !current { // a write invalidated the load: only readers that joined before it get the records
		return
	}
	p.kept += len(records)
	if others && l.key != "" {
		delete(p.loads, l.key)
		l.key, p.unfiltered = "", true
		if old := p.loads[""]; old != nil {
			p.drop(old)
		}
		p.loads[""] = l
	}
}

// leave ends the waiting for a load, and returns a copy of the record.
func (p *listCache[T]) leave(l *load[T], id string) *T {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.waiting--
	if l.waiting == 0 && !l.ended() {
		l.cancel()
		p.drop(l)
	}
	record := l.records[id]
	if record == nil || p.bypassed[id] {
		return nil
	}
	taken := *record
	return &taken
}

// invalidate drops the records that a write to these keys and identifiers may have changed, or all records if names
// is empty. Running loads may predate the write, so new readers must not join them.
func (p *listCache[T]) invalidate(names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range names {
		p.bypassed[name] = true
	}
	for key, l := range p.loads {
		for _, name := range names {
			if l.records[name] != nil {
				p.bypassed[key] = true
			}
		}
		if len(names) == 0 || !l.ended() || p.bypassed[key] {
			p.drop(l)
		}
	}
}

// dropOld drops the loads that are too old to use.
func (p *listCache[T]) dropOld() {
	for _, l := range p.loads {
		if time.Since(l.startedAt) > listTTL {
			p.drop(l)
		}
	}
}

// drop removes a load, so that new readers cannot join it.
func (p *listCache[T]) drop(l *load[T]) {
	if p.loads[l.key] == l {
		p.kept -= len(l.records)
		delete(p.loads, l.key)
	}
}

// ended reports whether the load is done.
func (l *load[T]) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}
