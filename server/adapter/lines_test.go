package adapter_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

func TestLines_OneCallAtATime(t *testing.T) {
	t.Parallel()
	var lines adapter.Lines
	var busy atomic.Int32
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			release, err := lines.Hold(t.Context(), "gateway 1")
			if err != nil || busy.Add(1) != 1 {
				t.Error("two calls on one line", err)
				return
			}
			busy.Add(-1)
			release()
			release() // has no further effect
		})
	}
	all.Wait()
	release, err := lines.Hold(t.Context(), "gateway 1")
	if err != nil {
		t.Fatal(err)
	}
	other, err := lines.Hold(t.Context(), "gateway 2")
	if err != nil {
		t.Fatal(err)
	}
	other()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = lines.Hold(ended, "gateway 1")
	if adapter.ClassOf(err) != adapter.Transient ||
		!errors.Is(err, adapter.ErrNotSent) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	release()
	if release, err = lines.Hold(t.Context(), "gateway 1"); err != nil {
		t.Fatal(err)
	}
	release()
}
