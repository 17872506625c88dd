package zwavejs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// relay connects an adapter and a gateway, and simulates network failures.
type relay struct {
	server  *httptest.Server
	gateway string

	mu      sync.Mutex
	conns   []*websocket.Conn // in both directions
	here    []*websocket.Conn // to the adapter
	refuse  int               // status of rejected connections
	starts  bool              // the gateway's driver is not ready
	cutNext bool              // the response to the next write is lost, with the connection
	writes  map[string]bool   // message identifiers of running writes
	stalled chan struct{}     // closed: nothing is forwarded
	schema  int               // maximum schema of the gateway; 0: its own
	fail    adapter.Class     // commands fail with this class instead of being forwarded
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
	refuse, starts := r.refuse, r.starts
	r.mu.Unlock()
	if starts {
		if here, err := websocket.Accept(w, req, nil); err == nil {
			_ = here.Close(websocket.StatusTryAgainLater, "Driver is not ready")
		}
		return
	}
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
	both.Go(func() {
		r.pass(ctx, here, there, func(data []byte) ([]byte, bool) {
			instead := r.refusals(data)
			for _, frame := range instead {
				_ = here.Write(ctx, websocket.MessageText, []byte(frame)) // the next read reports an error
			}
			if instead != nil {
				return nil, true
			}
			return r.request(data)
		})
		cancel()
	})
	both.Go(func() { r.pass(ctx, there, here, r.answer); cancel() })
	both.Wait()
}

// pass forwards frames until the connection ends or through ends it. A frame for which through returns nothing is
// dropped.
func (r *relay) pass(ctx context.Context, from, to *websocket.Conn, through func([]byte) (frame []byte, ok bool)) {
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
		data, ok := through(data)
		if !ok || data != nil && to.Write(ctx, kind, data) != nil {
			return
		}
	}
}

// isWrite reports whether a command changes the lock.
func isWrite(command, method string) bool {
	switch {
	case command == "node.set_value":
		return true
	case command == "endpoint.invoke_cc_api":
		return method == "set" || method == "clear"
	case strings.HasPrefix(command, "endpoint.access_control."):
		what := strings.TrimPrefix(command, "endpoint.access_control.")
		return what == "set_credential" || what == "delete_user"
	}
	return false
}

func (r *relay) request(data []byte) ([]byte, bool) {
	var m struct {
		MessageID  string `json:"messageId"`
		Command    string `json:"command"`
		MethodName string `json:"methodName"`
		ValueID    struct {
			Property string `json:"property"`
		} `json:"valueId"`
	}
	if json.Unmarshal(data, &m) != nil {
		return nil, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// the mode of a thermostat is only the first part of a setting
	if r.cutNext && isWrite(m.Command, m.MethodName) && m.ValueID.Property != "mode" {
		r.writes[m.MessageID] = true
	}
	return data, true
}

func (r *relay) answer(data []byte) ([]byte, bool) {
	var m struct {
		Type      string `json:"type"`
		MessageID string `json:"messageId"`
	}
	if json.Unmarshal(data, &m) != nil {
		return nil, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case m.Type == "version" && r.schema > 0:
		var version map[string]any
		if json.Unmarshal(data, &version) != nil {
			return nil, false
		}
		version["maxSchemaVersion"] = r.schema
		lowered, err := json.Marshal(version)
		if err != nil {
			return nil, false
		}
		return lowered, true
	case m.Type == "result" && r.writes[m.MessageID]:
		r.cutNext = false
		delete(r.writes, m.MessageID)
		return nil, false
	}
	return bytes.Clone(data), true
}

// failures maps the classes to errors of zwave-js.
var failures = map[adapter.Class]string{
	adapter.Transient: `"zwaveErrorCode":202,"zwaveErrorCodeName":"Controller_NodeTimeout"`,
	adapter.Offline:   `"zwaveErrorCode":204,"zwaveErrorCodeName":"Controller_CallbackNOK"`,
	adapter.Invalid:   `"zwaveErrorCode":322,"zwaveErrorCodeName":"Argument_Invalid"`,
}

// refusals returns the responses to a command that is not forwarded, or none.
func (r *relay) refusals(data []byte) []string {
	var m struct {
		MessageID  string `json:"messageId"`
		Command    string `json:"command"`
		MethodName string `json:"methodName"`
		NodeID     int    `json:"nodeId"`
	}
	r.mu.Lock()
	class := r.fail
	r.mu.Unlock()
	if class == "" || json.Unmarshal(data, &m) != nil {
		return nil
	}
	result := fmt.Sprintf(`{"type":"result","messageId":%q,"success":`, m.MessageID)
	switch {
	case class == adapter.Duplicate && m.Command == "endpoint.access_control.set_credential":
		return []string{result + `true,"result":{"result":3}}`}
	case class == adapter.Duplicate && m.MethodName == "set":
		return []string{
			fmt.Sprintf(
				`{"type":"event","event":{"source":"node","event":"notification","nodeId":%d,"ccId":113,"args":{"type":6,"event":15}}}`,
				m.NodeID,
			),
			result + `true,"result":{}}`,
		}
	case class == adapter.Duplicate, class == adapter.Invalid && !isWrite(m.Command, m.MethodName):
		return nil
	}
	return []string{result + `false,"errorCode":"zwave_error",` + failures[class] + `}`}
}

func (r *relay) set(change func(*relay)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r)
}

// disconnect closes the connections.
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

// inject sends a frame to the adapter as if it came from the gateway.
func (r *relay) inject(t testing.TB, frame string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.here {
		_ = c.Write(t.Context(), websocket.MessageText, []byte(frame)) // closed connections do not matter
	}
}
