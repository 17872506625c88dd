package zwavejs

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/coder/websocket"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

const (
	// networkLimit is the maximum size of the network in bytes, about 40 kB per node.
	networkLimit = 16 << 20
	// frameLimit is the maximum size of frames that are not in limits: an event concerns at most one node.
	frameLimit = 1 << 20

	startListening = "start_listening"
)

// limits holds the maximum sizes of responses that may exceed frameLimit.
var limits = map[string]int{
	startListening:                                networkLimit,
	"endpoint.access_control.get_users":           4 << 20, // some hundred bytes per user
	"endpoint.access_control.get_all_credentials": 4 << 20,
}

var errFrameLarge = errors.New("the gateway has sent a frame above the size limit")

// call is a command that waits for its response.
type call struct {
	// out is decoded into before answer receives the message; nil to ignore the result.
	out any
	// most is the maximum size of the response in bytes.
	most int
	// answer is closed when no response will arrive.
	answer chan message
}

// read processes frames until the connection ends; on is called in their order.
func (s *session) read(ctx context.Context, on func(*wireEvent)) error {
	for {
		m, err := s.receive(ctx)
		if err != nil {
			return err
		}
		switch {
		case m.of != nil:
			m.of.answer <- m
		case m.Event != nil:
			on(m.Event)
		}
		if m.size <= frameLimit { // a larger one was requested
			if err := s.pace.Wait(ctx, m.size); err != nil {
				return err
			}
		}
	}
}

func (s *session) receive(ctx context.Context) (m message, err error) {
	_, frame, err := s.conn.Reader(ctx)
	if err != nil {
		return m, err
	}
	defer s.frames.Add(1)
	err = adapter.ReadResponse(ctx, arriving{frame, s.conn}, s.limit(), func(data []byte) error {
		m.size = len(data)
		return s.decode(data, &m)
	})
	if errors.Is(err, adapter.ErrTooLarge) {
		err = errFrameLarge
	}
	return m, err
}

// limit returns the maximum size of the next frame in bytes.
func (s *session) limit() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := frameLimit
	for _, c := range s.pending {
		most = max(most, c.most)
	}
	return most
}

// decode decodes the relevant parts of a frame. It does not retain data.
func (s *session) decode(data []byte, m *message) error {
	if json.Unmarshal(data, &m.head) != nil {
		return errors.New("the gateway has sent a frame that is not as expected") // the frame may contain a PIN
	}
	var err error
	if m.of, err = s.matchCall(m.head, len(data)); err != nil {
		return err
	}
	switch {
	case m.Type == "event":
		var body struct {
			Event *wireEvent `json:"event"`
		}
		if json.Unmarshal(data, &body) != nil {
			return errors.New("the gateway has sent an event that is not as expected")
		}
		m.Event = body.Event
	case m.of != nil && m.of.out != nil && m.Success:
		body := struct {
			Result into `json:"result"`
		}{into{out: m.of.out}}
		m.unlike = json.Unmarshal(data, &body) != nil || !body.Result.met
	}
	return nil
}

// matchCall returns the call that a frame of size bytes answers, and removes it from the pending ones; nil if there
// is none. It fails if no call accepts that size.
func (s *session) matchCall(h head, size int) (*call, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var c *call
	if h.Type == "result" {
		c = s.pending[h.MessageID]
	}
	if size > frameLimit && (c == nil || !h.Success || size > c.most) {
		return nil, errFrameLarge
	}
	if c != nil {
		delete(s.pending, h.MessageID)
	}
	return c, nil
}

// abandon stops waiting for a response. It returns false if the response has arrived or none will, which the call
// receives.
func (s *session) abandon(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, waits := s.pending[id]
	delete(s.pending, id)
	return waits
}

// into decodes JSON into out.
type into struct {
	out any
	met bool // the value was present
}

// UnmarshalJSON implements json.Unmarshaler.
func (i *into) UnmarshalJSON(data []byte) error {
	i.met = true
	return json.Unmarshal(data, i.out)
}

// arriving is a frame that is being received. Close ends the connection.
type arriving struct {
	io.Reader
	conn *websocket.Conn
}

// Close implements io.Closer.
func (a arriving) Close() error { return a.conn.CloseNow() }
