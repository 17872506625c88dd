package acs

import (
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// The groups of a new user are read in one query without duplicates, because the system is locked
// meanwhile.
func TestCreateUser_ManyGroupsInOneRoundTrip(t *testing.T) {
	t.Parallel()
	asked := &storetest.Trips{}
	db, err := store.Open(t.Context(), storetest.New(t), 4, func(c *pgxpool.Config) { c.ConnConfig.Tracer = asked })
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
	a := access.New(db, keys, waker, access.Options{})
	w, err := a.Accounts.CreateWorkspace(t.Context(), "Groups", "", true)
	if err != nil {
		t.Fatal(err)
	}
	system := uuid.New()
	if _, err := db.Pool.Exec(t.Context(), `
		with a as (insert into connected_accounts (connected_account_id, workspace_id, adapter, provider, display_name, config_sealed)
			values ($1, $2, 'accesscloud', '', 'Doors', '')),
		y as (insert into acs_systems (acs_system_id, workspace_id, connected_account_id, vendor_ref, name) values ($1, $2, $1, 'y', 'Doors'))
		insert into acs_access_groups (acs_access_group_id, workspace_id, acs_system_id, vendor_ref, name, entrance_refs)
		select gen_random_uuid(), $2, $1, lpad(n::text, 3, '0'), 'Group', '{}' from generate_series(1, 200) n`, system, w.ID); err != nil {
		t.Fatal(err)
	}
	rows, err := db.ListAcsGroupsOfSystems(t.Context(), []uuid.UUID{system})
	if err != nil {
		t.Fatal(err)
	}
	var ids, want []string
	for _, g := range slices.Concat(rows, rows) {
		ids = append(ids, g.AcsAccessGroupID.String())
	}
	for _, g := range rows {
		want = append(want, g.VendorRef)
	}
	before := asked.Load()
	s := New(db, Services{
		Accounts: a.Accounts,
		Devices:  a.Devices,
		Events:   a.Events,
		Auth:     a.Auth,
	}, waker)
	wanted := NewUser{SystemID: system.String(), FullName: "Jane", GroupIDs: ids}
	u, err := s.CreateUser(t.Context(), domain.Principal{WorkspaceID: w.ID}, wanted)
	if err != nil {
		t.Fatal(err)
	}
	if n := asked.Load() - before; n > 25 {
		t.Errorf("%d round trips for %d groups", n, len(rows))
	}
	var refs []string
	if err := db.Pool.QueryRow(t.Context(), "select group_refs from acs_users where acs_user_id = $1", u.ID).
		Scan(&refs); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(refs, want) {
		t.Errorf("groups %v, want %v", refs, want)
	}
}
