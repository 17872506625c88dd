package provider

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
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

// orders are the words with which a summary would tell users to do what failed.
var orders = regexp.MustCompile(
	`^(Add|Check|Choose|Connect|Convert|Create|Delete|Find|Import|List|Read|Remove|Set|Update|Write)\b`,
)

// A pipeline often shows the summary only.
func TestSummariesStateFacts(t *testing.T) {
	t.Parallel()
	actions := map[string]int{ // where a function takes an action; "Could not" is put before it
		"Failure": 1, "FailureAt": 2, "CouldNot": 0, "report": 1, "reportNext": 1, "reportCreate": 1, "isDeleted": 2,
	}
	summaries := map[string]int{"Error": 1, "ErrorAt": 2, "Warning": 1, "WarningAt": 2}
	var files []string
	for _, pattern := range []string{"*.go", "validators/*.go", "planmodifiers/*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(
			files,
			slices.DeleteFunc(found, func(f string) bool { return strings.HasSuffix(f, "_test.go") })...)
	}
	seen := 0
	check := func(at token.Position, text string, isAction bool) {
		seen++
		if first := []rune(text)[0]; isAction != unicode.IsLower(first) || orders.MatchString(text) {
			t.Errorf("%s: %q, where an action begins in lower case and a summary states a fact", at, text)
		}
	}
	for _, file := range files {
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.ValueSpec:
				for i, name := range node.Names {
					if strings.HasPrefix(name.Name, "action") && i < len(node.Values) {
						check(set.Position(node.Pos()), literal(node.Values[i]), true)
					}
				}
			case *ast.CallExpr:
				name := called(node)
				if i, ok := actions[name]; ok && i < len(node.Args) && literal(node.Args[i]) != "" {
					check(set.Position(node.Pos()), literal(node.Args[i]), true)
				}
				if i, ok := summaries[name]; ok && i < len(node.Args) && literal(node.Args[i]) != "" {
					check(set.Position(node.Pos()), literal(node.Args[i]), false)
				}
			}
			return true
		})
	}
	if seen < 60 {
		t.Errorf("only %d summaries were found", seen)
	}
}

// called is the name of the function that an expression calls.
func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// literal is how an expression begins that is or begins with a string in quotes, and otherwise empty.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return literal(e.X)
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		if err == nil {
			return text
		}
	}
	return ""
}

// Each fault of a request has its own error, at its own line.
func TestEachRejectedFieldIsReportedAtItsAttribute(t *testing.T) {
	const pin = "905173846251"
	var diags diag.Diagnostics
	report(&diags, "create access code", redacted(&api.ResponseError{
		Status: 400, Type: "invalid_input", Message: "4 Input Errors", RequestID: "req-1", Fields: map[string][]string{
			"name":                        {"A name has at most 20 characters"},
			"code":                        {"This device takes codes of 6 digits, not " + pin},
			"is_one_time_use":             {"This device has no one-time codes"},
			"use_backup_access_code_pool": {"There is no pool", "And no time frame"},
		},
	}, pin))
	got := map[string]string{}
	for _, d := range diags {
		at := ""
		if pointing, ok := d.(diag.DiagnosticWithPath); ok {
			at = pointing.Path().String()
		}
		if got[at] = d.Detail(); d.Summary() != "Could not create access code" {
			t.Errorf("the summary is %q", d.Summary())
		}
	}
	const about = " (HTTP 400, invalid_input, request req-1)."
	if want := map[string]string{
		"name":                    "`name`: A name has at most 20 characters" + about,
		"":                        "`code`: This device takes codes of 6 digits, not (hidden)" + about,
		"offline.is_one_time_use": "`is_one_time_use`: This device has no one-time codes" + about,
		"backup.use_pool":         "`use_backup_access_code_pool`: There is no pool; And no time frame" + about,
	}; !maps.Equal(got, want) {
		t.Errorf("it says %q", got)
	}
}

func TestEachRejectedFieldShowsItsLine(t *testing.T) {
	f := startFake(t)
	f.then("/access_codes/create", answerRaw(http.StatusBadRequest, "application/json", `{"ok": false, "error": {
		"type": "invalid_input", "message": "2 Input Errors: A for \"name\", B for \"ends_at\"", "validation_errors": {
		"_errors": [], "name": {"_errors": ["The name is too long"]}, "ends_at": {"_errors": ["It has passed"]}}}}`))
	run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: f.config(accessCode("name = \"Guest\"\n" + frame(time.Hour, time.Hour))),
		ExpectError: says("Error: Could not create access code", "ends_at = \"", "It has passed",
			"Error: Could not create access code", "name = \"Guest\"", "The name is too long"),
	}}})
}

func TestAttributesThatHoldSecretsAreNotPointedTo(t *testing.T) {
	for name, pointed := range map[string]bool{"code": false, "code_wo": false, "api_key": false, "url": false, "name": true} {
		var diags diag.Diagnostics
		diagnostics.ErrorAt(&diags, path.Root(name), "Wrong value", "It is wrong.")
		diagnostics.WarningAt(&diags, path.Root(name), "Wrong value", "It may be wrong.")
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
