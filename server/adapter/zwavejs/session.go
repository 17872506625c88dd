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
	// minSchema is the first schema with error codes.
	minSchema = 32
	// accessControlSchema is the first schema with endpoint.access_control.
	accessControlSchema = 48
	// maxSchema is the last tested schema.
	maxSchema = 50

	dialTimeout = 10 * time.Second
	// writeTimeout is for a command, which is small: a gateway that does not accept it hangs.
	writeTimeout = 10 * time.Second
	// pingInterval detects half-open connections; the server never pings.
	pingInterval = 15 * time.Second
	pongTimeout  = 5 * time.Second
	// listTimeout is for the list of the network, during which no ping is answered.
	listTimeout = time.Minute
)

// session is one connection to the gateway.
type session struct {
	conn          *websocket.Conn
	pace          adapter.GatewayLimiter // limits the frames
	frames        atomic.Int64           // received frames
	home          uint32
	schema        int
	serverVersion string // version of the server, for the log

	mu      sync.Mutex
	next    int
	pending map[string]*call
	ended   error // why the connection has ended
}

// dial connects and agrees on a schema. It fails with GatewayDown, AuthRevoked, or NotSupported.
func (g gateway) dial(ctx context.Context) (*session, error) {
	dialing, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	pace := adapter.NewGatewayLimiter()
	conn, response, err := websocket.Dial( //nolint:bodyclose // websocket closes it
		dialing,
		g.url,
		pace.DialOptions(websocket.DialOptions{HTTPClient: g.http}),
	)
	if err != nil {
		return nil, refused(response, err)
	}
	conn.SetReadLimit(networkLimit)
	s := &session{conn: conn, pace: pace, pending: map[string]*call{}}
	hello, err := s.receive(dialing)
	if err != nil || hello.Type != "version" {
		_ = conn.CloseNow()
		if websocket.CloseStatus(err) == websocket.StatusTryAgainLater {
			return nil, adapter.Errorf(adapter.GatewayDown,
				"the gateway's Z-Wave driver is not ready yet; try again in a minute, and check its Z-Wave stick if "+
					"this persists")
		}
		return nil, adapter.Errorf(adapter.GatewayDown,
			"the server at this URL is not a zwave-js-server; its port is usually 3000")
	}
	if hello.MaxSchema < minSchema || hello.MinSchema > maxSchema {
		_ = conn.CloseNow()
		return nil, adapter.Errorf(adapter.NotSupported,
			"the gateway's zwave-js-server supports schema %d to %d, but %d to %d is required; bring it up to date",
			hello.MinSchema, hello.MaxSchema, minSchema, maxSchema)
	}
	s.home, s.schema, s.serverVersion = hello.HomeID, min(maxSchema, hello.MaxSchema), brief(hello.ServerVersion, 100)
	if g.checkGateway != nil {
		if err := g.checkGateway(ctx, networkName(s.home)); err != nil {
			_ = conn.CloseNow()
			return nil, err
		}
	}
	return s, nil
}

// networkName returns the identity of a network, its home identifier, which is independent of the server; empty if
// the network has none yet.
func networkName(home uint32) string {
	if home == 0 {
		return ""
	}
	return fmt.Sprintf("%08x", home)
}

// refused returns the error of a failed connection. It must not contain the URL's password.
func refused(response *http.Response, err error) *adapter.Error {
	if response == nil {
		return adapter.Errorf(adapter.GatewayDown,
			"the gateway cannot be reached: %s; is its WebSocket server enabled, and the URL correct?",
			adapter.Reason(err))
	}
	switch response.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return adapter.Errorf(adapter.AuthRevoked,
			"the gateway answered %s: it wants another user or password in the URL", response.Status)
	default:
		return adapter.Errorf(adapter.GatewayDown,
			"the gateway answered %s instead of a WebSocket; the port of its zwave-js-server is usually 3000",
			response.Status)
	}
}

// initialize sets the schema and the client name that the gateway shows.
func (s *session) initialize(ctx context.Context) error {
	return s.call(ctx, "initialize", args{
		"schemaVersion":                 s.schema,
		"additionalUserAgentComponents": map[string]string{"device-access": "1"},
	}, nil)
}

// pingLoop sends pings until one remains unanswered.
func (s *session) pingLoop(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pingInterval):
		}
		before := s.frames.Load()
		waiting, cancel := context.WithTimeout(ctx, pongTimeout)
		err := s.conn.Ping(waiting)
		cancel()
		if err != nil && s.frames.Load() == before { // otherwise the pong waits behind received frames
			return errors.New("the gateway does not answer pings")
		}
	}
}

// end fails the pending calls.
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

// call sends a command and decodes its result into out, which may be nil. It fails with GatewayDown if the command
// was not sent, with Unconfirmed if it was sent and no response arrived, and otherwise with the gateway's error.
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
		s.abandon(id)
		return adapter.Errorf(adapter.Invalid, "%s cannot be written as JSON", command)
	}
	// Without the cancellation of ctx: an interrupted write ends the connection for all callers.
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	if err := s.conn.Write(writing, websocket.MessageText, data); err != nil {
		if !s.abandon(id) { // a response may have arrived, so that out is being written
			<-waiting.answer
		}
		return adapter.Errorf(adapter.Unconfirmed, "the connection to the gateway was lost while sending %s", command)
	}
	select {
	case <-ctx.Done():
		if s.abandon(id) {
			return fmt.Errorf("%w (%w)", adapter.Errorf(adapter.Unconfirmed, "the gateway did not answer %s in time",
				command), ctx.Err())
		}
		m, ok := <-waiting.answer // the response has arrived, and out is being written
		return m.outcome(ctx, command, ok)
	case m, ok := <-waiting.answer:
		return m.outcome(ctx, command, ok)
	}
}

// pause returns the delay before the n-th reconnection. It is short, because the gateway is usually nearby.
func pause(n int) time.Duration {
	d := min(250*time.Millisecond<<min(n, 5), 5*time.Second)
	return d/4 + rand.N(d)
}
