package store

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A requested change that returns rows is refused outside of a transaction (errUnaudited), because the audit log would miss it.
// So the code of the server makes such changes only on a Tx.
func TestChangesThatReturnRowsAreMadeInTransactions(t *testing.T) {
	t.Parallel()
	returning := changesThatReturnRows(t)
	if len(returning) < 15 || !returning["InsertConnectWebview"] || returning["PutAuditEntry"] ||
		returning["TakeLease"] {
		t.Fatalf("changes that return rows: %v", returning)
	}
	rooms := map[string][]*ast.File{} // that know of the store
	files := token.NewFileSet()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			filepath.Base(filepath.Dir(path)) == "dbsqlc" {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if file.Name.Name == "store" || slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool {
			return strings.HasSuffix(i.Path.Value, `/server/store"`) ||
				strings.HasSuffix(i.Path.Value, `/server/store/dbsqlc"`)
		}) {
			rooms[filepath.Dir(path)] = append(rooms[filepath.Dir(path)], file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, room := range rooms {
		for _, at := range outsideOfTransactions(room, returning, &calls) {
			t.Errorf(
				"%s: this change returns rows, and is made outside of a transaction: make it on the Tx of an InTx",
				files.Position(at),
			)
		}
	}
	if calls < len(returning) {
		t.Errorf("%d calls were found of %d queries", calls, len(returning))
	}
}

// That the test above sees what it is there for.
func TestAChangeOutsideOfATransactionIsSeen(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"func f(tx store.Tx) { tx.Change(ctx) }":                                                                     0,
		"func f() { s.db.InTx(ctx, func(tx Tx) error { _, err := tx.Change(ctx); return err }) }":                    0,
		"func f() { s.db.InTx(ctx, func(tx store.Tx) error { return nil }); tx.Change(ctx) }":                        1,
		"func f(tx store.Tx) { s.db.Change(ctx) }":                                                                   1,
		"func f(db *store.DB) { if _, err := db.Change(ctx); err != nil { db.Queries.Change(ctx); db.Other(ctx) } }": 2,
		"func f(q *dbsqlc.Queries) { q.Change(ctx) }":                                                                1,
		"func f(tx *store.DB) { tx.Change(ctx) }":                                                                    1,
		"func f() { for range 2 { g(func(a, b store.Tx) { h(a.Change(ctx), b.Change(ctx)) }) } }":                    0,
		"func f() { give(s.db.Change) }":                                                                             1,
		"func f(tx store.Tx) { g(func(tx *store.DB) { tx.Change(ctx) }) }":                                           1,
		"type s struct { tx store.Tx }; func (s s) f() { s.tx.Change(ctx) }":                                         0,
		"type s struct { tx store.Tx }; type o struct { tx *store.DB }; func (s s) f() { s.tx.Change(ctx) }":         1,
		"var f = func(tx store.Tx) { tx.Change(ctx) }":                                                               0,
	} {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, "", "package x\n"+text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(text, err)
		}
		calls := 0
		if got := len(outsideOfTransactions([]*ast.File{file}, map[string]bool{"Change": true}, &calls)); got != want {
			t.Errorf("%s: %d are seen, want %d", text, got, want)
		}
	}
}

// changesThatReturnRows are the queries that the audit log tells of and that are asked for rows.
func changesThatReturnRows(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	query := regexp.MustCompile(`(?s)^-- name: (\w+) :(\w+)\n`)
	for _, text := range QueryTexts(t) {
		m := query.FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("what is this? %.60s", text)
		}
		switch m[2] {
		case "one", "many":
			if statementOf(text).writes {
				names[m[1]] = true
			}
		case "exec", "execrows":
		default: // batches and copies are not watched at all
			t.Errorf("%s is of the kind %s, of which the audit log sees nothing", m[1], m[2])
		}
	}
	return names
}

// outsideOfTransactions are the uses of queries of these names on anything but a parameter or a field that is a Tx.
func outsideOfTransactions(room []*ast.File, names map[string]bool, calls *int) (at []token.Pos) {
	fields := txFields(room)
	var look func(n ast.Node, given map[string]bool)
	look = func(n ast.Node, given map[string]bool) {
		ast.Inspect(n, func(in ast.Node) bool {
			switch in := in.(type) {
			case *ast.FuncDecl:
				if in.Body != nil {
					look(in.Body, withParameters(given, in.Type))
				}
				return false
			case *ast.FuncLit:
				look(in.Body, withParameters(given, in.Type))
				return false
			case *ast.SelectorExpr:
				if !names[in.Sel.Name] {
					return true
				}
				*calls++
				on, isName := in.X.(*ast.Ident)
				of, isField := in.X.(*ast.SelectorExpr)
				if isName && given[on.Name] || isField && fields[of.Sel.Name] {
					return true
				}
				at = append(at, in.Pos())
			}
			return true
		})
	}
	for _, file := range room {
		look(file, nil)
	}
	return at
}

// txFields are the names of fields that are a Tx in every struct that has them.
func txFields(room []*ast.File) map[string]bool {
	fields, others := map[string]bool{}, map[string]bool{}
	for _, file := range room {
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range s.Fields.List {
				for _, name := range field.Names {
					if isTx(field.Type) {
						fields[name.Name] = true
					} else {
						others[name.Name] = true
					}
				}
			}
			return true
		})
	}
	for name := range others {
		delete(fields, name)
	}
	return fields
}

func isTx(of ast.Expr) bool {
	switch of := of.(type) {
	case *ast.Ident:
		return of.Name == "Tx"
	case *ast.SelectorExpr:
		on, ok := of.X.(*ast.Ident)
		return ok && on.Name == "store" && of.Sel.Name == "Tx"
	}
	return false
}

// withParameters are the names that stand for a Tx in a function.
func withParameters(outside map[string]bool, f *ast.FuncType) map[string]bool {
	given := map[string]bool{}
	for name, is := range outside {
		given[name] = is
	}
	for _, field := range f.Params.List {
		for _, name := range field.Names {
			given[name.Name] = isTx(field.Type)
		}
	}
	return given
}
