package api

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// Go's own limits on how long a connection or an answer may take are told by errors that say they are
// context.DeadlineExceeded.
func TestTransportTimeouts(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	mute := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-release
	}))
	t.Cleanup(mute.Close)
	t.Cleanup(func() { close(release) })
	silent := newTransport()
	silent.ResponseHeaderTimeout = 50 * time.Millisecond
	unreachable := newTransport()
	unreachable.DialContext = (&net.Dialer{Timeout: time.Nanosecond}).DialContext
	for name, c := range map[string]struct {
		way          *http.Transport
		within       time.Duration
		notConnected bool
		badAnswer    bool
		ended        bool
	}{
		"server unreachable":    {way: unreachable, within: testenv.Timeout(testenv.WaitTimeout), notConnected: true},
		"server silent":         {way: silent, within: testenv.Timeout(testenv.WaitTimeout), badAnswer: true},
		"the context has ended": {way: newTransport(), within: 50 * time.Millisecond, ended: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), c.within)
			defer cancel()
			err := read(ctx, clientOf(t, mute.URL, c.way))
			ended := errors.Is(err, context.DeadlineExceeded)
			if err == nil || IsNotConnected(err) != c.notConnected || IsBadResponse(err) != c.badAnswer ||
				ended != c.ended {
				t.Errorf(
					"not connected %v, bad answer %v, ended %v: %v",
					IsNotConnected(err),
					IsBadResponse(err),
					ended,
					err,
				)
			}
		})
	}
}
