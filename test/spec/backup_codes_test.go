package spec_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// backed creates a code with a backup code pool.
func backed(t *testing.T, s *apptest.Server, device string, in map[string]any) api.AccessCode {
	t.Helper()
	body := map[string]any{
		"device_id":                   device,
		"use_backup_access_code_pool": true,
		"starts_at":                   time.Now(),
		"ends_at":                     time.Now().Add(5 * time.Hour),
	}
	for field, value := range in {
		body[field] = value
	}
	var out api.AccessCodeCreatedResponse
	if status := s.Post(t, "/access_codes/create", body, &out); status != http.StatusOK {
		t.Fatalf("create: %d", status)
	}
	return out.AccessCode
}

func pull(t *testing.T, s *apptest.Server, code string) (out api.BackupAccessCodeResponse, status int) {
	t.Helper()
	status = s.Post(t, "/access_codes/pull_backup_access_code", map[string]any{"access_code_id": code}, &out)
	return out, status
}

func refusedPull(t *testing.T, s *apptest.Server, code string) (kind string, status int) {
	t.Helper()
	var f failure
	status = s.Post(t, "/access_codes/pull_backup_access_code", map[string]any{"access_code_id": code}, &f)
	return f.Error.Type, status
}

func untilAvailable(t *testing.T, s *apptest.Server, id string) {
	t.Helper()
	apptest.Until(t, "a backup code can be pulled", func() bool { return code(t, s, id).IsBackupAccessCodeAvailable })
}

// spares returns the PINs on the lock that are not known.
func spares(t *testing.T, l *apptest.Lock, known ...string) (pins []string) {
	t.Helper()
	for _, c := range l.Memory(t) {
		if !slices.Contains(known, c.PIN) {
			pins = append(pins, c.PIN)
		}
	}
	return pins
}

func TestBackupCode_ReadyBeforeItIsNeeded(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	device := s.Device(t, "august")
	l := s.Lock(t, device)
	known := spares(t, l)
	unmanaged := len(s.UnmanagedCodes(t, device))
	if p := get(t, s, device).Properties; !*p.SupportsBackupAccessCodePool || *p.BackupAccessCodePoolEnabled {
		t.Errorf(
			"before the first request: supported %t, enabled %t",
			*p.SupportsBackupAccessCodePool,
			*p.BackupAccessCodePoolEnabled,
		)
	}
	guest := backed(t, s, device, map[string]any{"code": "746283", "name": "Guest"})
	known = append(known, "746283")
	apptest.Until(t, "the pool is full", func() bool { return len(spares(t, l, known...)) == 3 })
	untilAvailable(t, s, guest.AccessCodeID)
	pool := spares(t, l, known...)

	// Pool codes are neither listed nor in events.
	if n := managedCodes(t, s, device); n != 1 {
		t.Errorf("%d managed codes are listed", n)
	}
	if n := len(s.UnmanagedCodes(t, device)); n != unmanaged {
		t.Errorf("%d unmanaged codes are listed, %d before", n, unmanaged)
	}
	for _, pin := range pool {
		if status := s.Post(
			t,
			"/access_codes/get",
			map[string]any{"device_id": device, "code": pin},
			nil,
		); status != http.StatusNotFound {
			t.Errorf("a code of the pool is read by its PIN: %d", status)
		}
	}
	var told api.EventsResponse
	s.Post(
		t,
		"/events/list",
		map[string]any{
			"since": "2020-01-01",
			"event_types": []string{
				"access_code.created",
				"access_code.set_on_device",
				"access_code.mutations_requested",
			},
		},
		&told,
	)
	if len(told.Events) == 0 {
		t.Error("the guest's code has no event")
	}
	for _, e := range told.Events {
		if e.AdditionalProperties["access_code_id"] != guest.AccessCodeID {
			t.Errorf("%s is about a code of the pool", e.EventType)
		}
	}

	// A backup code is pulled while the lock is offline, which is when it is needed, and opens the lock.
	s.Post(t, "/devices/simulate/disconnect", map[string]any{"device_id": device}, nil)
	out, status := pull(t, s, guest.AccessCodeID)
	backup := out.AccessCode
	if status != http.StatusOK || backup.AccessCodeID != out.BackupAccessCode.AccessCodeID ||
		backup.AccessCodeID == guest.AccessCodeID {
		t.Fatalf("pull: %d", status)
	}
	if !backup.IsBackup || backup.Status != "setting" || !slices.Contains(pool, *backup.Code) ||
		!backup.EndsAt.Equal(*guest.EndsAt) ||
		!backup.StartsAt.Equal(*guest.StartsAt) {
		t.Errorf("it is backup %t, %s, until %s", backup.IsBackup, backup.Status, backup.EndsAt)
	}
	if !slices.ContainsFunc(
		backup.Warnings,
		func(p api.Problem) bool { return p.WarningCode == "delay_in_setting_on_device" },
	) {
		t.Errorf("no warning that the lock lacks the time frame: %v", backup.Warnings)
	}
	var entered map[string]any
	l.Enter(t, *backup.Code, &entered)
	if entered["unlocked"] != true {
		t.Error("the backup code does not open")
	}
	if again, _ := pull(t, s, guest.AccessCodeID); again.AccessCode.AccessCodeID != backup.AccessCodeID {
		t.Error("pulled again it is another one")
	}
	was := code(t, s, guest.AccessCodeID)
	if was.PulledBackupAccessCodeID == nil || *was.PulledBackupAccessCodeID != backup.AccessCodeID ||
		was.IsBackupAccessCodeAvailable ||
		was.IsBackup ||
		!slices.ContainsFunc(
			was.Warnings,
			func(p api.Problem) bool { return p.WarningCode == "using_backup_access_code" },
		) {
		t.Errorf(
			"the code it was pulled for: pulled %v, available %t",
			was.PulledBackupAccessCodeID,
			was.IsBackupAccessCodeAvailable,
		)
	}
	if n := managedCodes(t, s, device); n != 2 {
		t.Errorf("%d managed codes are listed, with the one that was pulled", n)
	}

	// Once online, the lock gets the time frame, and the pool is filled again.
	s.Post(t, "/devices/simulate/connect", map[string]any{"device_id": device}, nil)
	known = append(known, *backup.Code)
	apptest.Until(t, "the pool is full again", func() bool { return len(spares(t, l, known...)) == 3 })
	apptest.Until(
		t,
		"the lock has the time frame",
		func() bool { return len(code(t, s, backup.AccessCodeID).PendingMutations) == 0 },
	)

	// Both codes have the same time frame from now on. They end together, and so does the pool.
	longer := guest.EndsAt.Add(time.Hour)
	s.Post(t, "/access_codes/update", map[string]any{"access_code_id": guest.AccessCodeID, "ends_at": longer}, nil)
	if got := code(t, s, backup.AccessCodeID); !got.EndsAt.Equal(longer) {
		t.Errorf("the backup code ends at %s", got.EndsAt)
	}
	s.Post(t, "/access_codes/delete", map[string]any{"access_code_id": guest.AccessCodeID}, nil)
	apptest.Until(
		t,
		"everything is removed",
		func() bool { return len(l.Memory(t)) == unmanaged && managedCodes(t, s, device) == 0 },
	)
}

func TestBackupCode_CannotBePulled(t *testing.T) {
	t.Parallel()
	// A write without a response is reverted once it can no longer appear.
	s := apptest.Start(
		t,
		apptest.WithProfiles("yale"),
		apptest.WithAccess(func(o *access.Options) { o.ConfirmTimeout = time.Second }),
	)
	device := s.Device(t, "yale")
	create := func(in map[string]any) string {
		t.Helper()
		var out api.AccessCodeCreatedResponse
		in["device_id"] = device
		if status := s.Post(t, "/access_codes/create", in, &out); status != http.StatusOK {
			t.Fatalf("create: %d", status)
		}
		return out.AccessCode.AccessCodeID
	}
	tomorrow := map[string]any{"starts_at": time.Now(), "ends_at": time.Now().Add(24 * time.Hour)}
	without := create(tomorrow)
	for name, c := range map[string]struct {
		code, kind string
		status     int
	}{
		"ongoing":        {create(map[string]any{}), "access_code_not_time_bound", http.StatusBadRequest},
		"without a pool": {without, "backup_access_code_not_found", http.StatusNotFound},
		"no code":        {uuid.NewString(), "access_code_not_found", http.StatusNotFound},
		"unmanaged":      {s.UnmanagedCodes(t, device)[0].AccessCodeID, "access_code_not_found", http.StatusNotFound},
	} {
		if kind, status := refusedPull(t, s, c.code); kind != c.kind || status != c.status {
			t.Errorf("%s: %d %s", name, status, kind)
		}
	}
	s.Post(t, "/devices/simulate/disconnect", map[string]any{"device_id": device}, nil)
	guest := backed(t, s, device, nil)
	if kind, status := refusedPull(
		t,
		s,
		guest.AccessCodeID,
	); kind != "backup_access_code_not_found" ||
		status != http.StatusNotFound {
		t.Errorf("while the pool is empty: %d %s", status, kind)
	}
	s.Post(t, "/devices/simulate/connect", map[string]any{"device_id": device}, nil)
	untilAvailable(t, s, guest.AccessCodeID)

	// The pool can be turned off for a device.
	s.Post(t, "/devices/update", map[string]any{"device_id": device, "backup_access_code_pool_enabled": false}, nil)
	apptest.Until(t, "the pool is empty", func() bool { return len(s.Lock(t, device).Memory(t)) == 2+3 })
	if kind, status := refusedPull(t, s, guest.AccessCodeID); status != http.StatusNotFound {
		t.Errorf("a pool that is switched off: %d %s", status, kind)
	}
	s.Post(t, "/devices/update", map[string]any{"device_id": device, "backup_access_code_pool_enabled": true}, nil)
	untilAvailable(t, s, guest.AccessCodeID)
}

// Concurrent pulls get different codes.
func TestBackupCode_ConcurrentPullsDiffer(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("yale"))
	device := s.Device(t, "yale")
	var codes []string
	for range 3 {
		codes = append(codes, backed(t, s, device, nil).AccessCodeID)
	}
	apptest.Until(t, "the pool is full", func() bool { return len(s.Lock(t, device).Memory(t)) == 2+3+3 })
	untilAvailable(t, s, codes[0])
	var mu sync.Mutex
	got := map[string][]string{}
	var pulls sync.WaitGroup
	for i := range 12 { // four concurrent requests each
		pulls.Go(func() {
			id := codes[i%3]
			var out api.BackupAccessCodeResponse
			status := tried(t, s, "/access_codes/pull_backup_access_code", map[string]any{"access_code_id": id}, &out)
			mu.Lock()
			defer mu.Unlock()
			if status == http.StatusOK {
				got[out.AccessCode.AccessCodeID] = append(got[out.AccessCode.AccessCodeID], id)
			}
		})
	}
	pulls.Wait()
	if len(got) == 0 {
		t.Fatal("nothing was pulled")
	}
	for backup, of := range got {
		if slices.Sort(of); len(slices.Compact(of)) != 1 {
			t.Errorf("%s was pulled by %v", backup, of)
		}
	}
}

// The pool makes room for a PIN that a client chooses, and for a code that needs the last slot.
func TestBackupCode_PoolMakesRoom(t *testing.T) {
	t.Parallel()
	// 27 slots, 2 of them used. A removal before its confirmation counts as gone only after the read lag.
	s := apptest.Start(
		t,
		apptest.WithProfiles("smartthings"),
		apptest.WithAccess(func(o *access.Options) { o.ReadLag = 50 * time.Millisecond }),
	)
	device := s.Device(t, "smartthings")
	l := s.Lock(t, device)
	known := spares(t, l)
	guest := backed(t, s, device, map[string]any{"code": "746283"})
	known = append(known, "746283")
	apptest.Until(t, "the pool is full", func() bool { return len(spares(t, l, known...)) == 3 })
	taken := spares(t, l, known...)[0]
	var wanted api.AccessCodeCreatedResponse
	if status := s.Post(
		t,
		"/access_codes/create",
		map[string]any{"device_id": device, "code": taken, "sync": true},
		&wanted,
	); status != http.StatusOK ||
		wanted.AccessCode.Status != "set" {
		t.Fatalf("a PIN of the pool: %d %s", status, wanted.AccessCode.Status)
	}
	known = append(known, taken)
	apptest.Until(t, "the pool is full again", func() bool { return len(spares(t, l, known...)) == 3 })
	for i := range 27 - len(known) {
		pin := fmt.Sprintf("7461%02d", i)
		if status := s.Post(
			t,
			"/access_codes/create",
			map[string]any{"device_id": device, "code": pin},
			nil,
		); status != http.StatusOK {
			t.Fatalf("code %d of the lock: %d", len(known), status)
		}
		known = append(known, pin)
	}
	apptest.Until(t, "the codes have taken the places of the pool", func() bool {
		return len(spares(t, l, known...)) == 0 && len(l.Memory(t)) == 27
	})
	if code(t, s, guest.AccessCodeID).IsBackupAccessCodeAvailable {
		t.Error("a backup code is said to be there")
	}
}

// backups are steps with backup codes, which have no event until one is pulled.
var backups = []step{
	{"an account is connected", nothing, life[0].want},
	{
		"a code is created",
		create(
			map[string]any{
				"code":                        pinOne,
				"use_backup_access_code_pool": true,
				"starts_at":                   time.Now(),
				"ends_at":                     time.Now().Add(48 * time.Hour),
			},
		),
		life[1].want,
	},
	{"a backup code is pulled", func(t *testing.T, s *tale) {
		untilAvailable(t, s.s, s.code)
		s.post(t, "/access_codes/pull_backup_access_code", map[string]any{"access_code_id": s.code}, nil)
	}, []string{"access_code.backup_access_code_pulled", "access_code.time_frame_changed", "access_code.set_on_device"}},
	{"it is pulled again", func(t *testing.T, s *tale) {
		s.post(t, "/access_codes/pull_backup_access_code", map[string]any{"access_code_id": s.code}, nil)
	}, nil},
	{"the code is deleted", remove, []string{
		"access_code.mutations_requested", "access_code.removed_from_device", "access_code.deleted",
		"access_code.mutations_requested", "access_code.removed_from_device", "access_code.deleted",
	}},
}

func TestBackupCode_ShortPoolIsShown(t *testing.T) {
	t.Parallel()
	s := apptest.Start(
		t,
		apptest.WithProfiles("yale"),
		apptest.WithAccess(func(o *access.Options) { o.DelayAfter = 200 * time.Millisecond }),
	)
	device := s.Device(t, "yale")
	shows := func(errorCode, warningCode string) bool {
		d := get(t, s, device)
		return slices.ContainsFunc(
			d.Errors,
			func(p api.Problem) bool { return p.ErrorCode == "empty_backup_access_code_pool" },
		) == (errorCode != "") &&
			slices.ContainsFunc(
				d.Warnings,
				func(p api.Problem) bool { return p.WarningCode == "partial_backup_access_code_pool" },
			) == (warningCode != "")
	}
	s.Lock(t, device).
		Control(t, http.MethodPut, "/faults", map[string]any{"failure_rate": map[string]any{"duplicate": 1}})
	guest := backed(t, s, device, nil)
	apptest.Until(t, "that the pool is empty is shown", func() bool { return shows("empty", "") })
	s.Lock(t, device).Control(t, http.MethodPut, "/faults", map[string]any{})
	apptest.Until(
		t,
		"the pool is filled with other PINs",
		func() bool { return code(t, s, guest.AccessCodeID).IsBackupAccessCodeAvailable && shows("", "") },
	)
}
