package chaos_test

import (
	"bufio"
	"io"
	"net"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
)

// moment is a moment in the handling of a request with an Idempotency-Key, as seen between the server and its database.
type moment struct {
	name      string
	statement int  // before this statement is forwarded, counted from the one that claims the key
	commit    int  // before this commit is forwarded; neither: after the response
	after     bool // it is forwarded, but not the response of the database
}

// trip is the handling of a request, as seen in its statements.
type trip struct {
	at                  moment
	credential          uuid.UUID // identifies the trip: each request has its own
	statements, commits int
	held                chan struct{} // closed at the moment
}

// wire is a cable that stops each trip at its moment.
type wire struct {
	*cable
	mu    sync.Mutex
	trips map[[16]byte]*trip // by credential, and by action attempt once known
}

func newWire(t testing.TB, dsn string) *wire {
	t.Helper()
	w := &wire{cable: newCable(), trips: map[[16]byte]*trip{}}
	w.lay(t, dsn, w.pass)
	return w
}

// expect makes the request with this credential stop at a moment.
func (w *wire) expect(credential uuid.UUID, at moment) *trip {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := &trip{at: at, credential: credential, held: make(chan struct{})}
	w.trips[credential] = t
	return t
}

// look returns the progress of a trip.
func (w *wire) look(t *trip) trip {
	w.mu.Lock()
	defer w.mu.Unlock()
	return *t
}

// talk is one connection.
type talk struct {
	*wire
	of     *trip // nil for other requests
	deaf   atomic.Pointer[trip]
	status atomic.Int32 // of the transaction, in PostgreSQL's protocol
}

func (w *wire) pass(from, on net.Conn) {
	k := &talk{wire: w}
	k.status.Store(idle)
	w.passBoth(from, on, k.goesOn, k.answer)
}

// answer forwards responses of the database, unless the server must not receive them.
func (k *talk) answer(from *bufio.Reader, to io.Writer) {
	var kept []byte
	for {
		kind, all, err := frame(from, false)
		if err != nil {
			return
		}
		kept = append(kept, all...)
		if kind == ready {
			k.status.Store(int32(all[5]))
		}
		if t := k.deaf.Load(); t != nil {
			switch {
			case kind != ready:
				continue
			case all[5] == idle:
				close(t.held)
				<-k.gone
				return
			}
			k.deaf.Store(nil) // it has failed
		}
		if kind != ready && from.Buffered() > 0 && len(kept) < 1<<16 {
			continue
		}
		if _, err := to.Write(kept); err != nil {
			return
		}
		kept = nil
	}
}

var (
	ofKeys = regexp.MustCompile(`^-- name: (Claim|Answer)IdempotencyKey `)
	holds  = regexp.MustCompile(`^-- name: HoldIdempotencyKey `)
	writes = regexp.MustCompile(`(?m)^(insert into|update|delete from|with) `)
)

// goesOn reports whether statements are forwarded.
func (k *talk) goesOn(now statements) bool {
	if len(now.sql) == 0 { // statements are being prepared
		return true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	inside := k.status.Load() != idle
	if !inside {
		k.of = nil
	}
	if k.of == nil {
		k.of = k.tripOf(now)
	}
	t := k.of
	if t == nil {
		return true
	}
	if now.any(holds) {
		if attempt := now.params[0]; len(attempt) == 16 { // otherwise the request has none
			k.trips[[16]byte(attempt)] = t
		}
	}
	t.statements++
	commits := now.are("commit") || !inside && !now.are("begin")
	if commits {
		t.commits++
	}
	switch {
	case t.at.statement == t.statements, !t.at.after && commits && t.at.commit == t.commits:
		close(t.held)
		return false
	case commits && t.at.commit == t.commits:
		k.deaf.Store(t)
	}
	return true
}

// tripOf returns the trip of statements. It requires mu.
func (k *talk) tripOf(now statements) *trip {
	known := now.any(ofKeys)
	if !known && !now.any(writes) {
		return nil
	}
	for _, p := range now.params {
		if len(p) != 16 {
			continue
		}
		if t := k.trips[[16]byte(p)]; t != nil && (known || t.credential != uuid.UUID(p)) {
			return t
		}
	}
	return nil
}
