package adaptertest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// LargeResponseWaits reports whether a large response would have to wait for another one now.
func LargeResponseWaits(t *testing.T) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w := io.Pipe()
	defer r.Close() //nolint:errcheck // of a pipe
	go func() {
		// After these bytes the response counts as large.
		io.WriteString(w, strings.Repeat("a", 1<<20+1)) //nolint:errcheck // the reader shows the outcome
		cancel()
		w.Close() //nolint:errcheck // of a pipe
	}()
	err := adapter.ReadResponse(ctx, r, 8<<20, func([]byte) error { return nil })
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	return err != nil
}

// Saturated returns a client whose responses fail with adapter.ErrSaturated.
func Saturated() *http.Client { return &http.Client{Transport: saturated{}} }

type saturated struct{}

func (saturated) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(iotest.ErrReader(adapter.ErrSaturated))}, nil
}
