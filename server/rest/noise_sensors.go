package rest

import (
	"context"
	"errors"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

var errNoThresholds = errors.New("noise thresholds are not stored yet")

// CreateNoiseThreshold answers /noise_sensors/noise_thresholds/create.
func (h *handlers) CreateNoiseThreshold(
	context.Context, openapi.CreateNoiseThresholdRequestObject,
) (openapi.CreateNoiseThresholdResponseObject, error) {
	return nil, errNoThresholds
}

// GetNoiseThreshold answers /noise_sensors/noise_thresholds/get.
func (h *handlers) GetNoiseThreshold(
	context.Context, openapi.GetNoiseThresholdRequestObject,
) (openapi.GetNoiseThresholdResponseObject, error) {
	return nil, errNoThresholds
}

// ListNoiseThresholds answers /noise_sensors/noise_thresholds/list.
func (h *handlers) ListNoiseThresholds(
	context.Context, openapi.ListNoiseThresholdsRequestObject,
) (openapi.ListNoiseThresholdsResponseObject, error) {
	return nil, errNoThresholds
}

// UpdateNoiseThreshold answers /noise_sensors/noise_thresholds/update.
func (h *handlers) UpdateNoiseThreshold(
	context.Context, openapi.UpdateNoiseThresholdRequestObject,
) (openapi.UpdateNoiseThresholdResponseObject, error) {
	return nil, errNoThresholds
}

// DeleteNoiseThreshold answers /noise_sensors/noise_thresholds/delete.
func (h *handlers) DeleteNoiseThreshold(
	context.Context, openapi.DeleteNoiseThresholdRequestObject,
) (openapi.DeleteNoiseThresholdResponseObject, error) {
	return nil, errNoThresholds
}

// SimulateTriggerNoiseThreshold answers /noise_sensors/simulate/trigger_noise_threshold.
func (h *handlers) SimulateTriggerNoiseThreshold(
	context.Context, openapi.SimulateTriggerNoiseThresholdRequestObject,
) (openapi.SimulateTriggerNoiseThresholdResponseObject, error) {
	return nil, errNoThresholds
}
