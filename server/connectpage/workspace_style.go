package connectpage

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
)

// theme holds the colors of assets/page.css in one color scheme.
type theme struct {
	// backgrounds are those that links and focus rings are on.
	sheet, ground, note color
	accent, onAccent    color
	// towards is the color that colors are mixed with to become readable.
	towards color
}

var lightTheme = theme{
	sheet:    white,
	ground:   color{0xf3, 0xf4, 0xf6},
	note:     color{0xef, 0xf6, 0xff},
	accent:   color{0x1d, 0x4e, 0xd8},
	onAccent: white,
	towards:  black,
}

var darkTheme = theme{
	sheet:    color{0x15, 0x1b, 0x26},
	ground:   color{0x0b, 0x0f, 0x17},
	note:     color{0x16, 0x24, 0x3f},
	accent:   color{0x93, 0xb4, 0xfd},
	onAccent: color{0x0b, 0x12, 0x20},
	towards:  white,
}

// stylesheet returns the path of the workspace's stylesheet, or an empty string if it has no colors of its own.
func (v *visit) stylesheet() string {
	if v.colors() == "" {
		return ""
	}
	return v.pathWithoutQuery("look.css")
}

// colors returns the stylesheet of the workspace.
func (v *visit) colors() string {
	look := v.workspace.Webviews
	light := lightTheme.declarations(look.PrimaryButtonColor, look.PrimaryButtonTextColor)
	if light == "" {
		return ""
	}
	dark := darkTheme.declarations(look.PrimaryButtonColor, look.PrimaryButtonTextColor)
	return ":root {\n" + light + "}\n@media (prefers-color-scheme: dark) {\n:root {\n" + dark + "}\n}\n"
}

// declarations returns the colors that follow from those of the buttons. It changes what would be unreadable.
func (t theme) declarations(button, text string) string {
	fill, hasFill := parseColor(button, t.sheet)
	if !hasFill {
		fill = t.accent
	}
	wanted, hasText := parseColor(text, fill)
	if !hasText {
		wanted = t.onAccent
	}
	if !hasFill && !hasText {
		return ""
	}
	var out strings.Builder
	set := func(name string, c color) { fmt.Fprintf(&out, "--%s: %s;\n", name, c) }
	set("button", fill)
	set("on-button", readableOn(fill, wanted))
	set("button-line", fill.readable(shapeContrast, t.towards, t.sheet))
	set("accent", fill.readable(textContrast, t.towards, t.sheet, t.ground, t.note))
	return out.String()
}

// serveStylesheet serves the stylesheet of the workspace, because the content security policy forbids inline styles.
func (h *handler) serveStylesheet(v *visit) {
	v.w.Header().Set("Content-Type", "text/css; charset=utf-8")
	v.w.WriteHeader(http.StatusOK)
	_, _ = v.w.Write([]byte(v.colors())) // the client has disconnected
}

// logoShape returns the shape of the workspace's mark: circle or square.
func (v *visit) logoShape() string {
	return cmp.Or(v.workspace.Webviews.LogoShape, "circle")
}
