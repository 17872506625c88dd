package reconcile_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// A retried transaction does not reuse findings of its first try.
func TestKeyedCode_RetriedTransactionDropsFindings(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "yale", db: ownDatabase(t)})
	other := uuid.New()
	_, err := b.db.Pool.Exec(t.Context(), `insert into devices select (jsonb_populate_record(d,
		jsonb_build_object('device_id', $1::text, 'vendor_ref', 'other', 'name', 'other'))).* from devices d`, other)
	b.must(err)
	ofKey := func(dev, pin string) (device.Code, error) {
		c, _, err := b.access.Devices.CreateCode(t.Context(), b.p, device.NewCode{
			DeviceID:         dev,
			PIN:              pin,
			CommonCodeKey:    "k",
			NativeScheduling: true,
			EvenIfOffline:    true,
		})
		return c, err
	}
	first, err := ofKey(other.String(), "746283")
	b.must(err)
	// The test makes the next one deadlock.
	const gate = 7
	_, err = b.db.Pool.Exec(
		t.Context(),
		`create sequence tries; create function meet_a_deadlock() returns trigger language plpgsql as $$ begin
		if nextval('tries') = 1 then perform pg_advisory_xact_lock(7); raise exception 'deadlock' using errcode = '40P01'; end if; return new; end $$;
		create trigger meet_a_deadlock before insert on access_codes for each row execute function meet_a_deadlock()`,
	)
	b.must(err)
	keeper, err := b.db.Pool.Acquire(t.Context())
	b.must(err)
	defer keeper.Release()
	_, err = keeper.Exec(t.Context(), "select pg_advisory_lock($1)", gate)
	b.must(err)
	created := make(chan device.Code, 1)
	go func() {
		defer close(created)
		c, err := ofKey(b.device, "")
		if err != nil {
			t.Error(err)
			return
		}
		created <- c
	}()
	b.until("the first try has begun", func() (waits bool) {
		b.must(
			b.db.Pool.QueryRow(t.Context(), `select exists (select 1 from pg_locks where locktype = 'advisory' and not granted
			and objid = $1 and database = (select oid from pg_database where datname = current_database()))`, gate).
				Scan(&waits),
		)
		return waits
	})
	_, err = b.access.Devices.DeleteCode(t.Context(), b.p, first.ID.String(), "")
	b.must(err)
	_, err = keeper.Exec(t.Context(), "select pg_advisory_unlock($1)", gate)
	b.must(err)
	if c := <-created; c.PIN == nil || *c.PIN == "746283" {
		t.Error("it has the PIN of a code that was deleted")
	}
}

// Codes with one key are changed together, so their number is limited.
func TestKeyedCode_NumberIsBounded(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "yale"})
	ofKey := func(dev string) (device.Code, error) {
		c, _, err := b.access.Devices.CreateCode(t.Context(), b.p,
			device.NewCode{DeviceID: dev, CommonCodeKey: "k", EvenIfOffline: true})
		return c, err
	}
	const most = 500
	_, err := b.db.Pool.Exec(t.Context(), `insert into devices select (jsonb_populate_record(d,
		jsonb_build_object('device_id', gen_random_uuid(), 'vendor_ref', 'other ' || n, 'name', 'other'))).* from devices d, generate_series(1, $1::integer) n`, most)
	b.must(err)
	var other string
	b.must(
		b.db.Pool.QueryRow(t.Context(), "select device_id::text from devices where name = 'other' limit 1").
			Scan(&other),
	)
	first, err := ofKey(other)
	b.must(err)
	_, err = b.db.Pool.Exec(t.Context(), `insert into access_codes select (jsonb_populate_record(c,
		jsonb_build_object('access_code_id', gen_random_uuid(), 'device_id', d.device_id))).* from access_codes c, devices d
		where c.access_code_id = $1 and d.name = 'other' and d.device_id <> c.device_id`, first.ID)
	b.must(err)
	_, err = ofKey(b.device)
	if e, _ := errors.AsType[*domain.Error](err); e == nil || e.Kind != domain.Invalid || e.Field != "common_code_key" {
		t.Errorf("one more: %v", err)
	}
	// Frees their PINs for others.
	_, err = b.db.Pool.Exec(t.Context(), "delete from access_codes where access_code_id <> $1", first.ID)
	b.must(err)
	_, err = ofKey(b.device)
	b.must(err)
}
