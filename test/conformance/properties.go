package conformance

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// neverSent is the complaint about a published property of a resource that the server never sends.
const neverSent = "is never sent"

// UnsentProperties compares the published resources that our operations return with what the server in a directory
// sends: a property must be in our contract, and the source must set its field. It returns unlisted properties as
// resource and JSON pointer, and stale rows of differences.md.
func (r *Checker) UnsentProperties(root string) (unlisted, stale []string, err error) {
	source, err := readSource(root)
	if err != nil {
		return nil, nil, err
	}
	sent := map[Difference]bool{} // false: in no response
	for _, route := range slices.Sorted(maps.Keys(r.ours.Paths.Map())) {
		published := r.published.Paths.Value(route)
		if published == nil {
			continue
		}
		ours := answerOf(r.ours.Paths.Value(route))
		for key, theirs := range answerOf(published).Properties {
			mine := ours.Properties[key]
			if theirs.Value.Items != nil && mine != nil {
				theirs, mine = theirs.Value.Items, mine.Value.Items
			}
			resource, isResource := strings.CutPrefix(theirs.Ref, schemaPrefix)
			if mine == nil || !isResource || resource == "pagination" {
				continue
			}
			source.walk("", mine, theirs, func(at string, is bool) {
				d := Difference{Path: resource, What: at + ": " + neverSent}
				sent[d] = sent[d] || is
			})
		}
	}
	used := map[Difference]bool{}
	for d, is := range sent {
		i := slices.IndexFunc(r.differences, func(row Difference) bool { return row.excusesProperty(d) })
		switch {
		case is:
		case i < 0:
			unlisted = append(unlisted, d.Path+" "+d.What)
		default:
			used[r.differences[i]] = true
		}
	}
	for _, d := range r.differences {
		if d.ofResource() && !used[d] {
			stale = append(stale, d.Path+" "+d.What)
		}
	}
	slices.Sort(unlisted)
	return unlisted, stale, nil
}

// excusesProperty reports whether a row lists a property. In its pointer, * means any part of a name.
func (d Difference) excusesProperty(property Difference) bool {
	same, err := path.Match(d.What, property.What)
	return d.Path == property.Path && same && err == nil
}

// ofResource reports whether the difference is one of a resource.
func (d Difference) ofResource() bool { return strings.HasSuffix(d.What, ": "+neverSent) }

const schemaPrefix = "#/components/schemas/"

// source is what the source of the server says about the models of the API.
type source struct {
	fields   map[string]map[string]string // names of fields by model and JSON name
	literals map[string]bool              // Model.Field in composite literals, and those that are always sent
	assigned map[string]bool              // names of fields in assignments
	copied   map[string]bool              // models that other types are converted to
}

func readSource(root string) (*source, error) {
	s := &source{fields: map[string]map[string]string{}, literals: map[string]bool{}}
	s.assigned, s.copied = map[string]bool{}, map[string]bool{}
	models, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "api", "models.gen.go"), nil, 0)
	if err != nil {
		return nil, fmt.Errorf("read the models: %w", err)
	}
	ast.Inspect(models, s.model)
	files, err := fs.Glob(os.DirFS(root), "server/rest/*.go")
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, 0)
		if err != nil {
			return nil, fmt.Errorf("read what the server sends: %w", err)
		}
		ast.Inspect(file, s.use)
	}
	return s, nil
}

// model records the fields of a model.
func (s *source) model(n ast.Node) bool {
	t, ok := n.(*ast.TypeSpec)
	if !ok {
		return true
	}
	structure, ok := t.Type.(*ast.StructType)
	if !ok {
		return false
	}
	s.fields[t.Name.Name] = map[string]string{}
	for _, f := range structure.Fields.List {
		if f.Tag == nil || len(f.Names) == 0 {
			continue
		}
		tag, options, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ",")
		s.fields[t.Name.Name][tag] = f.Names[0].Name
		if !strings.HasPrefix(options, "omit") {
			s.literals[t.Name.Name+"."+f.Names[0].Name] = true // sent in any case
		}
	}
	return false
}

// use records the fields that the server sets.
func (s *source) use(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CompositeLit:
		t, ok := n.Type.(*ast.SelectorExpr)
		if !ok {
			break
		}
		for _, e := range n.Elts {
			if pair, ok := e.(*ast.KeyValueExpr); ok {
				s.literals[fmt.Sprint(t.Sel.Name, ".", pair.Key)] = true
			}
		}
	case *ast.CallExpr:
		if t, ok := n.Fun.(*ast.SelectorExpr); ok && fmt.Sprint(t.X) == "api" {
			s.copied[t.Sel.Name] = true
		}
	case *ast.AssignStmt:
		for _, to := range n.Lhs {
			if field, ok := to.(*ast.SelectorExpr); ok {
				s.assigned[field.Sel.Name] = true
			}
		}
	}
	return true
}

// sets reports whether the server sets a property of a model. Of anonymous models it knows nothing.
func (s *source) sets(model, property string) bool {
	field, known := s.fields[model][property]
	return !known || s.copied[model] || s.literals[model+"."+field] || s.assigned[field]
}

// walk calls report with the pointer of each published property, and whether it is ever sent.
func (s *source) walk(at string, ours, published *openapi3.SchemaRef, report func(at string, sent bool)) {
	mine, theirs := propertiesOf(ours.Value), propertiesOf(published.Value)
	if len(mine) == 0 || isFree(ours.Value) {
		return // any property may be sent
	}
	model := strings.TrimPrefix(ours.Ref, schemaPrefix)
	for name, property := range theirs {
		at := at + "/" + name
		is := mine[name]
		sent := is != nil && s.sets(model, name)
		if report(at, sent); !sent {
			continue
		}
		if property.Value.Items != nil && is.Value.Items != nil {
			at, property, is = at+"/*", property.Value.Items, is.Value.Items
		}
		s.walk(at, is, property, report)
	}
}

func isFree(schema *openapi3.Schema) bool {
	return schema.AdditionalProperties.Schema != nil ||
		schema.AdditionalProperties.Has != nil && *schema.AdditionalProperties.Has
}

// propertiesOf returns the properties of all variants of a schema.
func propertiesOf(schema *openapi3.Schema) openapi3.Schemas {
	all := maps.Clone(schema.Properties)
	if all == nil {
		all = openapi3.Schemas{}
	}
	for _, part := range slices.Concat(schema.AllOf, schema.OneOf, schema.AnyOf) {
		maps.Copy(all, propertiesOf(part.Value))
	}
	return all
}
