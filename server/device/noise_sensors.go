package device

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/noise"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// NewThresholdAttempt inserts a pending attempt about a threshold of a device that the caller has locked. It ends with
// EndAttempt, or when it expires. It fails with TooMany.
func (s *Service) NewThresholdAttempt(
	ctx context.Context, tx store.Tx, d dbsqlc.Device, action string, threshold uuid.UUID,
) (Attempt, error) {
	pending, err := tx.PendingAttemptsOfDevice(ctx, d.DeviceID)
	if err != nil {
		return Attempt{}, err
	}
	if len(pending) >= maxCommands {
		return Attempt{}, tooManyCommands(d.DeviceID, int64(len(pending)))
	}
	opt := attemptOptions{NoiseThreshold: &threshold}
	r, err := s.newDeviceAttemptWith(ctx, tx, d, action, s.opt.AttemptTimeout, opt)
	return toAttempt(r), err
}

// PendingThresholdAttempts returns the pending attempts about the thresholds of a device.
func (s *Service) PendingThresholdAttempts(
	ctx context.Context, tx store.Tx, device uuid.UUID,
) (out []noise.Attempt, err error) {
	pending, err := tx.PendingAttemptsOfDevice(ctx, device)
	for _, r := range pending {
		if a := toAttempt(r); a.Threshold != uuid.Nil {
			out = append(out, noise.Attempt{
				ID:        a.ID,
				Threshold: a.Threshold,
				Delete:    a.Type == domain.DeleteNoiseThreshold,
			})
		}
	}
	return out, err
}

// RecordRead records that a managed device was read. seq is that of the work that the read was for.
func RecordRead(ctx context.Context, tx store.Tx, d dbsqlc.Device, seq int64) error {
	return tx.SetDeviceRead(ctx, dbsqlc.SetDeviceReadParams{DeviceID: d.DeviceID, WakeSeq: seq})
}

// NoiseOf returns the document of a noise sensor; nil if there is none.
func NoiseOf(d dbsqlc.Device) *noise.Document { return toNoise(d.Noise) }

// toNoise returns the document of a noise sensor; nil if there is none.
func toNoise(document []byte) *noise.Document {
	if document == nil {
		return nil
	}
	out := &noise.Document{}
	_ = json.Unmarshal(document, out) // written by package noisesensor
	return out
}
