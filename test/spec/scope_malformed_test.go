package spec_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// misshapenAs maps formats of the contract to invalid texts.
var misshapenAs = map[string]string{
	"uuid":         "no-identifier",
	"email":        "no address",
	"phone-number": "no number",
	"name":         "no\x1bname",
}

// odd are valid names that a careless query could misinterpret.
var odd = []string{"%", "_", "' OR ''='", `\`, "\x01\x7f\n", strings.Repeat("x", 1000)}

// oddly returns a name that none of the odd texts must match.
func oddly() string { return "\x02 '\" <é> " + uuid.NewString() }

// empties are the parameters in which an empty text means none.
var empties = map[string]string{"page_cursor": "the first page", "organization_id": "there are none"}

// oddValue is an unexpected value of a parameter.
type oddValue struct {
	value  any    // in the body
	text   string // the part that names something
	inBody bool   // in a URL, it would be another value
}

// misshapen returns the values that the contract forbids for the parameter. One of them contains foreign.
func (p parameter) misshapen(t *testing.T, foreign any) (all []oddValue) {
	t.Helper()
	s := p.schema
	if s == nil {
		return nil
	}
	text := func(v string) { all = append(all, oddValue{value: p.shape(v), text: v, inBody: v == ""}) }
	if s.Format != "" {
		wrong, known := misshapenAs[s.Format]
		if !known {
			t.Errorf("no invalid text for the format %s; add one to misshapenAs in scope_malformed_test.go", s.Format)
		}
		text(wrong)
	}
	if s.Format == "uuid" && foreign != nil {
		text("{" + fmt.Sprint(foreign) + "}")
	}
	if s.MinLength > 0 || s.Format != "" {
		text("")
	}
	if s.MaxLength != nil {
		text(strings.Repeat("x", int(*s.MaxLength)+1))
	}
	if s.Pattern != "" || len(s.Enum) > 0 {
		text("\x01 nothing like it")
	}
	for _, other := range []struct {
		of    string
		value any
	}{{"number", 7}, {"boolean", true}, {"array", []any{"x"}}, {"object", params{"x": "y"}}, {"string", "x"}} {
		if s.Type.Includes(other.of) {
			continue
		}
		if p.list && other.of == "array" {
			other.value = []any{other.value} // or it would be the list
		}
		all = append(all, oddValue{value: p.shape(other.value), inBody: true})
	}
	if p.list {
		all = append(all, oddValue{value: params{"0": "x"}, inBody: true})
	}
	return all
}

// oddities returns odd values that the contract allows for the parameter.
func (p parameter) oddities(o reachOperation) (all []oddValue) {
	s := p.schema
	fits := func(text string) bool {
		return uint64(len(text)) >= s.MinLength && (s.MaxLength == nil || uint64(len(text)) <= *s.MaxLength)
	}
	switch {
	case s.Format == "email":
		if !slices.Contains(makesNamed, o.path) {
			return []oddValue{{value: p.shape("%@things.example"), text: "%@things.example"}}
		}
		text := "'#" + uuid.NewString() + "@things.example"
		all = append(all, oddValue{value: p.shape(text), text: text})
	case s.Format != "" || s.Pattern != "" || len(s.Enum) > 0: // its form is known
	case slices.Contains(makesNamed, o.path):
		text := oddly()
		all = append(all, oddValue{value: p.shape(text), text: text})
	case s.Type.Includes("object"):
		for _, text := range odd {
			all = append(all, oddValue{value: params{"mark": text}, text: text})
		}
	default:
		for _, text := range append([]string{""}, odd...) {
			if fits(text) && (text != "" || empties[p.name] == "") {
				all = append(all, oddValue{value: p.shape(text), text: text, inBody: text == ""})
			}
		}
	}
	return all
}

// malformed sends unexpected parameters. A check that is equal for all clients rejects invalid values, so the
// credentials take turns with them. Allowed values reach the lookup and are answered like absent ones, or rejected;
// credentials with the same scope take turns with them.
func (r *reach) malformed(t *testing.T, who string, o reachOperation, method string, p parameter) {
	t.Helper()
	c := r.credentials[who]
	own, takers := r.unused(c, o), r.takers(o, credential.may)
	ask := func(odd oddValue) (status int, out string) {
		body := r.body(t, o, p, own, own)
		body[p.in] = odd.value
		by := method
		if odd.inBody {
			by = http.MethodPost
		}
		return r.told(t, c, by, o.path, body)
	}
	for i, wrong := range p.misshapen(t, r.foreign[namedIn(o.path, p.name)]) {
		if takers[i%len(takers)] != who {
			continue
		}
		status, out := ask(wrong)
		var f failure
		if err := json.Unmarshal(
			[]byte(out),
			&f,
		); err != nil || status != http.StatusBadRequest || f.Error.Type != "invalid_input" ||
			f.Error.ValidationErrors[p.in] == nil {
			t.Errorf("%s %s with the %s %.100v: %d %s", method, o.path, p.in, wrong.value, status, out)
		}
	}
	all := p.oddities(o)
	if takers = r.takers(o, credential.reachesAll); slices.Contains(takers, who) {
		for i := len(all) - 1; i >= 0; i-- {
			if takers[i%len(takers)] != who {
				all = slices.Delete(all, i, i+1)
			}
		}
	}
	if len(all) == 0 {
		return
	}
	unknown := "unknown " + uuid.NewString()
	if p.schema.Format == "email" {
		unknown = uuid.NewString() + "@things.example"
	}
	absent := oddValue{value: p.shape(unknown)}
	if p.schema.Type.Includes("object") {
		absent.value = params{"mark": unknown}
	}
	nothing, want := ask(absent)
	for _, odd := range all {
		status, out := ask(odd)
		quoted, _ := json.Marshal(odd.text)
		as := strings.ReplaceAll(want, unknown, string(quoted[1:len(quoted)-1]))
		same := as == out || blurred(as) == blurred(out)
		if status != http.StatusBadRequest && (status != nothing || !same) {
			t.Errorf(
				"%s %s with the %s %.100q: %d %s\nwant 400, or the response for an absent one: %d %s",
				method,
				o.path,
				p.in,
				odd.text,
				status,
				out,
				nothing,
				want,
			)
		}
	}
}

// takers returns the valid credentials that may do something, sorted by name.
func (r *reach) takers(o reachOperation, may func(c credential, accepted []string) bool) (all []string) {
	for _, who := range slices.Sorted(maps.Keys(r.credentials)) {
		if c := r.credentials[who]; c.kinds != nil && may(c, o.accepts) {
			all = append(all, who)
		}
	}
	return all
}

// reachesAll reports whether an operation accepts the credential and the credential has access to the whole workspace.
func (c credential) reachesAll(accepted []string) bool {
	return c.may(accepted) && !c.limited && !slices.Contains(c.kinds, "publishable_key")
}
