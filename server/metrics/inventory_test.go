package metrics_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// What happens to locks and accounts shows in the metrics and in /health, which stays healthy.
func TestInventory_FollowsLocksAndAccounts(t *testing.T) {
	t.Parallel()
	// No write to a lock arrives while the test runs.
	s := apptest.Start(t, apptest.WithProfiles("august", "yale"), apptest.WithSpeed(1e-6),
		apptest.WithAccess(func(o *access.Options) { o.InventoryTTL = time.Millisecond }),
		func(c *app.Config) {
			c.MetricsListen, c.MetricsPerDevice, c.Version = "127.0.0.1:0", true, "1.2.3"
			c.Reconcile.AccountInterval = 300 * time.Millisecond
		})
	august, yale := s.Device(t, "august"), s.Device(t, "yale")
	shows := func(what string, wanted ...string) {
		t.Helper()
		apptest.Until(t, what, func() bool {
			text := scrape(t, s.App.MetricsURL)
			for _, w := range wanted {
				if !strings.Contains(text, "\ndeviceaccess_"+w+"\n") {
					return false
				}
			}
			return true
		})
	}
	shows("a healthy installation", `devices{state="online"} 2`, `devices{state="offline"} 0`,
		`devices_battery{level="low"} 0`, `access_codes{status="set"} 0`, `access_codes{status="setting"} 0`,
		"codes_overdue 0", "oldest_unset_code_seconds 0", `acs_users{state="pending"} 0`,
		`accounts{adapter="sandbox",state="account_disconnected"} 0`)
	if text := scrape(t, s.App.MetricsURL); !strings.Contains(text, `deviceaccess_build_info{go_version="go`) ||
		!strings.Contains(
			text,
			`version="1.2.3"} 1`,
		) || strings.Contains(text, "last_backup") { // the test's database is not private
		t.Error(text)
	}

	s.Post(t, "/devices/simulate/disconnect", map[string]any{"device_id": august}, nil)
	s.Lock(t, yale).Control(t, http.MethodPost, "/battery", map[string]any{"battery_level": 9})
	s.Post(t, "/access_codes/create", map[string]any{"device_id": august, "code": "4711"}, nil)
	shows("a lock is offline, and another's battery is weak", `devices{state="online"} 1`, `devices{state="offline"} 1`,
		`devices_battery{level="critical"} 1`, `access_codes{status="setting"} 1`, "codes_overdue 0",
		fmt.Sprintf("device_online{device_id=%q,name=%q} 0", august, name(t, s, august)),
		fmt.Sprintf("device_codes_unset{device_id=%q,name=%q} 1", august, name(t, s, august)),
		fmt.Sprintf("device_battery_ratio{device_id=%q,name=%q} 0.09", yale, name(t, s, yale)))

	// An online device has not set a code for an hour.
	s.Post(t, "/access_codes/create", map[string]any{"device_id": yale}, nil)
	apptest.Until(t, "a code is overdue", func() bool {
		// The server may write the times while it works on the device.
		s.Exec(t, `update devices set online_changed_at = now() - interval '2 hours' where device_id = $1`, yale)
		s.Exec(t, `update access_codes set desired_at = now() - interval '1 hour' where device_id = $1`, yale)
		return strings.Contains(scrape(t, s.App.MetricsURL), "\ndeviceaccess_codes_overdue 1\n")
	})
	s.Post(
		t,
		"/connected_accounts/simulate/disconnect",
		map[string]any{"connected_account_id": account(t, s, august)},
		nil,
	)
	shows("an account is disconnected", `accounts{adapter="sandbox",state="account_disconnected"} 1`)

	var health api.HealthResponse
	apptest.Until(t, "/health counts what needs attention", func() bool {
		res := s.Send(t, http.MethodGet, "/health", nil, "", &health)
		return res.StatusCode == http.StatusOK && health.Attention != nil && health.Attention.AccountsDisconnected == 1
	})
	if a := health.Attention; a.DevicesOffline != 1 || a.DevicesWithLowBattery != 1 || a.AccessCodesOverdue != 1 {
		t.Errorf("%+v", a)
	}
	if text := scrape(t, s.App.MetricsURL); strings.Contains(text, "4711") || strings.Contains(text, s.APIKey) {
		t.Error("the metrics contain a PIN or a key")
	}
	if !health.Ok {
		t.Errorf("a lock's problem made the server unhealthy: %+v", health)
	}
}

// A code that its lock refuses, and one that an online lock keeps, show in the metrics and in /health.
func TestInventory_CountsRefusedAndKeptCodes(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august", "yale"),
		apptest.WithAccess(func(o *access.Options) { o.InventoryTTL = time.Millisecond }),
		func(c *app.Config) { c.MetricsListen = "127.0.0.1:0" })
	august, yale := s.Device(t, "august"), s.Device(t, "yale")
	has := func(wanted ...string) bool {
		text := scrape(t, s.App.MetricsURL)
		return !slices.ContainsFunc(wanted, func(w string) bool {
			return !strings.Contains(text, "\ndeviceaccess_"+w+"\n")
		})
	}
	shows := func(what string, wanted ...string) {
		t.Helper()
		apptest.Until(t, what, func() bool { return has(wanted...) })
	}
	shows("no code", "codes_failing 0", "codes_removal_overdue 0")

	s.Lock(t, august).
		Control(t, http.MethodPut, "/faults", sandbox.Faults{FailureRate: map[string]float64{"invalid": 1}})
	s.Post(t, "/access_codes/create", map[string]any{"device_id": august}, nil)
	shows("a lock refuses a code", "codes_failing 1", "codes_overdue 0", "codes_removal_overdue 0")

	var made struct {
		Code struct {
			ID     string `json:"access_code_id"`
			Status string
		} `json:"access_code"`
	}
	s.Post(t, "/access_codes/create", map[string]any{"device_id": yale}, &made)
	id := map[string]any{"access_code_id": made.Code.ID}
	apptest.Until(t, "the code is set", func() bool {
		s.Post(t, "/access_codes/get", id, &made)
		return made.Code.Status == "set"
	})
	s.Lock(t, yale).Control(t, http.MethodPut, "/faults", sandbox.Faults{FailureRate: map[string]float64{"busy": 1}})
	s.Post(t, "/access_codes/delete", id, nil)
	shows("a lock keeps a code for a moment", `access_codes{status="removing"} 1`, "codes_removal_overdue 0")
	apptest.Until(t, "a lock keeps a code", func() bool { // a retry of the server may overwrite the times
		s.Exec(t, `update devices set online_changed_at = now() - interval '2 hours' where device_id = $1`, yale)
		s.Exec(t, `update access_codes set removing_since = now() - interval '1 hour' where device_id = $1`, yale)
		return has("codes_removal_overdue 1", "codes_overdue 0")
	})

	var health api.HealthResponse
	apptest.Until(t, "/health counts both", func() bool {
		s.Exec(t, `update access_codes set removing_since = now() - interval '1 hour' where device_id = $1`, yale)
		res := s.Send(t, http.MethodGet, "/health", nil, "", &health)
		a := health.Attention
		return res.StatusCode == http.StatusOK && a != nil && a.AccessCodesFailing > 0 &&
			a.AccessCodesRemovalOverdue == 1
	})
	if !health.Ok {
		t.Errorf("a lock's problem made the server unhealthy: %+v", health)
	}
	apptest.Until(t, "a lock that is offline cannot remove a code", func() bool {
		s.Exec(t, `update devices set online = false where device_id = $1`, yale)
		return has("codes_removal_overdue 0")
	})
}

func name(t *testing.T, s *apptest.Server, device string) string {
	return get(t, s, device).DisplayName
}

func account(t *testing.T, s *apptest.Server, device string) string {
	return get(t, s, device).ConnectedAccountID
}

type shownDevice struct {
	DisplayName        string `json:"display_name"`
	ConnectedAccountID string `json:"connected_account_id"`
}

func get(t *testing.T, s *apptest.Server, device string) shownDevice {
	t.Helper()
	var out struct{ Device json.RawMessage }
	s.Post(t, "/devices/get", map[string]any{"device_id": device}, &out)
	var d shownDevice
	if err := json.Unmarshal(out.Device, &d); err != nil {
		t.Fatal(err)
	}
	return d
}
