package zwavejs

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

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
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		_ = conn.Write(r.Context(), websocket.MessageText, []byte(`{"type":"version","homeId":1,"minSchemaVersion":0,"maxSchemaVersion":44}`))
		_, _, _ = conn.Reader(r.Context()) // the command has begun, and does not get through
		_ = conn.Write(r.Context(), websocket.MessageText, []byte(`{"type":"result","success":true,"messageId":"1","result":{}}`))
		<-result.begun
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
	defer s.conn.CloseNow()
	read := make(chan struct{})
	go func() {
		defer close(read)
		s.end(s.read(t.Context(), func(*wireEvent) {}))
	}()
	called := make(chan error, 1)
	go func() { called <- s.call(t.Context(), "node.ping", args{"x": strings.Repeat("a", 64<<20)}, result) }()
	<-result.begun
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
