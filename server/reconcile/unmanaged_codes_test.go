package reconcile_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// An unread lock may have many codes. Each is stored once, even if the vendor lists it twice.
func TestUnmanagedCodes_AllAreStored(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	const many, event = 250, "access_code.unmanaged.created"
	before := len(b.told(event))
	var read []shown
	for i := range many {
		read = append(read, found(fmt.Sprint("k", i), fmt.Sprint(2000+i)))
	}
	off := found("off", "9999")
	off.Disabled = true
	b.read(append(read, off, found("k7", "8888"))...)
	pins := map[string]bool{}
	for _, c := range b.unmanaged() {
		pins[*c.PIN] = true
		if disabled := len(c.Errors) == 1 &&
			c.Errors[0].Code == "access_code_inactive"; disabled != (*c.PIN == "9999") ||
			len(c.Errors) > 1 {
			t.Errorf("%s: errors %v", *c.PIN, c.Errors)
		}
	}
	if len(pins) != many+1 || pins["2007"] || !pins["8888"] || !pins["2249"] {
		t.Errorf("%d codes, the duplicate with its first PIN: %t", len(pins), pins["2007"])
	}
	b.read(append(read, off)...)
	if told := len(b.told(event)) - before; told != many+1 {
		t.Errorf("%d events", told)
	}
	left := len(b.told("access_code.unmanaged.removed"))
	b.read(read[:2]...)
	if got := b.unmanaged(); len(got) != 2 {
		t.Errorf("%d of 2 codes are kept", len(got))
	}
	if told := len(b.told("access_code.unmanaged.removed")) - left; told != many-1 {
		t.Errorf("%d removal events", told)
	}
}

// Each lock of a large account is stored, announced, and read.
func TestLargeAccount_AllLocksAreAdded(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	const many = 250
	var locks []device.FoundDevice
	for i := range many {
		locks = append(locks, device.FoundDevice{Ref: fmt.Sprint("x", i), Name: "A door", Online: i > 0})
	}
	b.must(b.access.Devices.RecordDevices(t.Context(), holder{}, b.account, locks))
	if added, connected := len(b.told("device.added"))-1, len(b.told("device.connected"))-1; added != many ||
		connected != many-1 {
		t.Errorf("%d added events, %d connected events", added, connected)
	}
	due, err := b.access.Devices.DueDevices(t.Context(), 2*many,
		worker.Saturated{Accounts: []uuid.UUID{}, Workspaces: []uuid.UUID{}, Creators: []uuid.UUID{}})
	b.must(err)
	if len(due) < many {
		t.Errorf("%d reads planned", len(due))
	}
	b.must(b.access.Devices.RecordDevices(t.Context(), holder{}, b.account, locks[:1]))
	var woken int
	b.must(
		b.db.Pool.QueryRow(t.Context(), "select count(*) from devices where vendor_ref like 'x%' and wake_seq > (select wake_seq from devices where vendor_ref = 'x0')").
			Scan(&woken),
	)
	if woken != many-1 {
		t.Errorf("%d unlisted locks were woken", woken)
	}
}

// A vendor that renames its locks at each listing creates a bounded number of devices.
func TestAccountDevices_AreBounded(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august", access: access.Options{MaxDevices: 4}})
	for _, refs := range [][]string{{"x", "y", "x"}, {"z", "w"}, {"v", "x"}} {
		var locks []device.FoundDevice
		for _, ref := range refs {
			locks = append(locks, device.FoundDevice{Ref: ref, Name: "A door", Online: true})
		}
		b.must(b.access.Devices.RecordDevices(t.Context(), holder{}, b.account, locks))
	}
	var kept string
	b.must(
		b.db.Pool.QueryRow(t.Context(), "select string_agg(vendor_ref, '' order by vendor_ref) from devices where length(vendor_ref) = 1").
			Scan(&kept),
	)
	if kept != "xyz" {
		t.Errorf("%s are kept", kept)
	}
	exchanged := device.FoundDevice{
		Ref:          "x",
		Name:         "A door",
		Online:       true,
		SerialNumber: "one",
	}
	for _, serial := range []string{"one", "two"} {
		exchanged.SerialNumber = serial
		b.must(b.access.Devices.RecordDevices(t.Context(), holder{}, b.account, []device.FoundDevice{exchanged}))
	}
	b.must(
		b.db.Pool.QueryRow(t.Context(), "select serial_number from devices where vendor_ref = 'x' and removed_at is null").
			Scan(&kept),
	)
	if kept != "two" {
		t.Errorf("the replacement lock was not stored: got %q", kept)
	}
}
