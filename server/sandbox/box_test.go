package sandbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// box is a sandbox with one account, called over HTTP.
type box struct {
	*sandbox.Sandbox
	url     string
	account sandbox.Account
	server  *httptest.Server
}

func open(t testing.TB, o sandbox.Options, profiles ...string) *box {
	t.Helper()
	if o.Speed == 0 {
		o.Speed = 1000
	}
	s := sandbox.New(o)
	t.Cleanup(s.Close)
	account, err := s.EnsureAccount(sandbox.AccountSpec{Key: "test", Profiles: profiles})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	return &box{
		Sandbox: s,
		url:     server.URL,
		account: account,
		server:  server,
	}
}

// object is a JSON object.
type object = map[string]any

// call sends a request and returns the status and the response.
func (b *box) call(t testing.TB, method, path string, body any) (int, object) {
	t.Helper()
	return b.callAs(t, b.account.Token, method, path, body)
}

func (b *box) callAs(t testing.TB, token, method, path string, body any) (int, object) {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, b.url+path, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := b.server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err = io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer object
	if len(data) > 0 {
		if err := json.Unmarshal(data, &answer); err != nil {
			t.Fatalf("%s %s: %d %q", method, path, resp.StatusCode, data)
		}
	}
	return resp.StatusCode, answer
}

// ok sends a request that must succeed.
func (b *box) ok(t testing.TB, method, path string, body any) object {
	t.Helper()
	status, answer := b.call(t, method, path, body)
	if status/100 != 2 {
		t.Fatalf("%s %s: %d %v", method, path, status, answer)
	}
	return answer
}

// refuses requires that a request fails with the code.
func (b *box) refuses(t testing.TB, code, method, path string, body any) object {
	t.Helper()
	status, answer := b.call(t, method, path, body)
	if status/100 == 2 || answer["error_code"] != code {
		t.Fatalf("%s %s: %d %v, want %s", method, path, status, answer, code)
	}
	return answer
}

func (b *box) lock() string { return b.account.Locks[0].ID }

func (b *box) codesPath() string { return "/locks/" + b.lock() + "/access_codes" }

func (b *box) controlPath(what string) string { return "/sandbox/locks/" + b.lock() + "/" + what }

func (b *box) faults(t testing.TB, f sandbox.Faults) {
	t.Helper()
	b.ok(t, http.MethodPut, b.controlPath("faults"), f)
}

// memory returns the content of the lock.
func (b *box) memory(t testing.TB) []object {
	t.Helper()
	return objects(b.ok(t, http.MethodGet, b.controlPath("memory"), nil)["access_codes"])
}

// list returns the codes as shown by the cloud.
func (b *box) list(t testing.TB) []object {
	t.Helper()
	return objects(b.ok(t, http.MethodGet, b.codesPath(), nil)["access_codes"])
}

func objects(v any) []object {
	var all []object
	for _, one := range v.([]any) {
		all = append(all, one.(object))
	}
	return all
}

// with returns the code with the field, or nil.
func with(codes []object, field string, value any) object {
	if i := slices.IndexFunc(codes, func(c object) bool { return c[field] == value }); i >= 0 {
		return codes[i]
	}
	return nil
}

// put writes a code and waits until it is on the lock.
func (b *box) put(t testing.TB, body object) string {
	t.Helper()
	id, _ := b.ok(t, http.MethodPost, b.codesPath(), body)["access_code_id"].(string)
	testenv.Until(t, "the code is on the lock", func() bool { return with(b.memory(t), "access_code_id", id) != nil })
	return id
}

// events receives the pushes of a webhook.
type events struct{ got chan object }

func (b *box) subscribe(t testing.TB, names ...string) *events {
	t.Helper()
	e := &events{got: make(chan object, 1000)}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var event object
		if err := json.NewDecoder(r.Body).Decode(&event); err != nil {
			t.Error(err)
		}
		e.got <- event
	}))
	t.Cleanup(server.Close)
	b.ok(t, http.MethodPost, "/webhooks", object{"url": server.URL, "events": names})
	return e
}

// next returns the next push of the type.
func (e *events) next(t testing.TB, name string) object {
	t.Helper()
	deadline := time.After(testenv.Timeout(testenv.WaitTimeout))
	for {
		select {
		case event := <-e.got:
			if event["event_type"] == name {
				return event
			}
		case <-deadline:
			t.Fatalf("no event %s", name)
		}
	}
}
