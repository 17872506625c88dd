package admission

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// Connections with TLS have the limits of others, with HTTP/1.1 and with HTTP/2.
func TestServe_FollowsConnectionsWithTLS(t *testing.T) {
	t.Parallel()
	certified := httptest.NewTLSServer(nil)
	defer certified.Close()
	c := New(Limits{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{ReadHeaderTimeout: time.Minute, TLSConfig: certified.TLS.Clone()}
	s.TLSConfig.NextProtos = nil // those of the other server
	s.Handler = c.Limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if n, _ := r.Context().Value(connKey{}).(*conn); n == nil || n.state.Load() == waiting {
			t.Errorf("%s: the connection is not followed: %+v", r.Proto, n)
		}
	}))
	done := make(chan error, 1)
	go func() { done <- c.Serve(s, listener) }()
	for _, major := range []int{1, 2} {
		transport, _ := certified.Client().Transport.(*http.Transport)
		transport = transport.Clone()
		transport.ForceAttemptHTTP2 = major == 2
		if transport.TLSClientConfig.NextProtos = nil; major == 1 {
			transport.TLSClientConfig.NextProtos = []string{"http/1.1"}
		}
		client := &http.Client{Transport: transport}
		res, err := client.Get("https://" + listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil || res.Body.Close() != nil || res.ProtoMajor != major {
			t.Errorf("%s instead of HTTP/%d: %v", res.Proto, major, err)
		}
		client.CloseIdleConnections()
	}
	s.Close()
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}
