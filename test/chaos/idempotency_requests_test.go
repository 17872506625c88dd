package chaos_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest"
)

type params = map[string]any

// keyedRequest is a valid, new request with an Idempotency-Key.
type keyedRequest struct {
	kind, path, key string
	in, other       params // other: a difference that makes it another request
	body, otherBody string
	token           string
	credential      uuid.UUID // its own credential
	workspace       *apptest.Server
	kindOfKey       domain.CredentialKind
	locks, accounts []string       // used by no other request
	rows            map[string]any // other rows that it creates: a query that counts them, and its parameter
	person          string         // person that must be on the access system

	at      moment // when its server was killed
	stopped bool   // and whether the request was stopped then
	given   *given // nil without a response
}

// withSync is the suffix of kinds that wait for their action attempt.
const withSync = " sync"

// kinds returns the operations of the contract with an Idempotency-Key, twice if they can wait.
func (k *keyed) kinds(t *testing.T) (all []string) {
	t.Helper()
	doc, err := rest.Document()
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range doc.Paths.Map() {
		if item.Post.Parameters.GetByInAndName("header", "Idempotency-Key") == nil {
			continue
		}
		if keyedRequests[alike[path]] != nil {
			continue
		}
		if keyedRequests[path] == nil {
			t.Fatalf("add a request of %s to keyedRequests", path)
		}
		all = append(all, path)
		if schema := item.Post.RequestBody.Value.Content.Get(
			"application/json",
		).Schema.Value; schema.Properties["sync"] != nil {
			all = append(all, path+withSync)
		}
	}
	if len(all) < 20 {
		t.Fatalf("there are %d kinds of requests: %v", len(all), all)
	}
	slices.Sort(all)
	return all
}

// make prepares requests with the surviving server.
func (k *keyed) make(t *testing.T, plan []shot) []*keyedRequest {
	t.Helper()
	requests := make([]*keyedRequest, len(plan))
	var all sync.WaitGroup
	for i, s := range plan {
		all.Go(func() {
			path, wait := strings.CutSuffix(s.kind, withSync)
			r := &keyedRequest{
				kind:      s.kind,
				at:        s.at,
				path:      path,
				key:       uuid.NewString(),
				workspace: k.Server,
				kindOfKey: domain.APIKey,
				rows:      map[string]any{},
			}
			keyedRequests[path](&making{t, k, r, "m" + uuid.NewString()[:8]})
			if wait {
				r.in["sync"] = true
			}
			r.token, r.credential = k.credential(t, r)
			other := maps.Clone(r.in)
			maps.Copy(other, r.other)
			r.body, r.otherBody = written(t, r.in), written(t, other)
			requests[i] = r
		})
	}
	all.Wait()
	if slices.Contains(requests, nil) {
		t.FailNow()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, requests...)
	return requests
}

func (k *keyed) credential(t *testing.T, r *keyedRequest) (token string, id uuid.UUID) {
	t.Helper()
	token, c := r.workspace.Credential(t, auth.NewCredential{Kind: r.kindOfKey})
	return token, c.ID
}

func written(t *testing.T, in params) string {
	t.Helper()
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// making prepares one request.
type making struct {
	*testing.T
	k    *keyed
	r    *keyedRequest
	mark string // unique
}

// lock creates a lock in its own account, since work per account is limited.
func (m *making) lock() string {
	account, id := m.k.Connect(m.T, "august")
	apptest.Until(m.T, "the lock is read", func() bool {
		read, err := m.k.App.Access.Devices.HasBeenRead(m.Context(), uuid.MustParse(id))
		return err == nil && read
	})
	m.r.accounts = append(m.r.accounts, account)
	m.r.locks = append(m.r.locks, id)
	return id
}

// made sends a request to the surviving server and returns the code in the response.
func (m *making) made(path string, in params) params {
	m.Helper()
	var out params
	if status := m.k.Post(m.T, path, in, &out); status != http.StatusOK {
		m.Fatalf("%s %v: %d %v", path, in, status, out["error"])
	}
	code, _ := out["access_code"].(params)
	return code
}

var pins atomic.Int64

func newPIN() string { return fmt.Sprint(210_000 + pins.Add(1)) }

// code creates a code that is on its lock.
func (m *making) code(more params) params {
	in := params{"device_id": m.lock(), "code": newPIN(), "name": "Before", "sync": true}
	maps.Copy(in, more)
	code := params{"access_code_id": m.made("/access_codes/create", in)["access_code_id"]}
	apptest.Until(m.T, "the code is set", func() bool { return m.made("/access_codes/get", code)["status"] == "set" })
	return code
}

// found returns an unmanaged code that was created at a lock.
func (m *making) found() params {
	lock := m.lock()
	status := m.k.Post(
		m.T,
		"/access_codes/simulate/create_unmanaged_access_code",
		params{"device_id": lock, "code": newPIN(), "name": "Found"},
		nil,
	)
	if status != http.StatusOK && status != http.StatusServiceUnavailable { // not noticed yet
		m.Fatalf("enter a code: %d", status)
	}
	var id string
	apptest.Until(m.T, "the code is noticed", func() bool {
		for _, c := range m.k.UnmanagedCodes(m.T, lock) {
			if c.Name != nil && *c.Name == "Found" { // the lock has other codes
				id = c.AccessCodeID
			}
		}
		return id != ""
	})
	return params{"access_code_id": id}
}

// backed creates a code with a backup code that can be pulled.
func (m *making) backed() params {
	code := params{
		"access_code_id": m.made("/access_codes/create", params{
			"device_id":                   m.lock(),
			"use_backup_access_code_pool": true,
			"sync":                        true,
			"starts_at":                   time.Now(),
			"ends_at":                     time.Now().Add(time.Hour),
		})["access_code_id"],
	}
	apptest.Until(m.T, "a backup can be pulled", func() bool {
		return m.made("/access_codes/get", code)["is_backup_access_code_available"] == true
	})
	return code
}

// asks sets the parameters of the request, and a difference that makes it another one.
func (m *making) asks(in, more, other params) {
	m.r.in, m.r.other = maps.Clone(in), other
	maps.Copy(m.r.in, more)
}

var (
	anotherName = params{"name": "Other"}
	anotherCode = params{"access_code_id": uuid.NewString()}
	anotherLock = params{"device_id": uuid.NewString()}
)

// alike are operations whose transaction has the form of another one. Tests of package spec repeat each of them.
var alike = map[string]string{
	"/acs/entrances/unlock":                  "/locks/unlock_door",
	"/noise_sensors/noise_thresholds/delete": "/noise_sensors/noise_thresholds/create",
	"/noise_sensors/noise_thresholds/update": "/noise_sensors/noise_thresholds/create",
	"/thermostats/activate_climate_preset":   "/thermostats/heat",
	"/thermostats/cool":                      "/thermostats/heat",
	"/thermostats/create_climate_preset":     "/thermostats/schedules/create",
	"/thermostats/daily_programs/create":     "/thermostats/schedules/create",
	"/thermostats/daily_programs/update":     "/thermostats/heat",
	"/thermostats/heat_cool":                 "/thermostats/heat",
	"/thermostats/off":                       "/thermostats/heat",
	"/thermostats/set_fan_mode":              "/thermostats/heat",
	"/thermostats/set_hvac_mode":             "/thermostats/heat",
	"/thermostats/update_weekly_program":     "/thermostats/heat",
}

// other creates a device of another kind than a lock in its own account.
func (m *making) other(profile string) string {
	account, id := m.k.Connect(m.T, profile)
	m.r.accounts = append(m.r.accounts, account)
	return id
}

// keyedRequests prepare a request of each operation with an Idempotency-Key.
var keyedRequests = map[string]func(*making){
	"/workspaces/create": func(m *making) {
		m.r.kindOfKey = domain.PAT
		m.asks(params{"name": m.mark, "is_sandbox": true}, nil, anotherName)
		m.r.rows["select count(*) from workspaces where name = $1"] = m.mark
		m.r.rows["select count(*) from connected_accounts a join workspaces w using (workspace_id) where w.name = $1"] = m.mark
	},
	"/workspaces/reset_sandbox": func(m *making) {
		m.r.workspace = m.k.Workspace(m.T, m.mark)
		m.asks(params{}, nil, params{"workspace_id": m.r.workspace.WorkspaceID})
		m.r.rows["select count(*) from connected_accounts where workspace_id = $1"] = m.r.workspace.WorkspaceID
		m.r.rows["select count(*) from action_attempts where workspace_id = $1 and status = 'success'"] = m.r.workspace.WorkspaceID
	},
	"/client_sessions/create": func(m *making) {
		m.asks(params{"user_identifier_key": m.mark}, nil, params{"user_identifier_key": "other"})
		m.r.rows["select count(*) from client_sessions where user_identifier_key = $1"] = m.mark
	},
	"/client_sessions/get_or_create": func(m *making) {
		m.asks(params{"user_identifier_key": m.mark}, nil, params{"user_identifier_key": "other"})
		m.r.rows["select count(*) from client_sessions where user_identifier_key = $1"] = m.mark
	},
	"/webhooks/create": func(m *making) {
		url := "http://127.0.0.1:9/" + m.mark
		m.asks(
			params{"url": url, "event_types": []string{"noise_sensor.noise_threshold_triggered"}},
			nil,
			params{"url": "http://127.0.0.1:9/other"},
		)
		m.r.rows["select count(*) from webhooks where url = $1"] = url
	},
	"/deviceaccess/webhooks/rotate_secret": func(m *making) { // a second rotation would get 409
		url := "http://127.0.0.1:9/" + m.mark
		var created struct {
			Webhook struct {
				ID string `json:"webhook_id"`
			}
		}
		in := params{"url": url, "event_types": []string{"noise_sensor.noise_threshold_triggered"}}
		if status := m.k.Post(m.T, "/webhooks/create", in, &created); status != http.StatusOK {
			m.Fatalf("create the webhook: %d", status)
		}
		m.asks(params{"webhook_id": created.Webhook.ID}, nil, params{"overlap_seconds": 60})
		m.r.rows["select count(*) from webhooks where url = $1 and old_secret_until is not null"] = url
	},
	"/connect_webviews/create": func(m *making) {
		m.asks(params{"custom_metadata": params{"mark": m.mark}}, nil, params{"accepted_providers": []string{"yale"}})
		m.r.rows["select count(*) from connect_webviews where custom_metadata->>'mark' = $1"] = m.mark
	},
	"/user_identities/create": func(m *making) {
		m.asks(params{"full_name": m.mark}, nil, params{"full_name": "Other"})
		m.r.rows["select count(*) from user_identities where full_name = $1"] = m.mark
	},
	"/acs/users/create": func(m *making) {
		m.r.person = m.mark
		m.asks(params{"acs_system_id": m.k.system.ID, "full_name": m.mark}, nil, params{"full_name": "Other"})
		m.r.rows["select count(*) from acs_users where full_name = $1 and written_gen = desired_gen"] = m.mark
		m.r.rows["select count(*) from events e join acs_users u on u.acs_user_id::text = e.payload->>'acs_user_id' "+
			"where u.full_name = $1"] = m.mark
	},
	"/phones/simulate/create_sandbox_phone": func(m *making) {
		var out struct {
			UserIdentity struct {
				ID string `json:"user_identity_id"`
			} `json:"user_identity"`
		}
		m.k.Post(m.T, "/user_identities/create", params{"full_name": m.mark}, &out)
		m.asks(params{"user_identity_id": out.UserIdentity.ID}, nil, params{"user_identity_id": uuid.NewString()})
		m.r.rows["select count(*) from phones where user_identity_id = $1"] = out.UserIdentity.ID
	},
	"/thermostats/heat": func(m *making) {
		id := m.other("nest")
		m.asks(params{"device_id": id, "heating_set_point_celsius": 25}, nil, anotherLock)
		m.r.rows["select count(*) from action_attempts where device_id = $1 and status = 'success'"] = id
	},
	"/thermostats/schedules/create": func(m *making) {
		id := m.other("nest")
		m.asks(params{
			"device_id":          id,
			"climate_preset_key": "eco",
			"starts_at":          "2098-01-01T00:00:00Z",
			"ends_at":            "2098-01-02T00:00:00Z",
		}, nil, anotherLock)
		m.r.rows["select count(*) from thermostat_schedules where device_id = $1"] = id
	},
	"/noise_sensors/noise_thresholds/create": func(m *making) {
		id := m.other("noiseaware")
		m.asks(params{
			"device_id":                id,
			"starts_daily_at":          "23:00:01",
			"ends_daily_at":            "23:00:02",
			"noise_threshold_decibels": 50,
		}, nil, anotherLock)
		m.r.rows["select count(*) from action_attempts where device_id = $1 and status = 'success'"] = id
	},
	"/locks/lock_door":   func(m *making) { m.asks(params{"device_id": m.lock()}, nil, anotherLock) },
	"/locks/unlock_door": func(m *making) { m.asks(params{"device_id": m.lock()}, nil, anotherLock) },
	"/locks/configure_auto_lock": func(m *making) {
		m.asks(params{"device_id": m.lock(), "auto_lock_enabled": false}, nil, params{"auto_lock_enabled": true})
	},
	"/locks/simulate/keypad_code_entry": func(m *making) {
		m.asks(params{"device_id": m.lock(), "code": "987123"}, nil, params{"code": "987124"})
	},
	"/locks/simulate/manual_lock_via_keypad": func(m *making) { m.asks(params{"device_id": m.lock()}, nil, anotherLock) },
	"/access_codes/create": func(m *making) {
		m.asks(params{
			"device_id": m.lock(),
			"name":      "Once",
		}, nil, anotherName)
	},
	"/access_codes/create_multiple": func(m *making) {
		m.asks(params{"device_ids": []string{m.lock(), m.lock()}, "name": "Many"}, nil, anotherName)
	},
	"/access_codes/update_multiple": func(m *making) {
		m.code(params{"common_code_key": m.mark})
		m.asks(params{"common_code_key": m.mark, "name": "New"}, nil, anotherName)
	},
	"/access_codes/update":                  func(m *making) { m.asks(m.code(nil), params{"name": "New"}, anotherName) },
	"/access_codes/delete":                  func(m *making) { m.asks(m.code(nil), nil, anotherCode) },
	"/access_codes/pull_backup_access_code": func(m *making) { m.asks(m.backed(), nil, anotherCode) },
	"/access_codes/simulate/create_unmanaged_access_code": func(m *making) {
		m.asks(params{"device_id": m.lock(), "code": newPIN(), "name": "Found"}, nil, anotherName)
	},
	"/access_codes/unmanaged/update":             func(m *making) { m.asks(m.found(), params{"is_managed": true}, anotherCode) },
	"/access_codes/unmanaged/convert_to_managed": func(m *making) { m.asks(m.found(), nil, anotherCode) },
	"/access_codes/unmanaged/delete":             func(m *making) { m.asks(m.found(), nil, anotherCode) },
}

// settled reports whether no work is left on the locks of a request.
func (k *keyed) settled(t *testing.T, r *keyedRequest) (settled bool) {
	t.Helper()
	err := k.pool.QueryRow(t.Context(), `select not exists (select from action_attempts a where a.device_id = any($1) and status = 'pending')
		and not exists (select from devices where device_id = any($1) and due_at <= now())
		and not exists (select from access_codes where device_id = any($1) and status not in ('set', 'unset', 'unknown'))`, r.locks).
		Scan(&settled)
	if err != nil {
		t.Fatal(err)
	}
	for query, of := range r.rows {
		settled = settled && k.count(t, query, of) > 0
	}
	return settled && (r.person == "" || len(k.system.Named(t, r.person)) > 0)
}

func (k *keyed) count(t *testing.T, query string, args ...any) (n int) {
	t.Helper()
	if err := k.pool.QueryRow(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// outcome returns all effects of a request, one per line.
func (k *keyed) outcome(t *testing.T, r *keyedRequest) (all []string) {
	t.Helper()
	for n, lock := range r.locks {
		rows, err := k.pool.Query(
			t.Context(),
			`select concat_ws(' ', 'attempt', action_type, status, error_type) from action_attempts where device_id = $1
			union all select 'event '||event_type from events where device_id = $1
			union all select concat_ws(' ', 'code', name, status, case when is_managed then 'managed' end, case when in_pool then 'in the pool' end) from access_codes where device_id = $1`,
			lock,
		)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprintf("lock %d: %s", n, line))
		}
		if rows.Err() != nil {
			t.Fatal(rows.Err())
		}
		for _, c := range k.Lock(t, lock).Memory(t) {
			all = append(all, fmt.Sprintf("lock %d: on it %s", n, c.Name))
		}
		for range k.commands(t, lock) {
			all = append(all, fmt.Sprintf("lock %d: %s", n, toldTheCloud))
		}
	}
	for query, of := range r.rows {
		all = append(all, fmt.Sprint(query, ": ", k.count(t, query, of)))
	}
	if r.person != "" {
		all = append(all, fmt.Sprint("on the access system: ", len(k.system.Named(t, r.person))))
	}
	all = append(
		all,
		fmt.Sprint(
			"entries of the audit log: ",
			k.count(t, "select count(*) from audit_log where actor_id = $1", r.credential),
		),
		fmt.Sprint(
			"keys: ",
			k.count(
				t,
				"select count(*) from idempotency_keys where credential_id = $1 and answer_sealed is not null",
				r.credential,
			),
		),
	)
	slices.Sort(all)
	return all
}

// isRight reports whether a request has the same effects as an undisturbed one. Lock commands are not transactional and
// are sent at most once: if the server is killed before it has recorded the result, the attempt fails without a retry.
func (r *keyedRequest) isRight(got, want []string) bool {
	if slices.Equal(got, want) || !strings.HasPrefix(r.path, "/locks/") {
		return slices.Equal(got, want)
	}
	ended := strings.NewReplacer(" error action_attempt_expired", " success", ".failed", ".succeeded")
	missing := slices.Clone(want)
	for _, line := range got {
		n := slices.Index(missing, ended.Replace(line))
		if n < 0 {
			return false
		}
		missing = slices.Delete(missing, n, n+1)
	}
	return !slices.ContainsFunc(missing, func(line string) bool {
		return !strings.Contains(line, ": event lock.") && !strings.HasSuffix(line, toldTheCloud)
	})
}
