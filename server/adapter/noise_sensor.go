package adapter

import "context"

// ThresholdRef is the vendor's identifier of a threshold on one device.
type ThresholdRef string

// NoiseThreshold is a level of noise and the time of day in which it applies.
type NoiseThreshold struct {
	// Ref is the threshold to overwrite; empty to create one.
	Ref ThresholdRef
	// Key is the idempotency key of a creation, at most 64 characters; as an observation, empty if the vendor does not
	// store it.
	Key  string
	Name string
	// StartsDaily and EndsDaily are HH:MM:SS in TimeZone. An end before the start is on the next day.
	StartsDaily, EndsDaily string
	// TimeZone is of the IANA database; empty for that of the device.
	TimeZone string
	Decibels float64
	// NRS is the noise risk score that was set instead of Decibels; nil for other vendors.
	NRS *float64
}

// NoiseController is implemented by adapters whose devices can be noise sensors (Capabilities.NoiseSensor). Both methods
// fail like Device, with Offline, and with Unconfirmed when the outcome is unknown. Accepted means that the device has
// not applied the change yet; Device shows when it has.
type NoiseController interface {
	// PutNoiseThreshold creates a threshold, or overwrites the threshold t.Ref. Repeating a creation with the same t.Key
	// has no further effect. It also fails with Full, with Invalid when the device does not accept the threshold, and
	// with NotFound when t.Ref does not exist.
	PutNoiseThreshold(ctx context.Context, device DeviceRef, t NoiseThreshold) (ThresholdRef, State, error)
	// DeleteNoiseThreshold deletes a threshold. Deleting an absent one is not an error.
	DeleteNoiseThreshold(ctx context.Context, device DeviceRef, threshold ThresholdRef) (State, error)
}

// NoiseSensor is the observed state of a noise sensor.
type NoiseSensor struct {
	// Decibels is the level of noise; nil when unknown.
	Decibels *float64
	// NRS is the noise risk score; nil when unknown.
	NRS *float64
	// Thresholds are all those on the device.
	Thresholds []NoiseThreshold
	// Triggering are the thresholds that the noise exceeds now.
	Triggering []ThresholdRef
}

// NoiseSimulator is implemented by adapters of simulated noise sensors. It fails with NotSupported for an account of
// real devices and for another kind of device.
type NoiseSimulator interface {
	// TriggerNoise makes noise above the thresholds of the device that apply now.
	TriggerNoise(ctx context.Context, device DeviceRef) error
}
