package console

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/overview"
)

func (h *handler) lockRoutes() []route {
	return []route{
		page("/locks", h.listLocks),
		page("/locks/{lock}", h.showLock),
	}
}

// lockNotices are the notices of actions on locks.
var lockNotices = map[string]string{}

// pageRows is the number of rows on a page of a list.
const pageRows = 50

// lockRow is a lock in the list.
type lockRow struct {
	device.Device
	codes overview.CodeCount
}

// deviceStates are the options of the filter by state.
var deviceStates = []option{{"", "All"}, {"online", "Online"}, {"offline", "Offline"}, {"battery", "Battery low"}}

// deviceFilter reads the filters of a list of devices from the URL.
func (rq *request) deviceFilter(kind string) overview.DeviceFilter {
	f := overview.DeviceFilter{Kind: kind, Search: rq.query("q"), Provider: rq.query("provider")}
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
	list, rows, err := h.findDevices(rq, rq.deviceFilter("lock"))
	if err != nil {
		return err
	}
	counts, err := h.Access.Overview.CountCodes(rq.r.Context(), list.IDs)
	if err != nil {
		return err
	}
	locks := make([]lockRow, len(rows))
	for i, d := range rows {
		locks[i] = lockRow{d, counts[d.ID]}
	}
	return rq.show(locksPage(rq, locks, list.Next.String()))
}

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

func (h *handler) showLock(rq *request) error {
	d, err := h.Access.Devices.GetDevice(rq.r.Context(), rq.reader(), rq.param("lock"), "")
	if err != nil {
		return err
	}
	return rq.show(lockPage(rq, d))
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
