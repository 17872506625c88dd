package adapter

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrNotSent is in the chain of an error if the call certainly never reached the vendor.
var ErrNotSent = errors.New("nothing was sent")

// Lines serializes calls on lines, such as all devices behind one gateway that accepts one call at a time. Its zero value
// is ready to use. It covers one instance: when several use a line, the vendor's error for a busy line decides, which
// adapters classify as Transient.
type Lines struct {
	mu   sync.Mutex
	held map[string]*lineState
}

type lineState struct {
	slot  chan struct{}
	users int
}

// Hold waits until no other call holds the line. The caller must release it. When ctx ends, it fails with Transient,
// ErrNotSent, and the error of ctx.
func (l *Lines) Hold(ctx context.Context, line string) (release func(), err error) {
	l.mu.Lock()
	s := l.held[line]
	if s == nil {
		s = &lineState{slot: make(chan struct{}, 1)}
		if l.held == nil {
			l.held = map[string]*lineState{}
		}
		l.held[line] = s
	}
	s.users++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if s.users--; s.users == 0 {
			delete(l.held, line)
		}
	}
	select {
	case s.slot <- struct{}{}:
		return sync.OnceFunc(func() { <-s.slot; leave() }), nil
	case <-ctx.Done():
		leave()
		busy := Errorf(Transient, "another call occupies the gateway")
		return nil, fmt.Errorf("%w: %w: %w", busy, ErrNotSent, ctx.Err())
	}
}
