package zwavejs

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
)

// A gateway that sends floods of small frames must not occupy the server.
func TestFramesAreRateLimited(t *testing.T) {
	t.Parallel()
	text := func(s string) string { return string([]byte{0x81, byte(len(s))}) + s } // RFC 6455, section 5.2
	for name, frame := range map[string]string{
		"events": text(`{"type":"event","event":{}}`), "pings": "\x89\x00",
		"pongs": "\x8a\x00",
	} {
		synctest.Test(t, func(t *testing.T) {
			const atOnce, aSecond = 32768, 4096 // frames of at least 256 bytes
			ours, theirs := net.Pipe()
			server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				conn, err := websocket.Accept(w, r, nil)
				if err != nil {
					return
				}
				go conn.Read(context.WithoutCancel(r.Context())) // reads pongs
				io.WriteString(theirs, text(`{"type":"version","maxSchemaVersion":44}`))
				for range atOnce + 2*aSecond {
					io.WriteString(theirs, frame)
				}
				io.WriteString(theirs, text(`{"type":"event","event":{"event":"last"}}`))
			})}
			go server.Serve(&listening{conn: theirs, closed: make(chan struct{})})
			defer server.Close()
			s, err := gateway{
				url: "ws://gateway",
				http: &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string,
					string,
				) (net.Conn, error) {
					return ours, nil
				}}},
			}.dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			_ = s.read(t.Context(), func(e *wireEvent) {
				if e.Name == "last" {
					if took := time.Since(begin).Round(10 * time.Millisecond); took != 2*time.Second {
						t.Errorf("%d %s are processed after %s, want 2 s", atOnce+2*aSecond, name, took)
					}
					_ = s.conn.CloseNow()
				}
			})
		})
	}
}

// listening has one connection.
type listening struct {
	conn   net.Conn
	closed chan struct{}
}

func (l *listening) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *listening) Close() error   { close(l.closed); return nil }
func (l *listening) Addr() net.Addr { return &net.UnixAddr{} }
