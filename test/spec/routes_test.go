package spec_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest"
)

// otherRoutes are the routes that are not in the contract, as in the code, and who may use them. Those in the contract
// are tested with every credential (TestTenancy_EveryOperation and others), those of the simulated cloud without one
// (TestNoRouteAnswersStrangers).
var otherRoutes = map[string]struct {
	who    string
	method string
	path   string // tested without a credential; empty if it has its own listener
	status int    // of the response
}{
	"app vendorsPath": {
		"vendors, by the secret in the path of their account",
		"POST",
		"/vendors/0190a4a2-5f3e-7c39-8d1c-3b5f1f6f0a12/00000000000000000000000000000000",
		404,
	},
	"app sandboxPath": {
		"the simulated cloud: its accounts, by their tokens",
		"GET",
		"/sandbox/cloud/locks",
		401,
	},
	"app rest.ConnectPath": {"the pages to log in on, below", "GET", "/connect/", 404},
	"app console.Path": {
		"operators with a session; others are led to the sign-in",
		"GET",
		"/console?",
		200,
	},
	`app console.Path + "/"`: {"the same", "POST", "/console/sign-out", 200},
	"console Path + route.pattern": {
		"operators by role: TestRoles_EveryRouteEveryRole",
		"GET",
		"/console/w/x/locks",
		200,
	},
	`console Path + "/assets/{file}"`: {"everyone: shared by all pages", "GET", "/console/assets/console.css", 200},
	`app "/"`:                         {"the contract", "POST", "/devices/list", 401},
	"connectpage assetsPath + \"{file}\"": {
		"everyone: shared by all pages",
		"GET",
		"/connect/assets/htmx.min.js",
		200,
	},
	`connectpage "/connect/{token}"`: {
		"everyone with the link of a webview",
		"GET",
		"/connect/x",
		404,
	},
	`connectpage "/connect/{token}/{vendor}"`:           {"the same", "POST", "/connect/x/august", 404},
	`connectpage "/connect/{token}/look.css"`:           {"the same", "GET", "/connect/x/look.css", 404},
	`connectpage "/connect/{token}/{vendor}/authorize"`: {"the same", "GET", "/connect/x/august/authorize", 404},
	`connectpage "/connect/{token}/{login:[0-9a-f-]{36}}"`: {
		"the same, with the id of a login that has started",
		"POST",
		"/connect/x/0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11",
		404,
	},
	`connectpage "/connect/{token}/{login:[0-9a-f-]{36}}/start_over"`: {
		"the same",
		"POST",
		"/connect/x/0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11/start_over",
		404,
	},
	`connectpage callbackPath + "{vendor}"`: {
		"everyone with the state of a login on a vendor's pages",
		"GET",
		"/connect/back/bolt?code=x&state=x",
		404,
	},
	`connectpage "/connect/{token}/waiting"`: {"the same", "GET", "/connect/x/waiting", 404},
	`connectpage "/connect/{token}/give_up"`: {"the same", "POST", "/connect/x/give_up", 404},
	`rest "/openapi.json"`:                   {"everyone: the contract itself", "GET", "/openapi.json", 200},
	`metrics "GET /metrics"`: {
		"everyone who reaches --metrics-listen, which is its own address",
		"GET",
		"",
		0,
	},
}

// muxes are the methods that register a path for a handler. verbs are those that other types have, too: only arguments
// that look like a path count.
var (
	muxes = []string{"Handle", "HandleFunc", "Mount", "Route", "Method", "MethodFunc"}
	verbs = []string{"Get", "Post", "Put", "Patch", "Delete", "Head", "Options", "Connect", "Trace", "Query"}
)

// A handler that is not in the contract would be missing in all tests of access.
func TestRoutes_AreInContractOrListed(t *testing.T) {
	t.Parallel()
	doc, err := rest.Document()
	if err != nil {
		t.Fatal(err)
	}
	contract, there := map[string]bool{}, map[string]bool{}
	for route := range routes(t) {
		if path, ok := strings.CutPrefix(route, "openapi options.BaseURL + "); ok {
			contract[strings.Trim(path, `"`)] = true
			continue
		}
		there[route] = true
		if otherRoutes[route].who == "" {
			t.Errorf("%s: a route that is not in the contract; add who may use it to otherRoutes", route)
		}
	}
	for route := range otherRoutes {
		if !there[route] {
			t.Errorf("there is no route %s", route)
		}
	}
	if want := slices.Sorted(maps.Keys(doc.Paths.Map())); !slices.Equal(slices.Sorted(maps.Keys(contract)), want) {
		t.Errorf("the routes of the contract are %q, want %q", slices.Sorted(maps.Keys(contract)), want)
	}
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	for route, b := range otherRoutes {
		if b.path == "" {
			continue
		}
		req, err := http.NewRequestWithContext(t.Context(), b.method, s.URL+b.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if res.Body.Close(); res.StatusCode != b.status {
			t.Errorf(
				"%s: without a credential, %s %s is answered %s, want %d",
				route,
				b.method,
				b.path,
				res.Status,
				b.status,
			)
		}
	}
}

// routes returns the routes in the code of the server, as "folder path", without those of the simulated cloud.
func routes(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	const root = "../../server"
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch folder := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && (name == filepath.Join(root, "sandbox") || strings.HasSuffix(folder, "test")):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && isRoute(call) {
				at := call.Args[0]
				if named := call.Fun.(*ast.SelectorExpr).Sel.Name; strings.HasPrefix(named, "Method") &&
					len(call.Args) > 1 {
					at = call.Args[1]
				}
				found[file.Name.Name+" "+types.ExprString(at)] = true
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func isRoute(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) < 2 {
		return false
	}
	first := types.ExprString(call.Args[0])
	switch {
	case slices.Contains(muxes, f.Sel.Name):
		return first != "ctx" // the first argument of log handlers
	case slices.Contains(verbs, f.Sel.Name):
		return strings.Contains(first, "/") || strings.Contains(first, "Path")
	}
	return false
}
