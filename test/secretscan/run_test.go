package secretscan_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/ratelimit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/secretscan"
)

func TestMain(m *testing.M) { apptest.Main(m) }

// trial is a run in which everything goes wrong.
type trial struct {
	*testing.T
	*apptest.Server
	run    secretscan.Run
	dsn    string
	device string
	pins   int
	// found counts the secrets, by kind, that were learned before the first request.
	found map[string]int
}

func newTrial(t *testing.T, opts ...apptest.Option) *trial {
	t.Helper()
	r := &trial{T: t}
	dsn := func(c *app.Config) { r.dsn = c.DatabaseURL }
	r.Server = apptest.Start(
		t,
		append([]apptest.Option{apptest.WithProfiles("august"), dsn, r.run.Configure(t)}, opts...)...)
	r.device, r.found = r.Device(t, "august"), map[string]int{}
	for _, kind := range []string{"code", "password", "credential"} {
		r.found[kind] = r.run.Count(kind)
	}
	return r
}

// learned checks the number of secrets of a kind that were learned from the test's requests. The server itself sends
// some more.
func (r *trial) learned(kind string, want int) {
	r.Helper()
	if n := r.run.Count(kind) - r.found[kind]; n < want {
		r.Errorf("%s: %d secrets were learned, %d were sent", kind, n, want)
	}
}

// pin returns a unique PIN. Six digits are found anywhere, and no duration or port starts with 0.
func (r *trial) pin() string {
	r.pins++
	return fmt.Sprintf("0391%02d", r.pins)
}

// create returns the body of a request for a code, with additional members.
func (r *trial) create(more string) string {
	return fmt.Sprintf(`{"device_id":%q,"code":%q%s}`, r.device, r.pin(), more)
}

func (r *trial) answered(status int, what string, header http.Header, path, body string) {
	r.Helper()
	if res := r.Send(r.T, http.MethodPost, path, header, body, nil); res.StatusCode != status {
		r.Errorf("%s: status %d, want %d", what, res.StatusCode, status)
	}
}

// Neither the response nor the log of a rejected request reveals its content.
func TestErrorResponsesRevealNothing(t *testing.T) {
	t.Parallel()
	r := newTrial(t, func(c *app.Config) { c.Limits = ratelimit.Limits{FailuresPerMinute: 1} })
	const path = "/access_codes/create"
	good := apptest.Bearer(r.APIKey)
	taken := r.create("")
	r.answered(http.StatusOK, "a code", good, path, taken)
	r.answered(http.StatusConflict, "a PIN that is taken", good, path, taken)
	r.answered(
		http.StatusBadRequest,
		"a time that is none",
		good,
		path,
		r.create(`,"starts_at":"never","password":"mistyped-by-a-user"`),
	)
	r.answered(
		http.StatusBadRequest,
		"a PIN that is a number",
		good,
		path,
		fmt.Sprintf(`{"device_id":%q,"code":1%s}`, r.device, r.pin()),
	)
	r.answered(
		http.StatusBadRequest,
		"a PIN with letters",
		good,
		path,
		fmt.Sprintf(`{"device_id":%q,"code":"%sx"}`, r.device, r.pin()),
	)
	r.answered(http.StatusBadRequest, "JSON that is cut off", good, path, strings.TrimSuffix(r.create(""), "}"))
	r.answered(
		http.StatusNotFound,
		"a device that there is not",
		good,
		path,
		fmt.Sprintf(`{"device_id":"0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11","code":%q}`, r.pin()),
	)
	r.answered(http.StatusNotFound, "a path that there is not", good, "/access_codes/guess?code="+r.pin(), r.create(""))
	r.answered(
		http.StatusNotFound,
		"a page that there is not",
		http.Header{"Content-Type": {"application/x-www-form-urlencoded"}},
		"/connect/c29tZWJvZHkgaGFzIGd1ZXNzZWQgdGhpcw/august",
		"password=guessed-by-a-user",
	)
	r.answered(
		http.StatusRequestEntityTooLarge,
		"too much",
		good,
		path,
		r.create(`,"name":"`+strings.Repeat("x", 1<<20)+`"`),
	)
	r.unavailable(good, path, r.create(""))
	r.run.AddCheck(t, "access_codes", "name <> 'Unforeseen'")
	r.answered(
		http.StatusInternalServerError,
		"what the database refuses",
		good,
		path,
		r.create(`,"name":"Unforeseen"`),
	)

	page := r.page()
	res, err := http.PostForm(
		page+"/august",
		url.Values{"email": {"jane@example.com"}, "password": {"mistyped-at-a-vendor"}},
	)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("a wrong vendor password: status %d", res.StatusCode)
	}

	guesses := 0
	for status := 0; status != http.StatusTooManyRequests && guesses < 50; guesses++ {
		status = r.Send(
			t,
			http.MethodPost,
			path,
			apptest.Bearer(fmt.Sprintf("seam_test%d_of_another_user", guesses)),
			r.create(""),
			nil,
		).StatusCode
		if guesses == 0 && status != http.StatusUnauthorized || guesses == 49 {
			t.Errorf("invalid key %d: status %d", guesses, status)
		}
	}
	r.learned("code", r.pins)
	r.learned("password", 3)
	r.learned("credential", guesses+1) // and the valid one
	r.run.Check(t, r.App, nil)
}

// unavailable makes a request wait for a lock on the table until the client disconnects.
func (r *trial) unavailable(header http.Header, path, body string) {
	r.Helper()
	conn, err := pgx.Connect(r.Context(), r.dsn)
	if err != nil {
		r.Fatal(err)
	}
	defer conn.Close(r.Context())
	if _, err := conn.Exec(r.Context(), "begin; lock table access_codes"); err != nil {
		r.Fatal(err)
	}
	asking, hangUp := context.WithCancel(r.Context())
	req, err := http.NewRequestWithContext(asking, http.MethodPost, r.URL+path, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	req.Header = header.Clone()
	req.Header.Set("Content-Type", "application/json")
	ended := make(chan error, 1)
	go func() {
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			res.Body.Close()
		}
		ended <- err
	}()
	apptest.Until(r.T, "the request waits", func() (waits bool) {
		if err := conn.QueryRow(r.Context(), "select exists(select from pg_locks where not granted and database = "+
			"(select oid from pg_database where datname = current_database()))").
			Scan(&waits); err != nil {
			r.Fatal(err)
		}
		return waits
	})
	hangUp()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		r.Errorf("the waiting request ended with %v", err)
	}
	apptest.Until(
		r.T,
		"the request is rejected",
		func() bool { return strings.Contains(string(r.run.ErrorResponses()), path+" 499 ") },
	)
}

// page returns the URL of a login page.
func (r *trial) page() string {
	r.Helper()
	var out api.ConnectWebviewResponse
	if status := r.Post(r.T, "/connect_webviews/create", map[string]any{}, &out); status != http.StatusOK {
		r.Fatalf("a webview: status %d", status)
	}
	return out.ConnectWebview.URL
}
