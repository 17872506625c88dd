package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// Documents have neither PINs nor secrets, and keep numbers and the types of texts.
func TestPrintDocument(t *testing.T) {
	t.Parallel()
	value := map[string]any{
		"code":       testPIN,
		"error_code": "device_offline",
		"level":      0.25,
		"big":        9007199254740993,
		"none":       []string{},
		"secret":     "whsec_x",
		"text":       "0123",
		"url":        "a&b",
		"pending_mutations": []any{
			map[string]any{"from": map[string]any{"code": testPIN}, "mutation_code": "updating_code"},
		},
		"changed_properties": []any{map[string]any{"property": "code", "from": testPIN, "to": testPIN}},
	}
	for format, want := range map[string]string{
		outputJSON: `"error_code": "device_offline"|"level": 0.25|"big": 9007199254740993|"text": "0123"|"url": "a&b"|` +
			`"mutation_code": "updating_code"`,
		outputYAML: `error_code: device_offline|level: 0.25|big: 9007199254740993|text: "0123"|url: a&b|none: []|` +
			`mutation_code: updating_code`,
	} {
		var out bytes.Buffer
		if err := printDocument(&out, format, value); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), testPIN) || strings.Contains(out.String(), "whsec_") {
			t.Errorf("%s has a secret", format)
		}
		for one := range strings.SplitSeq(want, "|") {
			if !strings.Contains(out.String(), one) {
				t.Errorf("%s has no %s:\n%s", format, one, out.String())
			}
		}
	}
}

func TestFormatAge(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 59 * time.Second: "59 s", 12 * time.Minute: "12 min", 47 * time.Hour: "47 h", 49 * time.Hour: "2 d",
	} {
		if got := formatAge(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}
