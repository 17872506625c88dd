package spec_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// keyedRequest is a valid request of an operation with an Idempotency-Key, and a difference that makes it another
// request.
type keyedRequest struct {
	in, other params
	token     string // empty for the key of the workspace
}

// Each operation with an Idempotency-Key is interrupted in ways that simulate crashes and repeated at another instance.
// It is done once. An operation that is missing in the table of requests fails the test.
func TestIdempotency_EveryOperationIsDoneOnce(t *testing.T) {
	t.Parallel()
	doc, err := rest.Document()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		end    string // of its transaction; empty for a commit
		answer string // empty if it is lost
	}{
		"its answer is lost":           {},
		"refused when it is committed": {"raise exception 'no'", "500 internal_server_error"},
		"its connection ends before that": {
			"perform pg_terminate_backend(pg_backend_pid())",
			"503 service_unavailable",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, db := keyedServer(t, losingAnswers)
			cut := cutOff{
				one:       one,
				two:       one.StartAnother(t),
				db:        db,
				committed: c.end == "",
				answer:    c.answer,
			}
			if !cut.committed {
				cutOffBy(t, db, c.end)
			}
			requests, walked := keyedRequests(t, one), 0
			for path, item := range doc.Paths.Map() {
				if item.Post.Parameters.GetByInAndName("header", "Idempotency-Key") == nil {
					continue
				}
				walked++
				t.Run(path[1:], func(t *testing.T) {
					made, known := requests[path]
					if !known {
						t.Fatal("add a request of it to keyedRequests")
					}
					r := made(t) // before any operation is tested, since preparing uses them, too
					t.Parallel()
					cut.isDoneOnce(t, path, r)
				})
			}
			if walked < 20 || walked != len(requests) {
				t.Errorf("%d operations of the contract take a key, and %d are tried", walked, len(requests))
			}
		})
	}
}

// lost is the prefix of keys whose request is done without a response.
const lost = "lost "

func losingAnswers(c *app.Config) {
	recorded := c.Wrap
	c.Wrap = func(next http.Handler) http.Handler {
		return recorded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.Header.Get("Idempotency-Key"), lost) {
				r.Header.Set("Idempotency-Key", strings.TrimPrefix(r.Header.Get("Idempotency-Key"), lost))
				next.ServeHTTP(discarding{w.Header()}, r)
				panic(http.ErrAbortHandler)
			}
			next.ServeHTTP(w, r)
		}))
	}
}

// cutOffBy ends transactions of the operations in the table cut_off when they are about to commit. Each of them writes
// an audit log entry.
func cutOffBy(t *testing.T, db *store.DB, end string) {
	t.Helper()
	run(t, db, "create table cut_off (operation text primary key)")
	run(t, db, `create function cut_off() returns trigger language plpgsql as $$ begin
		if exists (select from cut_off c where c.operation = new.operation) then `+end+`; end if; return null; end $$`)
	run(
		t,
		db,
		"create constraint trigger cut_off after insert or update on audit_log deferrable initially deferred for each "+
			"row execute function cut_off()",
	)
}

// cutOff is a way in which the first instance fails to respond.
type cutOff struct {
	one, two  *apptest.Server
	db        *store.DB
	committed bool   // before the commit
	answer    string // of the first instance, if it was not committed
}

func (c cutOff) isDoneOnce(t *testing.T, path string, r keyedRequest) {
	t.Helper()
	token := r.token
	if token == "" {
		token = c.one.APIKey
	}
	body, other := mustWrite(t, r.in), mustWrite(t, also(r.in, r.other))
	key := uuid.NewString()
	entries := func() int { return count(t, c.db, "select count(*) from audit_log where operation = $1", path) }
	before := entries()
	c.cut(t, token, path, key, body)
	done, kept := entries()-before, count(t, c.db, "select count(*) from idempotency_keys where operation = $1", path)
	if want := map[bool]int{true: 1}[c.committed]; done != want || kept != want {
		t.Errorf("cut off, it is done %d times, and %d keys are kept, want %d", done, kept, want)
	}
	first := sent(t, c.two, token, path, key, body)
	if first.status != http.StatusOK || first.replayed != c.committed {
		t.Fatalf("again: %+v", first)
	}
	for _, s := range []*apptest.Server{c.one, c.two} {
		if again := sent(t, s, token, path, key, body); again.body != first.body || !again.replayed {
			t.Errorf("a third time: %+v, want %+v", again, first)
		}
	}
	if a := sent(t, c.two, token, path, key, other); a.kind(t) != "422 idempotency_key_reused" {
		t.Errorf("other parameters: %+v", a)
	}
	if done := entries() - before; done != 1 {
		t.Errorf("done %d times", done)
	}
}

// cut sends a request that fails or gets no response.
func (c cutOff) cut(t *testing.T, token, path, key, body string) {
	t.Helper()
	if c.committed {
		if a, err := ask(t.Context(), c.one, token, path, lost+key, body); err == nil {
			t.Fatalf("got a response: %+v", a)
		}
		return
	}
	run(t, c.db, "insert into cut_off values ($1)", path)
	if a := sent(t, c.one, token, path, key, body); a.kind(t) != c.answer {
		t.Fatalf("%+v, want %s", a, c.answer)
	}
	run(t, c.db, "delete from cut_off where operation = $1", path)
}

func mustWrite(t *testing.T, in params) string {
	t.Helper()
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// also merges in with the difference.
func also(in, other params) params {
	out := params{}
	for name, value := range in {
		out[name] = value
	}
	for name, value := range other {
		out[name] = value
	}
	return out
}

func keyedRequests(t *testing.T, s *apptest.Server) map[string]func(t *testing.T) keyedRequest {
	t.Helper()
	device := s.Device(t, "august")
	personal, _ := s.Credential(
		t,
		auth.NewCredential{Kind: domain.PAT, WorkspaceIDs: []uuid.UUID{uuid.MustParse(s.WorkspaceID)}},
	)
	emptied := s.Workspace(t, "Emptied")
	code := func(t *testing.T, more params) any {
		return madeBy(t, s, "/access_codes/create", "access_code", also(params{
			"device_id": device,
			"code":      newPIN(),
			"sync":      true,
		}, more))["access_code_id"]
	}
	unmanaged := func(t *testing.T) any {
		return madeBy(t, s, "/access_codes/simulate/create_unmanaged_access_code", "access_code", params{
			"device_id": device,
			"code":      newPIN(),
			"name":      "Found",
		})["access_code_id"]
	}
	of := func(in, other params) func(*testing.T) keyedRequest {
		return func(*testing.T) keyedRequest { return keyedRequest{in: in, other: other} }
	}
	aboutCode := func(id func(*testing.T) any, in, other params) func(*testing.T) keyedRequest {
		return func(t *testing.T) keyedRequest {
			return keyedRequest{in: also(params{"access_code_id": id(t)}, in), other: other}
		}
	}
	plainCode := func(t *testing.T) any { return code(t, nil) }
	_, sensor := s.Connect(t, "noiseaware")
	threshold := func(seconds int) params {
		return params{
			"device_id":                sensor,
			"starts_daily_at":          fmt.Sprintf("23:00:%02d", seconds),
			"ends_daily_at":            fmt.Sprintf("23:00:%02d", seconds+1),
			"noise_threshold_decibels": 50,
		}
	}
	aboutThreshold := func(t *testing.T, seconds int) params {
		made := createThreshold(t, s, sensor, threshold(seconds))
		return params{"device_id": sensor, "noise_threshold_id": made.NoiseThreshold.NoiseThresholdID}
	}
	another := params{"access_code_id": uuid.NewString()}
	named := params{"name": "Other"}
	requests := map[string]func(*testing.T) keyedRequest{
		"/workspaces/create": func(*testing.T) keyedRequest {
			return keyedRequest{in: params{"name": "New", "is_sandbox": true}, other: named, token: personal}
		},
		"/workspaces/reset_sandbox": func(*testing.T) keyedRequest {
			return keyedRequest{in: params{}, other: params{"workspace_id": s.WorkspaceID}, token: emptied.APIKey}
		},
		createPhone: of(
			params{"user_identity_id": newPerson(t, s, params{}).UserIdentityID},
			params{"user_identity_id": uuid.NewString()},
		),
		"/client_sessions/create": of(
			params{"user_identifier_key": "once"},
			params{"user_identifier_key": "other"},
		),
		"/client_sessions/get_or_create": of(
			params{"user_identifier_key": "got once"},
			params{"user_identifier_key": "other"},
		),
		"/webhooks/create": of(
			params{"url": "https://hooks.example/once"},
			params{"url": "https://hooks.example/other"},
		),
		"/deviceaccess/webhooks/rotate_secret": func(t *testing.T) keyedRequest {
			hook := madeBy(t, s, "/webhooks/create", "webhook", params{"url": "https://hooks.example/rotated"})
			return keyedRequest{
				in:    params{"webhook_id": hook["webhook_id"]},
				other: params{"overlap_seconds": 0},
			}
		},
		"/connect_webviews/create": of(
			params{"accepted_providers": []string{"august"}},
			params{"accepted_providers": []string{"yale"}},
		),
		"/locks/lock_door":   of(params{"device_id": device}, params{"device_id": uuid.NewString()}),
		"/locks/unlock_door": of(params{"device_id": device}, params{"device_id": uuid.NewString()}),
		"/locks/configure_auto_lock": of(
			params{"device_id": device, "auto_lock_enabled": false},
			params{"auto_lock_enabled": true},
		),
		"/noise_sensors/noise_thresholds/create": of(
			threshold(1),
			params{"name": "Other"},
		),
		"/noise_sensors/noise_thresholds/update": func(t *testing.T) keyedRequest {
			return keyedRequest{in: also(aboutThreshold(t, 2), params{"name": "New"}), other: params{"name": "Other"}}
		},
		"/noise_sensors/noise_thresholds/delete": func(t *testing.T) keyedRequest {
			return keyedRequest{in: aboutThreshold(t, 3), other: params{"noise_threshold_id": uuid.NewString()}}
		},
		"/locks/simulate/keypad_code_entry": of(
			params{"device_id": device, "code": "987123"},
			params{"code": "987124"},
		),
		"/locks/simulate/manual_lock_via_keypad": of(
			params{"device_id": device},
			params{"device_id": uuid.NewString()},
		),
		"/access_codes/create":          of(params{"device_id": device, "name": "Once"}, named),
		"/access_codes/create_multiple": of(params{"device_ids": []string{device}, "name": "Many"}, named),
		"/access_codes/update_multiple": func(t *testing.T) keyedRequest {
			code(t, params{"common_code_key": "common"})
			return keyedRequest{in: params{"common_code_key": "common", "name": "New"}, other: named}
		},
		"/access_codes/update": aboutCode(plainCode, params{"name": "New"}, named),
		"/access_codes/delete": aboutCode(plainCode, nil, another),
		"/access_codes/pull_backup_access_code": aboutCode(
			func(t *testing.T) any { return backedCode(t, s, device) },
			nil,
			another,
		),
		"/access_codes/simulate/create_unmanaged_access_code": of(
			params{"device_id": device, "code": newPIN(), "name": "Found once"},
			named,
		),
		"/access_codes/unmanaged/update":             aboutCode(unmanaged, params{"is_managed": true}, another),
		"/access_codes/unmanaged/convert_to_managed": aboutCode(unmanaged, nil, another),
		"/access_codes/unmanaged/delete":             aboutCode(unmanaged, nil, another),
		"/acs/entrances/unlock": func(t *testing.T) keyedRequest {
			y := s.AccessSystem(t)
			return keyedRequest{
				in:    params{"acs_entrance_id": entranceNamed(t, s, y, y.Memory(t).Entrances[0].Name)},
				other: params{"acs_entrance_id": uuid.NewString()},
			}
		},
		"/acs/users/create": func(t *testing.T) keyedRequest {
			return keyedRequest{
				in:    params{"acs_system_id": s.AccessSystem(t).ID, "full_name": "Once"},
				other: params{"full_name": "Other"},
			}
		},
		"/user_identities/create": of(params{"full_name": "Once"}, params{"full_name": "Other"}),
	}
	maps.Copy(requests, keyedClimateRequests(t, s))
	return requests
}

// keyedClimateRequests are those of thermostats.
func keyedClimateRequests(t *testing.T, s *apptest.Server) map[string]func(t *testing.T) keyedRequest {
	t.Helper()
	_, device := s.Connect(t, "nest")
	of := func(in, other params) func(*testing.T) keyedRequest {
		return func(*testing.T) keyedRequest {
			return keyedRequest{in: also(params{"device_id": device}, in), other: other}
		}
	}
	another := params{"device_id": uuid.NewString()}
	heat := params{"heating_set_point_celsius": 20}
	heatCool := also(heat, params{"cooling_set_point_celsius": 26})
	program := params{"name": "Day", "periods": plain["periods"]()}
	return map[string]func(*testing.T) keyedRequest{
		"/thermostats/heat":                    of(heat, another),
		"/thermostats/cool":                    of(params{"cooling_set_point_celsius": 26}, another),
		"/thermostats/heat_cool":               of(heatCool, another),
		"/thermostats/off":                     of(nil, another),
		"/thermostats/set_hvac_mode":           of(params{"hvac_mode_setting": "eco"}, another),
		"/thermostats/set_fan_mode":            of(params{"fan_mode_setting": "on"}, another),
		"/thermostats/activate_climate_preset": of(params{"climate_preset_key": "eco"}, another),
		"/thermostats/create_climate_preset": of(
			params{"climate_preset_key": "once", "hvac_mode_setting": "off"},
			another,
		),
		"/thermostats/schedules/create": of(
			params{"climate_preset_key": "eco", "starts_at": "2098-01-01", "ends_at": "2098-01-02"},
			another,
		),
		"/thermostats/daily_programs/create": of(program, another),
		"/thermostats/daily_programs/update": func(t *testing.T) keyedRequest {
			made := madeBy(
				t, s, "/thermostats/daily_programs/create", "thermostat_daily_program",
				also(program, params{"device_id": device}),
			)
			return keyedRequest{
				in:    also(program, params{"thermostat_daily_program_id": made["thermostat_daily_program_id"]}),
				other: params{"name": "Other"},
			}
		},
		"/thermostats/update_weekly_program": of(params{"monday_program_id": nil}, another),
	}
}
