package zigbee2mqtt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
)

// said is a connection on which something was received, a few bytes at a time.
type said struct {
	net.Conn
	*bytes.Reader
	atOnce int
}

func (s said) Read(b []byte) (int, error) { return s.Reader.Read(b[:min(len(b), s.atOnce)]) }

func packet(size int) []byte {
	return append(binary.AppendUvarint([]byte{0x30}, uint64(size)), make([]byte, size)...)
}

func TestPacketsThatAreTooLargeEndTheConnection(t *testing.T) {
	t.Parallel()
	good := bytes.Join([][]byte{packet(0), packet(1), packet(127), packet(128), packet(20_000), packet(0)}, nil)
	for _, atOnce := range []int{1, 2, 3, 1 << 20} {
		if got, err := io.ReadAll(&measured{Conn: said{nil, bytes.NewReader(good), atOnce}}); err != nil || !bytes.Equal(got, good) {
			t.Errorf("%d at once: %d bytes of %d, %v", atOnce, len(got), len(good), err)
		}
		for _, bad := range [][]byte{{0x30, 0xff, 0xff, 0xff, 0x7f}, {0x30, 0x80, 0x80, 0x80, 0x80, 0x80}, binary.AppendUvarint([]byte{0x30}, mostPacket+1)} {
			if _, err := io.ReadAll(&measured{Conn: said{nil, bytes.NewReader(append(packet(5), bad...)), atOnce}}); !errors.Is(err, errPacket) {
				t.Errorf("%d at once, % x: %v", atOnce, bad, err)
			}
		}
	}
}
