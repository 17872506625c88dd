package adapter_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// waits says whether a large answer has to wait for others.
func waits(t *testing.T) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w := io.Pipe()
	go func() {
		io.WriteString(w, strings.Repeat("a", 1<<20+1))
		cancel()
		io.WriteString(w, "a")
		w.Close()
	}()
	err := adapter.ReadAnswer(ctx, r, 8<<20, func([]byte) error { return nil })
	r.Close()
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	return err != nil
}

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
	if !waits(t) {
		t.Error("another is read meanwhile")
	}
	read(held)
	if err := adapter.MaySend(held); err != nil {
		t.Error(err)
	}
	if waits(t) {
		t.Error("it is held while something else is asked")
	}
	read(held)
	if !waits(t) {
		t.Error("the answer to that is not held")
	}
	release()
	release()
	if waits(t) {
		t.Error("it is held for ever")
	}
	read(held) // after the end it holds nothing
	if waits(t) {
		t.Error("it is held after its end")
	}
}
