package chaos_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// cable forwards a server's connections to its database.
type cable struct {
	*gate
	gone chan struct{} // closed when the server has exited
	once sync.Once
}

func newCable() *cable { return &cable{gone: make(chan struct{})} }

// lay makes both forward each connection.
func (c *cable) lay(t testing.TB, dsn string, both func(from, on net.Conn)) {
	t.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	network, address := pgconn.NetworkAddress(cfg.Host, cfg.Port)
	c.gate = newPassingGate(t, func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}, both)
	t.Cleanup(c.end) // before the gate waits for its connections
}

// dsn returns a DSN through the cable. The database tolerates idle transactions for longer than usual.
func (c *cable) dsn(of string) string {
	cfg, err := pgx.ParseConfig(of)
	if err != nil {
		panic(err) // it was parsed before
	}
	return "postgres://" + url.UserPassword(cfg.User, cfg.Password).
		String() +
		"@" + c.addr + "/" + cfg.Database + "?sslmode=disable&connect_timeout=5&idle_in_transaction_session_timeout=120000"
}

// end ends all connections when the server has exited.
func (c *cable) end() {
	c.once.Do(func() {
		close(c.gone)
		c.cut.Store(true)
		c.sever()
	})
}

// passBoth forwards a connection in both directions: requests while goesOn returns true, and responses with answer.
func (c *cable) passBoth(
	from, on net.Conn,
	goesOn func(statements) bool,
	answer func(from *bufio.Reader, to io.Writer),
) {
	var both sync.WaitGroup
	both.Go(func() {
		defer on.Close()
		c.ask(bufio.NewReader(from), on, goesOn)
	})
	both.Go(func() {
		defer from.Close()
		answer(bufio.NewReader(on), from)
	})
	both.Wait()
}

// ask forwards requests of the server. What goesOn holds waits until the server has exited.
func (c *cable) ask(from *bufio.Reader, on io.Writer, goesOn func(statements) bool) {
	var waiting []byte
	var now statements
	prepared := map[string]string{} // statements by name
	for first := true; ; first = false {
		kind, all, err := frame(from, first)
		if err != nil {
			return
		}
		waiting = append(waiting, all...)
		if !first {
			now.read(prepared, kind, all[5:])
		}
		switch {
		case first, kind == password, kind == flush, kind == bye:
		case kind != query && kind != whole:
			continue
		case !goesOn(now):
			<-c.gone
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

// Constants of PostgreSQL's protocol, from its chapter "Message Formats".
const (
	idle     = 'I' // outside of a transaction
	query    = 'Q'
	parse    = 'P'
	bind     = 'B'
	flush    = 'H'
	whole    = 'S' // Sync: the server expects a response
	password = 'p' // the client proves that it knows the password
	bye      = 'X'
	ready    = 'Z'
	notice   = 'N'
)

// frame reads a message. The first message of a client has no type.
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

// statements are sent together.
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
