package spec_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// answered is a response, as far as a replay must equal it.
type answered struct {
	status   int
	body     string
	replayed bool
	after    string // Retry-After
}

func (a answered) kind(t testing.TB) string {
	t.Helper()
	var f failure
	if err := json.Unmarshal([]byte(a.body), &f); err != nil {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	return fmt.Sprintf("%d %s", a.status, f.Error.Type)
}

// ask sends a request with an Idempotency-Key.
func ask(ctx context.Context, s *apptest.Server, token, path, key, body string) (a answered, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+path, strings.NewReader(body))
	if err != nil {
		return a, err
	}
	r.GetBody = nil // prevents a retry by the client
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	r.Header["Idempotency-Key"] = []string{key}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return a, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	return answered{
		res.StatusCode,
		string(raw),
		res.Header.Get("Idempotency-Replayed") == "true",
		res.Header.Get("Retry-After"),
	}, err
}

func sent(t *testing.T, s *apptest.Server, token, path, key, body string) answered {
	t.Helper()
	a, err := ask(t.Context(), s, token, path, key, body)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// keyedServer starts an instance and opens its database.
func keyedServer(t *testing.T, opts ...apptest.Option) (*apptest.Server, *store.DB) {
	t.Helper()
	s := apptest.Start(t, append(opts, apptest.WithProfiles("august"))...)
	return s, database(t, s)
}

// keyedWorkspace returns a workspace of the shared server and opens its database.
func keyedWorkspace(t *testing.T) (*apptest.Server, *store.DB) {
	t.Helper()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	return s, database(t, s)
}

func database(t *testing.T, s *apptest.Server) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), s.DatabaseURL(), 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

func count(t *testing.T, db *store.DB, query string, args ...any) (n int) {
	t.Helper()
	if err := db.Pool.QueryRow(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func run(t *testing.T, db *store.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.Pool.Exec(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

// codesNamed returns the number of codes with a name in the workspace.
func codesNamed(t *testing.T, s *apptest.Server, db *store.DB, name string) int {
	t.Helper()
	return count(t, db, "select count(*) from access_codes where name = $1 and workspace_id = $2", name, s.WorkspaceID)
}

// A repeated request gets the same response from every instance and is done once.
func TestIdempotency_Replay(t *testing.T) {
	t.Parallel()
	one, db := keyedServer(t)
	two := one.StartAnother(t)
	device := one.Device(t, "august")
	const path, key = "/access_codes/create", "order 66/a"
	first := sent(
		t,
		one,
		one.APIKey,
		path,
		key,
		fmt.Sprintf(
			`{"device_id":%q,"name":"Guest","starts_at":"2040-01-01T00:00:00Z","ends_at":"2040-01-02T00:00:00Z"}`,
			device,
		),
	)
	if first.status != http.StatusOK || first.replayed {
		t.Fatalf("%+v", first)
	}
	for _, s := range []*apptest.Server{one, two} { // another JSON of the same request
		again := sent(
			t,
			s,
			s.APIKey,
			path,
			key,
			fmt.Sprintf(
				`{ "ends_at":"2040-01-02T00:00:00Z", "name":"Gu\u0065st", "starts_at":"2040-01-01T00:00:00Z", "device_id":%q}`,
				device,
			),
		)
		if again.status != first.status || again.body != first.body || !again.replayed {
			t.Errorf("again: %+v, want %+v", again, first)
		}
	}
	other := sent(t, two, two.APIKey, path, key, fmt.Sprintf(`{"device_id":%q,"name":"Other"}`, device))
	if other.kind(t) != "422 idempotency_key_reused" || !strings.Contains(other.body, "new key") {
		t.Errorf("other parameters: %+v", other)
	}
	if n := codesNamed(t, one, db, "Guest"); n != 1 {
		t.Errorf("%d codes", n)
	}
	if n := codesNamed(t, one, db, "Other"); n != 0 {
		t.Errorf("%d codes by a request that was refused", n)
	}
	// For another operation, the key is another one.
	if a := sent(
		t,
		one,
		one.APIKey,
		"/webhooks/create",
		key,
		`{"url":"https://hooks.example/x"}`,
	); a.status != http.StatusOK ||
		a.replayed {
		t.Errorf("another operation: %+v", a)
	}
}

// Keys of different credentials are separate.
func TestIdempotency_CredentialsAreSeparate(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	account, device := s.Connect(t, "nuki")
	other, err := s.App.Access.Accounts.CreateWorkspace(t.Context(), "Other", "", true)
	if err != nil {
		t.Fatal(err)
	}
	stranger, _, err := s.App.Access.Auth.IssueCredential(
		t.Context(),
		auth.NewCredential{Kind: domain.APIKey, WorkspaceIDs: []uuid.UUID{other.ID}},
	)
	if err != nil {
		t.Fatal(err)
	}
	roaming, _, err := s.App.Access.Auth.IssueCredential(
		t.Context(),
		auth.NewCredential{Kind: domain.PAT, WorkspaceIDs: []uuid.UUID{other.ID}},
	)
	if err != nil {
		t.Fatal(err)
	}
	const key, hook = "the same", `{"url":"https://hooks.example/x"}`
	secrets := map[string]bool{}
	for _, token := range []string{s.APIKey, stranger} {
		a := sent(t, s, token, "/webhooks/create", key, hook)
		var out api.WebhookResponse
		if err := json.Unmarshal([]byte(a.body), &out); err != nil || a.status != http.StatusOK || a.replayed {
			t.Fatalf("%+v: %v", a, err)
		}
		secrets[out.Webhook.Secret] = true
	}
	if len(secrets) != 2 {
		t.Error("two workspaces share a webhook")
	}
	body := fmt.Sprintf(`{"device_id":%q,"name":"Mine"}`, device)
	mine := session(t, s, params{"connected_account_ids": []string{account}})
	for i, token := range []string{
		s.APIKey,
		mine.Token,
		session(t, s, params{"connected_account_ids": []string{account}}).Token,
	} {
		if a := sent(t, s, token, "/access_codes/create", key, body); a.status != http.StatusOK || a.replayed {
			t.Errorf("credential %d: %+v", i, a)
		}
	}
	if a := sent(t, s, mine.Token, "/access_codes/create", key, body); !a.replayed {
		t.Errorf("a session again: %+v", a)
	}
	// Also for a credential without a workspace.
	made := sent(t, s, roaming, "/workspaces/create", key, `{"name":"New","is_sandbox":true}`)
	if again := sent(
		t,
		s,
		roaming,
		"/workspaces/create",
		key,
		`{"name":"New","is_sandbox":true}`,
	); made.status != http.StatusOK || again.body != made.body ||
		!again.replayed {
		t.Errorf("a workspace: %+v, and then %+v", made, again)
	}
}

// Concurrent requests with one key wait for the response of the first one, on every instance.
func TestIdempotency_ConcurrentRequests(t *testing.T) {
	t.Parallel()
	one, db := keyedServer(t)
	two := one.StartAnother(t)
	body := fmt.Sprintf(`{"device_id":%q,"name":"Crowd"}`, one.Device(t, "august"))
	answers := make([]answered, 40)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			var err error
			s := []*apptest.Server{one, two}[i%2]
			if answers[i], err = ask(t.Context(), s, s.APIKey, "/access_codes/create", "crowd", body); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	firsts := 0
	for _, a := range answers {
		if a.status != http.StatusOK || a.body != answers[0].body {
			t.Errorf("%+v, want %+v", a, answers[0])
		}
		if !a.replayed {
			firsts++
		}
	}
	if n := codesNamed(t, one, db, "Crowd"); n != 1 || firsts != 1 {
		t.Errorf("%d codes, %d answers that are no repetition", n, firsts)
	}
}

// After the wait timeout, the response is that the key is in use, on this instance and on another. Once the first
// request has ended, its response is replayed.
func TestIdempotency_KeyInUse(t *testing.T) {
	t.Parallel()
	one, db := keyedServer(
		t,
		apptest.WithAccess(func(o *access.Options) { o.IdempotencyWaitTimeout = 300 * time.Millisecond }),
	)
	two := one.StartAnother(t)
	device := one.Device(t, "august")
	body := fmt.Sprintf(`{"device_id":%q,"name":"Slow"}`, device)
	tx, err := db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "select 1 from devices where device_id = $1 for update", device); err != nil {
		t.Fatal(err)
	}
	first := make(chan answered)
	go func() {
		a, err := ask(t.Context(), one, one.APIKey, "/access_codes/create", "slow", body)
		if err != nil {
			t.Error(err)
		}
		first <- a
	}()
	apptest.Until(t, "the first waits for the device", func() bool {
		return count(
			t,
			db,
			"select count(*) from pg_stat_activity where query like '%LockWorkspaceDevice%' and $1 = any "+
				"(pg_blocking_pids(pid))",
			tx.Conn().PgConn().PID(),
		) > 0
	})
	for i, s := range []*apptest.Server{one, two} {
		if a := sent(
			t,
			s,
			s.APIKey,
			"/access_codes/create",
			"slow",
			body,
		); a.kind(t) != "409 idempotency_key_in_use" ||
			a.after != "1" {
			t.Errorf("instance %d: %+v", i, a)
		}
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	a := <-first
	if a.status != http.StatusOK {
		t.Fatalf("the first: %+v", a)
	}
	if again := sent(
		t,
		two,
		two.APIKey,
		"/access_codes/create",
		"slow",
		body,
	); again.body != a.body ||
		!again.replayed {
		t.Errorf("%+v, want %+v", again, a)
	}
}

// Another instance replays a lost response.
func TestIdempotency_LostResponse(t *testing.T) {
	t.Parallel()
	one, db := keyedServer(t, func(c *app.Config) {
		recorded := c.Wrap
		c.Wrap = func(next http.Handler) http.Handler {
			return recorded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/access_codes/create" {
					next.ServeHTTP(discarding{w.Header()}, r)
					panic(http.ErrAbortHandler)
				}
				next.ServeHTTP(w, r)
			}))
		}
	})
	body := fmt.Sprintf(`{"device_id":%q,"name":"Lost","code":"836291"}`, one.Device(t, "august"))
	if a, err := ask(t.Context(), one, one.APIKey, "/access_codes/create", "lost", body); err == nil {
		t.Fatalf("got a response: %+v", a)
	}
	two := one.StartAnother(t)
	again := sent(t, two, two.APIKey, "/access_codes/create", "lost", body)
	if again.status != http.StatusOK || !again.replayed || !strings.Contains(again.body, `"836291"`) {
		t.Errorf("again: %+v", again)
	}
	if n := codesNamed(t, one, db, "Lost"); n != 1 {
		t.Errorf("%d codes", n)
	}
}

type discarding struct{ header http.Header }

func (d discarding) Header() http.Header       { return d.header }
func (discarding) Write(b []byte) (int, error) { return len(b), nil }
func (discarding) WriteHeader(int)             {}

// A request that waits for its action attempt has had its effect. If it is cut off, its repetition continues to wait.
func TestIdempotency_RepeatedWaitForAttempt(t *testing.T) {
	t.Parallel()
	one, db := keyedServer(t)
	two := one.StartAnother(t)
	device := one.Device(t, "august")
	if status := one.Post(
		t,
		"/devices/simulate/disconnect",
		params{"device_id": device},
		nil,
	); status != http.StatusOK {
		t.Fatal(status)
	}
	body := fmt.Sprintf(`{"device_id":%q,"name":"Waited for","sync":true}`, device)
	ctx, hangUp := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := ask(ctx, one, one.APIKey, "/access_codes/create", "wait", body)
		ended <- err
	}()
	apptest.Until(t, "the request waits", func() bool {
		return count(
			t,
			db,
			"select count(*) from idempotency_keys where action_attempt_id is not null and answer_sealed is null",
		) == 1
	})
	hangUp()
	if err := <-ended; err == nil {
		t.Fatal("it got a response")
	}
	if status := one.Post(t, "/devices/simulate/connect", params{"device_id": device}, nil); status != http.StatusOK {
		t.Fatal(status)
	}
	again := sent(t, two, two.APIKey, "/access_codes/create", "wait", body)
	var out api.AccessCodeCreatedResponse
	if err := json.Unmarshal(
		[]byte(again.body),
		&out,
	); err != nil || again.status != http.StatusOK || !again.replayed || out.AccessCode.Status != "set" ||
		out.ActionAttempt.Status != "success" {
		t.Errorf("again: %+v: %v", again, err)
	}
	if n := codesNamed(t, one, db, "Waited for"); n != 1 {
		t.Errorf("%d codes", n)
	}
	if third := sent(t, one, one.APIKey, "/access_codes/create", "wait", body); third.body != again.body {
		t.Errorf("%+v, want %+v", third, again)
	}
}

// Rejected requests are not stored. The key can be used again.
func TestIdempotency_RejectionsAreNotStored(t *testing.T) {
	t.Parallel()
	s, db := keyedWorkspace(t)
	device := s.Device(t, "august")
	if a := sent(
		t,
		s,
		s.APIKey,
		"/access_codes/create",
		"k",
		`{"device_id":"00000000-0000-4000-8000-000000000000"}`,
	); a.kind(
		t,
	) != "404 device_not_found" {
		t.Fatalf("%+v", a)
	}
	if a := sent(
		t,
		s,
		s.APIKey,
		"/access_codes/simulate/create_unmanaged_access_code",
		"k",
		fmt.Sprintf(`{"device_id":%q,"code":"1","name":"x"}`, device),
	); a.status != http.StatusBadRequest {
		t.Fatalf("%+v", a)
	}
	if n := count(t, db, "select count(*) from idempotency_keys where workspace_id = $1", s.WorkspaceID); n != 0 {
		t.Errorf("%d keys are kept", n)
	}
	if a := sent(
		t,
		s,
		s.APIKey,
		"/access_codes/create",
		"k",
		fmt.Sprintf(`{"device_id":%q}`, device),
	); a.status != http.StatusOK ||
		a.replayed {
		t.Errorf("%+v", a)
	}
	for what, key := range map[string]string{
		"none":          "",
		"too long":      strings.Repeat("x", 256),
		"not printable": "a\tb",
		"not ASCII":     "schlüssel",
	} {
		if a := sent(
			t,
			s,
			s.APIKey,
			"/access_codes/create",
			key,
			`{}`,
		); a.kind(t) != "400 invalid_idempotency_key" ||
			!strings.Contains(a.body, "Idempotency-Key") {
			t.Errorf("%s: %+v", what, a)
		}
		if a := sent(t, s, s.APIKey, "/webhooks/list", key, `{}`); a.status != http.StatusOK {
			t.Errorf("%s, a naturally idempotent operation: %+v", what, a)
		}
	}
}

// Stored responses are encrypted and expire after a day.
func TestIdempotency_StoredEncryptedForADay(t *testing.T) {
	t.Parallel()
	s, db := keyedServer(t)
	const pin, name, key = "739164", "Unmistakable", "a-key-of-a-client"
	body := fmt.Sprintf(`{"device_id":%q,"code":%q,"name":%q}`, s.Device(t, "august"), pin, name)
	first := sent(t, s, s.APIKey, "/access_codes/create", key, body)
	if first.status != http.StatusOK || !strings.Contains(first.body, pin) {
		t.Fatalf("%+v", first)
	}
	var id, operation string
	var keyMAC, requestMAC, answer []byte
	if err := db.Pool.QueryRow(t.Context(), "select idempotency_key_id::text, operation, key_mac, request_mac, "+
		"answer_sealed from idempotency_keys").
		Scan(&id, &operation, &keyMAC, &requestMAC, &answer); err != nil {
		t.Fatal(err)
	}
	all := bytes.Join([][]byte{[]byte(id), []byte(operation), keyMAC, requestMAC, answer}, nil)
	for _, secret := range []string{pin, name, key} {
		if bytes.Contains(all, []byte(secret)) {
			t.Errorf("the table contains %q in plain text", secret)
		}
	}
	const age = "update idempotency_keys set created_at = created_at - interval "
	run(t, db, age+"'23 hours 59 minutes'")
	run(t, db, "update workspaces set retention_due_at = now()")
	apptest.Until(t, "expired responses are deleted", func() bool {
		return count(t, db, "select count(*) from workspaces where retention_due_at <= now()") == 0
	})
	if a := sent(
		t,
		s,
		s.APIKey,
		"/access_codes/create",
		key,
		body,
	); !a.replayed || a.status != first.status ||
		a.body != first.body {
		t.Errorf(
			"a minute before the day is over: %d, replayed: %t, the same: %t",
			a.status,
			a.replayed,
			a.body == first.body,
		)
	}
	run(t, db, age+"'2 minutes'")
	// The response is not replayed: the code exists, which the server now reports.
	if a := sent(t, s, s.APIKey, "/access_codes/create", key, body); a.kind(t) != "409 duplicate_access_code" {
		t.Errorf("after a day: %+v", a)
	}
	run(t, db, "update workspaces set retention_due_at = now()")
	apptest.Until(
		t,
		"the old answer is forgotten",
		func() bool { return count(t, db, "select count(*) from idempotency_keys") == 0 },
	)
}
