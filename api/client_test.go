package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// script answers requests one after the other, without a network, so that time in tests can be made up. Questions
// for the
// workspace are answered aside, by default as one that does not have it.
type script struct {
	t         *testing.T
	answers   []func(*http.Request) (*http.Response, error)
	workspace func(*http.Request) (*http.Response, error)
	seen      []string
}

func (s *script) RoundTrip(req *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(req.Body)
	if req.URL.Path == "/api/workspaces/get" {
		if s.workspace == nil {
			return says(404, "<h1>404</h1>")(req)
		}
		return s.workspace(req)
	}
	s.seen = append(s.seen, req.URL.Path+" "+string(body))
	if len(s.answers) == 0 {
		s.t.Fatalf("unexpected request: %s", req.URL.Path)
	}
	next := s.answers[0]
	s.answers = s.answers[1:]
	return next(req)
}

// says is an answer: a body of JSON, or of HTML if it begins with "<".
func says(status int, body string, headers ...string) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		resp := &http.Response{
			StatusCode: status,
			Header:     http.Header{},
			Body:       io.NopCloser(strings.NewReader(body)),
			Request:    req,
		}
		resp.Header.Set("Content-Type", "application/json; charset=utf-8")
		if strings.HasPrefix(body, "<") {
			resp.Header.Set("Content-Type", "text/html")
		}
		resp.Header.Set("seam-request-id", "r-1")
		for i := 0; i+1 < len(headers); i += 2 {
			resp.Header.Set(headers[i], headers[i+1])
		}
		return resp, nil
	}
}

func breaks(err error) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

const (
	webhookJSON = `{"ok": true, "webhook": {"webhook_id": "w1", "url": "https://example.com"}}`
	testKey     = "seam_test2bMS_94SrGUXuNR2JmJkjtvBQDg5c"
)

// scripted is a client whose server plays the answers.
func scripted(t *testing.T, answers ...func(*http.Request) (*http.Response, error)) (*Client, *script) {
	t.Helper()
	s := &script{t: t, answers: answers}
	client, err := New(
		Config{
			Endpoint:   "http://server.example/api/",
			Credential: testKey,
			UserAgent:  "test/1",
			Transport:  s,
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	return client, s
}

func read(ctx context.Context, client *Client) error {
	_, err := Call[WebhookResponse](ctx, client.GetWebhook, WebhookRequest{WebhookID: "w1"})
	return err
}

func write(ctx context.Context, client *Client) error {
	_, err := Call[WebhookResponse](ctx, client.CreateWebhook, CreateWebhookRequest{URL: "https://example.com"})
	return err
}

func change(ctx context.Context, client *Client) error {
	_, err := Call[OkResponse](ctx, client.UpdateWebhook, UpdateWebhookRequest{WebhookID: "w1"})
	return err
}

var (
	refused  = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	reset    = &net.OpError{Op: "read", Net: "tcp", Err: errors.New("connection reset by peer")}
	noSuch   = &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", IsNotFound: true}}
	goodRead = says(200, webhookJSON)
)

func TestRetriesOnlySafeRequests(t *testing.T) {
	cases := map[string]struct {
		answer        func(*http.Request) (*http.Response, error)
		reads, writes int // how often a read and a change, and how often a creation, is asked
	}{
		"success":            {goodRead, 1, 1},
		"429":                {says(429, `{}`), 2, 2},
		"503":                {says(503, ``), 2, 2},
		"502":                {says(502, `<h1>`), 2, 1},
		"504":                {says(504, ``), 2, 1},
		"500":                {says(500, `{}`), 1, 1},
		"400":                {says(400, `{}`), 1, 1},
		"connection refused": {breaks(refused), 2, 2},
		"connection reset":   {breaks(reset), 2, 1},
		"no such host":       {breaks(noSuch), 1, 1},
		"cut off":            {cutOff, 2, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				check(t, "read", read, c.reads, c.answer)
				check(t, "change", change, c.reads, c.answer)
				check(t, "write", write, c.writes, c.answer)
			})
		})
	}
}

// check counts how often a call is asked for whose first answer is this and whose second is good.
func check(
	t *testing.T,
	name string,
	call func(context.Context, *Client) error,
	want int,
	first func(*http.Request) (*http.Response, error),
) {
	t.Helper()
	client, s := scripted(t, first, goodRead)
	err := call(t.Context(), client)
	if len(s.seen) != want {
		t.Errorf("%s: asked %d times, want %d: %q", name, len(s.seen), want, s.seen)
	}
	if len(s.seen) == 2 && (err != nil || s.seen[0] != s.seen[1]) {
		t.Errorf("%s: the second try: %v, %q", name, err, s.seen)
	}
}

// A creation has a key, each its own, and where the server goes by keys it is repeated like what is harmless.
func TestRetriesCreationsWithIdempotencyKey(t *testing.T) {
	type answer = func(*http.Request) (*http.Response, error)
	busy := says(409, `{"ok":false,"error":{"type":"idempotency_key_in_use"}}`, "Retry-After", "1")
	for name, c := range map[string]struct {
		known bool // that the server goes by keys
		first answer
		want  int // how often the creation is asked
	}{
		"reset, of a server that goes by keys":      {true, breaks(reset), 2},
		"reset, of another":                         {false, breaks(reset), 1},
		"cut off, of a server that goes by keys":    {true, cutOff, 2},
		"502 of what is before it":                  {true, says(502, `<h1>`), 2},
		"a first one that is still being answered":  {true, busy, 2},
		"such an answer of another":                 {false, busy, 1},
		"a conflict":                                {true, says(409, `{}`), 1},
		"500":                                       {true, says(500, `{}`), 1},
		"told by the answer to the creation itself": {false, says(502, `<h1>`, acceptsKeysHeader, "true"), 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var keys []string
				creating := func(f answer) answer {
					return func(r *http.Request) (*http.Response, error) {
						keys = append(keys, r.Header.Get("Idempotency-Key"))
						return f(r)
					}
				}
				var before []string
				if c.known {
					before = []string{acceptsKeysHeader, "true"}
				}
				client, _ := scripted(
					t,
					says(200, webhookJSON, before...),
					creating(c.first),
					creating(goodRead),
					creating(goodRead),
				)
				if err := read(t.Context(), client); err != nil {
					t.Fatal(err)
				}
				err := write(t.Context(), client)
				if len(keys) != c.want || (c.want == 2) != (err == nil) || keys[0] == "" ||
					keys[len(keys)-1] != keys[0] {
					t.Errorf("asked with %q, want %d: %v", keys, c.want, err)
				}
				if err := write(t.Context(), client); err != nil || keys[len(keys)-1] == keys[0] {
					t.Errorf("another creation: %v, keys %q", err, keys)
				}
			})
		})
	}
}

// The first request of a run may be a creation: what fails of it is not known to be harmless then, and the server
// is asked.
func TestRetriesCreation_FirstRequest(t *testing.T) {
	for name, c := range map[string]struct {
		first func(*http.Request) (*http.Response, error)
		says  string // whether it goes by keys
		tries int    // of the creation
		asked int    // for the workspace
	}{
		"reset, of a server that goes by keys": {breaks(reset), "true", 2, 1},
		"cut off, of such a server":            {cutOff, "true", 2, 1},
		"reset, of another":                    {breaks(reset), "", 1, 1},
		"no connection":                        {breaks(refused), "true", 2, 0},
		"500":                                  {says(500, `{}`), "true", 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, s := scripted(t, c.first, goodRead)
				asked := 0
				s.workspace = func(req *http.Request) (*http.Response, error) {
					if req.Header.Get(keyHeader) != "" {
						t.Error("the question has the key of the creation")
					}
					asked++
					return says(200, `{"ok":true}`, acceptsKeysHeader, c.says)(req)
				}
				err := write(t.Context(), client)
				if (c.tries == 2) != (err == nil) || len(s.seen) != c.tries || asked != c.asked {
					t.Errorf("tried %q, asked %d times: %v", s.seen, asked, err)
				}
			})
		})
	}
}

// cutOff begins an answer and does not end it.
func cutOff(req *http.Request) (*http.Response, error) {
	resp, _ := says(200, "")(req)
	resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"ok": tr`), failingReader{}))
	return resp, nil
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestRetriesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, s := scripted(t, slices.Repeat([]func(*http.Request) (*http.Response, error){breaks(refused)}, 50)...)
		start := time.Now()
		if err := read(t.Context(), client); !errors.Is(err, refused) {
			t.Errorf("error: %v", err)
		}
		if waited := time.Since(start); len(s.seen) != maxTries || waited > 15*time.Second {
			t.Errorf("asked %d times in %s", len(s.seen), waited)
		}
	})
}

func TestRetryAfterIsObeyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		headers := map[string]func() string{
			"seconds": func() string { return "30" },
			"a date":  func() string { return time.Now().Add(30 * time.Second).UTC().Format(http.TimeFormat) },
		}
		for name, header := range headers {
			client, _ := scripted(t, says(429, `{}`, "Retry-After", header()), goodRead)
			start := time.Now()
			if err := write(t.Context(), client); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if waited := time.Since(start); waited < 29*time.Second || waited > 31*time.Second {
				t.Errorf("%s: waited %s", name, waited)
			}
		}
	})
}

func TestRetriesAreBoundedByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limited, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for name, c := range map[string]struct {
			ctx   context.Context
			after string
		}{"context": {limited, "20"}, "patience": {t.Context(), "3600"}} {
			client, s := scripted(
				t,
				says(
					429,
					`{"ok": false, "error": {"type": "too_many_requests", "message": "Slow down"}}`,
					"Retry-After",
					c.after,
				),
			)
			start := time.Now()
			err := read(c.ctx, client)
			if StatusOf(err) != 429 || len(s.seen) != 1 || time.Since(start) > time.Second {
				t.Errorf("%s: %v after %s and %d requests", name, err, time.Since(start), len(s.seen))
			}
		}
	})
}

func TestRequestHeaders(t *testing.T) {
	const pat = "seam_at_2bMS94SrGUXuNR2JmJkjtvBQDg5c"
	for credential, workspace := range map[string]string{testKey: "", pat: "ws-1", "eyJhbGciOi": "ws-1"} {
		var got http.Header
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = r.Header
			if r.URL.Path != "/api/webhooks/get" {
				t.Errorf("path %s", r.URL.Path)
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, webhookJSON)
		}))
		defer server.Close()
		for _, slash := range []string{"", "/"} {
			client, err := New(
				Config{
					Endpoint:    server.URL + "/api" + slash,
					Credential:  credential,
					WorkspaceID: "ws-1",
					UserAgent:   "test/1",
				},
			)
			if err != nil {
				t.Fatal(err)
			}
			if err := read(t.Context(), client); err != nil {
				t.Fatal(err)
			}
			if got.Get("Authorization") != "Bearer "+credential || got.Get("User-Agent") != "test/1" ||
				got.Get("seam-workspace") != workspace {
				t.Errorf("headers of %s: %v", credential, got)
			}
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	client, s := scripted(t, says(307, "", "Location", "http://elsewhere.example/"))
	err := write(t.Context(), client)
	if len(s.seen) != 1 || StatusOf(err) != 307 || !strings.Contains(err.Error(), "set the endpoint to the address") {
		t.Errorf("%v after %q", err, s.seen)
	}
}

func TestCheckEndpoint(t *testing.T) {
	for endpoint, good := range map[string]bool{
		"http://127.0.0.1:8500": true, "https://example.com/api/": true, "": false, "localhost:8500": false, "/path": false, "ftp://x": false,
		"http://user:secret99@example.com": false, "http://example.com?x=1": false, "http://[": false,
	} {
		err := CheckEndpoint(endpoint)
		if (err == nil) != good {
			t.Errorf("%q: %v", endpoint, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret99") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}
