package main

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// Who holds more connections than the server may have open files leaves enough of these for its database, locks and endpoints.
func TestClientsLeaveOpenFilesForAllElse(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.openFiles = 200
	h := p.hooked()
	h.answer.Store(http.StatusOK)
	http.DefaultClient.CloseIdleConnections()

	var gone atomic.Int32
	for place := range 6 {
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+place))}}
		for range 60 {
			c, err := from.DialContext(t.Context(), "tcp", strings.TrimPrefix(h.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			go func() {
				_, _ = io.Copy(io.Discard, c)
				gone.Add(1)
			}()
		}
	}
	h.until("most have given way", func() bool { return gone.Load() >= 260 })

	h.event()
	h.until("the endpoint is told", func() bool { return len(h.received()) > 0 })
	log, err := os.ReadFile(filepath.Join(p.dir, "server.log"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(log), "limit=200 connections=100") {
		t.Error("the log does not say that clients have fewer connections")
	}
	if strings.Contains(string(log), "too many open files") {
		t.Error("there were too few open files")
	}
}
