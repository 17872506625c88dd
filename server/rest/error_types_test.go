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

// unanswered are types of errors that commands, or pages, tell of, and no answer of the API.
var unanswered = []string{"connect_webview_has_login", "credential_not_found", "rotation_in_progress", "rotation_under_way", "schema_is_newer", "too_many_logins"}

// The contract names every type of error that a line of the server makes, and none besides. What is answered to any test is
// compared with it, too (apptest).
func TestContractNamesEveryTypeOfError(t *testing.T) {
	t.Parallel()
	listed := apptest.ErrorTypes(t)
	if !slices.IsSorted(listed) {
		t.Error("the contract does not list types of errors in their order")
	}
	made := errorTypes(t, "../rest", "../access", "../acs", "../crowd", "../reconcile")
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

// errorTypes finds where errors of each type are made: in composite literals, by a literal, by a constant, or by what is
// passed to a function that makes them.
func errorTypes(t *testing.T, rooms ...string) map[string]string {
	t.Helper()
	files, made := token.NewFileSet(), map[string]string{}
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
		add := func(at ast.Node, kind string) { made[kind] = files.Position(at.Pos()).String() }
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
