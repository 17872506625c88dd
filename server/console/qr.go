package console

import (
	"fmt"
	"strings"

	"rsc.io/qr"
)

// quietZone is the margin of a QR code in modules (ISO/IEC 18004).
const quietZone = 4

// qrCode is a QR code as a path of SVG, in units of modules.
type qrCode struct {
	size int // of a side, with the margin
	path string
}

// newQR returns the QR code of a text. A text that is too long has an empty one.
func newQR(text string) (out qrCode) {
	code, err := qr.Encode(text, qr.M)
	if err != nil {
		return out
	}
	var path strings.Builder
	for y := range code.Size {
		for x := 0; x < code.Size; x++ {
			start := x
			for x < code.Size && code.Black(x, y) {
				x++
			}
			if x > start {
				fmt.Fprintf(&path, "M%d %dh%dv1h-%dz", start+quietZone, y+quietZone, x-start, x-start)
			}
		}
	}
	return qrCode{size: code.Size + 2*quietZone, path: path.String()}
}

// viewBox is the attribute of the svg element.
func (c qrCode) viewBox() string { return fmt.Sprintf("0 0 %d %d", c.size, c.size) }
