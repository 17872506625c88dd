package zwave

import "testing"

// Thermostat is one thermostat of a gateway. Its faults are those of a lock that concern writes.
type Thermostat struct{ *Lock }

// ThermostatState is what a thermostat is set to and measures, with the codes of Z-Wave and in the unit of the device.
type ThermostatState struct {
	Mode        int     `json:"mode"`
	Fan         int     `json:"fan"`
	Heat        float64 `json:"heat"`
	Cool        float64 `json:"cool"` // 0 if there is none
	Temperature float64 `json:"temperature"`
	Frames      int     `json:"frames"` // received since the gateway started
}

// LeaseThermostat returns a thermostat in factory state for this test only.
func (g *Gateway) LeaseThermostat(t testing.TB, profile Profile) *Thermostat {
	t.Helper()
	return &Thermostat{g.Lease(t, profile)}
}

// State reads the thermostat's memory.
func (m *Thermostat) State(t testing.TB) (s ThermostatState) {
	t.Helper()
	m.do(t, "state", nil, &s)
	return s
}

// Adjustment is what a person changes at a thermostat, or the weather, as in ThermostatState; nil changes nothing.
type Adjustment struct {
	Mode        *int     `json:"mode,omitempty"`
	Fan         *int     `json:"fan,omitempty"`
	Heat        *float64 `json:"heat,omitempty"`
	Cool        *float64 `json:"cool,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
}

// Adjust changes the thermostat, which reports that.
func (m *Thermostat) Adjust(t testing.TB, a Adjustment) { t.Helper(); m.do(t, "adjust", a, nil) }
