package devicecloud

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// Limits of what is accepted from a vendor about a noise sensor.
const (
	// maxThresholds is the maximum number of thresholds of a sensor.
	maxThresholds = 100
	// maxNoise bounds levels, in decibels and as noise risk scores.
	maxNoise = 1000
	// maxZoneSize is the maximum length of the name of a time zone in bytes.
	maxZoneSize = 100
)

// clockTime is the form of a time of day.
var clockTime = regexp.MustCompile(`^(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]$`)

// wireNoiseSensor is the state of a noise sensor. Any field may be missing.
type wireNoiseSensor struct {
	Decibels *float64 `json:"decibels"`
	NRS      *float64 `json:"nrs"`
	// Thresholds is nil if the vendor does not report them.
	Thresholds *adapter.List[wireThreshold] `json:"thresholds"`
	Triggering adapter.List[string]         `json:"triggering"`
}

// wireThreshold is a threshold in requests and responses.
type wireThreshold struct {
	ID       string   `json:"threshold_id,omitempty"`
	CustomID string   `json:"custom_id,omitempty"`
	Name     string   `json:"name"`
	Starts   string   `json:"starts_daily_at"`
	Ends     string   `json:"ends_daily_at"`
	Zone     string   `json:"time_zone,omitempty"`
	Decibels float64  `json:"decibels"`
	NRS      *float64 `json:"nrs,omitempty"`
}

// wireNoiseLimits may lack any of its fields; package sandbox documents them.
type wireNoiseLimits struct {
	NRS           bool `json:"nrs"`
	MaxThresholds int  `json:"max_thresholds"`
	Disjoint      bool `json:"disjoint"`
	Fixed         bool `json:"fixed"`
}

// noiseCaps returns the capabilities of a noise sensor.
func (w wireCapabilities) noiseCaps() capability.Set {
	var l wireNoiseLimits
	if w.NoiseSensor != nil {
		l = *w.NoiseSensor
	}
	c := capability.Set{
		Convert:     capability.ConvertNever,
		Confirm:     capability.ConfirmReadBack,
		DirectPower: w.DirectPower,
		NoiseSensor: &capability.NoiseSensor{
			NRS:           l.NRS,
			MaxThresholds: min(max(l.MaxThresholds, 0), maxThresholds),
			Disjoint:      l.Disjoint,
			Fixed:         l.Fixed,
		},
	}
	if w.Confirm == string(capability.ConfirmSync) {
		c.Confirm = capability.ConfirmSync
	}
	return c
}

// audible returns the level, or nil if it is implausible.
func audible(level *float64) *float64 {
	if level == nil || *level < -maxNoise || *level > maxNoise {
		return nil
	}
	return level
}

// observed returns the state of a noise sensor, or nil if the vendor does not report its thresholds. It omits
// implausible thresholds.
func (w *wireNoiseSensor) observed() *adapter.NoiseSensor {
	if w == nil || w.Thresholds == nil {
		return nil
	}
	n := &adapter.NoiseSensor{Decibels: audible(w.Decibels), NRS: audible(w.NRS)}
	for _, t := range *w.Thresholds {
		if len(n.Thresholds) == maxThresholds {
			break
		}
		if !inPath(t.ID) || len(t.ID) > maxRefSize || len(t.CustomID) > maxKindSize || len(t.Zone) > maxZoneSize ||
			!clockTime.MatchString(t.Starts) || !clockTime.MatchString(t.Ends) || audible(&t.Decibels) == nil {
			continue
		}
		if len(t.Name) > maxKindSize*10 {
			t.Name = ""
		}
		n.Thresholds = append(n.Thresholds, adapter.NoiseThreshold{
			Ref:         adapter.ThresholdRef(t.ID),
			Key:         t.CustomID,
			Name:        t.Name,
			StartsDaily: t.Starts,
			EndsDaily:   t.Ends,
			TimeZone:    t.Zone,
			Decibels:    t.Decibels,
			NRS:         audible(t.NRS),
		})
	}
	for _, id := range w.Triggering {
		listed := func(t adapter.NoiseThreshold) bool { return string(t.Ref) == id }
		if slices.ContainsFunc(n.Thresholds, listed) && !slices.Contains(n.Triggering, adapter.ThresholdRef(id)) {
			n.Triggering = append(n.Triggering, adapter.ThresholdRef(id))
		}
	}
	return n
}

// PutNoiseThreshold implements adapter.NoiseController.
func (a *Adapter) PutNoiseThreshold(
	ctx context.Context, device adapter.DeviceRef, t adapter.NoiseThreshold,
) (adapter.ThresholdRef, adapter.State, error) {
	caps, err := a.capsOf(ctx, device)
	switch {
	case err != nil:
		return "", "", err
	case caps.NoiseSensor == nil:
		return "", "", adapter.Errorf(adapter.NotSupported, "the device is not a noise sensor")
	case len(t.Key) > 64:
		return "", "", adapter.Errorf(adapter.Invalid, "the key has more than 64 characters")
	}
	body := wireThreshold{
		Name:     t.Name,
		Starts:   t.StartsDaily,
		Ends:     t.EndsDaily,
		Zone:     t.TimeZone,
		Decibels: t.Decibels,
		NRS:      t.NRS,
	}
	c := call{method: http.MethodPost, path: lockPath(device) + "/noise_thresholds"}
	if t.Ref == "" {
		body.CustomID = t.Key
	} else {
		c.method, c.path = http.MethodPut, thresholdPath(device, t.Ref)
	}
	c.body = body
	var got struct {
		ID     string `json:"threshold_id"`
		Status string `json:"status"`
	}
	if err := a.do(ctx, c, &got); err != nil {
		return "", "", err
	}
	ref := adapter.ThresholdRef(got.ID)
	switch {
	case t.Ref != "":
		ref = t.Ref
	case !inPath(got.ID) || len(got.ID) > maxRefSize:
		return "", "", adapter.Errorf(adapter.Unconfirmed, "the created threshold has no threshold_id")
	}
	return ref, stateOf(got.Status), nil
}

// DeleteNoiseThreshold implements adapter.NoiseController.
func (a *Adapter) DeleteNoiseThreshold(
	ctx context.Context, device adapter.DeviceRef, threshold adapter.ThresholdRef,
) (adapter.State, error) {
	var got struct {
		Status string `json:"status"`
	}
	err := a.do(ctx, call{method: http.MethodDelete, path: thresholdPath(device, threshold)}, &got)
	switch {
	case err != nil && adapter.ClassOf(err) == adapter.NotFound:
		// The whole device may be missing.
		if _, err := a.Device(ctx, device); err != nil {
			return "", err
		}
		return adapter.Confirmed, nil
	case err != nil:
		return "", err
	}
	return stateOf(got.Status), nil
}

// stateOf returns the progress of a write by its status.
func stateOf(status string) adapter.State {
	if status == statusActive {
		return adapter.Confirmed
	}
	return adapter.Accepted
}

// TriggerNoise implements adapter.NoiseSimulator.
func (a *Adapter) TriggerNoise(ctx context.Context, device adapter.DeviceRef) error {
	return a.control(ctx, device, "noise", struct{}{}, nil)
}

func thresholdPath(device adapter.DeviceRef, threshold adapter.ThresholdRef) string {
	return lockPath(device) + "/noise_thresholds/" + url.PathEscape(string(threshold))
}
