package rest

import (
	"slices"
	"strings"
	"testing"
)

// lookups are the parameters that find something by its name, and store nothing.
var lookups = []string{
	"/devices/get name",
	"/devices/unmanaged/get name",
	"/locks/get name",
	"/thermostats/get name",
}

// TestNames_RefuseDisguisingCharacters sends a bad name in each place where the contract takes one.
func TestNames_RefuseDisguisingCharacters(t *testing.T) {
	t.Parallel()
	doc, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	operations, err := compileOperations(doc)
	if err != nil {
		t.Fatal(err)
	}
	tested := 0
	for path, op := range operations {
		for _, place := range namePlaces(op.body, nil) {
			where := path + " " + strings.Join(place, ".")
			if slices.Contains(lookups, where) {
				continue
			}
			tested++
			for bad, code := range map[string]string{"Ana\x1b[2J": "U+001B", "Ana\a": "U+0007", "\u202eanA": "U+202E"} {
				if message := issueAt(op.body, place, bad); !strings.Contains(message, code) {
					t.Errorf("%s accepts %q: %q", where, bad, message)
				}
			}
			if message := issueAt(op.body, place, "Zoë 👩\u200d👧 ليلى"); message != "" {
				t.Errorf("%s refuses a good name: %s", where, message)
			}
		}
	}
	if tested < 15 {
		t.Errorf("the contract has %d places for names", tested)
	}
}

// namePlaces returns the paths of the names in a request.
func namePlaces(s *shape, path []string) (places [][]string) {
	for _, p := range s.properties {
		place := append(slices.Clone(path), p.name)
		isName := p.name == "name" || p.name == "nickname" || strings.HasSuffix(p.name, "_name")
		switch {
		case p.shape.types&text != 0 && p.shape.enum == nil && isName:
			places = append(places, place)
		case p.shape.types&object != 0:
			places = append(places, namePlaces(p.shape, place)...)
		}
	}
	return places
}

// issueAt returns the message about the value at a path of a request, empty if there is none.
func issueAt(s *shape, path []string, value string) string {
	var params any = value
	for _, name := range slices.Backward(path) {
		params = map[string]any{name: params}
	}
	_, issues := canonical(s, params.(map[string]any), true)
	for _, i := range issues {
		if slices.Equal(i.path, path) {
			return i.message
		}
	}
	return ""
}
