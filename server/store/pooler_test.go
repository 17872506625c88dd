package store_test

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// pooler is a proxy that shares connections to a database between clients, like PgBouncer.
type pooler struct {
	t       testing.TB
	dsn     string
	session bool // a client keeps its connection until it leaves
	mu      sync.Mutex
	idle    []*pgconn.HijackedConn
}

// newPooler starts a pooler and returns the URL of the database through it.
func newPooler(t testing.TB, dsn string, session bool) string {
	t.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &pooler{t: t, dsn: dsn, session: session}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { p.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait()
		for _, c := range p.idle {
			_ = c.Conn.Close()
		}
	})
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", cfg.User, listener.Addr(), cfg.Database)
}

// take returns the connection that was used last, or a new one.
func (p *pooler) take() (*pgconn.HijackedConn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.idle) - 1; last >= 0 {
		c := p.idle[last]
		p.idle = p.idle[:last]
		return c, nil
	}
	conn, err := pgconn.Connect(p.t.Context(), p.dsn)
	if err != nil {
		return nil, err
	}
	return conn.Hijack()
}

func (p *pooler) give(c *pgconn.HijackedConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, c)
}

// serve serves a client until it leaves.
func (p *pooler) serve(conn net.Conn) {
	defer conn.Close()
	client := pgproto3.NewBackend(conn, conn)
	if _, err := client.ReceiveStartupMessage(); err != nil {
		p.t.Error(err)
		return
	}
	server, err := p.take()
	if err != nil {
		p.t.Error(err)
		return
	}
	client.Send(&pgproto3.AuthenticationOk{})
	for name, value := range server.ParameterStatuses {
		client.Send(&pgproto3.ParameterStatus{Name: name, Value: value})
	}
	client.Send(&pgproto3.BackendKeyData{SecretKey: make([]byte, 4)})
	client.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	for status := byte('I'); client.Flush() == nil; {
		if server != nil && status == 'I' && !p.session {
			p.give(server)
			server = nil
		}
		message, err := client.Receive()
		if _, leaves := message.(*pgproto3.Terminate); leaves || err != nil {
			break
		}
		if server == nil {
			if server, err = p.take(); err != nil {
				p.t.Error(err)
				return
			}
			status = 'T' // until the database is ready
		}
		server.Frontend.Send(message)
		if status, err = forward(message, server.Frontend, client, status); err != nil {
			p.t.Error(err)
			return
		}
	}
	if server != nil {
		p.give(server)
	}
}

// forward sends the answers to a message that ends a round trip to the client. It returns the status of the transaction.
func forward(
	message pgproto3.FrontendMessage,
	from *pgproto3.Frontend,
	to *pgproto3.Backend,
	status byte,
) (byte, error) {
	switch message.(type) {
	case *pgproto3.Query, *pgproto3.Sync:
	default:
		return 'T', nil // more follows
	}
	err := from.Flush()
	for err == nil {
		var answer pgproto3.BackendMessage
		if answer, err = from.Receive(); err != nil {
			break
		}
		to.Send(answer)
		if ready, ok := answer.(*pgproto3.ReadyForQuery); ok {
			return ready.TxStatus, nil
		}
		if err = to.Flush(); err != nil { // the message is valid until the next Receive
			break
		}
	}
	return status, errors.Join(errors.New("forward"), err)
}
