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

// documented returns the attributes in the guide, and the kinds of spans that have them.
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

// The guide lists exactly the attributes that exist.
func TestGuideListsEachAttribute(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("attributes.go")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, m := range regexp.MustCompile(
		`"((?:deviceaccess|http|db|url|server|error)\.[a-z_.]+)"`,
	).FindAllStringSubmatch(
		string(source),
		-1,
	) {
		known[m[1]] = true
	}
	if listed := documented(t); !slices.Equal(slices.Sorted(maps.Keys(listed)), slices.Sorted(maps.Keys(known))) {
		t.Errorf(
			"the guide has %v, and the code has %v",
			slices.Sorted(maps.Keys(listed)),
			slices.Sorted(maps.Keys(known)),
		)
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
	return "unknown to the guide"
}

// Each span has the attributes that the guide lists for its kind, and all kinds occur.
func TestSpansHaveAttributesOfGuide(t *testing.T) {
	t.Parallel()
	s, r := start(t)
	endpoint := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(endpoint.Close)
	s.Post(
		t,
		"/webhooks/create",
		map[string]any{"url": endpoint.URL, "event_types": []string{"access_code.created"}},
		nil,
	)
	header := apptest.Bearer(s.APIKey)
	header.Set("Idempotency-Key", "one")
	for range 2 {
		s.Send(t, http.MethodPost, "/access_codes/create", header, `{"device_id":"`+s.Device(t, "august")+`"}`, nil)
	}
	s.Post(t, "/devices/get", map[string]any{"device_id": "none"}, nil)
	guide := documented(t)
	var missing []string
	t.Cleanup(func() {
		if len(missing) > 0 {
			t.Logf("missing: %v", missing)
		}
	})
	apptest.Until(t, "all attributes of the guide were received", func() bool {
		seen := map[string]bool{}
		for _, span := range r.Spans() {
			for name := range span.Attributes {
				seen[name+" of "+kindOf(span)] = true
				if of := guide[name]; !slices.Contains(of, kindOf(span)) && !slices.Contains(of, "all") {
					t.Fatalf("%s has %s, which the guide does not list: %+v", kindOf(span), name, span)
				}
			}
		}
		missing = nil
		for name, of := range guide {
			for _, kind := range of {
				if rare := kind == "all" || kind == "wait" || name == "deviceaccess.acs_system_id" ||
					name == "deviceaccess.connect_webview_id"; !rare &&
					!seen[name+" of "+kind] {
					missing = append(missing, name+" of "+kind)
				}
			}
		}
		return len(missing) == 0
	})
}
