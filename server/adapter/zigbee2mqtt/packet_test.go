package zigbee2mqtt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// coordinators is a connection that receives data, a few bytes at a time.
type said struct {
	net.Conn
	*bytes.Reader
	atOnce int
}

func (s said) Read(b []byte) (int, error) { return s.Reader.Read(b[:min(len(b), s.atOnce)]) }

func packet(size int) []byte {
	return append(binary.AppendUvarint([]byte{0x30}, uint64(size)), make([]byte, size)...)
}

func TestTooLargePacketsEndTheConnection(t *testing.T) {
	t.Parallel()
	good := bytes.Join([][]byte{packet(0), packet(1), packet(127), packet(128), packet(20_000), packet(0)}, nil)
	for _, atOnce := range []int{1, 2, 3, 1 << 20} {
		if got, err := io.ReadAll(limitConn(said{nil, bytes.NewReader(good), atOnce})); err != nil ||
			!bytes.Equal(got, good) {
			t.Errorf("%d at once: %d bytes of %d, %v", atOnce, len(got), len(good), err)
		}
		for _, bad := range [][]byte{
			binary.AppendUvarint([]byte{0x40}, adapter.SmallResponse+1),
			{0x30, 0xff, 0xff, 0xff, 0x7f},
			{0x30, 0x80, 0x80, 0x80, 0x80, 0x80},
			binary.AppendUvarint([]byte{0x30}, maxPacketSize+1),
		} {
			if _, err := io.ReadAll(limitConn(said{
				nil, bytes.NewReader(append(packet(5), bad...)),
				atOnce,
			})); !errors.Is(err, errPacket) {
				t.Errorf("%d at once, % x: %v", atOnce, bad, err)
			}
		}
	}
}

// published is a message of a broker, with the given length of its properties.
func published(qos byte, topic int, says []byte, rest int) []byte {
	body := append([]byte{byte(topic >> 8), byte(topic)}, bytes.Repeat([]byte{0x80}, topic)...)
	if qos > 0 {
		body = append(body, 0xff, 0xff)
	}
	body = append(append(body, says...), make([]byte, rest)...)
	return append(binary.AppendUvarint([]byte{0x30 | qos<<1}, uint64(len(body))), body...)
}

// Each property takes far more memory than its five bytes in the message.
func TestTooManyPropertiesEndTheConnection(t *testing.T) {
	t.Parallel()
	long := func(size int) []byte { return binary.AppendUvarint(nil, uint64(size)) }
	good := []byte{0x30, 0, 0x30, 1, 0, 0x32, 3, 0, 1, 0x80, 0xd0, 0} // truncated ones are rejected by the client
	var bad [][]byte
	for qos := range byte(3) {
		for _, topic := range []int{0, 1, 200, 60_000} {
			for _, size := range []int{0, 1, 127, 128, maxPropertiesSize} {
				good = append(good, published(qos, topic, long(size), size+3)...)
			}
			for _, says := range [][]byte{
				long(maxPropertiesSize + 1), long(1_000_000),
				{0xff, 0xff, 0xff, 0x7f},
				{0x80, 0x80, 0x80, 0x80, 0},
			} {
				bad = append(bad, published(qos, topic, says, 10))
			}
		}
	}
	for _, atOnce := range []int{1, 2, 3, 7, 1 << 20} {
		if got, err := io.ReadAll(limitConn(said{nil, bytes.NewReader(good), atOnce})); err != nil ||
			!bytes.Equal(got, good) {
			t.Errorf("%d at once: %d bytes of %d, %v", atOnce, len(got), len(good), err)
		}
		for _, message := range bad {
			if _, err := io.ReadAll(limitConn(said{
				nil,
				bytes.NewReader(append(published(1, 5, []byte{10}, 20), message...)), atOnce,
			})); !errors.Is(err,
				errPacket) {
				t.Errorf("%d at once, % x: %v", atOnce, message[:8], err)
			}
		}
	}
}

// The client would store all messages that arrive faster than they are processed.
func TestLargeMessageWaitsForProcessing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		p := limitConn(ours)
		defer p.Close()
		go func() {
			for _, size := range []int{10, 100_000, 100_000, 10} {
				theirs.Write(packet(size))
			}
		}()
		var got atomic.Int32
		go func() {
			for {
				if _, err := packets.ReadPacket(p); err != nil {
					return
				}
				got.Add(1)
			}
		}()
		for n, want := range []int32{1, 2, 4, 4, 4} { // the small message after the last large one waits for nothing
			synctest.Wait()
			if got.Load() != want {
				t.Errorf("%d messages are received after %d are processed, want %d", got.Load(), n, want)
			}
			if n < 4 {
				p.processed()
			}
		}
	})
}

// A peer that announces much and sends little, or disconnects, must not block others.
func TestMissingLargeMessageReleasesMemory(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*limitedConn){
		"it is " +
			"late": func(*limitedConn) { time.Sleep(2 * adapter.LargeResponseTimeout) },
		"it is closed": func(p *limitedConn) { p.Close() },
	} {
		synctest.Test(t, func(t *testing.T) {
			ours, theirs := net.Pipe()
			defer theirs.Close()
			p := limitConn(ours)
			go theirs.Write(packet(2 << 20)[:1000])
			read := make(chan error)
			go func() { _, err := packets.ReadPacket(p); read <- err }()
			synctest.Wait()
			end(p)
			if err := <-read; err == nil {
				t.Errorf("%s: a packet is read", name)
			}
			leave, err := adapter.AcquireMemory(t.Context(), 2<<20)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			leave()
		})
	}
}

// A gateway that sends its network repeatedly, or floods of small messages, must not occupy the server.
func TestPacketsAreRateLimited(t *testing.T) {
	t.Parallel()
	for size, aSecond := range map[int]int{1 << 20: 1, 100: 4096} {
		synctest.Test(t, func(t *testing.T) {
			ours, theirs := net.Pipe()
			defer theirs.Close()
			p := limitConn(ours)
			defer p.Close()
			go func() {
				for message := packet(size); ; {
					if _, err := theirs.Write(message); err != nil {
						return
					}
				}
			}()
			begin := time.Now()
			for n := range 16 * aSecond {
				if _, err := packets.ReadPacket(p); err != nil {
					t.Fatal(err)
				}
				p.processed()
				atOnce := 8 * aSecond
				if got, want := time.Since(begin).Round(10*time.Millisecond),
					time.Duration(n+1-atOnce)*time.Second/time.Duration(aSecond); n+1 <= atOnce && got != 0 ||
					(n+1)%aSecond == 0 && got != max(want, 0) {
					t.Fatalf("message %d of %d bytes is received after %s, want %s", n, size, got, want)
				}
			}
		})
	}
}

// The client writes with its locks held.
func TestWriteToBlockedBrokerTimesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		p := limitConn(ours)
		begin := time.Now()
		if _, err := p.Write([]byte{0xc0, 0}); err == nil || time.Since(begin) > packetTimeout {
			t.Errorf("%v after %s", err, time.Since(begin))
		}
		if _, err := theirs.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the connection continues: %v", err)
		}
	})
}
