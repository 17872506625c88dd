package zwavejs

import (
	"strings"
	"testing"
)

func TestTruncateName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Guest":                 "Guest",
		"A guest":               "A guest",
		strings.Repeat("a", 12): "aaaaaaaaaa",
		"Göste":                 "Göste",
		"Gästezimmer":           "Gäste",
		"Gast🔑":                 "Gast",
		"Gas🔑!":                 "Gas🔑",
	} {
		if got := truncateName(name, 10); got != want {
			t.Errorf("%q is stored as %q, want %q", name, got, want)
		}
	}
}
