package provider

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// The codes of stays that do not overlap may have one PIN.

// stayAt is a stay of an hour that starts so many minutes after a day in a month.
func stayAt(minutes int) (starts, ends string) {
	at := time.Now().UTC().AddDate(0, 1, 0).Truncate(24 * time.Hour).Add(time.Duration(minutes) * time.Minute)
	return at.Format(time.RFC3339), at.Add(time.Hour).Format(time.RFC3339)
}

func TestServerPlan_JudgesStaysAsTheServerDoes(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	august := srv.Device(t, "august")
	create := func(pin string, minutes int) (made api.AccessCodeCreatedResponse, status int) {
		starts, ends := stayAt(minutes)
		status = srv.Post(t, "/access_codes/create", map[string]any{
			"device_id": august, "name": "Guest", "code": pin, "starts_at": starts, "ends_at": ends,
		}, &made)
		return made, status
	}
	offsets := []int{-100, -75, -74, -60, -30, 0, 30, 60, 74, 75, 100}
	pin := func(i int) string { return fmt.Sprint(4815 + 2*i) }
	for i := range offsets {
		if _, status := create(pin(i), 0); status != http.StatusOK {
			t.Fatalf("create: %d", status)
		}
	}
	moving := make([]string, len(offsets)) // each has the PIN of another stay, a day later
	for i := range offsets {
		made, status := create(pin(i), 24*60)
		if status != http.StatusOK {
			t.Fatalf("create: %d", status)
		}
		moving[i] = made.AccessCode.AccessCodeID
	}
	p := startPlugin(t, map[string]string{"endpoint": srv.URL, "api_key": srv.APIKey})
	for i, offset := range offsets {
		starts, ends := stayAt(offset)
		attributes := func(starts, ends string) map[string]tftypes.Value {
			return codeOf(august, "code", pin(i), "name", "Guest", "starts_at", starts, "ends_at", ends)
		}
		another := attributes(starts, ends)
		another["name"] = text("Another guest")
		created := p.changes(codeType, nil, another)
		was := attributes(stayAt(24 * 60))
		was["access_code_id"], was["status"], was["type"] = text(moving[i]), text("unset"), text("time_bound")
		was["is_managed"] = tftypes.NewValue(tftypes.Bool, true)
		state := p.pack(object(p.stateType(codeType), was))
		p.refreshes(moving[i], august)
		moved := p.changes(codeType, state, attributes(starts, ends))

		status := srv.Post(t, "/access_codes/update", map[string]any{
			"access_code_id": moving[i], "starts_at": starts, "ends_at": ends,
		}, nil)
		isRefused := status == http.StatusConflict
		if (len(created.lines) > 0) != isRefused || (len(moved.lines) > 0) != isRefused {
			t.Errorf("%d minutes apart: the server answers %d, and the plans say %q and %q",
				offset, status, created.lines, moved.lines)
		}
		if isRefused {
			from, until := stayAt(0)
			created.expect(t, []string{"W - PIN is already on the lock"}, "from "+from+" to "+until,
				"time frames that are 15 minutes apart")
			moved.expect(t, []string{"W ends_at PIN is already on the lock at that time"}, "from "+from+" to "+until)
		}
	}
}

func TestPlan_NewStaysOfOnePIN(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	f.devices = append(f.devices, plainLock(fakeDevice, nil))
	p := f.plugin(t)
	stay := func(minutes int) map[string]tftypes.Value {
		starts, ends := stayAt(minutes)
		return codeOf(
			fakeDevice,
			"code",
			"4815",
			"name",
			fmt.Sprint("Guest ", minutes),
			"starts_at",
			starts,
			"ends_at",
			ends,
		)
	}
	p.changes(codeType, nil, stay(0)).expect(t, nil)
	p.changes(codeType, nil, stay(75)).expect(t, nil)
	from, until := stayAt(75)
	p.changes(codeType, nil, stay(149)).expect(t, []string{"W - PIN is already on the lock"},
		`the new code "Guest 75" of this plan, from `+from+" to "+until,
		"Choose another PIN for one of them, or time frames that are 15 minutes apart.")
	later := stay(0)
	later["starts_at"] = tftypes.NewValue(tftypes.String, tftypes.UnknownValue)
	p.changes(codeType, nil, later).expect(t, nil)
}

// stays declares codes of one PIN, each with its name and time frame.
func stays(frames map[string]int) string {
	var config strings.Builder
	for name, minutes := range frames {
		starts, ends := stayAt(minutes)
		config.WriteString(strings.Replace(accessCode(fmt.Sprintf(
			"name = %q\n  code = %q\n  starts_at = %q\n  ends_at = %q", name, longPIN, starts, ends,
		)), `"front"`, `"`+name+`"`, 1))
	}
	return config.String()
}

func TestAccessCodes_OfStaysThatShareAPIN(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	f.uniquePINs = true
	w := newDirectory(t, map[string]string{
		"versions.tf": required, "main.tf": f.config(stays(map[string]int{"ana": 0, "bo": 75})),
	})
	w.expect(true, "apply", "-auto-approve")
	w.expect(true, "plan", "-detailed-exitcode")
	f.expectWrites(t, "for two stays", "/access_codes/create", "/access_codes/create")

	w.rewrite(f.config(stays(map[string]int{"ana": 30, "bo": 75})))
	w.expect(false, "apply", "-auto-approve")
	expectSaid(
		t,
		"the extension",
		plainly(w.seen.String()),
		"duplicate_access_code",
		"has this PIN. Choose another PIN",
	)
	if strings.Contains(w.seen.String(), longPIN) {
		t.Error("the PIN is shown")
	}
}

// Terraform does not order the change of one stay and the creation of the next.
func TestCreation_WaitsForStayThatMovesAway(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	f.uniquePINs = true
	starts, ends := stayAt(0)
	id := f.unmanaged(fakeCode{name: "Ana", code: longPIN, managed: true, startsAt: starts, endsAt: ends})
	f.leaves(id, func(c *fakeCode) { c.startsAt, c.endsAt = stayAt(24 * 60) })
	w := newDirectory(t, map[string]string{"main.tf": required + f.config(stays(map[string]int{"bo": 30}))})
	w.expect(true, "apply", "-auto-approve")
	f.expectWrites(t, "in the end", "/access_codes/create", "/access_codes/create")
}

// A server that does not let codes take turns gets one more request, and then the holder must leave.
func TestCreation_OtherServersKeepStaysApartFromPINs(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	starts, ends := stayAt(0)
	id := f.unmanaged(fakeCode{name: "Ana", code: longPIN, managed: true, startsAt: starts, endsAt: ends})
	refuse := answerRaw(
		http.StatusConflict,
		"application/json",
		`{"ok": false, "error": {"type": "duplicate_access_code",
		"message": "It is taken.", "data": {"managed_access_code_id": "`+id+`"}}}`,
	)
	f.then("/access_codes/create", refuse, refuse)
	f.leaves(id, func(c *fakeCode) { c.status = "removing" })
	w := newDirectory(t, map[string]string{"main.tf": required + f.config(stays(map[string]int{"bo": 24 * 60}))})
	w.expect(true, "apply", "-auto-approve")
	f.expectWrites(t, "in the end", "/access_codes/create", "/access_codes/create", "/access_codes/create")
}

// The code of another stay, with the same name and PIN, is not the code of the creation.
func TestSharedAccessCode_SearchLeavesOtherStaysAlone(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	starts, ends := stayAt(0)
	other := fakeCode{name: "Nanny", code: longPIN, managed: true}
	other.startsAt, other.endsAt = stayAt(24 * 60)
	id := f.unmanaged(other)
	f.do(func() { f.codes[id].device = lockC })
	config := f.config(codeSet(
		fmt.Sprintf("code = %q\n  starts_at = %q\n  ends_at = %q", longPIN, starts, ends), lockA, lockC,
	))
	w := newDirectory(t, map[string]string{"versions.tf": required, "main.tf": config})
	f.then("/access_codes/create", f.losesOnC(), f.losesOnC())
	w.expect(true, "apply", "-auto-approve") // with a warning about the lock without an answer
	w.expect(true, "apply", "-auto-approve")
	w.expect(true, "destroy", "-auto-approve")
	if len(f.codes) != 1 || f.codes[id] == nil {
		t.Errorf("%d codes are left, and the code of the other stay: %t", len(f.codes), f.codes[id] != nil)
	}
}
