package provider

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

// answers is a server that answers everything so.
func answers(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// unusedAddress is an address at which nothing listens.
func unusedAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return "http://" + listener.Addr().String()
}

func cutOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", "1000")
	_, _ = io.WriteString(w, `{"ok": true, "workspace": {`)
}

func tooLong(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	for range 17 {
		_, _ = io.WriteString(w, strings.Repeat(" ", 1<<20))
	}
}

func TestWhateverAnswersTheDiagnosticSaysWhatToDo(t *testing.T) {
	t.Parallel()
	secure := httptest.NewUnstartedServer(answerRaw(http.StatusOK, "application/json", "{}"))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	plain := answers(t, answerRaw(http.StatusOK, "application/json", "{}"))
	cases := map[string]struct {
		endpoint string
		says     []string
	}{
		"an HTML page": {
			answers(t, answerRaw(200, "text/html", "<h1>Log in</h1>")),
			[]string{"not an answer of this API: Log in", "Check `endpoint`"},
		},
		"an HTML error": {
			answers(t, answerRaw(500, "text/html", "<h1>Oops</h1>")),
			[]string{"500 Internal Server Error", "Oops", "see its log"},
		},
		"an empty error": {
			answers(t, answerRaw(500, "text/plain", "")),
			[]string{"without saying why", "see its log"},
		},
		"an empty body": {
			answers(t, answerRaw(200, "application/json", "")),
			[]string{"not what the contract says", "Check `endpoint`"},
		},
		"truncated JSON": {
			answers(t, answerRaw(200, "application/json", `{"ok": true, "work`)),
			[]string{"not what the contract says", "Check `endpoint`"},
		},
		"another JSON": {
			answers(t, answerRaw(200, "application/json", `{"status": "up"}`)),
			[]string{"contains no workspace", "Check `endpoint`"},
		},
		"an answer cut off": {answers(t, cutOff), []string{"read the answer: unexpected EOF", "cut off", "proxies"}},
		"an endless answer": {answers(t, tooLong), []string{"longer than 16777216 bytes", "too long", "proxies"}},
		"no certificate":    {secure.URL, []string{"certificate", "`ca_certificate`", envCACertificate}},
		"no TLS":            {strings.Replace(plain, "http:", "https:", 1), []string{"must begin with http://"}},
		"nothing listens":   {unusedAddress(t), []string{"connection refused", "Check that the server is running"}},
		"a wrong path":      {answers(t, http.NotFound) + "/api/v2", []string{"404 Not Found", "Check `endpoint`"}},
		"a plain proxy": {
			answers(t, answerRaw(407, "text/html", "<h1>Who are you?</h1>")),
			[]string{"407 Proxy Authentication Required", "HTTP_PROXY", "USER:PASSWORD"},
		},
		"a redirect": {
			answers(t, answerRaw(308, "text/plain", "")),
			[]string{"set the endpoint to the address"},
		},
		"a refused key": {
			answers(t, answerError(401, "unauthorized", "API Key not found")),
			[]string{"Check `api_key`", "Nothing is removed from the state"},
		},
		"a forbidden read": {
			answers(t, answerError(403, "forbidden", "Not for this key")),
			[]string{"Use an API key with the permission", "Nothing is removed from the state"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, diags := settings{
				APIKey:   types.StringValue(fakeKey),
				Endpoint: types.StringValue(c.endpoint),
			}.connect(
				t.Context(),
				"test",
			)
			if diags.HasError() {
				t.Fatal(diags)
			}
			_, err := conn.workspace(t.Context())
			expectDiagnostic(t, err, c.says)
		})
	}
}

// expectDiagnostic fails the test when the diagnostic for an error does not say all of this, or does not say what to
// do.
func expectDiagnostic(t *testing.T, err error, says []string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	var diags diag.Diagnostics
	report(&diags, "Read workspace", err)
	detail := diags.Errors()[0].Detail()
	for _, text := range says {
		if !strings.Contains(detail, text) {
			t.Errorf("%q is not in: %s", text, detail)
		}
	}
	if strings.Contains(detail, fakeKey) {
		t.Errorf("the key is in: %s", detail)
	}
}

func TestAnswerThatDragsOnIsExplained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, err := api.New(api.Config{Endpoint: "http://server.example", Credential: fakeKey, Transport: slow{}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = api.Call[api.WorkspaceResponse](t.Context(), client.GetWorkspace, api.EmptyRequest{})
		expectDiagnostic(t, err, []string{"did not end within", "too slow", "proxies"})
	})
}

func TestConnectionsThatAreRefusedSayWhatToDo(t *testing.T) {
	t.Parallel()
	refused := errors.New("connection refused")
	for name, c := range map[string]struct {
		err  error
		says string
	}{
		"a proxy":              {&net.OpError{Op: "proxyconnect", Net: "tcp", Err: &net.OpError{Op: "dial", Net: "tcp", Err: refused}}, "NO_PROXY"},
		"a SOCKS proxy":        {&net.OpError{Op: "socks connect", Net: "tcp", Err: refused}, "NO_PROXY"},
		"a client certificate": {&net.OpError{Op: "remote error", Err: tls.AlertError(116)}, "requires a client certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectDiagnostic(
				t,
				fmt.Errorf("Post %q: %w", "https://server.example/workspaces/get", c.err),
				[]string{c.says, "nothing was sent"},
			)
		})
	}
}

// slow begins an answer, and says a blank of it every second.
type slow struct{}

func (slow) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Content-Type": {"application/json"}},
		Body:       drip{req},
		Request:    req,
	}, nil
}

type drip struct{ req *http.Request }

func (drip) Close() error { return nil }

func (d drip) Read(p []byte) (int, error) {
	select {
	case <-d.req.Context().Done():
		return 0, fmt.Errorf("stopped: %w", d.req.Context().Err())
	case <-time.After(time.Second):
		p[0] = ' '
		return 1, nil
	}
}
