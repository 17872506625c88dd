package sandbox_test

import (
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

func TestRemote(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "august")
	there, tokens := sandbox.Remote{URL: b.url, Seed: 7}, sandbox.Tokens(7)
	if err := there.EnsureAccount(t.Context(),
		sandbox.AccountSpec{Key: "more", Profiles: []string{"schlage"}, LocksPerProfile: 2}); err != nil {
		t.Fatal(err)
	}
	if err := there.EnsureAccessAccount(t.Context(), sandbox.AccessSpec{Key: "offices"}); err != nil {
		t.Fatal(err)
	}
	if status, got := b.callAs(t, tokens.Account("more"), "GET", "/locks", nil); status != 200 ||
		len(got["locks"].([]any)) != 2 {
		t.Errorf("the requested locks: %d %v", status, got)
	}
	if status, got := b.callAs(t, tokens.Account("offices"), "GET", "/systems", nil); status != 200 ||
		len(got["systems"].([]any)) != 1 {
		t.Errorf("the requested systems: %d %v", status, got)
	}
	if err := there.Forget(t.Context(), "more"); err != nil {
		t.Fatal(err)
	}
	if status, _ := b.callAs(t, tokens.Account("more"), "GET", "/locks", nil); status != 401 {
		t.Errorf("a deleted account responds with %d", status)
	}
}

func TestOnlyTheOwnerCreatesAccounts(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "august")
	for name, token := range map[string]string{
		"none": "", "an account's": b.account.Token,
		"a partner's": sandbox.Tokens(7).Partner("owner"), "of another seed": sandbox.Tokens(8).Owner(),
	} {
		for _, method := range []string{"PUT", "DELETE"} {
			if status, _ := b.callAs(t, token, method, "/accounts", object{"key": "test"}); status != 401 {
				t.Errorf("%s with a token that is %s: %d", method, name, status)
			}
		}
	}
	if status, _ := b.call(t, "GET", "/locks", nil); status != 200 {
		t.Errorf("the account is gone: %d", status)
	}
	err := sandbox.Remote{URL: b.url, Seed: 7}.EnsureAccount(t.Context(),
		sandbox.AccountSpec{Key: "a", Profiles: []string{"none"}})
	if err == nil || !strings.Contains(err.Error(), "no such profile") {
		t.Errorf("an unknown profile: %v", err)
	}
}
