package acs_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// The content of a large unmanaged system is stored unchanged and updated when it changes. Unchanged
// rows are not written.
func TestRecordContent_LargeSystem(t *testing.T) {
	t.Parallel()
	db, s, p, systems := twoSystems(t)
	const many = 250
	var users []acs.FoundUser
	var groups []acs.FoundGroup
	var entrances []acs.FoundEntrance
	for i := range many {
		users = append(users,
			acs.FoundUser{Ref: fmt.Sprint("u", i), Profile: acs.Profile{FullName: fmt.Sprint("Person ", i)}})
		groups = append(groups,
			acs.FoundGroup{Ref: fmt.Sprint("g", i), Name: "Staff", Entrances: []string{"e0", fmt.Sprint("e", i)}})
		entrances = append(entrances, acs.FoundEntrance{Ref: fmt.Sprint("e", i), Name: "A door"})
	}
	record := func() {
		t.Helper()
		if todo, later, err := s.RecordContent(
			t.Context(),
			alone{},
			uuid.MustParse(systems[0]),
			users,
			groups,
			entrances,
		); err != nil ||
			len(todo) > 0 ||
			later > 0 {
			t.Fatalf("planned %v, next in %s: %v", todo, later, err)
		}
	}
	// The xmin of a row changes with each write.
	written := func() (rows map[string]string) {
		t.Helper()
		rows = map[string]string{}
		all, err := db.Pool.Query(t.Context(), `select vendor_ref, xmin::text || full_name from acs_users union all
			select vendor_ref, xmin::text || name from acs_access_groups union all select vendor_ref, xmin::text || name from acs_entrances`)
		if err != nil {
			t.Fatal(err)
		}
		for all.Next() {
			var ref, how string
			if err := all.Scan(&ref, &how); err != nil {
				t.Fatal(err)
			}
			rows[ref] = how
		}
		return rows
	}
	record()
	before := written()
	if len(before) != 3*many {
		t.Errorf("%d users", len(before))
	}
	users[1].FullName, groups[2].Name, groups[3].Entrances, entrances[4].Name = "Another name", "Guests", nil, "Back door"
	users, groups, entrances = users[:many-1], groups[:many-1], entrances[:many-1]
	record()
	after := written()
	changed := map[string]bool{"u1": true, "g2": true, "g3": true, "e4": true}
	for ref, was := range before {
		is, there := after[ref]
		gone := ref == fmt.Sprint("u", many-1) || ref == fmt.Sprint("g", many-1) || ref == fmt.Sprint("e", many-1)
		if there == gone || there && (is != was) != changed[ref] {
			t.Errorf("%s: exists %t, written again %t", ref, there, is != was)
		}
	}
	list, _, err := s.ListUsers(t.Context(), p, acs.UserFilter{Unmanaged: true, Search: "Another name"},
		domain.Page{Limit: 10})
	if err != nil || len(list) != 1 {
		t.Errorf("changed user: %v %v", list, err)
	}
}

// A vendor that renames its systems at each listing creates a bounded number of systems.
func TestSystems_AreBounded(t *testing.T) {
	t.Parallel()
	db, s, p, systems := systemsOf(t, access.Options{MaxSystems: 3})
	var account uuid.UUID
	if err := db.Pool.QueryRow(t.Context(), "select connected_account_id from acs_systems where acs_system_id = $1", systems[0]).
		Scan(&account); err != nil {
		t.Fatal(err)
	}
	for _, refs := range [][]string{{"c", "d", "c"}, {"e"}, {"b", "a"}} {
		var found []acs.FoundSystem
		for _, ref := range refs {
			found = append(found, acs.FoundSystem{Ref: ref, Name: ref, Online: true})
		}
		if err := s.RecordSystems(t.Context(), alone{}, account, found); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := s.ListSystems(t.Context(), p, acs.SystemFilter{})
	if err != nil || len(kept) != 3 {
		t.Errorf("%d systems: %v", len(kept), err)
	}
}
