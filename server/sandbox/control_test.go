package sandbox_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

func TestCodeOpensInItsTimeFrame(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	now.Store(start.Unix())
	b := open(t, sandbox.Options{Seed: 7, Clock: func() time.Time { return time.Unix(now.Load(), 0) }}, "august")
	e := b.subscribe(t)
	id := b.put(t, object{
		"name": "Guest", "code": "4821", "starts_at": start.Add(time.Hour),
		"ends_at": start.Add(2 * time.Hour),
	})
	for _, c := range []struct {
		after time.Duration
		skew  time.Duration
		opens bool
	}{
		{0, 0, false},
		{time.Hour, 0, true},
		{time.Hour, -time.Minute, false},
		{0, time.Hour, true},
		{2*time.Hour - time.Second, 0, true},
		{2 * time.Hour, 0, false},
	} {
		now.Store(start.Add(c.after).Unix())
		b.faults(t, sandbox.Faults{ClockSkewMS: int(c.skew.Milliseconds())})
		answer := b.ok(t, http.MethodPost, b.controlPath("keypad/enter"), object{"code": "4821"})
		if answer["unlocked"] != c.opens {
			t.Errorf("after %s with skew %s: %v", c.after, c.skew, answer)
		}
		if c.opens && answer["access_code_id"] != id {
			t.Errorf("opened with %v", answer)
		}
		if !c.opens {
			e.next(t, "access_code.incorrect_attempt")
			continue
		}
		e.next(t, "access_code.used")
		if done := e.next(t, "lock.action_completed"); done["performed_via"] != "pin_code" ||
			done["status"] != "success" {
			t.Errorf("announced as %v", done)
		}
	}
}

func TestTheKeypadsButtonLocks(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "august")
	e := b.subscribe(t)
	b.ok(t, http.MethodPost, b.controlPath("keypad/lock"), nil)
	if done := e.next(t, "lock.action_completed"); done["action"] != "lock" || done["performed_via"] != "manual_turn" {
		t.Errorf("announced as %v", done)
	}
	b.ok(t, http.MethodPost, b.controlPath("jam"), object{"jammed": true})
	if answer := b.refuses(t, "LOCK_JAMMED", http.MethodPost, b.controlPath("keypad/lock"), nil); answer == nil {
		t.Error("a jammed lock was locked")
	}
}

func TestActionsMoveTheBoltOnceForOneCustomID(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "august")
	e := b.subscribe(t)
	path := "/locks/" + b.lock() + "/actions"
	first := b.ok(t, http.MethodPost, path, object{"action": "unlock", "custom_id": "a1"})
	if done := e.next(t, "lock.action_completed"); done["action_id"] != first["action_id"] ||
		done["custom_id"] != "a1" {
		t.Errorf("announced as %v, accepted as %v", done, first)
	}
	if state := b.ok(t, http.MethodGet, "/locks/"+b.lock(), nil)["lock_state"]; state != "unlocked" {
		t.Errorf("the lock is %v", state)
	}
	if again := b.ok(t, http.MethodPost, path,
		object{"action": "unlock", "custom_id": "a1"}); again["action_id"] != first["action_id"] {
		t.Errorf("the same custom_id gave another action: %v", again)
	}
	b.ok(t, http.MethodPost, b.controlPath("jam"), object{"jammed": true})
	b.ok(t, http.MethodPost, path, object{"action": "lock"})
	if done := e.next(t, "lock.action_completed"); done["status"] != "failed" || done["error_code"] != "LOCK_JAMMED" {
		t.Errorf("a jammed lock announces %v", done)
	}
	b.refuses(t, "INVALID_REQUEST", http.MethodPost, path, object{"action": "explode"})
	b.ok(t, http.MethodPost, b.controlPath("offline"), object{})
	b.refuses(t, "DEVICE_OFFLINE", http.MethodPost, path, object{"action": "lock"})
}

func TestActionsAreExecutedInOrder(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "august")
	e := b.subscribe(t)
	b.faults(t, sandbox.Faults{LatencyMS: &sandbox.Range{Min: 1, Max: 500}})
	var asked, done []any
	for i := range 20 {
		asked = append(asked, b.ok(t, http.MethodPost, "/locks/"+b.lock()+"/actions",
			object{"action": []string{"lock", "unlock"}[i%2]})["action_id"])
	}
	for range asked {
		done = append(done, e.next(t, "lock.action_completed")["action_id"])
	}
	if !slices.Equal(asked, done) {
		t.Errorf("asked for %v, done %v", asked, done)
	}
}

func TestKeypadOfOfflineLock(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "august")
	e := b.subscribe(t)
	b.ok(t, http.MethodPost, b.controlPath("offline"), object{})
	b.refuses(t, "DEVICE_OFFLINE", http.MethodPost, b.codesPath(), object{"name": "Guest", "code": "4821"})
	b.refuses(t, "DEVICE_OFFLINE", http.MethodGet, b.codesPath()+"?refresh=true", nil)
	id := b.ok(t, http.MethodPost, b.controlPath("keypad/codes"),
		object{"name": "Guest", "code": "4821"})["access_code_id"]
	answer := b.ok(t, http.MethodGet, b.codesPath(), nil)
	if answer["stale"] != true || with(objects(answer["access_codes"]), "access_code_id", id) != nil {
		t.Errorf("the cloud shows %v", answer)
	}
	b.ok(t, http.MethodPost, b.controlPath("online"), object{})
	answer = b.ok(t, http.MethodGet, b.codesPath(), nil)
	if answer["stale"] == true || with(objects(answer["access_codes"]), "access_code_id", id) == nil {
		t.Errorf("the cloud still shows %v", answer)
	}
	for _, want := range []string{"device.offline", "device.online"} {
		select {
		case told := <-e.got:
			if told["event_type"] != want {
				t.Errorf("event %v, want %s", told, want)
			}
		case <-time.After(testenv.Timeout(testenv.WaitTimeout)):
			t.Fatalf("no event, want %s", want)
		}
	}
}

func TestAWriteWaitsForALockThatWentOffline(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "august", "yale")
	b.faults(t, sandbox.Faults{LatencyMS: &sandbox.Range{Min: 3000, Max: 3000}})
	id := b.ok(t, http.MethodPost, b.codesPath(), object{"name": "Guest", "code": "4821"})["access_code_id"]
	b.ok(t, http.MethodPost, "/locks/"+b.lock()+"/actions", object{"action": "unlock"})
	b.ok(t, http.MethodPost, b.controlPath("offline"), object{})

	// When a later write with the same latency has reached another lock, the first one is due.
	other := "/locks/" + b.account.Locks[1].ID
	b.ok(t, http.MethodPut, "/sandbox"+other+"/faults", sandbox.Faults{LatencyMS: &sandbox.Range{Min: 3000, Max: 3000}})
	later := b.ok(t, http.MethodPost, other+"/access_codes", object{"name": "Guest", "code": "4821"})["access_code_id"]
	testenv.Until(t, "the later write has arrived", func() bool {
		return with(objects(b.ok(t, http.MethodGet, "/sandbox"+other+"/memory", nil)["access_codes"]),
			"access_code_id", later) != nil
	})
	if with(b.memory(t), "access_code_id", id) != nil {
		t.Fatal("the code reached an offline lock")
	}
	if state := b.ok(t, http.MethodGet, "/locks/"+b.lock(), nil)["lock_state"]; state != "locked" {
		t.Errorf("an offline lock became %v", state)
	}
	b.ok(t, http.MethodPost, b.controlPath("online"), object{})
	testenv.Until(t, "the code is on the lock", func() bool { return with(b.memory(t), "access_code_id", id) != nil })
}

func TestAKeypadCodeObeysTheLock(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "august")
	path := b.controlPath("keypad/codes")
	id, _ := b.ok(t, http.MethodPost, path, object{"name": "Guest", "code": "4821"})["access_code_id"].(string)
	b.refuses(t, "PIN_CONFLICT", http.MethodPost, path, object{"name": "Other", "code": "4821"})
	b.refuses(t, "INVALID_PIN", http.MethodPost, path, object{"name": "Other", "code": "48"})
	b.refuses(t, "INVALID_REQUEST", http.MethodPost, path, object{"name": "Other"})
	b.refuses(t, "INVALID_PIN", http.MethodPatch, path+"/"+id, object{"code": "48"})
	b.ok(t, http.MethodPatch, path+"/"+id, object{"code": "4822"})
	if c := with(b.memory(t), "access_code_id", id); c["code"] != "4822" || c["name"] != "Guest" ||
		c["origin"] != "keypad" {
		t.Errorf("the code is now %v", c)
	}
	b.ok(t, http.MethodDelete, path+"/"+id, nil)
	b.refuses(t, "ACCESS_CODE_NOT_FOUND", http.MethodDelete, path+"/"+id, nil)
	b.faults(t, sandbox.Faults{SlotsTaken: 1000})
	b.refuses(t, "DEVICE_FULL", http.MethodPost, path, object{"name": "Other", "code": "4823"})
}

// A client that does not know the outcome of a request repeats it.
func TestKeypadRequestIsRepeatable(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "august")
	path, body := b.controlPath("keypad/codes"), object{"name": "Guest", "code": "4821", "request": "r1"}
	id := b.ok(t, http.MethodPost, path, body)["access_code_id"]
	b.faults(t, sandbox.Faults{SlotsTaken: 1000}) // a repeated request needs no slot
	if again := b.ok(t, http.MethodPost, path, body); again["access_code_id"] != id {
		t.Errorf("the same request typed in another code: %v", again)
	}
	b.refuses(t, "PIN_CONFLICT", http.MethodPost, path, object{"name": "Guest", "code": "4821", "request": "r2"})
	b.refuses(t, "PIN_CONFLICT", http.MethodPost, path, object{"name": "Guest", "code": "4821"})
}

func TestARevokedTokenWorksForTheControlsOnly(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "august")
	e := b.subscribe(t)
	b.ok(t, http.MethodPost, "/sandbox/account/revoke", object{})
	e.next(t, "account.revoked")
	b.refuses(t, "UNAUTHORIZED", http.MethodGet, "/locks", nil)
	b.memory(t)
	b.ok(t, http.MethodPost, "/sandbox/account/restore", object{})
	b.ok(t, http.MethodGet, "/locks", nil)
}

func TestAnAccountSeesItsOwnLocksOnly(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "august")
	other, err := b.EnsureAccount(sandbox.AccountSpec{Key: "other", Profiles: []string{"august"}})
	if err != nil {
		t.Fatal(err)
	}
	code, _ := b.memory(t)[0]["access_code_id"].(string)
	for path, method := range map[string]string{
		"/locks/" + b.lock():    http.MethodGet,
		b.codesPath():           http.MethodGet,
		"/access_codes/" + code: http.MethodDelete,
		b.controlPath("memory"): http.MethodGet,
	} {
		if status, answer := b.callAs(t, other.Token, method, path, nil); status != http.StatusNotFound {
			t.Errorf("%s %s: %d %v", method, path, status, answer)
		}
	}
	for _, token := range []string{"", "none"} {
		if status, _ := b.callAs(t, token, http.MethodGet, "/locks", nil); status != http.StatusUnauthorized {
			t.Errorf("token %q: %d", token, status)
		}
	}
}

func TestFaultsAreChecked(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "august")
	for _, f := range []sandbox.Faults{
		{FailureRate: map[string]float64{"none": 1}},
		{FailureRate: map[string]float64{"transient": 2}},
		{LostWebhook: -1},
		{DropNext: -1},
		{LatencyMS: &sandbox.Range{Min: 2, Max: 1}},
	} {
		b.refuses(t, "INVALID_REQUEST", http.MethodPut, b.controlPath("faults"), f)
	}
	b.faults(t, sandbox.Faults{DropNext: 1})
	if got := b.ok(t, http.MethodGet, b.controlPath("faults"), nil); got["drop_next"] != 1.0 {
		t.Errorf("faults are %v", got)
	}
}

func TestAFailureRateIsReproducible(t *testing.T) {
	t.Parallel()
	run := func() (failed string) {
		b := open(t, sandbox.Options{Seed: 7}, "august")
		b.faults(t, sandbox.Faults{FailureRate: map[string]float64{"transient": 0.3, "rate_limited": 0.2}})
		for range 50 {
			_, answer := b.call(t, http.MethodGet, b.codesPath(), nil)
			code, _ := answer["error_code"].(string)
			failed += code + ","
		}
		return failed
	}
	first := run()
	if first != run() {
		t.Error("the same seed fails differently")
	}
	for _, want := range []string{",,", "SERVICE_UNAVAILABLE,", "RATE_LIMITED,"} {
		if !strings.Contains(first, want) {
			t.Errorf("%q is not in %s", want, first)
		}
	}
}

func TestWriteFaultsDoNotAffectReads(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "august")
	b.faults(t, sandbox.Faults{FailureRate: map[string]float64{"full": 1}})
	b.list(t)
	b.refuses(t, "DEVICE_FULL", http.MethodPost, b.codesPath(), object{"name": "Guest", "code": "4821"})
}

func TestFullLockRefuses(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "august")
	b.faults(t, sandbox.Faults{SlotsTaken: 246, LatencyMS: slow.LatencyMS}) // of 250, and three codes
	b.ok(t, http.MethodPost, b.codesPath(), object{"name": "Last", "code": "4821"})
	b.refuses(t, "DEVICE_FULL", http.MethodPost, b.codesPath(), object{"name": "Guest", "code": "4822"})
}

func TestListLag(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "august")
	window := 60_000
	b.faults(t, sandbox.Faults{ListLagMS: &window})
	id := b.put(t, object{"name": "Guest", "code": "4821"})
	if with(b.list(t), "access_code_id", id) != nil {
		t.Error("the list has the code immediately")
	}
	b.refuses(t, "PIN_CONFLICT", http.MethodPost, b.codesPath(), object{"name": "Other", "code": "4821"})
}

func TestPushesAreLostLateDoubledAndRepeated(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "august")
	var refused atomic.Int32
	stubborn := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if refused.Add(1) < 3 {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	t.Cleanup(stubborn.Close)
	b.ok(t, http.MethodPost, "/webhooks", object{"url": stubborn.URL, "events": []string{"access_code.deleted"}})
	e := b.subscribe(t, "access_code.created")

	b.faults(t, sandbox.Faults{LostWebhook: 1})
	lost := b.put(t, object{"name": "Lost", "code": "4821"})
	b.faults(t, sandbox.Faults{DuplicateWebhook: 1, LateWebhookMS: 1})
	doubled := b.put(t, object{"name": "Doubled", "code": "4822"})
	one, two := e.next(t, "access_code.created"), e.next(t, "access_code.created")
	if one["access_code_id"] != doubled || one["event_id"] != two["event_id"] || lost == doubled {
		t.Errorf("pushed %v and %v", one, two)
	}
	for _, field := range []string{"code", "pin"} {
		if one[field] != nil {
			t.Errorf("the push carries %s", field)
		}
	}
	b.faults(t, sandbox.Faults{})
	b.ok(t, http.MethodDelete, "/access_codes/"+doubled, nil)
	testenv.Until(t, "a refused push is repeated", func() bool { return refused.Load() == 3 })
}

func TestAWebhookIsOnePerURL(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "august")
	first := b.ok(t, http.MethodPost, "/webhooks",
		object{"url": "http://127.0.0.1:1/a", "events": []string{"device.online"}})
	again := b.ok(t, http.MethodPost, "/webhooks",
		object{"url": "http://127.0.0.1:1/a", "events": []string{"device.offline"}})
	if first["webhook_id"] != again["webhook_id"] || again["status"] != "active" {
		t.Errorf("%v and %v", first, again)
	}
	hooks := objects(b.ok(t, http.MethodGet, "/webhooks", nil)["webhooks"])
	if len(hooks) != 1 || hooks[0]["events"].([]any)[0] != "device.offline" {
		t.Errorf("webhooks are %v", hooks)
	}
	id, _ := first["webhook_id"].(string)
	b.ok(t, http.MethodDelete, "/webhooks/"+id, nil)
	b.refuses(t, "WEBHOOK_NOT_FOUND", http.MethodDelete, "/webhooks/"+id, nil)
	b.refuses(t, "INVALID_REQUEST", http.MethodPost, "/webhooks", object{"url": "nowhere"})
}

func TestLowBatteryIsAnnouncedOnce(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "august")
	e := b.subscribe(t)
	for _, level := range []int{50, 20, 10, 90} {
		b.ok(t, http.MethodPost, b.controlPath("battery"), object{"battery_level": level})
	}
	if low := e.next(t, "device.low_battery"); low["battery_level"] != 20.0 {
		t.Errorf("event %v", low)
	}
	if next := e.next(t, "battery.replaced"); next["battery_level"] != 90.0 {
		t.Errorf("event %v", next)
	}
	b.refuses(t, "INVALID_REQUEST", http.MethodPost, b.controlPath("battery"), object{"battery_level": 101})
}

func TestCloseCancelsPendingWrites(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7, Speed: 0.001}, "august")
	hanging := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hanging:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(hanging) })
	b.ok(t, http.MethodPost, "/webhooks", object{"url": server.URL})
	b.ok(t, http.MethodPost, b.controlPath("offline"), object{})
	b.ok(t, http.MethodPost, b.controlPath("online"), object{})
	b.ok(t, http.MethodPost, b.codesPath(), object{"name": "Guest", "code": "4821"})
	closed := make(chan struct{})
	go func() { b.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(testenv.Timeout(testenv.WaitTimeout)):
		t.Fatal("Close hangs")
	}
}
