package device

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// withDevice is a service with one device.
func withDevice(t *testing.T) (*Service, uuid.UUID) {
	t.Helper()
	s, w := withWorkspace(t, "Locks")
	account, device := uuid.New(), uuid.New()
	if _, err := s.db.Pool.Exec(t.Context(), `
		with a as (insert into connected_accounts (connected_account_id, workspace_id, adapter, provider, display_name, config_sealed)
			values ($1, $2, 'devicecloud', '', 'Locks', ''))
		insert into devices (device_id, workspace_id, connected_account_id, vendor_ref, device_type, provider, manufacturer, model,
			serial_number, name, online, capabilities, flags)
		values ($3, $2, $1, 'lock', 'august_lock', 'simulated', '', '', '', '', true, '{"online_codes": true, "list_codes": true}', '{}')`,
		account, w.ID, device); err != nil {
		t.Fatal(err)
	}
	return s, device
}

// change runs f in a transaction on the device.
func change(t *testing.T, s *Service, device uuid.UUID, f func(*deviceTx)) {
	t.Helper()
	err := s.onDevice(t.Context(), noFence{}, device, "change", func(d *deviceTx) error {
		f(d)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// filled returns a code whose fields all have values.
func filled(t *testing.T, pins pinDigits, id uuid.UUID) *lockstate.Code {
	t.Helper()
	at := time.Now().Add(-time.Hour).UTC().Truncate(time.Microsecond)
	c := &lockstate.Code{}
	for field, value := range reflect.ValueOf(c).Elem().Fields() {
		switch value.Interface().(type) {
		case time.Time:
			value.Set(reflect.ValueOf(at))
		case *time.Time:
			value.Set(reflect.ValueOf(&at))
		case uuid.UUID:
			value.Set(reflect.ValueOf(uuid.New()))
		case lockstate.PIN:
			value.Set(reflect.ValueOf(pins.of("48" + field.Name[:1])))
		case *lockstate.State:
			value.Set(reflect.ValueOf(&lockstate.State{
				Name: new("Was"), PIN: pins.of("1234"), StartsAt: &at, EndsAt: &at, VendorName: new("was"),
			}))
		case *lockstate.Problem:
			value.Set(reflect.ValueOf(&lockstate.Problem{Code: field.Name, Message: "why", At: at}))
		default:
			fill(t, value)
		}
	}
	c.ID, c.PulledBackup, c.Status, c.Offline = id, uuid.Nil, lockstate.StatusSetting, lockstate.OfflineHourly
	c.ExternalChange = "modified"
	c.DesiredGen, c.AppliedGen = 3, 2 // the confirmed state differs from the desired one
	return c
}

// A lock that is loaded again equals the one that was written.
func TestWrite_StoresEveryFieldOfACode(t *testing.T) {
	t.Parallel()
	s, device := withDevice(t)
	id := uuid.New()
	var want lockstate.Code
	check := func(what string) {
		t.Helper()
		change(t, s, device, func(d *deviceTx) {
			got := d.lock.Code(id)
			if got == nil {
				t.Fatalf("%s code does not exist", what)
			}
			if diff := cmp.Diff(want, *got); diff != "" {
				t.Errorf("%s code (-written, +loaded): %s", what, diff)
			}
		})
	}
	change(t, s, device, func(d *deviceTx) {
		c := filled(t, d.pins, id)
		want, d.lock.Codes = *c, append(d.lock.Codes, c)
		d.changes.Added = append(d.changes.Added, c)
	})
	check("a new")
	change(t, s, device, func(d *deviceTx) {
		c := d.lock.Code(id)
		kept := *c
		*c = lockstate.Code{ID: id, DesiredGen: 9, DesiredAt: kept.DesiredAt, Status: lockstate.StatusUnset}
		c.Offline, c.UsesBackupPool, c.PreferNativeScheduling = kept.Offline, kept.UsesBackupPool, kept.PreferNativeScheduling
		want = *c
	})
	check("an emptied")
	change(t, s, device, func(d *deviceTx) {
		c := d.lock.Code(id)
		*c = *filled(t, d.pins, id)
		want = *c
	})
	check("a changed")
}

// Two codes may exchange their references in one transaction.
func TestWrite_MovesReferencesBetweenCodes(t *testing.T) {
	t.Parallel()
	s, device := withDevice(t)
	ids := []uuid.UUID{uuid.New(), uuid.New(), uuid.New()}
	change(t, s, device, func(d *deviceTx) {
		for i, ref := range []string{"a", "b", ""} {
			c := &lockstate.Code{ID: ids[i], Managed: true, DesiredGen: 1, Ref: ref, Status: lockstate.StatusSet}
			d.lock.Codes, d.changes.Added = append(d.lock.Codes, c), append(d.changes.Added, c)
		}
	})
	want := []string{"b", "c", "a"}
	change(t, s, device, func(d *deviceTx) {
		for i, id := range ids {
			d.lock.Code(id).Ref = want[i]
		}
	})
	change(t, s, device, func(d *deviceTx) {
		for i, id := range ids {
			if got := d.lock.Code(id).Ref; got != want[i] {
				t.Errorf("code %d has the reference %q, want %q", i, got, want[i])
			}
		}
	})
}

// A transaction with more statements than one round trip takes writes all of them.
func TestWrite_ManyCodes(t *testing.T) {
	t.Parallel()
	s, device := withDevice(t)
	const all = 3 * maxBatch
	change(t, s, device, func(d *deviceTx) {
		for range all {
			c := &lockstate.Code{ID: uuid.New(), Managed: true, DesiredGen: 1, Status: lockstate.StatusSetting}
			d.lock.Codes, d.changes.Added = append(d.lock.Codes, c), append(d.changes.Added, c)
		}
	})
	var n int
	if err := s.db.InTx(t.Context(), func(tx store.Tx) error {
		rows, err := tx.AllCodesOfDevice(t.Context(), device)
		n = len(rows)
		return err
	}); err != nil || n != all {
		t.Errorf("%d codes, %v; want %d", n, err, all)
	}
}
