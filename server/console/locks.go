package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/overview"
)

func (h *handler) lockRoutes() []route {
	return []route{
		page("/locks", h.listLocks),
		page("/locks/{lock}", h.showLock),
		action(domain.RoleOperator, "/locks/{lock}/refresh", refreshOperation, h.refreshLock),
		action(domain.RoleAdmin, "/locks/{lock}/lock", "/locks/lock_door", h.lockDoor),
		action(domain.RoleAdmin, "/locks/{lock}/unlock", "/locks/unlock_door", h.unlockDoor),
	}
}

// refreshOperation names a refresh in the audit log. The API has no such operation.
const refreshOperation = "device.refreshed"

// lockNotices are the notices of actions on locks.
var lockNotices = map[string]string{
	"lock-refresh": "The server reads the lock now. Reload the page in a few seconds.",
	"lock-lock":    "The server locks the door now. The timeline shows the result.",
	"lock-unlock":  "The server unlocks the door now. The timeline shows the result.",
}

// pageRows is the number of rows on a page of a list.
const pageRows = 50

// lockRow is a lock in the list.
type lockRow struct {
	device.Device
	codes overview.CodeCount
	facts overview.DeviceFacts
}

// codesText returns how many codes are set, how many there are, and how many fit.
func (l lockRow) codesText() string {
	text := fmt.Sprintf("%d of %d", l.codes.Set, l.codes.All)
	if l.Capabilities.MaxCodes > 0 {
		text += fmt.Sprintf(" (limit %d)", l.Capabilities.MaxCodes)
	}
	return text
}

// lockList is what the list of locks shows.
type lockList struct {
	locks             []lockRow
	next              string
	accounts, vendors []option
}

// deviceStates are the options of the filter by state.
var deviceStates = []option{{"", "All"}, {"online", "Online"}, {"offline", "Offline"}, {"battery", "Battery low"}}

// deviceFilter reads the filters of a list of devices from the URL.
func (rq *request) deviceFilter(kind string) overview.DeviceFilter {
	f := overview.DeviceFilter{
		Kind:     kind,
		Search:   rq.query("q"),
		Provider: rq.query("provider"),
		Customer: rq.query("customer"),
	}
	f.Account, _ = uuid.Parse(rq.query("account"))
	switch rq.query("state") {
	case "online":
		f.Online = new(true)
	case "offline":
		f.Online = new(false)
	case "battery":
		f.BatteryBelow = 0.25
	}
	return f
}

func (h *handler) listLocks(rq *request) error {
	ctx := rq.r.Context()
	list, rows, err := h.findDevices(rq, rq.deviceFilter("lock"))
	if err != nil {
		return err
	}
	counts, err := h.Access.Overview.CountCodes(ctx, list.IDs)
	if err != nil {
		return err
	}
	facts, err := h.Access.Overview.DeviceFacts(ctx, rq.workspace.ID, list.IDs)
	if err != nil {
		return err
	}
	shown := lockList{next: list.Next.String()}
	for _, d := range rows {
		shown.locks = append(shown.locks, lockRow{d, counts[d.ID], facts[d.ID]})
	}
	accounts, vendors, err := h.Access.Overview.Choices(ctx, rq.workspace.ID)
	if err != nil {
		return err
	}
	shown.accounts, shown.vendors = []option{{"", "All"}}, []option{{"", "All"}}
	for _, a := range accounts {
		shown.accounts = append(
			shown.accounts,
			option{a.ID.String(), cmp.Or(a.Name, a.Provider+" "+short(a.ID.String()))},
		)
	}
	for _, v := range vendors {
		shown.vendors = append(shown.vendors, option{v, vendorWords(v)})
	}
	if id := rq.query("account"); id != "" && !isOption(shown.accounts, id) {
		shown.accounts = append(shown.accounts, option{id, "Account " + short(id)})
	}
	return rq.show(locksPage(rq, shown))
}

// vendorWords returns the name of a vendor, such as device_provider_name of the API, for people.
func vendorWords(name string) string { return fallbackWords(name) }

// findDevices returns a page of devices, newest first.
func (h *handler) findDevices(
	rq *request,
	f overview.DeviceFilter,
) (list overview.List, rows []device.Device, err error) {
	ctx := rq.r.Context()
	from := overview.ParsePosition(rq.query(afterParam))
	list, err = h.Access.Overview.Devices(ctx, rq.workspace.ID, f, from, pageRows)
	if err != nil || len(list.IDs) == 0 {
		return list, nil, err
	}
	rows, _, err = h.Access.Devices.ListDevices(
		ctx,
		rq.reader(),
		device.Filter{IDs: new(texts(list.IDs)), Unmanaged: f.Unmanaged},
		domain.Page{Limit: pageRows},
	)
	slices.SortFunc(rows, func(a, b device.Device) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), -slices.Compare(a.ID[:], b.ID[:]))
	})
	return list, rows, err
}

func texts(ids []uuid.UUID) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = id.String()
	}
	return out
}

// lockDetails is what the page of a lock shows.
type lockDetails struct {
	device.Device
	facts     overview.DeviceFacts
	count     overview.CodeCount
	codes     []codeView // the newest ones
	more      bool       // whether there are more codes
	unmanaged int
	timeline  timeline
}

// lockPageCodes is the maximum number of codes on the page of a lock.
const lockPageCodes = 20

func (h *handler) showLock(rq *request) error {
	ctx := rq.r.Context()
	d, err := h.Access.Devices.GetDevice(ctx, rq.reader(), rq.param("lock"), "")
	if err != nil {
		return err
	}
	l := lockDetails{Device: d}
	facts, err := h.Access.Overview.DeviceFacts(ctx, rq.workspace.ID, []uuid.UUID{d.ID})
	if err != nil {
		return err
	}
	counts, err := h.Access.Overview.CountCodes(ctx, []uuid.UUID{d.ID})
	if err != nil {
		return err
	}
	l.facts, l.count = facts[d.ID], counts[d.ID]
	codes, next, err := h.findCodes(rq, overview.CodeFilter{Device: d.ID}, overview.Position{}, lockPageCodes)
	if err != nil {
		return err
	}
	l.codes, l.more = codes, next != overview.Position{}
	if l.unmanaged, err = h.Access.Overview.CountUnmanagedCodes(ctx, rq.workspace.ID, d.ID); err != nil {
		return err
	}
	if l.timeline, err = h.readTimeline(rq, overview.TimelineFilter{Device: d.ID}); err != nil {
		return err
	}
	l.timeline.zone = d.TimeZone
	return rq.show(lockPage(rq, l))
}

// lockURL returns the page of the lock in the path.
func (rq *request) lockURL() string { return rq.url("/locks/" + rq.param("lock")) }

func (h *handler) refreshLock(rq *request) error {
	if err := h.Access.Devices.RefreshDevice(rq.r.Context(), rq.principal, rq.param("lock")); err != nil {
		return err
	}
	return rq.done(rq.lockURL(), "lock-refresh")
}

func (h *handler) lockDoor(rq *request) error { return h.moveBolt(rq, true, "lock-lock") }

func (h *handler) unlockDoor(rq *request) error { return h.moveBolt(rq, false, "lock-unlock") }

// moveBolt locks or unlocks a door. The operator must have typed the name of the lock.
func (h *handler) moveBolt(rq *request, lock bool, notice string) error {
	d, err := h.Access.Devices.GetDevice(rq.r.Context(), rq.reader(), rq.param("lock"), "")
	if err != nil {
		return err
	}
	if rq.form("confirm") != strings.TrimSpace(d.Name) {
		return domain.Invalidf("confirm", "Type the exact name of the lock. Nothing was done.")
	}
	attempt, err := h.Access.Devices.RunLockCommand(rq.r.Context(), rq.principal, d.ID.String(), lock)
	if err != nil {
		return err
	}
	if attempt.Status == device.Failed {
		return &domain.Error{Kind: domain.Conflict, Type: attempt.ErrorType, Message: attempt.Message}
	}
	return rq.done(rq.lockURL(), notice)
}

// capabilityWords returns what a lock can do, in words.
func capabilityWords(d device.Device) (words []string) {
	caps := d.Capabilities
	for _, c := range []struct {
		is   bool
		text string
	}{
		{caps.Lock, "Locks remotely"},
		{caps.Unlock, "Unlocks remotely"},
		{caps.AutoLock, "Locks automatically"},
		{caps.OnlineCodes, "Takes codes remotely"},
		{caps.OfflineCodes, "Takes offline codes"},
		{caps.NativeSchedule, "Keeps time frames itself"},
		{caps.Convertible(), "Unmanaged codes can be adopted"},
		{caps.ListCodes && !caps.PINVisible, "Hides PINs"},
		{caps.Simulated, "Simulated"},
	} {
		if c.is {
			words = append(words, c.text)
		}
	}
	return words
}

// batteryText is the level of a battery in percent; empty: unknown.
func batteryText(level *float64) string {
	if level == nil {
		return ""
	}
	return fmt.Sprintf("%.0f %%", *level*100)
}

// batteryTone is the color of a battery's level.
func batteryTone(level *float64) tone {
	switch {
	case level == nil:
		return idle
	case *level < 0.1:
		return bad
	case *level < 0.25:
		return warning
	}
	return good
}

func partTone(p Part) tone {
	if p.Down {
		return bad
	}
	return warning
}
