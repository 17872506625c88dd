package connectpage

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/registry"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/login"
)

var verb = regexp.MustCompile(`%[^%]`)

// verbs returns the verbs of a text in alphabetical order.
func verbs(text string) []string { return slices.Sorted(slices.Values(verb.FindAllString(text, -1))) }

// Each language has the same texts, none is empty, and their placeholders agree with the English text.
func TestMessages_LanguagesAreComplete(t *testing.T) {
	t.Parallel()
	keys := translations["de"]
	for _, l := range locales {
		for key := range keys {
			got, ok := translations[l.code][key]
			switch {
			case l.code == "en" && !strings.Contains(key, "%d"): // the key is the text
				continue
			case !ok:
				t.Errorf("%s: %q is missing", l.code, key)
				continue
			case strings.Contains(key, "%d") != (got.other != ""):
				t.Errorf("%s: %q must have plural forms if and only if it has a number", l.code, key)
			}
			for _, form := range got.forms() {
				if strings.TrimSpace(form) == "" || !slices.Equal(verbs(form), verbs(key)) {
					t.Errorf("%s: %q has the translation %q", l.code, key, form)
				}
			}
		}
		for key := range translations[l.code] {
			if _, ok := keys[key]; !ok {
				t.Errorf("%s: %q is in this language only", l.code, key)
			}
		}
	}
}

// shownTexts returns all texts that pages show: those of templates, vendors, and refusals.
func shownTexts(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{
		// Errors of adapters about what a person enters. Tests of package app check that the pages show them.
		"The gateway's URL must look like ws://host:3000 or wss://host.": true,
		"The broker's URL must look like mqtts://host:8883 or mqtt://host:1883, or over WebSocket like wss://host/mqtt " +
			"or ws://host:9001.": true,
		"The broker's URL contains a user or a password: give them in their own settings.":                         true,
		"The account has no lock in Nuki Web: activate Nuki Web for the lock in the Nuki app, then connect again.": true,
		"A workspace cannot be its own upstream.":                                                                  true,
		"The upstream workspace has this workspace as its own upstream.":                                           true,
		"This server connects to no gateway at that address.":                                                      true,
		showText(login.Field{}):                                 true,
		showText(login.Field{Autocomplete: "current-password"}): true,
	}
	template, err := os.ReadFile("page.templ")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`(?:say|sayf|around)\((?:ctx, )?("(?:[^"\\]|\\.)*")`).FindAllSubmatch(template, -1) {
		text, err := strconv.Unquote(string(found[1]))
		if err != nil {
			t.Fatal(err)
		}
		out[text] = true
	}
	for _, one := range textsOf {
		for _, value := range reflect.ValueOf(one).Fields() {
			out[value.String()] = true
		}
	}
	for _, v := range registry.All() {
		if v.Login == nil {
			continue
		}
		out[v.Login.Refused] = true
		for _, f := range v.Login.Fields {
			out[f.Label], out[f.Help] = true, true
			if out[f.Prompt] = true; f.Prompt == "" && !f.Optional {
				t.Errorf("the field %s of %s has no Prompt", f.Name, v.Name)
			}
		}
	}
	sources, err := filepath.Glob("../adapter/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	sources = append(sources, "texts.go", "login.go", "login_limit.go", "redirect.go", "step.go",
		"../app/logins.go", "../app/sandbox_vendors.go")
	for _, path := range sources {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		for _, text := range textsIn(t, path) {
			out[text] = true
		}
	}
	for _, text := range conflictsIn(t, "../account/webview_login.go") {
		out[text] = true
	}
	delete(out, "")
	return out
}

// textsIn returns the texts of a Go file that are shown to people.
func textsIn(t *testing.T, path string) (out []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string][]string{
		"Refusal": {"Message"},
		"Step":    {"Message"},
		"Field":   {"Label", "Help", "Prompt"},
		"Sample":  {"Text"},
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			kind := n.Type
			if list, ok := kind.(*ast.ArrayType); ok { // its elements have no type
				for _, e := range n.Elts {
					if one, ok := e.(*ast.CompositeLit); ok && one.Type == nil {
						one.Type = list.Elt
					}
				}
			}
			if name, ok := kind.(*ast.SelectorExpr); ok && name.X.(*ast.Ident).Name == "login" {
				out = append(out, valuesOf(n, shown[name.Sel.Name]...)...)
			}
		case *ast.CallExpr: // sayf(ctx, "text", …)
			if name, ok := n.Fun.(*ast.Ident); ok && strings.HasPrefix(name.Name, "say") && len(n.Args) > 1 {
				out = append(out, constant(n.Args[1]))
			}
		case *ast.ValueSpec: // package ttlock
			for i, name := range n.Names {
				if name.Name == "wrongSetup" {
					out = append(out, constant(n.Values[i]))
				}
				if list, ok := value(n, i).(*ast.CompositeLit); ok && name.Name == "personWords" {
					for _, e := range list.Elts {
						out = append(out, constant(e.(*ast.KeyValueExpr).Value))
					}
				}
			}
		case *ast.AssignStmt:
			if name, ok := n.Lhs[0].(*ast.SelectorExpr); ok && name.Sel.Name == "ForPerson" {
				out = append(out, constant(n.Rhs[0]))
			}
		}
		return true
	})
	return out
}

func value(n *ast.ValueSpec, i int) ast.Expr {
	if i < len(n.Values) {
		return n.Values[i]
	}
	return nil
}

// conflictsIn returns the messages of errors of the kind domain.Conflict, which pages show.
func conflictsIn(t *testing.T, path string) (out []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		fields := map[string]ast.Expr{}
		for _, e := range literal.Elts {
			if pair, ok := e.(*ast.KeyValueExpr); ok {
				if name, ok := pair.Key.(*ast.Ident); ok {
					fields[name.Name] = pair.Value
				}
			}
		}
		kind, isError := fields["Kind"].(*ast.SelectorExpr)
		if own, ok := fields["Type"].(*ast.Ident); ok && own.Name == "tooManyLogins" { // a page of its own
			return true
		}
		if isError && kind.Sel.Name == "Conflict" {
			out = append(out, constant(fields["Message"]))
		}
		return true
	})
	return out
}

// valuesOf returns the constant texts of fields of a literal.
func valuesOf(n *ast.CompositeLit, fields ...string) (out []string) {
	for _, e := range n.Elts {
		pair, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		if name, ok := pair.Key.(*ast.Ident); ok && slices.Contains(fields, name.Name) {
			out = append(out, constant(pair.Value))
		}
		if call, ok := pair.Value.(*ast.CallExpr); ok && len(call.Args) > 1 { // cmp.Or(…, "text")
			out = append(out, constant(call.Args[1]))
		}
	}
	return out
}

// constant returns the value of a string literal, or of several that are added.
func constant(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.BinaryExpr:
		left, right := constant(e.X), constant(e.Y)
		if left == "" || right == "" {
			return ""
		}
		return left + right
	}
	return ""
}

// Each text that pages show is in the catalog, and the catalog has no others.
func TestMessages_AllShownTextsAreTranslated(t *testing.T) {
	t.Parallel()
	shown := shownTexts(t)
	for text := range shown {
		if !isKnown(text) {
			t.Errorf("%q is not translated", text)
		}
	}
	for text := range translations["de"] {
		if !shown[text] {
			t.Errorf("%q is shown nowhere", text)
		}
	}
	if len(shown) < 150 {
		t.Errorf("only %d texts were found", len(shown))
	}
}

func TestMessages_Plurals(t *testing.T) {
	t.Parallel()
	for i, want := range map[int][3]string{
		0: {"We found 1 lock", "We found 2 locks", "We found 1,200 locks"},
		1: {"Wir haben 1 Schloss gefunden", "Wir haben 2 Schlösser gefunden", "Wir haben 1.200 Schlösser gefunden"},
	} {
		ctx := withReader(t.Context(), readerOf(i, false))
		for n, count := range []any{1, 2.0, 1200} {
			if got := sayf(ctx, textsOf[lockKind].found, count); got != want[n] {
				t.Errorf("%q, want %q", got, want[n])
			}
		}
	}
}

func TestMessages_EmphasizeValues(t *testing.T) {
	t.Parallel()
	ctx := withReader(t.Context(), readerOf(1, false))
	got := sayParts(ctx, "Log in with the email address %s and the password %s.", []string{"a\x00b", "<1>"})
	want := []part{
		{text: "Melden Sie sich mit der E-Mail-Adresse "},
		{text: "a\x00b", isValue: true},
		{text: " und dem Passwort "},
		{text: "<1>", isValue: true},
		{text: " an."},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if before, after := sayAround(
		ctx,
		"%s rejects this login.",
	); before != "" ||
		after != " lehnt diese Anmeldung ab." {
		t.Errorf("%q, %q", before, after)
	}
	if got := sayf(ctx, "Acme says %s.", "no"); got != "Acme says no." {
		t.Errorf("a text of a vendor: %q", got)
	}
}
