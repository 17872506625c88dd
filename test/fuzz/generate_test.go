package fuzz_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// choices reads the fuzzer's bytes as decisions. When they are used up, every decision is 0, which is the plain choice
// everywhere: less input makes a plainer request.
type choices struct{ rest []byte }

func (c *choices) pick(n int) int {
	if len(c.rest) == 0 {
		return 0
	}
	b := c.rest[0]
	c.rest = c.rest[1:]
	return int(b) % n
}

// chance is true for one of n choices.
func (c *choices) chance(n int) bool { return c.pick(n) == n-1 }

// Manners: how far a request deviates from the contract.
const (
	valid = iota
	nearlyValid
	hostile
	// the rest of the input is the body.
	free
	manners
)

// generator creates a request for an operation. It writes JSON as text, because Go values cannot express all of it.
type generator struct {
	*choices
	// ids returns the known identifiers for a name such as device_id.
	ids func(name string) []string
}

type request struct{ method, path, query, contentType, body string }

func (g generator) request(path string, item *openapi3.PathItem) request {
	methods := slices.Sorted(maps.Keys(item.Operations()))
	slices.SortStableFunc(methods, func(a, b string) int { // POST is the plain choice
		return strings.Compare(
			map[bool]string{true: "", false: "x"}[a == http.MethodPost],
			map[bool]string{true: "", false: "x"}[b == http.MethodPost],
		)
	})
	r := request{path: path, method: methods[g.pick(len(methods))], contentType: "application/json"}
	manner := g.pick(manners)
	schema := item.Post.RequestBody.Value.Content.Get("application/json").Schema.Value
	var members []member
	switch manner {
	case free:
		r.contentType = pickOf(g, []string{
			"application/json",
			"",
			"text/plain",
			"application/json; charset=\xff",
			"application/x-www-form-urlencoded",
		})
		r.query = pickOf(g, queries)
		r.body = string(g.rest)
		return r
	default:
		members = g.members(path, schema, manner)
	}
	if r.method == http.MethodGet || r.method == http.MethodDelete || g.chance(8) {
		r.query = g.query(members)
		r.contentType = ""
		return r
	}
	r.body = text(members)
	return r
}

// member is a name of an object and its value as JSON; names may repeat.
type member struct{ name, value string }

func text(members []member) string {
	var b strings.Builder
	for i, m := range members {
		if i > 0 {
			b.WriteByte(',')
		}
		name, _ := json.Marshal(m.name)
		b.WriteString(string(name) + ":" + m.value)
	}
	return "{" + b.String() + "}"
}

// hints are members that most requests need, although the schema does not require them.
var hints = map[string][]string{
	"/access_codes/get":                         {"access_code_id"},
	"/client_sessions/grant_access":             {"client_session_id", "user_identity_ids"},
	"/devices/get":                              {"device_id"},
	"/acs/users/get":                            {"acs_user_id"},
	"/acs/users/add_to_access_group":            {"acs_user_id"},
	"/acs/entrances/grant_access":               {"acs_user_id"},
	"/acs/users/delete":                         {"acs_user_id"},
	"/acs/users/list_accessible_entrances":      {"acs_user_id"},
	"/acs/users/remove_from_access_group":       {"acs_user_id"},
	"/acs/users/revoke_access_to_all_entrances": {"acs_user_id"},
	"/acs/users/suspend":                        {"acs_user_id"},
	"/acs/users/unsuspend":                      {"acs_user_id"},
	"/acs/users/update":                         {"acs_user_id"},
	"/acs/access_groups/add_user":               {"acs_user_id"},
	"/acs/access_groups/remove_user":            {"acs_user_id"},
	"/user_identities/merge":                    {"merged_user_identity_ids", "user_identity_id"},
	"/user_identities/add_acs_user":             {"acs_user_id", "user_identity_id"},
	"/user_identities/remove_acs_user":          {"acs_user_id", "user_identity_id"},
	"/devices/unmanaged/get":                    {"device_id"},
	"/access_codes/create_multiple":             {"device_ids"},
	"/events/list":                              {"since"},
	"/access_codes/update_multiple":             {"common_code_key", "name"},
	"/access_codes/report_device_constraints":   {"supported_code_lengths"},
	"/noise_sensors/noise_thresholds/create":    {"noise_threshold_decibels"},
	"/thermostats/get":                          {"device_id"},
	"/thermostats/heat":                         {"heating_set_point_celsius"},
	"/thermostats/cool":                         {"cooling_set_point_celsius"},
	"/thermostats/heat_cool":                    {"heating_set_point_celsius", "cooling_set_point_celsius"},
	"/thermostats/set_fan_mode":                 {"fan_mode_setting"},
	"/thermostats/create_climate_preset":        {"hvac_mode_setting"},
	"/thermostats/simulate/temperature_reached": {"temperature_celsius"},
}

// members returns the members of an object: all required ones and some others. Unless manner is valid, it corrupts some
// of them.
func (g generator) members(path string, schema *openapi3.Schema, manner int) []member {
	var out []member
	names := slices.Sorted(maps.Keys(schema.Properties))
	var also []string // optional members
	switch few := g.pick(4); few {
	case 3:
		for _, name := range names {
			if g.chance(3) {
				also = append(also, name)
			}
		}
	// often one of two identifiers selects a resource
	default:
		for range few {
			also = append(also, pickOf(g, append(names, "")))
		}
	}
	for _, name := range names {
		if slices.Contains(schema.Required, name) || slices.Contains(hints[path], name) || slices.Contains(also, name) {
			out = append(out, member{name, g.value(name, schema.Properties[name].Value, 0)})
		}
	}
	if manner == valid {
		return out
	}
	times := 1
	if manner == hostile {
		times = 1 + g.pick(4)
	}
	for range times {
		switch g.pick(6) {
		case 0, 1: // another value
			if len(out) > 0 {
				out[g.pick(len(out))].value = g.poison()
			}
		case 2: // an additional property
			if len(names) > 0 {
				out = append(out, member{names[g.pick(len(names))], g.poison()})
			}
		case 3: // one missing
			if i := g.pick(len(out) + 1); i < len(out) {
				out = slices.Delete(out, i, i+1)
			}
		case 4: // one twice
			if len(out) > 0 {
				again := out[g.pick(len(out))]
				out = append(out, member{again.name, g.poison()})
			}
		case 5:
			out = append(out, member{pickOf(g, texts), g.poison()})
		}
	}
	return out
}

// value returns JSON that the schema allows.
func (g generator) value(name string, schema *openapi3.Schema, depth int) string {
	if schema.Type.Includes("null") && g.chance(6) {
		return "null"
	}
	switch {
	case len(schema.Enum) > 0:
		return quote(fmt.Sprint(schema.Enum[g.pick(len(schema.Enum))]))
	case schema.Type.Includes("array"):
		items := make([]string, g.pick(4))
		if len(items) == 0 &&
			slices.Contains([]string{"device_ids", "merged_user_identity_ids", "periods", "user_identity_ids"}, name) {
			items = make([]string, 1)
		}
		for i := range items {
			items[i] = g.value(strings.TrimSuffix(name, "s"), schema.Items.Value, depth+1)
		}
		return "[" + strings.Join(items, ",") + "]"
	case schema.Type.Includes("object"):
		if len(schema.Properties) > 0 && depth < 5 {
			return text(g.members("", schema, valid))
		}
		var out []member
		for range g.pick(3) {
			out = append(out, member{pickOf(g, texts[:4]), pickOf(g, []string{`"x"`, "true", "null"})})
		}
		return text(out)
	case schema.Type.Includes("boolean"):
		if name == "sync" { // it waits for the result
			return strconv.FormatBool(g.chance(16))
		}
		if name == "is_managed" { // only true succeeds
			return strconv.FormatBool(!g.chance(4))
		}
		return strconv.FormatBool(g.pick(2) == 1)
	case schema.Type.Includes("integer"), schema.Type.Includes("number"):
		if schema.Min != nil && *schema.Min > 1 {
			return fmt.Sprint(*schema.Min + float64(g.pick(3)))
		}
		switch name {
		case "heating_set_point_celsius":
			return "20"
		case "cooling_set_point_celsius":
			return "30.5"
		}
		return pickOf(g, []string{"1", "2", "4", "20", "500", "30.5"})
	}
	return quote(g.text(name, schema))
}

// text returns a string that the schema allows.
func (g generator) text(name string, schema *openapi3.Schema) string {
	switch schema.Format {
	case "uuid":
		if known := g.ids(name); len(known) > 0 && !g.chance(8) {
			return pickOf(g, known)
		}
		return pickOf(g, []string{
			"00000000-0000-4000-8000-000000000000",
			"0191B7A4-5F2E-7C3D-8A4B-1F2E3D4C5B6A",
			"ffffffff-ffff-ffff-ffff-ffffffffffff",
		})
	case "date-time", "timestamp":
		return pickOf(g, []string{
			"2036-01-01T00:00:00Z",
			"2036-02-01T12:30:00+05:30",
			"2026-01-01T00:00:00.123456789Z",
			"1970-01-01T00:00:00Z",
			"9999-12-31T23:59:59Z",
			"0001-01-01T00:00:00Z",
		})
	case "daily-time":
		if name == "starts_daily_at" {
			return pickOf(g, []string{"22:30:00", "23:00:00", "00:30:00", "22:30:00[Europe/Berlin]"})
		}
		return pickOf(g, []string{"23:00:00", "00:30:00", "06:00:00", "06:00:00[Europe/Berlin]"})
	case "uri":
		return pickOf(g, []string{
			"https://hooks.example/x",
			"http://hooks.example:8080/x?y=z#f",
			"https://[2606:4700::1111]/",
			"https://user:secret@hooks.example/",
		})
	case "email":
		return pickOf(g, []string{"jane@example.com", "a+b@example.org"})
	}
	if strings.HasSuffix(name, "_id") || strings.HasSuffix(name, "_key") {
		if known := g.ids(name); len(known) > 0 {
			return pickOf(g, known)
		}
	}
	switch name {
	case "time_zone":
		return pickOf(g, []string{"Europe/Zurich", "Etc/UTC", "Mars/Base"})
	case "code":
		return strconv.Itoa(1000 + g.pick(250)*31)
	case "event_type":
		return pickOf(g, []string{"*", "access_code.created", "device.connected", "access_code.set_on_device"})
	case "url":
		return pickOf(g, []string{
			"https://hooks.example/x",
			"http://hooks.example:8080/x?y=z#f",
			"https://[2606:4700::1111]/",
			"https://user:secret@hooks.example/",
		})
	case "starts_at_time":
		return pickOf(g, []string{"00:00:00", "00:00:00", "06:30:00", "12:01:00"})
	case "since", "between":
		return pickOf(g, []string{"2020-01-01T00:00:00Z", "2036-01-01", "yesterday"})
	}
	return pickOf(g, []string{
		"Guest",
		"a",
		"ünï cödé",
		strings.Repeat("n", 255),
		"%_\\",
		"o'clock; drop table devices",
	})
}

// poison returns a value of any type, or invalid JSON.
func (g generator) poison() string {
	if g.pick(2) == 0 {
		return quote(pickOf(g, texts))
	}
	return pickOf(g, raws)
}

// query encodes members as a query string, in one of the forms that existing clients use.
func (g generator) query(members []member) string {
	form := g.pick(4)
	var parts []string
	add := func(name, value string) { parts = append(parts, url.QueryEscape(name)+"="+url.QueryEscape(value)) }
	for _, m := range members {
		var v any
		if json.Unmarshal([]byte(m.value), &v) != nil {
			add(m.name, m.value)
			continue
		}
		switch v := v.(type) {
		case []any:
			if len(v) == 0 {
				add(m.name, "")
			}
			joined := make([]string, len(v))
			for i, item := range v {
				joined[i] = plain(item)
				switch form {
				case 0, 3:
					add(m.name, joined[i])
				case 1:
					add(m.name+"[]", joined[i])
				}
			}
			if form == 2 {
				add(m.name, strings.Join(joined, ","))
			}
		case map[string]any:
			for key, item := range v {
				add(m.name+"."+key, plain(item))
			}
		default:
			add(m.name, plain(v))
		}
	}
	if form == 3 {
		parts = append(parts, "_strict=true")
	}
	return strings.Join(parts, "&")
}

func plain(v any) string {
	if v == nil {
		return ""
	}
	if s, ok := v.(string); ok {
		return s
	}
	b, _ := json.Marshal(v)
	return string(b)
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func pickOf[T any](g generator, list []T) T {
	if len(list) <= 255 {
		return list[g.pick(len(list))]
	}
	return list[(g.pick(256)<<8+g.pick(256))%len(list)]
}

// texts are strings that often break servers.
var texts = []string{
	"a",
	"b.c",
	"key with space",
	"ünï",
	"",
	" ",
	"\x00",
	"a\x00b",
	"null",
	"undefined",
	"true",
	"NaN",
	"-1",
	"0",
	"1e400",
	"0x10",
	"١٢٣٤",
	strings.Repeat("x", 501),
	strings.Repeat("é", 70_000),
	"\u202eabc",
	"👩‍👩‍👧‍👦",
	"\ufeff",
	"\uffff",
	"a\nb\r\nc: d",
	"<script>alert(1)</script>",
	"' or 1=1 --",
	"%00",
	"%s%n",
	"../../etc/passwd",
	"{}",
	"[]",
	"__proto__",
	"constructor",
	"*",
	"?",
	"a,b",
	"[]a",
	"a[]",
	"a[b]",
	".",
	"..",
	"$ref",
	"urn:uuid:0191b7a4-5f2e-7c3d-8a4b-1f2e3d4c5b6a",
	"{0191b7a4-5f2e-7c3d-8a4b-1f2e3d4c5b6a}",
	"0191b7a45f2e7c3d8a4b1f2e3d4c5b6a",
	"2026-02-30T00:00:00Z",
	"2026-01-01T24:00:00Z",
	"2026-06-30T23:59:60Z",
	"10000-01-01T00:00:00Z",
	"-0001-01-01T00:00:00Z",
	"0000-01-01T00:00:00Z",
	"2026-01-01T00:00:00+99:99",
	"2026-01-01",
	"9999-12-31T23:59:59.999999999-23:59",
	"0001-01-01T00:00:00+23:59",
	"javascript:alert(1)",
	"http://",
	"https://a b/",
	"http://[::1",
	"//x",
	"https://x:99999/",
	"https://\u2025.example/",
	"ftp://x/",
	"http://169.254.169.254/",
	"jane@",
	"@",
	"a@b",
}

// raws are JSON values, and invalid JSON.
var raws = []string{
	"null",
	"true",
	"false",
	"0",
	"-0",
	"-1",
	"1.5",
	"1e3",
	"1E+2",
	"9007199254740993",
	"-9223372036854775809",
	"18446744073709551616",
	"1e400",
	"-1e400",
	"1e-400",
	"0.1e-7",
	strings.Repeat("9", 5_000),
	"[]",
	"{}",
	"[null]",
	"[[]]",
	"[{}]",
	"[1,\"a\",null,true]",
	`{"a":{"b":{"c":[]}}}`,
	`{"":""}`,
	`{"a":1,"a":2}`,
	`{"\u0000":"\u0000"}`,
	`"\ud800"`,
	`"\udc00\ud800"`,
	`"\u0000"`,
	"\"\xff\xfe\"",
	"\"\xed\xa0\x80\"",
	"\"\t\"",
	`"unterminated`,
	"[",
	"}",
	"nul",
	"NaN",
	"Infinity",
	"01",
	"1.",
	".5",
	"+1",
	"'a'",
	"/* */1",
	"1,",
	strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000),
	strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000),
	strings.Repeat("[", 100_000),
	"[" + strings.Repeat(`"00000000-0000-4000-8000-000000000000",`, 5_000) + `"x"]`,
	"{" + many(3_000) + "}",
}

// many returns n members of an object.
func many(n int) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf(`"k%d":true`, i)
	}
	return strings.Join(parts, ",")
}

var queries = []string{
	"",
	"_strict=true",
	"limit=1&limit=2",
	"limit[]=1",
	"device_id=%00",
	"%zz=1",
	"a=%ff%fe",
	"=&&=",
	";",
	"_strict=maybe",
	strings.Repeat("a=b&", 2_000),
	"page_cursor=AAAA",
	"custom_metadata_has.=x",
	"custom_metadata_has.a.b=x",
	"device_ids=a&device_ids[]=b",
	"limit=1e400",
	"limit=-1",
	"limit=0x10",
	"__proto__=x",
}
