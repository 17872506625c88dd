package tfcore

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
)

const fileName = "main.tf"

// declared is a resource or data source of the configuration.
type declared struct {
	address        string
	isData         bool
	typeName, name string
	body           *hclsyntax.Body
	rng            hcl.Range
	dependsOn      []string
	schema         *tfprotov6.Schema
}

// importing is an import block.
type importing struct {
	to string
	id hclsyntax.Expression
}

type config struct {
	source    []byte
	provider  *hclsyntax.Body
	resources []*declared // in order of dependencies
	imports   []importing
	// addresses of removed blocks with destroy = false
	forgotten []string
	variables map[string]cty.Value
}

// unsupportedError reports that a configuration needs the real Terraform.
type unsupportedError struct{ what string }

func (e unsupportedError) Error() string {
	return "tfcore: " + e.what + " is not supported; run this test with the terraform command"
}

// parse parses a configuration. It panics with an unsupportedError for unsupported parts, and returns diagnostics where
// Terraform does.
func parse(source string, schemas *tfprotov6.GetProviderSchemaResponse) (*config, Diagnostics) {
	file, diags := hclsyntax.ParseConfig([]byte(source), fileName, hcl.InitialPos)
	if diags.HasErrors() {
		return nil, ofHCL(diags, nil)
	}
	c := &config{source: []byte(source), variables: map[string]cty.Value{}}
	for _, block := range file.Body.(*hclsyntax.Body).Blocks {
		c.block(block, schemas)
	}
	c.sort()
	return c, nil
}

func (c *config) block(block *hclsyntax.Block, schemas *tfprotov6.GetProviderSchemaResponse) {
	switch block.Type {
	case "terraform":
	case "provider":
		c.provider = block.Body
	case "resource", "data":
		d := &declared{
			typeName: block.Labels[0],
			name:     block.Labels[1],
			body:     block.Body,
			rng:      block.DefRange(),
			isData:   block.Type == "data",
		}
		d.address, d.schema = d.typeName+"."+d.name, schemas.ResourceSchemas[d.typeName]
		if d.isData {
			d.address, d.schema = "data."+d.address, schemas.DataSourceSchemas[d.typeName]
		}
		if d.schema == nil {
			panic(unsupportedError{"the type " + d.typeName})
		}
		c.resources = append(c.resources, d)
	case "import":
		i := importing{to: traversal(block.Body.Attributes["to"].Expr)}
		if block.Body.Attributes["id"] == nil {
			panic(unsupportedError{"an import by identity"})
		}
		i.id = block.Body.Attributes["id"].Expr
		c.imports = append(c.imports, i)
	case "variable":
		fallback, sensitive := block.Body.Attributes["default"], block.Body.Attributes["sensitive"]
		if fallback == nil || sensitive != nil {
			panic(unsupportedError{"a variable without a default or a sensitive one"})
		}
		value, diags := fallback.Expr.Value(nil)
		if diags.HasErrors() {
			panic(unsupportedError{"the default of the variable " + block.Labels[0]})
		}
		c.variables[block.Labels[0]] = value
	case "removed":
		c.forgotten = append(c.forgotten, traversal(block.Body.Attributes["from"].Expr))
	default:
		panic(unsupportedError{"a block " + block.Type})
	}
}

func traversal(e hclsyntax.Expression) string {
	var names []string
	for _, variable := range e.Variables() {
		for _, step := range variable {
			switch step := step.(type) {
			case hcl.TraverseRoot:
				names = append(names, step.Name)
			case hcl.TraverseAttr:
				names = append(names, step.Name)
			}
		}
	}
	return strings.Join(names, ".")
}

// references returns the addresses that a resource refers to.
func (c *config) references(d *declared) (addresses []string) {
	expressions := variables(d.body)
	for _, i := range c.imports {
		if i.to == d.address {
			expressions = append(expressions, i.id.Variables()...)
		}
	}
	for _, t := range expressions {
		parts := []string{t.RootName()}
		if parts[0] == "var" {
			continue
		}
		for _, step := range t[1:] {
			if attr, ok := step.(hcl.TraverseAttr); ok {
				parts = append(parts, attr.Name)
			}
		}
		length := 2
		if parts[0] == "data" {
			length = 3
		}
		if len(parts) < length {
			panic(unsupportedError{"the reference " + strings.Join(parts, ".")})
		}
		addresses = append(addresses, strings.Join(parts[:length], "."))
	}
	return append(addresses, d.dependsOn...)
}

// variables returns the references in a body and its blocks.
func variables(body *hclsyntax.Body) (found []hcl.Traversal) {
	for _, a := range body.Attributes {
		found = append(found, a.Expr.Variables()...)
	}
	for _, block := range body.Blocks {
		found = append(found, variables(block.Body)...)
	}
	return found
}

// sort orders resources after their dependencies.
func (c *config) sort() {
	for _, d := range c.resources {
		if depends := d.body.Attributes["depends_on"]; depends != nil {
			for _, expr := range depends.Expr.(*hclsyntax.TupleConsExpr).Exprs {
				d.dependsOn = append(d.dependsOn, traversal(expr))
			}
			delete(d.body.Attributes, "depends_on")
		}
		for _, name := range []string{"count", "for_each", "provider"} {
			if d.body.Attributes[name] != nil {
				panic(unsupportedError{name})
			}
		}
		for _, block := range d.body.Blocks {
			if block.Type == "lifecycle" || block.Type == "dynamic" || block.Type == "provisioner" {
				panic(unsupportedError{block.Type})
			}
		}
	}
	var sorted []*declared
	seen := map[string]bool{}
	var visit func(d *declared)
	visit = func(d *declared) {
		if seen[d.address] {
			return
		}
		seen[d.address] = true
		for _, address := range c.references(d) {
			if at := c.find(address); at != nil {
				visit(at)
			} else {
				panic(unsupportedError{"the reference " + address})
			}
		}
		sorted = append(sorted, d)
	}
	for _, d := range c.resources {
		visit(d)
	}
	c.resources = sorted
}

func (c *config) find(address string) *declared {
	if i := slices.IndexFunc(c.resources, func(d *declared) bool { return d.address == address }); i >= 0 {
		return c.resources[i]
	}
	return nil
}

// values are the values that expressions refer to.
type values map[string]cty.Value // by address

func (v values) context() *hcl.EvalContext {
	types := map[string]map[string]map[string]cty.Value{"": {}, "data": {}}
	for address, value := range v {
		kind, rest := "", address
		if after, isVariable := strings.CutPrefix(address, "var."); isVariable {
			if types["var"] == nil {
				types["var"] = map[string]map[string]cty.Value{"": {}}
			}
			types["var"][""][after] = value
			continue
		}
		if after, isData := strings.CutPrefix(address, "data."); isData {
			kind, rest = "data", after
		}
		typeName, name, _ := strings.Cut(rest, ".")
		if types[kind][typeName] == nil {
			types[kind][typeName] = map[string]cty.Value{}
		}
		types[kind][typeName][name] = value
	}
	objects := func(kind string) map[string]cty.Value {
		all := map[string]cty.Value{}
		for typeName, named := range types[kind] {
			all[typeName] = cty.ObjectVal(named)
		}
		return all
	}
	variables := objects("")
	if len(types["var"]) > 0 {
		variables["var"] = cty.ObjectVal(types["var"][""])
	}
	variables["data"] = cty.ObjectVal(objects("data"))
	return &hcl.EvalContext{Variables: variables, Functions: map[string]function.Function{"one": one}}
}

// one is Terraform's function one, for collections that have an element.
var one = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}},
	Type: func(args []cty.Value) (cty.Type, error) {
		if t := args[0].Type(); t.IsListType() || t.IsSetType() {
			return t.ElementType(), nil
		}
		return cty.NilType, errors.New("only lists and sets are supported")
	},
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if n := args[0].LengthInt(); n != 1 {
			return cty.NilVal, fmt.Errorf("must be a collection with exactly one element, and it has %d", n)
		}
		return args[0].AsValueSlice()[0], nil
	},
})

// decode evaluates the body of a block.
func decode(body *hclsyntax.Body, b *tfprotov6.SchemaBlock, ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	var diags hcl.Diagnostics
	attributes := map[string]cty.Value{}
	known := map[string]bool{}
	for _, a := range b.Attributes {
		known[a.Name] = true
		attributes[a.Name] = cty.NullVal(typeOf(a.ValueType()))
		at := body.Attributes[a.Name]
		if at == nil {
			if a.Required {
				diags = append(diags, problem(body.MissingItemRange(), "Missing required argument",
					fmt.Sprintf("The argument %q is required, but no definition was found.", a.Name)))
			}
			continue
		}
		if !a.Required && !a.Optional {
			diags = append(
				diags,
				problem(at.SrcRange, "Invalid Configuration for Read-Only Attribute", "Cannot set value for this "+
					"attribute as the provider has marked it as read-only."),
			)
			continue
		}
		value, more := at.Expr.Value(ctx)
		diags = append(diags, more...)
		converted, err := convert.Convert(value, configType(a))
		if err != nil {
			diags = append(
				diags,
				problem(
					at.SrcRange,
					"Incorrect attribute value type",
					fmt.Sprintf("Inappropriate value for attribute %q: %v.", a.Name, err),
				),
			)
			continue
		}
		attributes[a.Name] = converted
	}
	blocks := map[string]bool{}
	for _, nested := range b.BlockTypes {
		blocks[nested.TypeName] = true
		if nested.Nesting != tfprotov6.SchemaNestedBlockNestingModeSingle {
			panic(unsupportedError{"the nesting of the block " + nested.TypeName})
		}
		attributes[nested.TypeName] = cty.NullVal(typeOf(nested.ValueType()))
		for _, block := range body.Blocks {
			if block.Type == nested.TypeName {
				value, more := decode(block.Body, nested.Block, ctx)
				diags = append(diags, more...)
				attributes[nested.TypeName] = value
			}
		}
	}
	for name, at := range body.Attributes {
		if !known[name] {
			diags = append(
				diags,
				problem(
					at.NameRange,
					"Unsupported argument",
					fmt.Sprintf("An argument named %q is not expected here.", name),
				),
			)
		}
	}
	for _, block := range body.Blocks {
		if !blocks[block.Type] {
			diags = append(
				diags,
				problem(
					block.TypeRange,
					"Unsupported block type",
					fmt.Sprintf("Blocks of type %q are not expected here.", block.Type),
				),
			)
		}
	}
	return cty.ObjectVal(attributes), diags
}

func problem(at hcl.Range, summary, detail string) *hcl.Diagnostic {
	return &hcl.Diagnostic{
		Severity: hcl.DiagError,
		Summary:  summary,
		Detail:   detail,
		Subject:  &at,
	}
}
