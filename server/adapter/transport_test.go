package adapter

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// HTTP/2 announces the receive windows when a connection starts. The default of net/http is 4 MiB per response,
// beyond all limits of responses being read.
func TestHTTP2ReceiveWindows(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	trust := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	l, err := tls.Listen("tcp", "127.0.0.1:0",
		&tls.Config{Certificates: server.TLS.Certificates, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	told := make(chan map[uint16]uint32, 1)
	go func() {
		defer close(told)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		begin := make([]byte, 24+9) // the preface and the header of the SETTINGS frame
		if _, err := io.ReadFull(c, begin); err != nil {
			return
		}
		frame := begin[24:]
		settings := make([]byte, int(frame[0])<<16|int(frame[1])<<8|int(frame[2]))
		if _, err := io.ReadFull(c, settings); err != nil {
			return
		}
		all := map[uint16]uint32{}
		for ; len(settings) >= 6; settings = settings[6:] {
			all[binary.BigEndian.Uint16(settings)] = binary.BigEndian.Uint32(settings[2:])
		}
		told <- all
	}()
	transport := NewTransport()
	defer transport.CloseIdleConnections()
	transport.TLSClientConfig = &tls.Config{RootCAs: trust}
	client := &http.Client{Transport: transport, Timeout: 30 * time.Second}
	if res, err := client.Get("https://" + l.Addr().String()); err == nil {
		res.Body.Close()
	}
	const maxFrameSize, initialWindowSize = 5, 4 // RFC 9113 section 6.5.2
	got, ok := <-told
	if !ok || got[maxFrameSize] != 16<<10 || got[initialWindowSize] != 256<<10 {
		t.Errorf("the announced settings are %v", got)
	}
}
