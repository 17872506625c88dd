package texts

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// link is a line that consists of one link, which cannot be broken.
var link = regexp.MustCompile(`^\s*(?:[*-] )?\[[^\]]*\]\([^)]*\)[.:,]?$`)

// Hand-written Markdown has at most 120 columns, except in tables and code.
func TestMarkdownHas120Columns(t *testing.T) {
	t.Parallel()
	checked := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch name := d.Name(); {
		case d.IsDir() && (name == ".git" || name == "bin" || name == "node_modules"):
			return filepath.SkipDir
		case d.IsDir() && path == filepath.Join(root, "docs"): // generated from templates and the schema
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".md"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		checked++
		inCode := false
		for n, line := range strings.Split(string(text), "\n") {
			trimmed := strings.TrimSpace(line)
			switch {
			case strings.HasPrefix(trimmed, "```"):
				inCode = !inCode
			case inCode, strings.HasPrefix(trimmed, "|"), link.MatchString(line):
			case utf8.RuneCountInString(line) > 120:
				t.Errorf("%s:%d has %d columns", path, n+1, utf8.RuneCountInString(line))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked < 30 {
		t.Errorf("only %d documents were found", checked)
	}
}
