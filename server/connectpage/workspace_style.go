package connectpage

import (
	"fmt"
	"net/http"
	"regexp"
)

// colorPattern matches the colors that the contract allows. They go into a stylesheet.
var colorPattern = regexp.MustCompile(`^([a-zA-Z]{1,30}|#[0-9a-fA-F]{3,8})$`)

// stylesheet returns the path of the workspace's stylesheet, or an empty string if it has no colors of its own.
func (v *visit) stylesheet() string {
	if v.colors() == "" {
		return ""
	}
	return v.path("look.css")
}

// colors returns the stylesheet of the workspace.
func (v *visit) colors() (out string) {
	for name, value := range map[string]string{"--button": v.workspace.Webviews.PrimaryButtonColor, "--on-button": v.workspace.Webviews.PrimaryButtonTextColor} {
		if colorPattern.MatchString(value) {
			out += fmt.Sprintf(":root { %s: %s; }\n", name, value)
		}
	}
	return out
}

// serveStylesheet serves the stylesheet of the workspace, because the content security policy forbids inline styles.
func (h *handler) serveStylesheet(v *visit) {
	v.w.Header().Set("Content-Type", "text/css; charset=utf-8")
	v.w.WriteHeader(http.StatusOK)
	_, _ = v.w.Write([]byte(v.colors())) // the client has disconnected
}
