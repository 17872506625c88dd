package sandbox

import (
	"maps"
	"slices"
	"strings"
)

// noiseProfile describes the noise sensors of one vendor.
type noiseProfile struct {
	// Fixed means that the thresholds of a new device can be changed, but neither extended nor reduced.
	Fixed bool
	// Disjoint means that the times of thresholds must not overlap.
	Disjoint bool
	// NRS means that levels can be noise risk scores.
	NRS bool
	// Max is the maximum number of thresholds.
	Max int
	// Sync means that the vendor responds to a write after the device has applied it.
	Sync    bool
	Battery bool
	// Thresholds are those of a new device.
	Thresholds []noiseThreshold
}

// noiseSensors are the profiles of noise sensors.
var noiseSensors = map[string]profile{
	"minut": {
		DeviceType:   "minut_sensor",
		Manufacturer: "Minut",
		Model:        "Minut Sensor",
		LockName:     "Living Room Sensor",
		Latency:      ms(100, 300),
		AnyPerson:    true,
		Noise: &noiseProfile{
			Fixed:   true,
			Max:     2,
			Battery: true,
			// The levels and times are assumed.
			Thresholds: []noiseThreshold{
				{
					ID:       "builtin_quiet_hours",
					Name:     "builtin_quiet_hours",
					Starts:   "22:00:00",
					Ends:     "07:00:00",
					Decibels: 50,
				},
				{
					ID:       "builtin_normal_hours",
					Name:     "builtin_normal_hours",
					Starts:   "00:00:00",
					Ends:     "23:59:59",
					Decibels: 60,
				},
			},
		},
	},
	"noiseaware": {
		DeviceType:   "noiseaware_activity_zone",
		Manufacturer: "NoiseAware",
		Model:        "NoiseAware Indoor Sensor",
		LockName:     "Kitchen Activity Zone",
		Noise: &noiseProfile{
			Disjoint: true,
			NRS:      true,
			Max:      24, // assumed
			Sync:     true,
			Thresholds: []noiseThreshold{
				{
					ID:       "builtin_normal_hours",
					Name:     "builtin_normal_hours",
					Starts:   "07:00:00",
					Ends:     "22:00:00",
					Decibels: 60,
				},
			},
		},
	},
}

// NoiseProfiles returns the names of all profiles of noise sensors, sorted.
func NoiseProfiles() []string { return slices.Sorted(maps.Keys(noiseSensors)) }

// anyPerson returns the address in lower case if it is one of example.com.
func anyPerson(email string) (string, bool) {
	email = strings.ToLower(strings.TrimSpace(email))
	name, domain, _ := strings.Cut(email, "@")
	return email, name != "" && domain == "example.com" && !strings.ContainsAny(name, "/# \t") && len(email) <= 254
}
