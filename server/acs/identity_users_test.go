package acs_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
)

// The user of a person is the one with the same address and number, then the one with the address,
// then the one with the number. A user with the number but another address does not count, because
// households share numbers.
func TestJoinSystems_FindsUserOfPerson(t *testing.T) {
	t.Parallel()
	const address, number = "jane@example.com", "+15555550100"
	of := func(ref, email, phone string) acs.FoundUser {
		return acs.FoundUser{Ref: ref, Profile: acs.Profile{FullName: ref, Email: email, Phone: phone}}
	}
	other, byNumber, byAddress, both := of(
		"other",
		"joe@example.com",
		number,
	), of(
		"number",
		"",
		number,
	), of(
		"address",
		"JANE@example.com",
		"+15555550199",
	), of(
		"both",
		address,
		number,
	)
	for name, c := range map[string]struct {
		there []acs.FoundUser
		who   acs.NewIdentity
		want  string
	}{
		"another person with the number": {[]acs.FoundUser{other}, acs.NewIdentity{Email: address, Phone: number}, "Jane Doe"},
		"one with the number":            {[]acs.FoundUser{other, byNumber}, acs.NewIdentity{Email: address, Phone: number}, "number"},
		"one with the address":           {[]acs.FoundUser{other, byNumber, byAddress}, acs.NewIdentity{Email: address, Phone: number}, "address"},
		"one with both":                  {[]acs.FoundUser{other, byNumber, byAddress, both}, acs.NewIdentity{Email: address, Phone: number}, "both"},
		"of a person without an address": {[]acs.FoundUser{other}, acs.NewIdentity{Phone: number}, "other"},
		"of a person without a number":   {[]acs.FoundUser{byNumber, byAddress}, acs.NewIdentity{Email: address}, "address"},
		"of a person with neither":       {[]acs.FoundUser{other, of("bare", "", "")}, acs.NewIdentity{}, "Jane Doe"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, s, p, systems := twoSystems(t)
			for n := range c.there { // in sequence, so that the worst match is the oldest
				if _, _, err := s.RecordContent(
					t.Context(),
					alone{},
					uuid.MustParse(systems[0]),
					c.there[:n+1],
					nil,
					nil,
				); err != nil {
					t.Fatal(err)
				}
			}
			c.who.FullName, c.who.SystemIDs = "Jane Doe", systems[:1]
			i, err := s.CreateIdentity(t.Context(), p, c.who)
			if err != nil || len(i.UserIDs) != 1 {
				t.Fatal(i, err)
			}
			u, err := s.GetUser(t.Context(), p, acs.UserName{UserID: i.UserIDs[0].String()})
			if err != nil || u.FullName != c.want {
				t.Errorf("got %q, want %q: %v", u.FullName, c.want, err)
			}
		})
	}
}
