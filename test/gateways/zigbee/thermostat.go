package zigbee

import "testing"

// Thermostat is one thermostat of a gateway.
type Thermostat struct{ *Lock }

// LeaseThermostat returns a thermostat in factory state for this test only.
func (g *Gateway) LeaseThermostat(t testing.TB, profile Profile) *Thermostat {
	t.Helper()
	return &Thermostat{g.Lease(t, profile)}
}

// ThermostatState is what a thermostat is set to and measures: attributes of the Zigbee specification, temperatures in
// hundredths of a degree Celsius.
type ThermostatState struct {
	Mode        *int `json:"systemMode,omitempty"`
	Fan         *int `json:"fanMode,omitempty"`
	Heat        *int `json:"occupiedHeatingSetpoint,omitempty"`
	Cool        *int `json:"occupiedCoolingSetpoint,omitempty"`
	Temperature *int `json:"localTemp,omitempty"`
	// Frames counts the received frames about the thermostat and its fan.
	Frames int `json:"frames,omitempty"`
}

// State reads the thermostat's memory.
func (m *Thermostat) State(t testing.TB) (s ThermostatState) {
	t.Helper()
	m.do(t, "state", nil, &s)
	return s
}

// Adjust changes the attributes that are not nil, as a person does at the wall. The thermostat reports that.
func (m *Thermostat) Adjust(t testing.TB, change ThermostatState) {
	t.Helper()
	m.do(t, "adjust", change, nil)
}
