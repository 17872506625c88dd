package thermostat

import (
	"context"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/climate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// SetMode sets the mode and the set points of a thermostat. It returns the attempt, which ends when the device
// confirms. An offline device is set when it is back. It fails with NotFound, with Invalid for a setting that the device
// does not accept, and with Invalid (invalid_heating_cooling_delta) for set points that are too close.
func (s *Service) SetMode(
	ctx context.Context, p domain.Principal, deviceID string, setting climate.Setting,
) (device.Attempt, error) {
	return s.attempt(ctx, p, deviceID, domain.SetHVACMode, func(_ context.Context, r *rows, a climate.Attempt) error {
		return r.rules.Command(a, setting)
	})
}

// SetFan sets the fan of a thermostat. It is otherwise like SetMode.
func (s *Service) SetFan(
	ctx context.Context, p domain.Principal, deviceID string, setting climate.Setting,
) (device.Attempt, error) {
	return s.attempt(ctx, p, deviceID, domain.SetFanMode, func(_ context.Context, r *rows, a climate.Attempt) error {
		return r.rules.Command(a, setting)
	})
}

// ActivatePreset sets a thermostat to a preset. It is otherwise like SetMode, and fails with NotFound
// (climate_preset_not_found).
func (s *Service) ActivatePreset(
	ctx context.Context, p domain.Principal, deviceID, key string,
) (device.Attempt, error) {
	return s.attempt(
		ctx, p, deviceID, domain.ActivateClimatePreset, func(_ context.Context, r *rows, a climate.Attempt) error {
			return r.rules.Activate(a, key)
		},
	)
}

// attempt is change for an operation with an action attempt, which it returns.
func (s *Service) attempt(
	ctx context.Context, p domain.Principal, deviceID, action string,
	f func(context.Context, *rows, climate.Attempt) error,
) (a device.Attempt, err error) {
	var last *rows
	err = s.change(ctx, p, deviceID, "set the thermostat", func(ctx context.Context, r *rows) error {
		created, deadline, err := s.devices.NewAttempt(ctx, r.tx, r.d, action)
		if err != nil {
			return err
		}
		a, last = created, r
		return f(ctx, r, climate.Attempt{ID: a.ID, Deadline: deadline.UTC()})
	})
	if err != nil {
		return device.Attempt{}, err
	}
	if e, ended := last.ended[a.ID]; ended {
		a.Status, a.ErrorType, a.Message = device.Succeeded, e.ErrorType, e.Message
		if e.ErrorType != "" {
			a.Status = device.Failed
		}
	}
	return a, nil
}

// CreatePreset adds a climate preset. It fails with NotFound, with Conflict (duplicate_climate_preset), and with
// Invalid for too many presets and for a setting that the device does not accept.
func (s *Service) CreatePreset(
	ctx context.Context, p domain.Principal, deviceID string, f climate.PresetFields,
) error {
	return s.change(ctx, p, deviceID, "create a climate preset", func(_ context.Context, r *rows) error {
		return r.rules.CreatePreset(f)
	})
}

// UpdatePreset changes a climate preset. If it is in effect, the device is set to it. It fails with NotFound, and with
// Invalid for a preset of the device itself and for a setting that the device does not accept.
func (s *Service) UpdatePreset(
	ctx context.Context, p domain.Principal, deviceID string, f climate.PresetFields,
) error {
	return s.change(ctx, p, deviceID, "update a climate preset", func(_ context.Context, r *rows) error {
		return r.rules.UpdatePreset(f)
	})
}

// DeletePreset deletes a climate preset. It fails with NotFound, and with Invalid for a preset of the device itself or
// one in use.
func (s *Service) DeletePreset(ctx context.Context, p domain.Principal, deviceID, key string) error {
	return s.change(ctx, p, deviceID, "delete a climate preset", func(_ context.Context, r *rows) error {
		return r.rules.DeletePreset(key)
	})
}

// SetFallback chooses the climate preset that is set when a schedule ends. It fails with NotFound.
func (s *Service) SetFallback(ctx context.Context, p domain.Principal, deviceID, key string) error {
	return s.change(ctx, p, deviceID, "set the fallback climate preset", func(_ context.Context, r *rows) error {
		return r.rules.SetFallback(key)
	})
}

// SetThreshold replaces the temperature threshold. It fails with NotFound, and with Invalid if the limits contradict
// each other.
func (s *Service) SetThreshold(ctx context.Context, p domain.Principal, deviceID string, t climate.Threshold) error {
	return s.change(ctx, p, deviceID, "set the temperature threshold", func(_ context.Context, r *rows) error {
		return r.rules.SetThreshold(t)
	})
}

// parseID parses the identifier of a resource of a thermostat. It fails with notFound.
func parseID(id string, notFound *domain.Error) (uuid.UUID, error) {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return parsed, notFound
	}
	return parsed, nil
}
