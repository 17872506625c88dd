package webhook_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
)

// A server whose clock differs from the database's reads an endpoint when it is due, without a busy
// loop until then.
func TestClockSkew_CausesNoBusyLoop(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]string{"the database is behind": "-1 hour", "the database is ahead": "1 hour"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := storetest.New(t)
			conn, err := pgx.Connect(t.Context(), dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(t.Context())
			for _, clock := range []string{"now", "clock_timestamp"} {
				if _, err := conn.Exec(t.Context(), `create schema if not exists clocks;
					create function clocks.`+clock+`() returns timestamptz language sql as $$ select pg_catalog.`+clock+`() + interval '`+off+`' $$`); err != nil {
					t.Fatal(err)
				}
			}
			// The database's own times use the same clock.
			if _, err := conn.Exec(t.Context(), `create view clocks.pg_stat_activity as
				select pid, datname, usename, state, xact_start, query, wait_event, state_change + interval '`+off+`' as state_change from pg_catalog.pg_stat_activity`); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Exec(t.Context(), `create sequence clocks.looks;
				create function clocks.looked() returns trigger language plpgsql as $$ begin perform nextval('clocks.looks'); return new; end $$;
				create trigger looked before insert on leases for each row when (new.key like 'endpoint:%') execute function clocks.looked()`); err != nil {
				t.Fatal(err)
			}
			o := quick()
			o.Schedule = slices.Repeat([]time.Duration{500 * time.Millisecond}, 7)
			b := startOn(
				t,
				o,
				dsn,
				func(cfg *pgxpool.Config) { cfg.ConnConfig.RuntimeParams["search_path"] = "clocks, pg_catalog, public" },
			)
			s := newSink(t, func(w http.ResponseWriter, _ *http.Request, n int) {
				if n < 3 {
					w.WriteHeader(http.StatusInternalServerError)
				}
			})
			w := b.hook(s.URL)
			looks := func() (n int64) {
				b.must(b.db.Pool.QueryRow(t.Context(), "select last_value from clocks.looks").Scan(&n))
				return n
			}
			b.emit(b.p, "device.connected", "")
			b.until("the attempt fails", s.got(1))
			before := looks()
			b.until("it is delivered", b.is(w, 1, webhook.DeliveryDelivered))
			if again, err := b.access.Webhooks.ScheduleWebhook(t.Context(), w.ID); err != nil || again != 0 {
				t.Errorf("idle: next look in %s, %v", again, err)
			}
			if n := looks() - before; n > 20 {
				t.Errorf("%d looks", n)
			}
			if n := len(s.messages()); n != 3 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// A webhook created before the database's clock was set back receives later events, although their
// times precede it.
func TestClockStepsBack_NewWebhookGetsEvents(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	s := newSink(t, nil)
	w := b.hook(s.URL)
	if _, err := b.db.Pool.Exec(t.Context(), "update webhooks set created_at = now() + interval '1 hour'"); err != nil {
		t.Fatal(err)
	}
	told := newSink(t, nil)
	other := b.hook(told.URL)
	b.emit(b.p, "device.connected", "")
	b.until("the event is fanned out", b.is(other, 1, webhook.DeliveryDelivered))
	if len(b.deliveries(w)) != 1 {
		t.Error("the webhook did not receive the event")
	}
}
