package rest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// unanswered are error types of commands and pages, which the API never returns.
var unanswered = []string{
	"connect_webview_has_login",
	"credential_not_found",
	"rotation_in_progress",
	"rotation_under_way",
	"schema_is_newer",
	"too_many_logins",
}

// The contract lists exactly the error types in the server's source. Package apptest also checks the responses of all
// tests.
func TestContractListsErrorTypes(t *testing.T) {
	t.Parallel()
	listed := apptest.ErrorTypes(t)
	if !slices.IsSorted(listed) {
		t.Error("the contract does not list types of errors in their order")
	}
	made := errorTypes(
		t,
		"../domain",
		"../rest",
		"../account",
		"../acs",
		"../admission",
		"../auth",
		"../device",
		"../climate",
		"../lockstate",
		"../noise",
		"../noisesensor",
		"../event",
		"../idempotency",
		"../keyrotation",
		"../phone",
		"../reconcile",
		"../thermostat",
		"../webhook",
	)
	for _, kind := range slices.Sorted(maps.Keys(made)) {
		if !slices.Contains(listed, kind) && !slices.Contains(unanswered, kind) {
			t.Errorf("%s is answered with %s: name it in Error.type of api/openapi.yaml", made[kind], kind)
		}
	}
	for _, kind := range listed {
		if made[kind] == "" {
			t.Errorf("nothing is answered with %s, which the contract names", kind)
		}
	}
	for _, kind := range unanswered {
		if made[kind] == "" {
			t.Errorf("there is no error %s any more", kind)
		}
	}
}

// errorTypes finds error types in composite literals: literals, constants, and arguments of functions that create
// errors.
func errorTypes(t *testing.T, rooms ...string) map[string]string {
	t.Helper()
	files, made := token.NewFileSet(), map[string]string{}
	var shared map[string]string // constants of package domain, which is the first room
	for _, room := range rooms {
		paths, err := filepath.Glob(room + "/*.go")
		if err != nil || len(paths) == 0 {
			t.Fatal(room, err)
		}
		var parsed []*ast.File
		constants := map[string]string{}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".gen.go") {
				continue
			}
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, file)
			ast.Inspect(file, func(n ast.Node) bool {
				if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Names) == 1 && len(spec.Values) == 1 {
					if value, ok := literal(spec.Values[0]); ok {
						constants[spec.Names[0].Name] = value
					}
				}
				return true
			})
		}
		if filepath.Base(room) == "domain" {
			shared = constants
		}
		add := func(at ast.Node, kind string) {
			if !strings.Contains(kind, ".") { // as the types of events do
				made[kind] = files.Position(at.Pos()).String()
			}
		}
		for _, file := range parsed {
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.KeyValueExpr:
					key, ok := n.Key.(*ast.Ident)
					if !ok || key.Name != "kind" && key.Name != "Type" {
						return true
					}
					if kind, ok := literal(n.Value); ok {
						add(n, kind)
					} else if named, ok := n.Value.(*ast.Ident); ok && constants[named.Name] != "" {
						add(n, constants[named.Name])
					} else if named, ok := n.Value.(*ast.SelectorExpr); ok && shared[named.Sel.Name] != "" {
						add(n, shared[named.Sel.Name])
					}
				case *ast.CallExpr: // of functions to which the type is passed
					called, ok := n.Fun.(*ast.Ident)
					if !ok || len(n.Args) == 0 {
						return true
					}
					if kind, ok := literal(n.Args[0]); ok && called.Name == "refuse" && !strings.Contains(kind, " ") {
						add(n, kind)
					} else if ok && called.Name == "notFound" {
						add(n, kind+"_not_found")
					}
				}
				return true
			})
		}
	}
	return made
}

func literal(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	value, err := strconv.Unquote(l.Value)
	return value, err == nil
}
