package console_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/console"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/browser"
)

// use is how an operator uses a page: what it lists, its filter by text, and an action.
type use struct {
	path, lists string
	// filter is the name of the text field; empty: the page has none.
	filter string
	// act leads from the page to an action. The page that follows it must show done.
	act  []browser.Step
	done string
}

// openRow opens the first row with a text, or the row's link with it.
func openRow(text string) browser.Step {
	return chromedp.Click(`//main//a[contains(@class, "row-link")][contains(., "` + text + `")]`)
}

// unfold opens a button that asks first, and presses the button in it.
func unfold(text string) []browser.Step {
	return []browser.Step{
		chromedp.Click(`//main//summary[normalize-space(.)="` + text + `"]`),
		chromedp.Click(`//main//details[@open]//button[normalize-space(.)="` + text + `"]`),
	}
}

// Every page of the navigation shows its data, filters, and acts in a browser without JavaScript.
func TestPages_WithoutScripts(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("august", "yale", "ecobee", "noiseaware"))
	lock, yale := b.Device(t, "august"), b.Device(t, "yale")
	now := time.Now().UTC()
	b.newCode(t, map[string]any{
		"device_id": lock,
		"name":      "Cleaning",
		"starts_at": now.Add(time.Hour).Format(time.RFC3339),
		"ends_at":   now.Add(9 * time.Hour).Format(time.RFC3339),
	})
	b.Post(t, "/devices/simulate/disconnect", map[string]any{"device_id": yale}, nil)
	addGuest(t, b, b.AccessSystem(t), "Ada Adams", "ada@example.com")
	b.as(t, domain.RoleAdmin).newWebhook(newReceiver(t).URL+"/hooks", "access_code.created")
	names := map[string]string{}
	for _, id := range []string{lock, yale, b.Device(t, "ecobee"), b.Device(t, "noiseaware")} {
		names[id] = b.nameOf(t, id)
	}
	ecobee, noiseaware := names[b.Device(t, "ecobee")], names[b.Device(t, "noiseaware")]
	uses := []use{
		{
			path:  "",
			lists: "Cleaning",
			act:   []browser.Step{openRow(names[lock]), press("Refresh now")},
			done:  "reads the lock now",
		},
		{
			path:   "/locks",
			lists:  names[yale],
			filter: "q",
			act:    []browser.Step{openRow(names[yale]), press("Refresh now")},
			done:   "reads the lock now",
		},
		{
			path: "/codes", lists: "Cleaning", filter: "q",
			act: append([]browser.Step{
				openRow("Cleaning"),
				chromedp.Click(`//main//summary[.="Rename"]`), fill("name", "Window cleaning"),
			}, press("Rename")),
			done: "The code is renamed",
		},
		{
			path:   "/thermostats",
			lists:  ecobee,
			filter: "q",
			act:    []browser.Step{openRow(ecobee), press("Activate")},
			done:   "The preset will be activated",
		},
		{
			path: "/noise-sensors", lists: noiseaware, filter: "q",
			act:  append([]browser.Step{openRow(noiseaware)}, unfold("Delete")...),
			done: "will be deleted from the sensor",
		},
		{
			path:   "/people",
			lists:  "Ada Adams",
			filter: "q",
			act:    append([]browser.Step{openRow("Ada Adams")}, unfold("Remove")...),
			done:   "The person was removed",
		},
		{
			path:   "/accounts",
			lists:  "Simulated",
			filter: "q",
			act:    []browser.Step{openRow("Simulated"), press("Read again")},
			done:   "reads the account",
		},
		{
			path:   "/webhooks",
			lists:  "/hooks",
			filter: "q",
			act:    []browser.Step{openRow("/hooks"), press("Send test")},
			done:   "A test is no delivery",
		},
		{
			path:   "/activity",
			lists:  "admin@example.com",
			filter: "actor",
			act:    []browser.Step{chromedp.Click(`//main//summary[.="Export"]`)},
			done:   "NDJSON",
		},
		{
			path:  "/settings",
			lists: "Connect pages",
			act:   []browser.Step{fill("name", "Oak Rentals"), press("Save")},
			done:  "The workspace was saved",
		},
		{
			path:  "/search",
			lists: "What are you looking for?",
			act: []browser.Step{
				chromedp.SetValue(chromedp.CSS(`main [name="q"]`), "Clean"),
				press("Search"),
				openRow("leaning"),
			},
			done: "Facts",
		},
	}
	for _, path := range console.Pages() {
		if !slices.ContainsFunc(uses, func(u use) bool { return u.path == path }) {
			t.Errorf("no use of the page %q", path)
		}
	}
	w := browser.Open(t)
	w.Do(b.signIn(t, domain.RoleAdmin), browser.Scripts(false))
	for _, u := range uses {
		w.Do(chromedp.Navigate(b.page(u.path)), browser.Shows("main", u.lists))
		if u.filter != "" {
			apply := `//main//form[@data-filters]//button[@data-apply]`
			w.Do(
				chromedp.SetValue(chromedp.CSS(`main [name="`+u.filter+`"]`), "nothing has this name"),
				chromedp.Click(apply),
				chromedp.WaitVisible(`//main//div[contains(@class, "border-dashed")]`),
				chromedp.SetValue(chromedp.CSS(`main [name="`+u.filter+`"]`), u.lists),
				chromedp.Click(apply),
				browser.Shows("main//td", u.lists),
			)
		}
		t.Log(time.Now(), u.path)
		w.Do(u.act...)
		w.Do(browser.Shows("main", u.done))
	}
	w.CheckReports()
	w.CheckRequests(b.console)
}

// nameOf returns the name of a device.
func (b *bed) nameOf(t *testing.T, id string) string {
	t.Helper()
	var out struct {
		Device struct {
			DisplayName string `json:"display_name"`
		} `json:"device"`
	}
	if status := b.Post(t, "/devices/get", map[string]any{"device_id": id}, &out); status != http.StatusOK {
		t.Fatalf("get a device: %d", status)
	}
	return out.Device.DisplayName
}
