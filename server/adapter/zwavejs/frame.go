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
	networkLimit = 16 << 20 // bytes of the answer that is the whole network, about 40 kB for each node
	frameLimit   = 1 << 20  // of any other that is not in limits: an event tells of one node at most

	startListening = "start_listening"
)

// limits are how many bytes the answers to commands may have that are no other frame's.
var limits = map[string]int{
	startListening:                                networkLimit,
	"endpoint.access_control.get_users":           4 << 20, // some hundred bytes for each
	"endpoint.access_control.get_all_credentials": 4 << 20,
}

var errFrameLarge = errors.New("the gateway has sent a frame that is too large")

// call is a command that waits for its answer.
type call struct {
	out    any          // pointer to what the result is decoded into, before answer has it; nil: nowhere
	most   int          // bytes of the answer
	answer chan message // closed: none will come
}

// read takes in frames until the connection ends; on is called in their order.
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
		if m.size <= frameLimit { // otherwise it was asked for
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
	err = adapter.ReadAnswer(ctx, arriving{frame, s.conn}, s.limit(), func(data []byte) error {
		m.size = len(data)
		return s.decode(data, &m)
	})
	if errors.Is(err, adapter.ErrLarge) {
		err = errFrameLarge
	}
	return m, err
}

// limit is how many bytes the next frame may have.
func (s *session) limit() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := frameLimit
	for _, c := range s.pending {
		most = max(most, c.most)
	}
	return most
}

// decode takes in what is wanted of a frame. Nothing of data is kept, nor copied but for that.
func (s *session) decode(data []byte, m *message) error {
	if json.Unmarshal(data, &m.head) != nil {
		return errors.New("the gateway has sent a frame that is not as expected") // it may hold a PIN
	}
	var err error
	if m.of, err = s.whose(m.head, len(data)); err != nil {
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

// whose is the call that a frame of size bytes answers, which from then on waits for nothing else; nil: none that waits.
// It fails where nobody waits for so much.
func (s *session) whose(h head, size int) (*call, error) {
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

// forget has nobody wait for an answer; false: it has come, or none will, which the call is told.
func (s *session) forget(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, waits := s.pending[id]
	delete(s.pending, id)
	return waits
}

// into is JSON that is decoded into out.
type into struct {
	out any
	met bool
}

func (i *into) UnmarshalJSON(data []byte) error {
	i.met = true
	return json.Unmarshal(data, i.out)
}

// arriving is a frame. To close it ends the connection.
type arriving struct {
	io.Reader
	conn *websocket.Conn
}

func (a arriving) Close() error { return a.conn.CloseNow() }
