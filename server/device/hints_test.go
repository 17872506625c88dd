package device

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// A resync and a disconnection lock all devices of an account without a round trip for each device.
func TestManyDevicesOfAnAccountTakeFewRoundTrips(t *testing.T) {
	t.Parallel()
	const devices, removed = 500, 20
	asked := &storetest.Trips{}
	s, w := withWorkspace(t, "Many", func(c *pgxpool.Config) { c.ConnConfig.Tracer = asked })
	db := s.db
	account := uuid.New()
	if _, err := db.Pool.Exec(t.Context(), `
		with a as (insert into connected_accounts (connected_account_id, workspace_id, adapter, provider, display_name, config_sealed)
			values ($1, $2, 'devicecloud', '', 'Many', ''))
		insert into devices (device_id, workspace_id, connected_account_id, vendor_ref, device_type, provider, manufacturer, model, serial_number, name,
			online, capabilities, flags, custom_metadata, removed_at, read_needed)
		select gen_random_uuid(), $2, $1, 'ref ' || n, 'august_lock', 'simulated', '', '', '', '', n > $4::integer, '{}', '{}', jsonb_build_object('room', n::text), case when n <= $4 then now() end, false
		from generate_series(1, $3::integer) n`, account, w.ID, devices, removed); err != nil {
		t.Fatal(err)
	}
	count := func(query string) (n int) {
		if err := db.Pool.QueryRow(t.Context(), query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	few := func(what string, do func(context.Context, uuid.UUID) error) {
		before := asked.Load()
		if err := do(t.Context(), account); err != nil {
			t.Fatal(err)
		}
		if n := asked.Load() - before; n > 50 {
			t.Errorf("%s takes %d round trips for %d devices", what, n, devices)
		}
	}
	woken := `select count(distinct args ->> 'id') from river_job where args ->> 'lane' = '` + domain.DeviceLane + `'`
	few("a resync", s.accounts.Resync)
	if due, jobs := count(
		`select count(*) from devices where read_needed and due_at <= now()`,
	), count(
		woken,
	); due != devices-removed ||
		jobs != due {
		t.Errorf("%d due for a read and %d woken of %d", due, jobs, devices-removed)
	}
	few("a disconnection", s.accounts.DisconnectAccount)
	if left := count(
		`select count(*) from devices where vendor_ref = 'detached:' || device_id::text and removed_at is not null and not online and due_at <= now()`,
	); left != devices {
		t.Errorf("%d of %d devices are removed", left, devices)
	}
	if announced := count(
		`select count(*) from events e join devices d using (device_id) where event_type = 'device.removed' and e.payload -> 'device_custom_metadata' = d.custom_metadata`,
	); announced != devices-removed {
		t.Errorf("%d of %d removals are announced", announced, devices-removed)
	}
	if jobs := count(woken); jobs != devices {
		t.Errorf("%d of %d devices were woken", jobs, devices)
	}
}
