package texts

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testName = regexp.MustCompile("`(Test[A-Z]\\w+)`")
	filePath = regexp.MustCompile("`((?:api|bench|provider|server|templates|test|tools)/[\\w./-]+)`")
	document = regexp.MustCompile(`(?m)^\s*//.*?\b((?:\w+/)+[\w-]+\.md)\b`)
	declared = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

// Documents refer to tests and files of the repository, which others rename.
func TestDocumentsNameWhatExists(t *testing.T) {
	t.Parallel()
	tests, documents := map[string]bool{}, map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		isTest := strings.HasSuffix(path, "_test.go")
		isGo := strings.HasSuffix(path, ".go")
		if !isGo && !strings.HasSuffix(path, ".md") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !isGo {
			documents[path] = string(text)
		}
		for _, name := range document.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(root, name[1])); err != nil {
				t.Errorf("%s refers to %s, which does not exist", path, name[1])
			}
		}
		if isGo && !isTest {
			return nil
		}
		for _, name := range declared.FindAllStringSubmatch(string(text), -1) {
			tests[name[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for path, text := range documents {
		for _, name := range testName.FindAllStringSubmatch(text, -1) {
			if found++; !tests[name[1]] {
				t.Errorf("%s: there is no test %s", path, name[1])
			}
		}
		for _, name := range filePath.FindAllStringSubmatch(text, -1) {
			if strings.Contains(name[1], "/x_") { // the reader's own
				continue
			}
			found++
			if _, err := os.Stat(filepath.Join(root, name[1])); err != nil {
				t.Errorf("%s: there is no file %s", path, name[1])
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d references are found", found)
	}
}
