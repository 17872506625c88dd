package acs_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

func TestMain(m *testing.M) { storetest.Main(m, store.Migrate, store.MigrationsVersion()) }

// alone is an undisputed lease.
type alone struct{}

func (alone) Check(context.Context, store.Tx) error { return nil }

// twoSystems returns a service with a workspace that has two access systems.
func twoSystems(t *testing.T) (*store.DB, *acs.Service, domain.Principal, []string) {
	t.Helper()
	return systemsOf(t, access.Options{})
}

func systemsOf(t *testing.T, o access.Options) (*store.DB, *acs.Service, domain.Principal, []string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	db, err := store.Open(t.Context(), storetest.New(t), 20)
	must(err)
	t.Cleanup(db.Close)
	keys, err := encryption.New(encryption.NewMaster())
	must(err)
	waker, err := worker.NewWaker(db)
	must(err)
	a := access.New(db, keys, waker, o)
	s := acs.New(db, acs.Services{
		Accounts: a.Accounts,
		Devices:  a.Devices,
		Events:   a.Events,
		Auth:     a.Auth,
		Phones:   a.Phones,
	}, waker)
	w, err := a.Accounts.CreateWorkspace(t.Context(), "A workspace", "A company", true)
	must(err)
	account, err := a.Accounts.ConnectAccount(t.Context(), account.NewAccount{
		WorkspaceID:  w.ID,
		Adapter:      "accesscloud",
		DisplayName:  "A vendor",
		Capabilities: []string{account.AccessControl},
		Config:       []byte(`{}`),
	})
	must(err)
	must(
		s.RecordSystems(t.Context(), alone{}, account,
			[]acs.FoundSystem{{Ref: "a", Name: "A", Online: true}, {Ref: "b", Name: "B", Online: true}}),
	)
	p := domain.Principal{WorkspaceID: w.ID}
	systems, err := s.ListSystems(t.Context(), p, acs.SystemFilter{})
	must(err)
	return db, s, p, []string{systems[0].ID.String(), systems[1].ID.String()}
}

// waits returns once a transaction waits for a lock.
func waits(t *testing.T, db *store.DB) {
	t.Helper()
	apptest.Until(t, "a transaction waits for a lock", func() bool {
		var n int
		err := db.Pool.QueryRow(t.Context(), "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()").
			Scan(&n)
		return err == nil && n > 0
	})
}

// A user whose creation waits for its system comes after the users created meanwhile, so that a
// client that reads pages misses no user.
func TestListUsers_DelayedCreationIsOnLaterPage(t *testing.T) {
	t.Parallel()
	db, s, p, systems := twoSystems(t)
	tx, err := db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(
		t.Context(),
		"select 1 from acs_systems where acs_system_id = $1 for update",
		uuid.MustParse(systems[0]),
	); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := s.CreateUser(t.Context(), p, acs.NewUser{SystemID: systems[0], FullName: "Waits"})
		done <- err
	}()
	waits(t, db)
	if _, err := s.CreateUser(t.Context(), p, acs.NewUser{SystemID: systems[1], FullName: "Quick"}); err != nil {
		t.Fatal(err)
	}
	page, _, err := s.ListUsers(t.Context(), p, acs.UserFilter{}, domain.Page{Limit: 1})
	if err != nil || len(page) != 1 {
		t.Fatal(page, err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	rest, _, err := s.ListUsers(t.Context(), p, acs.UserFilter{},
		domain.Page{After: domain.Position{At: page[0].CreatedAt, ID: page[0].ID}, Limit: 10})
	if err != nil || len(rest) != 1 || rest[0].FullName != "Waits" {
		t.Errorf("the next page: %+v %v", rest, err)
	}
}

// An identity can be deleted while one of its systems is being removed.
func TestDeleteIdentity_WhileSystemIsRemoved(t *testing.T) {
	t.Parallel()
	db, s, p, systems := twoSystems(t)
	i, err := s.CreateIdentity(t.Context(), p, acs.NewIdentity{FullName: "Jane Doe", SystemIDs: systems})
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{"update acs_systems set removed_at = now() where acs_system_id = $1", "delete from acs_users where acs_system_id = $1"} {
		if _, err := tx.Exec(t.Context(), q, uuid.MustParse(systems[0])); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error)
	go func() { done <- s.DeleteIdentity(t.Context(), p, i.ID.String()) }()
	waits(t, db)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("delete the identity: %v", err)
	}
}
