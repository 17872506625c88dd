package app

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// An HTTP/2 connection announces small receive windows, because admission control does not count unread bodies in them.
// The defaults of net/http are 1 MiB for a request and for a connection.
func TestHTTPServer_ReceiveWindows(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(nil)
	s.Config = newHTTP(slog.New(slog.DiscardHandler))
	s.Config.Handler = http.NotFoundHandler()
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	config := s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos = []string{"h2"}
	conn, err := tls.Dial("tcp", s.Listener.Addr().String(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(testenv.Timeout(time.Minute))); err != nil {
		t.Fatal(err)
	}
	// RFC 9113, sections 3.4, 4.1, and 6.5 to 6.9.
	const settings, ping, windowUpdate, initialWindowSize, ack = 4, 6, 8, 4, 1
	const begin = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" +
		"\x00\x00\x00\x04\x00\x00\x00\x00\x00" + // settings
		"\x00\x00\x08\x06\x00\x00\x00\x00\x00" + "12345678" // ping
	if _, err := io.WriteString(conn, begin); err != nil {
		t.Fatal(err)
	}
	request, connection := uint32(65535), uint32(65535)
	for answered := false; !answered; {
		head := make([]byte, 9)
		if _, err := io.ReadFull(conn, head); err != nil {
			t.Fatal(err)
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(conn, payload); err != nil {
			t.Fatal(err)
		}
		switch {
		case head[3] == ping:
			answered = true
		case head[3] == settings && head[4]&ack == 0:
			for ; len(payload) >= 6; payload = payload[6:] {
				if binary.BigEndian.Uint16(payload) == initialWindowSize {
					request = binary.BigEndian.Uint32(payload[2:])
				}
			}
		case head[3] == windowUpdate && binary.BigEndian.Uint32(head[5:]) == 0:
			connection += binary.BigEndian.Uint32(payload)
		}
	}
	if request != 64<<10 || connection > 64<<10 {
		t.Errorf("the windows are %d bytes of a request and %d of a connection, want 64 KiB", request, connection)
	}
}
