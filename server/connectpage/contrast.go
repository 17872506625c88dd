package connectpage

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Contrast ratios of WCAG 2.2.
const (
	textContrast  = 4.5 // 1.4.3, text
	shapeContrast = 3.0 // 1.4.11, boundaries of controls
)

// color is an opaque color in sRGB.
type color struct{ r, g, b uint8 }

var black, white = color{}, color{255, 255, 255}

func (c color) String() string { return fmt.Sprintf("#%02x%02x%02x", c.r, c.g, c.b) }

// parseColor reads a CSS color as the contract allows it: a name, or hexadecimal digits. A translucent color is laid
// over the background. It returns false for keywords without a color of their own, such as transparent.
func parseColor(text string, background color) (color, bool) {
	if c, ok := colorNames[strings.ToLower(text)]; ok {
		return c, true
	}
	digits, isHex := strings.CutPrefix(text, "#")
	if !isHex {
		return color{}, false
	}
	if len(digits) == 3 || len(digits) == 4 {
		var double strings.Builder
		for _, d := range digits {
			double.WriteString(strings.Repeat(string(d), 2))
		}
		digits = double.String()
	}
	if len(digits) == 6 {
		digits += "ff"
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || len(digits) != 8 {
		return color{}, false
	}
	c := color{uint8(n >> 24), uint8(n >> 16), uint8(n >> 8)} //// the lower eight bits are wanted
	return background.mix(c, float64(n&0xff)/0xff), true
}

// mix returns the color with a share of another, from 0 to 1.
func (c color) mix(other color, share float64) color {
	part := func(a, b uint8) uint8 { return uint8(math.Round(float64(a) + (float64(b)-float64(a))*share)) }
	return color{part(c.r, other.r), part(c.g, other.g), part(c.b, other.b)}
}

// luminance is the relative luminance of WCAG 2.2.
func (c color) luminance() float64 {
	linear := func(v uint8) float64 {
		s := float64(v) / 255
		if s <= 0.04045 {
			return s / 12.92
		}
		return math.Pow((s+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c.r) + 0.7152*linear(c.g) + 0.0722*linear(c.b)
}

// contrast returns the contrast ratio of two colors, from 1 to 21.
func contrast(a, b color) float64 {
	lighter, darker := a.luminance(), b.luminance()
	if lighter < darker {
		lighter, darker = darker, lighter
	}
	return (lighter + 0.05) / (darker + 0.05)
}

// readable returns the color, or the nearest shade of it towards another color that has the ratio to all backgrounds.
func (c color) readable(ratio float64, towards color, backgrounds ...color) color {
	const steps = 100
	for i := range steps {
		shade, enough := c.mix(towards, float64(i)/steps), true
		for _, b := range backgrounds {
			enough = enough && contrast(shade, b) >= ratio
		}
		if enough {
			return shade
		}
	}
	return towards
}

// readableOn returns the color of text on a background: wanted if it is readable, or black or white.
func readableOn(background, wanted color) color {
	switch {
	case contrast(wanted, background) >= textContrast:
		return wanted
	case contrast(white, background) >= contrast(black, background):
		return white
	}
	return black
}
