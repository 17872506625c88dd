package rest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// All encodings of the parameters of a list, and what the handler receives.
func TestRequestsReachTheHandlerInOneForm(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const a, c = "11111111-1111-7111-8111-111111111111", "22222222-2222-7222-8222-222222222222"
	for name, test := range map[string]struct {
		request
		want string // besides limit: 500
	}{
		"POST without a body":                   {request{method: "POST"}, `{}`},
		"POST with an empty body":               {request{method: "POST", header: map[string]string{"Content-Type": "application/json"}}, `{}`},
		"POST with whitespace":                  {request{method: "POST", body: " \n"}, `{}`},
		"POST {}":                               {request{method: "POST", body: `{}`}, `{}`},
		"POST null":                             {request{method: "POST", body: `null`}, `{}`},
		"POST JSON":                             {request{method: "POST", body: `{"limit":2,"device_ids":["` + a + `"]}`}, `{"limit":2,"device_ids":["` + a + `"]}`},
		"POST JSON with charset":                {request{method: "POST", body: `{"limit":2}`, header: map[string]string{"Content-Type": "Application/JSON; charset=utf-8"}}, `{"limit":2}`},
		"POST query":                            {request{method: "POST", path: "?limit=3"}, `{"limit":3}`},
		"POST query and body: the body wins":    {request{method: "POST", path: "?limit=3&search=x", body: `{"limit":2}`}, `{"limit":2,"search":"x"}`},
		"GET":                                   {request{method: "GET"}, `{}`},
		"GET query":                             {request{method: "GET", path: "?limit=2&device_type=august_lock"}, `{"limit":2,"device_type":"august_lock"}`},
		"GET body":                              {request{method: "GET", body: `{"limit":2}`}, `{"limit":2}`},
		"GET body of curl -d":                   {request{method: "GET", body: `{"limit":2}`, header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}}, `{"limit":2}`},
		"GET query and body: the body wins":     {request{method: "GET", path: "?limit=3&search=x", body: `{"limit":2}`}, `{"limit":2,"search":"x"}`},
		"unknown parameters are passed over":    {request{method: "POST", path: "?foo=1&foo=2&_strict=true", body: `{"bar":{"limit":1},"LIMIT":9}`}, `{}`},
		"null for an optional parameter":        {request{method: "POST", body: `{"limit":null,"device_ids":null,"search":null}`}, `{}`},
		"null for a nullable parameter":         {request{method: "POST", body: `{"page_cursor":null}`}, `{}`},
		"empty scalar in the query is null":     {request{method: "GET", path: "?limit=&search=&page_cursor="}, `{}`},
		"empty array in the query":              {request{method: "GET", path: "?device_ids="}, `{"device_ids":[]}`},
		"empty array in brackets":               {request{method: "GET", path: "?device_ids[]="}, `{"device_ids":[]}`},
		"empty array strict":                    {request{method: "GET", path: "?device_ids=&_strict=true"}, `{"device_ids":[]}`},
		"empty array in the body":               {request{method: "POST", body: `{"device_ids":[]}`}, `{"device_ids":[]}`},
		"array repeated":                        {request{method: "GET", path: "?" + query("device_ids", a, "device_ids", c)}, `{"device_ids":["` + a + `","` + c + `"]}`},
		"array repeated strict":                 {request{method: "GET", path: "?" + query("device_ids", a, "device_ids", c, "_strict", "true")}, `{"device_ids":["` + a + `","` + c + `"]}`},
		"array of one":                          {request{method: "GET", path: "?" + query("device_ids", a)}, `{"device_ids":["` + a + `"]}`},
		"array in brackets":                     {request{method: "GET", path: "?" + query("device_ids[]", a, "device_ids[]", c)}, `{"device_ids":["` + a + `","` + c + `"]}`},
		"array with commas":                     {request{method: "GET", path: "?" + query("device_ids", a+","+c)}, `{"device_ids":["` + a + `","` + c + `"]}`},
		"a comma is text in strict mode":        {request{method: "GET", path: "?" + query("device_types", "a,b", "_strict", "true")}, `{"device_types":["a,b"]}`},
		"number as text in the body":            {request{method: "POST", body: `{"limit":"20"}`}, `{"limit":20}`},
		"number as a whole float":               {request{method: "POST", body: `{"limit":2e1}`}, `{"limit":20}`},
		"number padded, generous":               {request{method: "GET", path: "?limit=+20+"}, `{"limit":20}`},
		"dotted names":                          {request{method: "GET", path: "?custom_metadata_has.floor=one&custom_metadata_has.vip=true"}, `{"custom_metadata_has":{"floor":"one","vip":true}}`},
		"objects in the body":                   {request{method: "POST", body: `{"custom_metadata_has":{"vip":false,"floor":"one"}}`}, `{"custom_metadata_has":{"floor":"one","vip":false}}`},
		"of two equal names the last counts":    {request{method: "POST", body: `{"limit":1,"limit":2}`}, `{"limit":2}`},
		"escapes and other scripts":             {request{method: "POST", body: `{"search":"\u00fc\"\\<ü\t"}`}, `{"search":"ü\"\\<ü\t"}`},
		"quotes alone":                          {request{method: "POST", body: `{"search":"a\"b\\c"}`}, `{"search":"a\"b\\c"}`},
		"control characters alone":              {request{method: "POST", body: `{"search":"a\u0001b"}`}, `{"search":"a\u0001b"}`},
		"the same in the query":                 {request{method: "GET", path: "?" + query("search", "ü\"\\<ü\t")}, `{"search":"ü\"\\<ü\t"}`},
		"semicolons are text":                   {request{method: "GET", path: "?search=a;b"}, `{"search":"a;b"}`},
		"empty credentials of the Go SDK":       {request{method: "POST", header: map[string]string{"Client-Session-Token": "", "Seam-Client-Session-Token": "", "Seam-Workspace": " "}}, `{}`},
		"the scheme in any case":                {request{method: "POST", header: map[string]string{"Authorization": "bearer  " + goodKey}}, `{}`},
		"a workspace in the header":             {request{method: "POST", header: map[string]string{"Authorization": "Bearer " + roamerKey, "Seam-Workspace": workspaceB.String()}}, `{}`},
		"date-time":                             {request{method: "GET", path: "?" + query("created_before", "2026-11-21T15:00:00+01:00")}, `{"created_before":"2026-11-21T15:00:00+01:00"}`},
		"the last page_cursor of null in query": {request{method: "GET", path: "?page_cursor=&_strict=true&limit=7"}, `{"limit":7}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.path = "/devices/list" + test.path
			res := b.send(t, test.request)
			if res.status != 200 {
				t.Fatalf("status %d: %s", res.status, res.raw)
			}
			var want map[string]any
			if err := json.Unmarshal([]byte(test.want), &want); err != nil {
				t.Fatal(err)
			}
			if want["limit"] == nil {
				want["limit"] = float64(500)
			}
			if diff := cmp.Diff(want, res.body["request"]); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestEveryMethodOfTheContractIsCanonical(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, test := range map[string]struct {
		request
		want string
	}{
		"DELETE query":         {request{method: "DELETE", path: "/webhooks/delete?webhook_id=w&_strict=true"}, `{"webhook_id":"w"}`},
		"DELETE body":          {request{method: "DELETE", path: "/webhooks/delete", body: `{"webhook_id":"w"}`}, `{"webhook_id":"w"}`},
		"PUT body":             {request{method: "PUT", path: "/webhooks/update", body: `{"webhook_id":"w","event_types":["a"]}`}, `{"event_types":["a"],"webhook_id":"w"}`},
		"PUT query":            {request{method: "PUT", path: "/webhooks/update?webhook_id=w&event_types=a"}, `{"event_types":["a"],"webhook_id":"w"}`},
		"HEAD is a GET":        {request{method: "HEAD", path: "/devices/list"}, `null`},
		"public operation":     {request{method: "GET", path: "/health", header: map[string]string{"Authorization": absent, "Client-Session-Token": "x"}}, `null`},
		"array default":        {request{method: "POST", path: "/webhooks/create", body: `{"url":"https://x.test/h"}`}, `{"event_types":["*"],"url":"https://x.test/h"}`},
		"boolean defaults":     {request{method: "POST", path: "/access_codes/create", body: `{"device_id":"` + someID + `"}`}, `{"attempt_for_offline_device":true,"device_id":"` + someID + `","prefer_native_scheduling":true}`},
		"generous booleans":    {request{method: "POST", path: "/access_codes/create?device_id=" + someID + "&attempt_for_offline_device=No&prefer_native_scheduling=0&sync=YES"}, `{"attempt_for_offline_device":false,"device_id":"` + someID + `","prefer_native_scheduling":false,"sync":true}`},
		"integer without name": {request{method: "GET", path: "/events/list?since=2026-11-21&unstable_offset=0"}, `{"limit":500,"since":"2026-11-21"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res := b.send(t, test.request)
			if got := res.echoed(); res.status != 200 || got != test.want {
				t.Errorf("status %d, got %s, want %s\n%s", res.status, got, test.want, res.raw)
			}
		})
	}
}

func TestLargeBodiesBelowTheLimitAreRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	res := b.send(
		t,
		request{
			method: "POST",
			path:   "/access_codes/create",
			body:   `{"device_id":"` + someID + `","name":"at the end"` + strings.Repeat(" ", maxBody-200) + `}`,
		},
	)
	if res.status != 200 || !strings.Contains(res.raw, "at the end") {
		t.Errorf("status %d", res.status)
	}
}
