package zwavejs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
)

// relay stands between an adapter and a gateway, and does to their connection what networks do.
type relay struct {
	server  *httptest.Server
	gateway string

	mu      sync.Mutex
	conns   []*websocket.Conn // in both directions
	here    []*websocket.Conn // to the adapter
	refuse  int               // status that connections are refused with
	cutNext bool              // the answer to the next write is lost, with the connection
	writes  map[string]bool   // message identifiers of writes that are on their way
	stalled chan struct{}     // closed: nothing gets through any more
	schema  int               // the gateway claims no more; 0: its own
}

func newRelay(t *testing.T, gateway string) *relay {
	t.Helper()
	r := &relay{gateway: gateway, writes: map[string]bool{}, stalled: make(chan struct{})}
	r.server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.stop)
	return r
}

func (r *relay) url() string { return "ws" + strings.TrimPrefix(r.server.URL, "http") }

func (r *relay) serve(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	refuse := r.refuse
	r.mu.Unlock()
	if refuse != 0 {
		w.WriteHeader(refuse)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	there, _, err := websocket.Dial(ctx, r.gateway, nil)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer there.CloseNow()
	here, err := websocket.Accept(w, req, nil)
	if err != nil {
		return
	}
	defer here.CloseNow()
	here.SetReadLimit(-1)
	there.SetReadLimit(-1)
	r.mu.Lock()
	r.conns, r.here = append(r.conns, here, there), append(r.here, here)
	r.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { r.pass(ctx, here, there, r.request); cancel() })
	both.Go(func() { r.pass(ctx, there, here, r.answer); cancel() })
	both.Wait()
}

// pass hands frames on until the connection ends or through says that it is to.
func (r *relay) pass(ctx context.Context, from, to *websocket.Conn, through func([]byte) []byte) {
	for {
		kind, data, err := from.Read(ctx)
		if err != nil {
			return
		}
		select {
		case <-r.stalled:
			continue
		default:
		}
		if data = through(data); data == nil {
			return
		}
		if to.Write(ctx, kind, data) != nil {
			return
		}
	}
}

// isWrite says whether a command changes what is on a lock.
func isWrite(command, method string) bool {
	switch {
	case command == "endpoint.invoke_cc_api":
		return method == "set" || method == "clear"
	case strings.HasPrefix(command, "endpoint.access_control."):
		what := strings.TrimPrefix(command, "endpoint.access_control.")
		return what == "set_credential" || what == "delete_user"
	}
	return false
}

func (r *relay) request(data []byte) []byte {
	var m struct {
		MessageID  string `json:"messageId"`
		Command    string `json:"command"`
		MethodName string `json:"methodName"`
	}
	if json.Unmarshal(data, &m) != nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cutNext && isWrite(m.Command, m.MethodName) {
		r.writes[m.MessageID] = true
	}
	return data
}

func (r *relay) answer(data []byte) []byte {
	var m struct {
		Type      string `json:"type"`
		MessageID string `json:"messageId"`
	}
	if json.Unmarshal(data, &m) != nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case m.Type == "version" && r.schema > 0:
		var version map[string]any
		if json.Unmarshal(data, &version) != nil {
			return nil
		}
		version["maxSchemaVersion"] = r.schema
		lowered, err := json.Marshal(version)
		if err != nil {
			return nil
		}
		return lowered
	case m.Type == "result" && r.writes[m.MessageID]:
		r.cutNext = false
		delete(r.writes, m.MessageID)
		return nil
	}
	return bytes.Clone(data)
}

func (r *relay) set(change func(*relay)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r)
}

// disconnect cuts what is connected.
func (r *relay) disconnect() {
	r.mu.Lock()
	conns := r.conns
	r.conns = nil
	r.mu.Unlock()
	for _, c := range conns {
		_ = c.CloseNow()
	}
}

func (r *relay) stop() {
	r.disconnect()
	r.server.Close()
}

// inject sends the adapter a frame as if it came from the gateway.
func (r *relay) inject(t testing.TB, frame string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.here {
		_ = c.Write(t.Context(), websocket.MessageText, []byte(frame)) // those that have ended do not matter
	}
}
