package adaptertest

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"
)

// absurd holds values that a broken or malicious gateway may send in any place.
var absurd = []string{
	`null`, `true`, `-1`, `0`, `9223372036854775807`, `1e300`, `0.5`, `""`, `"2"`, `"\u0000"`, `"."`,
	`"2026-01-01T00:00:00+24:00"`, `"99999-01-01T00:00:00Z"`, `"0000-01-01T00:00:00Z"`,
	`[]`, `[null]`, `[[]]`, `{}`, `{"":null}`, `{"1":null}`,
}

// Twists yields variants of a JSON text, each with one change: an absurd value in place of a value (possibly the
// whole text), or a missing member. The name describes the change.
func Twists(t testing.TB, text string) iter.Seq2[string, string] {
	t.Helper()
	var whole any
	if err := json.Unmarshal([]byte(text), &whole); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return func(yield func(name, twisted string) bool) {
		emit := func(name string) bool {
			b, err := json.Marshal(whole)
			if err != nil {
				t.Fatal(err)
			}
			return yield(name, string(b))
		}
		var twist func(path string, v any, set func(any)) bool
		twist = func(path string, v any, set func(any)) bool {
			for _, a := range absurd {
				set(json.RawMessage(a))
				if !emit(path + " is " + a) {
					return false
				}
			}
			set(v)
			switch v := v.(type) {
			case map[string]any:
				for _, k := range slices.Sorted(maps.Keys(v)) {
					was := v[k]
					delete(v, k)
					if !emit(path + "." + k + " is missing") {
						return false
					}
					v[k] = was
					if !twist(path+"."+k, was, func(to any) { v[k] = to }) {
						return false
					}
				}
			case []any:
				for i, was := range v {
					if !twist(fmt.Sprintf("%s[%d]", path, i), was, func(to any) { v[i] = to }) {
						return false
					}
				}
			}
			return true
		}
		twist("", whole, func(to any) { whole = to })
	}
}
