package provider

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// cliKnows says whether the terraform on the PATH has a feature, and logs what goes untried where it has not. That is
// nothing missing on the machine: the tests that talk the plugin protocol try it with every Terraform.
func cliKnows(t *testing.T, since, feature string) bool {
	t.Helper()
	encoded, err := exec.CommandContext(t.Context(), "terraform", "version", "-json").Output()
	if err != nil {
		t.Fatalf("terraform version: %v", err)
	}
	var answer struct {
		Version string `json:"terraform_version"`
	}
	if err := json.Unmarshal(encoded, &answer); err != nil {
		t.Fatal(err)
	}
	if parts(t, answer.Version) < parts(t, since) {
		t.Logf(
			"not tried with the terraform command: %s needs Terraform %s, and this is %s",
			feature,
			since,
			answer.Version,
		)
		return false
	}
	return true
}

// parts makes a number of major and minor version, to compare.
func parts(t *testing.T, version string) int {
	t.Helper()
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		t.Fatalf("%q is no version: %v", version, err)
	}
	return major*1000 + minor
}

func TestTerraformImportsByIdentity(t *testing.T) {
	t.Parallel()
	f := twoLocks(t)
	f.webhooks["w1"] = &fakeWebhook{url: "https://example.com/a", eventTypes: []string{"*"}}
	w := newWorkspace(
		t,
		map[string]string{"main.tf": required + f.config(accessCode("")+webhook("https://example.com/a", ""))},
	)
	w.expect(true, "validate") // also where identities are not known
	if !cliKnows(t, "1.12", "import by identity") {
		return
	}
	var plumber string
	for id, code := range f.codes {
		if code.name == "Plumber" {
			plumber = id
		}
	}
	w.write("imports.tf", `import {
  to = `+front+`
  identity = {
    access_code_id = "`+plumber+`"
    device_id      = "`+fakeDevice+`"
  }
}
import {
  to = `+hook+`
  identity = {
    webhook_id = "w1"
  }
}
`)
	if plan := w.read(
		"plan",
		"-no-color",
	); !strings.Contains(
		plan,
		"2 to import, 0 to add, 1 to change, 0 to destroy",
	) {
		t.Errorf("the plan says\n%s", plan)
	}
	f.expectWrites(t, "after the plan")
	w.expect(true, "apply", "-auto-approve")
	f.expectWrites(t, "after the apply", converting)
}

func TestTerraformQueriesWhatIsThereAndGeneratesItsConfiguration(t *testing.T) {
	t.Parallel()
	f := twoLocks(t)
	f.webhooks["w1"] = &fakeWebhook{url: "https://example.com/a", eventTypes: []string{"*"}}
	w := newWorkspace(t, map[string]string{
		"main.tf": required + f.config(""),
		"all.tfquery.hcl": `list "deviceaccess_access_code" "all" {
  provider         = deviceaccess
  include_resource = true
  config {
    management = "both"
  }
}
list "deviceaccess_webhook" "all" {
  provider         = deviceaccess
  include_resource = true
}
`,
	})
	w.expect(true, "validate") // also where query files are not known
	if !cliKnows(t, "1.14", "terraform query") {
		return
	}
	listing := w.read("query", "-json")
	for _, want := range []string{"Plumber on Front door (unmanaged)", "Cleaner on Back door (unmanaged)", "Nanny on Front door", "https://example.com/a"} {
		if !strings.Contains(listing, want) {
			t.Errorf("%q is not in the listing", want)
		}
	}
	w.expect(true, "query", "-generate-config-out=adopted.tf")
	plan := w.read("plan", "-no-color")
	if !strings.Contains(plan, "5 to import, 0 to add, 3 to change, 0 to destroy") {
		t.Errorf("the plan says\n%s", plan)
	}
	for what, text := range map[string]string{"listing": listing, "plan": plan, "generated configuration": w.file("adopted.tf")} {
		if strings.Contains(text, longPIN) || strings.Contains(text, fakeSecret) {
			t.Errorf("the %s tells a secret", what)
		}
	}
	f.expectWrites(t, "after the plan")
}

// file is what a command of terraform has written.
func (w *workspace) file(name string) string {
	w.t.Helper()
	content, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(content)
}
