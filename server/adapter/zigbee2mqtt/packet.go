package zigbee2mqtt

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

const (
	mostPacket     = adapter.GatewayBurst // bytes of a packet: the list of devices has some kilobytes for each
	mostState      = 256 << 10            // of what a lock publishes
	mostObjects    = 50_000               // of a message: each takes some hundred bytes once it is read
	mostProperties = 4096                 // of a message: each byte takes ten
	mostWaiting    = 64                   // messages that are received before they are taken in
	publication    = 3                    // the kind of packet that is a message (MQTT 5, section 2.1.2)
)

// sane says whether a message is worth reading.
func sane(payload []byte) bool {
	return len(payload) <= mostState || bytes.Count(payload, []byte("{")) <= mostObjects
}

// measured is a connection to a broker that ends where it announces a packet, or properties, that are too large (MQTT 5,
// section 2.1.4): the client would make room for them. A large message is received once those before it have been taken
// in, and there is room beside the large ones of others.
type measured struct {
	net.Conn
	rest  int // of the packet that is being received
	size  int // that is being read
	shift int // of the next digit of size
	kind  byte
	begun bool
	head  head

	pace  adapter.Pace    // of packets
	open  context.Context // until the connection is closed
	close func()
	idle  chan struct{} // is sent to when nothing is left to take in

	mu      sync.Mutex
	waiting int    // messages that are received, and not taken in yet
	leave   func() // gives up the room of the large one, which is the first of these; nil: none is large
}

func measure(c net.Conn) *measured {
	p := &measured{Conn: c, pace: adapter.NewPace(), idle: make(chan struct{}, 1)}
	p.open, p.close = context.WithCancel(context.Background())
	return p
}

var errPacket = errors.New("the broker announces a packet, or properties of one, that are larger than any should be")

func (p *measured) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	for got := b[:n]; len(got) > 0; {
		switch {
		case p.rest > 0:
			skip := min(p.rest, len(got))
			if p.kind == publication && !p.head.take(got[:skip]) {
				return 0, errPacket
			}
			p.rest, got = p.rest-skip, got[skip:]
		case !p.begun:
			p.begun, p.size, p.shift, p.kind, p.head, got = true, 0, 0, got[0]>>4, head{marked: got[0]&6 != 0}, got[1:]
		default:
			p.size |= int(got[0]&0x7f) << p.shift
			p.shift += 7
			more := got[0]&0x80 != 0
			got = got[1:]
			if p.size > mostPacket || p.shift > 28 || p.size > adapter.SmallAnswer && p.kind != publication {
				return 0, errPacket
			}
			if more {
				continue
			}
			p.begun, p.rest = false, p.size
			if p.pace.Wait(p.open, p.size) != nil {
				return 0, net.ErrClosed
			}
			if p.kind == publication {
				if late := p.announced(); late != nil {
					return 0, late
				}
			}
		}
	}
	return n, err
}

// head is the beginning of a message: the length of its topic and the topic, its number where it has one, and the length
// of its properties (MQTT 5, section 3.3.2).
type head struct {
	marked bool // it has a number
	taken  int  // bytes, before that length
	before int  // of all that is before that length
	size   int  // of the properties
	shift  int  // of the next digit of size
	over   bool
}

// take takes in what comes next, and says whether the properties are as few as they may be.
func (h *head) take(b []byte) bool {
	for len(b) > 0 && !h.over {
		switch {
		case h.taken < 2:
			h.before = h.before<<8 | int(b[0])
			h.taken, b = h.taken+1, b[1:]
			if h.taken == 2 {
				h.before += 2
				if h.marked {
					h.before += 2
				}
			}
		case h.taken < h.before:
			skip := min(h.before-h.taken, len(b))
			h.taken, b = h.taken+skip, b[skip:]
		default:
			h.size |= int(b[0]&0x7f) << h.shift
			h.shift += 7
			h.over, b = b[0]&0x80 == 0, b[1:]
			if h.size > mostProperties || h.shift > 28 {
				return false
			}
		}
	}
	return true
}

// announced waits until the message of p.size may be received. It fails when the connection is closed.
func (p *measured) announced() error {
	if p.size <= adapter.SmallAnswer {
		p.mu.Lock()
		p.waiting++
		p.mu.Unlock()
		return nil
	}
	for !p.alone() {
		select {
		case <-p.idle:
		case <-p.open.Done():
			return net.ErrClosed
		}
	}
	leave, err := adapter.Room(p.open, p.size)
	if err != nil {
		return net.ErrClosed
	}
	late := time.AfterFunc(adapter.LargeWithin, func() { p.Close() }) //nolint:errcheck // whoever reads is told
	once := sync.OnceFunc(func() { late.Stop(); leave() })
	closed := context.AfterFunc(p.open, once)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting++
	p.leave = func() { closed(); once() }
	return nil
}

func (p *measured) alone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting == 0
}

// taken says that the first message that waited has been taken in.
func (p *measured) taken() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leave != nil {
		p.leave()
		p.leave = nil
	}
	if p.waiting--; p.waiting == 0 {
		select {
		case p.idle <- struct{}{}:
		default: // it has been told already
		}
	}
}

// Write fails, and ends the connection, where the broker does not read: the client would wait for ever, with all who
// have something to send.
func (p *measured) Write(b []byte) (int, error) {
	err := p.SetWriteDeadline(time.Now().Add(packetWithin))
	n := 0
	if err == nil {
		n, err = p.Conn.Write(b)
	}
	if err != nil {
		p.Close() //nolint:errcheck // the other error is told
	}
	return n, err
}

// Close also lets go whoever waits to receive something large.
func (p *measured) Close() error {
	p.close()
	return p.Conn.Close()
}
