package console

import (
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/overview"
)

// Part is a part of the server and its state.
type Part struct {
	Name, Description string
	// Degraded and Down are false for a part that works.
	Degraded, Down bool
}

func (h *handler) todayRoutes() []route { return []route{page("", h.showToday)} }

// today is what the page Today shows.
type today struct {
	parts    []Part // that do not work
	findings []overview.Finding
	moments  []overview.Moment
	devices  bool // whether there is any device
}

// day is how far ahead Today looks.
const day = 24 * time.Hour

func (h *handler) showToday(rq *request) (err error) {
	var t today
	ctx := rq.r.Context()
	if h.Health != nil {
		for _, part := range h.Health(ctx) {
			if part.Degraded || part.Down {
				t.parts = append(t.parts, part)
			}
		}
	}
	if t.findings, err = h.Access.Overview.Findings(ctx, rq.workspace.ID); err != nil {
		return err
	}
	if t.moments, err = h.Access.Overview.Moments(ctx, rq.workspace.ID, rq.now, rq.now.Add(day)); err != nil {
		return err
	}
	some, err := h.Access.Overview.Devices(ctx, rq.workspace.ID, overview.DeviceFilter{}, overview.Position{}, 1)
	if err != nil {
		return err
	}
	t.devices = len(some.IDs) > 0
	return rq.show(todayPage(rq, t))
}

// findingURL is the URL of the page of what is wrong.
func (rq *request) findingURL(f overview.Finding) string {
	if path := findingKinds[f.Kind].path; path != "" {
		return rq.url(path + f.ID.String())
	}
	return rq.deviceURL(device.Device{ID: f.ID, Capabilities: f.Capabilities})
}

// findingKind describes a kind of finding on the pages.
type findingKind struct {
	tone   tone
	what   string
	path   string // of the resource, without the identifier; empty: a device
	advice string
}

var findingKinds = map[overview.Kind]findingKind{
	overview.AccountFailing:  {bad, "Account", "/accounts/", "Update its credential, or send a new link to its owner."},
	overview.CodeOverdue:     {bad, "Code", "/codes/", "Open the code to see the attempts, and try again."},
	overview.CodeFailing:     {bad, "Code", "/codes/", "Open the code to see what the lock says."},
	overview.DeviceOffline:   {bad, "Device", "", "Check its power, its bridge, and the network."},
	overview.BatteryCritical: {bad, "Battery", "", "Replace the batteries now."},
	overview.WebhookFailing:  {warning, "Webhook", "/webhooks/", "Open the webhook to see what the receiver answers."},
	overview.UserFailing: {
		warning,
		"Person",
		"/people/users/",
		"Open the person to see what the access system says.",
	},
	overview.BatteryLow: {warning, "Battery", "", "Replace the batteries soon."},
}
