package provider

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
)

// initialised is a folder in which terraform init has been run once, for all that is only validated.
var initialised = sync.OnceValues(func() (dir string, err error) {
	if err := buildMirror(); err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp(mirrorDir, "init-"); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "required.tf"), []byte(required), 0o600); err != nil {
		return "", err
	}
	if said, err := terraformIn(dir, "init", "-plugin-dir="+mirrorDir); err != nil {
		return "", fmt.Errorf("%w: %s", err, said)
	}
	return dir, nil
})

func terraformIn(dir string, args ...string) (said []byte, err error) {
	cmd := exec.Command("terraform", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1")
	return cmd.CombinedOutput()
}

// initialize does what terraform init does in a folder, by links to a folder in which it was run.
func initialize(t *testing.T, dir string) {
	t.Helper()
	from, err := initialised()
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, ".terraform.lock.hcl"), read(t, filepath.Join(from, ".terraform.lock.hcl")))
	if err := os.Symlink(filepath.Join(from, ".terraform"), filepath.Join(dir, ".terraform")); err != nil {
		t.Fatal(err)
	}
}

// valid fails the test when these files of one folder are not valid with the built provider.
func valid(t *testing.T, files map[string]string) {
	t.Helper()
	t.Parallel()
	dir, all := t.TempDir(), ""
	for name, content := range files {
		put(t, filepath.Join(dir, name), content)
		all += content
	}
	if !strings.Contains(all, "required_providers") {
		put(t, filepath.Join(dir, "required.tf"), required)
	}
	initialize(t, dir)
	if said, err := terraformIn(dir, "validate", "-no-color"); err != nil {
		t.Errorf("%s\nin\n%s", said, all)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// pages are what users read: README.md, everything below docs, and the server's pages with configurations.
func pages(t *testing.T) []string {
	t.Helper()
	found := []string{"../README.md", "../server/docs/connect-seam.md"}
	for _, pattern := range []string{"*.md", "*/*.md"} {
		more, err := filepath.Glob(filepath.Join("../docs", pattern))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, more...)
	}
	if len(found) < 15 {
		t.Fatalf("only %d pages were found", len(found))
	}
	return found
}

var fence = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")

// newerLanguage is what Terraform 1.11 does not know: import by identity, and blocks of lists and actions.
var newerLanguage = regexp.MustCompile(`(?m)^\s*identity\s*=|^list "|^action "`)

func TestBlocksOfTheDocumentationAreValid(t *testing.T) {
	t.Parallel()
	needTerraform(t)
	for _, page := range pages(t) {
		for number, block := range fence.FindAllStringSubmatch(read(t, page), -1) {
			language, code := block[1], block[2]
			t.Run(fmt.Sprint(strings.TrimPrefix(page, "../"), "#", number), func(t *testing.T) {
				switch {
				case language == "" || language == "tf":
					t.Errorf("a block does not say what it is; terraform is for configurations:\n%s", code)
				case isTest(code), newerLanguage.MatchString(code):
				case language == "terraform":
					valid(t, map[string]string{"block.tf": code})
				}
			})
		}
	}
}

// isTest reports whether a block is a file of terraform test, as examples/tested-module has them.
func isTest(code string) bool { return strings.Contains(code, "\nrun \"") }

func TestBlocksOfTheDocumentationAreFormatted(t *testing.T) {
	t.Parallel()
	needTerraform(t)
	dir := t.TempDir()
	for _, page := range pages(t) {
		for number, block := range fence.FindAllStringSubmatch(read(t, page), -1) {
			language, code := block[1], block[2]
			if language != "terraform" && language != "hcl" {
				continue
			}
			name := fmt.Sprint(strings.NewReplacer("../", "", "/", "_", ".md", "").Replace(page), "_", number)
			if isTest(code) {
				name += ".tftest.hcl"
			} else {
				name += ".tf"
			}
			put(t, filepath.Join(dir, name), code)
		}
	}
	if said, err := terraformIn(dir, "fmt", "-check", "-diff"); err != nil {
		t.Errorf("not formatted as terraform fmt does: %s", said)
	}
	if said, err := terraformIn("../examples", "fmt", "-check", "-diff", "-recursive"); err != nil {
		t.Errorf("the examples are not formatted as terraform fmt does: %s", said)
	}
}

func TestGuideToTestingShowsTheExampleAsItIs(t *testing.T) {
	t.Parallel()
	guide := read(t, "../docs/guides/test-your-modules.md")
	for _, file := range []string{"main.tf", "tests/guest.tftest.hcl", ".github/workflows/test.yml"} {
		if !strings.Contains(guide, "\n"+read(t, filepath.Join(testedModule, file))+"```\n") {
			t.Errorf("the guide does not show %s of %s", file, testedModule)
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)]+)\)`)

// headings are the anchors that a page's headings get: in small letters, without punctuation, hyphens for spaces.
func headings(page string) (anchors []string) {
	for line := range strings.Lines(page) {
		if text := strings.TrimLeft(line, "#"); text != line && strings.HasPrefix(text, " ") {
			anchors = append(anchors, strings.Map(func(r rune) rune {
				switch {
				case r == ' ':
					return '-'
				case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
					return unicode.ToLower(r)
				}
				return -1
			}, strings.TrimSpace(text)))
		}
	}
	return anchors
}

func TestLinksOfTheDocumentationLeadSomewhere(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		content := read(t, page)
		for _, found := range link.FindAllStringSubmatch(content, -1) {
			target, anchor, _ := strings.Cut(found[1], "#")
			switch {
			case strings.HasPrefix(target, "https://"):
			case target == "":
				if !strings.Contains(content, `id="`+anchor+`"`) && !slices.Contains(headings(content), anchor) {
					t.Errorf("%s: there is no #%s", page, anchor)
				}
			default:
				path := filepath.Join(filepath.Dir(page), target)
				if _, err := os.Stat(path); err != nil {
					if _, err := os.Stat(path + ".md"); err != nil {
						t.Errorf("%s: there is no %s", page, target)
					}
				}
			}
		}
	}
}
