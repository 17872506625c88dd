// Package texts checks every text of the repository for the words that the style guide rejects. Vale reads only prose and
// comments; this test reads string literals, SQL, and help texts as well.
package texts

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// rules is where Vale finds the words.
const rules = ".vale/styles/DeviceAccess/Words.yml"

// exempt lists what is not our own text: the words themselves, the license, vendored pages, and recorded or fuzzed data.
var exempt = []string{
	rules,
	"test/texts/words_test.go",
	"LICENSE",
	"server/web/assets/htmx.min.js",
	"package-lock.json",
	"go.sum",
}

// names are identifiers and names of others, such as the Unix account, that contain a rejected word.
var names = regexp.MustCompile(`NoBody\b|"nobody"`)

func TestTextsAvoidRejectedWords(t *testing.T) {
	t.Parallel()
	banned := words(t)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", "bin", "node_modules", ".terraform"}, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if slices.Contains(exempt, name) || slices.Contains(exempt, d.Name()) || !d.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || bytes.IndexByte(text[:min(len(text), 8000)], 0) >= 0 {
			return err
		}
		for n, line := range strings.Split(string(text), "\n") {
			if word := banned.FindString(names.ReplaceAllString(line, "")); word != "" {
				t.Errorf("%s:%d: write %q in another way; see CONTRIBUTING.md, Language", name, n+1, word)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	banned := words(t)
	for text, want := range map[string]bool{
		"Nobody is there":           true,
		"put anew":                  true,
		"it is to be kept":          true,
		"besides":                   false,
		"http.NoBody":               false,
		"the order is as it is":     true,
		"putting a renewed thing":   false,
		"a value is as it issues X": false,
	} {
		if got := banned.MatchString(names.ReplaceAllString(text, "")); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}

// words is a pattern of the words that Vale rejects.
func words(t *testing.T) *regexp.Regexp {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, rules))
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "tokens:\n")
	var tokens []string
	for line := range strings.Lines(list) {
		tokens = append(tokens, strings.TrimPrefix(strings.TrimSpace(line), "- "))
	}
	if len(tokens) < 20 {
		t.Fatalf("%s has %d words", rules, len(tokens))
	}
	return regexp.MustCompile(`(?i)\b(?:` + strings.Join(tokens, "|") + `)\b`)
}
