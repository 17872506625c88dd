package capability

// HVACMode is an hvac_mode_setting of the API.
type HVACMode string

// The modes of a thermostat.
const (
	Off      HVACMode = "off"
	Heat     HVACMode = "heat"
	Cool     HVACMode = "cool"
	HeatCool HVACMode = "heat_cool"
	Eco      HVACMode = "eco"
)

// Heats reports whether the mode has a heating set point.
func (m HVACMode) Heats() bool { return m == Heat || m == HeatCool }

// Cools reports whether the mode has a cooling set point.
func (m HVACMode) Cools() bool { return m == Cool || m == HeatCool }

// FanMode is a fan_mode_setting of the API.
type FanMode string

// The modes of a fan. FanCirculate runs it from time to time.
const (
	FanAuto      FanMode = "auto"
	FanOn        FanMode = "on"
	FanCirculate FanMode = "circulate"
)

// Thermostat says what a thermostat accepts. Temperatures are in °C. Its JSON is stored with the device.
type Thermostat struct {
	Modes    []HVACMode `json:"modes,omitempty"`
	FanModes []FanMode  `json:"fan_modes,omitempty"` // empty if the fan cannot be set
	// The ranges of the set points; nil if the device has no bound.
	MinHeat *float64 `json:"min_heat,omitempty"`
	MaxHeat *float64 `json:"max_heat,omitempty"`
	MinCool *float64 `json:"min_cool,omitempty"`
	MaxCool *float64 `json:"max_cool,omitempty"`
	// MinDelta is the least difference of the set points in HeatCool.
	MinDelta float64 `json:"min_delta,omitempty"`
	// Step is the resolution of the set points; 0 if unknown. A device may round a set point by half of it.
	Step float64 `json:"step,omitempty"`
}

// NoiseSensor says which thresholds a noise sensor accepts. Its JSON is stored with the device.
type NoiseSensor struct {
	// NRS means that thresholds may be noise risk scores of NoiseAware; otherwise they are in decibels only.
	NRS bool `json:"nrs,omitempty"`
	// MaxThresholds is how many thresholds the device holds; 0 if unknown.
	MaxThresholds int `json:"max_thresholds,omitempty"`
	// Disjoint means that the daily times of thresholds must not overlap.
	Disjoint bool `json:"disjoint,omitempty"`
	// Fixed means that the device has a set of thresholds that can be changed, but neither extended nor reduced.
	Fixed bool `json:"fixed,omitempty"`
}
