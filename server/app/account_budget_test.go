package app

import (
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// A refusal that concerns the operator's client stops the calls of all accounts of the vendor, and of no other vendor.
func TestBudget_ClientRefused(t *testing.T) {
	t.Parallel()
	b := newTokenBed(t, &tokenVendor{})
	v := adapter.Vendor{CallsPerHour: 400}
	accounts := b.secrets[0].accounts
	own, err := accounts.GetAccount(t.Context(), b.secrets[0].account)
	if err != nil {
		t.Fatal(err)
	}
	connect := func(name string) adapter.Budget {
		t.Helper()
		id, err := accounts.ConnectAccount(t.Context(), account.NewAccount{
			WorkspaceID: own.WorkspaceID,
			Adapter:     name,
			DisplayName: "Another account",
			Address:     "another",
			Config:      json.RawMessage("{}"),
		})
		if err != nil {
			t.Fatal(err)
		}
		return budgetOf(v, accounts, id, slog.New(slog.DiscardHandler))
	}
	same, other := connect(own.Adapter), connect("other")
	budgetOf(v, accounts, own.ID, slog.New(slog.DiscardHandler)).ClientRefused(t.Context(), time.Hour)
	ctx := adapter.WithPriority(t.Context(), adapter.PriorityCommand)
	if e := adapter.AsError(same.Take(ctx)); e == nil || e.RetryAfter < 59*time.Minute {
		t.Errorf("another account of the vendor: %v", e)
	}
	if err := other.Take(ctx); err != nil {
		t.Errorf("an account of another vendor: %v", err)
	}
}

// Three instances share the calls of an account. The last ones are for commands. After the vendor has refused a call, none
// is made until the vendor's time has passed.
func TestBudget_SharedWithPriorities(t *testing.T) {
	t.Parallel()
	b := newTokenBed(t, &tokenVendor{})
	v := adapter.Vendor{CallsPerHour: 400}
	var budgets []adapter.Budget
	for _, s := range b.secrets {
		budgets = append(budgets, budgetOf(v, s.accounts, s.account, slog.New(slog.DiscardHandler)))
	}
	take := func(p adapter.Priority) (calls int, err error) {
		ctx := adapter.WithPriority(t.Context(), p)
		for refused := 0; refused < len(budgets); {
			if err = budgets[(calls+refused)%len(budgets)].Take(ctx); err != nil {
				refused++
				continue
			}
			calls, refused = calls+1, 0
		}
		return calls, err
	}
	for _, step := range []struct {
		priority adapter.Priority
		want     int
	}{
		{adapter.PriorityDrift, 60},
		{adapter.PriorityConfirm, 20},
		{adapter.PriorityWrite, 15},
		{adapter.PriorityCommand, 5},
	} {
		n, err := take(step.priority)
		// The bucket refills while the test runs: 10 calls in two minutes.
		if n < step.want || n > step.want+10 {
			t.Errorf("priority %d: %d calls, want %d", step.priority, n, step.want)
		}
		if e := adapter.AsError(err); e == nil || e.Class != adapter.Transient || e.RetryAfter < time.Second {
			t.Errorf("priority %d: %v", step.priority, err)
		}
	}
	if _, err := b.dbs[0].Pool.Exec(t.Context(), "update account_call_budgets set remaining = 100"); err != nil {
		t.Fatal(err)
	}
	budgets[0].Refused(t.Context(), time.Hour)
	err := budgets[1].Take(adapter.WithPriority(t.Context(), adapter.PriorityCommand))
	if e := adapter.AsError(err); e == nil || e.RetryAfter < 59*time.Minute {
		t.Errorf("after a refusal: %v", err)
	}
	left, err := b.secrets[0].accounts.CallsLeft(t.Context(), b.secrets[0].account, bucketOf(v))
	if err != nil || left.Calls < 99 || left.Blocked < 59*time.Minute {
		t.Errorf("%+v, %v", left, err)
	}
}
