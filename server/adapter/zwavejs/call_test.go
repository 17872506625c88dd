package zwavejs

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// dialed returns a connection to a gateway that has sent its greeting, and then runs the function.
func dialed(t *testing.T, then func(context.Context, *websocket.Conn)) *session {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		_ = conn.Write(r.Context(), websocket.MessageText,
			[]byte(`{"type":"version","homeId":1,"minSchemaVersion":0,"maxSchemaVersion":44}`))
		then(r.Context(), conn)
	}))
	t.Cleanup(server.Close)
	g, err := Config{URL: "ws" + strings.TrimPrefix(server.URL, "http")}.gateway()
	if err != nil {
		t.Fatal(err)
	}
	s, err := g.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.conn.CloseNow() })
	return s
}

// slow is a result that is decoded slowly.
type slow struct {
	begun, goOn chan struct{}
}

func (s *slow) UnmarshalJSON([]byte) error {
	close(s.begun)
	<-s.goOn
	return nil
}

// A gateway may respond before the command is sent, and end the connection meanwhile.
func TestCallReturnsAfterItsResultIsWritten(t *testing.T) {
	t.Parallel()
	result := &slow{begun: make(chan struct{}), goOn: make(chan struct{})}
	s := dialed(t, func(ctx context.Context, conn *websocket.Conn) {
		_, _, _ = conn.Reader(ctx) // the write of the command has started, and blocks
		_ = conn.Write(ctx, websocket.MessageText,
			[]byte(`{"type":"result","success":true,"messageId":"1","result":{}}`))
		<-result.begun
	})
	read := make(chan struct{})
	go func() {
		defer close(read)
		s.end(s.read(t.Context(), func(*wireEvent) {}))
	}()
	called := make(chan error, 1)
	go func() { called <- s.call(t.Context(), "node.ping", args{"x": strings.Repeat("a", 64<<20)}, result) }()
	<-result.begun
	var err error
	select {
	case err = <-called:
		t.Error("the call returned while its result is being written")
		close(result.goOn)
	case <-time.After(300 * time.Millisecond):
		close(result.goOn)
		err = <-called
	}
	if adapter.ClassOf(err) != adapter.Unconfirmed {
		t.Errorf("got %v", err)
	}
	<-read
}

// Frames that wait for the rate limit must not delay a response that has arrived.
func TestCallIsAnsweredDespiteConnectionEnd(t *testing.T) {
	t.Parallel()
	s := dialed(t, func(ctx context.Context, conn *websocket.Conn) {
		_, _, _ = conn.Read(ctx)
		_ = conn.Write(ctx, websocket.MessageText,
			fmt.Appendf(nil, `{"type":"result","success":true,"messageId":"1","result":{"a":%q}}`,
				strings.Repeat("a", 1<<19)))
		_, _, _ = conn.Read(ctx)
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read := make(chan struct{})
	go func() {
		defer close(read)
		s.end(s.read(ctx, func(*wireEvent) {}))
	}()
	if err := s.pace.Wait(ctx, adapter.GatewayBurst); err != nil { // the tokens are used up: the frame must wait
		t.Fatal(err)
	}
	if err := s.call(t.Context(), "node.ping", nil, &ends{cancel}); err != nil {
		t.Error(err)
	}
	<-read
}

// A gateway that accepts no more data, but still sends events, counts as alive although it answers no ping. A command
// that it does not accept fails, without blocking its caller any longer.
func TestBlockedCommandEndsTheConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		told := make(chan struct{})
		defer func() { <-told }()
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(told)
			conn, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			defer conn.CloseNow()
			for frame := `{"type":"version","maxSchemaVersion":44}`; conn.Write(context.WithoutCancel(r.Context()),
				websocket.MessageText, []byte(frame)) == nil; {
				time.Sleep(time.Second)
				frame = `{"type":"event","event":{}}`
			}
		})}
		go server.Serve(&listening{conn: theirs, closed: make(chan struct{})})
		defer server.Close()
		s, err := gateway{
			url: "ws://gateway",
			http: &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string,
				string,
			) (net.Conn, error) {
				return ours, nil
			}}},
		}.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var parts sync.WaitGroup
		defer parts.Wait()
		parts.Go(func() { s.end(s.read(ctx, func(*wireEvent) {})) })
		parts.Go(func() { _ = s.pingLoop(ctx) })
		called := make(chan error, 1)
		begin := time.Now()
		go func() { called <- s.call(ctx, "node.ping", nil, nil) }()
		select {
		case err := <-called:
			if took := time.Since(begin); adapter.ClassOf(err) != adapter.Unconfirmed || took > writeTimeout {
				t.Errorf("after %s: %v", took, err)
			}
			if err := s.call(ctx, "node.ping", nil, nil); adapter.ClassOf(err) != adapter.GatewayDown &&
				adapter.ClassOf(err) != adapter.Unconfirmed {
				t.Errorf("the next: %v", err)
			}
		case <-time.After(10 * time.Minute):
			t.Error("it is still being written")
			_ = s.conn.CloseNow()
			<-called
		}
		cancel()
	})
}

// ends is a result that ends the connection.
type ends struct{ now func() }

func (e *ends) UnmarshalJSON([]byte) error {
	e.now()
	return nil
}
