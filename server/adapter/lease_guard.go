package adapter

import (
	"context"
	"fmt"
)

type leaseCheckKey struct{}

// WithLeaseCheck returns a context for calls that may only send while held returns nil. A caller that works on a
// device holds a lease of it, and may be paused between two steps for longer than the lease lasts. When held returns
// an error, it has canceled ctx with that error.
func WithLeaseCheck(ctx context.Context, held func() error) context.Context {
	return context.WithValue(ctx, leaseCheckKey{}, held)
}

// MaySend must be called by an adapter immediately before it sends something to a vendor. It fails with Transient,
// joined to the error of the lease check, when the lease is lost. It releases the memory permit of ctx.
func MaySend(ctx context.Context) error {
	memoryPermitOf(ctx).releaseAll(false)
	held, ok := ctx.Value(leaseCheckKey{}).(func() error)
	if !ok {
		return nil
	}
	if err := held(); err != nil {
		return fmt.Errorf("%w (%w)", Errorf(Transient, "nothing was sent: another server may hold the lease now"), err)
	}
	return nil
}
