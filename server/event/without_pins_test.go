package event

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
)

// Without PINs, sealed fields that are known to be no PINs stay, and all others are null.
func TestEvent_WithoutPINs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ plain, secret, want string }{
		"nothing sealed": {`{"code":null,"device_id":"d"}`, ``, `{"code":null,"device_id":"d"}`},
		"a PIN":          {`{"device_id":"d"}`, `{"code":"4711"}`, `{"device_id":"d","code":null}`},
		"a confirmed change": {
			`{"description":"x"}`,
			`{"from":{"code":"4711"},"to":{"code":null}}`,
			`{"description":"x","from":{"code":null},"to":{"code":null}}`,
		},
		"requested mutations": {
			`{}`,
			`{"requested_mutations":[
				{"mutation_code":"updating_code","from":{"code":"4711"},"to":{"code":"4712"}},
				{"mutation_code":"updating_name","from":{"name":"2024"},"to":{"name":null}}]}`,
			`{"requested_mutations":[
				{"mutation_code":"updating_code","from":{"code":null},"to":{"code":null}},
				{"mutation_code":"updating_name","from":{"name":"2024"},"to":{"name":null}}]}`,
		},
		"changed properties": {
			`{"change_reason":"requested"}`,
			`{"changed_properties":[{"property":"code","from":"4711","to":"4712"},{"property":"name","from":"1","to":"2"},
				{"property":"starts_at","from":null,"to":"2026-01-01T00:00:00Z"}]}`,
			`{"change_reason":"requested","changed_properties":[{"property":"code","from":null,"to":null},
				{"property":"name","from":"1","to":"2"},{"property":"starts_at","from":null,"to":"2026-01-01T00:00:00Z"}]}`,
		},
		"unknown fields": {
			`{}`, `{"a":"4711","b":4711,"c":["4711"],"d":{"e":"4711"}}`,
			`{"a":null,"b":null,"c":[null],"d":{"e":null}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := Event{Fields: json.RawMessage(c.plain), plain: json.RawMessage(c.plain)}
			if c.secret != "" {
				e.Fields, e.PINs = mergeObjects(e.plain, json.RawMessage(c.secret)), []string{"4711"}
				if err := json.Unmarshal([]byte(c.secret), &e.secret); err != nil {
					t.Fatal(err)
				}
			}
			e = e.WithoutPINs()
			var got, want any
			if err := errors.Join(json.Unmarshal(e.Fields, &got), json.Unmarshal([]byte(c.want), &want)); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) || c.secret != "" && e.PINs != nil {
				t.Errorf("%s, PINs %d, want %s", e.Fields, len(e.PINs), c.want)
			}
		})
	}
}
