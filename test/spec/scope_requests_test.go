package spec_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// turn returns one of the methods of an operation, a different one for each parameter and credential.
func (o reachOperation) turn(n int) string { return o.methods[n%len(o.methods)] }

// answer sends a request.
func (r *reach) answer(
	t *testing.T,
	c credential,
	method, path string,
	body params,
) (answer *http.Response, raw string) {
	t.Helper()
	target, text := written(t, method, path, body)
	var out json.RawMessage
	answer = r.s.Send(t, method, target, c.header, text, &out)
	return answer, strings.ReplaceAll(string(out), answer.Header.Get("seam-request-id"), requestID)
}

// requestID replaces request ids in responses.
const requestID = "<request>"

// ask sends a request. It fails on a server error, and on an error that does not follow the contract.
func (r *reach) ask(t *testing.T, c credential, method, path string, body params) (status int, raw string) {
	t.Helper()
	answer, raw := r.answer(t, c, method, path, body)
	if answer.StatusCode < 400 {
		return answer.StatusCode, raw
	}
	var f failure
	err := json.Unmarshal([]byte(raw), &f)
	if shaped := err == nil && !f.OK && f.Error.Type != "" && f.Error.Message != "" &&
		f.Error.RequestID == requestID; !shaped ||
		answer.StatusCode >= 500 {
		t.Errorf("%s %s %.1000v: %d %s", method, path, body, answer.StatusCode, raw)
	}
	return answer.StatusCode, raw
}

// told sends a request and checks that the response has nothing out of scope.
func (r *reach) told(t *testing.T, c credential, method, path string, body params) (status int, raw string) {
	t.Helper()
	status, raw = r.ask(t, c, method, path, body)
	r.tellsNothing(t, c, method, path, body, raw)
	return status, raw
}

// passing are temporary errors: concurrent requests use or undo the same thing.
var passing = map[string]string{
	"/access_codes/pull_backup_access_code": "backup_access_code_not_found",
	"/devices/simulate/connect_to_hub":      "simulation_not_noticed",
	"/devices/simulate/disconnect_from_hub": "simulation_not_noticed",
}

// toldInTheEnd is told, repeated while the error is temporary.
func (r *reach) toldInTheEnd(t *testing.T, c credential, method, path string, body params) (status int, raw string) {
	t.Helper()
	if passing[path] == "" {
		return r.told(t, c, method, path, body)
	}
	apptest.Until(t, path+" is carried out", func() bool {
		var answer *http.Response
		answer, raw = r.answer(t, c, method, path, body)
		status = answer.StatusCode
		return kindIn(raw) != passing[path]
	})
	r.tellsNothing(t, c, method, path, body, raw)
	return status, raw
}

// tellsNothing checks that a response has nothing out of scope.
func (r *reach) tellsNothing(t *testing.T, c credential, method, path string, body params, raw string) {
	t.Helper()
	for _, found := range append(identifiersIn(raw), fmt.Sprint(r.foreign["token"])) {
		secret := r.untold[found] || c.limited && r.unreached[found]
		if secret && strings.Contains(raw, found) && !strings.Contains(fmt.Sprint(body), found) {
			t.Errorf("%s %s %.1000v reveals %s: %s", method, path, body, found, raw)
		}
	}
}

// written encodes a request like clients do: for GET and DELETE, parameters are in the URL as far as possible.
func written(t *testing.T, method, path string, body params) (target, text string) {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	if method != http.MethodGet && method != http.MethodDelete {
		return path, string(raw)
	}
	var plain params
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&plain); err != nil {
		t.Fatal(err)
	}
	query := url.Values{}
	if !inURL(query, "", plain) {
		return path, string(raw)
	}
	return path + "?" + query.Encode(), ""
}

// inURL adds parameters to a URL and reports whether all can be in it.
func inURL(query url.Values, above string, in params) bool {
	for name, value := range in {
		switch value := value.(type) {
		case params:
			if !inURL(query, above+name+".", value) {
				return false
			}
		case []any:
			for _, one := range value {
				if _, list := one.([]any); list || one == nil {
					return false
				}
				if _, object := one.(params); object {
					return false
				}
				query.Add(above+name, fmt.Sprint(one))
			}
		case nil:
			return false
		default:
			query.Set(above+name, fmt.Sprint(value))
		}
	}
	return true
}
