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
)

// Frames that have to wait keep no answer that has come from whom it is for.
func TestACallIsAnsweredAlsoWhenTheConnectionEndsMeanwhile(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		_ = conn.Write(r.Context(), websocket.MessageText, []byte(`{"type":"version","homeId":1,"minSchemaVersion":0,"maxSchemaVersion":44}`))
		_, _, _ = conn.Read(r.Context())
		_ = conn.Write(r.Context(), websocket.MessageText, fmt.Appendf(nil, `{"type":"result","success":true,"messageId":"1","result":{"a":%q}}`, strings.Repeat("a", 1<<19)))
		_, _, _ = conn.Read(r.Context())
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
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read := make(chan struct{})
	go func() {
		defer close(read)
		s.end(s.read(ctx, func(*wireEvent) {}))
	}()
	s.large.AllowN(time.Now(), largeBurst) // nothing is left: the frame has to wait
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
