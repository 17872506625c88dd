package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/browser"
)

func TestSettings_WorkspaceAndLook(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("august"))
	page := mustOpen(t, b, "/settings")
	mustContain(t, page, "PostgreSQL", "rotate-encryption", "--delivery-retention", "forever", "Backup and upgrade")
	mustLack(t, page, "<button class=\"btn btn-primary btn-sm\">Save</button>", "Reset the sandbox")
	if strings.Count(page, ">Retention<") != 1 {
		t.Error("settings with the same heading are not in one section")
	}

	for _, path := range []string{"/settings/workspace", "/settings/look", "/settings/reset"} {
		if status, _ := sendForm(t, b, domain.RoleOperator, path, "name", "Mine"); status != http.StatusForbidden {
			t.Errorf("an operator changes %s: %d", path, status)
		}
	}
	status, to := sendForm(t, b, domain.RoleAdmin, "/settings/workspace", "name", "Seaside", "partner", "Seaside Stays")
	if status != http.StatusSeeOther || !strings.HasSuffix(to, "done=workspace-saved") {
		t.Fatalf("save the workspace: %d %s", status, to)
	}
	mustContain(t, mustOpen(t, b, "/settings"), "Seaside", "Seaside Stays")

	status, _ = sendForm(t, b, domain.RoleAdmin, "/settings/look",
		"color", "#0f766e", "text-color", "white", "message", "Thank you!", "shape", "circle")
	if status != http.StatusSeeOther {
		t.Fatalf("save the look: %d", status)
	}
	mustContain(t, mustOpen(t, b, "/settings"), "Thank you!", "#0f766e")
	mustContain(t, mustOpen(t, b, "/settings/preview.css"), "--button: #0f766e;", "--on-button: white;")
}

func TestSettings_RefusesWhatIsNoColor(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("august"))
	status, body := sendForm(t, b, domain.RoleAdmin, "/settings/look", "color", "red; } body { display: none")
	if status != http.StatusUnprocessableEntity {
		t.Errorf("a color with a rule: %d", status)
	}
	mustContain(t, body, "is no color", `value="red; } body { display: none"`)
	mustLack(t, mustOpen(t, b, "/settings/preview.css"), "display")
}

func TestSettings_ResetsSandbox(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("august"))
	device := b.Device(t, "august")
	if status, _ := sendForm(
		t,
		b,
		domain.RoleAdmin,
		"/settings/reset",
		"confirm",
		"yes",
	); status != http.StatusUnprocessableEntity {
		t.Errorf("a reset without the name: %d", status)
	}
	mustOpen(t, b, "/locks/"+device)
	var workspace struct {
		Workspace struct{ Name string }
	}
	b.Post(t, "/workspaces/get", map[string]any{}, &workspace)
	status, _ := sendForm(t, b, domain.RoleAdmin, "/settings/reset", "confirm", workspace.Workspace.Name)
	if status != http.StatusSeeOther {
		t.Fatalf("reset the sandbox: %d", status)
	}
	if status, _ := openPage(t, b, domain.RoleViewer, "/locks/"+device); status != http.StatusNotFound {
		t.Errorf("a lock after the reset: %d", status)
	}
}

func TestSettings_PreviewFollowsForm(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("august"))
	sendForm(t, b, domain.RoleAdmin, "/settings/look", "color", "#0f766e", "text-color", "#ffffff")
	w := browser.Open(t)
	color := func() (out string) {
		return browser.Ask(
			w,
			chromedp.Evaluate[string](`getComputedStyle(document.querySelector(".connect-button")).backgroundColor`),
		)
	}
	w.Do(
		b.signIn(t, domain.RoleAdmin),
		chromedp.Navigate(b.page("/settings")),
		chromedp.WaitVisible(chromedp.CSS(".connect-button")),
	)
	if got := color(); got != "rgb(15, 118, 110)" {
		t.Errorf("the saved color of the button is %s", got)
	}
	browser.Ask(w, chromedp.Evaluate[string](`document.querySelector("[name=color]").value = ""`))
	w.Do(
		chromedp.SendKeys(chromedp.CSS("[name=color]"), "#102030"),
		chromedp.SendKeys(chromedp.CSS("[name=message]"), "Welcome"),
		browser.Shows("*[@data-shows='message']", "Welcome"),
	)
	if got := color(); got != "rgb(16, 32, 48)" {
		t.Errorf("the entered color of the button is %s", got)
	}
	w.CheckReports()
	w.CheckRequests(b.console)
}
