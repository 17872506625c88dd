package adapter

import (
	"context"
	"time"
)

// Priority orders the calls of an account while its budget is low.
type Priority int

// Priorities from the highest to the lowest. Calls whose context has none are of PriorityDrift.
const (
	// PriorityDrift is a read that looks for changes by others.
	PriorityDrift Priority = iota
	// PriorityConfirm is a read that confirms a write.
	PriorityConfirm
	// PriorityWrite writes or deletes a code, or reads before that.
	PriorityWrite
	// PriorityCommand moves a bolt: a person may wait at the door.
	PriorityCommand
)

// Reserve returns the fraction of the budget that a call of the priority leaves to higher ones.
func (p Priority) Reserve() float64 {
	switch p {
	case PriorityCommand:
		return 0
	case PriorityWrite:
		return 0.05
	case PriorityConfirm:
		return 0.2
	default:
		return 0.4
	}
}

type priorityKey struct{}

// WithPriority returns a context for calls of the priority.
func WithPriority(ctx context.Context, p Priority) context.Context {
	return context.WithValue(ctx, priorityKey{}, p)
}

// PriorityOf returns the priority of the calls of a context.
func PriorityOf(ctx context.Context) Priority {
	p, _ := ctx.Value(priorityKey{}).(Priority)
	return p
}

// Budget limits the calls of one account to the limit of its vendor, on all instances together. An adapter calls Take
// before each call of the vendor, and Refused after a response like 429.
type Budget interface {
	// Take counts a call. If the rest of the budget is reserved for calls of a higher priority, it fails with Transient
	// and a RetryAfter, and the adapter must not call.
	Take(ctx context.Context) error
	// Refused records that the vendor refuses calls for a time. Take then fails for all priorities.
	Refused(ctx context.Context, retryAfter time.Duration)
	// ClientRefused records that the vendor refuses calls of the operator's client (Env.Client) for a time. Take then
	// fails for all accounts of the vendor, which use the same client.
	ClientRefused(ctx context.Context, retryAfter time.Duration)
}

// Unlimited is a Budget without a limit.
type Unlimited struct{}

// Take implements Budget.
func (Unlimited) Take(context.Context) error { return nil }

// Refused implements Budget.
func (Unlimited) Refused(context.Context, time.Duration) {}

// ClientRefused implements Budget.
func (Unlimited) ClientRefused(context.Context, time.Duration) {}

// Bucket returns the size of the token bucket for a limit of calls in any hour, and the calls per second that refill it:
// a full bucket and an hour of refilling together stay within the limit.
func Bucket(callsPerHour int) (burst, perSecond float64) {
	burst = float64(callsPerHour) / 4
	return burst, (float64(callsPerHour) - burst) / time.Hour.Seconds()
}
