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

// misshapenAs are texts that are not of a format of the contract.
var misshapenAs = map[string]string{"uuid": "no-identifier", "email": "no address", "phone-number": "no number"}

// odd are texts that the contract lets name something, and that a careless query could take for more than they say.
var odd = []string{"%", "_", "' OR ''='", `\`, "\x01\x7f\n", strings.Repeat("x", 1000)}

// oddly is what is given as a name to what is made, which must not be found by any of those.
func oddly() string { return "\x02 '\" <é> " + uuid.NewString() }

// empties are the parameters that say by an empty text that they name nothing.
var empties = map[string]string{"page_cursor": "the first page", "organization_id": "there are none"}

// oddValue is one that a parameter should not have.
type oddValue struct {
	value  any    // as it stands in the body
	text   string // what names something
	inBody bool   // in a URL it would be something else
}

// misshapen are the values that the contract does not let the parameter have. One of them is made of what is foreign.
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
			t.Errorf("what is not of the format %s? Add a text to misshapenAs in reach_malformed_test.go", s.Format)
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

// oddities are values that the contract lets the parameter have, and that look like something else.
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
	case s.Format != "" || s.Pattern != "" || len(s.Enum) > 0: // which say what it looks like
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

// malformed asks with what a parameter should not have. What the contract does not let it have is refused by one check
// for whoever asks, so the credentials that the operation takes share it. What the contract does let it have goes on to
// where things are looked up, and is answered as what is absent is, or refused; those share it who reach the same.
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
		if err := json.Unmarshal([]byte(out), &f); err != nil || status != http.StatusBadRequest || f.Error.Type != "invalid_input" || f.Error.ValidationErrors[p.in] == nil {
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
	nobody := "nobody " + uuid.NewString()
	if p.schema.Format == "email" {
		nobody = uuid.NewString() + "@things.example"
	}
	absent := oddValue{value: p.shape(nobody)}
	if p.schema.Type.Includes("object") {
		absent.value = params{"mark": nobody}
	}
	nothing, want := ask(absent)
	for _, odd := range all {
		status, out := ask(odd)
		quoted, _ := json.Marshal(odd.text)
		as := strings.ReplaceAll(want, nobody, string(quoted[1:len(quoted)-1]))
		same := as == out || blurred(as) == blurred(out)
		if status != http.StatusBadRequest && (status != nothing || !same) {
			t.Errorf("%s %s with the %s %.100q: %d %s\nwant 400, or as what is absent: %d %s", method, o.path, p.in, odd.text, status, out, nothing, want)
		}
	}
}

// takers are the credentials that are good and may do that, in the order of their names.
func (r *reach) takers(o reachOperation, may func(c credential, accepted []string) bool) (all []string) {
	for _, who := range slices.Sorted(maps.Keys(r.credentials)) {
		if c := r.credentials[who]; c.kinds != nil && may(c, o.accepts) {
			all = append(all, who)
		}
	}
	return all
}

// reachesAll says whether an operation takes the credential, and by it the whole workspace is in reach.
func (c credential) reachesAll(accepted []string) bool {
	return c.may(accepted) && !c.limited && !slices.Contains(c.kinds, "publishable_key")
}
