package zwavejs_test

import (
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
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zwavejs"
)

// script is a gateway that responds with captured frames, for cases that the real one cannot produce. Its only lock
// is node 2, a lock with User Code and four slots.
type script struct {
	adapter *zwavejs.Adapter
	device  adapter.DeviceRef

	mu      sync.Mutex
	conn    *websocket.Conn
	product int
	shown   string         // node in the list; default: a healthy lock
	slots   map[int]string // response of "get" by slot; missing: empty
	answer  func(c command) string
	asked   []string
	lists   int // number of times the node was listed
}

// noteCommand is a frame of the adapter.
type command struct {
	ID     string `json:"messageId"`
	Name   string `json:"command"`
	Method string `json:"methodName"`
	Args   []any  `json:"args"`

	User       int    `json:"userId"`
	Kind       int    `json:"credentialType"`
	Credential int    `json:"credentialSlot"`
	Data       string `json:"data"`
	Options    struct {
		Name string `json:"userName"`
	} `json:"options"`
}

func (c command) slot() int {
	if len(c.Args) == 0 {
		return 0
	}
	slot, _ := c.Args[0].(float64)
	return int(slot)
}

const (
	emptySlot    = `{"response":{"userIdStatus":0,"userCode":""}}`
	noContent    = `{}`
	duplicate    = `{"type":"event","event":{"source":"node","event":"notification","nodeId":2,"endpointIndex":0,"ccId":113,"args":{"type":6,"event":15,"label":"Access Control","eventLabel":"New user code not added due to duplicate code"%s}}}`
	lockedOut    = `{"success":false,"errorCode":"zwave_error","zwaveErrorCode":%d,"zwaveErrorCodeName":%q,"zwaveErrorMessage":"the PIN 864209 is bad (ZW0000)"}`
	manufacturer = 0x0129
)

// play starts the script and an adapter for it, which has found the lock. A command for which answer returns "" gets
// the response of a healthy lock.
func play(t *testing.T, slots map[int]string, answer func(s *script, c command) string) *script {
	t.Helper()
	s := begin(t, slots, answer)
	devices, err := s.adapter.Devices(t.Context())
	if err != nil || len(devices) != 1 {
		t.Fatalf("Devices: %d, %v", len(devices), err)
	}
	s.device = devices[0].Ref
	return s
}

func begin(t *testing.T, slots map[int]string, answer func(s *script, c command) string) *script {
	t.Helper()
	s := &script{slots: slots, product: 0x0600}
	s.answer = func(c command) string {
		if answer == nil {
			return ""
		}
		return answer(s, c)
	}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(server.Close)
	a, err := zwavejs.New(zwavejs.Config{URL: "ws" + strings.TrimPrefix(server.URL, "http")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	s.adapter = a
	return s
}

func (s *script) serve(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow()
	s.mu.Lock()
	s.conn = conn
	s.mu.Unlock()
	s.tell(
		`{"type":"version","homeId":2119630849,"driverVersion":"15.29.0","serverVersion":"3.10.2","minSchemaVersion":0,"maxSchemaVersion":50}`,
	)
	for {
		_, data, err := conn.Read(r.Context())
		if err != nil {
			return
		}
		var c command
		if json.Unmarshal(data, &c) != nil {
			return
		}
		go s.reply(c)
	}
}

func (s *script) reply(c command) {
	s.mu.Lock()
	s.asked = append(s.asked, strings.TrimSpace(c.Name+" "+c.Method))
	s.mu.Unlock()
	result := s.answer(c)
	const get = "get" // of the command class, not of HTTP
	switch {
	case result != "":
	case c.Name == "start_listening":
		result = `{"state":{"nodes":[` + s.node() + `]}}`
		s.mu.Lock()
		s.lists++
		s.mu.Unlock()
	case c.Method == get:
		s.mu.Lock()
		result = s.slots[c.slot()]
		s.mu.Unlock()
		if result == "" {
			result = emptySlot
		}
	case c.Method == "set":
		s.put(c.slot(), fmt.Sprintf(`{"response":{"userIdStatus":1,"userCode":%q}}`, c.Args[2]))
	case c.Method == "clear":
		s.put(c.slot(), emptySlot)
	}
	if result == "" {
		result = noContent
	}
	if strings.HasPrefix(result, `{"success":false`) {
		s.tell(`{"type":"result","messageId":"` + c.ID + `",` + strings.TrimPrefix(result, "{"))
		return
	}
	s.tell(`{"type":"result","success":true,"messageId":"` + c.ID + `","result":` + result + `}`)
}

func (s *script) put(slot int, content string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slots[slot] = content
}

// report sends a frame.
func (s *script) tell(frame string) {
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	_ = conn.Write(context.Background(), websocket.MessageText, []byte(frame))
}

// node returns the lock in the list.
func (s *script) node() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown != "" {
		return s.shown
	}
	var values []string
	for slot := 1; slot <= 4; slot++ {
		values = append(
			values,
			fmt.Sprintf(
				`{"commandClass":99,"endpoint":0,"property":"userCode","propertyKey":%d,"value":"","metadata":{"minLength":4,"maxLength":10}}`,
				slot,
			),
		)
	}
	return fmt.Sprintf(
		`{"nodeId":2,"status":4,"ready":true,"manufacturerId":%d,"productType":1,"productId":%d,"label":"YRD256","deviceConfig":{"manufacturer":"Yale"},`+
			`"endpoints":[{"index":0,"commandClasses":[{"id":98,"version":4},{"id":99,"version":1},{"id":113,"version":8}]}],"values":[%s]}`,
		manufacturer,
		s.product,
		strings.Join(values, ","),
	)
}

// reconnect closes the connection, and changes the listed node. It returns after the reconnection.
func (s *script) reconnect(t *testing.T, shown string) {
	t.Helper()
	s.mu.Lock()
	s.shown = shown
	conn, before := s.conn, s.lists
	s.mu.Unlock()
	_ = conn.CloseNow()
	until(t, "it is connected again", func() bool {
		s.mu.Lock()
		again := s.lists > before
		s.mu.Unlock()
		_, err := s.adapter.Devices(t.Context())
		return again && err == nil
	})
}

// interview sends the event of a completed interview with the node.
func (s *script) interview(t *testing.T, shown string) {
	t.Helper()
	s.mu.Lock()
	s.shown = shown
	s.mu.Unlock()
	s.tell(`{"type":"event","event":{"source":"node","event":"ready","nodeId":2,"nodeState":` + s.node() + `}}`)
}

// count returns how often a command was sent since the last call.
func (s *script) count(name string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, asked := range s.asked {
		if asked == name {
			n++
		}
	}
	s.asked = nil
	return n
}

const (
	reads  = "endpoint.invoke_cc_api get"
	writes = "endpoint.invoke_cc_api set"
)

func shows(status int, pin string) string {
	return fmt.Sprintf(`{"response":{"userIdStatus":%d,"userCode":%q}}`, status, pin)
}
