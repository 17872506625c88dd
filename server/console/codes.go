package console

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/overview"
)

func (h *handler) codeRoutes() []route {
	routes := []route{
		page("/codes", h.listCodes),
		page("/codes/{code}", h.showCode),
		page("/locks/{lock}/codes/new", h.showCodeForm),
		action(domain.RoleOperator, "/locks/{lock}/codes/new", "/access_codes/create", h.createCode),
		action(domain.RoleOperator, "/codes/{code}/retry", "/access_codes/update", h.retryCode),
		action(domain.RoleOperator, "/codes/{code}/extend", "/access_codes/update", h.extendCode),
		action(domain.RoleOperator, "/codes/{code}/rename", "/access_codes/update", h.renameCode),
		action(domain.RoleOperator, "/codes/{code}/remove", "/access_codes/delete", h.removeCode),
		page("/locks/{lock}/unmanaged", h.listUnmanaged),
		page("/locks/{lock}/unmanaged/import", h.showImport),
		action(
			domain.RoleOperator,
			"/locks/{lock}/unmanaged/convert",
			"/access_codes/unmanaged/convert_to_managed",
			h.convertCodes,
		),
	}
	if h.Reveal {
		routes = append(routes, action(domain.RoleOperator, "/codes/{code}/reveal", revealOperation, h.reveal))
	}
	return routes
}

var codeNotices = map[string]string{
	"code-created":    "The code is created. The server now sets it on the lock.",
	"code-retried":    "The server tries again now.",
	"code-extended":   "The end of the code is changed. The server now changes it on the lock.",
	"code-renamed":    "The code is renamed.",
	"code-removed":    "The server removes the code from the lock. It is listed until the lock has confirmed.",
	"codes-converted": "The codes become managed after the next read of the lock, which begins now.",
}

// codeStatuses are the options of the filter by status.
var codeStatuses = []option{
	{"", "All"},
	{"set", "Set"},
	{"setting", "Setting"},
	{"removing", "Removing"},
	{"unset", "Not set"},
	{"unknown", "Unknown"},
	{overview.Failing, "With an error"},
}

// codeKinds are the options of the filter by kind.
var codeKinds = []option{
	{"", "All"},
	{string(kindAlways), "Always"},
	{string(kindTimed), "From–to"},
	{string(kindOnce), "Opens once"},
	{string(kindOffline), "Offline"},
}

// codeAges are the options of the filter by the age of the last change.
var codeAges = []option{{"", "Any"}, {"10m", "10 minutes"}, {"1h", "1 hour"}, {"24h", "1 day"}, {"168h", "1 week"}}

// codeFilter reads the filters of a list of codes from the URL.
func (rq *request) codeFilter() overview.CodeFilter {
	f := overview.CodeFilter{Search: rq.query("q"), Status: rq.query("status"), Kind: rq.query("kind")}
	if !isOption(codeStatuses, f.Status) {
		f.Status = ""
	}
	if !isOption(codeKinds, f.Kind) {
		f.Kind = ""
	}
	f.Device, _ = uuid.Parse(rq.query("lock"))
	if age, err := time.ParseDuration(rq.query("older")); err == nil && isOption(codeAges, rq.query("older")) {
		f.ChangedBefore = new(rq.now.Add(-age))
	}
	return f
}

func isOption(options []option, value string) bool {
	return slices.ContainsFunc(options, func(o option) bool { return o.value == value })
}

// codeList is what the list of codes shows.
type codeList struct {
	codes []codeView
	next  string
	lock  string // the name of the lock of the filter; empty: none
}

func (h *handler) listCodes(rq *request) error {
	f := rq.codeFilter()
	codes, next, err := h.findCodes(rq, f, overview.ParsePosition(rq.query(afterParam)), pageRows)
	if err != nil {
		return err
	}
	list := codeList{codes: codes, next: next.String()}
	if f.Device != uuid.Nil {
		names, err := h.Access.Overview.NameDevices(rq.r.Context(), rq.workspace.ID, []uuid.UUID{f.Device})
		if err != nil {
			return err
		}
		list.lock = cmp.Or(names[f.Device].Name, "Lock "+short(f.Device.String()))
	}
	return rq.show(codesPage(rq, list))
}

// findCodes returns a page of managed codes, newest first.
func (h *handler) findCodes(
	rq *request,
	f overview.CodeFilter,
	from overview.Position,
	limit int,
) (views []codeView, next overview.Position, err error) {
	list, err := h.Access.Overview.Codes(rq.r.Context(), rq.workspace.ID, f, from, limit)
	if err != nil {
		return nil, next, err
	}
	views, err = h.readCodes(rq, list.IDs)
	return views, list.Next, err
}

// readCodes returns managed codes, newest first, with the names of their locks and their creators. Codes that have been
// deleted are absent.
func (h *handler) readCodes(rq *request, ids []uuid.UUID) (views []codeView, err error) {
	ctx := rq.r.Context()
	if len(ids) == 0 {
		return nil, nil
	}
	codes, _, err := h.Access.Devices.ListCodes(
		ctx,
		rq.reader(),
		device.CodeFilter{Managed: true, IDs: new(texts(ids))},
		domain.Page{Limit: len(ids)},
	)
	if err != nil {
		return nil, err
	}
	var devices []uuid.UUID
	for _, c := range codes {
		views = append(views, viewOf(c))
		if !slices.Contains(devices, c.DeviceID) {
			devices = append(devices, c.DeviceID)
		}
	}
	names, err := h.Access.Overview.NameDevices(ctx, rq.workspace.ID, devices)
	if err != nil {
		return nil, err
	}
	creators, err := h.Access.Overview.Creators(ctx, rq.workspace.ID, ids)
	if err != nil {
		return nil, err
	}
	for i, v := range views {
		views[i].deviceName, views[i].zone = names[v.device].Name, names[v.device].TimeZone
		views[i].managedBy = managedBy(creators[v.id])
	}
	slices.SortFunc(views, func(a, b codeView) int {
		return cmp.Or(b.createdAt.Compare(a.createdAt), -slices.Compare(a.id[:], b.id[:]))
	})
	return views, nil
}

// codeDetails is what the page of a code shows.
type codeDetails struct {
	codeView
	lock      device.Device // zero if it has been removed
	timeline  timeline
	hcl       string
	importing string
	revealed  bool // whether reveal is switched on
}

func (h *handler) showCode(rq *request) error {
	c, err := h.Access.Devices.GetCode(rq.r.Context(), rq.reader(), true, rq.param("code"), "", "")
	if err != nil {
		return err
	}
	views, err := h.readCodes(rq, []uuid.UUID{c.ID})
	if err != nil || len(views) == 0 {
		return cmp.Or(err, error(errNoPage))
	}
	d := codeDetails{codeView: views[0], revealed: h.Reveal}
	d.lock, err = h.Access.Devices.GetDevice(rq.r.Context(), rq.reader(), c.DeviceID.String(), "")
	if e, ok := domain.AsError(err); err != nil && (!ok || e.Kind != domain.NotFound) {
		return err
	}
	if d.timeline, err = h.readTimeline(rq, overview.TimelineFilter{Device: c.DeviceID, Code: c.ID}); err != nil {
		return err
	}
	d.timeline.zone = d.zone
	label := hclLabels([]codeView{d.codeView})[0]
	d.hcl = hclResource(d.codeView, label, d.lock.Capabilities.ProviderPIN)
	d.importing = hclImport(d.codeView, label)
	return rq.show(codePage(rq, d))
}

// codeURL returns the page of the code in the path.
func (rq *request) codeURL() string { return rq.url("/codes/" + rq.param("code")) }

func (h *handler) retryCode(rq *request) error {
	if _, err := h.Access.Devices.RetryCode(rq.r.Context(), rq.principal, rq.param("code")); err != nil {
		return err
	}
	return rq.done(rq.codeURL(), "code-retried")
}

func (h *handler) renameCode(rq *request) error {
	name := rq.form("name")
	if name == "" {
		return domain.Invalidf("name", "Enter a name. Nothing was changed.")
	}
	change := device.CodeChange{ID: rq.param("code"), Name: &name, EvenIfOffline: true}
	if _, err := h.Access.Devices.UpdateCode(rq.r.Context(), rq.principal, change); err != nil {
		return err
	}
	return rq.done(rq.codeURL(), "code-renamed")
}

func (h *handler) extendCode(rq *request) error {
	c, err := h.Access.Devices.GetCode(rq.r.Context(), rq.reader(), true, rq.param("code"), "", "")
	if err != nil {
		return err
	}
	names, err := h.Access.Overview.NameDevices(rq.r.Context(), rq.workspace.ID, []uuid.UUID{c.DeviceID})
	if err != nil {
		return err
	}
	ends, err := localTime("ends_at", rq.form("ends_at"), names[c.DeviceID].TimeZone)
	if err != nil {
		return err
	}
	if ends == "" {
		return domain.Invalidf("ends_at", "Enter the new end. Nothing was changed.")
	}
	change := device.CodeChange{ID: rq.param("code"), EndsAt: ends, EvenIfOffline: true}
	if _, err := h.Access.Devices.UpdateCode(rq.r.Context(), rq.principal, change); err != nil {
		return err
	}
	return rq.done(rq.codeURL(), "code-extended")
}

func (h *handler) removeCode(rq *request) error {
	c, err := h.Access.Devices.GetCode(rq.r.Context(), rq.reader(), true, rq.param("code"), "", "")
	if err != nil {
		return err
	}
	if _, err := h.Access.Devices.DeleteCode(rq.r.Context(), rq.principal, rq.param("code"), ""); err != nil {
		return err
	}
	return rq.done(rq.url("/locks/"+c.DeviceID.String()), "code-removed")
}

// codeForm is the form for a new code. It has no field for the PIN, which is never sent back.
type codeForm struct {
	lock         device.Device
	kinds        []option
	kind         string
	name         string
	starts, ends string // local times of the lock
	rounding     string
	external     bool
	errors       map[string]string // by field; under "" those of the whole form
}

// codeRoundings are the options for how far a vendor may widen the time frame of an offline code.
var codeRoundings = []option{{"1h", "Hours: 1 to 672 hours"}, {"1d", "Days: 29 to 367 days"}}

// newCodeForm returns the form for a lock with the values of the request.
func (h *handler) newCodeForm(rq *request) (f codeForm, err error) {
	f.lock, err = h.Access.Devices.GetDevice(rq.r.Context(), rq.reader(), rq.param("lock"), "")
	if err != nil {
		return f, err
	}
	if f.lock.Capabilities.OnlineCodes {
		f.kinds = append(f.kinds, option{string(kindAlways), "Always"}, option{string(kindTimed), "From–to"})
	}
	if f.lock.Capabilities.OfflineCodes {
		f.kinds = append(
			f.kinds,
			option{string(kindOffline), "Offline, from–to"},
			option{string(kindOnce), "Opens once"},
		)
	}
	f.kind = rq.form("kind")
	if !isOption(f.kinds, f.kind) && len(f.kinds) > 0 {
		f.kind = f.kinds[0].value
	}
	f.name, f.starts, f.ends = rq.form("name"), rq.form("starts_at"), rq.form("ends_at")
	f.rounding, f.external = rq.form("rounding"), rq.form("external") != ""
	f.errors = map[string]string{}
	return f, nil
}

func (h *handler) showCodeForm(rq *request) error {
	f, err := h.newCodeForm(rq)
	if err != nil {
		return err
	}
	return rq.show(codeFormPage(rq, f))
}

func (h *handler) createCode(rq *request) error {
	f, err := h.newCodeForm(rq)
	if err != nil {
		return err
	}
	n, err := f.request(rq.form("code"))
	var c device.Code
	if err == nil {
		c, _, err = h.Access.Devices.CreateCode(rq.r.Context(), rq.principal, n)
	}
	if e, ok := domain.AsError(err); ok && (e.Kind == domain.Invalid || e.Kind == domain.Conflict) {
		f.fail(e)
		return rq.render(http.StatusUnprocessableEntity, codeFormPage(rq, f))
	}
	if err != nil {
		return err
	}
	return rq.done(rq.url("/codes/"+c.ID.String()), "code-created")
}

// request returns what the form requests. It fails with Invalid.
func (f codeForm) request(pin string) (n device.NewCode, err error) {
	kind := codeKind(f.kind)
	n = device.NewCode{
		DeviceID:                    f.lock.ID.String(),
		Name:                        domain.NonEmpty(f.name),
		PIN:                         pin,
		Offline:                     kind.isOffline(),
		OneTime:                     kind == kindOnce,
		ExternalModificationAllowed: f.external,
		NativeScheduling:            true,
		EvenIfOffline:               true,
	}
	if kind == kindAlways {
		return n, nil
	}
	var startsErr, endsErr error
	n.StartsAt, startsErr = localTime("starts_at", f.starts, f.lock.TimeZone)
	if kind == kindOnce {
		return n, startsErr
	}
	n.EndsAt, endsErr = localTime("ends_at", f.ends, f.lock.TimeZone)
	if kind == kindOffline {
		n.Rounding = f.rounding
	}
	if startsErr == nil && n.StartsAt == "" {
		startsErr = domain.Invalidf("starts_at", "Enter when the code begins.")
	}
	if endsErr == nil && n.EndsAt == "" {
		endsErr = domain.Invalidf("ends_at", "Enter when the code ends.")
	}
	return n, domain.All(startsErr, endsErr)
}

// fail puts an error at its field.
func (f *codeForm) fail(e *domain.Error) {
	for _, one := range append([]*domain.Error{e}, e.Also...) {
		field := one.Field
		switch {
		case one.Type == "duplicate_access_code":
			field = "code"
		case !slices.Contains([]string{"name", "code", "starts_at", "ends_at"}, field):
			field = ""
		}
		if f.errors[field] == "" {
			f.errors[field] = one.Message
		}
	}
}

// localLayout is the value of a field for a local time.
const localLayout = "2006-01-02T15:04"

// localTime returns a local time of a zone in RFC 3339; an empty text stays empty. It fails with Invalid.
func localTime(field, text, zone string) (string, error) {
	if text == "" {
		return "", nil
	}
	for _, layout := range []string{localLayout, "2006-01-02T15:04:05", "2006-01-02 15:04"} {
		if at, err := time.ParseInLocation(layout, text, location(zone)); err == nil {
			return at.Format(time.RFC3339), nil
		}
	}
	return "", domain.Invalidf(field, "Enter a date and a time, such as 2030-06-07 15:00.")
}

// location returns a time zone; UTC for an unknown one.
func location(zone string) *time.Location {
	place, err := time.LoadLocation(zone)
	if err != nil {
		return time.UTC
	}
	return place
}

// inZone returns a time as the value of a field for a local time.
func inZone(at *time.Time, zone string) string {
	if at == nil {
		return ""
	}
	return at.In(location(zone)).Format(localLayout)
}
