package spec_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// named creates a code with a name.
func named(t *testing.T, s *apptest.Server, device, name string) api.AccessCode {
	t.Helper()
	var out api.AccessCodeCreatedResponse
	in := map[string]any{"device_id": device, "name": name}
	if status := s.Post(t, "/access_codes/create", in, &out); status != http.StatusOK {
		t.Fatalf("create with the name %q: %d", name, status)
	}
	return out.AccessCode
}

// untilNamed waits until a code is on its lock as desired.
func untilNamed(t *testing.T, s *apptest.Server, id string) (c api.AccessCode) {
	t.Helper()
	apptest.Until(t, "the code is on its lock", func() bool {
		c = code(t, s, id)
		return c.Status == "set" && len(c.PendingMutations) == 0
	})
	return c
}

// appearance returns the name under which a code appears, empty if it has none.
func appearance(c api.AccessCode) string {
	if c.Appearance.Name == nil {
		return ""
	}
	return *c.Appearance.Name
}

// onLock returns the name that a lock has for a code.
func onLock(t *testing.T, s *apptest.Server, c api.AccessCode) string {
	t.Helper()
	for _, found := range s.Lock(t, c.DeviceID).Memory(t) {
		if found.PIN == *c.Code {
			return found.Name
		}
	}
	t.Fatalf("the lock does not have the code %q", *c.Name)
	return ""
}

// Names that no lock refuses a code for.
var anyNames = []string{
	"Reservation 2025-07 Ana Gómez", "A", " ", "Жанна Агузарова", "Zoë 👩\u200d👩\u200d👧 O'Brien-Łukasiewicz",
	strings.Repeat("é", 255), "Reservation 2025-07 Ana Gómez",
}

func TestNames_OfCodesHaveNoVendorLimits(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t)
	for _, profile := range sandbox.Profiles() {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			device := s.Device(t, profile)
			var codes []api.AccessCode
			for _, name := range anyNames {
				c := named(t, s, device, name)
				if *c.Name != name {
					t.Errorf("%q became %q", name, *c.Name)
				}
				codes = append(codes, c)
			}
			for _, c := range codes {
				c = untilNamed(t, s, c.AccessCodeID)
				if has := onLock(t, s, c); appearance(c) != has || len(c.Errors)+len(c.Warnings) > 0 {
					t.Errorf("%q appears as %q, and the lock has %q: %v %v",
						*c.Name, appearance(c), has, c.Errors, c.Warnings)
				}
			}
		})
	}
}

// TestNames_AtTheLock shows what a lock with a limit of 20 characters, and one with unique names, get.
func TestNames_AtTheLock(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("nuki", "kwikset", "schlage"))
	for _, c := range []struct{ profile, name, want string }{
		{"nuki", "Reservation 2025-07 Ana Gómez", "Reservation 2025-07"},
		{"nuki", "Reservation 2025-07 Zoë", "Reservation 2025-07"},
		{"kwikset", "Reservation Ana Gómez", "Reservation An"},
		{"kwikset", "Reservation Andrea", "Reservation 2"},
		{"kwikset", "reservation an", "reservation 3"},
		{"kwikset", "Dog walker", "Dog walker 2"}, // an unmanaged code has the name
		{"kwikset", "A", "Code A"},
		{"schlage", "Zoë Łuk", "Zoe uk"},
	} {
		made := untilNamed(t, s, named(t, s, s.Device(t, c.profile), c.name).AccessCodeID)
		if got := onLock(t, s, made); got != c.want || *made.Name != c.name {
			t.Errorf("%s, %q: the lock has %q, want %q, and the API %q", c.profile, c.name, got, c.want, *made.Name)
		}
	}
}

func TestNames_AreChanged(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("nuki"))
	made := named(t, s, s.Device(t, "nuki"), "Reservation 2025-07 Ana Gómez")
	for _, c := range []struct{ name, want string }{
		{"Reservation 2025-07 Ana Gómez Ruiz", "Reservation 2025-07"}, // the lock notices nothing
		{"Gómez Ruiz, Reservation 2025-07", "Gómez Ruiz, Reservat"},
		{"Ana", "Ana"},
	} {
		in := map[string]any{"access_code_id": made.AccessCodeID, "name": c.name, "sync": true}
		if status := s.Post(t, "/access_codes/update", in, nil); status != http.StatusOK {
			t.Fatalf("change to %q: %d", c.name, status)
		}
		got := untilNamed(t, s, made.AccessCodeID)
		if has := onLock(t, s, got); has != c.want || appearance(got) != c.want || *got.Name != c.name {
			t.Errorf("%q: the lock has %q, want %q; the code appears as %q", c.name, has, c.want, appearance(got))
		}
	}
}

// A code that becomes unmanaged and managed again has the name of the lock.
func TestNames_OfAdoptedCodes(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("nuki"))
	device := s.Device(t, "nuki")
	made := named(t, s, device, "Reservation 2025-07 Ana Gómez")
	untilNamed(t, s, made.AccessCodeID)
	id := map[string]any{"access_code_id": made.AccessCodeID}
	leave := map[string]any{"access_code_id": made.AccessCodeID, "is_managed": false}
	if status := s.Post(t, "/access_codes/update", leave, nil); status != http.StatusOK {
		t.Fatalf("make the code unmanaged: %d", status)
	}
	if status := s.Post(t, "/access_codes/unmanaged/convert_to_managed", id, nil); status != http.StatusOK {
		t.Fatalf("convert the code: %d", status)
	}
	apptest.Until(
		t,
		"the code is managed",
		func() bool { return s.Post(t, "/access_codes/get", id, nil) == http.StatusOK },
	)
	const want = "Reservation 2025-07"
	if got := untilNamed(t, s, made.AccessCodeID); *got.Name != want || appearance(got) != want {
		t.Errorf("its name is %q, and it appears as %q", *got.Name, appearance(got))
	}
}

func TestNames_OfCommonAndBackupCodes(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("kwikset", "yale", "tedee"))
	const name = "Reservation 2025-07 Ana Gómez"
	var devices []string
	for _, profile := range []string{"kwikset", "yale", "tedee"} {
		devices = append(devices, s.Device(t, profile))
	}
	var names []string
	for _, c := range createMultiple(t, s, map[string]any{
		"device_ids":                  devices,
		"name":                        name,
		"use_backup_access_code_pool": true,
		"starts_at":                   time.Now(),
		"ends_at":                     time.Now().Add(5 * time.Hour),
	}) {
		got := untilNamed(t, s, c.AccessCodeID)
		names = append(names, appearance(got))
		untilAvailable(t, s, c.AccessCodeID)
	}
	if want := []string{"Reservation 20", name, name}; !slices.Equal(names, want) {
		t.Errorf("the codes appear as %q, want %q", names, want)
	}
	lock := s.Lock(t, devices[0])
	apptest.Until(t, "the pool is full", func() bool {
		var pool []string
		for _, c := range lock.Memory(t) {
			if strings.HasPrefix(c.Name, "Backup code") {
				pool = append(pool, c.Name)
			}
		}
		slices.Sort(pool)
		return fmt.Sprint(pool) == "[Backup code Backup code 2 Backup code 3]"
	})
}
