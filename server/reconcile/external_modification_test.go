package reconcile_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
)

// An error names the conflicting code as long as the reader may see it, with its current state.
func TestConflict_NamesOtherCode(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	taken := func(c device.Code, ref string) {
		t.Helper()
		w := b.work(c)
		b.begin(w)
		b.end(
			w,
			outcome{
				Failure: &lockstate.Failure{Class: lockstate.FailedDuplicate, Message: "taken", ConflictRef: ref},
			},
		)
	}
	tells := func(c device.Code, other *device.Code) {
		t.Helper()
		listed := b.managed()
		for _, got := range []device.Code{b.code(c.ID), listed[len(listed)-1]} {
			if len(got.Errors) != 1 || got.Errors[0].Code != "duplicate_code_on_device" {
				t.Fatalf("errors %v", got.Errors)
			}
			switch p := got.Errors[0]; {
			case other == nil && p.Other != [16]byte{}:
				t.Errorf("the error names %s, which does not exist", p.Other)
			case other != nil && (p.Other != other.ID || p.Managed != other.Managed):
				t.Errorf("the error names %s, managed %t; want %s, managed %t", p.Other, p.Managed, other.ID,
					other.Managed)
			}
		}
	}
	ours := b.on("2580", "k1")
	b.read(found("k1", "2580"), found("k2", "1470"))
	theirs := b.unmanaged()[0]
	c, _ := b.create("9988")
	taken(c, "k2")
	tells(c, &theirs)
	_, err := b.access.Devices.ConvertCode(t.Context(), b.p, theirs.ID.String(), nil)
	b.must(err)
	b.read(found("k1", "2580"), found("k2", "1470"))
	theirs.Managed = true
	tells(c, &theirs)
	b.update(device.CodeChange{ID: c.ID.String(), PIN: "9987"})
	taken(c, "k1")
	tells(c, &ours)
	_, err = b.db.Pool.Exec(t.Context(), "update access_codes set in_pool = true where access_code_id = $1", ours.ID)
	b.must(err)
	tells(c, nil) // pool codes are never named
}

// The error says whether a code was changed or deleted at the device.
func TestExternalModification_NamesChange(t *testing.T) {
	t.Parallel()
	for _, allowed := range []bool{false, true} {
		clock := &testClock{at: time.Now()}
		b := hand(t, options{profile: "august", access: access.Options{Now: clock.now}})
		name := "conflicting_external_modification"
		if allowed {
			name = "external_modification_in_effect"
		}
		c := b.on("2580", "k1")
		b.update(device.CodeChange{ID: c.ID.String(), ExternalModificationAllowed: &allowed})
		told := func(change string, found ...shown) {
			t.Helper()
			clock.pass(time.Minute) // longer than the list may lag
			b.read(found...)
			clock.pass(time.Minute) // and longer than the grace period of an empty list
			b.read(found...)
			got := b.code(c.ID)
			if all := append(got.Errors, got.Warnings...); len(all) != 1 || all[0].Code != name ||
				all[0].Change != change {
				t.Errorf("allowed %t: %v, want %s of %s", allowed, all, name, change)
			}
		}
		told("modified", found("k1", "1470"))
		if w := b.work(c); w.Action == lockstate.Put {
			b.begin(w)
			b.end(w, outcome{Ref: "k1", Confirmed: true})
		}
		told("removed")
	}
}
