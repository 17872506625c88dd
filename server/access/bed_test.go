package access

import (
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// withWorkspace is a service on its own database with a sandbox workspace.
func withWorkspace(t *testing.T, name string, options ...store.Option) (*Service, Workspace) {
	t.Helper()
	db, err := store.Open(t.Context(), storetest.New(t), 4, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	keys, err := encryption.New(encryption.NewMaster())
	if err != nil {
		t.Fatal(err)
	}
	waker, err := worker.NewWaker(db)
	if err != nil {
		t.Fatal(err)
	}
	s := New(db, keys, waker, Options{})
	w, err := s.CreateWorkspace(t.Context(), name, "", true)
	if err != nil {
		t.Fatal(err)
	}
	return s, w
}
