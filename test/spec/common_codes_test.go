package spec_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

func createMultiple(t *testing.T, s *apptest.Server, in map[string]any) []api.AccessCode {
	t.Helper()
	var out api.AccessCodesCreatedResponse
	if status := s.Post(t, "/access_codes/create_multiple", in, &out); status != http.StatusOK {
		t.Fatalf("create_multiple: %d", status)
	}
	return out.AccessCodes
}

func untilSet(t *testing.T, s *apptest.Server, codes []api.AccessCode) {
	t.Helper()
	for _, c := range codes {
		apptest.Until(t, "the codes are set", func() bool { return code(t, s, c.AccessCodeID).Status == "set" })
		if !s.Lock(t, c.DeviceID).Has(t, *c.Code) {
			t.Errorf("code %s is not on its lock", c.AccessCodeID)
		}
	}
}

func code(t *testing.T, s *apptest.Server, id string) api.AccessCode {
	t.Helper()
	var out api.AccessCodeResponse
	if status := s.Post(t, "/access_codes/get", map[string]any{"access_code_id": id}, &out); status != http.StatusOK {
		t.Fatalf("get the code: %d", status)
	}
	return out.AccessCode
}

func managedCodes(t *testing.T, s *apptest.Server, device string) int {
	t.Helper()
	var out api.AccessCodesResponse
	s.Post(t, "/access_codes/list", map[string]any{"device_id": device}, &out)
	return len(out.AccessCodes)
}

func TestCommonCode_OnManyDevices(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august", "nuki", "tedee", "salto_ks"))
	august, nuki, tedee, salto := s.Device(
		t,
		"august",
	), s.Device(
		t,
		"nuki",
	), s.Device(
		t,
		"tedee",
	), s.Device(
		t,
		"salto_ks",
	)

	// The server chooses a PIN that every device accepts, and a common_code_key.
	chosen := createMultiple(t, s, map[string]any{"device_ids": []string{tedee, nuki, august}, "name": "Cleaner"})
	if len(chosen) != 3 || chosen[0].DeviceID != tedee || chosen[2].DeviceID != august {
		t.Fatalf("%d codes, not in the order that was asked for", len(chosen))
	}
	key := chosen[0].CommonCodeKey
	for _, c := range chosen {
		if key == nil || c.CommonCodeKey == nil || *c.CommonCodeKey != *key || *c.Code != *chosen[0].Code ||
			*c.Name != "Cleaner" {
			t.Errorf("they have not one PIN and one key: %v", c.CommonCodeKey)
		}
	}
	untilSet(t, s, chosen)

	// A PIN of the client is shared without a key.
	own := createMultiple(t, s, map[string]any{"device_ids": []string{august, nuki}, "code": "746283"})
	for _, c := range own {
		if *c.Code != "746283" || c.CommonCodeKey != nil {
			t.Errorf("own PIN: key %v", c.CommonCodeKey)
		}
	}
	untilSet(t, s, own)

	// If the PIN cannot be shared, nothing is created, unless different PINs are allowed.
	taken := map[string]any{"device_ids": []string{tedee, august}, "code": "746283"}
	before := managedCodes(t, s, tedee)
	var f failure
	if status := s.Post(
		t,
		"/access_codes/create_multiple",
		taken,
		&f,
	); status != http.StatusConflict || f.Error.Type != "duplicate_access_code" ||
		!strings.Contains(f.Error.Message, august) {
		t.Errorf("a taken PIN: %d %+v", status, f.Error)
	}
	if n := managedCodes(t, s, tedee); n != before {
		t.Errorf("a code was created: %d instead of %d", n, before)
	}
	taken["behavior_when_code_cannot_be_shared"] = "create_random_code"
	mixed := createMultiple(t, s, taken)
	invented := createMultiple(
		t,
		s,
		map[string]any{
			"device_ids":                          []string{august, salto, nuki},
			"behavior_when_code_cannot_be_shared": "create_random_code",
		},
	)
	if invented[1].CommonCodeKey != nil || invented[0].CommonCodeKey == nil || *invented[0].Code != *invented[2].Code {
		t.Error("a vendor that chooses PINs prevents sharing among the others")
	}
	if *mixed[0].Code != "746283" || *mixed[1].Code == "746283" || mixed[1].CommonCodeKey != nil {
		t.Error("where the PIN was taken there is no other")
	}
	untilSet(t, s, mixed)
	if status := s.Post(
		t,
		"/access_codes/create_multiple",
		map[string]any{"device_ids": []string{august, salto}},
		&f,
	); status != http.StatusBadRequest || f.Error.Type != "code_cannot_be_shared" ||
		!strings.Contains(f.Error.Message, salto) {
		t.Errorf("a vendor that chooses PINs: %d %+v", status, f.Error)
	}

	if status := s.Post(
		t,
		"/access_codes/create",
		map[string]any{"device_id": salto, "common_code_key": "k"},
		&f,
	); status != http.StatusBadRequest ||
		f.Error.ValidationErrors["common_code_key"] == nil {
		t.Errorf("a key where the vendor chooses PINs: %d %+v", status, f.Error)
	}
	if status := s.Post(
		t,
		"/access_codes/create",
		map[string]any{"device_id": august, "common_code_key": strings.Repeat("k", 256)},
		&f,
	); status != http.StatusBadRequest {
		t.Errorf("a long key: %d", status)
	}
	for name, c := range map[string]struct {
		in     map[string]any
		status int
		kind   string
	}{
		"no device":      {map[string]any{"device_ids": []string{}}, 400, "invalid_input"},
		"twice the same": {map[string]any{"device_ids": []string{august, strings.ToUpper(august)}}, 400, "invalid_input"},
		"no such device": {map[string]any{"device_ids": []string{august, uuid.NewString()}}, 404, "device_not_found"},
		"half a frame": {
			map[string]any{"device_ids": []string{august}, "starts_at": "2030-01-01T00:00:00Z"},
			400,
			"invalid_input",
		},
	} {
		if status := s.Post(
			t,
			"/access_codes/create_multiple",
			c.in,
			&f,
		); status != c.status ||
			f.Error.Type != c.kind {
			t.Errorf("%s: %d %+v", name, status, f.Error)
		}
	}

	// Codes with a common key change together or not at all.
	if status := s.Post(
		t,
		"/access_codes/update_multiple",
		map[string]any{
			"common_code_key": *key,
			"name":            "Gardener",
			"starts_at":       "2030-01-01T00:00:00Z",
			"ends_at":         "2030-02-01T00:00:00Z",
		},
		nil,
	); status != http.StatusOK {
		t.Fatalf("update_multiple: %d", status)
	}
	for _, c := range chosen {
		if got := code(
			t,
			s,
			c.AccessCodeID,
		); *got.Name != "Gardener" || got.Type != api.TimeBound || got.StartsAt.Year() != 2030 ||
			*got.Code != *c.Code {
			t.Errorf("%s was not changed", c.AccessCodeID)
		}
	}
	const long = "A name that is too long for a Nuki"
	in := map[string]any{"common_code_key": *key, "name": long}
	if status := s.Post(t, "/access_codes/update_multiple", in, nil); status != http.StatusOK {
		t.Errorf("a name that one device gets shortened: %d", status)
	}
	for _, c := range chosen {
		if got := code(t, s, c.AccessCodeID); *got.Name != long {
			t.Errorf("%s was not changed", c.AccessCodeID)
		}
	}
	s.Post(t, "/devices/update", map[string]any{"device_id": tedee, "is_managed": false}, nil)
	if status := s.Post(
		t,
		"/access_codes/update_multiple",
		map[string]any{"common_code_key": *key, "name": "New"},
		&f,
	); status != http.StatusBadRequest || f.Error.Type != "device_unmanaged" ||
		!strings.Contains(f.Error.Message, tedee) {
		t.Errorf("one of an unmanaged device: %d %+v", status, f.Error)
	}
	for _, c := range chosen {
		if c.DeviceID != tedee && *code(t, s, c.AccessCodeID).Name != long {
			t.Errorf("%s was changed", c.AccessCodeID)
		}
	}
	if status := s.Post(
		t,
		"/access_codes/update_multiple",
		map[string]any{"common_code_key": "unowned", "name": "New"},
		&f,
	); status != http.StatusNotFound {
		t.Errorf("no such key: %d", status)
	}
}

func TestCode_LengthsOfTheDevice(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("smartthings", "august"))
	device := s.Device(t, "smartthings")
	report := func(device string, in map[string]any) (f failure, status int) {
		t.Helper()
		in["device_id"] = device
		status = s.Post(t, "/access_codes/report_device_constraints", in, &f)
		return f, status
	}
	for name, in := range map[string]map[string]any{
		"neither":      {},
		"both":         {"supported_code_lengths": []int{6}, "min_code_length": 4, "max_code_length": 6},
		"half":         {"min_code_length": 4},
		"turned round": {"min_code_length": 6, "max_code_length": 4},
		"too short":    {"supported_code_lengths": []int{3}},
	} {
		if f, status := report(device, in); status != http.StatusBadRequest || f.Error.Type != "invalid_input" {
			t.Errorf("%s: %d %+v", name, status, f.Error)
		}
	}
	if f, status := report(
		s.Device(t, "august"),
		map[string]any{"supported_code_lengths": []int{6}},
	); status != http.StatusBadRequest ||
		f.Error.Type != "device_type_not_supported" {
		t.Errorf("a vendor that reports lengths: %d %+v", status, f.Error)
	}
	for want, in := range map[string]map[string]any{
		"[6 8]":   {"supported_code_lengths": []int{8, 6, 6}},
		"[5 6 7]": {"min_code_length": 5, "max_code_length": 7},
	} {
		if _, status := report(device, in); status != http.StatusOK {
			t.Fatalf("report: %d", status)
		}
		if got := fmt.Sprint(get(t, s, device).Properties.SupportedCodeLengths); got != want {
			t.Errorf("it takes %s digits, want %s", got, want)
		}
		var made api.AccessCodeCreatedResponse
		s.Post(t, "/access_codes/create", map[string]any{"device_id": device}, &made)
		if n := fmt.Sprint(len(*made.AccessCode.Code)); !strings.Contains(want, n) {
			t.Errorf("a code of %s digits was created", n)
		}
		var f failure
		if status := s.Post(
			t,
			"/access_codes/create",
			map[string]any{"device_id": device, "code": "7462"},
			&f,
		); status != http.StatusBadRequest {
			t.Errorf("4 digits: %d", status)
		}
	}
}

func TestCommonCode_KeyMeansOnePIN(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august", "nuki"))
	create := func(in map[string]any) (out api.AccessCodeCreatedResponse, f failure, status int) {
		t.Helper()
		in["common_code_key"] = "suite 5"
		status = s.Post(t, "/access_codes/create", in, &out)
		if status != http.StatusOK {
			s.Post(t, "/access_codes/create", in, &f)
		}
		return out, f, status
	}
	first, _, status := create(map[string]any{"device_id": s.Device(t, "august"), "code": "746283"})
	if status != http.StatusOK || *first.AccessCode.CommonCodeKey != "suite 5" {
		t.Fatalf("create: %d", status)
	}
	if _, f, status := create(
		map[string]any{"device_id": s.Device(t, "nuki"), "code": "746284"},
	); status != http.StatusBadRequest ||
		f.Error.ValidationErrors["common_code_key"] == nil {
		t.Errorf("another PIN: %d %+v", status, f.Error)
	}
	second, _, status := create(map[string]any{"device_id": s.Device(t, "nuki")})
	if status != http.StatusOK || *second.AccessCode.Code != "746283" {
		t.Fatalf("create: %d", status)
	}
	untilSet(t, s, []api.AccessCode{first.AccessCode, second.AccessCode})
	// A code whose PIN changes loses the key.
	if status := s.Post(
		t,
		"/access_codes/update",
		map[string]any{"access_code_id": second.AccessCode.AccessCodeID, "code": "746285"},
		nil,
	); status != http.StatusOK {
		t.Fatalf("update: %d", status)
	}
	if got := code(t, s, second.AccessCode.AccessCodeID); got.CommonCodeKey != nil {
		t.Errorf("with another PIN, it still has the key %q", *got.CommonCodeKey)
	}
	if got := code(t, s, first.AccessCode.AccessCodeID); got.CommonCodeKey == nil {
		t.Error("the other lost its key")
	}
}
