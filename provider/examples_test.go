package provider

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

func TestExamplesAreValid(t *testing.T) {
	t.Parallel()
	var folders []string
	for _, pattern := range []string{"provider", "demo", "resources/*", "data-sources/*"} {
		found, err := filepath.Glob(filepath.Join("../examples", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("there are no examples in %s: %v", pattern, err)
		}
		folders = append(folders, found...)
	}
	if want := 2 + len(models); len(folders) != want {
		t.Errorf("there are %d folders of examples, want %d: %q", len(folders), want, folders)
	}
	for _, folder := range folders {
		t.Run(strings.TrimPrefix(folder, "../examples/"), func(t *testing.T) {
			files, err := filepath.Glob(filepath.Join(folder, "*.tf"))
			if err != nil || len(files) == 0 {
				t.Fatalf("no files: %v", err)
			}
			contents := map[string]string{}
			all := ""
			for _, file := range files {
				content, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				contents[filepath.Base(file)] = string(content)
				all += string(content)
			}
			if !strings.Contains(all, "required_providers") {
				contents["required.tf"] = required
			}
			w := newWorkspace(t, contents)
			w.expect(true, "fmt", "-check")
			w.expect(true, "validate")
		})
	}
}

func TestWebhookDocumentationListsEveryEventType(t *testing.T) {
	page, err := os.ReadFile("../docs/resources/webhook.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, eventType := range access.EventTypes() {
		if !strings.Contains(string(page), "`"+eventType+"`") {
			t.Errorf("docs/resources/webhook.md does not name %s", eventType)
		}
	}
}
