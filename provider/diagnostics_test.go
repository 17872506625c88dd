package provider

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
)

func TestDiagnosticsAreMadeInOnePlace(t *testing.T) {
	made := regexp.MustCompile(`\.Add(Attribute)?(Error|Warning)\(|diag\.New\w*Diagnostic\(`)
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if file != "diagnostics.go" && !strings.HasSuffix(file, "_test.go") && made.Match(content) {
			t.Errorf("%s makes a diagnostic itself: use refuse, refuseAt, warn, warnAt or report", file)
		}
	}
}

func TestAttributesThatHoldSecretsAreNotPointedTo(t *testing.T) {
	for name, pointed := range map[string]bool{"code": false, "code_wo": false, "api_key": false, "url": false, "name": true} {
		var diags diag.Diagnostics
		refuseAt(&diags, path.Root(name), "Check the value", "It is wrong.")
		warnAt(&diags, path.Root(name), "Check the value", "It may be wrong.")
		for _, d := range diags {
			if _, got := d.(diag.DiagnosticWithPath); got != pointed {
				t.Errorf("%s is pointed to by the %s: %v", name, d.Severity(), got)
			}
		}
	}
}

// Terraform shows the line of what a diagnostic points to.
func TestDiagnosticsOfAConfigurationShowNoLineWithASecret(t *testing.T) {
	t.Parallel()
	const pin, token = "905173846251", "tok-2bMS94SrGUXuNR2JmJkjtvBQDg5c"
	for name, c := range map[string]struct{ config, says string }{
		"two PINs of a code": {accessCode("code = \"" + pin + "\"\n  code_wo = \"" + pin + "\"\n  code_wo_version = 1"), "`code` and `code_wo` are both set"},
		"two PINs of a set":  {codeSet("code = \""+pin+"\"\n  code_wo = \""+pin+"\"\n  code_wo_version = 1", lockA), "`code` and `code_wo` are both set"},
		"a webhook's URL":    {webhook("example.com/"+token, ""), "`url` must be an http or https URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t, map[string]string{"main.tf": required + c.config})
			w.expect(false, "validate", "-no-color")
			expectSaid(t, "validate", plainly(w.seen.String()), c.says)
			if seen := w.seen.String(); strings.Contains(seen, pin) || strings.Contains(seen, token) {
				t.Error("the secret was shown")
			}
		})
	}
}
