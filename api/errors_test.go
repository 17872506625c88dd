package api

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestResponseError(t *testing.T) {
	long := strings.Repeat("x", 5000)
	cases := map[string]struct {
		status   int
		body     string
		want     string
		notFound bool
		noRoute  bool
		denied   bool
	}{
		"of the API": {
			404, `{"ok": false, "error": {"type": "webhook_not_found", "message": "No such webhook"}}`,
			"No such webhook (HTTP 404, webhook_not_found, request r-1)", true, false, false,
		},
		"401": {
			401, `{"ok": false, "error": {"type": "unauthorized", "message": "API Key not found"}}`,
			"API Key not found (HTTP 401, unauthorized, request r-1)", false, false, true,
		},
		"403 by a proxy": {
			403,
			`<h1>Forbidden</h1>`,
			"the server answered 403 Forbidden, which is not an answer of this API: Forbidden (HTTP 403, request r-1)",
			false,
			false,
			true,
		},
		"404 of another server": {
			404,
			`<html><head><style>a{b:c}</style></head><p>Not &amp; found</p></html>`,
			"the server answered 404 Not Found, which is not an answer of this API: Not & found (HTTP 404, request r-1)",
			false,
			true,
			false,
		},
		"404 of this server's own router": {
			404, `{"ok": false, "error": {"type": "route_not_found", "message": "Nothing here"}}`,
			"Nothing here (HTTP 404, route_not_found, request r-1)", false, true, false,
		},
		"a message that is a sentence": {
			409, `{"ok": false, "error": {"type": "duplicate_access_code", "message": "Choose another."}}`,
			"Choose another (HTTP 409, duplicate_access_code, request r-1)", false, false, false,
		},
		"404 of nothing": {
			404,
			``,
			"the server answered 404 Not Found without saying why (HTTP 404, request r-1)",
			false,
			true,
			false,
		},
		"405": {
			405,
			`{"ok": false, "error": {"type": "method_not_allowed", "message": "No"}}`,
			"No (HTTP 405, method_not_allowed, request r-1)",
			false,
			true,
			false,
		},
		"JSON of another kind": {
			500,
			`{"detail": "boom"}`,
			`the server answered 500 Internal Server Error, which is not an answer of this API: {"detail": "boom"} (HTTP 500, request r-1)`,
			false,
			false,
			false,
		},
		"truncated JSON": {
			400,
			`{"ok": false, "error": {"type": "inv`,
			`the server answered 400 Bad Request, which is not an answer of this API: {"ok": false, "error": {"type": "inv (HTTP 400, request r-1)`,
			false,
			false,
			false,
		},
		"a long page": {
			500,
			long,
			"the server answered 500 Internal Server Error, which is not an answer of this API: " + long[:200] + "… (HTTP 500, request r-1)",
			false,
			false,
			false,
		},
		"HTML as success": {
			200,
			`<h1>Log in</h1>`,
			"the server answered 200 OK, which is not an answer of this API: Log in (request r-1)",
			false,
			false,
			false,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			client, _ := scripted(t, says(c.status, c.body))
			err := write(t.Context(), client)
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if IsNotFound(err) != c.notFound || IsNoRoute(err) != c.noRoute || IsDenied(err) != c.denied {
				t.Errorf("not found %v, no route %v, denied %v", IsNotFound(err), IsNoRoute(err), IsDenied(err))
			}
		})
	}
}

func TestResponsesTooLong(t *testing.T) {
	client, s := scripted(t, says(200, strings.Repeat(" ", maxResponseBytes+1)))
	if err := read(
		t.Context(),
		client,
	); err == nil || !strings.Contains(err.Error(), "longer than") ||
		len(s.seen) != 1 {
		t.Errorf("%v after %d requests", err, len(s.seen))
	}
}

func TestResponseError_Fields(t *testing.T) {
	client, _ := scripted(
		t,
		says(400, `{"ok": false, "error": {"type": "invalid_input", "message": "2 Input Errors", "validation_errors":
		{"_errors": [], "url": {"_errors": ["Required", "Invalid"]}, "code": {"_errors": ["1357 is taken"]}}}}`),
	)
	_, err := Call[AccessCodeCreatedResponse](
		t.Context(),
		client.CreateAccessCode,
		CreateAccessCodeRequest{DeviceID: "d", Code: "1357"},
	)
	e, ok := errors.AsType[*ResponseError](err)
	if !ok || len(e.Fields) != 2 || !slices.Equal(e.Fields["url"], []string{"Required", "Invalid"}) ||
		e.Fields["code"][0] != "(hidden) is taken" {
		t.Errorf("error: %#v", err)
	}
}

func TestErrorsShowNoSecrets(t *testing.T) {
	const pin = "1357"
	for name, body := range map[string]string{
		"of the API": `{"ok": false, "error": {"type": "duplicate_access_code", "message": "Cannot set 1357, key ` + testKey + `"}}`,
		"of a proxy": `<p>You sent {"code":"1357"} and Bearer ` + testKey + `</p>`,
	} {
		client, _ := scripted(t, says(http.StatusConflict, body))
		_, err := Call[AccessCodeCreatedResponse](
			t.Context(),
			client.CreateAccessCode,
			CreateAccessCodeRequest{DeviceID: "d", Code: pin},
		)
		if err == nil || strings.Contains(err.Error(), pin) || strings.Contains(err.Error(), testKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRedact(t *testing.T) {
	got := Redact(`code 2026 named "x2026" at 2026-11-21 or 120261, secret whsec_abc`, "2026", "whsec_abc", "", "ab")
	want := `code (hidden) named "x2026" at (hidden)-11-21 or 120261, secret (hidden)`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
