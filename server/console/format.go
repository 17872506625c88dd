package console

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

var zeroID = uuid.Nil.String()

// tone is the color of a state or a label, after the stylesheet's names.
type tone string

const (
	good    tone = "success"
	warning tone = "warning"
	bad     tone = "error"
	news    tone = "info"
	idle    tone = "neutral"
)

// option is an option of a selection.
type option struct{ value, text string }

// input is a field of a form.
type input struct {
	name, label, value, help string
	kind                     string // the type of the input; empty: text
	autocomplete             string // empty: off
	required                 bool
}

func (f input) inputType() string {
	if f.kind == "" {
		return "text"
	}
	return f.kind
}

func (f input) autocompletion() string {
	if f.autocomplete == "" {
		return "off"
	}
	return f.autocomplete
}

// afterParam is the query parameter with the position where a page of a list starts.
const afterParam = "after"

// relative returns how long ago a time is, or how far ahead.
func relative(now, at time.Time) string {
	switch d := now.Sub(at); {
	case d >= 0 && d < 5*time.Second:
		return "just now"
	case d >= 0:
		return duration(d) + " ago"
	default:
		return "in " + duration(-d)
	}
}

// duration returns a length of time in its largest unit.
func duration(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	default:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	}
}

// absolute returns a time in a zone, with the zone's name. An unknown zone means UTC.
func absolute(at time.Time, zone string) string {
	place, err := time.LoadLocation(zone)
	if err != nil || zone == "" {
		return at.UTC().Format("2006-01-02 15:04:05 UTC")
	}
	return at.In(place).Format("2006-01-02 15:04:05 MST") + " (" + zone + ")"
}

// short returns the end of an identifier. The start is a time, which neighbors share.
func short(id string) string { return "…" + id[max(len(id)-8, 0):] }

// initials returns one or two letters of a name or an email address.
func initials(name string) string {
	name, _, _ = strings.Cut(name, "@")
	out := ""
	for _, part := range strings.FieldsFunc(name, func(r rune) bool { return r == ' ' || r == '.' || r == '-' || r == '_' }) {
		if out += strings.ToUpper(string([]rune(part)[:1])); len(out) > 1 {
			break
		}
	}
	return out
}

// navItem is a page in the navigation.
type navItem struct {
	name, path, icon string
	url              string
	current          bool
}

// attributes marks the current page.
func (n navItem) attributes() templ.Attributes {
	if n.current {
		return templ.Attributes{"aria-current": "page", "class": "menu-active"}
	}
	return templ.Attributes{}
}

// pages are the pages of a workspace in the navigation. A test checks that each has a route.
var pages = []navItem{
	{name: "Today", path: "", icon: "today"},
	{name: "Locks", path: "/locks", icon: "lock"},
	{name: "Codes", path: "/codes", icon: "code"},
	{name: "Thermostats", path: "/thermostats", icon: "climate"},
	{name: "Noise sensors", path: "/noise-sensors", icon: "noise"},
	{name: "People", path: "/people", icon: "people"},
	{name: "Accounts", path: "/accounts", icon: "account"},
	{name: "Webhooks", path: "/webhooks", icon: "webhook"},
	{name: "Activity", path: "/activity", icon: "activity"},
	{name: "Settings", path: "/settings", icon: "settings"},
}

// navigation returns the pages of the workspace, and those of the server for administrators.
func (rq *request) navigation() (items []navItem) {
	if rq.workspace.ID == uuid.Nil {
		return append([]navItem{{name: "Workspaces", icon: "today", url: Path}}, rq.serverNavigation()...)
	}
	here := strings.TrimPrefix(rq.route.pattern, workspacePrefix)
	for _, item := range pages {
		item.url = rq.url(item.path)
		item.current = here == item.path || item.path != "" && strings.HasPrefix(here, item.path+"/")
		items = append(items, item)
	}
	return append(items, rq.serverNavigation()...)
}

// serverNavigation returns the pages of the whole server for its administrators.
func (rq *request) serverNavigation() []navItem {
	if !rq.session.Operator.IsAdminOfAll() {
		return nil
	}
	return []navItem{{
		name:    "Access",
		icon:    "access",
		url:     accessPath,
		current: strings.HasPrefix(rq.route.pattern, "/access"),
	}}
}

// back returns where the "Back" link of an error page leads: the page with the form, or else the start.
func (rq *request) back() string {
	if u, err := url.Parse(rq.r.Header.Get("Referer")); err == nil && u.Host == rq.h.Address.Host(rq.r) {
		return u.RequestURI()
	}
	if to := rq.form("back"); strings.HasPrefix(to, Path+"/") {
		return to
	}
	if rq.workspace.ID != uuid.Nil {
		return rq.url("")
	}
	return Path
}

func errorTitle(e *domain.Error) string {
	switch statusOf(e.Kind) {
	case http.StatusNotFound:
		return "Not found"
	case http.StatusForbidden, http.StatusUnauthorized:
		return "Not allowed"
	case http.StatusInternalServerError, http.StatusServiceUnavailable:
		return "The server could not do this"
	}
	return "Not done"
}

// noticeParam is the query parameter with the key of a notice.
const noticeParam = "done"

// notices are the texts that pages show after an action, by key.
var notices = func() map[string]string {
	all := map[string]string{}
	for _, some := range []map[string]string{
		lockNotices, codeNotices, climateNotices, peopleNotices, accountNotices, webhookNotices, settingsNotices, accessNotices,
	} {
		maps.Copy(all, some)
	}
	return all
}()

// icons are the paths of the pictures, 24 units wide, drawn with strokes.
var icons = map[string]string{
	"today":    "M4 6h16M4 12h10M4 18h7M17 15v6M14 18h6",
	"lock":     "M6 11h12v10H6zM8 11V7a4 4 0 0 1 8 0v4",
	"code":     "M5 9h14M5 15h14M10 4 8 20M16 4l-2 16",
	"people":   "M9 11a4 4 0 1 0 0-8 4 4 0 0 0 0 8ZM2 21c0-4 3-6 7-6s7 2 7 6M17 11a3 3 0 1 0 0-6M18 15c3 0 4 2 4 5",
	"account":  "M4 7h16v12H4zM8 7V4h8v3M4 12h16",
	"webhook":  "M12 8a3 3 0 1 0-2 2.8L6.5 17M6 20a3 3 0 1 1 .5-3H15M18 20a3 3 0 1 0-2-5L12.5 9",
	"activity": "M3 12h4l3-8 4 16 3-8h4",
	"access":   "M12 3 4 6v6c0 5 3 7.500 8 9 5-1.500 8-4 8-9V6zM9 12l2 2 4-4",
	"settings": "M12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M5 19l2-2M17 7l2-2",
	"climate":  "M14 14V5a2 2 0 1 0-4 0v9a4 4 0 1 0 4 0Z",
	"noise":    "M4 9v6h4l5 5V4L8 9zM17 9a4 4 0 0 1 0 6M20 6a8 8 0 0 1 0 12",
	"search":   "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM16 16l5 5",
	"theme":    "M12 3a9 9 0 1 0 9 9 7 7 0 0 1-9-9Z",
	"chevron":  "m6 9 6 6 6-6",
}
