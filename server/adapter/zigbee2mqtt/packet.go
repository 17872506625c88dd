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
	// maxPacketSize is in bytes; the list of devices has some kilobytes per device.
	maxPacketSize = adapter.GatewayBurst
	// maxStateSize is the maximum size of a lock's state in bytes.
	maxStateSize = 256 << 10
	// maxObjects is per message; each takes some hundred bytes after decoding.
	maxObjects = 50_000
	// maxPropertiesSize is in bytes per message; each byte takes ten after decoding.
	maxPropertiesSize = 4096
	// maxWaiting is the maximum number of received messages that wait for processing.
	maxWaiting = 64
	// publication is the packet type PUBLISH (MQTT 5, section 2.1.2).
	publication = 3
)

// isValidPacket reports whether a message is within the limits.
func isValidPacket(payload []byte) bool {
	return len(payload) <= maxStateSize || bytes.Count(payload, []byte("{")) <= maxObjects
}

// limitedConn is a connection to a broker that fails when the broker announces a packet or properties that are too
// large (MQTT 5, section 2.1.4), because the client would allocate memory for them. A large message is received when
// the messages before it are processed and its memory is acquired.
type limitedConn struct {
	net.Conn
	rest  int // bytes that remain of the current packet
	size  int // of the packet whose header is being read
	shift int // of the next digit of size
	kind  byte
	begun bool
	head  head

	pace  adapter.GatewayLimiter // limits the packets
	open  context.Context        // ends when the connection is closed
	close func()
	idle  chan struct{} // receives when all messages are processed

	mu      sync.Mutex
	waiting int    // received messages that are not processed yet
	leave   func() // releases the memory of the large message, which is the first of these; nil if none is large
}

func limitConn(c net.Conn) *limitedConn {
	p := &limitedConn{Conn: c, pace: adapter.NewGatewayLimiter(), idle: make(chan struct{}, 1)}
	p.open, p.close = context.WithCancel(context.Background())
	return p
}

var errPacket = errors.New("the broker announces a packet, or properties of a packet, above the size limit")

// Read implements net.Conn.
func (p *limitedConn) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	for got := b[:n]; len(got) > 0; {
		switch {
		case p.rest > 0:
			skip := min(p.rest, len(got))
			if p.kind == publication && !p.head.parse(got[:skip]) {
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
			if p.size > maxPacketSize || p.shift > 28 || p.size > adapter.SmallResponse && p.kind != publication {
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
				if late := p.awaitMemory(); late != nil {
					return 0, late
				}
			}
		}
	}
	return n, err
}

// head parses the beginning of a message: the length of its topic, the topic, its packet identifier if any, and the
// length of its properties (MQTT 5, section 3.3.2).
type head struct {
	marked bool // the message has a packet identifier
	taken  int  // parsed bytes before the length of the properties
	before int  // total bytes before the length of the properties
	size   int  // of the properties
	shift  int  // of the next digit of size
	over   bool
}

// parse parses the next bytes, and reports whether the properties are within the limit.
func (h *head) parse(b []byte) bool {
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
			if h.size > maxPropertiesSize || h.shift > 28 {
				return false
			}
		}
	}
	return true
}

// awaitMemory waits until the message of p.size may be received. It fails when the connection is closed.
func (p *limitedConn) awaitMemory() error {
	if p.size <= adapter.SmallResponse {
		p.mu.Lock()
		p.waiting++
		p.mu.Unlock()
		return nil
	}
	for !p.hasSinglePacket() {
		select {
		case <-p.idle:
		case <-p.open.Done():
			return net.ErrClosed
		}
	}
	leave, err := adapter.AcquireMemory(p.open, p.size)
	if err != nil {
		return net.ErrClosed
	}
	late := time.AfterFunc(
		adapter.LargeResponseTimeout,
		func() { p.Close() }, //nolint:errcheck // the reader gets the error
	)
	once := sync.OnceFunc(func() { late.Stop(); leave() })
	closed := context.AfterFunc(p.open, once)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting++
	p.leave = func() { closed(); once() }
	return nil
}

func (p *limitedConn) hasSinglePacket() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting == 0
}

// processed records that the first waiting message has been processed.
func (p *limitedConn) processed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leave != nil {
		p.leave()
		p.leave = nil
	}
	if p.waiting--; p.waiting == 0 {
		select {
		case p.idle <- struct{}{}:
		default:
		}
	}
}

// Write implements net.Conn. It fails and closes the connection when the broker does not read. Otherwise the client
// would block forever, together with all other senders.
func (p *limitedConn) Write(b []byte) (int, error) {
	err := p.SetWriteDeadline(time.Now().Add(packetTimeout))
	n := 0
	if err == nil {
		n, err = p.Conn.Write(b)
	}
	if err != nil {
		p.Close() //nolint:errcheck // the other error is returned
	}
	return n, err
}

// Close implements net.Conn. It also ends the wait for memory.
func (p *limitedConn) Close() error {
	p.close()
	return p.Conn.Close()
}
