package connectpage

import (
	"regexp"
	"strings"
	"testing"
)

var declaration = regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{6});`)

// The pages stay readable in both color schemes, whatever colors a workspace has.
func TestColors_AreReadable(t *testing.T) {
	t.Parallel()
	colors := []string{
		"", "white", "black", "yellow", "#ffff00", "#777", "gray", "lime", "red", "navy", "#0a7", "#00aa7780", "#fff0",
		"papayawhip", "RebeccaPurple", "#1d4ed8", "transparent", "currentcolor", "nonsense", "#12345", "#ggg",
	}
	for _, button := range colors {
		for _, text := range colors {
			for name, one := range map[string]theme{"light": lightTheme, "dark": darkTheme} {
				css := one.declarations(button, text)
				got := map[string]color{}
				for _, m := range declaration.FindAllStringSubmatch(css, -1) {
					got[m[1]], _ = parseColor(m[2], black)
				}
				if css == "" {
					continue
				}
				for _, c := range []struct {
					of, on color
					least  float64
				}{
					{got["on-button"], got["button"], textContrast},
					{got["accent"], one.sheet, textContrast},
					{got["accent"], one.ground, textContrast},
					{got["accent"], one.note, textContrast},
					{got["button-line"], one.sheet, shapeContrast},
				} {
					if ratio := contrast(c.of, c.on); ratio < c.least {
						t.Errorf("%s, %q, %q: %s on %s has the contrast %.2f", name, button, text, c.of, c.on, ratio)
					}
				}
			}
		}
	}
}

// Readable colors stay as they are.
func TestColors_KeepReadableOnes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		theme        theme
		button, text string
		want         string
	}{
		{lightTheme, "#1d4ed8", "white", "--button: #1d4ed8; --on-button: #ffffff; --button-line: #1d4ed8; --accent: #1d4ed8;"},
		{lightTheme, "yellow", "white", "--button: #ffff00; --on-button: #000000;"},
		{darkTheme, "yellow", "", "--button: #ffff00; --on-button: #0b1220; --button-line: #ffff00; --accent: #ffff00;"},
		{lightTheme, "", "white", "--button: #1d4ed8; --on-button: #ffffff;"},
		{darkTheme, "", "white", "--button: #93b4fd; --on-button: #000000;"},
		{lightTheme, "", "", ""},
		{lightTheme, "inherit", "", ""},
	} {
		got := strings.ReplaceAll(c.theme.declarations(c.button, c.text), "\n", " ")
		if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%q, %q: %s, want %s", c.button, c.text, got, c.want)
		}
	}
}

func TestMarks_HaveReadableInitials(t *testing.T) {
	t.Parallel()
	for _, text := range markColors {
		if c, ok := parseColor(text, white); !ok || contrast(c, white) < textContrast {
			t.Errorf("%s: contrast %.2f", text, contrast(c, white))
		}
	}
	for name, want := range map[string]string{
		"Oak Rentals": "OR", "nuki": "N", "Oak & Ash Rentals": "OA", "Z-Wave JS": "ZW", "éclair": "É", "7 hills": "7H",
		"": "•", "✨": "•", "東京 ホテル": "東ホ",
	} {
		if got := initials(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
