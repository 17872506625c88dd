package sandbox_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

func TestEveryProfileHasALockWithCodes(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, sandbox.Profiles()...)
	locks := objects(b.ok(t, http.MethodGet, "/locks", nil)["locks"])
	if len(locks) != 10 || len(b.account.Locks) != 10 {
		t.Fatalf("there are %d locks", len(locks))
	}
	for _, l := range b.account.Locks {
		codes := objects(b.ok(t, http.MethodGet, "/sandbox/locks/"+l.ID+"/memory", nil)["access_codes"])
		if l.Profile == "august" && len(codes) != 3 || len(codes) < 1 {
			t.Errorf("%s has %d codes", l.Profile, len(codes))
		}
		shown := with(locks, "lock_id", l.ID)
		caps := shown["capabilities"].(map[string]any)
		if caps["provider"] != l.Profile || shown["name"] != l.Name {
			t.Errorf("%s is shown as %v", l.Profile, shown)
		}
	}
}

func TestCodesObeyTheLock(t *testing.T) {
	t.Parallel()
	hour := func(n int) string { return time.Now().Add(time.Duration(n) * time.Hour).UTC().Format(time.RFC3339) }
	for _, c := range []struct {
		name    string
		profile string
		body    object
		refusal string // empty: accepted
	}{
		{"shortest", "august", object{"name": "A", "code": "4821"}, ""},
		{"longest", "august", object{"name": "A", "code": "482135"}, ""},
		{"too long", "august", object{"name": "A", "code": "4821357"}, "INVALID_PIN"},
		{"too short", "august", object{"name": "A", "code": "482"}, "INVALID_PIN"},
		{"no PIN", "august", object{"name": "A"}, "INVALID_PIN"},
		{"letters", "august", object{"name": "A", "code": "48a1"}, "INVALID_PIN"},
		{"first lock of schlage has 4", "schlage", object{"name": "A", "code": "48213"}, "INVALID_PIN"},
		{"name too long", "schlage", object{"name": "1234567890123", "code": "4821"}, "INVALID_NAME"},
		{"name too short", "kwikset", object{"name": "A", "code": "4821"}, "INVALID_NAME"},
		{"nuki", "nuki", object{"name": "A", "code": "482135"}, ""},
		{"zero", "nuki", object{"name": "A", "code": "482130"}, "INVALID_PIN"},
		{"starts with 12", "nuki", object{"name": "A", "code": "129135"}, "INVALID_PIN"},
		{"five digits", "nuki", object{"name": "A", "code": "48213"}, "INVALID_PIN"},
		{"tedee", "tedee", object{"name": "A", "code": "48213"}, ""},
		{"two digits", "tedee", object{"name": "A", "code": "48484"}, "INVALID_PIN"},
		{"ascending", "tedee", object{"name": "A", "code": "45678"}, "INVALID_PIN"},
		{"descending", "tedee", object{"name": "A", "code": "98765"}, "INVALID_PIN"},
		{"nearly ascending", "tedee", object{"name": "A", "code": "45679"}, ""},
		{"ttlock", "ttlock", object{"name": "A", "code": "123456"}, ""},
		{"a digit of 0789", "ttlock", object{"name": "A", "code": "123457"}, "INVALID_PIN"},
		{"chosen PIN", "salto_ks", object{"name": "A", "code": "482135"}, "INVALID_PIN"},
		{"vendor's PIN", "salto_ks", object{"name": "A"}, ""},
		{"time frame", "yale", object{"name": "A", "code": "4821", "starts_at": hour(1), "ends_at": hour(2)}, ""},
		{"no time frames", "smartthings", object{
			"name": "A", "code": "4821", "starts_at": hour(1),
			"ends_at": hour(2),
		}, "INVALID_TIME_FRAME"},
		{"half a time frame", "yale", object{"name": "A", "code": "4821", "starts_at": hour(1)}, "INVALID_TIME_FRAME"},
		{
			"backwards", "yale",
			object{"name": "A", "code": "4821", "starts_at": hour(2), "ends_at": hour(1)},
			"INVALID_TIME_FRAME",
		},
		{
			"over", "yale",
			object{"name": "A", "code": "4821", "starts_at": hour(-2), "ends_at": hour(-1)},
			"INVALID_TIME_FRAME",
		},
		{"begun", "yale", object{"name": "A", "code": "4821", "starts_at": hour(-2), "ends_at": hour(1)}, ""},
		{
			"begun where it must not", "kwikset",
			object{"name": "AB", "code": "4821", "starts_at": hour(-2), "ends_at": hour(1)},
			"INVALID_TIME_FRAME",
		},
		{
			"no time", "yale",
			object{"name": "A", "code": "4821", "starts_at": "soon", "ends_at": hour(1)},
			"INVALID_REQUEST",
		},
		{
			"custom_id too long", "yale",
			object{"name": "A", "code": "4821", "custom_id": strings.Repeat("k", 65)},
			"INVALID_REQUEST",
		},
	} {
		t.Run(c.profile+" "+c.name, func(t *testing.T) {
			t.Parallel()
			b := open(t, sandbox.Options{Seed: 7}, c.profile)
			if c.refusal != "" {
				answer := b.refuses(t, c.refusal, http.MethodPost, b.codesPath(), c.body)
				if pin, _ := c.body["code"].(string); pin != "" && strings.Contains(answer["message"].(string), pin) {
					t.Errorf("the message contains the PIN")
				}
				return
			}
			b.put(t, c.body)
		})
	}
}

func TestExpiredOfflineCodeIsRefused(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "igloohome")
	path := "/locks/" + b.account.Locks[0].ID + "/offline_codes"
	hour := func(n int) string {
		return time.Now().Truncate(time.Hour).Add(time.Duration(n) * time.Hour).UTC().Format(time.RFC3339)
	}
	for kind, ends := range map[string]int{"hourly": 48, "daily": 24*40 - 72} {
		b.refuses(t, "INVALID_TIME_FRAME", http.MethodPost, path,
			object{"kind": kind, "starts_at": hour(-72), "ends_at": hour(ends)})
	}
	b.ok(t, http.MethodPost, path, object{"kind": "hourly", "starts_at": hour(-22), "ends_at": hour(48)})
}

func TestADuplicateNamesTheCodeThatHasThePIN(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "august")
	id := b.put(t, object{"name": "First", "code": "4821"})
	answer := b.refuses(t, "PIN_CONFLICT", http.MethodPost, b.codesPath(), object{"name": "Second", "code": "4821"})
	if answer["conflicting_access_code_id"] != id {
		t.Errorf("the conflict is with %v, want %s", answer["conflicting_access_code_id"], id)
	}
}

func TestCodeStatus(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "august")
	slow := 60_000
	b.faults(t, sandbox.Faults{LatencyMS: &sandbox.Range{Min: slow, Max: slow}})
	answer := b.ok(t, http.MethodPost, b.codesPath(), object{"name": "Guest", "code": "4821"})
	id := answer["access_code_id"]
	if answer["status"] != "pending" || with(b.list(t), "access_code_id", id)["status"] != "pending" {
		t.Errorf("answered %v, listed %v", answer, b.list(t))
	}
	if with(b.memory(t), "access_code_id", id) != nil {
		t.Error("the code is on the lock before its time")
	}
	for _, c := range b.list(t) {
		if c["access_code_id"] != id && c["status"] != "active" {
			t.Errorf("a code on the lock is %v", c["status"])
		}
	}
}

func TestTheSameCustomIDIsTheSameCode(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "nuki")
	body := object{"name": "Guest", "code": "482135", "custom_id": "k1"}
	id := b.put(t, body)
	status, again := b.call(t, http.MethodPost, b.codesPath(),
		object{"name": "Other", "code": "573246", "custom_id": "k1"})
	if status != http.StatusOK || again["access_code_id"] != id || again["name"] != "Guest" {
		t.Errorf("%d %v", status, again)
	}
	b.ok(t, http.MethodDelete, "/access_codes/"+id, nil)
	testenv.Until(t, "the code is off the lock", func() bool { return with(b.memory(t), "access_code_id", id) == nil })
	if next := b.put(t, body); next == id {
		t.Error("a new code has the old identifier")
	}
}

func TestPatchKeepsAbsentFields(t *testing.T) {
	t.Parallel()
	starts, ends := time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
		time.Now().Add(2*time.Hour).UTC().Format(time.RFC3339)
	for profile, dropped := range map[string]bool{"yale": false, "nuki": true} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := open(t, sandbox.Options{Seed: 7}, profile)
			id := b.put(t, object{"name": "Guest", "code": "482135", "starts_at": starts, "ends_at": ends})
			b.ok(t, http.MethodPatch, "/access_codes/"+id, object{"name": "Other"})
			testenv.Until(t, "the name is changed", func() bool {
				return with(b.memory(t), "access_code_id", id)["name"] == "Other"
			})
			c := with(b.memory(t), "access_code_id", id)
			if c["code"] != "482135" || (c["starts_at"] == nil) != dropped || (c["ends_at"] == nil) != dropped {
				t.Errorf("the code is now %v", c)
			}
		})
	}
}

func TestABusyGatewayRefusesWithATimeToWait(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"nuki", "ttlock"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := open(t, sandbox.Options{Seed: 7}, profile)
			b.faults(t, sandbox.Faults{LatencyMS: &sandbox.Range{Min: 60_000, Max: 60_000}})
			b.ok(t, http.MethodPost, b.codesPath(), object{"name": "One", "code": "213546"})
			answer := b.refuses(t, "DEVICE_BUSY", http.MethodPost, b.codesPath(),
				object{"name": "Two", "code": "546213"})
			if wait, _ := answer["retry_after_ms"].(float64); wait < 1 {
				t.Errorf("retry_after_ms %v", answer["retry_after_ms"])
			}
		})
	}
}

func TestTTLocksBehindOneGatewayAreBusyTogether(t *testing.T) {
	t.Parallel()
	s := sandbox.New(sandbox.Options{Speed: 1000})
	t.Cleanup(s.Close)
	account, err := s.EnsureAccount(sandbox.AccountSpec{
		Key: "two", Profiles: []string{"ttlock", "nuki"},
		LocksPerProfile: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, sandbox.Options{}, "ttlock")
	b.server.Config.Handler, b.account = s.Handler(), account
	for i, want := range []int{http.StatusCreated, http.StatusLocked, http.StatusCreated, http.StatusCreated} {
		id := account.Locks[i].ID
		b.ok(t, http.MethodPut, "/sandbox/locks/"+id+"/faults",
			sandbox.Faults{LatencyMS: &sandbox.Range{Min: 60_000, Max: 60_000}})
		status, answer := b.call(t, http.MethodPost, "/locks/"+id+"/access_codes",
			object{"name": "One", "code": "213546"})
		if status != want {
			t.Errorf("lock %d: %d %v, want %d", i, status, answer, want)
		}
	}
}

func TestASmartThingsLockHidesPINs(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "smartthings")
	answer := b.ok(t, http.MethodPost, b.codesPath(), object{"name": "Guest", "code": "4821"})
	for _, c := range append(b.list(t), answer) {
		if _, shown := c["code"]; shown {
			t.Error("a PIN is shown")
		}
	}
}
