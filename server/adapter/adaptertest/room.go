package adaptertest

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// LargeAnswerWaits says whether a large answer that comes now has to wait for another.
func LargeAnswerWaits(t *testing.T) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w := io.Pipe()
	defer r.Close() //nolint:errcheck // of a pipe
	go func() {
		io.WriteString(w, strings.Repeat("a", 1<<20+1)) //nolint:errcheck // it is known to be large then, and the reader shows the rest
		cancel()
		w.Close() //nolint:errcheck // of a pipe
	}()
	err := adapter.ReadAnswer(ctx, r, 8<<20, func([]byte) error { return nil })
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	return err != nil
}
