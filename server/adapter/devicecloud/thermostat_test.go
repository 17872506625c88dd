package devicecloud_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// aThermostat is a thermostat in a response.
const aThermostat = `{"lock_id":"l1","device_type":"thermostat","name":"Hallway","manufacturer":"ecobee","model":"Premium",
	"online":true,"thermostat":{"mode":"heat_cool","fan":"auto","heat_set_point":18,"cool_set_point":24,"temperature":21.5,
	"humidity":40,"heating":false,"cooling":true,"fan_running":true,"auxiliary_heat":false,
	"presets":[{"key":"home","name":"Home","mode":"heat","heat_set_point":20}],"active_preset":"home"},
	"capabilities":{"provider":"ecobee","device_type":"ecobee_thermostat","confirm":"sync","direct_power":true,
	"thermostat":{"modes":["off","heat","cool","heat_cool"],"fan_modes":["auto","on"],"min_heat_set_point":7,
	"max_heat_set_point":26,"min_cool_set_point":18,"max_cool_set_point":33,"min_delta":2.78,"step":0.5}}}`

func TestThermostat_IsRead(t *testing.T) {
	t.Parallel()
	a, _ := vendor(t, says(http.StatusOK, aThermostat))
	d, err := a.Device(t.Context(), "l1")
	if err != nil {
		t.Fatal(err)
	}
	if d.Type != "ecobee_thermostat" || d.Provider != "ecobee" || d.Capabilities.Kind() != "thermostat" ||
		d.Capabilities.Lock || d.Capabilities.OnlineCodes || d.Capabilities.Confirm != capability.ConfirmSync {
		t.Errorf("%+v", d)
	}
	s := d.Thermostat
	if s.Setting.Mode != capability.HeatCool || s.Setting.Fan != capability.FanAuto || *s.Setting.Heat != 18 ||
		*s.Setting.Cool != 24 || *s.Temperature != 21.5 || *s.Humidity != 0.4 || *s.Heating || !*s.Cooling ||
		len(s.Presets) != 1 || s.ActivePreset != "home" || *s.Presets[0].Setting.Heat != 20 {
		t.Errorf("%+v", s)
	}
	l := d.Capabilities.Thermostat
	if len(l.Modes) != 4 || len(l.FanModes) != 2 || *l.MinHeat != 7 || *l.MaxCool != 33 || l.MinDelta != 2.78 ||
		l.Step != 0.5 {
		t.Errorf("%+v", l)
	}
}

// Given a broken or malicious vendor, the adapter rejects a response or returns plausible thermostats.
func TestThermostat_AbsurdResponses(t *testing.T) {
	t.Parallel()
	answer := ""
	a, _ := vendor(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/locks") {
			says(http.StatusOK, `{"locks":[`+answer+`]}`)(w, r)
			return
		}
		says(http.StatusOK, answer)(w, r)
	})
	n, taken := 0, 0
	for twist, twisted := range adaptertest.Twists(t, aThermostat) {
		answer = twisted
		n++
		devices, _ := a.Devices(t.Context())
		if one, err := a.Device(t.Context(), "l1"); err == nil {
			devices = append(devices, one)
			taken++
		}
		for _, d := range devices {
			if problem := implausible(d); problem != "" {
				t.Errorf("%s: %s", twist, problem)
			}
		}
	}
	if n < 100 || taken < 10 {
		t.Errorf("%d of %d responses were accepted", taken, n)
	}
}

// implausible returns what is implausible about a device that may be a thermostat.
func implausible(d adapter.Device) string {
	if d.Ref == "" || d.Type == "" || d.Provider == "" {
		return fmt.Sprintf("a thermostat is %+v", d)
	}
	temperature := func(v *float64) bool { return v == nil || *v >= -100 && *v <= 200 }
	if l := d.Capabilities.Thermostat; l != nil {
		for _, v := range []*float64{l.MinHeat, l.MaxHeat, l.MinCool, l.MaxCool} {
			if !temperature(v) {
				return fmt.Sprint("a bound is ", *v)
			}
		}
		if l.MinHeat != nil && l.MaxHeat != nil && *l.MinHeat > *l.MaxHeat {
			return fmt.Sprint("the range starts at ", *l.MinHeat)
		}
		if l.MinDelta < 0 || l.MinDelta > 20 || l.Step < 0 || l.Step > 20 {
			return fmt.Sprintf("the limits are %+v", l)
		}
	}
	s := d.Thermostat
	if s == nil {
		return ""
	}
	if !temperature(s.Setting.Heat) || !temperature(s.Setting.Cool) || !temperature(s.Temperature) {
		return fmt.Sprintf("the state is %+v", s)
	}
	if h := s.Humidity; h != nil && !(*h >= 0 && *h <= 1) {
		return fmt.Sprint("the humidity is ", *h)
	}
	for _, p := range s.Presets {
		if p.Key == "" || p.Name == "" || strings.Contains(p.Key, "\x00") {
			return fmt.Sprintf("a preset is %+v", p)
		}
	}
	return ""
}

// The server stores what a vendor says, so that much of it must not be believed.
func TestThermostat_ExcessIsIgnored(t *testing.T) {
	t.Parallel()
	var presets, modes []string
	for i := range 5000 {
		presets = append(presets, fmt.Sprintf(`{"key":"k%d","mode":"boost","heat_set_point":1e9}`, i%4000))
		modes = append(modes, fmt.Sprintf(`"m%d"`, i), `"heat"`)
	}
	presets = append([]string{`{"key":"` + strings.Repeat("k", 1<<10) + `"}`, `{"key":"a\u0000b"}`, `{"name":"none"}`},
		presets...)
	a, _ := vendor(t, says(http.StatusOK, `{"lock_id":"l1","capabilities":{"thermostat":{"modes":[`+
		strings.Join(modes, ",")+`],"min_heat_set_point":30,"max_heat_set_point":10,"step":1e9}},
		"thermostat":{"mode":"boost","fan":"fast","temperature":1e9,"active_preset":"gone","presets":[`+
		strings.Join(presets, ",")+`]}}`))
	d, err := a.Device(t.Context(), "l1")
	if err != nil {
		t.Fatal(err)
	}
	if problem := implausible(d); problem != "" {
		t.Error(problem)
	}
	l, s := d.Capabilities.Thermostat, d.Thermostat
	if len(l.Modes) != 1 || l.MinHeat != nil || l.MaxHeat != nil {
		t.Errorf("limits %+v", l)
	}
	if len(s.Presets) != 50 || s.Presets[0].Key != "k0" || s.Presets[0].Setting != (adapter.ThermostatSetting{}) ||
		s.ActivePreset != "" || s.Setting != (adapter.ThermostatSetting{}) || s.Temperature != nil {
		t.Errorf("state %+v", s)
	}
	if d.Type != "acme_thermostat" {
		t.Errorf("type %s", d.Type)
	}
}

// The setting is sent without fields that have no value.
func TestThermostat_SettingIsSent(t *testing.T) {
	t.Parallel()
	sent := map[string]any{}
	a, _ := vendor(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && r.URL.Path == "/locks/l1/thermostat" {
			if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
				t.Error(err)
			}
			_, _ = io.WriteString(w, `{"status":"pending"}`)
			return
		}
		says(http.StatusOK, aThermostat)(w, r)
	})
	state, err := a.SetThermostat(t.Context(), "l1",
		adapter.ThermostatSetting{Mode: capability.Cool, Cool: new(22.5)})
	if err != nil || state != adapter.Accepted {
		t.Errorf("%q, %v", state, err)
	}
	if len(sent) != 2 || sent["mode"] != "cool" || sent["cool_set_point"] != 22.5 {
		t.Errorf("sent %v", sent)
	}
}
