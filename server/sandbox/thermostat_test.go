package sandbox_test

import (
	"math"
	"net/http"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// climate returns the thermostat of the box as shown by the cloud.
func (b *box) climate(t testing.TB) object {
	t.Helper()
	state, ok := b.ok(t, http.MethodGet, "/locks/"+b.lock(), nil)["thermostat"].(object)
	if !ok {
		t.Fatal("the device is not a thermostat")
	}
	return state
}

func (b *box) settingPath() string { return "/locks/" + b.lock() + "/thermostat" }

// awaits waits until the cloud shows the values.
func (b *box) awaits(t testing.TB, want object) {
	t.Helper()
	testenv.Until(t, "the cloud shows the state", func() bool {
		got := b.climate(t)
		for name, value := range want {
			if number, ok := value.(float64); ok {
				if shown, ok := got[name].(float64); !ok || math.Abs(shown-number) > 1e-3 {
					return false
				}
			} else if got[name] != value {
				return false
			}
		}
		return true
	})
}

func TestThermostat_Seed(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "ecobee")
	b.awaits(t, object{
		"mode":           "cool",
		"fan":            "auto",
		"heat_set_point": 18.0,
		"cool_set_point": 24.0,
		"cooling":        false,
	})
	shown := b.ok(t, http.MethodGet, "/locks/"+b.lock(), nil)
	caps := shown["capabilities"].(object)
	limits := caps["thermostat"].(object)
	if delta := limits["min_delta"].(float64); math.Abs(delta-2.78) > 0.01 {
		t.Errorf("the minimum difference is %v", delta)
	}
	if shown["device_type"] != "thermostat" || caps["device_type"] != "ecobee_thermostat" ||
		caps["remote_lock"] != false || shown["lock_state"] != nil || shown["battery_level"] != nil {
		t.Errorf("the thermostat is shown as %v", shown)
	}
}

// A new account has all locks and one thermostat.
func TestThermostat_InNewAccount(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7})
	locks := objects(b.ok(t, http.MethodGet, "/locks", nil)["locks"])
	thermostats := 0
	for _, l := range locks {
		if l["device_type"] == "thermostat" {
			thermostats++
		}
	}
	if len(locks) != len(sandbox.Profiles())+1 || thermostats != 1 {
		t.Errorf("the account has %d devices, and %d of them are thermostats", len(locks), thermostats)
	}
}

func TestThermostat_SettingsObeyTheDevice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		profile string
		body    object
		refusal string // empty: accepted
		shows   object
	}{
		{"mode", "ecobee", object{"mode": "heat"}, "", object{"mode": "heat", "heat_set_point": 18.0}},
		{"set point", "ecobee", object{"cool_set_point": 22}, "", object{"mode": "cool", "cool_set_point": 22.0}},
		{"rounded to 0.1 °F", "ecobee", object{"cool_set_point": 22.01}, "", object{"cool_set_point": 22.0}},
		{"rounded to 1 °F", "sensi", object{"heat_set_point": 20.2}, "", object{"heat_set_point": 20.0}},
		{"rounded to 0.5 °C", "nest", object{"heat_set_point": 20.3}, "", object{"heat_set_point": 20.5}},
		{"fan", "sensi", object{"fan": "circulate"}, "", object{"fan": "circulate", "mode": "off"}},
		{"hides other set points", "nest", object{"mode": "cool"}, "", object{"heat_set_point": nil, "cool_set_point": 25.0}},
		{"eco", "nest", object{"mode": "eco"}, "", object{"mode": "eco", "heat_set_point": nil, "cool_set_point": nil}},
		{"radiator", "tado", object{"heat_set_point": 18.5}, "", object{"heat_set_point": 18.5, "fan_running": nil}},
		{"close", "ecobee", object{"mode": "heat_cool", "heat_set_point": 21, "cool_set_point": 24}, "", nil},
		{
			"too close", "ecobee",
			object{"mode": "heat_cool", "heat_set_point": 21.5, "cool_set_point": 24},
			"INVALID_SETTING", nil,
		},
		{"too close to the old one", "honeywell_resideo", object{"heat_set_point": 23.5}, "INVALID_SETTING", nil},
		{"too cold", "ecobee", object{"mode": "heat", "heat_set_point": 6}, "INVALID_SETTING", nil},
		{"too warm", "tado", object{"heat_set_point": 25.1}, "INVALID_SETTING", nil},
		{"no eco", "ecobee", object{"mode": "eco"}, "NOT_SUPPORTED", nil},
		{"no cooling", "tado", object{"mode": "cool"}, "NOT_SUPPORTED", nil},
		{"no cooling set point", "tado", object{"cool_set_point": 20}, "NOT_SUPPORTED", nil},
		{"no fan", "tado", object{"fan": "auto"}, "NOT_SUPPORTED", nil},
		{"set point in eco", "nest", object{"mode": "eco", "heat_set_point": 20}, "INVALID_SETTING", nil},
		{"nothing", "ecobee", object{}, "INVALID_REQUEST", nil},
		{"no number", "ecobee", object{"heat_set_point": "warm"}, "INVALID_REQUEST", nil},
	} {
		t.Run(c.profile+" "+c.name, func(t *testing.T) {
			t.Parallel()
			b := open(t, sandbox.Options{Seed: 7}, c.profile)
			if c.refusal != "" {
				before := text(t, b.climate(t))
				b.refuses(t, c.refusal, http.MethodPut, b.settingPath(), c.body)
				if after := text(t, b.climate(t)); after != before {
					t.Errorf("the state changed to %s", after)
				}
				return
			}
			status := b.ok(t, http.MethodPut, b.settingPath(), c.body)["status"]
			if want := map[bool]string{true: "active", false: "pending"}[c.profile == "nest"]; status != want {
				t.Errorf("status %v, want %s", status, want)
			}
			b.awaits(t, c.shows)
		})
	}
}

func TestThermostat_RunsByTemperature(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		profile     string
		body        object
		temperature float64
		runs        object
	}{
		{"ecobee", nil, 25, object{"heating": false, "cooling": true, "fan_running": true}},
		{"ecobee", nil, 10, object{"heating": false, "cooling": false, "fan_running": false}},
		{"ecobee", object{"mode": "heat"}, 17, object{"heating": true, "auxiliary_heat": false}},
		{"ecobee", object{"mode": "heat"}, 12, object{"heating": true, "auxiliary_heat": true}},
		{"ecobee", object{"mode": "off", "fan": "on"}, 12, object{"heating": false, "fan_running": true}},
		{"honeywell_resideo", nil, 18, object{"heating": true, "cooling": false}},
		{"honeywell_resideo", nil, 28, object{"heating": false, "cooling": true}},
		{"nest", object{"mode": "eco"}, 14, object{"heating": true, "cooling": false}},
		{"nest", object{"mode": "eco"}, 20, object{"heating": false, "cooling": false}},
		{"tado", nil, 20, object{"heating": true, "cooling": false}},
	} {
		b := open(t, sandbox.Options{Seed: 7}, c.profile)
		if c.body != nil {
			b.ok(t, http.MethodPost, b.controlPath("thermostat/adjust"), c.body)
		}
		b.ok(t, http.MethodPost, b.controlPath("thermostat/room"), object{"temperature": c.temperature})
		b.awaits(t, c.runs)
	}
}

// A person adjusts the thermostat while the cloud cannot reach it. The cloud shows the change after the reconnection.
func TestThermostat_AdjustedByHand(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "ecobee")
	e := b.subscribe(t)
	b.ok(t, http.MethodPost, b.controlPath("offline"), object{})
	b.refuses(t, "DEVICE_OFFLINE", http.MethodPut, b.settingPath(), object{"mode": "off"})
	b.ok(t, http.MethodPost, b.controlPath("thermostat/adjust"), object{"mode": "heat", "heat_set_point": 22})
	if shown := b.climate(t); shown["mode"] != "cool" {
		t.Errorf("the cloud shows %v of an offline device", shown)
	}
	b.ok(t, http.MethodPost, b.controlPath("online"), object{})
	e.next(t, "device.online")
	b.awaits(t, object{"mode": "heat", "heat_set_point": 22.0})

	b.ok(t, http.MethodPost, b.controlPath("thermostat/preset"), object{"key": "away"})
	if got := e.next(t, "thermostat.changed"); got["device_id"] != b.lock() || got["status"] != "success" {
		t.Errorf("the event is %v", got)
	}
	b.awaits(t, object{"active_preset": "away", "mode": "heat_cool"})
	b.ok(t, http.MethodPut, b.settingPath(), object{"fan": "on"})
	b.awaits(t, object{"active_preset": "away", "fan": "on"})
	b.ok(t, http.MethodPut, b.settingPath(), object{"mode": "cool"})
	b.awaits(t, object{"active_preset": nil, "mode": "cool"})

	b.refuses(t, "INVALID_REQUEST", http.MethodPost, b.controlPath("thermostat/preset"), object{"key": "none"})
	b.refuses(t, "INVALID_SETTING", http.MethodPost, b.controlPath("thermostat/adjust"), object{"heat_set_point": 90})
	for _, room := range []object{{"temperature": 1e9}, {"humidity": 101}, {"humidity": -1}} {
		b.refuses(t, "INVALID_REQUEST", http.MethodPost, b.controlPath("thermostat/room"), room)
	}
}

func TestThermostat_Faults(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"honeywell_resideo", "nest"} {
		b := open(t, sandbox.Options{Seed: 7}, profile)
		e := b.subscribe(t)
		b.faults(t, sandbox.Faults{DropNext: 1})
		b.ok(t, http.MethodPut, b.settingPath(), object{"mode": "off"})
		b.ok(t, http.MethodPut, b.settingPath(), object{"mode": "cool"})
		b.awaits(t, object{"mode": "cool"})

		b.faults(t, sandbox.Faults{FailureRate: map[string]float64{"failed": 1}})
		e.next(t, "thermostat.changed")
		b.ok(t, http.MethodPut, b.settingPath(), object{"mode": "off"})
		if got := e.next(t, "thermostat.changed"); got["status"] != "failed" || got["error_code"] != "DEVICE_ERROR" {
			t.Errorf("the event is %v", got)
		}
		b.faults(t, sandbox.Faults{FailureRate: map[string]float64{"invalid": 1}})
		b.refuses(t, "INVALID_SETTING", http.MethodPut, b.settingPath(), object{"mode": "off"})
		b.faults(t, sandbox.Faults{})
		b.awaits(t, object{"mode": "cool"})
	}
}

// An account can have locks and thermostats. Neither executes requests for the other.
func TestThermostat_BesidesLocks(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "ecobee", "august")
	if b.account.Locks[1].Profile != "august" {
		t.Fatalf("the account is %+v", b.account)
	}
	lock := "/locks/" + b.account.Locks[1].ID
	b.refuses(t, "NOT_SUPPORTED", http.MethodPut, lock+"/thermostat", object{"mode": "off"})
	b.refuses(t, "NOT_SUPPORTED", http.MethodPost, "/sandbox"+lock+"/thermostat/room", object{"temperature": 20})
	b.refuses(t, "NOT_SUPPORTED", http.MethodGet, b.codesPath(), nil)
	b.refuses(t, "NOT_SUPPORTED", http.MethodPost, b.codesPath(), object{"name": "Guest", "code": "4821"})
	b.refuses(t, "NOT_SUPPORTED", http.MethodPost, "/locks/"+b.lock()+"/actions", object{"action": "lock"})
	b.refuses(t, "NOT_SUPPORTED", http.MethodPost, b.controlPath("keypad/enter"), object{"code": "4821"})
	b.refuses(t, "NOT_SUPPORTED", http.MethodPost, b.controlPath("keypad/lock"), object{})
}

func TestThermostat_KeepsItsStateAcrossARestart(t *testing.T) {
	t.Parallel()
	o := sandbox.Options{Seed: 7, Dir: t.TempDir()}
	b := open(t, o, "ecobee", "august")
	b.ok(t, http.MethodPost, b.controlPath("thermostat/adjust"), object{"mode": "heat", "heat_set_point": 22})
	b.ok(t, http.MethodPost, b.controlPath("thermostat/room"), object{"temperature": 19.5, "humidity": 61})
	before := text(t, b.ok(t, http.MethodGet, b.controlPath("memory"), nil))
	b.server.Close()
	b.Close()
	again := open(t, o, "ecobee", "august")
	if after := text(t, again.ok(t, http.MethodGet, again.controlPath("memory"), nil)); after != before {
		t.Errorf("the thermostat had %s\nand has %s", before, after)
	}
	again.awaits(t, object{"mode": "heat", "heat_set_point": 22.0, "temperature": 19.5, "humidity": 61.0})
}

func TestThermostat_PeopleOfSensi(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "ecobee")
	for _, c := range []struct {
		provider, person string
		accepted         bool
	}{
		{"sensi", "frodo", true},
		{"sensi", "jane", true},
		{"ecobee", "jane", true},
		{"ecobee", "frodo", false},
		{"august", "sam", false},
	} {
		status, answer := b.callAs(t, sandbox.Tokens(7).Partner("p"), http.MethodPost, "/login", object{
			"partner": "p", "provider": c.provider, "email": c.person + "@example.com", "password": sandbox.Password,
		})
		if (status == http.StatusOK) != c.accepted || !c.accepted && answer["error_code"] != "LOGIN_REFUSED" {
			t.Errorf("%s at %s: %d %v", c.person, c.provider, status, answer)
		}
	}
}
