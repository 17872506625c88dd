package app

import (
	"context"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// A check stores no cursor and no subscription, which would make the server skip events. It stores renewed credentials.
func TestPassiveSecrets(t *testing.T) {
	t.Parallel()
	b := newTokenBed(t, &tokenVendor{})
	shared := b.secrets[0]
	s := &passiveSecrets{Secrets: shared, stored: map[string][]byte{}}
	load := func(from adapter.Secrets, name string) string {
		t.Helper()
		value, err := from.Load(context.Background(), name)
		if err != nil {
			t.Fatal(err)
		}
		return string(value)
	}
	for name, want := range map[string]string{
		adapter.CursorSecret:       "",
		adapter.SubscriptionSecret: "",
		adapter.CredentialsSecret:  "new",
	} {
		if err := s.Store(t.Context(), name, []byte("new")); err != nil {
			t.Fatal(err)
		}
		if own, server := load(s, name), load(shared, name); own != "new" || server != want {
			t.Errorf("%s: the check reads %q, and the server %q, want %q", name, own, server, want)
		}
	}
}
