package console

import (
	"fmt"
	"strings"

	"rsc.io/qr"
)

// qrCode is a QR code as the path of an SVG of size units.
type qrCode struct {
	path string
	size int
}

// viewBox is the view box of the SVG.
func (c qrCode) viewBox() string { return fmt.Sprintf("0 0 %[1]d %[1]d", c.size) }

// quietZone is the border of a QR code in modules.
const quietZone = 4

// encodeQR returns the QR code of a text: one rectangle per run of dark modules in a row.
func encodeQR(text string) (qrCode, error) {
	code, err := qr.Encode(text, qr.M)
	if err != nil {
		return qrCode{}, fmt.Errorf("make a QR code: %w", err)
	}
	var path strings.Builder
	for y := range code.Size {
		for x := 0; x < code.Size; x++ {
			run := 0
			for x+run < code.Size && code.Black(x+run, y) {
				run++
			}
			if run > 0 {
				fmt.Fprintf(&path, "M%d %dh%dv1h-%dz", x+quietZone, y+quietZone, run, run)
				x += run
			}
		}
	}
	return qrCode{path.String(), code.Size + 2*quietZone}, nil
}
