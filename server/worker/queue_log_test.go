package worker

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/recurring"
)

func TestQueueLog_OneLinePerProblem(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(queueLog{slog.New(slog.NewTextHandler(&out, nil)), &recurring.Problems{}})
	log.Info("producer: Run loop started")
	for range 100 {
		log.With("queue", "device").Error("producer: Error fetching jobs", "err", errors.New("connection refused"))
	}
	log.Warn("Notifier: Error connecting listener")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 ||
		!strings.Contains(lines[0], `level=WARN msg="the job queue has a problem; the server retries" `+
			`detail="producer: Error fetching jobs" error="connection refused"`) {
		t.Error(out.String())
	}
}
