package api

import (
	"net/http"
	"slices"
	"testing"
)

func TestAccessCodesOn(t *testing.T) {
	t.Parallel()
	all := func(t *testing.T, r *Reads, want ...string) {
		t.Helper()
		codes, known := r.AccessCodesOn(t.Context(), "d1")
		var ids []string
		for _, code := range codes {
			ids = append(ids, code.AccessCodeID)
		}
		slices.Sort(ids)
		if !slices.Equal(ids, want) || known != (want != nil) {
			t.Errorf("the codes are %q, known: %v, want %q", ids, known, want)
		}
	}
	for name, heedsNoDevice := range map[string]bool{"": false, "on a list of all devices": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf()
			s.all = heedsNoDevice
			client, r := s.reading(t)
			all(t, r, "a", "b", "c", "d")
			expect(t, r, "d1", "a", true)
			expectCount(t, s, listing, 2)
			if _, err := Call[OkResponse](
				t.Context(),
				client.UpdateAccessCode,
				UpdateAccessCodeRequest{AccessCodeID: "a"},
			); err != nil {
				t.Fatal(err)
			}
			all(t, r)
		})
	}
	t.Run("there are too many", func(t *testing.T) {
		t.Parallel()
		_, r := newShelf().reading(t)
		r.codes.limit = 4
		all(t, r)
	})
	t.Run("the list fails", func(t *testing.T) {
		t.Parallel()
		s := newShelf()
		s.fails = func(string) func(*http.Request) (*http.Response, error) { return says(404, "") }
		_, r := s.reading(t)
		all(t, r)
	})
}

func TestDevices_ComeFromOneListUntilAWrite(t *testing.T) {
	t.Parallel()
	s := newShelf()
	s.fails = func(path string) func(*http.Request) (*http.Response, error) {
		if path == "/devices/list" {
			return says(200, `{"ok": true, "devices": [{"device_id": "d1"}, {"device_id": "d2"}]}`)
		}
		return nil
	}
	client, r := s.reading(t)
	for range 2 {
		devices, known := r.Devices(t.Context())
		if len(devices) != 2 || !known {
			t.Errorf("the devices are %v, known: %v", devices, known)
		}
		if device := r.Device(t.Context(), "d1"); device == nil || device.DeviceID != "d1" {
			t.Errorf("d1 is %v", device)
		}
		if device := r.Device(t.Context(), "d3"); device != nil {
			t.Errorf("d3 is %v", device)
		}
	}
	expectCount(t, s, "/devices/list", 1)
	request := CreateAccessCodeRequest{DeviceID: "d1"}
	if _, err := Call[OkResponse](t.Context(), client.CreateAccessCode, request); err != nil {
		t.Fatal(err)
	}
	if devices, known := r.Devices(t.Context()); known {
		t.Errorf("after a write, the devices are %v", devices)
	}
}

func TestRecordsOfDevices_ComeFromAListPerDeviceUntilAWrite(t *testing.T) {
	t.Parallel()
	s := newShelf()
	const schedules, thresholds = "/thermostats/schedules/list", "/noise_sensors/noise_thresholds/list"
	s.fails = func(path string) func(*http.Request) (*http.Response, error) {
		switch path {
		case schedules:
			return says(200, `{"ok": true, "thermostat_schedules": [{"thermostat_schedule_id": "s1", "device_id": "d1"},
				{"thermostat_schedule_id": "s2", "device_id": "d1"}]}`)
		case thresholds:
			return says(200, `{"ok": true, "noise_thresholds": [{"noise_threshold_id": "t1", "device_id": "d1"}]}`)
		}
		return nil
	}
	client, r := s.reading(t)
	for id, want := range map[string]bool{"s1": true, "s2": true, "s3": false} {
		if found := r.ThermostatSchedule(t.Context(), "d1", id); (found != nil) != want {
			t.Errorf("the schedule %s is %v", id, found)
		}
	}
	expectCount(t, s, schedules, 1)
	if r.ThermostatSchedule(t.Context(), "", "s1") != nil || r.NoiseThreshold(t.Context(), "", "t1") != nil {
		t.Error("records of an unknown device come from a list")
	}
	if r.NoiseThreshold(t.Context(), "d1", "t1") == nil {
		t.Error("the threshold is not on the list")
	}
	expectCount(t, s, thresholds, 1)
	for _, write := range []func() error{
		func() error {
			_, err := Call[OkResponse](t.Context(), client.UpdateThermostatSchedule,
				UpdateThermostatScheduleRequest{ThermostatScheduleID: "s1"})
			return err
		},
		func() error {
			_, err := Call[OkResponse](t.Context(), client.UpdateNoiseThreshold,
				UpdateNoiseThresholdRequest{NoiseThresholdID: "t1", DeviceID: "d1"})
			return err
		},
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	if r.ThermostatSchedule(t.Context(), "d1", "s1") != nil || r.NoiseThreshold(t.Context(), "d1", "t1") != nil {
		t.Error("records come from a list after a write")
	}
}
