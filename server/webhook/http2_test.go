package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

const ( // RFC 9113, section 6
	framePing, frameSettings, frameWindow = 6, 4, 8

	settingWindow, settingFrame = 4, 5
)

type frame struct {
	kind, flags byte
	payload     []byte
}

func readFrame(from io.Reader) (f frame, err error) {
	head := make([]byte, 9)
	if _, err := io.ReadFull(from, head); err != nil {
		return f, err
	}
	f = frame{head[3], head[4], make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))}
	_, err = io.ReadFull(from, f.payload)
	return f, err
}

// speak sends a request to an endpoint whose HTTP/2 connection serve handles after the preface.
func speak(t *testing.T, serve func(net.Conn)) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.EnableHTTP2 = true
	s.StartTLS() // for its certificate
	defer s.Close()
	listener, err := tls.Listen("tcp", "127.0.0.1:0",
		&tls.Config{Certificates: s.TLS.Certificates, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		conn, err := listener.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		if _, err := io.ReadFull(conn, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
			t.Error(err)
			return
		}
		if _, err := conn.Write([]byte{0, 0, 0, frameSettings, 0, 0, 0, 0, 0}); err != nil {
			t.Error(err)
			return
		}
		serve(conn)
	}()
	client := newClient([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, nil)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: roots}
	if res, err := client.Get("https://" + listener.Addr().String()); err == nil {
		t.Errorf("response %s", res.Status)
	}
	_ = listener.Close()
	<-served
}

// An HTTP/2 connection uses about as much memory as one of HTTP/1.1.
func TestHTTP2_UsesLittleMemory(t *testing.T) {
	t.Parallel()
	speak(t, func(conn net.Conn) {
		told := map[uint16]uint32{}
		var window uint32
		for len(told) == 0 || window == 0 {
			f, err := readFrame(conn)
			if err != nil {
				t.Error(err)
				return
			}
			switch f.kind {
			case frameSettings:
				for p := f.payload; len(p) >= 6; p = p[6:] {
					told[binary.BigEndian.Uint16(p)] = binary.BigEndian.Uint32(p[2:])
				}
			case frameWindow:
				window = binary.BigEndian.Uint32(f.payload)
			}
		}
		if told[settingFrame] > 16<<10 || told[settingWindow] > 16<<10 || window > 64<<10 {
			t.Errorf("frames of %d bytes, %d per response, %d per connection", told[settingFrame],
				told[settingWindow], window)
		}
		// An announced larger response gets no larger window.
		if _, err := conn.Write([]byte{1 << 4, 0, 0, 0, 0, 0, 0, 0, 1}); err != nil {
			t.Error(err)
		}
		for {
			if _, err := readFrame(conn); err != nil {
				break // closed
			}
		}
	})
}

// A dead connection does not receive requests forever.
func TestHTTP2_DeadConnectionIsClosed(t *testing.T) {
	t.Parallel()
	speak(t, func(conn net.Conn) {
		_ = conn.SetReadDeadline(time.Now().Add(testenv.Timeout(testenv.WaitTimeout)))
		pinged := false
		for {
			f, err := readFrame(conn)
			if err != nil {
				if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() || !pinged {
					t.Errorf("the connection is kept; pinged: %v", pinged)
				}
				return
			}
			pinged = pinged || f.kind == framePing
		}
	})
}
