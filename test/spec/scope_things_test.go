package spec_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// things are the values of parameters that name something, one of each. namedIn resolves parameters with two kinds,
// such as managed and unmanaged devices.
type things map[string]any

// names are the parameters that name something without being recognizable as ids, some in a few operations only.
var names = map[string][]string{
	"user_identifier_key":         nil,
	"user_identity_key":           nil,
	"merged_user_identity_keys":   nil,
	"customer_key":                nil,
	"common_code_key":             nil,
	"access_grant_key":            nil,
	"user_identity_email_address": nil,
	"user_identity_phone_number":  nil,
	"custom_metadata_has":         nil,
	"search":                      nil,
	"page_cursor":                 nil,
	"name":                        {"/devices/get", "/devices/unmanaged/get", "/locks/get", "/thermostats/get"},
	"code":                        {"/access_codes/get", "/access_codes/unmanaged/get"},
	"email":                       {"/connected_accounts/get"},
	"email_address":               {"/user_identities/create", "/user_identities/update"},
	"phone_number":                {"/user_identities/create", "/user_identities/update"},
	"climate_preset_key": {
		"/thermostats/activate_climate_preset",
		"/thermostats/delete_climate_preset",
		"/thermostats/set_fallback_climate_preset",
		"/thermostats/update_climate_preset",
		"/thermostats/schedules/create",
		"/thermostats/schedules/update",
	},
}

// nowhere are the parameters that name what this server does not have: every value is absent.
var nowhere = map[string]bool{
	"space_id":                         true,
	"access_grant_id":                  true,
	"access_grant_key":                 true,
	"access_method_id":                 true,
	"acs_credential_id":                true,
	"acs_encoder_id":                   true,
	"location_id":                      true,
	"unstable_location_id":             true,
	"organization_id":                  true,
	"customer_id":                      true,
	"credential_manager_acs_system_id": true,
}

// apart are the parameters that name something for one request only, with the files that test them.
var apart = map[string]string{"page_cursor": "pages_test.go and identifiers_test.go"}

// shared reports whether one value may be used for many operations.
func (p parameter) shared() bool { return !nowhere[p.name] && apart[p.name] == "" }

// plain are the parameters that name nothing, with a value if they are required.
var plain = map[string]func() any{
	"url": always(
		"https://hooks.example/reach",
	),
	"event_types": always([]string{"device.connected"}),
	"is_managed":  always(true),
	"auto_lock_enabled": always(
		false,
	),
	"is_expired":             always(false),
	"full_name":              always("Someone"),
	"name":                   always("Something"),
	"code":                   func() any { return newPIN() },
	"since":                  always("2020-01-01T00:00:00Z"),
	"event_type":             always("access_code.created"),
	"omnitec_metadata":       always(params{}),
	"limit":                  nil,
	"supported_code_lengths": always([]int{4, 6}),
	"starts_daily_at":        always("23:00:00"),
	"ends_daily_at":          always("05:00:00"),

	"climate_preset_key":        func() any { return uuid.NewString() },
	"heating_set_point_celsius": always(20),
	"cooling_set_point_celsius": always(26),
	"hvac_mode_setting":         always("off"),
	"hvac_mode":                 always("off"),
	"fan_mode_setting":          always("on"),
	"temperature_celsius":       always(21),
	"periods":                   always([]params{{"starts_at_time": "00:00:00", "climate_preset_key": "eco"}}),
	"starts_at":                 func() any { return time.Now().Add(time.Duration(numbers.Add(1)) * time.Hour) },
	"ends_at":                   always("2099-01-01T00:00:00Z"),
}

func init() {
	for _, name := range strings.Fields(`
		accepted_capabilities accepted_providers access_schedule after allow_external_modification application_version
		assa_abloy_metadata attempt_for_offline_device ble_capability device_manufacturer device_model hce_capability nfc_capability operating_system
		os_version phone_metadata seos_applet_version seos_tsm_endpoint_id auto_lock_delay_seconds automatically_manage_new_devices backup_access_code_pool_enabled before behavior_when_code_cannot_be_shared between
		company_name connect_partner_name connect_webview_customization created_before custom_metadata custom_redirect_failure_url custom_redirect_url
		device_selection_mode device_type device_types display_name email email_address exclude_if excluded_providers expires_at force include_if
		is_external_modification_allowed is_offline_access_code is_one_time_use is_publishable_key_auth_enabled is_sandbox is_suspended logo_shape
		manufacturer max_code_length max_time_rounding min_code_length overlap_seconds phone_number prefer_native_scheduling preferred_code_length primary_button_color
		primary_button_text_color properties provider_category schlage_metadata success_message sync time_zone type
		ultraloq_metadata unstable_offset use_backup_access_code_pool use_offline_access_code wait_for_device_creation webview_logo_shape
		noise_threshold_decibels noise_threshold_nrs is_programmed webview_primary_button_color webview_primary_button_text_color webview_success_message without_user_identifier_key
		climate_preset_mode cooling_set_point_fahrenheit fan_mode heating_set_point_fahrenheit is_override_allowed
		lower_limit_celsius lower_limit_fahrenheit manual_override_allowed max_override_period_minutes starts_at_time
		temperature_fahrenheit upper_limit_celsius upper_limit_fahrenheit`) {
		plain[name] = nil
	}
}

func always(v any) func() any { return func() any { return v } }

var numbers atomic.Int64

// newPIN returns a PIN that no other code of the test has.
func newPIN() string { return fmt.Sprint(710_000 + numbers.Add(1)) }

// namedIn returns the kind of thing that a parameter of an operation names.
func namedIn(path, name string) string {
	kinds := map[string]string{}
	switch {
	case strings.HasPrefix(path, "/devices/unmanaged/"):
		kinds = map[string]string{
			"device_id":            "unmanaged_device_id",
			"name":                 "unmanaged_name",
			"connected_account_id": "unmanaged_account_id",
			"search":               "unmanaged_name",
		}
	case strings.HasPrefix(path, "/access_codes/unmanaged/"):
		kinds = map[string]string{"access_code_id": "unmanaged_access_code_id", "code": "unmanaged_code"}
	case path == "/access_codes/pull_backup_access_code":
		kinds = map[string]string{"access_code_id": "backed_access_code_id"}
	case path == "/acs/users/unmanaged/get":
		kinds = map[string]string{"acs_user_id": "unmanaged_acs_user_id"}
	case strings.HasPrefix(path, "/acs/"):
		kinds = map[string]string{"connected_account_id": "acs_account_id"}
	case path == "/access_codes/report_device_constraints":
		kinds = map[string]string{"device_id": "constrained_device_id"}
	case path == "/devices/simulate/paid_subscription":
		kinds = map[string]string{"device_id": "paid_device_id"}
	case strings.HasPrefix(path, "/noise_sensors/"):
		kinds = map[string]string{"device_id": "sensor_device_id"}
	case strings.HasPrefix(path, "/phones/"):
		kinds = map[string]string{"device_id": "phone_id", "owner_user_identity_id": "user_identity_id"}
	case strings.HasPrefix(path, "/thermostats/"):
		kinds = map[string]string{"device_id": "thermostat_device_id", "name": "thermostat_name"}
		if strings.HasSuffix(name, "day_program_id") {
			return "thermostat_daily_program_id"
		}
	case strings.HasPrefix(path, "/user_identities/"):
		kinds = map[string]string{
			"email_address": "user_identity_email_address",
			"phone_number":  "user_identity_phone_number",
		}
	}
	if kind := kinds[name]; kind != "" {
		return kind
	}
	return name
}

// locksOf connects an account with locks of these profiles and waits until they are read.
func locksOf(
	t *testing.T,
	s *apptest.Server,
	n account.NewAccount,
	each int,
	profiles ...string,
) (acct string, devices []api.Device) {
	t.Helper()
	n.WorkspaceID, n.Adapter, n.DisplayName = uuid.MustParse(s.WorkspaceID), account.SandboxAdapter, "Locks"
	n.Capabilities = app.SimulatedKinds
	n.Config = fmt.Appendf(
		nil,
		`{"key":%q,"profiles":["%s"],"locks_per_profile":%d}`,
		uuid.NewString(),
		strings.Join(profiles, `","`),
		each,
	)
	id, err := s.App.Access.Accounts.ConnectAccount(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	path := "/devices/list"
	if n.Unmanaged {
		path = "/devices/unmanaged/list"
	}
	apptest.Until(t, fmt.Sprintf("%d locks of each of %v are read", each, profiles), func() bool {
		var out api.DevicesResponse
		s.Post(t, path, params{"connected_account_id": id.String()}, &out)
		devices = out.Devices
		for _, d := range devices {
			if read, err := s.App.Access.Devices.HasBeenRead(
				t.Context(),
				uuid.MustParse(d.DeviceID),
			); err != nil ||
				!read && !n.Unmanaged {
				return false
			}
		}
		return len(devices) == each*len(profiles)
	})
	return id.String(), devices
}

// madeBy sends a request that must succeed and returns the object under key.
func madeBy(t *testing.T, s *apptest.Server, path, key string, in params) params {
	t.Helper()
	var out params
	if status := s.Post(t, path, in, &out); status != http.StatusOK {
		t.Fatalf("%s %v: %d %v", path, in, status, out["error"])
	}
	thing, _ := out[key].(params)
	return thing
}

// newThings creates one of everything in the workspace, independent of others. mark is in all names; what cannot be
// renamed has that of its profile. The person logs in on a webview.
func newThings(t *testing.T, s *apptest.Server, mark, profile, person string) things {
	t.Helper()
	email, number := mark+"@things.example", fmt.Sprintf("+1555%07d", numbers.Add(1))
	acct, devices := locksOf(
		t,
		s,
		account.NewAccount{User: account.UserIdentifier{Email: email}, Capabilities: app.SimulatedKinds},
		1,
		"august",
		"smartthings",
		"nuki",
		"minut",
		"nest",
	)
	seen, found := locksOf(t, s, account.NewAccount{Unmanaged: true}, 2, profile)
	all := things{
		"connected_account_id": acct,
		"unmanaged_account_id": seen,
		"email":                email,
		"unmanaged_device_id":  found[0].DeviceID,
		"search":               mark,
		"custom_metadata_has": params{
			"mark": mark,
		},
		"customer_key":                mark + " customer",
		"user_identity_key":           mark + " key",
		"user_identity_email_address": email,
		"user_identity_phone_number":  number,
		"name":                        mark + " lock",
	}
	for _, d := range devices {
		switch d.DeviceType {
		case "august_lock":
			all["device_id"] = d.DeviceID
		case "smartthings_lock":
			all["constrained_device_id"] = d.DeviceID
		case "minut_sensor":
			all["sensor_device_id"] = d.DeviceID
			all["noise_threshold_id"] = thresholds(t, s, d.DeviceID, nil)[0].NoiseThresholdID
			sensor := params{
				"device_id":       d.DeviceID,
				"name":            mark + " sensor",
				"custom_metadata": params{"mark": mark},
			}
			madeBy(t, s, "/devices/update", "", sensor)
		case "nest_thermostat":
			all["thermostat_device_id"], all["thermostat_name"] = d.DeviceID, mark+" thermostat"
		default:
			all["paid_device_id"] = d.DeviceID
		}
	}
	var unmanaged api.UnmanagedDeviceResponse
	s.Post(t, "/devices/unmanaged/get", params{"device_id": found[0].DeviceID}, &unmanaged)
	all["unmanaged_name"] = unmanaged.Device.Properties.Name
	device := all["device_id"]
	madeBy(
		t,
		s,
		"/devices/update",
		"",
		params{"device_id": device, "name": mark + " lock", "custom_metadata": params{"mark": mark}},
	)
	addClimate(t, s, all, mark)
	madeBy(
		t,
		s,
		"/devices/unmanaged/update",
		"",
		params{"device_id": found[0].DeviceID, "custom_metadata": params{"mark": mark}},
	)
	for _, id := range []string{acct, seen} {
		madeBy(
			t,
			s,
			"/connected_accounts/update",
			"",
			params{
				"connected_account_id": id,
				"customer_key":         all["customer_key"],
				"custom_metadata":      params{"mark": mark},
			},
		)
	}

	var page api.DevicesResponse
	s.Post(t, "/devices/list", params{"limit": 1}, &page)
	all["page_cursor"] = *page.Pagination.NextPageCursor

	all["code"] = newPIN()
	code := madeBy(
		t,
		s,
		"/access_codes/create",
		"access_code",
		params{"device_id": device, "code": all["code"], "name": mark + " code", "sync": true},
	)
	all["access_code_id"] = code["access_code_id"]
	many := madeBy(
		t,
		s,
		"/access_codes/create",
		"access_code",
		params{"device_id": device, "common_code_key": mark + " common", "sync": true},
	)
	all["common_code_key"] = many["common_code_key"]
	all["unmanaged_code"] = newPIN()
	all["unmanaged_access_code_id"] = madeBy(t, s, "/access_codes/simulate/create_unmanaged_access_code", "access_code",
		params{"device_id": device, "code": all["unmanaged_code"], "name": mark + " found"})["access_code_id"]
	all["backed_access_code_id"] = backedCode(t, s, device)
	all["action_attempt_id"] = madeBy(t, s, "/locks/lock_door", "action_attempt", params{
		"device_id": device,
		"sync":      true,
	})["action_attempt_id"]
	var told api.EventsResponse
	s.Post(t, "/events/list", params{"since": "2020-01-01", "device_id": device}, &told)
	all["event_id"] = told.Events[0].EventID

	all["network_id"] = acct
	if err := s.App.Access.Accounts.RecordGateway(
		t.Context(),
		uuid.MustParse(acct),
		"home of "+mark,
		false,
	); err != nil {
		t.Fatal(err)
	}
	all["webhook_id"] = madeBy(t, s, "/webhooks/create", "webhook", params{
		"url":         "https://hooks.example/" + mark,
		"event_types": []string{"noise_sensor.noise_threshold_triggered"},
	})["webhook_id"]
	w := webview(t, s, params{"custom_metadata": params{"mark": mark}})
	if status, _, _ := enter(t, w.URL, "schlage", as(person)); status >= 400 {
		t.Fatalf("log in: %d", status)
	}
	all["connect_webview_id"] = w.ConnectWebviewID
	apptest.Until(t, "the connected account appears", func() bool {
		return len(devicesOf(t, s, s.APIKey, "/devices/list", params{"connect_webview_id": w.ConnectWebviewID})) > 0
	})
	duplicate := newPerson(t, s, params{"user_identity_key": mark + " duplicate"})
	all["merged_user_identity_id"], all["merged_user_identity_keys"] = duplicate.UserIdentityID, mark+" duplicate"
	all["user_identity_id"] = madeBy(t, s, "/user_identities/create", "user_identity", params{
		"user_identity_key": all["user_identity_key"],
		"full_name":         mark + " person",
		"email_address":     email,
		"phone_number":      number,
	})["user_identity_id"]

	all["custom_sdk_installation_id"] = mark + " app"
	all["phone_id"] = newPhone(t, s, params{
		"user_identity_id":           all["user_identity_id"],
		"custom_sdk_installation_id": all["custom_sdk_installation_id"],
	}).DeviceID

	y := s.AccessSystem(t)
	all["acs_system_id"], all["acs_account_id"] = y.ID, y.AccountID
	madeBy(
		t,
		s,
		"/connected_accounts/update",
		"",
		params{"connected_account_id": y.AccountID, "customer_key": all["customer_key"]},
	)
	all["acs_access_group_id"] = groupNamed(t, s, y, "Everyone")
	var entrances api.AcsEntrancesResponse
	s.Post(t, "/acs/entrances/list", params{"acs_system_id": y.ID}, &entrances)
	all["acs_entrance_id"] = entrances.AcsEntrances[0].AcsEntranceID
	var strangers api.UnmanagedAcsUsersResponse
	s.Post(t, "/acs/users/unmanaged/list", params{"acs_system_id": y.ID}, &strangers)
	all["unmanaged_acs_user_id"] = strangers.AcsUsers[0].AcsUserID
	user := newUser(
		t,
		s,
		y,
		params{
			"full_name":            mark + " user",
			"user_identity_id":     all["user_identity_id"],
			"acs_access_group_ids": []any{all["acs_access_group_id"]},
		},
	)
	all["acs_user_id"] = user.AcsUserID
	settled(t, s, newUser(t, s, y, nil).AcsUserID)
	settled(t, s, user.AcsUserID)

	all["user_identifier_key"] = mark + " user"
	session := session(
		t,
		s,
		params{
			"user_identifier_key":   all["user_identifier_key"],
			"user_identity_id":      all["user_identity_id"],
			"connect_webview_ids":   []any{all["connect_webview_id"]},
			"connected_account_ids": []any{acct, seen, y.AccountID},
		},
	)
	all["client_session_id"], all["token"] = session.ClientSessionID, session.Token
	return all
}

// backedCode creates a code with a backup code that can be pulled.
func backedCode(t *testing.T, s *apptest.Server, device any) any {
	t.Helper()
	made := madeBy(
		t,
		s,
		"/access_codes/create",
		"access_code",
		params{
			"device_id": device, "use_backup_access_code_pool": true, "sync": true,
			"starts_at": time.Now(), "ends_at": time.Now().Add(time.Hour),
		},
	)
	apptest.Until(t, "a backup code can be pulled", func() bool {
		now := madeBy(t, s, "/access_codes/get", "access_code", params{"access_code_id": made["access_code_id"]})
		return now["is_backup_access_code_available"] == true
	})
	return made["access_code_id"]
}

// addClimate creates what a thermostat has.
func addClimate(t *testing.T, s *apptest.Server, all things, mark string) {
	t.Helper()
	device := all["thermostat_device_id"]
	madeBy(t, s, "/devices/update", "", params{
		"device_id": device, "name": all["thermostat_name"], "custom_metadata": params{"mark": mark},
	})
	all["climate_preset_key"] = mark + " preset"
	madeBy(t, s, "/thermostats/create_climate_preset", "", params{
		"device_id": device, "climate_preset_key": all["climate_preset_key"], "hvac_mode_setting": "off",
	})
	all["thermostat_schedule_id"] = madeBy(t, s, "/thermostats/schedules/create", "thermostat_schedule", params{
		"device_id": device, "climate_preset_key": "eco", "starts_at": "2098-01-01", "ends_at": "2098-01-02",
	})["thermostat_schedule_id"]
	all["thermostat_daily_program_id"] = madeBy(
		t, s, "/thermostats/daily_programs/create", "thermostat_daily_program",
		params{"device_id": device, "name": mark + " day", "periods": plain["periods"]()},
	)["thermostat_daily_program_id"]
}
