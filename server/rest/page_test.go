package rest

import (
	"net/url"
	"slices"
	"strings"
	"testing"
)

// page is the part of an answer that says where the next one is.
func nextPage(res response) (cursor, next string, more bool) {
	p, _ := res.body["pagination"].(map[string]any)
	cursor, _ = p["next_page_cursor"].(string)
	next, _ = p["next_page_url"].(string)
	more, _ = p["has_next_page"].(bool)
	return cursor, next, more
}

func TestWalkByCursorMeetsEveryRowOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	body := `{"limit":20}`
	var sizes []int
	seen := map[any]bool{}
	for {
		res := b.send(t, request{method: "POST", path: "/devices/list", body: body})
		ids, _ := res.body["ids"].([]any)
		sizes = append(sizes, len(ids))
		for _, id := range ids {
			seen[id] = true
		}
		cursor, _, more := nextPage(res)
		if !more {
			if !strings.Contains(res.raw, `"next_page_cursor":null,"next_page_url":null`) {
				t.Errorf("the last page does not say null: %s", res.raw)
			}
			break
		}
		body = `{"limit":20,"page_cursor":"` + cursor + `"}`
	}
	if want := []int{20, 20, 20, 5}; !slices.Equal(sizes, want) || len(seen) != 65 {
		t.Errorf("pages of %v with %d rows, want %v with 65", sizes, len(seen), want)
	}
}

func TestNextPageURL(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, body := range map[string]string{
		"no parameters":    `{"limit":60}`,
		"number as text":   `{"limit":"60"}`,
		"array":            `{"limit":60,"device_types":["a","b"]}`,
		"array of one":     `{"limit":60,"device_types":["a,b"]}`,
		"empty array":      `{"limit":60,"device_types":[]}`,
		"nested object":    `{"limit":60,"custom_metadata_has":{"floor":"one & two","vip":true}}`,
		"null":             `{"limit":60,"unstable_location_id":null}`,
		"null, no meaning": `{"limit":60,"search":null,"foo":"bar"}`,
		"text to escape":   `{"limit":60,"search":"ü&=+%#?/"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := b.send(t, request{method: "POST", path: "/devices/list", body: body})
			cursor, next, more := nextPage(first)
			if !more || !strings.HasPrefix(next, b.url+"/devices/list?") {
				t.Fatalf("next_page_url: %q", next)
			}
			second := b.send(t, request{method: "GET", path: next})
			if ids, _ := second.body["ids"].([]any); second.status != 200 || len(ids) != 5 {
				t.Errorf("GET %s: %s", next, second.raw)
			}
			u, err := url.Parse(next)
			if err != nil || u.Query().Get("page_cursor") != cursor {
				t.Errorf("the URL %s does not carry the cursor", next)
			}
		})
	}
}

func TestNextPageURL_NotExpressible(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, body := range []string{`{"limit":60,"search":"x","device_type":""}`, `{"limit":60,"exclude_if":[""]}`, `{"limit":60,"custom_metadata_has":{"a":"true"}}`} {
		res := b.send(t, request{method: "POST", path: "/devices/list", body: body})
		cursor, next, more := nextPage(res)
		if !more || cursor == "" || next != "" {
			t.Errorf("%s: cursor %q, url %q", body, cursor, next)
		}
		again := strings.Replace(body, "{", `{"page_cursor":"`+cursor+`",`, 1)
		if res := b.send(t, request{method: "POST", path: "/devices/list", body: again}); res.status != 200 {
			t.Errorf("%s: the cursor does not work: %s", body, res.raw)
		}
	}
}

func TestNextPageURL_Host(t *testing.T) {
	t.Parallel()
	public := func(raw string) func(*answers) {
		return func(a *answers) { a.pager.publicURL, _ = url.Parse(raw) }
	}
	trusting := func(a *answers) { a.pager.trustForwarded = true }
	forwarded := map[string]string{"X-Forwarded-Proto": "https, http", "X-Forwarded-Host": "api.example:8443, inner"}
	for name, test := range map[string]struct {
		adjust func(*answers)
		header map[string]string
		want   string
	}{
		"forwarded, not trusted":   {func(*answers) {}, forwarded, "http://127.0.0.1:"},
		"forwarded, trusted":       {trusting, forwarded, "https://api.example:8443/devices/list?"},
		"trusted, not forwarded":   {trusting, nil, "http://127.0.0.1:"},
		"a scheme that is none":    {trusting, map[string]string{"X-Forwarded-Proto": "javascript"}, "http://127.0.0.1:"},
		"public URL":               {public("https://api.example"), forwarded, "https://api.example/devices/list?"},
		"public URL with a path":   {public("https://example/api/"), nil, "https://example/api/devices/list?"},
		"public URL without slash": {public("https://example/api"), nil, "https://example/api/devices/list?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, test.adjust)
			res := b.send(t, request{
				method: "POST",
				path:   "/devices/list",
				body:   `{"limit":1}`,
				header: test.header,
			})
			if _, next, _ := nextPage(res); !strings.HasPrefix(next, test.want) {
				t.Errorf("next_page_url %q, want %s…", next, test.want)
			}
		})
	}
}

func TestCursors_OtherList(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const path = "/devices/list"
	cursor, _, _ := nextPage(
		b.send(t, request{method: "POST", path: path, body: `{"limit":2,"device_types":["a","b"]}`}),
	)
	with := func(cursor string) string {
		return `{"limit":2,"device_types":["a","b"],"page_cursor":"` + cursor + `"}`
	}
	flipped := strings.Map(func(r rune) rune {
		if r == 'A' {
			return 'B'
		}
		return r
	}, cursor)
	const mismatch = "When using next_page_cursor, the request must send parameters identical to the initial request."
	const garbage = `Invalid cursor for "page_cursor"`
	for name, test := range map[string]struct {
		request
		kind, message string
	}{
		"the same":              {request{"POST", path, with(cursor), nil}, "", ""},
		"the same as GET":       {request{"GET", path + "?" + query("limit", "2", "device_types", "a,b", "page_cursor", cursor), "", nil}, "", ""},
		"the same and unknown":  {request{"POST", path + "?foo=1", with(cursor), nil}, "", ""},
		"another limit":         {request{"POST", path, `{"limit":3,"device_types":["a","b"],"page_cursor":"` + cursor + `"}`, nil}, "mismatched_page_parameters", mismatch},
		"another order":         {request{"POST", path, `{"limit":2,"device_types":["b","a"],"page_cursor":"` + cursor + `"}`, nil}, "mismatched_page_parameters", mismatch},
		"fewer parameters":      {request{"POST", path, `{"page_cursor":"` + cursor + `"}`, nil}, "mismatched_page_parameters", mismatch},
		"one more":              {request{"POST", path + "?search=x", with(cursor), nil}, "mismatched_page_parameters", mismatch},
		"of another workspace":  {request{"POST", path, with(cursor), map[string]string{"Authorization": "Bearer " + otherKey}}, "mismatched_page_parameters", mismatch},
		"garbage":               {request{"POST", path, with("x"), nil}, "invalid_input", garbage},
		"base64 of another API": {request{"POST", path, with("WyJhIiwiYiJd"), nil}, "invalid_input", garbage},
		"one character changed": {request{"POST", path, with(flipped), nil}, "invalid_input", garbage},
		"cut short":             {request{"POST", path, with(cursor[:len(cursor)-4]), nil}, "invalid_input", garbage},
		"something after it":    {request{"POST", path, with(cursor + "A"), nil}, "invalid_input", garbage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res := b.send(t, test.request)
			shape, _ := res.body["error"].(map[string]any)
			if test.kind == "" {
				if res.status != 200 {
					t.Errorf("refused: %s", res.raw)
				}
				return
			}
			if res.status != 400 || shape["type"] != test.kind || shape["message"] != test.message {
				t.Errorf("status %d: %s", res.status, res.raw)
			}
		})
	}
}

func TestCursors_OtherKey(t *testing.T) {
	t.Parallel()
	cursor, _, _ := nextPage(setup(t).send(t, request{method: "POST", path: "/devices/list", body: `{"limit":2}`}))
	other := setup(t, func(a *answers) { a.pager.keys = cursorKeys([]byte("another key of more than 32 bytes")) })
	res := other.send(
		t,
		request{method: "POST", path: "/devices/list", body: `{"limit":2,"page_cursor":"` + cursor + `"}`},
	)
	if res.status != 400 || !strings.Contains(res.raw, "Invalid cursor") {
		t.Errorf("status %d: %s", res.status, res.raw)
	}
}
