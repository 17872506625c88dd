package connectpage

import (
	"fmt"
	"net/http"
	"regexp"
)

// colour is what the contract allows: it goes into a stylesheet.
var colour = regexp.MustCompile(`^([a-zA-Z]{1,30}|#[0-9a-fA-F]{3,8})$`)

// look leads to the colours of the workspace; empty: it has none of its own.
func (v *visit) look(up string) string {
	if v.css() == "" {
		return ""
	}
	return up + v.token() + "/look.css"
}

// css is the stylesheet of the workspace.
func (v *visit) css() (out string) {
	for name, value := range map[string]string{"--button": v.workspace.Webviews.PrimaryButtonColor, "--on-button": v.workspace.Webviews.PrimaryButtonTextColor} {
		if colour.MatchString(value) {
			out += fmt.Sprintf(":root { %s: %s; }\n", name, value)
		}
	}
	return out
}

// style answers the stylesheet of the workspace: the page's policy allows no style of its own.
func (h *handler) style(v *visit) {
	v.w.Header().Set("Content-Type", "text/css; charset=utf-8")
	v.w.WriteHeader(http.StatusOK)
	_, _ = v.w.Write([]byte(v.css())) // nobody is there to be told
}
