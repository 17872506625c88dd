package app

import (
	"log/slog"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

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
	b.dbs[0].Pool.Exec(
		t.Context(),
		"update account_call_budgets set remaining = 100",
	) //nolint:errcheck // the next step fails
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
