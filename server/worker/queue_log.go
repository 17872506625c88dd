package worker

import (
	"context"
	"log/slog"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/recurring"
)

// queueLog handles the lines of the job queue's library. It drops routine messages, and logs each problem in our words,
// once and then after growing pauses. The queue retries what fails, and the sweep finds what it misses.
type queueLog struct {
	log      *slog.Logger
	problems *recurring.Problems
}

func (q queueLog) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && q.log.Enabled(ctx, l)
}

// Handle logs a problem. The error of the line, if any, is among its attributes.
func (q queueLog) Handle(_ context.Context, r slog.Record) error {
	log := q.log.With("detail", r.Message)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "err" || a.Key == "error" {
			log = log.With("error", a.Value.String())
		}
		return true
	})
	q.problems.Warn(log, r.Message, "the job queue has a problem; the server retries")
	return nil
}

func (q queueLog) WithAttrs([]slog.Attr) slog.Handler { return q }

func (q queueLog) WithGroup(string) slog.Handler { return q }
