package console

import (
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/noisesensor"
)

// noiseRow is a noise sensor in the list.
type noiseRow struct {
	device.Device
	level, score *float64 // decibels, and the noise risk score
	triggering   []uuid.UUID
	thresholds   int
}

func toNoiseRow(d device.Device) noiseRow {
	r := noiseRow{Device: d}
	if d.Noise != nil {
		r.level, r.score, r.triggering = d.Noise.Observed.Decibels, d.Noise.Observed.NRS, d.Noise.Triggering
	}
	return r
}

func (h *handler) listNoiseSensors(rq *request) error {
	list, devices, err := h.findDevices(rq, rq.deviceFilter("noise_detection"))
	if err != nil {
		return err
	}
	counts, err := h.Access.Overview.CountThresholds(rq.r.Context(), list.IDs)
	if err != nil {
		return err
	}
	rows := make([]noiseRow, len(devices))
	for i, d := range devices {
		rows[i] = toNoiseRow(d)
		rows[i].thresholds = counts[d.ID]
	}
	return rq.show(noiseSensorsPage(rq, rows, list.Next.String()))
}

// noiseView is what the page of a noise sensor shows.
type noiseView struct {
	noiseRow
	list   []noisesensor.Threshold
	events deviceEvents
}

// isTriggering reports whether the noise exceeds a threshold now.
func (v noiseView) isTriggering(t noisesensor.Threshold) bool {
	for _, id := range v.triggering {
		if id == t.ID {
			return true
		}
	}
	return false
}

// canAdd reports whether the sensor takes another threshold.
func (v noiseView) canAdd() bool {
	limits := v.Capabilities.NoiseSensor
	return !limits.Fixed && (limits.MaxThresholds == 0 || len(v.list) < limits.MaxThresholds)
}

// thresholdLevel is the level of a threshold in its unit.
func thresholdLevel(t noisesensor.Threshold) string {
	if t.NRS != nil {
		return fmt.Sprintf("noise risk score %.0f", *t.NRS)
	}
	return decibels(&t.Decibels)
}

// unitOf returns the unit of a threshold in the form, and its level.
func unitOf(t noisesensor.Threshold) (unit, level string) {
	if t.NRS != nil {
		return "nrs", fmt.Sprint(*t.NRS)
	}
	return "decibels", fmt.Sprint(t.Decibels)
}

// noiseSensor returns the noise sensor in the path.
func (h *handler) noiseSensor(rq *request) (device.Device, error) {
	d, err := h.Access.Devices.GetDevice(rq.r.Context(), rq.reader(), rq.param("sensor"), "")
	if err == nil && d.Capabilities.NoiseSensor == nil {
		err = errNoPage
	}
	return d, err
}

func (h *handler) showNoiseSensor(rq *request) error {
	d, err := h.noiseSensor(rq)
	if err != nil {
		return err
	}
	v := noiseView{noiseRow: toNoiseRow(d)}
	if v.list, err = h.Access.NoiseSensors.List(rq.r.Context(), rq.reader(), d.ID.String(), nil); err != nil {
		return err
	}
	if v.events, err = h.findDeviceEvents(rq, deviceName{d.ID, d.TimeZone}); err != nil {
		return err
	}
	return rq.show(noiseSensorPage(rq, v))
}

// noiseURL is the URL of the noise sensor in the path.
func (rq *request) noiseURL() string { return rq.url("/noise-sensors/" + rq.param("sensor")) }

// thresholdChange reads the form of a threshold.
func (rq *request) thresholdChange() (c noisesensor.Change, err error) {
	level, err := rq.number("level", "The level")
	if err != nil {
		return c, err
	}
	c = noisesensor.Change{
		Name:     rq.form("name"),
		StartsAt: dailyTime(rq.form("starts"), rq.form("zone")),
		EndsAt:   dailyTime(rq.form("ends"), rq.form("zone")),
	}
	if rq.form("unit") == "nrs" {
		c.NRS = level
	} else {
		c.Decibels = level
	}
	return c, nil
}

// dailyTime returns the time of a field, which browsers send without seconds, in the form of the API. An empty zone is
// that of the device.
func dailyTime(text, zone string) string {
	if strings.Count(text, ":") == 1 {
		text += ":00"
	}
	if zone != "" {
		text += "[" + zone + "]"
	}
	return text
}

func (h *handler) createThreshold(rq *request) error {
	c, err := rq.thresholdChange()
	if err != nil {
		return err
	}
	if _, _, err := h.Access.NoiseSensors.Create(rq.r.Context(), rq.principal, rq.param("sensor"), c); err != nil {
		return err
	}
	return rq.done(rq.noiseURL(), "threshold")
}

func (h *handler) updateThreshold(rq *request) error {
	c, err := rq.thresholdChange()
	if err != nil {
		return err
	}
	_, err = h.Access.NoiseSensors.Update(
		rq.r.Context(), rq.principal, rq.param("sensor"), rq.param("threshold"), c,
	)
	if err != nil {
		return err
	}
	return rq.done(rq.noiseURL(), "threshold")
}

func (h *handler) deleteThreshold(rq *request) error {
	_, err := h.Access.NoiseSensors.Delete(rq.r.Context(), rq.principal, rq.param("sensor"), rq.param("threshold"))
	if err != nil {
		return err
	}
	return rq.done(rq.noiseURL(), "threshold-deleted")
}
