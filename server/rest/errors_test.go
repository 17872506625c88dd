package rest

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// All reasons to reject a request.
func TestRefusals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const (
		list   = "/devices/list"
		create = "/access_codes/create"
		hook   = "/webhooks/create"
	)
	header := func(pairs ...string) map[string]string {
		h := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			h[pairs[i]] = pairs[i+1]
		}
		return h
	}
	for name, test := range map[string]struct {
		request
		status  int
		kind    string
		message string
	}{
		"no credential":                 {request{"POST", list, "", header("Authorization", absent)}, 401, "unauthorized", "No authentication methods succeeded"},
		"empty credential":              {request{"POST", list, "", header("Authorization", "Bearer ")}, 401, "unauthorized", "No authentication methods succeeded"},
		"another scheme":                {request{"POST", list, "", header("Authorization", "Basic eDp5")}, 401, "unauthorized", "No authentication methods succeeded"},
		"unknown key":                   {request{"POST", list, "", header("Authorization", "Bearer seam_x")}, 401, "unauthorized", "API Key not found"},
		"client session":                {request{"POST", list, "", header("Client-Session-Token", "x")}, 400, "invalid_client_session_token", "The header client-session-token takes the token of a client session, which begins with seam_cst"},
		"seam client session":           {request{"POST", list, "", header("Seam-Client-Session-Token", sessionKey)}, 400, "invalid_client_session_token", "The headers carry two different credentials; send one"},
		"publishable key":               {request{"POST", list, "", map[string]string{"Authorization": absent, "Seam-Publishable-Key": "x"}}, 401, "invalid_publishable_key", "Publishable keys begin with seam_pk"},
		"no workspace":                  {request{"POST", list, "", header("Authorization", "Bearer "+roamerKey)}, 401, "unauthorized", "This credential is bound to no workspace; name one in the header seam-workspace"},
		"unknown route":                 {request{"POST", "/devices/lists", "", nil}, 404, "route_not_found", "There is nothing at this path; GET /openapi.json tells what there is"},
		"unknown route, no credential":  {request{"GET", "/", "", header("Authorization", absent)}, 404, "route_not_found", "There is nothing at this path; GET /openapi.json tells what there is"},
		"escaped slash":                 {request{"POST", "/devices%2Flist", "", nil}, 404, "route_not_found", "There is nothing at this path; GET /openapi.json tells what there is"},
		"method":                        {request{"GET", hook, "", nil}, 405, "method_not_allowed", "only POST accepted"},
		"method of a list":              {request{"DELETE", list, "", nil}, 405, "method_not_allowed", "only GET,POST accepted"},
		"methods of an update":          {request{"GET", "/access_codes/update", "", nil}, 405, "method_not_allowed", "only PATCH,PUT,POST accepted"},
		"HEAD where there is no GET":    {request{"HEAD", hook, "", nil}, 405, "", ""},
		"method that HTTP does not use": {request{"BREW", list, "", nil}, 405, "method_not_allowed", "only GET,POST accepted"},
		"authentication before method":  {request{"DELETE", list, "", header("Authorization", absent)}, 401, "unauthorized", "No authentication methods succeeded"},
		"method before content type":    {request{"PUT", list, "x", header("Content-Type", "text/plain")}, 405, "method_not_allowed", "only GET,POST accepted"},
		"content type before check":     {request{"POST", list + "?limit=0", "x", header("Content-Type", "text/plain")}, 400, "invalid_content_type", `POST requests must have Content-Type header with "application/json"`},
		"no content type":               {request{"POST", list, "{}", header("Content-Type", absent)}, 400, "invalid_content_type", `POST requests must have Content-Type header with "application/json"`},
		"content type of a DELETE":      {request{"DELETE", "/webhooks/delete", "{}", header("Content-Type", "text/json")}, 400, "invalid_content_type", `DELETE requests must have Content-Type header with "application/json"`},
		"content type of a PUT":         {request{"PUT", "/webhooks/update", "{}", header("Content-Type", "text/json")}, 400, "invalid_content_type", `PUT requests must have Content-Type header with "application/json"`},
		"content type of a PATCH":       {request{"PATCH", "/access_codes/update", "{}", header("Content-Type", "text/json")}, 400, "invalid_content_type", `PATCH requests must have Content-Type header with "application/json"`},
		"not JSON":                      {request{"POST", list, `{"limit":}`, nil}, 400, "invalid_json", "The body is not JSON: syntax error at byte 10"},
		"JSON cut short":                {request{"POST", list, `{"limit":1`, nil}, 400, "invalid_json", "The body is not JSON: syntax error at byte 10"},
		"something after the JSON":      {request{"POST", list, `{} {}`, nil}, 400, "invalid_json", "The body is not JSON: syntax error at byte 4"},
		"not JSON in a GET":             {request{"GET", list, `limit=2`, nil}, 400, "invalid_json", "The body is not JSON: syntax error at byte 1"},
		"not UTF-8":                     {request{"POST", list, "{\"search\":\"\xff\"}", nil}, 400, "invalid_json", "The body is not UTF-8"},
		"nested without end":            {request{"POST", list, `{"x":` + strings.Repeat("[", 500_000) + strings.Repeat("]", 500_000) + `}`, nil}, 400, "invalid_json", "The body is nested more than 64 deep"},
		"values without end":            {request{"POST", list, `{"device_ids":[` + strings.Repeat("[],", 300_000) + `1]}`, nil}, 400, "invalid_json", "The body has more than 20000 values; split it"},
		"number beyond all numbers":     {request{"POST", list, `{"limit":1e999}`, nil}, 400, "invalid_json", "The body is not JSON: a number is too large"},
		"array for a body":              {request{"POST", list, `[]`, nil}, 400, "invalid_input", "Expected object, received array"},
		"text for a body":               {request{"POST", list, `"4711"`, nil}, 400, "invalid_input", "Expected object, received string"},
		"over a megabyte":               {request{"POST", list, `{"x":"` + strings.Repeat("x", maxBody) + `"}`, nil}, 413, "payload_too_large", "The body is over 1048576 bytes"},
		"query not percent-encoded":     {request{"GET", list + "?search=%zz", "", nil}, 400, "invalid_query_params", "Could not parse the query string: it is not percent-encoded UTF-8"},
		"query not UTF-8":               {request{"GET", list + "?search=%ff", "", nil}, 400, "invalid_query_params", "Could not parse the query string: it is not percent-encoded UTF-8"},
		"repeated scalar":               {request{"GET", list + "?limit=1&limit=1", "", nil}, 400, "invalid_query_params", "Could not parse parameter: 'limit' has repeated values but is not an array parameter"},
		"repeated scalar in a POST":     {request{"POST", list + "?limit=1&limit=1&_strict=true", "{}", nil}, 400, "invalid_query_params", "Could not parse parameter: 'limit' has repeated values but is not an array parameter"},
		"brackets on a scalar":          {request{"GET", list + "?limit[]=1", "", nil}, 400, "invalid_query_params", "Could not parse parameter: 'limit[]' uses the bracket array format but is not an array parameter"},
		"brackets in strict mode":       {request{"GET", list + "?device_types[]=a&_strict=true", "", nil}, 400, "invalid_query_params", "Could not parse parameter: 'device_types[]' uses the bracket array format, which is only parsed without _strict"},
		"brackets and repetition":       {request{"GET", list + "?device_types[]=a&device_types=b", "", nil}, 400, "invalid_query_params", "Could not parse parameter: 'device_types' mixes the repeated and bracket array formats"},
		"brackets and commas":           {request{"GET", list + "?device_types[]=a,b", "", nil}, 400, "invalid_query_params", `Could not parse parameter: 'device_types[]' uses the bracket array format with a value containing a comma ","`},
		"repetition and commas":         {request{"GET", list + "?device_types=a,b&device_types=c", "", nil}, 400, "invalid_query_params", `Could not parse parameter: 'device_types' mixes the comma and repeated array formats, or repeats a value containing a comma ","`},
		"an empty element":              {request{"GET", list + "?device_types=a,,b", "", nil}, 400, "invalid_query_params", "Could not parse parameter: 'device_types' mixes empty values with other values"},
		"an empty element, strict":      {request{"GET", list + "?device_types=a&device_types=&_strict=true", "", nil}, 400, "invalid_query_params", "Could not parse parameter: 'device_types' mixes empty values with other values"},
		"names below a record's":        {request{"GET", list + "?custom_metadata_has.a.b=1", "", nil}, 400, "invalid_query_params", "Could not parse parameter: 'custom_metadata_has.a.b' is nested inside a record parameter, but a record value type may not be an object, array, or record"},
		"object and its members":        {request{"GET", list + "?custom_metadata_has=&custom_metadata_has.a=1", "", nil}, 400, "invalid_query_params", "Could not parse parameter: 'custom_metadata_has' conflicts with the nested parameter 'custom_metadata_has.a'"},
		"members and their object":      {request{"GET", list + "?custom_metadata_has.a=1&custom_metadata_has=", "", nil}, 400, "invalid_query_params", "Could not parse parameter: 'custom_metadata_has' conflicts with a parameter nested in it"},
		"text for an object":            {request{"GET", list + "?custom_metadata_has=x", "", nil}, 400, "invalid_input", `Expected object, received string for "custom_metadata_has"`},
		"required":                      {request{"POST", hook, `{}`, nil}, 400, "invalid_input", "url is required"},
		"required, null":                {request{"POST", hook, `{"url":null}`, nil}, 400, "invalid_input", "url is required"},
		"zero":                          {request{"POST", list, `{"limit":0}`, nil}, 400, "invalid_input", `Number must be greater than 0 for "limit"`},
		"zero in the query":             {request{"GET", list + "?limit=0", "", nil}, 400, "invalid_input", `Number must be greater than 0 for "limit"`},
		"below zero":                    {request{"POST", "/events/list", `{"unstable_offset":-1}`, nil}, 400, "invalid_input", `Number must be greater than or equal to 0 for "unstable_offset"`},
		"beyond the exact integers":     {request{"POST", list, `{"limit":9007199254740992}`, nil}, 400, "invalid_input", `Number must be less than or equal to 9007199254740991 for "limit"`},
		"fraction":                      {request{"POST", list, `{"limit":1.5}`, nil}, 400, "invalid_input", `Expected integer, received float for "limit"`},
		"text for a number":             {request{"GET", list + "?limit=ten", "", nil}, 400, "invalid_input", `Expected number, received string for "limit"`},
		"hex":                           {request{"GET", list + "?limit=0x10", "", nil}, 400, "invalid_input", `Expected number, received string for "limit"`},
		"infinity":                      {request{"GET", list + "?limit=Inf", "", nil}, 400, "invalid_input", `Expected number, received string for "limit"`},
		"empty text for a number":       {request{"POST", list, `{"limit":""}`, nil}, 400, "invalid_input", `Expected number, received string for "limit"`},
		"number for text":               {request{"POST", create, `{"device_id":"` + someID + `","code":4711}`, nil}, 400, "invalid_input", `Expected string, received number for "code"`},
		"text for a boolean":            {request{"POST", create, `{"device_id":"` + someID + `","sync":"true"}`, nil}, 400, "invalid_input", `Expected boolean, received string for "sync"`},
		"generous boolean, strict":      {request{"POST", create + "?_strict=true&sync=yes&device_id=" + someID, ``, nil}, 400, "invalid_input", `Expected boolean, received string for "sync"`},
		"object for an array":           {request{"POST", list, `{"device_ids":{}}`, nil}, 400, "invalid_input", `Expected array, received object for "device_ids"`},
		"element":                       {request{"POST", list, `{"device_types":["a",null]}`, nil}, 400, "invalid_input", `Expected string, received null for "device_types.1"`},
		"union":                         {request{"POST", list, `{"custom_metadata_has":{"a":1}}`, nil}, 400, "invalid_input", `Invalid input for "custom_metadata_has.a"`},
		"too few elements":              {request{"POST", hook, `{"url":"https://x.test","event_types":[]}`, nil}, 400, "invalid_input", `Array must contain at least 1 element(s) for "event_types"`},
		"too many elements":             {request{"POST", "/events/list", `{"between":["2026-11-21","2026-11-22","2026-11-23"]}`, nil}, 400, "invalid_input", `Array must contain at most 2 element(s) for "between"`},
		"no UUID":                       {request{"POST", create, `{"device_id":"1"}`, nil}, 400, "invalid_input", `Invalid uuid for "device_id"`},
		"UUID in braces":                {request{"POST", create, `{"device_id":"{` + someID + `}"}`, nil}, 400, "invalid_input", `Invalid uuid for "device_id"`},
		"no URL":                        {request{"POST", hook, `{"url":"x.test/h"}`, nil}, 400, "invalid_input", `A webhook's URL must begin with https:// or http:// and a host for "url"`},
		"URL too long":                  {request{"POST", hook, `{"url":"https://x.test/` + strings.Repeat("x", 2048) + `"}`, nil}, 400, "invalid_input", `String must contain at most 2048 character(s) for "url"`},
		"no time":                       {request{"POST", list, `{"created_before":"yesterday"}`, nil}, 400, "invalid_input", `Invalid datetime for "created_before"`},
		"no times":                      {request{"POST", "/events/list", `{"between":["today","2026-13-01"]}`, nil}, 400, "invalid_input", `2 Input Errors: Not a time; write it like 2026-11-21T15:00:00Z for "between.0", Not a time; write it like 2026-11-21T15:00:00Z for "between.1"`},
		"everything wrong at once":      {request{"POST", hook, `{"url":"ftp://x.test","event_types":["door.exploded",1]}`, nil}, 400, "invalid_input", `3 Input Errors: No such event type: door.exploded. Use "*" for all. The documentation lists the types. for "event_types.0", Expected string, received number for "event_types.1", A webhook's URL must begin with https:// or http:// and a host for "url"`},
		"null character":                {request{"POST", list, `{"search":"a\u0000"}`, nil}, 400, "invalid_input", `String must not contain a null character for "search"`},
		"null character in a name":      {request{"POST", list, `{"custom_metadata_has":{"\u0000":"x"}}`, nil}, 400, "invalid_input", "Name must not contain a null character for \"custom_metadata_has.\x00\""},
		"option":                        {request{"POST", create, `{"device_id":"` + someID + `","max_time_rounding":"2h"}`, nil}, 400, "invalid_input", `Invalid enum value. Expected '1hour' | '1day' | '1h' | '1d' for "max_time_rounding"`},
		"type of an option":             {request{"POST", create, `{"device_id":"` + someID + `","max_time_rounding":2}`, nil}, 400, "invalid_input", `Expected '1hour' | '1day' | '1h' | '1d', received number for "max_time_rounding"`},
		"PIN too short":                 {request{"POST", create, `{"device_id":"` + someID + `","code":"471"}`, nil}, 400, "invalid_input", `String must contain at least 4 character(s) for "code"`},
		"PIN that is none":              {request{"POST", create, `{"device_id":"` + someID + `","code":"4711x"}`, nil}, 400, "invalid_input", `Invalid, must match ^\d+$ for "code"`},
		"PIN that is nothing right":     {request{"POST", create, `{"device_id":"` + someID + `","code":"x"}`, nil}, 400, "invalid_input", `2 Input Errors: String must contain at least 4 character(s) for "code", Invalid, must match ^\d+$ for "code"`},
		"missing":                       {request{"POST", "/devices/get", `{"name":"missing"}`, nil}, 404, "device_not_found", "No such device"},
		"wrapped":                       {request{"POST", "/devices/get", `{"name":"wrapped"}`, nil}, 404, "device_not_found", "No such device"},
		"rule about a field":            {request{"POST", "/devices/get", `{"name":"bad field"}`, nil}, 400, "invalid_input", "On this device a code has 4 digits"},
		"rule about the request":        {request{"POST", "/devices/get", `{"name":"bad request"}`, nil}, 400, "invalid_input", "Must specify either device_id or name"},
		"rule of another type":          {request{"POST", "/devices/get", `{"name":"bad state"}`, nil}, 400, "device_offline", "The device is offline"},
		"conflict":                      {request{"POST", "/devices/get", `{"name":"taken"}`, nil}, 409, "duplicate_access_code", "Cannot set duplicate access code"},
		"forbidden":                     {request{"POST", "/devices/get", `{"name":"forbidden"}`, nil}, 403, "forbidden", "Not yours"},
		"unavailable":                   {request{"POST", "/devices/get", `{"name":"unavailable"}`, nil}, 503, "service_unavailable", "Try again"},
		"too many":                      {request{"POST", "/devices/get", `{"name":"too many"}`, nil}, 429, "too_many_requests", "20 wait"},
		"too slow":                      {request{"POST", "/devices/get", `{"name":"too slow"}`, nil}, 503, "service_unavailable", "The request was not finished in time; try again"},
		"locked out":                    {request{"POST", "/devices/get", `{"name":"locked out"}`, nil}, 503, "service_unavailable", "The request was not finished in time; try again"},
		"database restarts":             {request{"POST", "/devices/get", `{"name":"restarts"}`, nil}, 503, "service_unavailable", "The service is temporarily unavailable, because its database is; try again"},
		"database disk full":            {request{"POST", "/devices/get", `{"name":"disk full"}`, nil}, 503, "service_unavailable", "The service is temporarily unavailable, because its database is; try again"},
		"database refused":              {request{"POST", "/devices/get", `{"name":"refused"}`, nil}, 503, "service_unavailable", "The service is temporarily unavailable, because its database is; try again"},
		"database cut off":              {request{"POST", "/devices/get", `{"name":"cut off"}`, nil}, 503, "service_unavailable", "The service is temporarily unavailable, because its database is; try again"},
		"fault in a query":              {request{"POST", "/devices/get", `{"name":"wrong type"}`, nil}, 500, "internal_server_error", internalMessage},
		"unforeseen":                    {request{"POST", "/devices/get", `{"name":"unforeseen"}`, nil}, 500, "internal_server_error", internalMessage},
		"error without a kind":          {request{"POST", "/devices/get", `{"name":"no kind"}`, nil}, 500, "internal_server_error", internalMessage},
		"data that is no JSON":          {request{"POST", "/devices/get", `{"name":"bad data"}`, nil}, 500, "internal_server_error", internalMessage},
		"panic":                         {request{"POST", "/devices/get", `{"name":"panic"}`, nil}, 500, "internal_server_error", internalMessage},
		"panic in an operation unmade":  {request{"POST", "/webhooks/list", `{}`, nil}, 500, "internal_server_error", internalMessage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res := b.send(t, test.request)
			if res.status != test.status {
				t.Errorf("status %d, want %d: %s", res.status, test.status, res.raw)
			}
			if test.status == 401 && res.header.Get("WWW-Authenticate") != "Bearer" {
				t.Error("a 401 names no scheme")
			}
			if (test.status == 429 || test.status == 503) != (res.header.Get("Retry-After") == "1") {
				t.Errorf("to be tried again after %q s", res.header.Get("Retry-After"))
			}
			if test.method == http.MethodHead {
				return
			}
			shape, _ := res.body["error"].(map[string]any)
			if shape["type"] != test.kind || shape["message"] != test.message {
				t.Errorf("got  %v: %v\nwant %v: %v", shape["type"], shape["message"], test.kind, test.message)
			}
			if shape["request_id"] != res.header.Get("seam-request-id") || res.body["ok"] != false {
				t.Errorf("not the shape of errors: %s", res.raw)
			}
			if (shape["validation_errors"] != nil) != (test.kind == "invalid_input") {
				t.Errorf("validation_errors: %v", shape["validation_errors"])
			}
			// A request's identifier has digits of its own.
			told := strings.ReplaceAll(res.raw, res.header.Get("seam-request-id"), "")
			if strings.Contains(told, "4711") || strings.Contains(told, goodKey) {
				t.Errorf("the answer holds a secret: %s", res.raw)
			}
		})
	}
}

const internalMessage = "Something went wrong inside the service; the log has the reason under this request_id"

func TestMethodNotAllowedNamesTheMethods(t *testing.T) {
	t.Parallel()
	b := setup(t)
	res := b.send(t, request{method: "DELETE", path: "/devices/list"})
	if got := res.header.Get("Allow"); got != "GET, POST" {
		t.Errorf("Allow: %q", got)
	}
}

func TestAllViolationsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	res := b.send(
		t,
		request{
			method: "POST",
			path:   "/devices/list",
			body:   `{"limit":0,"device_ids":["x",7],"custom_metadata_has":{"a":[]}}`,
		},
	)
	const want = `{
		"ok": false,
		"error": {
			"type": "invalid_input",
			"message": "4 Input Errors: Invalid input for \"custom_metadata_has.a\", Invalid uuid for \"device_ids.0\", Expected string, received number for \"device_ids.1\", Number must be greater than 0 for \"limit\"",
			"validation_errors": {
				"_errors": [],
				"custom_metadata_has": {"_errors": [], "a": {"_errors": ["Invalid input"]}},
				"device_ids": {"_errors": [], "0": {"_errors": ["Invalid uuid"]}, "1": {"_errors": ["Expected string, received number"]}},
				"limit": {"_errors": ["Number must be greater than 0"]}
			}
		}
	}`
	compareError(t, res, want)
}

func TestDomainErrorsKeepTheirFieldAndData(t *testing.T) {
	t.Parallel()
	b := setup(t)
	field := b.send(t, request{method: "POST", path: "/devices/get", body: `{"name":"bad field"}`})
	compareError(t, field, `{"ok":false,"error":{"type":"invalid_input","message":"On this device a code has 4 digits",
		"validation_errors":{"_errors":[],"code":{"_errors":["On this device a code has 4 digits"]}}}}`)
	whole := b.send(t, request{method: "POST", path: "/devices/get", body: `{"name":"bad request"}`})
	compareError(
		t,
		whole,
		`{"ok":false,"error":{"type":"invalid_input","message":"Must specify either device_id or name",
		"validation_errors":{"_errors":["Must specify either device_id or name"]}}}`,
	)
	missing := b.send(t, request{method: "POST", path: "/devices/get", body: `{"name":"missing"}`})
	compareError(
		t,
		missing,
		`{"ok":false,"error":{"type":"device_not_found","message":"No such device","data":{"device_id":"`+someID+`"}}}`,
	)
}

// compareError compares an error body, except for the request_id.
func compareError(t *testing.T, res response, want string) {
	t.Helper()
	var wanted map[string]any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if shape, ok := res.body["error"].(map[string]any); ok {
		delete(shape, "request_id")
	}
	if diff := cmp.Diff(wanted, res.body); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestVeryManyViolationsAreAnsweredBriefly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	res := b.send(
		t,
		request{method: "POST", path: "/devices/list", body: `{"device_ids":[` + strings.Repeat("1,", 400_000) + `1]}`},
	)
	if res.status != 400 || len(res.raw) > 50_000 {
		t.Errorf("status %d with %d bytes", res.status, len(res.raw))
	}
}
