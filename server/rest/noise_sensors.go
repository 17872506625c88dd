package rest

import (
	"context"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/noisesensor"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

// CreateNoiseThreshold answers /noise_sensors/noise_thresholds/create.
func (h *handlers) CreateNoiseThreshold(
	ctx context.Context, r openapi.CreateNoiseThresholdRequestObject,
) (openapi.CreateNoiseThresholdResponseObject, error) {
	t, attempt, err := h.access.NoiseSensors.Create(ctx, principal(ctx), r.Body.DeviceID, noisesensor.Change{
		Name:     r.Body.Name,
		StartsAt: r.Body.StartsDailyAt,
		EndsAt:   r.Body.EndsDailyAt,
		Decibels: r.Body.NoiseThresholdDecibels,
		NRS:      r.Body.NoiseThresholdNrs,
	})
	answer, err := h.attemptResponse(ctx, attempt, err, r.Body.Sync)
	if err != nil {
		return nil, err
	}
	if r.Body.Sync { // the device may have converted the level
		now, err := h.access.NoiseSensors.ByID(ctx, principal(ctx), []uuid.UUID{t.ID})
		if err != nil {
			return nil, err
		}
		if len(now) > 0 {
			t = now[0]
		}
	}
	return openapi.CreateNoiseThreshold200JSONResponse{
		Ok:             true,
		NoiseThreshold: toNoiseThreshold(t),
		ActionAttempt:  answer.ActionAttempt,
	}, nil
}

// GetNoiseThreshold answers /noise_sensors/noise_thresholds/get.
func (h *handlers) GetNoiseThreshold(
	ctx context.Context, r openapi.GetNoiseThresholdRequestObject,
) (openapi.GetNoiseThresholdResponseObject, error) {
	t, err := h.access.NoiseSensors.Get(ctx, principal(ctx), r.Body.NoiseThresholdID)
	if err != nil {
		return nil, err
	}
	return openapi.GetNoiseThreshold200JSONResponse{Ok: true, NoiseThreshold: toNoiseThreshold(t)}, nil
}

// ListNoiseThresholds answers /noise_sensors/noise_thresholds/list.
func (h *handlers) ListNoiseThresholds(
	ctx context.Context, r openapi.ListNoiseThresholdsRequestObject,
) (openapi.ListNoiseThresholdsResponseObject, error) {
	all, err := h.access.NoiseSensors.List(ctx, principal(ctx), r.Body.DeviceID, r.Body.IsProgrammed)
	if err != nil {
		return nil, err
	}
	return openapi.ListNoiseThresholds200JSONResponse{Ok: true, NoiseThresholds: each(all, toNoiseThreshold)}, nil
}

// UpdateNoiseThreshold answers /noise_sensors/noise_thresholds/update.
func (h *handlers) UpdateNoiseThreshold(
	ctx context.Context, r openapi.UpdateNoiseThresholdRequestObject,
) (openapi.UpdateNoiseThresholdResponseObject, error) {
	attempt, err := h.access.NoiseSensors.Update(
		ctx,
		principal(ctx),
		r.Body.DeviceID,
		r.Body.NoiseThresholdID,
		noisesensor.Change{
			Name:     r.Body.Name,
			StartsAt: r.Body.StartsDailyAt,
			EndsAt:   r.Body.EndsDailyAt,
			Decibels: r.Body.NoiseThresholdDecibels,
			NRS:      r.Body.NoiseThresholdNrs,
		},
	)
	answer, err := h.attemptResponse(ctx, attempt, err, r.Body.Sync)
	if err != nil {
		return nil, err
	}
	return openapi.UpdateNoiseThreshold200JSONResponse(answer), nil
}

// DeleteNoiseThreshold answers /noise_sensors/noise_thresholds/delete.
func (h *handlers) DeleteNoiseThreshold(
	ctx context.Context, r openapi.DeleteNoiseThresholdRequestObject,
) (openapi.DeleteNoiseThresholdResponseObject, error) {
	attempt, err := h.access.NoiseSensors.Delete(ctx, principal(ctx), r.Body.DeviceID, r.Body.NoiseThresholdID)
	answer, err := h.attemptResponse(ctx, attempt, err, r.Body.Sync)
	if err != nil {
		return nil, err
	}
	return openapi.DeleteNoiseThreshold200JSONResponse(answer), nil
}

// SimulateTriggerNoiseThreshold answers /noise_sensors/simulate/trigger_noise_threshold.
func (h *handlers) SimulateTriggerNoiseThreshold(
	ctx context.Context, r openapi.SimulateTriggerNoiseThresholdRequestObject,
) (openapi.SimulateTriggerNoiseThresholdResponseObject, error) {
	err := h.simulatedUpon(
		ctx,
		r.Body.DeviceID,
		func(p domain.Principal) error { return h.simulator.TriggerNoise(ctx, p, r.Body.DeviceID) },
	)
	if err != nil {
		return nil, err
	}
	return openapi.SimulateTriggerNoiseThreshold200JSONResponse{Ok: true}, nil
}

func toNoiseThreshold(t noisesensor.Threshold) api.NoiseThreshold {
	return api.NoiseThreshold{
		NoiseThresholdID:       t.ID.String(),
		DeviceID:               t.DeviceID.String(),
		Name:                   t.Name,
		NoiseThresholdDecibels: t.Decibels,
		NoiseThresholdNrs:      t.NRS,
		StartsDailyAt:          t.StartsAt(),
		EndsDailyAt:            t.EndsAt(),
	}
}

// thresholdsOf returns the thresholds that are results of attempts. Those that were deleted since are missing.
func (h *handlers) thresholdsOf(
	ctx context.Context, attempts []device.Attempt,
) (map[uuid.UUID]api.NoiseThreshold, error) {
	var ids []uuid.UUID
	for _, a := range attempts {
		if carriesThreshold(a) {
			ids = append(ids, a.Threshold)
		}
	}
	if ids == nil {
		return nil, nil
	}
	all, err := h.access.NoiseSensors.ByID(ctx, principal(ctx), ids)
	out := make(map[uuid.UUID]api.NoiseThreshold, len(all))
	for _, t := range all {
		out[t.ID] = toNoiseThreshold(t)
	}
	return out, err
}

func carriesThreshold(a device.Attempt) bool {
	return a.Status == device.Succeeded &&
		(a.Type == domain.CreateNoiseThreshold || a.Type == domain.UpdateNoiseThreshold)
}

// addNoise adds the properties of a noise sensor.
func addNoise(p *api.DeviceProperties, d device.Device) {
	if d.Capabilities.NoiseSensor == nil {
		return
	}
	triggering := []string{}
	var decibels, nrs *float64
	if d.Noise != nil {
		decibels, nrs = d.Noise.Observed.Decibels, d.Noise.Observed.NRS
		for _, id := range d.Noise.Triggering {
			triggering = append(triggering, id.String())
		}
	}
	p.NoiseLevelDecibels, p.CurrentlyTriggeringNoiseThresholdIds = decibels, &triggering
	switch d.Provider {
	case "minut":
		p.MinutMetadata = &api.MinutMetadata{DeviceID: d.Ref, DeviceName: d.VendorName}
		if decibels != nil {
			p.MinutMetadata.LatestSensorValues = &api.MinutSensorValues{Sound: &api.MinutSensorValue{Value: *decibels}}
		}
	case "noiseaware":
		p.NoiseawareMetadata = &api.NoiseawareMetadata{
			DeviceID:          d.Ref,
			DeviceName:        d.VendorName,
			NoiseLevelDecibel: decibels,
			NoiseLevelNrs:     nrs,
		}
	}
}
