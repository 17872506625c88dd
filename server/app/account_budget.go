package app

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// accountBudget implements adapter.Budget. While the bucket is well filled, it takes several calls at once, because each
// costs a write to the database.
type accountBudget struct {
	accounts *account.Service
	account  uuid.UUID
	bucket   account.Bucket
	log      *slog.Logger

	mu    sync.Mutex
	taken int // calls that are taken and unused
}

// maxChunk is the maximum number of calls that are taken at once.
const maxChunk = 10

// budgetOf returns the budget of an account.
func budgetOf(v adapter.Vendor, accounts *account.Service, id uuid.UUID, log *slog.Logger) adapter.Budget {
	if v.CallsPerHour == 0 {
		return adapter.Unlimited{}
	}
	return &accountBudget{accounts: accounts, account: id, bucket: bucketOf(v), log: log}
}

func bucketOf(v adapter.Vendor) account.Bucket {
	burst, perSecond := adapter.Bucket(v.CallsPerHour)
	return account.Bucket{Burst: burst, PerSecond: perSecond}
}

// Take implements adapter.Budget.
func (b *accountBudget) Take(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.taken > 0 {
		b.taken--
		return nil
	}
	chunk := math.Floor(max(1, min(maxChunk, b.bucket.Burst/50)))
	lowest := b.bucket.Burst * adapter.PriorityDrift.Reserve()
	_, taken, err := b.accounts.TakeCalls(ctx, b.account, b.bucket, chunk, lowest)
	if err == nil && taken {
		b.taken = int(chunk) - 1
		return nil
	}
	reserve := b.bucket.Burst * adapter.PriorityOf(ctx).Reserve()
	var left account.CallsLeft
	if err == nil {
		left, taken, err = b.accounts.TakeCalls(ctx, b.account, b.bucket, 1, reserve)
	}
	switch {
	case err != nil:
		return secretError(err)
	case taken:
		return nil
	}
	missing := time.Duration((reserve + 1 - left.Calls) / b.bucket.PerSecond * float64(time.Second))
	e := adapter.Errorf(adapter.Transient, "the vendor's limit of calls is almost reached; the server waits")
	e.RetryAfter = max(missing, left.Blocked, time.Second)
	return e
}

// Refused implements adapter.Budget.
func (b *accountBudget) Refused(ctx context.Context, retryAfter time.Duration) {
	b.mu.Lock()
	b.taken = 0
	b.mu.Unlock()
	if err := b.accounts.BlockCalls(ctx, b.account, retryAfter); err != nil {
		b.log.WarnContext(ctx, "failed to record that the vendor refuses calls", "error", err)
	}
}

// ClientRefused implements adapter.Budget. Another account may still use up calls that it has taken, fewer than maxChunk.
func (b *accountBudget) ClientRefused(ctx context.Context, retryAfter time.Duration) {
	b.mu.Lock()
	b.taken = 0
	b.mu.Unlock()
	if err := b.accounts.BlockClientCalls(ctx, b.account, retryAfter); err != nil {
		b.log.WarnContext(ctx, "failed to record that the vendor refuses calls of this server", "error", err)
	}
}
