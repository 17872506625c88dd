package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// What is asked for all the time is planned a few times and not each time again, which takes as long as to run it: PostgreSQL
// keeps a plan that costs no more than new ones.
func TestWhatIsAskedForAllTheTimeIsNotPlannedEachTime(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	workspace, device, account := withRows(t, db)
	conn, err := db.Pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	q := dbsqlc.New(conn)
	asked := map[string]bool{}
	for name, ask := range map[string]func(ctx context.Context) error{
		"ListDevices": func(ctx context.Context) error {
			_, err := q.ListDevices(ctx, dbsqlc.ListDevicesParams{WorkspaceID: workspace, MaxRows: 21})
			return err
		},
		"ListAccessCodesOfDevice": func(ctx context.Context) error {
			_, err := q.ListAccessCodesOfDevice(ctx, dbsqlc.ListAccessCodesOfDeviceParams{
				WorkspaceID: workspace,
				DeviceID:    device,
				IsManaged:   true,
				MaxRows:     21,
			})
			return err
		},
		"ListActionAttemptsOfDevice": func(ctx context.Context) error {
			_, err := q.ListActionAttemptsOfDevice(ctx, dbsqlc.ListActionAttemptsOfDeviceParams{WorkspaceID: workspace, DeviceID: device, MaxRows: 21})
			return err
		},
		"WakeWebhooks": func(ctx context.Context) error {
			_, err := q.WakeWebhooks(ctx, dbsqlc.WakeWebhooksParams{WorkspaceID: workspace, WebhookIds: []uuid.UUID{uuid.New()}})
			return err
		},
		"DueDeliveries": func(ctx context.Context) error {
			_, err := q.DueDeliveries(ctx, dbsqlc.DueDeliveriesParams{
				WebhookID: uuid.New(),
				Busy:      []uuid.UUID{uuid.New()},
				MaxRows:   8,
				MaxBytes:  1 << 17,
			})
			return err
		},
		"TakeEvents": func(ctx context.Context) error {
			_, err := q.TakeEvents(ctx, dbsqlc.TakeEventsParams{
				WorkspaceID:   workspace,
				After:         uuid.New(),
				MaxRows:       500,
				MaxDeliveries: 5000,
			})
			return err
		},
		"ListEvents": func(ctx context.Context) error {
			_, err := q.ListEvents(ctx, dbsqlc.ListEventsParams{
				WorkspaceID: workspace,
				Until:       time.Now().Add(time.Hour),
				UntilID:     uuid.Max,
				Scope:       []uuid.UUID{account},
				MaxRows:     21,
			})
			return err
		},
	} {
		asked[name] = true
		for range 20 {
			if err := ask(t.Context()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	rows, err := conn.Query(
		t.Context(),
		"select substring(statement from 'name: (\\w+)'), custom_plans, generic_plans from pg_prepared_statements",
	)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name *string
		var custom, generic int
		if err := rows.Scan(&name, &custom, &generic); err != nil {
			t.Fatal(err)
		}
		if name != nil && asked[*name] {
			if delete(asked, *name); custom > 10 {
				t.Errorf("%s was planned %d times, and run %d times as planned before", *name, custom, generic)
			}
		}
	}
	if len(asked) > 0 {
		t.Errorf("not seen: %v", asked)
	}
}
