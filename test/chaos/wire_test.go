package chaos_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// moment is one in the answering of a request with an Idempotency-Key, as it shows between the server and its database.
type moment struct {
	name      string
	statement int  // before this statement is passed on, counted from the one that claims the key
	commit    int  // before this commit is passed on; neither: there is none, and the request is answered
	after     bool // it is passed on, and what the database says to it is not
}

// trip is a request that is being answered, by what it asks the database for.
type trip struct {
	at                  moment
	credential          uuid.UUID // by which it is known: each has its own
	statements, commits int
	held                chan struct{} // closed at the moment
}

// wire passes on what a server and its database say to each other, and stops each trip at its moment.
type wire struct {
	*gate
	gone chan struct{} // closed once the server is

	mu    sync.Mutex
	trips map[[16]byte]*trip // by credential, and by action attempt once that is known
}

func newWire(t testing.TB, dsn string) *wire {
	t.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	network, address := pgconn.NetworkAddress(cfg.Host, cfg.Port)
	w := &wire{gone: make(chan struct{}), trips: map[[16]byte]*trip{}}
	w.gate = newPassingGate(t, func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}, w.pass)
	t.Cleanup(w.end) // before the gate waits for its connections
	return w
}

// dsn is how a server connects by the wire. The database waits longer than it would for what stands still.
func (w *wire) dsn(of string) string {
	cfg, err := pgx.ParseConfig(of)
	if err != nil {
		panic(err) // it was read before
	}
	return "postgres://" + cfg.User + "@" + w.addr + "/" + cfg.Database + "?sslmode=disable&connect_timeout=5&idle_in_transaction_session_timeout=120000"
}

// end is of the server: nothing passes any more.
func (w *wire) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.gone:
	default:
		close(w.gone)
		w.cut.Store(true)
		w.sever()
	}
}

// expect has the request with this credential be stopped at a moment.
func (w *wire) expect(credential uuid.UUID, at moment) *trip {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := &trip{at: at, credential: credential, held: make(chan struct{})}
	w.trips[credential] = t
	return t
}

// look is how far a trip has come.
func (w *wire) look(t *trip) trip {
	w.mu.Lock()
	defer w.mu.Unlock()
	return *t
}

// talk is one connection.
type talk struct {
	*wire
	prepared map[string]string // statements by name
	of       *trip             // nil: of none that is watched
	deaf     atomic.Pointer[trip]
	status   atomic.Int32 // of the transaction, as PostgreSQL names it
}

// Of PostgreSQL's protocol, its chapter "Message Formats".
const (
	idle  = 'I' // outside of a transaction
	query = 'Q'
	parse = 'P'
	bind  = 'B'
	flush = 'H'
	whole = 'S' // what was asked is to be answered
	bye   = 'X'
	ready = 'Z'
)

func (w *wire) pass(from, on net.Conn) {
	k := &talk{wire: w, prepared: map[string]string{}}
	k.status.Store(idle)
	var both sync.WaitGroup
	both.Go(func() {
		defer on.Close()
		k.ask(bufio.NewReader(from), on)
	})
	both.Go(func() {
		defer from.Close()
		k.answer(bufio.NewReader(on), from)
	})
	both.Wait()
}

// frame reads a message; the first one of a server has no type.
func frame(r *bufio.Reader, first bool) (kind byte, all []byte, err error) {
	head := make([]byte, 5)
	if first {
		head = head[:4]
	}
	if _, err = io.ReadFull(r, head); err != nil {
		return 0, nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[len(head)-4:])-4)
	_, err = io.ReadFull(r, body)
	return head[0], slices.Concat(head, body), err
}

// ask passes on what the server asks, as far as it comes.
func (k *talk) ask(from *bufio.Reader, on io.Writer) {
	var waiting []byte
	var now statements
	for first := true; ; first = false {
		kind, all, err := frame(from, first)
		if err != nil {
			return
		}
		waiting = append(waiting, all...)
		if !first {
			now.read(k.prepared, kind, all[5:])
		}
		switch {
		case first, kind == flush, kind == bye:
		case kind != query && kind != whole:
			continue
		case !k.goesOn(now):
			<-k.gone
			return
		default:
			now = statements{}
		}
		if _, err := on.Write(waiting); err != nil {
			return
		}
		waiting = nil
	}
}

// answer passes on what the database answers, unless the server is not to hear of it.
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

// statements are those that are asked together.
type statements struct {
	sql    []string
	params [][]byte
}

func (s *statements) read(prepared map[string]string, kind byte, body []byte) {
	switch kind {
	case query:
		s.sql = append(s.sql, string(bytes.TrimSuffix(body, []byte{0})))
	case parse:
		var m pgproto3.Parse
		if m.Decode(body) == nil {
			prepared[m.Name] = m.Query
		}
	case bind:
		var m pgproto3.Bind
		if m.Decode(body) == nil {
			s.sql, s.params = append(s.sql, prepared[m.PreparedStatement]), append(s.params, m.Parameters...)
		}
	}
}

var (
	ofKeys = regexp.MustCompile(`^-- name: (Claim|Answer)IdempotencyKey `)
	holds  = regexp.MustCompile(`^-- name: HoldIdempotencyKey `)
	writes = regexp.MustCompile(`(?m)^(insert into|update|delete from|with) `)
)

func (s *statements) any(like *regexp.Regexp) bool {
	for _, sql := range s.sql {
		if like.MatchString(sql) {
			return true
		}
	}
	return false
}

func (s *statements) are(what string) bool {
	for _, sql := range s.sql {
		if strings.EqualFold(sql, what) || strings.HasPrefix(sql, what+" ") {
			return true
		}
	}
	return false
}

// goesOn says whether what is asked is passed on.
func (k *talk) goesOn(now statements) bool {
	if len(now.sql) == 0 { // statements are prepared
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
		if attempt := now.params[0]; len(attempt) == 16 { // else the request has none
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

// tripOf is whose statements these are. With mu held.
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
