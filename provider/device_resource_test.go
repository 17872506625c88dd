package provider

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

const (
	deviceType = "deviceaccess_device"
	door       = deviceType + ".door"
)

// adopted is a device resource with these settings.
func adopted(device, settings string) string {
	return fmt.Sprintf("resource %q \"door\" {\n  device_id = %q\n  %s\n}\n", deviceType, device, settings)
}

func onDoor(attributeName string, check knownvalue.Check) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(door, tfjsonpath.New(attributeName), check)
}

// shown is a managed device as the server returns it.
func shown(t *testing.T, srv *apptest.Server, device string) api.Device {
	t.Helper()
	var got api.DeviceResponse
	if status := srv.Post(t, "/devices/get", map[string]any{"device_id": device}, &got); status != http.StatusOK {
		t.Errorf("the device is answered %d", status)
	}
	return got.Device
}

func TestServerDeviceIsAdoptedChangedImportedAndLeft(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	device := srv.Device(t, "august")
	original := shown(t, srv, device)
	settings := "name = \"Front door\"\n  auto_lock_enabled = true\n  auto_lock_delay_seconds = 30"
	locks := func(enabled bool, delay float64) resource.TestCheckFunc {
		return func(*terraform.State) error {
			is := shown(t, srv, device).Properties
			if *is.AutoLockEnabled != enabled || is.AutoLockDelaySeconds == nil || *is.AutoLockDelaySeconds != delay {
				return fmt.Errorf("auto-lock is %v after %v", *is.AutoLockEnabled, is.AutoLockDelaySeconds)
			}
			return nil
		}
	}
	drive(t, resource.TestCase{
		CheckDestroy: func(*terraform.State) error {
			if is := shown(t, srv, device); is.DisplayName != "Back door" || !is.IsManaged {
				return fmt.Errorf("the device is %q, managed: %v", is.DisplayName, is.IsManaged)
			}
			return nil
		},
		Steps: []resource.TestStep{
			{ // adopted without a change
				Config: onServer(srv, adopted(device, "")),
				ConfigStateChecks: []statecheck.StateCheck{
					onDoor("name", isText(original.DisplayName)),
					onDoor("is_managed", knownvalue.Bool(true)),
				},
			},
			{
				Config:           onServer(srv, adopted(device, settings)),
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, door),
				Check:            locks(true, 30),
			},
			{Config: onServer(srv, adopted(device, settings)), ConfigPlanChecks: plansNothing()},
			importsBy(door, "device_id"),
			{ // settings that are left out stay
				Config:           onServer(srv, adopted(device, "")),
				ConfigPlanChecks: plansNothing(),
				Check:            locks(true, 30),
			},
			{
				PreConfig: func() {
					srv.Post(t, "/devices/update", map[string]any{"device_id": device, "name": "Meddler"}, nil)
				},
				Config:            onServer(srv, adopted(device, "name = \"Back door\"\n  auto_lock_enabled = false")),
				ConfigPlanChecks:  plans(plancheck.ResourceActionUpdate, door),
				ConfigStateChecks: []statecheck.StateCheck{onDoor("name", isText("Back door"))},
				Check:             locks(false, 30),
			},
			{
				Config:            onServer(srv, adopted(device, "is_managed = false")),
				ConfigPlanChecks:  plans(plancheck.ResourceActionUpdate, door),
				ConfigStateChecks: []statecheck.StateCheck{onDoor("is_managed", knownvalue.Bool(false))},
			},
			{Config: onServer(srv, adopted(device, "is_managed = false")), ConfigPlanChecks: plansNothing()},
			{
				Config: onServer(srv, adopted(device, `name = "Garage"`)),
				ExpectError: says("not managed, so the server does not rename it",
					"Set `is_managed` to true"),
			},
			{
				Config:           onServer(srv, adopted(device, "is_managed = true\n  name = \"Back door\"")),
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, door),
			},
		},
	})
}

func TestServerDeviceThatIsRemovedLeavesTheState(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	device := srv.Device(t, "august")
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: onServer(srv, adopted(device, ""))},
		{
			PreConfig: func() {
				if status := srv.Post(
					t,
					"/devices/delete",
					map[string]any{"device_id": device},
					nil,
				); status != http.StatusOK {
					t.Errorf("delete: %d", status)
				}
			},
			Config:           onServer(srv, adopted(device, "")),
			ConfigPlanChecks: plans(plancheck.ResourceActionCreate, door),
			ExpectError:      says("device_not_found"),
		},
	}})
}

func TestServerDeviceErrorsPointToTheSetting(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august", "igloohome"))
	august, igloohome := srv.Device(t, "august"), srv.Device(t, "igloohome")
	autoLock := "auto_lock_enabled = true\n  auto_lock_delay_seconds = 30"
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config:      onServer(srv, adopted(august, "auto_lock_enabled = true")),
			ExpectError: says("Missing auto_lock_delay_seconds", "1 to 60 seconds"),
		},
		{
			Config:      onServer(srv, adopted(august, "auto_lock_delay_seconds = 30")),
			ExpectError: says("Conflicting arguments", "no effect without automatic locking"),
		},
		{
			Config:      onServer(srv, adopted(august, "is_managed = false\n  "+autoLock)),
			ExpectError: says("Conflicting arguments", "does not write to a device"),
		},
		{
			Config:      onServer(srv, adopted(igloohome, autoLock)),
			ExpectError: says("Could not adopt device"),
		},
		{
			PreConfig: func() { srv.Lock(t, august).Control(t, http.MethodPost, "/offline", nil) },
			Config:    onServer(srv, adopted(august, "name = \"Front door\"\n  "+autoLock)),
			ExpectError: says("auto_lock_enabled = true", "Run Terraform again when the lock is "+
				"online"),
		},
		{ // nothing is tainted: the device is adopted with the next apply
			PreConfig:        func() { srv.Lock(t, august).Control(t, http.MethodPost, "/online", nil) },
			Config:           onServer(srv, adopted(august, `name = "Front door"`)),
			ConfigPlanChecks: plans(plancheck.ResourceActionCreate, door),
		},
	}})
}

// What a lock can do must not stop the plan of everything else.
func TestDeviceWithoutAutoLock_IsAWarningOfThePlan(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	for _, device := range f.devices {
		device["can_configure_auto_lock"] = false
	}
	w := newDirectory(t, map[string]string{"main.tf": required +
		f.config(adopted(lockA, "auto_lock_enabled = true\n  auto_lock_delay_seconds = 30"))})
	w.expect(true, "plan")
	expectSaid(t, "the plan", plainly(w.seen.String()), "Warning: Automatic locking not supported",
		"applying this plan will fail")
	w.expect(true, "destroy", "-auto-approve")
}
