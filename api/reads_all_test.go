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
