package provider

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
)

func TestDiagnosticsAreMadeInOnePlace(t *testing.T) {
	made := regexp.MustCompile(`\.Add(Attribute)?(Error|Warning)\(|diag\.New\w*Diagnostic\(`)
	var files []string
	for _, pattern := range []string{"*.go", "validators/*.go", "planmodifiers/*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatal(pattern, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(file, "_test.go") && made.Match(content) {
			t.Errorf("%s makes a diagnostic itself: use package diagnostics, or report", file)
		}
	}
}

func TestAttributesThatHoldSecretsAreNotPointedTo(t *testing.T) {
	for name, pointed := range map[string]bool{"code": false, "code_wo": false, "api_key": false, "url": false, "name": true} {
		var diags diag.Diagnostics
		diagnostics.ErrorAt(&diags, path.Root(name), "Check the value", "It is wrong.")
		diagnostics.WarningAt(&diags, path.Root(name), "Check the value", "It may be wrong.")
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
		"two PINs of a code":        {accessCode("code = \"" + pin + "\"\n  code_wo = \"" + pin + "\"\n  code_wo_version = 1"), "`code` and `code_wo` are both set"},
		"two PINs of a shared code": {codeSet("code = \""+pin+"\"\n  code_wo = \""+pin+"\"\n  code_wo_version = 1", lockA), "`code` and `code_wo` are both set"},
		"a webhook's URL":           {webhook("example.com/"+token, ""), "`url` must be an http or https URL"},
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
