package provider

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

// A parity says how a model takes over an object of the contract.
type parity struct {
	fill      func() (model, object any) // filled from an object in which everything is set
	notFilled []string                   // attributes that the object does not tell
	notShown  []string                   // fields of the object that are no attribute of the same name
}

// What no model shows of an unmanaged code, of a managed one, of a user of an access system, and of a device: what is in properties and location is
// shown with the rest.
var (
	ofCodes        = []string{"errors", "upstream_access_code_id", "warnings", "workspace_id"}
	ofManagedCodes = append([]string{
		"appearance",
		"common_code_key",
		"is_backup",
		"is_backup_access_code_available",
		"is_offline_access_code",
		"is_one_time_use",
		"is_scheduled_on_device",
		"is_waiting_for_code_assignment",
		"pending_mutations",
		"pulled_backup_access_code_id",
	}, ofCodes...)
	untold = []string{
		"preferred_code_length",
		"prefer_native_scheduling",
		"attempt_for_offline_device",
		"backup", // which only a configuration has
	}
	ofACSUsers = []string{
		"access_schedule",
		"display_name",
		"email",
		"errors",
		"is_managed",
		"last_successful_sync_at",
		"pending_mutations",
		"user_identity_email_address",
		"user_identity_full_name",
		"user_identity_phone_number",
		"warnings",
		"workspace_id",
	}
	ofThermostats = []string{ // the capabilities
		"can_hvac_cool",
		"can_hvac_heat",
		"can_hvac_heat_cool",
		"can_program_thermostat_programs_as_different_each_day",
		"can_program_thermostat_programs_as_same_each_day",
		"can_program_thermostat_programs_as_weekday_weekend",
		"can_run_thermostat_programs",
		"can_turn_off_hvac",
	}
	ofDevices = append([]string{
		"properties",
		"location",
		"device_manufacturer",
		"device_provider",
		"capabilities_supported",
		"custom_metadata",
		"errors",
		"warnings",
		"is_managed",
		"nickname",
		"space_ids",
		"workspace_id",
		"can_configure_auto_lock",
		"can_remotely_lock",
		"can_remotely_unlock",
		"can_simulate_connection",
		"can_simulate_disconnection",
		"can_simulate_hub_connection",
		"can_simulate_hub_disconnection",
		"can_simulate_paid_subscription",
		"can_simulate_removal",
		"can_unlock_with_code",
	}, ofThermostats...)
)

func isErrors(field string) bool { return field == "errors" }

// parities are how all models take over objects, by type name of models and a remark.
var parities = map[string]parity{
	"deviceaccess_access_code": {
		fill: func() (any, any) {
			m, code := accessCodeModel{}, full[api.AccessCode]()
			m.fill(&code)
			return m, code
		},
		notFilled: append(
			[]string{"code_wo", "code_wo_version", "wait_until_on_lock", "keepers", "timeouts"},
			untold...),
		notShown: slices.DeleteFunc(slices.Clone(ofManagedCodes), func(field string) bool {
			return slices.Contains(
				[]string{"errors", "common_code_key"},
				field,
			)
		}),
	},
	"deviceaccess_access_code, unmanaged": {
		fill: func() (any, any) {
			m, code := accessCodeModel{}, full[api.UnmanagedAccessCode]()
			m.fillUnmanaged(&code)
			return m, code
		},
		notFilled: append(
			[]string{
				"code_wo",
				"code_wo_version",
				"wait_until_on_lock",
				"keepers",
				"timeouts",
				"is_external_modification_allowed",
				"common_code_key",
				"offline",
			},
			untold...),
		notShown: []string{
			"cannot_be_managed",
			"cannot_delete_unmanaged_access_code",
			"upstream_access_code_id",
			"warnings",
			"workspace_id",
		},
	},
	"ephemeral deviceaccess_access_code": {
		fill: func() (any, any) {
			m, code := ephemeralAccessCodeModel{}, full[api.AccessCode]()
			m.fill(&code)
			return m, code
		},
		notShown: append([]string{"created_at", "type", "is_external_modification_allowed"}, ofManagedCodes...),
	},
	"ephemeral deviceaccess_access_code, unmanaged": {
		fill: func() (any, any) {
			m, code := ephemeralAccessCodeModel{}, full[api.UnmanagedAccessCode]()
			m.fillUnmanaged(&code)
			return m, code
		},
		notShown: append(
			[]string{"cannot_be_managed", "cannot_delete_unmanaged_access_code", "created_at", "type"},
			ofCodes...),
	},
	"deviceaccess_webhook": {
		fill: func() (any, any) {
			m, hook := webhookModel{EventTypes: types.SetNull(types.StringType)}, full[api.Webhook]()
			m.fill(context.Background(), &hook, nil)
			return m, hook
		},
		notFilled: []string{"secret_version"},
		notShown:  healthOfWebhooks,
	},
	"ephemeral deviceaccess_webhook": {
		fill: func() (any, any) {
			m, hook := ephemeralWebhookModel{}, full[api.Webhook]()
			m.fill(&hook)
			return m, hook
		},
		notShown: append([]string{"disabled", "disabled_at", "disabled_reason"}, healthOfWebhooks...),
	},
	"deviceaccess_connect_webview": {
		fill: func() (any, any) {
			m, webview := connectWebviewModel{}, full[api.ConnectWebview]()
			webview.AnyProviderAllowed, webview.CustomMetadata = false, api.Metadata{"text": "text"}
			m.fill(&webview)
			m.fillSettings(context.Background(), &webview)
			return m, webview
		},
		notFilled: []string{"excluded_providers", "provider_category"},
		notShown: []string{
			"accepted_devices",
			"any_device_allowed",
			"any_provider_allowed",
			"device_selection_mode",
			"workspace_id",
		},
	},
	"data deviceaccess_workspace": {
		fill: func() (any, any) {
			m, workspace := workspaceModel{}, full[api.Workspace]()
			m.fill(&workspace)
			return m, workspace
		},
		notShown: []string{"connect_webview_customization", "organization_id"},
	},
	"data deviceaccess_unmanaged_access_codes": {
		fill: func() (any, any) {
			m, code := unmanagedAccessCodeModel{}, full[api.UnmanagedAccessCode]()
			m.fill(&code)
			return m, code
		},
		notShown: append([]string{"is_managed", "cannot_delete_unmanaged_access_code"}, ofCodes...),
	},
	"data deviceaccess_devices": {
		fill: func() (any, any) {
			m, device := deviceModel{}, full[api.Device]()
			m.fill(&device)
			return m, device
		},
		notShown: ofDevices,
	},
	"data deviceaccess_connected_accounts": {
		fill: func() (any, any) {
			m, account := connectedAccountModel{}, full[api.ConnectedAccount]()
			m.fill(&account)
			return m, account
		},
		notShown: []string{
			"accepted_capabilities",
			"account_type_display_name",
			"custom_metadata",
			"errors",
			"user_identifier",
			"warnings",
		},
	},
	"data deviceaccess_acs_users": {
		fill: func() (any, any) {
			m, user := acsUserModel{}, full[api.AcsUser]()
			m.fill(&user)
			return m, user
		},
		notShown: ofACSUsers,
	},
	"data deviceaccess_device": {
		fill: func() (any, any) {
			m, device := namedDeviceModel{}, full[api.Device]()
			m.fill(&device)
			return m, device
		},
		notFilled: []string{"name"},
		notShown:  ofDevices,
	},
	"data deviceaccess_access_codes": {
		fill: func() (any, any) {
			m, code := listedAccessCodeModel{}, full[api.AccessCode]()
			m.fill(&code)
			return m, code
		},
		notShown: append([]string{"code", "is_managed"}, ofManagedCodes...),
	},
	"deviceaccess_shared_access_code": {
		fill: func() (any, any) {
			m, code := sharedAccessCodeModel{Code: types.StringValue("text")}, full[api.AccessCode]()
			return m.managed(&code), code
		},
		notShown: append([]string{
			"code",
			"name",
			"type",
			"device_id",
			"starts_at",
			"ends_at",
			"created_at",
			"is_managed",
			"is_external_modification_allowed",
		}, slices.DeleteFunc(slices.Clone(ofManagedCodes), func(field string) bool { return field == "errors" })...),
	},
	"deviceaccess_access_codes_exclusive": {
		fill: func() (any, any) {
			code := full[api.UnmanagedAccessCode]()
			return foreignCode{
				nameWithoutPIN(code.Name, nil),
				types.BoolValue(code.IsManaged),
				types.BoolValue(!code.CannotDeleteUnmanagedAccessCode),
				types.StringNull(),
			}, code
		},
		notFilled: []string{"backup_of"},
		notShown: append([]string{
			"access_code_id",
			"code",
			"type",
			"status",
			"device_id",
			"starts_at",
			"ends_at",
			"created_at",
			"cannot_be_managed",
			"cannot_delete_unmanaged_access_code",
		}, ofCodes...),
	},
	"data deviceaccess_webhooks": {
		fill: func() (any, any) {
			m, hook := webhooksModel{}, full[api.Webhook]()
			m.fill([]api.Webhook{hook})
			return m.Webhooks[0], hook
		},
		notShown: append([]string{"secret"}, healthOfWebhooks...),
	},
	"deviceaccess_device": {
		fill: func() (any, any) {
			m, device := deviceResourceModel{}, full[api.Device]()
			m.fill(&device)
			return m, device
		},
		notFilled: []string{"timeouts"},
		notShown: append([]string{
			"connected_account_id",
			"created_at",
			"device_type",
			"display_name",
			"can_program_online_access_codes",
			"can_program_offline_access_codes",
		}, slices.DeleteFunc(slices.Clone(ofDevices), func(field string) bool { return field == "is_managed" })...),
	},
	"deviceaccess_acs_user": {
		fill: func() (any, any) {
			m, user := acsUserResourceModel{}, full[api.AcsUser]()
			m.fill(&user)
			return m, user
		},
		notFilled: []string{"acs_access_group_ids", "timeouts"},
		notShown:  ofACSUsers,
	},
	"deviceaccess_user_identity": {
		fill: func() (any, any) {
			m, identity := userIdentityModel{}, full[api.UserIdentity]()
			m.fill(&identity)
			return m, identity
		},
		notShown: []string{
			"acs_user_ids",
			"display_name",
			"errors",
			"merged_user_identity_ids",
			"merged_user_identity_keys",
			"warnings",
			"workspace_id",
		},
	},
	presetType: {
		fill: func() (any, any) {
			m, preset := climatePresetModel{}, full[api.ClimatePreset]()
			preset.HvacModeSetting = "heat_cool"
			m.fill(&preset)
			return m, preset
		},
		notFilled: []string{"device_id"},
		notShown:  []string{"can_use_with_thermostat_daily_programs", "display_name", "manual_override_allowed"},
	},
	scheduleType: {
		fill: func() (any, any) {
			m, schedule := thermostatScheduleModel{}, full[api.ThermostatSchedule]()
			m.fill(&schedule, time.Now())
			return m, schedule
		},
		notShown: []string{"workspace_id"},
	},
	thresholdType: {
		fill: func() (any, any) {
			m, threshold := noiseThresholdModel{}, full[api.NoiseThreshold]()
			m.fill(&threshold)
			return m, threshold
		},
		notFilled: []string{"timeouts"},
	},
	"data deviceaccess_thermostats": {
		fill: func() (any, any) {
			m, device := thermostatModel{}, full[api.Device]()
			m.fill(&device)
			return m, device
		},
		notShown: append([]string{
			"created_at",
			"can_program_online_access_codes",
			"can_program_offline_access_codes",
		}, ofDevices...),
	},
	"data deviceaccess_noise_sensors": {
		fill: func() (any, any) {
			m, device := noiseSensorModel{}, full[api.Device]()
			m.fill(&device)
			return m, device
		},
		notShown: append([]string{
			"created_at",
			"can_program_online_access_codes",
			"can_program_offline_access_codes",
		}, slices.DeleteFunc(slices.Clone(ofDevices), func(field string) bool {
			return field == "capabilities_supported"
		})...),
	},
	"data deviceaccess_access_code": {
		fill: func() (any, any) {
			m, code := accessCodeDataModel{}, full[api.AccessCode]()
			m.fill(&code)
			return m, code
		},
		notShown: slices.DeleteFunc(slices.Clone(ofManagedCodes), isErrors),
	},
	"data deviceaccess_access_code, unmanaged": {
		fill: func() (any, any) {
			m, code := accessCodeDataModel{}, full[api.UnmanagedAccessCode]()
			m.fillUnmanaged(&code)
			return m, code
		},
		notFilled: []string{"is_external_modification_allowed"},
		notShown: append(
			[]string{"cannot_be_managed", "cannot_delete_unmanaged_access_code"},
			slices.DeleteFunc(slices.Clone(ofCodes), isErrors)...),
	},
	"data deviceaccess_webhook": {
		fill: func() (any, any) {
			m, hook := webhooksModel{}, full[api.Webhook]()
			m.fill([]api.Webhook{hook})
			return m.Webhooks[0], hook
		},
		notShown: append([]string{"secret"}, healthOfWebhooks...),
	},
	"data deviceaccess_connected_account": {
		fill: func() (any, any) {
			m, account := connectedAccountDataModel{}, full[api.ConnectedAccount]()
			m.fill(&account)
			return m, account
		},
		notShown: []string{
			"accepted_capabilities",
			"account_type_display_name",
			"custom_metadata",
			"warnings",
		},
	},
	"data deviceaccess_device_providers": {
		fill: func() (any, any) {
			m, vendor := deviceProviderModel{}, full[api.DeviceProvider]()
			m.fill(&vendor)
			return m, vendor
		},
		notShown: append([]string{
			"image_url",
			"can_simulate_connection",
			"can_simulate_disconnection",
			"can_simulate_hub_connection",
			"can_simulate_hub_disconnection",
			"can_simulate_paid_subscription",
			"can_simulate_removal",
			"can_unlock_with_code",
		}, ofThermostats...),
	},
}

// full is a value in which everything is set.
func full[T any]() T {
	var value T
	set(reflect.ValueOf(&value).Elem())
	return value
}

func set(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
	case v.Kind() == reflect.String:
		v.SetString("text")
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(7)
	case v.CanFloat():
		v.SetFloat(7)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		set(v.Elem())
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		set(v.Index(0))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				set(v.Field(i))
			}
		}
	}
}

// tags are the names that the fields of a struct have in a kind of tag.
func tags(value any, kind string) map[string]reflect.Value {
	found := map[string]reflect.Value{}
	v := reflect.ValueOf(value)
	for _, field := range reflect.VisibleFields(v.Type()) {
		if name, _, _ := strings.Cut(field.Tag.Get(kind), ","); name != "" && name != "-" {
			found[name] = v.FieldByIndex(field.Index)
		}
	}
	return found
}

func isNull(v reflect.Value) bool {
	if value, ok := v.Interface().(attr.Value); ok {
		return value.IsNull()
	}
	return v.IsZero()
}

func TestModelsTakeOverWhatTheContractTells(t *testing.T) {
	for name := range models {
		if strings.HasPrefix(name, "action ") {
			continue // shows no object
		}
		if !slices.ContainsFunc(
			slices.Collect(maps.Keys(parities)),
			func(key string) bool { return key == name || strings.HasPrefix(key, name+",") },
		) {
			t.Errorf("parities does not say how %s is filled", name)
		}
	}
	for name, p := range parities {
		t.Run(name, func(t *testing.T) {
			model, object := p.fill()
			attributes, fields := tags(model, "tfsdk"), tags(object, "json")
			for attribute, value := range attributes {
				if told := !slices.Contains(p.notFilled, attribute); told == isNull(value) {
					t.Errorf("%s is %v, although filled = %v", attribute, value, told)
				}
			}
			for field := range fields {
				if _, shown := attributes[field]; shown == slices.Contains(p.notShown, field) {
					t.Errorf("the field %s is shown = %v, which notShown contradicts", field, shown)
				}
			}
			for _, field := range append(slices.Clone(p.notShown), p.notFilled...) {
				if attributes[field] == (reflect.Value{}) && fields[field] == (reflect.Value{}) {
					t.Errorf("%s is neither a field nor an attribute", field)
				}
			}
		})
	}
}

// configurable are the attributes of a type that users set.
func configurable(t *testing.T, typeName string) []string {
	t.Helper()
	var names []string
	p := New("test")()
	for _, create := range p.Resources(t.Context()) {
		var name resource.MetadataResponse
		var schema resource.SchemaResponse
		create().Metadata(t.Context(), resource.MetadataRequest{ProviderTypeName: "deviceaccess"}, &name)
		create().Schema(t.Context(), resource.SchemaRequest{}, &schema)
		for attribute, a := range schema.Schema.Attributes {
			if name.TypeName == typeName && (a.IsRequired() || a.IsOptional()) {
				names = append(names, attribute)
			}
		}
	}
	for _, create := range p.DataSources(t.Context()) {
		var name datasource.MetadataResponse
		var schema datasource.SchemaResponse
		create().Metadata(t.Context(), datasource.MetadataRequest{ProviderTypeName: "deviceaccess"}, &name)
		create().Schema(t.Context(), datasource.SchemaRequest{}, &schema)
		for attribute, a := range schema.Schema.Attributes {
			if "data "+name.TypeName == typeName && (a.IsRequired() || a.IsOptional()) {
				names = append(names, attribute)
			}
		}
	}
	slices.Sort(names)
	return names
}

// asks are the parameters of a request.
func asks(t *testing.T, request any) map[string]any {
	t.Helper()
	encoded, err := json.Marshal(request)
	parameters := map[string]any{}
	if err == nil {
		err = json.Unmarshal(encoded, &parameters)
	}
	if err != nil {
		t.Fatal(err)
	}
	return parameters
}

func TestRequestsAskForWhatIsConfigured(t *testing.T) {
	code := accessCodeModel{
		AccessCodeID: types.StringValue(
			"c1",
		),
		DeviceID: types.StringValue("d1"),
		Name:     types.StringValue("Guest"),
		Code:     types.StringValue("2468"),
		StartsAt: instant{
			types.StringValue("2030-01-01T00:00:00Z"),
		},
		EndsAt:                        instant{types.StringValue("2030-01-02T00:00:00Z")},
		IsExternalModificationAllowed: types.BoolValue(true),
	}
	// What changes each attribute, and "" where the server is not told: it is about Terraform itself.
	changes := map[string]struct {
		parameter string
		change    func(*accessCodeModel)
	}{
		"name": {"name", func(m *accessCodeModel) { m.Name = types.StringValue("Cook") }},
		"code": {"code", func(m *accessCodeModel) { m.Code = types.StringValue("8642") }},
		"starts_at": {
			"starts_at",
			func(m *accessCodeModel) { m.StartsAt = instant{types.StringValue("2029-01-01T00:00:00Z")} },
		},
		"ends_at": {
			"ends_at",
			func(m *accessCodeModel) { m.EndsAt = instant{types.StringValue("2031-01-01T00:00:00Z")} },
		},
		"code_wo_version": {"code", func(m *accessCodeModel) {
			m.Code, m.CodeWO, m.CodeWOVersion = types.StringNull(), types.StringValue("8642"), types.Int64Value(1)
		}},
		"is_external_modification_allowed": {
			"is_external_modification_allowed",
			func(m *accessCodeModel) { m.IsExternalModificationAllowed = types.BoolValue(false) },
		},
		"code_wo":            {"", func(m *accessCodeModel) { m.CodeWO = types.StringValue("8642") }},
		"wait_until_on_lock": {"", func(m *accessCodeModel) { m.WaitUntilOnLock = types.BoolValue(false) }},
		"keepers": {"", func(m *accessCodeModel) {
			m.Keepers = types.MapValueMust(types.StringType, map[string]attr.Value{"tenant": types.StringValue("Ada")})
		}},
		"device_id": {"", func(m *accessCodeModel) { m.DeviceID = types.StringValue("d2") }}, // makes a new code
	}
	// What a creation alone asks for, by parameter: to change it makes a new code, or is nothing that the server keeps.
	creations := map[string]func(*accessCodeModel){
		"attempt_for_offline_device": func(m *accessCodeModel) { m.AttemptForOfflineDevice = types.BoolValue(false) },
		"common_code_key":            func(m *accessCodeModel) { m.CommonCodeKey = types.StringValue("stay-17") },
		"use_backup_access_code_pool": func(m *accessCodeModel) {
			m.Backup = backup{types.BoolValue(true), types.BoolUnknown(), types.StringUnknown()}.object()
		},
		"is_offline_access_code": func(m *accessCodeModel) {
			m.Offline = offline{types.BoolValue(false), types.StringNull()}.object()
		},
		"is_one_time_use": func(m *accessCodeModel) {
			m.Offline = offline{types.BoolValue(true), types.StringNull()}.object()
		},
		"max_time_rounding": func(m *accessCodeModel) {
			m.Offline = offline{types.BoolValue(false), types.StringValue("1d")}.object()
		},
		"prefer_native_scheduling": func(m *accessCodeModel) { m.PreferNativeScheduling = types.BoolValue(true) },
		"preferred_code_length":    func(m *accessCodeModel) { m.PreferredCodeLength = types.Int64Value(6) },
	}
	tried := slices.Collect(maps.Keys(changes))
	for parameter := range creations {
		at, _ := attributeOf(parameter)
		root, _ := at.Steps().NextStep()
		tried = append(tried, root.String())
	}
	slices.Sort(tried)
	tried = slices.Compact(tried)
	if want := configurable(t, "deviceaccess_access_code"); !slices.Equal(tried, want) {
		t.Fatalf("the schema has %q, this test tries %q", want, tried)
	}
	for attribute, configure := range creations {
		configured := code
		configure(&configured)
		if asks(t, configured.createRequest())[attribute] == nil {
			t.Errorf("a creation does not ask for %s", attribute)
		}
		if _, differs := configured.updateRequest(&code); differs {
			t.Errorf("%s alone asks for an update", attribute)
		}
	}
	for attribute, c := range changes {
		changed := code
		c.change(&changed)
		request, differs := changed.updateRequest(&code)
		if asked := asks(t, request)[c.parameter]; differs != (c.parameter != "") || differs && asked == nil {
			t.Errorf("%s changes: %v, and asks for %v", attribute, differs, asked)
		}
		if c.parameter != "" && asks(t, changed.createRequest())[c.parameter] == nil {
			t.Errorf("a creation does not ask for %s", attribute)
		}
	}
	if asks(t, code.createRequest())["device_id"] != "d1" {
		t.Error("a creation does not ask for device_id")
	}
	hook := webhookModel{
		URL:        types.StringValue("https://example.com"),
		EventTypes: types.SetValueMust(types.StringType, []attr.Value{types.StringValue("*")}),
	}
	if got, want := slices.Sorted(
		maps.Keys(asks(t, hook.createRequest(t.Context()))),
	), slices.DeleteFunc(configurable(t, "deviceaccess_webhook"), func(name string) bool {
		return name == "store_secret" || name == "secret_version" // about the state, and for rotations
	}); !slices.Equal(
		got,
		want,
	) {
		t.Errorf("a webhook is created with %q, configurable are %q", got, want)
	}
	devices := devicesModel{
		DeviceType:         types.StringValue("x"),
		ConnectedAccountID: types.StringValue("x"),
		Search:             types.StringValue("x"),
	}
	for _, condition := range configurable(t, "data deviceaccess_devices") {
		if asks(t, devices.request())[condition] != "x" {
			t.Errorf("devices are not searched by %s", condition)
		}
	}
}

// healthOfWebhooks are fields that change with each delivery, so that a plan with them would never be empty.
var healthOfWebhooks = []string{"last_success_at", "failing_since", "consecutive_failures", "events_waiting"}
