package acs_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// An operation on the user of one person does nothing if the user moves to another person while the
// operation waits for the system.
func TestUser_MovedToAnotherIdentityMeanwhile(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]struct {
		do     func(*acs.Service, domain.Principal, string) error
		denied bool
	}{
		"the person is deleted": {func(s *acs.Service, p domain.Principal, identity string) error {
			return s.DeleteIdentity(t.Context(), p, identity)
		}, false},
		"its user is deleted": {func(s *acs.Service, p domain.Principal, identity string) error {
			return s.DeleteUser(t.Context(), p, acs.UserName{IdentityID: identity})
		}, true},
		"its user is suspended": {func(s *acs.Service, p domain.Principal, identity string) error {
			return s.SetSuspended(t.Context(), p, acs.UserName{IdentityID: identity}, true)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, s, p, systems := twoSystems(t)
			first, err := s.CreateIdentity(t.Context(), p,
				acs.NewIdentity{FullName: "Jane Doe", SystemIDs: systems[:1]})
			if err != nil {
				t.Fatal(err)
			}
			second, err := s.CreateIdentity(t.Context(), p, acs.NewIdentity{FullName: "Joe"})
			if err != nil {
				t.Fatal(err)
			}
			tx, err := db.Pool.Begin(t.Context())
			if err == nil {
				_, err = tx.Exec(t.Context(), "select from acs_systems where acs_system_id = $1 for update",
					uuid.MustParse(systems[0]))
			}
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error)
			go func() { done <- ask.do(s, p, first.ID.String()) }()
			waits(t, db)
			user := first.UserIDs[0]
			if err := s.RemoveUser(t.Context(), p, first.ID.String(), user.String()); err != nil {
				t.Fatal(err)
			}
			if err := s.AddUser(t.Context(), p, second.ID.String(), "", user.String()); err != nil {
				t.Fatal(err)
			}
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-done; (err != nil) != ask.denied {
				t.Errorf("got %v", err)
			}
			var kept bool
			err = db.Pool.QueryRow(t.Context(), "select deleting_at is null and not is_suspended and user_identity_id = $2 from acs_users where acs_user_id = $1", user, second.ID).
				Scan(&kept)
			if err != nil || !kept {
				t.Errorf("user of the other person unchanged: %t %v", kept, err)
			}
		})
	}
}
