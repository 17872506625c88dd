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

// dialed is a connection to a gateway that has greeted, and is what then says from there on.
func dialed(t *testing.T, then func(context.Context, *websocket.Conn)) *session {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		_ = conn.Write(r.Context(), websocket.MessageText, []byte(`{"type":"version","homeId":1,"minSchemaVersion":0,"maxSchemaVersion":44}`))
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

// slow is a result that takes its time to be decoded.
type slow struct {
	begun, goOn chan struct{}
}

func (s *slow) UnmarshalJSON([]byte) error {
	close(s.begun)
	<-s.goOn
	return nil
}

// A gateway may answer before it is asked, and end the connection meanwhile.
func TestACallIsOverOnceNothingIsWrittenToItsResult(t *testing.T) {
	t.Parallel()
	result := &slow{begun: make(chan struct{}), goOn: make(chan struct{})}
	s := dialed(t, func(ctx context.Context, conn *websocket.Conn) {
		_, _, _ = conn.Reader(ctx) // the command has begun, and does not get through
		_ = conn.Write(ctx, websocket.MessageText, []byte(`{"type":"result","success":true,"messageId":"1","result":{}}`))
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
		t.Error("the call is over while its result is being written")
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

// Frames that have to wait keep no answer that has come from whom it is for.
func TestACallIsAnsweredAlsoWhenTheConnectionEndsMeanwhile(t *testing.T) {
	t.Parallel()
	s := dialed(t, func(ctx context.Context, conn *websocket.Conn) {
		_, _, _ = conn.Read(ctx)
		_ = conn.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `{"type":"result","success":true,"messageId":"1","result":{"a":%q}}`, strings.Repeat("a", 1<<19)))
		_, _, _ = conn.Read(ctx)
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read := make(chan struct{})
	go func() {
		defer close(read)
		s.end(s.read(ctx, func(*wireEvent) {}))
	}()
	if err := s.pace.Wait(ctx, adapter.GatewayBurst); err != nil { // nothing is left: the frame has to wait
		t.Fatal(err)
	}
	if err := s.call(t.Context(), "node.ping", nil, &ends{cancel}); err != nil {
		t.Error(err)
	}
	<-read
}

// A gateway that takes nothing any more, and goes on telling, is alive for all that it answers no ping: a command that it does not
// take says so, and keeps nobody for longer.
func TestACommandThatIsNotTakenEndsTheConnection(t *testing.T) {
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
			for frame := `{"type":"version","maxSchemaVersion":44}`; conn.Write(context.WithoutCancel(r.Context()), websocket.MessageText, []byte(frame)) == nil; {
				time.Sleep(time.Second)
				frame = `{"type":"event","event":{}}`
			}
		})}
		go server.Serve(&listening{conn: theirs, closed: make(chan struct{})})
		defer server.Close()
		s, err := gateway{url: "ws://gateway", http: &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return ours, nil }}}}.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var parts sync.WaitGroup
		defer parts.Wait()
		parts.Go(func() { s.end(s.read(ctx, func(*wireEvent) {})) })
		parts.Go(func() { _ = s.alive(ctx) })
		called := make(chan error, 1)
		begin := time.Now()
		go func() { called <- s.call(ctx, "node.ping", nil, nil) }()
		select {
		case err := <-called:
			if took := time.Since(begin); adapter.ClassOf(err) != adapter.Unconfirmed || took > writeWithin {
				t.Errorf("after %s: %v", took, err)
			}
			if err := s.call(ctx, "node.ping", nil, nil); adapter.ClassOf(err) != adapter.GatewayDown && adapter.ClassOf(err) != adapter.Unconfirmed {
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

// ends is a result with which the connection ends.
type ends struct{ now func() }

func (e *ends) UnmarshalJSON([]byte) error {
	e.now()
	return nil
}
