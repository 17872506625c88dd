package zwavejs_test

import (
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// The gateway answers a write to a device that sleeps when the device has received it, which can be hours later.
func TestThermostatThatSleeps(t *testing.T) {
	t.Parallel()
	s := play(t, nil, func(_ *script, c command) string {
		switch c.Name {
		case "start_listening":
			return `{"state":{"nodes":[{"nodeId":2,"status":1,"ready":true,"manufacturerId":2,"endpoints":[{"index":0,"commandClasses":[{"id":64,"version":2},{"id":67,"version":2}]}],
				"values":[{"commandClass":64,"endpoint":0,"property":"mode","value":1,"metadata":{"states":{"0":"Off","1":"Heat"}}},
					{"commandClass":67,"endpoint":0,"property":"setpoint","propertyKey":1,"value":20,"metadata":{"unit":"°C"}}]}]}}`
		case "node.set_value":
			<-t.Context().Done()
		}
		return ""
	})
	state, err := s.adapter.SetThermostat(t.Context(), s.device,
		adapter.ThermostatSetting{Mode: capability.Heat, Heat: new(21.0)})
	if err != nil || state != adapter.Accepted {
		t.Fatalf("SetThermostat: %s, %v", state, err)
	}
	d, err := s.adapter.Device(t.Context(), s.device)
	if err != nil || !d.Online || *d.Thermostat.Setting.Heat != 20 {
		t.Errorf("the device is %+v, %v", d, err)
	}
	if n := s.count("node.poll_value"); n != 0 {
		t.Errorf("the thermostat was read %d times", n)
	}
	s.tell(
		`{"type":"event","event":{"source":"node","nodeId":2,"event":"value updated","args":{"commandClass":67,"endpoint":0,"property":"setpoint","propertyKey":1,"newValue":21}}}`,
	)
	until(t, "it shows the setting", func() bool {
		d, err := s.adapter.Device(t.Context(), s.device)
		return err == nil && *d.Thermostat.Setting.Heat == 21
	})
}

// Each outcome of a write has its class.
func TestThermostatRejectsASetting(t *testing.T) {
	t.Parallel()
	for result, class := range map[string]adapter.Class{ // by the status of zwave-js
		`{"result":{"status":0}}`: adapter.NotSupported, `{"result":{"status":2}}`: adapter.Invalid,
		`{"result":{"status":4}}`: adapter.NotSupported, `{"result":{"status":5,"message":"x"}}`: adapter.Invalid,
		`{"result":{"status":77}}`: adapter.Unconfirmed, `{}`: adapter.Unconfirmed, `[]`: adapter.Unconfirmed,
	} {
		s := play(t, nil, func(_ *script, c command) string {
			switch c.Name {
			case "start_listening":
				return `{"state":{"nodes":[{"nodeId":2,"status":4,"ready":true,"manufacturerId":2,"endpoints":[{"index":0,"commandClasses":[{"id":67,"version":2}]}],
					"values":[{"commandClass":67,"endpoint":0,"property":"setpoint","propertyKey":1,"value":20,"metadata":{"unit":"°C"}}]}]}}`
			case "node.set_value":
				return result
			}
			return ""
		})
		_, err := s.adapter.SetThermostat(t.Context(), s.device, adapter.ThermostatSetting{Heat: new(21.0)})
		failsAs(t, err, class)
	}
}
