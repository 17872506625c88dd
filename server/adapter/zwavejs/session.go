package zwavejs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

const (
	leastSchema = 32 // earlier ones do not tell errors apart
	unifiedFrom = 48 // endpoint.access_control
	mostSchema  = 50 // the last one whose shapes were tried

	dialWithin  = 10 * time.Second
	writeWithin = 10 * time.Second // a command, which is small: a gateway that does not take it takes nothing any more
	pingEvery   = 15 * time.Second // the server never pings: only we notice a connection that is half open
	pongWithin  = 5 * time.Second
	listWithin  = time.Minute // the network; no ping is answered while that is received
)

// session is one connection to the gateway.
type session struct {
	conn   *websocket.Conn
	pace   adapter.Pace // of frames
	frames atomic.Int64 // that were received
	home   uint32
	schema int
	log    string // the server's version, for the log

	mu      sync.Mutex
	next    int
	pending map[string]*call
	ended   error // why nothing more can be called
}

// dial opens a connection and agrees on a schema. It fails with GatewayDown, AuthRevoked or NotSupported.
func (g gateway) dial(ctx context.Context) (*session, error) {
	dialing, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	pace := adapter.NewPace()
	conn, response, err := websocket.Dial(dialing, g.url, pace.Web(websocket.DialOptions{HTTPClient: g.http})) //nolint:bodyclose // websocket closes it
	if err != nil {
		return nil, refused(response, err)
	}
	conn.SetReadLimit(networkLimit)
	s := &session{conn: conn, pace: pace, pending: map[string]*call{}}
	hello, err := s.receive(dialing)
	if err != nil || hello.Type != "version" {
		_ = conn.CloseNow()
		if websocket.CloseStatus(err) == websocket.StatusTryAgainLater {
			return nil, adapter.Errorf(adapter.GatewayDown, "the gateway's Z-Wave driver is not ready yet; try again in a minute, and see to its Z-Wave stick if that lasts")
		}
		return nil, adapter.Errorf(adapter.GatewayDown, "what answers there is not a zwave-js-server; its port is usually 3000")
	}
	if hello.MaxSchema < leastSchema || hello.MinSchema > mostSchema {
		_ = conn.CloseNow()
		return nil, adapter.Errorf(adapter.NotSupported, "the gateway's zwave-js-server speaks schema %d to %d, and %d to %d is needed; bring it up to date",
			hello.MinSchema, hello.MaxSchema, leastSchema, mostSchema)
	}
	s.home, s.schema, s.log = hello.HomeID, min(mostSchema, hello.MaxSchema), brief(hello.ServerVersion, 100)
	if g.met != nil {
		if err := g.met(ctx, networkName(s.home)); err != nil {
			_ = conn.CloseNow()
			return nil, err
		}
	}
	return s, nil
}

// networkName is what a network is called by its home identifier, which it keeps whoever serves it; empty: it has none yet.
func networkName(home uint32) string {
	if home == 0 {
		return ""
	}
	return fmt.Sprintf("%08x", home)
}

// refused is the error of a connection that was not made. Its text may not hold the URL's password.
func refused(response *http.Response, err error) *adapter.Error {
	if response == nil {
		return adapter.Errorf(adapter.GatewayDown, "the gateway cannot be reached: %s; is its WebSocket server switched on, and the URL right?", adapter.Reason(err))
	}
	switch response.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return adapter.Errorf(adapter.AuthRevoked, "the gateway answered %s: it wants another user or password in the URL", response.Status)
	default:
		return adapter.Errorf(adapter.GatewayDown, "the gateway answered %s instead of a WebSocket; the port of its zwave-js-server is usually 3000", response.Status)
	}
}

// initialize agrees on the schema; what the gateway shows of its clients is named after us.
func (s *session) initialize(ctx context.Context) error {
	return s.call(ctx, "initialize", args{"schemaVersion": s.schema, "additionalUserAgentComponents": map[string]string{"device-access": "1"}}, nil)
}

// alive pings until there is no answer.
func (s *session) alive(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pingEvery):
		}
		before := s.frames.Load()
		waiting, cancel := context.WithTimeout(ctx, pongWithin)
		err := s.conn.Ping(waiting)
		cancel()
		if err != nil && s.frames.Load() == before { // otherwise its answer is behind what is still being taken in
			return errors.New("the gateway answers no pings")
		}
	}
}

// end fails what waits for answers.
func (s *session) end(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil {
		s.ended = why
	}
	for id, c := range s.pending {
		close(c.answer)
		delete(s.pending, id)
	}
}

type args map[string]any

// call makes a command and decodes its result into out, which may be nil. It fails with GatewayDown where
// the command was not sent; with Unconfirmed where it was and no answer came; otherwise as the gateway says.
func (s *session) call(ctx context.Context, command string, a args, out any) error {
	if err := adapter.MaySend(ctx); err != nil {
		return err
	}
	waiting := &call{out: out, most: max(limits[command], frameLimit), answer: make(chan message, 1)}
	s.mu.Lock()
	if s.ended != nil {
		s.mu.Unlock()
		return adapter.Errorf(adapter.GatewayDown, "the connection to the gateway is lost")
	}
	s.next++
	id := strconv.Itoa(s.next)
	s.pending[id] = waiting
	s.mu.Unlock()
	frame := args{"messageId": id, "command": command}
	for k, v := range a {
		frame[k] = v
	}
	data, err := json.Marshal(frame)
	if err != nil {
		s.forget(id)
		return adapter.Errorf(adapter.Invalid, "%s cannot be written as JSON", command)
	}
	// Not with ctx: a write that is cut off ends the connection, for all.
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeWithin)
	defer cancel()
	if err := s.conn.Write(writing, websocket.MessageText, data); err != nil {
		if !s.forget(id) { // a gateway may answer before it is asked, and out is being written to
			<-waiting.answer
		}
		return adapter.Errorf(adapter.Unconfirmed, "the connection to the gateway was lost while %s was sent", command)
	}
	select {
	case <-ctx.Done():
		if s.forget(id) {
			return fmt.Errorf("%w (%w)", adapter.Errorf(adapter.Unconfirmed, "the gateway did not answer %s in time", command), ctx.Err())
		}
		m, ok := <-waiting.answer // it has come, and out is being written to
		return m.outcome(ctx, command, ok)
	case m, ok := <-waiting.answer:
		return m.outcome(ctx, command, ok)
	}
}

// pause is how long to wait before the n-th try to connect again: the gateway is near, so not long.
func pause(n int) time.Duration {
	d := min(250*time.Millisecond<<min(n, 5), 5*time.Second)
	return d/4 + rand.N(d)
}
