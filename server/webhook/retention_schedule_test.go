package webhook_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Scheduling the next run of a workspace does not overwrite an earlier time that a concurrent
// change requests.
func TestScheduleRetention_KeepsEarlierTime(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	b.stop(time.Minute)
	w := b.hook("https://hooks.example.com/")
	scheduled := make(chan error, 1)
	soon := time.Now().Add(time.Minute)
	b.must(b.db.InTx(t.Context(), func(tx store.Tx) error {
		until, err := tx.RotateWebhookSecret(t.Context(), dbsqlc.RotateWebhookSecretParams{
			WebhookID:       w.ID,
			Overlap:         time.Minute,
			OldSecretSealed: []byte("old"),
			SecretSealed:    []byte("new"),
		})
		if err != nil {
			return err
		}
		soon = *until
		if err := tx.AdvanceRetention(
			t.Context(),
			dbsqlc.AdvanceRetentionParams{WorkspaceID: b.p.WorkspaceID, At: soon},
		); err != nil {
			return err
		}
		go func() {
			scheduled <- b.access.Retention.ScheduleRetention(t.Context(), b.p.WorkspaceID, time.Hour, time.Second)
		}()
		b.until("the schedule waits for this change", func() bool {
			return b.count("pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()") == 1
		})
		return nil
	}))
	b.must(<-scheduled)
	if n := b.count("workspaces where workspace_id = $1 and retention_due_at <= $2", b.p.WorkspaceID, soon); n != 1 {
		t.Error("the end of the old secret waits for an hour")
	}
}
