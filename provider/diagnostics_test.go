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
	for name, pointed := range map[string]bool{"code": false, "code_wo": false, "api_key": false, "name": true} {
		var diags diag.Diagnostics
		refuseAt(&diags, path.Root(name), "Check the value", "It is wrong.")
		if _, got := diags[0].(diag.DiagnosticWithPath); got != pointed {
			t.Errorf("%s is pointed to: %v", name, got)
		}
	}
}
