package console

import (
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// unmanagedList is what the page of the unmanaged codes of a lock shows.
type unmanagedList struct {
	lock  device.Device
	codes []codeView
	// more says that the lock has more of them than the page shows.
	more bool
	// failed are the codes that could not be converted, with the reason.
	failed []failedCode
}

// failedCode is a code that could not be converted.
type failedCode struct{ name, reason string }

// maxUnmanaged is the maximum number of unmanaged codes on the page, which is more than most locks hold.
const maxUnmanaged = 300

// readUnmanaged reads the unmanaged codes of the lock in the path.
func (h *handler) readUnmanaged(rq *request) (l unmanagedList, err error) {
	l.lock, err = h.Access.Devices.GetDevice(rq.r.Context(), rq.reader(), rq.param("lock"), "")
	if err != nil {
		return l, err
	}
	var codes []device.Code
	codes, l.more, err = h.Access.Devices.ListCodes(
		rq.r.Context(),
		rq.reader(),
		device.CodeFilter{DeviceID: l.lock.ID.String(), Search: rq.query("q")},
		domain.Page{Limit: maxUnmanaged},
	)
	for _, c := range codes {
		v := viewOf(c)
		v.deviceName, v.zone = l.lock.Name, l.lock.TimeZone
		l.codes = append(l.codes, v)
	}
	return l, err
}

func (h *handler) listUnmanaged(rq *request) error {
	l, err := h.readUnmanaged(rq)
	if err != nil {
		return err
	}
	return rq.show(unmanagedPage(rq, l))
}

// ticked returns the codes whose boxes are ticked.
func (l unmanagedList) ticked(ids []string) (out []codeView, err error) {
	for _, c := range l.codes {
		if slices.Contains(ids, c.id.String()) {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return nil, domain.Invalidf("code", "Tick at least one code of this lock.")
	}
	return out, nil
}

// convertCodes makes the ticked codes managed. It reports each code that could not be converted.
func (h *handler) convertCodes(rq *request) error {
	l, err := h.readUnmanaged(rq)
	if err != nil {
		return err
	}
	_ = rq.r.ParseForm() // the check of the form's token has reported an error
	codes, err := l.ticked(rq.r.PostForm["code"])
	if err != nil {
		return err
	}
	for _, c := range codes {
		_, err := h.Access.Devices.ConvertCode(rq.r.Context(), rq.principal, c.id.String(), nil)
		if e, ok := domain.AsError(err); ok {
			l.failed = append(l.failed, failedCode{c.name, e.Message})
		} else if err != nil {
			return err
		}
	}
	if len(l.failed) > 0 {
		return rq.render(http.StatusConflict, unmanagedPage(rq, l))
	}
	return rq.done(rq.url("/locks/"+l.lock.ID.String()+"/unmanaged"), "codes-converted")
}

// showImport shows the Terraform blocks that import the ticked codes.
func (h *handler) showImport(rq *request) error {
	l, err := h.readUnmanaged(rq)
	if err != nil {
		return err
	}
	codes, err := l.ticked(rq.r.URL.Query()["code"])
	if err != nil {
		return err
	}
	return rq.show(importPage(rq, l.lock, hclAdoption(codes)))
}

// hclAdoption returns the import blocks and the resources of unmanaged codes. Their PINs stay as they are.
func hclAdoption(codes []codeView) string {
	var parts []string
	for i, label := range hclLabels(codes) {
		parts = append(parts, hclImport(codes[i], label), hclResource(codes[i], label, false))
	}
	return strings.Join(parts, "\n")
}

// tickID returns an identifier for the tick box of a code.
func tickID(id uuid.UUID) string { return "tick-" + id.String() }
