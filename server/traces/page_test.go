package traces_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces/tracestest"
)

const page = "../../server/docs/traces.md"

// documented are the attributes of the guide, and what each is of.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## Attributes")
	table, _, _ = strings.Cut(table, "Traces never contain")
	out := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([a-z, ]+) \\|").FindAllStringSubmatch(table, -1) {
		out[row[1]] = strings.Split(row[2], ", ")
	}
	return out
}

// What can be told is what the guide says, no less and no more.
func TestTheGuideHasEachAttribute(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("attributes.go")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, m := range regexp.MustCompile(`"((?:deviceaccess|http|db|url|server|error)\.[a-z_.]+)"`).FindAllStringSubmatch(string(source), -1) {
		known[m[1]] = true
	}
	if told := documented(t); !slices.Equal(slices.Sorted(maps.Keys(told)), slices.Sorted(maps.Keys(known))) {
		t.Errorf("the guide has %v, and what can be told is %v", slices.Sorted(maps.Keys(told)), slices.Sorted(maps.Keys(known)))
	}
}

func kindOf(s tracestest.Span) string {
	switch {
	case s.Kind == "server":
		return "request"
	case s.Kind == "consumer":
		return "work"
	case s.Name == "wait for a connection":
		return "wait"
	case s.Attributes["db.system.name"] != "":
		return "statement"
	case s.Attributes["deviceaccess.adapter"] != "":
		return "vendor"
	case s.Name == "deliver":
		return "delivery"
	}
	return "nothing that the guide knows"
}

// Each span has what the guide says of its kind, and all kinds are met.
func TestSpansHaveWhatTheGuideSays(t *testing.T) {
	t.Parallel()
	s, r := start(t)
	endpoint := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(endpoint.Close)
	s.Post(t, "/webhooks/create", map[string]any{"url": endpoint.URL, "event_types": []string{"access_code.created"}}, nil)
	header := apptest.Bearer(s.APIKey)
	header.Set("Idempotency-Key", "one")
	for range 2 {
		s.Send(t, http.MethodPost, "/access_codes/create", header, `{"device_id":"`+s.Device(t, "august")+`"}`, nil)
	}
	s.Post(t, "/devices/get", map[string]any{"device_id": "none"}, nil)
	told := documented(t)
	var missing []string
	t.Cleanup(func() {
		if len(missing) > 0 {
			t.Logf("not told was %v", missing)
		}
	})
	apptest.Until(t, "all that the guide has is told", func() bool {
		seen := map[string]bool{}
		for _, span := range r.Spans() {
			for name := range span.Attributes {
				seen[name+" of "+kindOf(span)] = true
				if of := told[name]; !slices.Contains(of, kindOf(span)) && !slices.Contains(of, "all") {
					t.Fatalf("%s has %s, which the guide does not say: %+v", kindOf(span), name, span)
				}
			}
		}
		missing = nil
		for name, of := range told {
			for _, kind := range of {
				if rare := kind == "all" || kind == "wait" || name == "deviceaccess.acs_system_id" || name == "deviceaccess.connect_webview_id"; !rare && !seen[name+" of "+kind] {
					missing = append(missing, name+" of "+kind)
				}
			}
		}
		return len(missing) == 0
	})
}
