package api

import (
	"context"
	"iter"
	"sync"
	"time"
)

const (
	freshFor   = time.Minute // counted from when a list was asked for
	maxRecords = 20_000      // that are kept of one kind: about 20 MB of access codes
)

// pages keeps what lists have answered. A list has a key, such as its device, and is asked for once however
// many wait for it. There is no list for what is in singly.
type pages[T any] struct {
	list  func(ctx context.Context, key string) iter.Seq2[T, error]
	names func(*T) (key, id string)
	limit int // of records

	mu         sync.Mutex
	loads      map[string]*load[T] // by key
	kept       int                 // records of loads that are complete
	singly     map[string]bool     // keys and identifiers that were written to, and keys whose list failed
	unfiltered bool                // the server answers every list with all there is: one, with the key "", does for all
}

// load is a list that was asked for, and what it has answered.
type load[T any] struct {
	key     string
	begun   time.Time
	waiting int
	cancel  context.CancelFunc
	done    chan struct{}
	records map[string]*T // by identifier; nil until it is done, and when it has failed
}

func newPages[T any](list func(context.Context, string) iter.Seq2[T, error], names func(*T) (key, id string)) *pages[T] {
	return &pages[T]{list: list, names: names, limit: maxRecords, loads: map[string]*load[T]{}, singly: map[string]bool{}}
}

// find is the record as the list of that key has it, or nil where it does not tell.
func (p *pages[T]) find(ctx context.Context, key, id string) *T {
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

// all are the records of that key, or false where its list does not tell.
func (p *pages[T]) all(ctx context.Context, key string) ([]T, bool) {
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
	if l.records == nil || len(l.records) == p.limit || p.singly[key] {
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

// join waits for a list with the others, or as the first. It answers nil where there is none to wait for.
func (p *pages[T]) join(ctx context.Context, key, id string) *load[T] {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.singly[key] || p.singly[id] || p.unfiltered && p.singly[""] {
		return nil
	}
	if p.unfiltered {
		key = ""
	}
	l := p.loads[key]
	if l == nil || time.Since(l.begun) > freshFor {
		p.dropOld()
		if p.kept >= p.limit {
			return nil
		}
		l = p.begin(ctx, key)
	}
	l.waiting++
	return l
}

// begin asks for a list. That some of those who wait give up does not end it; that all do, does.
func (p *pages[T]) begin(ctx context.Context, key string) *load[T] {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l := &load[T]{key: key, begun: time.Now(), cancel: cancel, done: make(chan struct{})}
	p.loads[key] = l
	go func() {
		defer cancel()
		records, others, err := p.collect(ctx, key)
		p.finish(l, records, others, err)
	}()
	return l
}

// collect reads a list as far as there is room, and says whether there are records of other keys on it.
func (p *pages[T]) collect(ctx context.Context, key string) (records map[string]*T, others bool, err error) {
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

func (p *pages[T]) finish(l *load[T], records map[string]*T, others bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer close(l.done)
	current := p.loads[l.key] == l
	if err != nil {
		if current { // else it was given up
			p.drop(l)
			p.singly[l.key] = true
		}
		return
	}
	l.records = records
	if !current { // a write has overtaken it: those who waited before may have it
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

// leave ends waiting for a list, and takes the record from it.
func (p *pages[T]) leave(l *load[T], id string) *T {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.waiting--
	if l.waiting == 0 && !l.ended() {
		l.cancel()
		p.drop(l)
	}
	record := l.records[id]
	if record == nil || p.singly[id] {
		return nil
	}
	taken := *record
	return &taken
}

// wrote forgets what a write to these keys and identifiers may have changed; all of it where none are named. What
// is on its way may be from before the write, so nobody may join it.
func (p *pages[T]) wrote(names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range names {
		p.singly[name] = true
	}
	for key, l := range p.loads {
		for _, name := range names {
			if l.records[name] != nil {
				p.singly[key] = true
			}
		}
		if len(names) == 0 || !l.ended() || p.singly[key] {
			p.drop(l)
		}
	}
}

func (p *pages[T]) dropOld() {
	for _, l := range p.loads {
		if time.Since(l.begun) > freshFor {
			p.drop(l)
		}
	}
}

// drop lets nobody join a load any more.
func (p *pages[T]) drop(l *load[T]) {
	if p.loads[l.key] == l {
		p.kept -= len(l.records)
		delete(p.loads, l.key)
	}
}

func (l *load[T]) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}
