package adapter_test

import (
	"context"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
)

// What was read of one keeps the others waiting until it is taken in, but not whatever else is asked for meanwhile.
func TestALargeAnswerKeepsItsRoomUntilItIsTakenIn(t *testing.T) { //nolint:paralleltest // the others are not to hold it
	read := func(ctx context.Context) {
		t.Helper()
		if err := adapter.ReadAnswer(ctx, strings.NewReader(strings.Repeat("a", 2<<20)), 8<<20, func([]byte) error { return nil }); err != nil {
			t.Error(err)
		}
	}
	held, release := adapter.Hold(t.Context())
	read(held)
	if !adaptertest.LargeAnswerWaits(t) {
		t.Error("another is read meanwhile")
	}
	read(held)
	if err := adapter.MaySend(held); err != nil {
		t.Error(err)
	}
	if adaptertest.LargeAnswerWaits(t) {
		t.Error("it is held while something else is asked")
	}
	read(held)
	if !adaptertest.LargeAnswerWaits(t) {
		t.Error("the answer to that is not held")
	}
	release()
	release()
	if adaptertest.LargeAnswerWaits(t) {
		t.Error("it is held for ever")
	}
	read(held) // after the end it holds nothing
	if adaptertest.LargeAnswerWaits(t) {
		t.Error("it is held after its end")
	}
}
