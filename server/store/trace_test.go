package store_test

import (
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces/tracestest"
)

// The trace of a request that opens a connection has the statement that sets it up.
func TestWhatSetsUpAConnectionHasAName(t *testing.T) {
	t.Parallel()
	received := tracestest.New(t)
	spans, err := traces.New(t.Context(), received.Options(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), storetest.New(t), 2, store.WithTracing)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	request := spans.Request(t.Context(), nil, time.Now(), http.MethodPost, "/devices/list")
	for range 2 {
		conn, err := db.Pool.Acquire(request.NewContext(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
	}
	request.End()
	if err := spans.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if told := received.Spans(tracestest.With("db.operation.name", "SetUpConnection")); len(told) == 0 {
		t.Errorf("the trace has %+v", received.Spans())
	}
}
