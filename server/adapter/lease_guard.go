package adapter

import (
	"context"
	"fmt"
)

type whileKey struct{}

// While is the context for calls that are made only as long as held returns nil: whoever works on a device holds a lease of
// it, and may stand still for longer than that lasts between two of its steps. What held returns instead, it has ended ctx with.
func While(ctx context.Context, held func() error) context.Context {
	return context.WithValue(ctx, whileKey{}, held)
}

// MaySend is what an adapter asks right before it sends something to a vendor. It fails with Transient, and what has ended
// the right to. What ctx holds is given up.
func MaySend(ctx context.Context) error {
	holdOf(ctx).giveUp(false)
	held, ok := ctx.Value(whileKey{}).(func() error)
	if !ok {
		return nil
	}
	if err := held(); err != nil {
		return fmt.Errorf("%w (%w)", Errorf(Transient, "nothing was sent: somebody else may be at work there by now"), err)
	}
	return nil
}
