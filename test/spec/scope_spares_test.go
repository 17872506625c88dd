package spec_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// with lists parameters that need another one, by parameter or by operation. A name after a slash says whose thing to
// use.
var with = map[string]string{
	"/access_codes/get device_id":                             "code/code",
	"/access_codes/get code":                                  "device_id",
	"/access_codes/unmanaged/get device_id":                   "code/unmanaged_code",
	"/access_codes/unmanaged/get code":                        "device_id",
	"/events/get device_id":                                   "event_type",
	"/events/list":                                            "since",
	"/acs/users/remove_from_access_group acs_access_group_id": "acs_user_id",
	"/acs/entrances/grant_access acs_entrance_id":             "acs_user_id",
	"/acs/access_groups/add_user acs_access_group_id":         "acs_user_id",
	"/acs/access_groups/remove_user acs_access_group_id":      "acs_user_id",
	"/user_identities/merge user_identity_id":                 "merged_user_identity_ids",
	"/user_identities/merge user_identity_key":                "merged_user_identity_keys",
	"/user_identities/merge merged_user_identity_id":          "user_identity_id",
	"/user_identities/merge merged_user_identity_keys":        "user_identity_key",
	"/user_identities/add_acs_user acs_user_id":               "user_identity_id",
	"/client_sessions/grant_access client_session_id":         "connected_account_ids",
	"/client_sessions/grant_access user_identifier_key":       "connected_account_ids",
	"/client_sessions/grant_access connected_account_id":      "client_session_id",
	"/client_sessions/grant_access connect_webview_id":        "client_session_id",
	"/client_sessions/grant_access user_identity_id":          "client_session_id",
	"/access_codes/list search":                               "device_id",
	"/access_codes/list user_identifier_key":                  "device_id",
	"/access_codes/report_device_constraints":                 "supported_code_lengths",
	"/user_identities/create acs_system_id":                   "full_name",
	"/client_sessions/get_or_create":                          "user_identifier_key",
	"/client_sessions/create":                                 "user_identifier_key",
	"/thermostats/heat":                                       "heating_set_point_celsius",
	"/thermostats/cool":                                       "cooling_set_point_celsius",
	"/thermostats/heat_cool":                                  "heating_set_point_celsius cooling_set_point_celsius",
	"/thermostats/create_climate_preset":                      "hvac_mode_setting",
	"/thermostats/set_fan_mode":                               "fan_mode_setting",
	"/thermostats/simulate/temperature_reached":               "temperature_celsius",
}

func init() {
	for _, of := range strings.Fields("get update delete suspend unsuspend list_accessible_entrances " +
		"revoke_access_to_all_entrances") {
		with["/acs/users/"+of+" acs_system_id"] = "user_identity_id"
		with["/acs/users/"+of+" user_identity_id"] = "acs_system_id"
	}
}

// otherwise lists the responses to own things that are not 200.
var otherwise = map[string]string{
	"publishable key /client_sessions/create":                            "403 publishable_keys_must_create_empty_client_sessions",
	"publishable key /client_sessions/get_or_create":                     "403 publishable_keys_must_create_empty_client_sessions",
	"publishable key /client_sessions/create user_identifier_key":        "200",
	"publishable key /client_sessions/get_or_create user_identifier_key": "200",
	"client session /connect_webviews/create customer_key":               "400 invalid_input", // belongs to no customer
	"client session /access_codes/create common_code_key":                "400 invalid_input", // it creates no keys
	"client session of a customer /access_codes/create common_code_key":  "400 invalid_input",
	"/noise_sensors/noise_thresholds/create":                             "400 invalid_input", // the sensor has a fixed set
	"/noise_sensors/noise_thresholds/delete":                             "400 invalid_input",
	"/user_identities/unmanaged/get":                                     "404 user_identity_not_found", // all are managed
	"/user_identities/unmanaged/update":                                  "404 user_identity_not_found",
}

// alike lists parameters, or all of an operation, for which own things are answered like absent ones.
var alike = map[string]string{
	"/noise_sensors/list connect_webview_id":                "the person of the webview has a lock",
	"/thermostats/list connect_webview_id":                  "those of the webview are locks",
	"/user_identities/unmanaged/get":                        "nor unmanaged people",
	"/user_identities/unmanaged/list":                       "nor unmanaged people",
	"/user_identities/unmanaged/update":                     "nor unmanaged people",
	"/acs/access_groups/list search":                        "groups of all simulated systems are called the same",
	"/acs/entrances/list search":                            "as are entrances",
	"/acs/systems/list search":                              "and systems",
	"/acs/users/unmanaged/list search":                      "and the people whom they come with",
	"/acs/users/unmanaged/list user_identity_id":            "without a person",
	"/acs/users/unmanaged/list user_identity_email_address": "without a person",
	"/acs/users/unmanaged/list user_identity_phone_number":  "without a person",
	"/devices/unmanaged/list connect_webview_id":            "those of the webview are managed",
	"/events/list acs_access_group_id":                      "nothing has happened to one",
	createPhone + " custom_sdk_installation_id":             "a new one makes a phone, too",
}

// makesNamed are the operations that set a name on what they create. The same name in another workspace does not
// matter.
var makesNamed = []string{
	"/client_sessions/create",
	"/client_sessions/get_or_create",
	"/user_identities/create",
	"/user_identities/update",
	"/access_codes/create",
	"/connected_accounts/update",
	"/connect_webviews/create",
}

// wantOwn returns the expected response to a request with own things.
func wantOwn(who string, o reachOperation, p parameter) string {
	for _, key := range []string{who + " " + o.path + " " + p.name, who + " " + o.path, o.path + " " + p.name, o.path} {
		if want := otherwise[key]; want != "" {
			return want
		}
	}
	return "200"
}

// spareThings are things that tests may consume.
type spareThings struct {
	fresh    map[string]func(t *testing.T) things // created for each request, since an operation ends or changes them
	accounts []string                             // in the scope of every client with accounts
	used     map[string]things                    // instead of own things that others might change

	names           map[string]chan any // names used in the other workspace
	account, device chan string
}

func (p *spareThings) name(t *testing.T, kind string, value any) any {
	t.Helper()
	pool := p.names[kind]
	if pool == nil {
		return value
	}
	select {
	case name := <-pool:
		return name
	default:
		t.Fatalf("there are too few names of the kind %s: make more in newSpares", kind)
		return nil
	}
}

func take(t *testing.T, what string, from chan string) string {
	t.Helper()
	select {
	case one := <-from:
		return one
	default:
		t.Fatalf("there are too few spare %s: make more in newSpares", what)
		return ""
	}
}

const spareNames, spareAccounts, spareDevices, spareGroups = 18, 10, 16, 8

func newSpares(t *testing.T, s, other *apptest.Server, own, foreign things) *spareThings {
	t.Helper()
	p := &spareThings{
		names:   map[string]chan any{},
		account: make(chan string, spareAccounts),
		device:  make(chan string, spareDevices),
	}
	for _, kind := range []string{
		"user_identifier_key",
		"user_identity_key",
		"user_identity_email_address",
		"user_identity_phone_number",
		"customer_key",
		"common_code_key",
	} {
		p.names[kind] = make(chan any, spareNames)
	}
	for i := range spareNames {
		key, name, email, number := fmt.Sprint(
			"elsewhere user ",
			i,
		), fmt.Sprint(
			"elsewhere person ",
			i,
		), fmt.Sprintf(
			"elsewhere%d@things.example",
			i,
		), fmt.Sprintf(
			"+1555%07d",
			numbers.Add(1),
		)
		session(t, other, params{"user_identifier_key": key})
		newPerson(t, other, params{"user_identity_key": name, "email_address": email, "phone_number": number})
		customer := fmt.Sprint("elsewhere customer ", i)
		madeBy(t, other, "/connect_webviews/create", "", params{"customer_key": customer})
		p.names["customer_key"] <- customer
		p.names["common_code_key"] <- madeBy(t, other, "/access_codes/create", "access_code", params{"device_id": foreign["paid_device_id"], "common_code_key": fmt.Sprint("elsewhere common ", i), "sync": true})["common_code_key"]
		p.names["user_identifier_key"] <- key
		p.names["user_identity_key"] <- name
		p.names["user_identity_email_address"] <- email
		p.names["user_identity_phone_number"] <- number
	}
	for range spareAccounts {
		id, err := s.App.Access.Accounts.ConnectAccount(
			t.Context(),
			account.NewAccount{
				WorkspaceID: uuid.MustParse(s.WorkspaceID),
				Adapter:     account.SandboxAdapter,
				DisplayName: "Spare",
				Config:      fmt.Appendf(nil, `{"key":%q,"profiles":["nuki"]}`, uuid.NewString()),
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		p.accounts = append(p.accounts, id.String())
		p.account <- id.String()
	}
	hub, behind := locksOf(t, s, account.NewAccount{}, 1, "august")
	many, devices := locksOf(t, s, account.NewAccount{}, spareDevices, "nuki")
	p.accounts = append(p.accounts, many, hub)
	for _, d := range devices {
		p.device <- d.DeviceID
	}
	for _, id := range p.accounts {
		madeBy(
			t,
			s,
			"/connected_accounts/update",
			"",
			params{"connected_account_id": id, "customer_key": own["customer_key"]},
		)
	}
	p.used = map[string]things{
		"/user_identities/update": {
			"user_identity_id": newPerson(t, s, params{"full_name": "Anybody"}).UserIdentityID,
		},
		"/connected_accounts/update": {"connected_account_id": take(t, "accounts", p.account)},
	}
	groups := make(chan string, spareGroups)
	for len(groups) < spareGroups {
		y := s.AccessSystem(t)
		p.accounts = append(p.accounts, y.AccountID)
		madeBy(t, s, "/connected_accounts/update", "",
			params{"connected_account_id": y.AccountID, "customer_key": own["customer_key"]})
		groups <- groupNamed(t, s, y, "Everyone")
		groups <- groupNamed(t, s, y, "Technicians")
	}
	p.freshly(s, own)
	p.fresh["/acs/access_groups/delete"] = func(t *testing.T) things {
		return things{"acs_access_group_id": take(t, "access groups", groups)}
	}
	for _, path := range []string{"/devices/simulate/connect_to_hub", "/devices/simulate/disconnect_from_hub"} {
		p.fresh[path] = func(*testing.T) things { return things{"device_id": behind[0].DeviceID} }
	}
	return p
}

// freshly defines what is created for which operations.
func (p *spareThings) freshly(s *apptest.Server, own things) {
	of := func(name, path, key string, in params) func(t *testing.T) things {
		return func(t *testing.T) things {
			return things{name: madeBy(t, s, path, key, in)[strings.TrimPrefix(name, "unmanaged_")]}
		}
	}
	device := own["device_id"]
	person := func(t *testing.T) api.UserIdentity {
		return newPerson(t, s, params{"full_name": "Fresh", "user_identity_key": uuid.NewString()})
	}
	userOf := func(t *testing.T, identity string) string {
		in := params{
			"acs_system_id":        own["acs_system_id"],
			"full_name":            "Fresh",
			"acs_access_group_ids": []any{own["acs_access_group_id"]},
		}
		if identity != "" {
			in["user_identity_id"] = identity
		}
		return fmt.Sprint(madeBy(t, s, "/acs/users/create", "acs_user", in)["acs_user_id"])
	}
	linked := func(t *testing.T) things {
		identity := person(t).UserIdentityID
		return things{"acs_user_id": userOf(t, identity), "user_identity_id": identity}
	}
	unmanaged := func(t *testing.T) things {
		return of(
			"unmanaged_access_code_id",
			"/access_codes/simulate/create_unmanaged_access_code",
			"access_code",
			params{"device_id": device, "code": newPIN(), "name": "Fresh"},
		)(
			t,
		)
	}
	spareDevice := func(t *testing.T) things { return things{"device_id": take(t, "devices", p.device)} }
	spareAccount := func(t *testing.T) things { return things{"connected_account_id": take(t, "accounts", p.account)} }
	aSession := of("client_session_id", "/client_sessions/create", "client_session", params{})
	p.fresh = map[string]func(t *testing.T) things{
		"/phones/deactivate": func(t *testing.T) things {
			return things{"phone_id": newPhone(t, s, params{"user_identity_id": own["user_identity_id"]}).DeviceID}
		},
		"/access_codes/create": func(*testing.T) things { return things{"common_code_key": uuid.NewString()} },
		"/access_codes/delete": of(
			"access_code_id",
			"/access_codes/create",
			"access_code",
			params{"device_id": device, "sync": true},
		),
		"/access_codes/pull_backup_access_code":      func(t *testing.T) things { return things{"backed_access_code_id": backedCode(t, s, device)} },
		"/access_codes/unmanaged/convert_to_managed": unmanaged,
		"/access_codes/unmanaged/update":             unmanaged,
		"/access_codes/unmanaged/delete":             unmanaged,
		"/devices/delete":                            spareDevice,
		"/devices/simulate/remove":                   spareDevice,
		"/devices/simulate/disconnect":               spareDevice,
		"/connected_accounts/delete":                 spareAccount,
		"/connected_accounts/simulate/disconnect":    spareAccount,
		"/client_sessions/delete":                    aSession,
		"/client_sessions/revoke":                    aSession,
		"/client_sessions/create":                    func(*testing.T) things { return things{"user_identifier_key": uuid.NewString()} },
		"/connect_webviews/delete": of(
			"connect_webview_id",
			"/connect_webviews/create",
			"connect_webview",
			params{},
		),
		"/webhooks/delete": of(
			"webhook_id",
			"/webhooks/create",
			"webhook",
			params{"url": "https://hooks.example/fresh"},
		),
		"/deviceaccess/webhooks/rotate_secret": of(
			"webhook_id",
			"/webhooks/create",
			"webhook",
			params{"url": "https://hooks.example/rotated"},
		),
		"/user_identities/delete": func(t *testing.T) things { return things{"user_identity_id": person(t).UserIdentityID} },
		"/user_identities/create": func(*testing.T) things {
			return things{
				"user_identity_key":           uuid.NewString(),
				"user_identity_email_address": uuid.NewString() + "@things.example",
				"user_identity_phone_number":  fmt.Sprintf("+1555%07d", numbers.Add(1)),
			}
		},
		"/user_identities/add_acs_user": func(t *testing.T) things {
			one := person(t)
			return things{
				"user_identity_id":  one.UserIdentityID,
				"user_identity_key": *one.UserIdentityKey,
				"acs_user_id":       userOf(t, ""),
			}
		},
		"/user_identities/remove_acs_user": linked,
		"/thermostats/delete_climate_preset": func(t *testing.T) things {
			key := uuid.NewString()
			madeBy(t, s, "/thermostats/create_climate_preset", "", params{
				"device_id": own["thermostat_device_id"], "climate_preset_key": key, "hvac_mode_setting": "off",
			})
			return things{"climate_preset_key": key}
		},
		"/thermostats/schedules/delete": func(t *testing.T) things {
			return things{"thermostat_schedule_id": madeBy(
				t, s, "/thermostats/schedules/create", "thermostat_schedule", params{
					"device_id":          own["thermostat_device_id"],
					"climate_preset_key": "eco",
					"starts_at":          plain["starts_at"](),
					"ends_at":            plain["ends_at"](),
				},
			)["thermostat_schedule_id"]}
		},
		"/thermostats/daily_programs/delete": of(
			"thermostat_daily_program_id",
			"/thermostats/daily_programs/create",
			"thermostat_daily_program",
			params{"device_id": own["thermostat_device_id"], "name": "Fresh", "periods": plain["periods"]()},
		),
		"/acs/users/create":              func(t *testing.T) things { return things{"user_identity_id": person(t).UserIdentityID} },
		"/acs/entrances/grant_access":    linked,
		"/acs/access_groups/add_user":    linked,
		"/acs/access_groups/remove_user": linked,
		"/user_identities/merge": func(t *testing.T) things {
			one, other := person(t), person(t)
			return things{
				"user_identity_id":          one.UserIdentityID,
				"user_identity_key":         *one.UserIdentityKey,
				"merged_user_identity_id":   other.UserIdentityID,
				"merged_user_identity_keys": *other.UserIdentityKey,
			}
		},
		"/acs/users/delete":                         linked,
		"/acs/users/suspend":                        linked,
		"/acs/users/unsuspend":                      linked,
		"/acs/users/remove_from_access_group":       linked,
		"/acs/users/revoke_access_to_all_entrances": linked,
	}
}

// changing are columns that the server changes on its own, such as the times of the last and the next pass.
var changing = strings.Fields(
	`due_at wake_seq last_good_read_at reread_at read_needed synced_at next_attempt_at retention_due_at failures`,
)

// belonging returns the ids of an object and of everything that belongs to it.
func belonging(rows map[string][]apptest.Row, id string) []string {
	all := []string{id}
	for more := true; more; {
		more = false
		for table, list := range rows {
			column := strings.TrimSuffix(table, "s") + "_id"
			if of, is := strings.CutSuffix(table, "ies"); is {
				column = of + "y_id"
			}
			if table == "phones" {
				column = "device_id"
			}
			for _, row := range list {
				own, _ := row[column].(string)
				if own == "" || slices.Contains(all, own) {
					continue
				}
				for _, value := range row {
					if text, is := value.(string); is && slices.Contains(all, text) {
						all, more = append(all, own), true
						break
					}
				}
			}
		}
	}
	return all
}

// rowsOf returns the rows that belong to an object, without the changing columns.
func rowsOf(rows map[string][]apptest.Row, id string) map[string]map[string]any {
	all, out := belonging(rows, id), map[string]map[string]any{}
	for table, list := range rows {
		for _, row := range list {
			mine := false
			kept := map[string]any{}
			for column, value := range row {
				text, is := value.(string)
				mine = mine || is && slices.Contains(all, text)
				if !slices.Contains(changing, column) {
					kept[column] = value
				}
			}
			if mine {
				key, _ := json.Marshal(kept)
				out[table+string(key)] = kept
			}
		}
	}
	return out
}
