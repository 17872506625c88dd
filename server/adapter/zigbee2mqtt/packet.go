package zigbee2mqtt

import (
	"bytes"
	"errors"
	"net"
)

const (
	mostPacket  = 8 << 20   // bytes of a packet: the list of devices has some kilobytes for each
	mostState   = 256 << 10 // of what a lock publishes
	mostObjects = 50_000    // of a message: each takes some hundred bytes once it is read
)

// sane says whether a message is worth reading.
func sane(payload []byte) bool {
	return len(payload) <= mostState || bytes.Count(payload, []byte("{")) <= mostObjects
}

// measured is a connection to a broker that ends where it announces a packet that is too large (MQTT 5, section 2.1.4):
// the client would make room for it.
type measured struct {
	net.Conn
	rest  int // of the packet that is being received
	size  int // that is being read
	shift int // of the next digit of size
	begun bool
}

var errPacket = errors.New("the broker announces a packet that is larger than any should be")

func (p *measured) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	for got := b[:n]; len(got) > 0; {
		switch {
		case p.rest > 0:
			skip := min(p.rest, len(got))
			p.rest, got = p.rest-skip, got[skip:]
		case !p.begun:
			p.begun, p.size, p.shift, got = true, 0, 0, got[1:]
		default:
			p.size |= int(got[0]&0x7f) << p.shift
			p.shift += 7
			more := got[0]&0x80 != 0
			got = got[1:]
			if p.size > mostPacket || p.shift > 28 {
				return 0, errPacket
			}
			if !more {
				p.begun, p.rest = false, p.size
			}
		}
	}
	return n, err
}
