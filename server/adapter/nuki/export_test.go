package nuki

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// ReadLog is readLog.
func (a *Adapter) ReadLog(ctx context.Context, cursor string) ([]adapter.Event, string, error) {
	return a.readLog(ctx, cursor)
}

// LogEvent returns the event of an entry of the log.
func LogEvent(t *testing.T, text string) (adapter.Event, bool) {
	t.Helper()
	var w wireLog
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		t.Fatal(err)
	}
	return w.event()
}
