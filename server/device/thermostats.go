package device

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/climate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// LockManaged locks a managed device for a change by a client. It fails with NotFound, and with Invalid
// (device_unmanaged).
func LockManaged(ctx context.Context, tx store.Tx, p domain.Principal, id uuid.UUID) (dbsqlc.Device, error) {
	return lockManagedDevice(ctx, tx, p, id)
}

// NotFound is the error of a device_id that names no device of the kind that a request needs.
func NotFound(id string) *domain.Error { return deviceNotFound("device_id", id) }

// CapabilitiesOf returns what the device of a row can do.
func CapabilitiesOf(d dbsqlc.Device) capability.Set { return capabilities(d) }

// NewAttempt inserts a pending attempt about a device, and returns when it expires. The attempt ends with EndAttempt.
func (s *Service) NewAttempt(
	ctx context.Context, tx store.Tx, d dbsqlc.Device, action string,
) (a Attempt, deadline time.Time, err error) {
	r, err := s.newDeviceAttempt(ctx, tx, d, action, s.opt.AttemptTimeout)
	return toAttempt(r), s.opt.Now().Add(s.opt.AttemptTimeout), err
}

// EndAttempt ends an attempt of NewAttempt, and wakes the requests that wait for it. An empty errorType means success.
// It does not change an attempt that has ended.
func (s *Service) EndAttempt(ctx context.Context, tx store.Tx, id uuid.UUID, errorType, message string) error {
	status := Succeeded
	if errorType != "" {
		status = Failed
	}
	_, err := s.finish(ctx, tx, dbsqlc.ActionAttempt{ActionAttemptID: id}, status, errorType, message)
	return err
}

// toClimate returns the document of a thermostat; nil if there is none.
func toClimate(document []byte) *climate.State {
	if document == nil {
		return nil
	}
	state := &climate.State{}
	_ = json.Unmarshal(document, state) // written by package thermostat
	return state
}

func (d Device) thermostatErrors() []domain.Problem {
	if d.Climate == nil || d.Climate.Observed == nil || !d.Climate.Observed.AuxiliaryHeat {
		return nil
	}
	return []domain.Problem{{
		Code:    "auxiliary_heat_running",
		Scope:   domain.OfDevice,
		At:      d.Climate.Observed.At,
		Message: "The auxiliary heat of the thermostat is running, which can cost much energy.",
	}}
}

func (d Device) thermostatWarnings() []domain.Problem {
	if d.Climate == nil || d.Climate.ThresholdExceededAt == nil {
		return nil
	}
	return []domain.Problem{{
		Code:    "temperature_threshold_exceeded",
		Scope:   domain.OfDevice,
		At:      *d.Climate.ThresholdExceededAt,
		Message: "The temperature is outside of the temperature threshold of the thermostat.",
	}}
}
