package provider

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
)

// byIdentity is an example that only newer versions of Terraform take.
const byIdentity = "import-by-identity.tf"

func TestExamplesAreValid(t *testing.T) {
	t.Parallel()
	needTerraform(t)
	var folders []string
	for _, pattern := range []string{
		"provider", "demo", "tested-module", "resources/*", "data-sources/*", "ephemeral-resources/*", "actions/*",
		"functions/*",
	} {
		found, err := filepath.Glob(filepath.Join("../examples", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("there are no examples in %s: %v", pattern, err)
		}
		folders = append(folders, found...)
	}
	if want := 4 + len(models); len(folders) != want {
		t.Errorf("there are %d folders of examples, want %d: %q", len(folders), want, folders)
	}
	for _, folder := range folders {
		t.Run(strings.TrimPrefix(folder, "../examples/"), func(t *testing.T) {
			files, err := filepath.Glob(filepath.Join(folder, "*.tf"))
			if err != nil || len(files) == 0 {
				t.Fatalf("no files: %v", err)
			}
			contents := map[string]string{}
			for _, file := range files {
				contents[filepath.Base(file)] = read(t, file)
			}
			if strings.Contains(folder, "/actions/") && !cliKnows(t, "1.14", "an action") {
				t.Skip("the terraform command knows no actions")
			}
			if _, there := contents[byIdentity]; there && !cliKnows(t, "1.12", "import by identity") {
				delete(contents, byIdentity)
			}
			valid(t, contents)
		})
	}
}

func TestWebhookDocumentationListsEveryEventType(t *testing.T) {
	page := read(t, "../docs/resources/webhook.md")
	for _, eventType := range event.Types() {
		if !strings.Contains(page, "`"+eventType+"`") {
			t.Errorf("docs/resources/webhook.md does not name %s", eventType)
		}
	}
}
