package climate

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

var (
	accepted  = Outcome{State: Accepted}
	confirmed = Outcome{State: Confirmed}
	unknown   = Outcome{State: Unknown}
)

func failed(class FailureClass, after time.Duration) Outcome {
	return Outcome{Failure: &Failure{
		Class:      class,
		Message:    "vendor's words",
		RetryAfter: after,
	}}
}

func TestCommand_AcceptedThenShown(t *testing.T) {
	t.Parallel()
	b := newRead(t)
	b.command(1, heat(22.1))
	b.sends(heat(22.1), accepted)
	b.expect()
	b.idle(time.Second)
	b.after(10 * time.Second)
	b.idle(5 * time.Second)
	b.shows(heat(22)) // the device rounds
	b.expect("attempt 1 ended", "manually_adjusted seam heat auto 22")
	b.idle(0)
	b.shows(heat(22))
	b.expect()
}

func TestCommand_ConfirmedByVendor(t *testing.T) {
	t.Parallel()
	b := newRead(t)
	b.command(1, cool(24))
	b.sends(cool(24), confirmed)
	b.expect("attempt 1 ended", "manually_adjusted seam cool auto 24")
	b.idle(10 * time.Second)
	b.shows(heat(20)) // the read lags
	b.idle(10 * time.Second)
	b.after(10 * time.Second)
	b.shows(heat(20)) // the device has not done it
	b.idle(10 * time.Second)
	b.after(10 * time.Second)
	b.sets(cool(24))
	b.idle(0)
	b.expect()
}

func TestCommand_ModeAndFanAreIndependent(t *testing.T) {
	t.Parallel()
	b := newRead(t)
	b.command(1, heat(22))
	b.command(2, fan(capability.FanOn))
	b.expect()
	b.command(3, cool(25))
	b.expect("attempt 1 ended superseded")
	b.sends(cool(25).with(fan(capability.FanOn)), accepted)
	b.shows(fan(capability.FanOn))
	b.expect("attempt 2 ended")
	b.shows(cool(25))
	b.expect("attempt 3 ended", "manually_adjusted seam cool on 25")
}

func TestCommand_KeepsOverriddenMode(t *testing.T) {
	t.Parallel()
	b := newRead(t)
	b.schedule(1, "home", 0, 60, allow(0))
	b.sets(heat(21))
	b.shows(cool(26))
	b.log = nil
	b.command(1, fan(capability.FanOn))
	b.sends(fan(capability.FanOn), confirmed)
	b.expect("attempt 1 ended", "manually_adjusted seam cool on 26")
	b.command(2, heat(19))
	b.sets(heat(19))
	b.expect("attempt 2 ended", "manually_adjusted seam heat on 19")
}

func TestCommand_OfflineWaits(t *testing.T) {
	t.Parallel()
	b := newRead(t)
	b.online = false
	b.command(1, heat(23))
	b.idle(10 * time.Minute)
	b.shows(heat(23)) // what the vendor remembers
	b.expect()
	b.after(10 * time.Minute)
	b.idle(0)
	b.expect("attempt 1 ended action_attempt_expired")
	b.online = true
	b.sets(heat(23))
	b.expect("manually_adjusted seam heat auto 23")
}

func TestCommand_ExpiresOnlineAndStaysWanted(t *testing.T) {
	t.Parallel()
	b := newRead(t)
	b.command(1, heat(23))
	b.sends(heat(23), accepted)
	b.after(10 * time.Minute)
	b.idle(10 * time.Second)
	b.expect("attempt 1 ended action_attempt_expired")
	b.after(10 * time.Second)
	b.sets(heat(23))
	b.expect("manually_adjusted seam heat auto 23")
}

func TestFailure_Transient(t *testing.T) {
	t.Parallel()
	b := newRead(t)
	b.command(1, heat(23))
	b.sends(heat(23), failed(Transient, 0))
	b.idle(10 * time.Second)
	b.after(10 * time.Second)
	b.sends(heat(23), unknown)
	b.idle(20 * time.Second)
	b.after(20 * time.Second)
	b.sends(heat(23), failed(Transient, time.Hour))
	b.command(2, heat(24)) // the vendor's pause applies to it, too
	b.idle(10 * time.Minute)
	b.after(time.Hour)
	b.sends(heat(24), failed(Transient, 0))
	b.command(3, heat(25)) // the server's pause does not
	b.sends(heat(25), accepted)
	b.expect("attempt 1 ended superseded", "attempt 2 ended action_attempt_expired")
	b.shows(heat(25))
	b.expect("attempt 3 ended", "manually_adjusted seam heat auto 25")
}

func TestFailure_LostAnswerOfAppliedWrite(t *testing.T) {
	t.Parallel()
	b := newRead(t)
	b.command(1, heat(23))
	b.sends(heat(23), unknown)
	b.shows(heat(23))
	b.expect("attempt 1 ended", "manually_adjusted seam heat auto 23")
	b.idle(0)
	b.command(2, heat(24))
	b.sends(heat(24)) // the server crashes
	b.shows(heat(23))
	b.sends(heat(24)) // and again
	b.shows(heat(24))
	b.idle(0)
	b.expect("attempt 2 ended", "manually_adjusted seam heat auto 24")
}

func TestFailure_Refused(t *testing.T) {
	t.Parallel()
	for class, want := range map[FailureClass]string{
		Invalid:      "device_refused",
		NotSupported: "device_type_not_supported",
	} {
		b := newRead(t)
		b.command(1, heat(23))
		b.sends(heat(23), failed(class, 0))
		b.expect("attempt 1 ended " + want)
		b.after(time.Hour)
		b.idle(0)
		b.command(2, fan(capability.FanOn)) // the refused mode is not part of it
		b.sends(fan(capability.FanOn), confirmed)
		b.expect("attempt 2 ended", "manually_adjusted seam heat on 20")

		b.schedule(1, "home", 0, 60)
		b.sends(heat(21), failed(class, 0))
		b.expect("schedule error " + want + ": vendor's words")
		b.idle(time.Hour)
		b.shows(cool(25)) // something has changed
		b.expect("manually_adjusted external cool on 25")
		b.sends(heat(21), failed(class, 0))
		b.expect() // the error is known
		b.shows(heat(26))
		b.sets(heat(21))
		b.expect("manually_adjusted external heat on 26", "climate_preset_activated home by schedule")
	}
}

func TestFailure_OfReplacedWrite(t *testing.T) {
	t.Parallel()
	b := newRead(t)
	b.command(1, heat(23))
	b.sends(heat(23))
	b.command(2, heat(24))
	b.do(func(t *Thermostat) error { t.Record(heat(23), failed(Invalid, 0)); return nil })
	b.sends(heat(24))
	b.command(3, heat(25))
	b.do(func(t *Thermostat) error { t.Record(heat(24), failed(Transient, 0)); return nil })
	b.sends(heat(25))
	b.command(4, heat(26))
	b.do(func(t *Thermostat) error { t.Record(heat(25), unknown); return nil })
	b.sends(heat(26))
	b.command(5, heat(27))
	b.do(func(t *Thermostat) error { t.Record(heat(26), failed(Transient, time.Minute)); return nil })
	b.idle(time.Minute)
	b.after(time.Minute)
	b.log = nil
	b.sends(heat(27))
	b.command(6, fan(capability.FanOn))
	b.do(func(t *Thermostat) error { t.Record(heat(27), confirmed); return nil })
	b.sends(fan(capability.FanOn), confirmed)
	b.expect("attempt 5 ended", "attempt 6 ended", "manually_adjusted seam heat on 27")
}

func TestCommand_BackBeforeWriteArrives(t *testing.T) {
	t.Parallel()
	b := newRead(t)
	b.command(1, heat(25))
	b.sends(heat(25), accepted)
	b.command(2, heat(20))
	b.shows(heat(20))
	b.expect("attempt 1 ended superseded")
	b.sends(heat(20), accepted)
	b.shows(heat(20))
	b.expect("attempt 2 ended", "manually_adjusted seam heat auto 20")
	b.shows(heat(25)) // the first write arrives
	b.expect()
	b.sets(heat(20))
	b.expect()
}

func TestUnreportedFieldsAreSentOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.command(1, heat(20).with(fan(capability.FanOn)))
	b.idle(10 * time.Minute) // it was never read
	b.do(func(t *Thermostat) error { t.Observe(Observed{Setting: heat(20)}); return nil })
	b.expect()
	b.sends(fan(capability.FanOn), accepted)
	b.idle(time.Second)
	b.expect("attempt 1 ended", "manually_adjusted seam heat on 20")
}

func TestActivate(t *testing.T) {
	t.Parallel()
	b := newRead(t)
	b.command(1, heat(25))
	b.activate(2, "sleep")
	b.expect("attempt 1 ended superseded")
	b.sets(heat(18).with(fan(capability.FanOn)))
	b.expect("attempt 2 ended", "climate_preset_activated sleep")
	if c := b.load().Current(); c.Preset == nil || c.Preset.Key != "sleep" || *c.Setting.Heat != 18 {
		t.Errorf("current: %+v", c)
	}
	b.shows(heat(19))
	b.expect("manually_adjusted external heat on 19")
	if c := b.load().Current(); c.Preset != nil {
		t.Errorf("the preset stays: %+v", c.Preset)
	}
	b.idle(0)
	b.activate(3, "away")
	b.command(4, fan(capability.FanAuto)) // the preset does not stay in effect
	b.sets(heat(16).with(fan(capability.FanAuto)))
	b.expect("attempt 3 ended", "attempt 4 ended", "manually_adjusted seam heat auto 16")
}

func TestUpdatePreset_WhileInEffect(t *testing.T) {
	t.Parallel()
	b := newRead(t)
	b.activate(1, "home")
	b.do(func(t *Thermostat) error { return t.UpdatePreset(PresetFields{Key: "home", Setting: heat(22)}) })
	b.sets(heat(22))
	b.expect("attempt 1 ended", "climate_preset_activated home")
	b.do(func(t *Thermostat) error { return t.UpdatePreset(PresetFields{Key: "home", Setting: heat(23)}) })
	b.do(func(t *Thermostat) error { return t.UpdatePreset(PresetFields{Key: "away", Setting: heat(12)}) })
	b.sets(heat(23))
	b.expect()
	b.do(func(t *Thermostat) error { return t.DeletePreset("home") })
	b.idle(0)
	if c := b.load().Current(); c.Preset != nil {
		t.Errorf("a deleted preset is in effect: %+v", c.Preset)
	}
}

func TestSchedule_NestedThenFallbackOnce(t *testing.T) {
	t.Parallel()
	b := newRead(t)
	b.fallback("away")
	b.schedule(1, "home", 10, 70)
	b.schedule(2, "sleep", 30, 50)
	b.idle(10 * time.Minute)
	b.after(10 * time.Minute)
	b.sets(heat(21))
	if s := b.load().ActiveSchedule(); s == nil || s.Preset != "home" {
		t.Errorf("active: %+v", s)
	}
	b.idle(20 * time.Minute)
	b.after(20 * time.Minute)
	b.sets(heat(18).with(fan(capability.FanOn)))
	b.after(20 * time.Minute)
	b.sets(heat(21))
	b.after(20 * time.Minute)
	b.sets(heat(16))
	b.expect(
		"climate_preset_activated home by schedule",
		"climate_preset_activated sleep by schedule",
		"climate_preset_activated home by schedule",
		"climate_preset_activated away as fallback",
	)
	b.idle(0)
	b.shows(heat(24)) // the fallback is applied once
	b.idle(0)
	b.expect("manually_adjusted external heat on 24")
	if s := b.load().ActiveSchedule(); s != nil {
		t.Errorf("active: %+v", s)
	}
}

func TestSchedule_EndsWithoutFallback(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]struct {
		during func(b *bed)
		want   Setting
	}{
		"the setting stays": {func(b *bed) { b.sets(heat(21)) }, Setting{}},
		"a setting that was never set is dropped": {
			func(b *bed) { b.online = false; b.idle(time.Hour) },
			Setting{},
		},
		"a change at the device stays": {
			func(b *bed) {
				b.sets(heat(21))
				b.command(1, heat(22))
				b.sets(heat(22))
				b.shows(heat(26))
				b.idle(time.Hour)
			},
			Setting{},
		},
		"a command that waits is sent": {func(b *bed) { b.sets(heat(21)); b.command(1, cool(22)) }, cool(22)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newRead(t)
			b.schedule(1, "home", 0, 60, allow(0))
			story.during(b)
			b.after(time.Hour)
			b.online = true
			b.sends(story.want)
			b.shows(heat(19))
			b.sends(story.want)
		})
	}
}

func TestSchedule_DirectCommandHoldsUntilTransition(t *testing.T) {
	t.Parallel()
	b := newRead(t)
	b.fallback("away")
	b.schedule(1, "home", 0, 60)
	b.sets(heat(21))
	b.command(1, heat(25)) // the schedule binds people at the device only
	b.sets(heat(25))
	b.shows(heat(28))
	b.sets(heat(25)) // what was commanded counts
	b.log = nil
	b.command(2, heat(24))
	b.after(time.Hour)
	b.sets(heat(16))
	b.expect("attempt 2 ended action_attempt_expired", "climate_preset_activated away as fallback")
}

func TestSchedule_Missed(t *testing.T) {
	t.Parallel()
	b := newRead(t)
	b.fallback("away")
	b.schedule(1, "home", 10, 20)
	b.idle(10 * time.Minute)
	b.after(time.Hour) // the server did not run
	b.sets(heat(16))
	b.expect("climate_preset_activated away as fallback")
	b.shows(heat(24))
	b.idle(0)
}

func TestSchedule_UpdateAndRemove(t *testing.T) {
	t.Parallel()
	b := newRead(t)
	b.fallback("away")
	b.schedule(1, "home", 0, 60)
	b.sets(heat(21))
	b.schedule(1, "sleep", 0, 60) // another preset
	b.sets(heat(18).with(fan(capability.FanOn)))
	b.after(time.Minute)
	b.schedule(1, "sleep", -30, 120)
	if s := b.load().ActiveSchedule(); !s.StartsAt.Equal(monday) {
		t.Errorf("a running schedule starts at %s, want %s", s.StartsAt, monday)
	}
	b.idle(2 * time.Hour)
	b.do(func(t *Thermostat) error { t.RemoveSchedule(uuid.Nil); return nil })
	b.do(func(t *Thermostat) error { t.RemoveSchedule(t.ActiveSchedule().ID); return nil })
	b.sets(heat(16))
	b.expect(
		"climate_preset_activated home by schedule",
		"climate_preset_activated sleep by schedule",
		"climate_preset_activated away as fallback",
	)
}

func TestOverride(t *testing.T) {
	t.Parallel()
	b := newRead(t)
	b.schedule(1, "home", 0, 180)
	b.sets(heat(21))
	b.shows(heat(25)) // not allowed
	b.sets(heat(21))
	b.shows(heat(26)) // again, and the server crashes after it
	b.sends(heat(21))
	b.shows(heat(26))
	b.sets(heat(21))
	b.expect(
		"climate_preset_activated home by schedule",
		"manually_adjusted external heat auto 25",
		"manually_adjusted external heat auto 26",
	)
	b.schedule(1, "home", 0, 180, allow(30))
	b.shows(heat(25))
	b.idle(30 * time.Minute)
	if !b.load().OverrideActive() {
		t.Error("no override is active")
	}
	b.after(20 * time.Minute)
	b.shows(heat(26)) // this does not prolong it
	b.idle(10 * time.Minute)
	b.after(10 * time.Minute)
	b.sets(heat(21))
	if b.load().OverrideActive() {
		t.Error("an override is active after its end")
	}
	b.schedule(1, "home", -30, 180, allow(0))
	b.shows(heat(25))
	b.idle(3 * time.Hour)
	b.shows(heat(21)) // the person returns to the schedule
	b.expect("manually_adjusted external heat auto 25",
		"manually_adjusted external heat auto 26", "manually_adjusted external heat auto 25")
	b.shows(heat(25))
	b.schedule(1, "home", -30, 180) // no longer allowed
	if b.load().OverrideActive() {
		t.Error("an override is active where none is allowed")
	}
	b.sets(heat(21))
	b.shows(fan(capability.FanOn)) // the schedule does not say anything about the fan
	b.idle(3 * time.Hour)
	b.expect("manually_adjusted external heat auto 25", "manually_adjusted external heat on 21")
}

func TestOverride_OfUnconfirmedSetting(t *testing.T) {
	t.Parallel()
	b := newRead(t)
	b.schedule(1, "home", 0, 180, allow(0))
	b.shows(heat(25)) // at a time before the schedule
	b.sets(heat(21))
	b.expect("manually_adjusted external heat auto 25", "climate_preset_activated home by schedule")
}

// A device that does not keep a setting gets it again with growing pauses.
func TestOverride_DeviceKeepsItsOwn(t *testing.T) {
	t.Parallel()
	b := newRead(t)
	b.schedule(1, "home", 0, 1000)
	b.sets(heat(21))
	b.shows(heat(25))
	own := 25.0
	for _, pause := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second} {
		b.sends(heat(21), confirmed)
		b.after(11 * time.Second)
		own++
		b.shows(heat(own))
		b.sends(Setting{})
		b.after(pause)
	}
}

func TestManualChange_WithoutSchedule(t *testing.T) {
	t.Parallel()
	b := newRead(t)
	b.shows(cool(25))
	b.idle(0)
	b.expect("manually_adjusted external cool auto 25")
	b.command(1, heat(23))
	b.sets(heat(23))
	b.shows(heat(24))
	b.shows(heat(24))
	b.idle(0)
	b.shows(heat(23)) // a minute later, this is not the write
	b.log = nil
	b.after(2 * time.Minute)
	b.shows(heat(24))
	b.shows(heat(23))
	b.idle(0)
	b.expect("manually_adjusted external heat auto 24", "manually_adjusted external heat auto 23")
}

func TestTemperatureEvents(t *testing.T) {
	t.Parallel()
	b := newRead(t)
	b.feels(15)
	b.feels(15.9)
	b.expect()
	b.feels(16)
	b.feels(16.4)
	b.feels(15.1)
	b.expect("temperature_changed 16")
	b.command(1, heat(18))
	b.sets(heat(18))
	b.log = nil
	b.feels(17)
	b.feels(18)
	b.expect("temperature_changed 17", "temperature_reached_set_point 17 18", "temperature_changed 18")
	b.command(2, heatCool(10, 19))
	b.sends(heatCool(10, 19), confirmed)
	b.expect("attempt 2 ended", "manually_adjusted seam heat_cool auto 10 19", "temperature_reached_set_point 18 19")
	b.command(3, Setting{Mode: capability.Off})
	b.sets(Setting{Mode: capability.Off})
	b.feels(18.1)
	b.expect("attempt 3 ended", "manually_adjusted seam off auto")
}

func TestThreshold(t *testing.T) {
	t.Parallel()
	b := newRead(t)
	set := func(th Threshold) { b.do(func(t *Thermostat) error { return t.SetThreshold(th) }) }
	set(Threshold{Upper: new(25.0)})
	b.feels(24)
	b.expect()
	set(Threshold{Upper: new(23.5)})
	b.expect("temperature_threshold_exceeded 24")
	b.feels(24.1)
	b.expect()
	if at := b.load().State.ThresholdExceededAt; at == nil || !at.Equal(b.now) {
		t.Errorf("exceeded since %v", at)
	}
	b.feels(23.5)
	b.expect("temperature_threshold_no_longer_exceeded 23.5")
	set(Threshold{Lower: new(23.6), Upper: new(30.0)})
	b.expect("temperature_threshold_exceeded 23.5")
	set(Threshold{})
	b.expect("temperature_threshold_no_longer_exceeded 23.5")
	f := b.events[len(b.events)-1].Fields
	if f["temperature_fahrenheit"] != 74.3 || f["upper_limit_celsius"] != nil || f["lower_limit_fahrenheit"] != nil {
		t.Errorf("fields: %v", f)
	}
}

func TestVendorPresets(t *testing.T) {
	t.Parallel()
	b := newRead(t)
	presets := []VendorPreset{{"comfort", "Comfort", heat(22)}, {"home", "Home", heat(19)}, {"smart", "", Setting{}}}
	observe := func(s Setting, active string) {
		b.do(func(t *Thermostat) error {
			t.Observe(Observed{
				Setting:      s.with(fan(capability.FanAuto)),
				Presets:      presets,
				ActivePreset: active,
			})
			return nil
		})
	}
	observe(heat(20), "comfort")
	if p := b.load().Current().Preset; p == nil || p.DisplayName() != "Comfort" || p.CanEdit || p.CanDelete {
		t.Errorf("preset in effect: %+v", p)
	}
	b.schedule(1, "comfort", 0, 60)
	b.sends(heat(22), accepted)
	observe(heat(22), "comfort")
	b.expect("climate_preset_activated comfort by schedule")
	presets[0].Setting = heat(23) // changed at the device
	observe(heat(23), "comfort")
	b.idle(time.Hour)
	b.after(time.Hour)
	b.idle(0)
	b.schedule(2, "comfort", 10, 60)
	presets = presets[1:]
	observe(heat(23), "")
	b.after(10 * time.Minute)
	b.log = nil
	b.idle(50 * time.Minute)
	b.expect("schedule error climate_preset_not_found: The thermostat has no climate preset \"comfort\" " +
		"with a setting. Create it or choose another one.")
	b.shows(heat(24))
	b.idle(50 * time.Minute)
	b.do(func(t *Thermostat) error { return t.CreatePreset(PresetFields{Key: "comfort", Setting: heat(21)}) })
	b.sets(heat(21))
	b.expect("manually_adjusted external heat auto 24", "climate_preset_activated comfort by schedule")
	names := ""
	for _, p := range b.load().AvailablePresets() {
		names += p.DisplayName() + " "
	}
	if names != "smart home away sleep comfort " {
		t.Errorf("presets: %s", names)
	}
}

func TestEndAll(t *testing.T) {
	t.Parallel()
	b := newRead(t)
	b.command(1, heat(22))
	b.do(func(t *Thermostat) error { t.EndAll("device_removed", "The device was removed."); return nil })
	b.expect("attempt 1 ended device_removed")
	b.sends(heat(22))
}

// What the server remembers of the device doesn't confirm a request.
func TestCommand_NeedsRead(t *testing.T) {
	t.Parallel()
	b := newRead(t)
	b.command(1, heat(20))
	var p Plan
	b.do(func(t *Thermostat) error { p = t.Plan(); return nil })
	if p.Send != nil || p.Due == nil || !p.Due.Equal(b.now) {
		t.Errorf("plan: %+v", p)
	}
	b.expect()
	b.shows(heat(25)) // a person was faster
	b.sets(heat(20))
	b.expect("manually_adjusted external heat auto 25", "attempt 1 ended", "manually_adjusted seam heat auto 20")
	b.command(2, heat(25))
	b.do(func(t *Thermostat) error { p = t.Plan(); return nil })
	if p.Send == nil || p.Due == nil || !p.Due.Equal(b.now) {
		t.Errorf("plan: %+v", p)
	}
}
