package zigbee2mqtt

import (
	"fmt"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
)

// Given absurd messages on the broker, the adapter keeps working, and returns plausible locks.
func TestAbsurdMessages(t *testing.T) {
	t.Parallel()
	const info = `{"version":"2.6.3","coordinator":{"ieee_address":"0x1","type":"EmberZNet"},"config":{"advanced":{"output":"json"},"device_options":{"expose_pin":true,"retain":true},
		"devices":{"0xa":{"friendly_name":"front door","expose_pin":true,"retain":false}}}}`
	good := lockListed("0xa", "front door", "V")
	listed := strings.Replace(
		good,
		`"definition":{`,
		`"supported":true,"disabled":false,"interview_completed":true,"manufacturer":"Yale","model_id":"YRD","power_source":"Battery","date_code":"20260101","definition":{"description":"a lock",`,
		1,
	)
	listed = strings.Replace(
		listed,
		`"exposes":[`,
		`"exposes":[{"type":"numeric","property":"battery","access":1,"value_max":100},{"type":"enum","property":"action","values":["lock","unlock"]},`,
		1,
	)
	state := stateOf(
		3,
		1,
		`,"state":"LOCK","lock_state":"locked","battery":77,"linkquality":100,"last_seen":"2026-11-25T17:00:02+00:00","action":"pin_code_added","action_source_name":"keypad","action_user":2,
		"deviceaccess_limits":{"numOfPinUsersSupported":30,"minPinLength":4,"maxPinLength":8}`,
	)
	for name, message := range map[string][2]string{
		"settings":        {"bridge/info", info},
		"devices":         {"bridge/devices", `[{"ieee_address":"0x1","type":"Coordinator"},` + listed + `]`},
		"whether it runs": {"bridge/state", `{"state":"online"}`},
		"a log": {
			"bridge/logging",
			`{"level":"error","message":"Publish 'set' 'pin_code' to 'front door' failed: 'x'","namespace":"z2m"}`,
		},
		"an answer": {
			"bridge/response/action",
			`{"transaction":"mine","status":"ok","data":{"data":{"data":[1,2,3]}},"error":"x"}`,
		},
		"a sign of life": {
			"bridge/response/health_check",
			`{"transaction":"mine","status":"ok","data":{"healthy":true}}`,
		},
		"whether one can be": {"front door/availability", `{"state":"offline"}`},
		"the state":          {"front door", state},
		"keypad use": {
			"front door",
			`{"action":"keypad_unlock","action_source":0,"action_source_name":"keypad","action_user":1,"state":"UNLOCK"}`,
		},
		"no access": {"front door", `{"action":"unlock_failure_invalid_pin_or_id","action_user":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := told(t, good)
			n := 0
			for twist, text := range adaptertest.Twists(t, message[1]) {
				a.publish("front door", state)
				answer := make(chan wireResponse, 1)
				a.requests["mine"] = answer
				a.receive("z/"+message[0], []byte(text), n%2 == 0)
				if err := a.sane(); err != nil {
					t.Errorf("%s: %v", twist, err)
				}
				a.receive("z/bridge/info", []byte(info), true)
				a.list(good)
				n++
			}
			if n < 30 {
				t.Errorf("only %d absurd messages", n)
			}
			a.receive("z/bridge/state", []byte(`{"state":"online"}`), false)
			a.receive("z/front door/availability", []byte(`{"state":"online"}`), false)
			a.publish("front door", state)
			d := a.device(a.locks["0xa"])
			if !d.Online || !d.Capabilities.PINVisible || d.Locked == nil || !*d.Locked ||
				d.BatteryLevel == nil || *d.BatteryLevel != 0.77 {
				t.Errorf("afterwards, a good lock is %+v", d)
			}
		})
	}
}

func TestAbsurdMessagesOfThermostats(t *testing.T) {
	t.Parallel()
	const state = `{"occupied_heating_setpoint":20,"occupied_cooling_setpoint":25.5,"local_temperature":19.25,"system_mode":"auto","running_state":"heat","fan_mode":"on","humidity":41}`
	good := thermostatListed(zen)
	for name, message := range map[string][2]string{
		"devices":   {"bridge/devices", "[" + good + "]"},
		"the state": {"hall", state},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := told(t, good)
			for twist, text := range adaptertest.Twists(t, message[1]) {
				a.publish("hall", state)
				a.receive("z/"+message[0], []byte(text), false)
				if err := a.sane(); err != nil {
					t.Errorf("%s: %v", twist, err)
				}
				a.list(good)
			}
			a.publish("hall", state)
			if d := a.device(
				a.locks["0xa"],
			); len(d.Capabilities.Thermostat.Modes) != 4 ||
				!near(d.Thermostat.Setting.Heat, 20) {
				t.Errorf("afterwards, a good thermostat is %+v", d)
			}
		})
	}
}

// saneClimate returns what is implausible about a thermostat.
func saneClimate(d adapter.Device) error {
	c, shown := d.Capabilities.Thermostat, d.Thermostat
	temperatures := []*float64{c.MinHeat, c.MaxHeat, c.MinCool, c.MaxCool}
	if shown != nil {
		temperatures = append(temperatures, shown.Setting.Heat, shown.Setting.Cool, shown.Temperature)
		if shown.Humidity != nil && !(*shown.Humidity >= 0 && *shown.Humidity <= 1) {
			return fmt.Errorf("the humidity is %v", *shown.Humidity)
		}
	}
	for _, t := range temperatures {
		if t != nil && !(*t >= adapter.Coldest && *t <= adapter.Hottest) {
			return fmt.Errorf("a temperature is %v", *t)
		}
	}
	if c.MinHeat != nil && c.MaxHeat != nil && *c.MinHeat > *c.MaxHeat || !(c.Step >= 0 && c.Step <= 10) ||
		len(c.Modes) > 5 || len(c.FanModes) > 3 {
		return fmt.Errorf("the limits are %+v", c)
	}
	return nil
}

// sane returns what is implausible about the locks of the adapter.
func (a *Adapter) sane() error {
	for ref, l := range a.locks {
		d := a.device(l)
		lengths := d.Capabilities.CodeLengths
		switch {
		case ref == "" || d.Ref != ref || strings.TrimSpace(d.Name) == "":
			return fmt.Errorf("a lock is %+v", d)
		case d.BatteryLevel != nil && !(*d.BatteryLevel >= 0 && *d.BatteryLevel <= 1):
			return fmt.Errorf("the battery level is %v", *d.BatteryLevel)
		case d.Capabilities.MaxCodes < 0 || d.Capabilities.MaxCodes > 1000:
			return fmt.Errorf("there is room for %d codes", d.Capabilities.MaxCodes)
		case len(lengths) > 0 && (lengths[0] < 1 || lengths[len(lengths)-1] > maxPINSize):
			return fmt.Errorf("PINs have lengths of %v", lengths)
		case l.climate != nil:
			if err := saneClimate(d); err != nil {
				return err
			}
		}
	}
	return nil
}
