package retention

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// partitionPause is the interval between two checks of an instance. Partitions are created days in
// advance.
const partitionPause = 10 * time.Minute

// partitionLane maintains the partitions of events. Its only key is uuid.Nil, so that one instance
// at a time works on it.
type partitionLane struct {
	*Sweeper
	looked atomic.Int64 // when this instance last checked, in nanoseconds; 0: never
}

func (*partitionLane) Name() string { return "partitions" }

func (l *partitionLane) Due(context.Context, uuid.UUID) (bool, error) {
	return !l.stopping.Load() && time.Since(time.Unix(0, l.looked.Load())) > l.pause(), nil
}

// pause returns the interval, which is shorter for a short retention.
func (l *partitionLane) pause() time.Duration {
	if l.opt.Events > 0 {
		return min(partitionPause, l.opt.Events)
	}
	return partitionPause
}

func (l *partitionLane) Sweep(ctx context.Context, _ int32, _ worker.Saturated) ([]uuid.UUID, error) {
	if due, err := l.Due(ctx, uuid.Nil); err != nil || !due {
		return nil, err
	}
	return []uuid.UUID{uuid.Nil}, nil
}

func (l *partitionLane) Drain(ctx context.Context, _ *worker.Lease, _ uuid.UUID) (time.Duration, error) {
	kept, err := l.access.KeepPartitions(ctx, l.opt.Events)
	if len(kept.Created)+len(kept.Dropped) > 0 {
		l.opt.Log.Info(
			"changed the event partitions",
			"created",
			kept.Created,
			"dropped",
			kept.Dropped,
			"retained",
			kept.Left,
		)
	}
	if err == nil {
		l.looked.Store(time.Now().UnixNano())
	}
	return 0, err
}
