package adapter_test

import (
	"context"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
)

// A large response blocks others until it is stored, but not while something else is requested.
func TestMemoryPermit_HoldsUntilRelease(t *testing.T) { //nolint:paralleltest // other tests must not hold the semaphore
	read := func(ctx context.Context) {
		t.Helper()
		if err := adapter.ReadResponse(ctx, strings.NewReader(strings.Repeat("a", 2<<20)), 8<<20,
			func([]byte) error { return nil }); err != nil {
			t.Error(err)
		}
	}
	held, release := adapter.WithMemoryPermit(t.Context())
	read(held)
	if !adaptertest.LargeResponseWaits(t) {
		t.Error("another large response is read meanwhile")
	}
	read(held)
	if err := adapter.MaySend(held); err != nil {
		t.Error(err)
	}
	if adaptertest.LargeResponseWaits(t) {
		t.Error("the permit is held during another request")
	}
	read(held)
	if !adaptertest.LargeResponseWaits(t) {
		t.Error("the response to the other request is not held")
	}
	release()
	release()
	if adaptertest.LargeResponseWaits(t) {
		t.Error("the permit is held after release")
	}
	read(held) // a released permit holds nothing
	if adaptertest.LargeResponseWaits(t) {
		t.Error("the released permit holds a response")
	}
}
