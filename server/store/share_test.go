package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// Background work never uses all connections, and returns those that it takes.
func TestSharedWorkLeavesConnectionsToOthers(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), storetest.New(t), 8)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	work := db.Sharing(t.Context())
	begun, end, done := make(chan struct{}, 10), make(chan struct{}), make(chan error, 10)
	for range 10 {
		go func() {
			done <- db.InTx(work, func(store.Tx) error {
				begun <- struct{}{}
				<-end
				return nil
			})
		}()
	}
	<-begun
	<-begun
	for range 6 { // as many as are left
		err := db.InTx(t.Context(), func(store.Tx) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := db.Pool.Stat().AcquiredConns(); n != 2 {
		t.Errorf("the work has %d connections of 8", n)
	}
	late, cancel := context.WithCancel(work)
	cancel()
	if _, err := db.GetWorkspace(late, uuid.New()); !errors.Is(err, context.Canceled) {
		t.Errorf("one more: %v", err)
	}
	if _, err := db.GetWorkspace(store.Unshared(work), uuid.New()); !store.IsNoRows(err) {
		t.Errorf("what must not wait for the rest: %v", err)
	}
	part := db.Part(2)
	waiting, giveUp := context.WithTimeout(part.Of(work), 10*time.Millisecond)
	defer giveUp()
	if _, err := db.GetWorkspace(waiting, uuid.New()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a part of what is taken: %v", err)
	}
	if len(part) != 0 {
		t.Error("a caller whose wait failed keeps a slot")
	}
	close(end)
	for range 10 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for range 10 { // whatever became of a query, its part is given back
		if _, err := db.GetWorkspace(work, uuid.New()); !store.IsNoRows(err) {
			t.Fatal(err)
		}
		if _, err := db.ListAllWorkspaces(work); err != nil {
			t.Fatal(err)
		}
	}
}
