package device

import (
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/idempotency"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/keyrotation"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

func TestMain(m *testing.M) { storetest.Main(m, store.Migrate, store.MigrationsVersion()) }

// withWorkspace is a service on its own database with a sandbox workspace.
func withWorkspace(t *testing.T, name string, options ...store.Option) (*Service, account.Workspace) {
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
	events, serverKeys := event.New(db, keys, waker), keyrotation.New(db, keys, keyrotation.Options{})
	r := Services{
		Events:      events,
		Auth:        auth.New(db, keys, events, serverKeys, auth.Options{}),
		Idempotency: idempotency.New(db, keys, idempotency.Options{}),
	}
	r.Accounts = account.New(
		db,
		keys,
		waker,
		account.Services{Events: events, Auth: r.Auth, ServerKeys: serverKeys},
		account.Options{},
	)
	s := New(db, keys, waker, r, Options{})
	w, err := s.accounts.CreateWorkspace(t.Context(), name, "", true)
	if err != nil {
		t.Fatal(err)
	}
	return s, w
}
