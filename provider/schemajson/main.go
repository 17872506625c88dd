// Command schemajson prints the provider's schemas like `terraform providers schema -json`, without Terraform. An old
// Terraform would leave out the kinds of schemas that it does not know, and tfplugindocs would not document them.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/deviceaccess/terraform-provider-deviceaccess/provider"
)

// name is the short name of the provider: tfplugindocs looks schemas up by it.
const name = "deviceaccess"

func main() {
	schemas, err := providerSchemas(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	if err := out.Encode(object{"format_version": "1.0", "provider_schemas": object{name: schemas}}); err != nil {
		log.Fatal(err)
	}
}

type object map[string]any

// with adds a value unless it is empty.
func (o object) with(key string, value any, says bool) object {
	if says {
		o[key] = value
	}
	return o
}

func providerSchemas(ctx context.Context) (object, error) {
	server := providerserver.NewProtocol6(provider.New("docs")())()
	all, err := server.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return nil, fmt.Errorf("read the schemas: %w", err)
	}
	identities, err := server.GetResourceIdentitySchemas(ctx, &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err != nil {
		return nil, fmt.Errorf("read the identities: %w", err)
	}
	for _, d := range append(all.Diagnostics, identities.Diagnostics...) {
		return nil, errors.New(d.Summary + ": " + d.Detail)
	}
	return object{
		"provider":                   schema(all.Provider),
		"resource_schemas":           each(all.ResourceSchemas, schema),
		"data_source_schemas":        each(all.DataSourceSchemas, schema),
		"ephemeral_resource_schemas": each(all.EphemeralResourceSchemas, schema),
		"list_resource_schemas":      each(all.ListResourceSchemas, schema),
		"action_schemas":             each(all.ActionSchemas, action),
		"resource_identity_schemas":  each(identities.IdentitySchemas, identity),
		"functions":                  each(all.Functions, function),
	}, nil
}

func each[T any](schemas map[string]T, encode func(T) object) object {
	encoded := object{}
	for typeName, s := range schemas {
		encoded[typeName] = encode(s)
	}
	return encoded
}

func schema(s *tfprotov6.Schema) object { return object{"version": s.Version, "block": block(s.Block)} }

// action leaves out the version: actions have no state.
func action(s *tfprotov6.ActionSchema) object { return object{"block": block(s.Schema.Block)} }

func block(b *tfprotov6.SchemaBlock) object {
	blocks := object{}
	for _, nested := range b.BlockTypes {
		blocks[nested.TypeName] = object{"nesting_mode": blockNesting[nested.Nesting], "block": block(nested.Block)}.
			with("min_items", nested.MinItems, nested.MinItems > 0).
			with("max_items", nested.MaxItems, nested.MaxItems > 0)
	}
	return object{"description_kind": kind(b.DescriptionKind)}.
		with("description", b.Description, b.Description != "").
		with("deprecated", true, b.Deprecated).
		with("attributes", attributes(b.Attributes), len(b.Attributes) > 0).
		with("block_types", blocks, len(blocks) > 0)
}

func attributes(all []*tfprotov6.SchemaAttribute) object {
	encoded := object{}
	for _, a := range all {
		o := object{"description_kind": kind(a.DescriptionKind)}.
			with("description", a.Description, a.Description != "").
			with("required", true, a.Required).
			with("optional", true, a.Optional).
			with("computed", true, a.Computed).
			with("sensitive", true, a.Sensitive).
			with("deprecated", true, a.Deprecated).
			with("write_only", true, a.WriteOnly)
		if a.NestedType != nil {
			o["nested_type"] = object{
				"attributes":   attributes(a.NestedType.Attributes),
				"nesting_mode": nesting[a.NestedType.Nesting],
			}
		} else {
			o["type"] = wireType(a.Type)
		}
		encoded[a.Name] = o
	}
	return encoded
}

func identity(s *tfprotov6.ResourceIdentitySchema) object {
	encoded := object{}
	for _, a := range s.IdentityAttributes {
		encoded[a.Name] = object{"type": wireType(a.Type)}.
			with("description", a.Description, a.Description != "").
			with("required_for_import", true, a.RequiredForImport).
			with("optional_for_import", true, a.OptionalForImport)
	}
	return object{"version": s.Version, "attributes": encoded}
}

func function(f *tfprotov6.Function) object {
	parameters := []object{}
	for _, p := range f.Parameters {
		parameters = append(parameters, object{"name": p.Name, "type": wireType(p.Type)}.
			with("description", p.Description, p.Description != "").
			with("is_nullable", true, p.AllowNullValue))
	}
	return object{"parameters": parameters, "return_type": wireType(f.Return.Type)}.
		with("summary", f.Summary, f.Summary != "").
		with("description", f.Description, f.Description != "").
		with("deprecation_message", f.DeprecationMessage, f.DeprecationMessage != "")
}

func wireType(t tftypes.Type) json.RawMessage {
	encoded, err := t.MarshalJSON() //nolint:staticcheck // deprecated, but the only writer of this format
	if err != nil {
		log.Fatalf("encode the type %s: %v", t, err)
	}
	return encoded
}

func kind(k tfprotov6.StringKind) string {
	if k == tfprotov6.StringKindMarkdown {
		return "markdown"
	}
	return "plain"
}

var (
	nesting = map[tfprotov6.SchemaObjectNestingMode]string{
		tfprotov6.SchemaObjectNestingModeSingle: "single", tfprotov6.SchemaObjectNestingModeList: "list",
		tfprotov6.SchemaObjectNestingModeSet: "set", tfprotov6.SchemaObjectNestingModeMap: "map",
	}
	blockNesting = map[tfprotov6.SchemaNestedBlockNestingMode]string{
		tfprotov6.SchemaNestedBlockNestingModeSingle: "single", tfprotov6.SchemaNestedBlockNestingModeList: "list",
		tfprotov6.SchemaNestedBlockNestingModeSet: "set", tfprotov6.SchemaNestedBlockNestingModeMap: "map",
		tfprotov6.SchemaNestedBlockNestingModeGroup: "group",
	}
)
