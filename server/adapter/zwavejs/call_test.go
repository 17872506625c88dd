package zwavejs

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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

// ends is a result with which the connection ends.
type ends struct{ now func() }

func (e *ends) UnmarshalJSON([]byte) error {
	e.now()
	return nil
}
