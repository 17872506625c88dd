package rest

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestCORS(t *testing.T) {
	t.Parallel()
	b := setup(t)
	preflight := b.send(t, request{method: "OPTIONS", path: "/devices/list", header: map[string]string{
		"Origin":                         "https://app.example",
		"Authorization":                  absent,
		"Access-Control-Request-Method":  "POST",
		"Access-Control-Request-Headers": "x-any",
	}})
	if preflight.status != 200 {
		t.Errorf("OPTIONS without a credential: status %d", preflight.status)
	}
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin": "https://app.example", "Access-Control-Allow-Credentials": "true", "Vary": "Origin",
		"Access-Control-Allow-Methods": "GET,POST,PUT,PATCH,DELETE,OPTIONS", "Access-Control-Allow-Headers": "x-any",
	} {
		if got := preflight.header.Get(name); got != want {
			t.Errorf("preflight: %s = %q, want %q", name, got, want)
		}
	}
	refused := b.send(
		t,
		request{
			method: "POST",
			path:   "/devices/list",
			header: map[string]string{"Origin": "https://app.example", "Authorization": absent},
		},
	)
	if refused.status != 401 || refused.header.Get("Access-Control-Allow-Origin") != "https://app.example" {
		t.Errorf("a page must be able to read a 401: %d %v", refused.status, refused.header)
	}
	for _, method := range []string{"OPTIONS", "POST"} {
		plain := b.send(t, request{method: method, path: "/devices/list"})
		for name := range plain.header {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s without an Origin is answered with %s", method, name)
			}
		}
	}
}

func TestContractIsServedExpanded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	got := b.send(t, request{method: "GET", path: "/openapi.json", header: map[string]string{"Authorization": absent}})
	paths, _ := got.body["paths"].(map[string]any)
	list, _ := paths["/devices/list"].(map[string]any)
	if got.status != 200 || list["get"] == nil || list["post"] == nil {
		t.Fatalf("status %d, /devices/list: %v", got.status, list)
	}
	if strings.Contains(got.raw, "x-methods") {
		t.Error("x-methods is still there")
	}
	head := b.send(t, request{method: "HEAD", path: "/openapi.json"})
	if head.status != 200 || head.raw != "" || head.header.Get("Content-Length") == "0" {
		t.Errorf("HEAD: %d %v", head.status, head.header)
	}
	if post := b.send(
		t,
		request{method: "POST", path: "/openapi.json", body: "{}"},
	); post.status != 405 ||
		post.header.Get("Allow") != "GET" {
		t.Errorf("POST: %d, Allow %q", post.status, post.header.Get("Allow"))
	}
}

func TestAccessLogHasNoSecrets(t *testing.T) {
	t.Parallel()
	b := setup(t)
	res := b.send(
		t,
		request{
			method: "POST",
			path:   "/access_codes/create?name=Secretname",
			body:   `{"device_id":"` + someID + `","code":"471108153690"}`,
		},
	)
	b.send(t, request{method: "GET", path: "/codes/471108153690/Secretname"})
	b.send(t, request{method: "DELETE", path: "/webhooks/delete?webhook_id=w"})
	b.send(t, request{method: "POST", path: "/devices/get", body: `{"name":"unforeseen"}`})
	log := b.log.String()
	for _, want := range []string{
		"request_id=" + res.header.Get("seam-request-id"), "route=/access_codes/create", "method=GET route=unknown status=404", "method=DELETE route=/webhooks/delete status=200",
		"workspace_id=" + workspaceA.String(), "error=internal_server_error",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s:\n%s", want, log)
		}
	}
	requests := strings.ReplaceAll(log, "PIN 4711 is in here", "") // the cause of the 500, which only the log tells
	// The PIN is long, so as not to stand in an identifier or a time by chance.
	for _, secret := range []string{"471108153690", "Secretname", goodKey} {
		if strings.Contains(requests, secret) {
			t.Errorf("the log holds %s:\n%s", secret, log)
		}
	}
	if !strings.Contains(log, "PIN 4711 is in here") {
		t.Error("the cause of a 500 is not logged")
	}
}

// A client that stops reading or disconnects is not an error of the server.
func TestUnreadResponsesAreNotLoggedAsErrors(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, cause := range []error{os.ErrDeadlineExceeded, &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/devices/list", nil)
		r.Header.Set("Authorization", "Bearer "+goodKey)
		b.handler.ServeHTTP(deaf{httptest.NewRecorder(), cause}, r)
		if log := b.log.String(); strings.Contains(log, "level=ERROR") || !strings.Contains(log, cause.Error()) ||
			!strings.Contains(log, "did not read the whole response") {
			t.Errorf("%v: the log: %s", cause, log)
		}
	}
}

// A truncated response must not look complete.
func TestTruncatedResponsesCloseConnection(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r, err := http.NewRequestWithContext(
		t.Context(),
		http.MethodPost,
		b.url+"/devices/get",
		strings.NewReader(`{"name":"torn"}`),
	)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+goodKey)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err == nil {
		_, err = io.ReadAll(res.Body)
		res.Body.Close()
	}
	if err == nil {
		t.Error("the answer looks whole")
	}
	if log := b.log.String(); !strings.Contains(log, "the rest is lost") {
		t.Errorf("the log: %s", log)
	}
}

// Requests end after requestTimeout, because clients do not wait longer.
func TestRequestsTimeOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		handler, err := newEdge(answers{}, knownKeys, Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		r := httptest.NewRequestWithContext(
			t.Context(),
			http.MethodPost,
			"/devices/get",
			strings.NewReader(`{"name":"endless"}`),
		)
		r.Header.Set("Authorization", "Bearer "+goodKey)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if took := time.Since(
			begin,
		); took != requestTimeout || w.Code != http.StatusServiceUnavailable ||
			!strings.Contains(w.Body.String(), "try again") {
			t.Errorf("%d after %s: %s", w.Code, took, w.Body)
		}
	})
}

// deaf is a client that does not read.
type deaf struct {
	http.ResponseWriter
	cause error
}

func (d deaf) Write([]byte) (int, error) { return 0, d.cause }

func TestAbortedResponsesCloseConnection(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/devices/get?name=abort", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+goodKey)
	res, err := http.DefaultClient.Do(r)
	if err == nil {
		res.Body.Close()
		t.Errorf("answered with %s", res.Status)
	}
	if log := b.log.String(); !strings.Contains(log, "route=/devices/get") || strings.Contains(log, "error=") {
		t.Errorf("the log: %s", log)
	}
}

func TestEveryOperationOfTheContractIsServed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	doc, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			if res := b.send(
				t,
				request{method: method, path: path, header: map[string]string{"Authorization": absent}},
			); path[:7] != "/health" &&
				res.status != 401 {
				t.Errorf("%s %s without a credential: status %d", method, path, res.status)
			}
		}
	}
}
