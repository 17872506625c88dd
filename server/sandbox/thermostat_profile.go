package sandbox

import (
	"maps"
	"slices"
	"time"
)

// thermostatProfile describes the thermostats of one vendor. All temperatures are in °C.
type thermostatProfile struct {
	Modes    []hvacMode
	FanModes []fanMode // empty if the fan cannot be set
	// Heat and Cool are the ranges of the set points; nil if there is no such set point.
	Heat, Cool *setPointRange
	// MinDelta is the minimum difference of the set points in heat_cool.
	MinDelta float64
	// Step is the resolution of the set points. A device in °F has whole multiples of it in °F.
	Step       float64
	Fahrenheit bool
	// Eco are the set points of the vendor in eco, which are not shown.
	Eco setPointRange
	// ModeSetPoints means that only the set points of the current mode are shown.
	ModeSetPoints bool
	// Sync means that the vendor responds to a write after the device has applied it.
	Sync bool
	// AuxiliaryBelow is how far below the set point the auxiliary heat starts; 0 if there is none.
	AuxiliaryBelow float64
	Battery        bool
	Presets        []thermostatPreset
	Initial        thermostatState
}

// setPointRange is the inclusive range of a set point.
type setPointRange struct{ Min, Max float64 }

type hvacMode string

const (
	modeOff      hvacMode = "off"
	modeHeat     hvacMode = "heat"
	modeCool     hvacMode = "cool"
	modeHeatCool hvacMode = "heat_cool"
	modeEco      hvacMode = "eco"
)

func (m hvacMode) heats() bool { return m == modeHeat || m == modeHeatCool }
func (m hvacMode) cools() bool { return m == modeCool || m == modeHeatCool }

type fanMode string

const (
	fanAuto      fanMode = "auto"
	fanOn        fanMode = "on"
	fanCirculate fanMode = "circulate"
)

// thermostatPreset is a setting that the vendor has a name for.
type thermostatPreset struct {
	Key  string
	Name string
	Mode hvacMode
	// Heat and Cool apply to the modes that heat and cool.
	Heat, Cool float64
}

// fahrenheit converts °F to °C.
func fahrenheit(f float64) float64 { return (f - 32) / 1.8 }

// rangeInFahrenheit converts a range in °F to °C.
func rangeInFahrenheit(from, to float64) *setPointRange {
	return &setPointRange{fahrenheit(from), fahrenheit(to)}
}

var fourModes = []hvacMode{modeOff, modeHeat, modeCool, modeHeatCool}

// thermostats are the profiles of thermostats.
var thermostats = map[string]profile{
	"ecobee": {
		DeviceType:   "ecobee_thermostat",
		Manufacturer: "ecobee",
		Model:        "Smart Thermostat Premium",
		LockName:     "Living Room Thermostat",
		Latency:      ms(150, 500),
		ListLag:      300 * time.Millisecond,
		Thermostat: &thermostatProfile{
			Modes:    fourModes,
			FanModes: []fanMode{fanAuto, fanOn},
			// Defaults of the ecobee API: heatRangeLow 450, heatRangeHigh 790, coolRangeLow 650, coolRangeHigh 920.
			Heat:           rangeInFahrenheit(45, 79),
			Cool:           rangeInFahrenheit(65, 92),
			MinDelta:       5 / 1.8,
			Step:           0.1,
			Fahrenheit:     true,
			AuxiliaryBelow: 5,
			Presets: []thermostatPreset{
				{"home", "Home", modeHeatCool, fahrenheit(68), fahrenheit(76)},
				{"away", "Away", modeHeatCool, fahrenheit(62), fahrenheit(82)},
				{"sleep", "Sleep", modeHeatCool, fahrenheit(66), fahrenheit(74)},
			},
			Initial: thermostatState{
				Mode:        modeCool,
				Fan:         fanAuto,
				Heat:        18,
				Cool:        24,
				Temperature: 23,
				Humidity:    40,
			},
		},
	},
	"nest": {
		DeviceType:   "nest_thermostat",
		Manufacturer: "Nest",
		Model:        "Nest Learning Thermostat",
		LockName:     "Hallway Thermostat",
		Latency:      ms(100, 300),
		Thermostat: &thermostatProfile{
			Modes:         append(slices.Clone(fourModes), modeEco),
			FanModes:      []fanMode{fanAuto, fanOn},
			Heat:          &setPointRange{9, 32},
			Cool:          &setPointRange{9, 32},
			MinDelta:      1.5,
			Step:          0.5,
			Eco:           setPointRange{15, 28}, // assumed
			ModeSetPoints: true,
			Sync:          true,
			Presets:       []thermostatPreset{{Key: "eco", Name: "Eco", Mode: modeEco}},
			Initial: thermostatState{
				Mode:        modeHeat,
				Fan:         fanAuto,
				Heat:        20,
				Cool:        25,
				Temperature: 20.5,
				Humidity:    45,
			},
		},
	},
	"honeywell_resideo": {
		DeviceType:   "honeywell_resideo_thermostat",
		Manufacturer: "Honeywell Resideo",
		Model:        "T9",
		LockName:     "Upstairs Thermostat",
		Latency:      ms(200, 600),
		Thermostat: &thermostatProfile{
			Modes:      fourModes,
			FanModes:   []fanMode{fanAuto, fanOn, fanCirculate},
			Heat:       rangeInFahrenheit(40, 90),
			Cool:       rangeInFahrenheit(50, 99),
			MinDelta:   3 / 1.8, // assumed
			Step:       1,
			Fahrenheit: true,
			Initial: thermostatState{
				Mode:        modeHeatCool,
				Fan:         fanAuto,
				Heat:        fahrenheit(68),
				Cool:        fahrenheit(76),
				Temperature: fahrenheit(72),
				Humidity:    38,
			},
		},
	},
	"sensi": {
		DeviceType:   "sensi_thermostat",
		Manufacturer: "Sensi",
		Model:        "Touch Smart Thermostat",
		LockName:     "Bedroom Thermostat",
		Latency:      ms(100, 400),
		MorePeople:   []string{"frodo@example.com", "sam@example.com"},
		Thermostat: &thermostatProfile{
			Modes:      fourModes,
			FanModes:   []fanMode{fanAuto, fanOn, fanCirculate},
			Heat:       rangeInFahrenheit(45, 99),
			Cool:       rangeInFahrenheit(45, 99),
			MinDelta:   2 / 1.8, // assumed
			Step:       1,
			Fahrenheit: true,
			Battery:    true,
			Initial: thermostatState{
				Mode:        modeOff,
				Fan:         fanAuto,
				Heat:        fahrenheit(66),
				Cool:        fahrenheit(78),
				Temperature: fahrenheit(70),
				Humidity:    50,
			},
		},
	},
	"tado": {
		DeviceType:   "tado_thermostat",
		Manufacturer: "tado",
		Model:        "Smart Radiator Thermostat",
		LockName:     "Kitchen Radiator",
		Latency:      ms(150, 500),
		ListLag:      200 * time.Millisecond,
		Thermostat: &thermostatProfile{
			Modes:         []hvacMode{modeOff, modeHeat},
			Heat:          &setPointRange{5, 25},
			Step:          0.1,
			ModeSetPoints: true,
			Battery:       true,
			Presets: []thermostatPreset{
				{Key: "home", Name: "Home", Mode: modeHeat, Heat: 21},
				{Key: "away", Name: "Away", Mode: modeHeat, Heat: 16},
			},
			Initial: thermostatState{
				Mode:        modeHeat,
				Heat:        21,
				Temperature: 20.2,
				Humidity:    55,
				Preset:      "home",
			},
		},
	},
}

// ThermostatProfiles returns the names of all profiles of thermostats, sorted.
func ThermostatProfiles() []string { return slices.Sorted(maps.Keys(thermostats)) }
