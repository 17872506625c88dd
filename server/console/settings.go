package console

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/overview"
)

// Setting is a setting of the server, which its flags set.
type Setting struct {
	// Group is the heading under which the setting is shown, such as "Retention" or "Limits".
	Group string
	// Name says what is set, Value to what, and Flag by which flag.
	Name, Value, Flag string
}

func (h *handler) settingsRoutes() []route {
	return []route{
		page("/settings", h.showSettings),
		page("/settings/preview.css", h.serveLook),
		action(domain.RoleAdmin, "/settings/workspace", "/workspaces/update", h.changeWorkspace),
		action(domain.RoleAdmin, "/settings/look", "/workspaces/update", h.changeLook),
		action(domain.RoleAdmin, "/settings/reset", "/workspaces/reset_sandbox", h.resetSandbox),
	}
}

var settingsNotices = map[string]string{
	"workspace-saved": "The workspace was saved.",
	"look-saved":      "The look of the connect pages was saved. Pages that people open from now on have it.",
	"sandbox-reset":   "The sandbox was reset. New simulated devices appear in a few seconds.",
}

// settingsView is what the page of settings shows.
type settingsView struct {
	installation overview.Installation
	groups       []settingGroup
	// refused is why the last change was not saved, and entered what the form had.
	refused error
	entered account.WebviewLook
}

// settingGroup are settings with a common heading.
type settingGroup struct {
	name string
	list []Setting
}

// groupSettings groups settings by their heading, in the order of the first of each.
func groupSettings(all []Setting) (groups []settingGroup) {
	at := map[string]int{}
	for _, s := range all {
		i, known := at[s.Group]
		if !known {
			i = len(groups)
			at[s.Group] = i
			groups = append(groups, settingGroup{name: s.Group})
		}
		groups[i].list = append(groups[i].list, s)
	}
	return groups
}

// oldBackup is the age of a backup after which the page warns.
const oldBackup = 48 * time.Hour

func (h *handler) showSettings(rq *request) error {
	return h.renderSettings(rq, http.StatusOK, settingsView{entered: rq.workspace.Webviews})
}

func (h *handler) renderSettings(rq *request, status int, v settingsView) (err error) {
	if v.installation, err = h.Access.Overview.Installation(rq.r.Context()); err != nil {
		return err
	}
	v.groups = groupSettings(h.Settings)
	return rq.render(status, settingsPage(rq, v))
}

// inviter is the name on connect pages.
func inviter(w account.Workspace) string {
	for _, name := range []string{domain.Value(w.ConnectPartnerName), w.CompanyName} {
		if name != "" {
			return name
		}
	}
	return w.Name
}

// colorPattern matches the colors that the contract allows. They go into a stylesheet.
var colorPattern = regexp.MustCompile(`^([a-zA-Z]{1,30}|#[0-9a-fA-F]{3,8})$`)

// serveLook serves the colors of the preview, because the content security policy forbids inline styles.
func (h *handler) serveLook(rq *request) error {
	rq.w.Header().Set("Content-Type", "text/css; charset=utf-8")
	look, css := rq.workspace.Webviews, ""
	for _, color := range []struct{ name, value string }{
		{"--button", look.PrimaryButtonColor}, {"--on-button", look.PrimaryButtonTextColor},
	} {
		if colorPattern.MatchString(color.value) {
			css += fmt.Sprintf(".connect-preview { %s: %s; }\n", color.name, color.value)
		}
	}
	_, _ = rq.w.Write([]byte(css)) // the client has disconnected
	return nil
}

func (h *handler) changeWorkspace(rq *request) error {
	if partner := rq.form("partner"); partner != "" {
		if err := domain.CheckLabel("connect_partner_name", partner); err != nil {
			return err
		}
	}
	err := h.Access.Accounts.UpdateWorkspace(rq.r.Context(), rq.principal, account.WorkspaceChange{
		Name:               rq.form("name"),
		ConnectPartnerName: rq.form("partner"),
	})
	if err != nil {
		return err
	}
	return rq.done(rq.url("/settings"), "workspace-saved")
}

func (h *handler) changeLook(rq *request) error {
	look := account.WebviewLook{
		LogoShape:              rq.form("shape"),
		PrimaryButtonColor:     rq.form("color"),
		PrimaryButtonTextColor: rq.form("text-color"),
		SuccessMessage:         rq.form("message"),
	}
	err := checkLook(look)
	if err == nil {
		err = h.Access.Accounts.UpdateWorkspace(
			rq.r.Context(), rq.principal, account.WorkspaceChange{Webviews: look},
		)
	}
	if _, refused := domain.AsError(err); refused {
		return h.renderSettings(rq, http.StatusUnprocessableEntity, settingsView{refused: err, entered: look})
	}
	if err != nil {
		return err
	}
	return rq.done(rq.url("/settings"), "look-saved")
}

// maxMessage is the maximum length of a success message in characters, as in the contract.
const maxMessage = 500

// checkLook fails with Invalid for a look that the contract of /workspaces/update does not allow.
func checkLook(look account.WebviewLook) error {
	for _, color := range []string{look.PrimaryButtonColor, look.PrimaryButtonTextColor} {
		if color != "" && !colorPattern.MatchString(color) {
			return domain.Invalidf(
				"", "%q is no color. Enter a name such as teal, or # and hexadecimal digits such as #0f766e.", color,
			)
		}
	}
	if len([]rune(look.SuccessMessage)) > maxMessage {
		return domain.Invalidf("", "The success message is longer than %d characters.", maxMessage)
	}
	if look.LogoShape != "" && look.LogoShape != "circle" && look.LogoShape != "square" {
		return domain.Invalidf("", "The logo shape must be circle or square.")
	}
	return nil
}

func (h *handler) resetSandbox(rq *request) error {
	if h.ResetSandbox == nil || !rq.workspace.IsSandbox {
		return errNoPage
	}
	if !strings.EqualFold(rq.form("confirm"), rq.workspace.Name) {
		return domain.Invalidf(
			"",
			"Nothing was reset. Enter the name of the workspace, %s, to confirm.",
			rq.workspace.Name,
		)
	}
	if err := h.ResetSandbox(rq.r.Context(), rq.principal); err != nil {
		return err
	}
	return rq.done(rq.url("/settings"), "sandbox-reset")
}
