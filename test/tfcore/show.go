package tfcore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// State returns the state like terraform show -json.
func (c *Core) State() *tfjson.State {
	schemas, err := c.factory().GetProviderSchema(c.t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	c.must(err)
	module := &tfjson.StateModule{}
	for _, address := range slices.Sorted(maps.Keys(c.state)) {
		o := c.state[address]
		r := &tfjson.StateResource{
			Address: address,
			Type:    o.typeName,
			Name:    nameOf(address),
			Mode:    tfjson.ManagedResourceMode,
			Tainted: o.tainted,
		}
		schema := schemas.ResourceSchemas[o.typeName]
		if o.isData {
			r.Mode, schema = tfjson.DataResourceMode, schemas.DataSourceSchemas[o.typeName]
		}
		r.AttributeValues, _ = plain(o.value).(map[string]any)
		r.SensitiveValues, err = json.Marshal(sensitive(schema.Block, o.value))
		c.must(err)
		module.Resources = append(module.Resources, r)
	}
	return &tfjson.State{FormatVersion: "1.0", Values: &tfjson.StateValues{RootModule: module}}
}

// Show returns the attributes of a resource in the state as JSON values, or nil.
func (c *Core) Show(address string) map[string]any {
	o, exists := c.state[address]
	if !exists {
		return nil
	}
	attributes, _ := plain(o.value).(map[string]any)
	return attributes
}

// IsTainted reports whether the next apply replaces a resource because its creation failed.
func (c *Core) IsTainted(address string) bool { return c.state[address].tainted }

// Untaint runs terraform untaint.
func (c *Core) Untaint(address string) {
	o := c.state[address]
	o.tainted = false
	c.state[address] = o
}

// Forget runs terraform state rm.
func (c *Core) Forget(address string) { delete(c.state, address) }

func nameOf(address string) string { return address[strings.LastIndex(address, ".")+1:] }

// plain converts a value like encoding/json, without unknown values.
func plain(v cty.Value) any {
	switch {
	case v.IsNull() || !v.IsKnown():
		return nil
	case v.Type().IsObjectType() || v.Type().IsMapType():
		all := map[string]any{}
		for name, value := range v.AsValueMap() {
			if value.IsKnown() {
				all[name] = plain(value)
			}
		}
		return all
	case v.Type().IsListType() || v.Type().IsSetType() || v.Type().IsTupleType():
		all := []any{}
		for _, value := range v.AsValueSlice() {
			all = append(all, plain(value))
		}
		return all
	}
	raw, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		panic(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var out any
	if err := decoder.Decode(&out); err != nil {
		panic(err)
	}
	return out
}

// unknown returns true for unknown values, in the shape of the value.
func unknown(v cty.Value) any {
	switch {
	case !v.IsKnown():
		return true
	case v.IsNull() || v.IsWhollyKnown():
		return nil
	case v.Type().IsObjectType() || v.Type().IsMapType():
		all := map[string]any{}
		for name, value := range v.AsValueMap() {
			if is := unknown(value); is != nil {
				all[name] = is
			}
		}
		return all
	default:
		all := []any{}
		for _, value := range v.AsValueSlice() {
			all = append(all, unknown(value))
		}
		return all
	}
}

// sensitive returns true for sensitive attributes, in the shape of the value.
func sensitive(b *tfprotov6.SchemaBlock, v cty.Value) map[string]any {
	all := sensitiveAttributes(b.Attributes, v)
	for _, nested := range b.BlockTypes {
		if value := v.GetAttr(nested.TypeName); value.IsKnown() && !value.IsNull() && value.Type().IsObjectType() {
			all[nested.TypeName] = sensitive(nested.Block, value)
		}
	}
	return all
}

func sensitiveAttributes(attributes []*tfprotov6.SchemaAttribute, v cty.Value) map[string]any {
	all := map[string]any{}
	for _, a := range attributes {
		value := v.GetAttr(a.Name)
		switch {
		case a.Sensitive:
			all[a.Name] = true
		case a.NestedType == nil || value.IsNull() || !value.IsKnown():
		case value.Type().IsObjectType():
			all[a.Name] = sensitiveAttributes(a.NestedType.Attributes, value)
		case value.Type().IsMapType():
			elements := map[string]any{}
			for key, element := range value.AsValueMap() {
				elements[key] = sensitiveAttributes(a.NestedType.Attributes, element)
			}
			all[a.Name] = elements
		default:
			elements := []any{}
			for _, element := range value.AsValueSlice() {
				elements = append(elements, sensitiveAttributes(a.NestedType.Attributes, element))
			}
			all[a.Name] = elements
		}
	}
	return all
}

// JSON returns the plan like terraform show -json.
func (p *Plan) JSON() *tfjson.Plan {
	out := &tfjson.Plan{FormatVersion: "1.2", TerraformVersion: "1.14.0"}
	for _, c := range p.changes {
		rc := &tfjson.ResourceChange{
			Address: c.address,
			Name:    nameOf(c.address),
			Mode:    tfjson.ManagedResourceMode,
			Change: &tfjson.Change{
				Actions:      c.actions(),
				Before:       plain(c.before),
				After:        plain(c.after),
				AfterUnknown: unknown(c.after),
			},
		}
		rc.Type = strings.Split(strings.TrimPrefix(c.address, "data."), ".")[0]
		if strings.HasPrefix(c.address, "data.") {
			rc.Mode = tfjson.DataResourceMode
		}
		if c.importing != "" {
			rc.Change.Importing = &tfjson.Importing{ID: c.importing}
		}
		out.ResourceChanges = append(out.ResourceChanges, rc)
	}
	return out
}

func (c *change) actions() tfjson.Actions {
	switch c.action {
	case Replace:
		return tfjson.Actions{tfjson.ActionDelete, tfjson.ActionCreate}
	default:
		return tfjson.Actions{tfjson.Action(c.action)}
	}
}

// String lists the changes of the plan, one per line.
func (p *Plan) String() string {
	var out strings.Builder
	for _, c := range p.changes {
		if c.action != NoOp {
			fmt.Fprintf(&out, "%s %s\n", c.action, c.address)
		}
	}
	return out.String()
}

// Summary returns the plan as the terraform command summarizes it.
func (p *Plan) Summary() string {
	if !p.hasChanges() {
		return "No changes.\n\n"
	}
	words := map[Action]string{
		Create:  "will be created",
		Read:    "will be read during apply",
		Update:  "will be updated in-place",
		Delete:  "will be destroyed",
		Replace: "must be replaced",
		Forget:  "will no longer be managed by Terraform",
	}
	var out strings.Builder
	var imported, added, changed, destroyed int
	for _, c := range p.changes {
		if c.importing != "" {
			imported++
		}
		switch c.action {
		case Create:
			added++
		case Update:
			changed++
		case Delete:
			destroyed++
		case Replace:
			added++
			destroyed++
		}
		if c.action != NoOp {
			fmt.Fprintf(&out, "# %s %s\n", c.address, words[c.action])
			for _, attribute := range c.replacedFor {
				fmt.Fprintf(&out, "  %s # forces replacement\n", attribute)
			}
		}
	}
	out.WriteString("Plan: ")
	if imported > 0 {
		fmt.Fprintf(&out, "%d to import, ", imported)
	}
	fmt.Fprintf(&out, "%d to add, %d to change, %d to destroy.\n\n", added, changed, destroyed)
	return out.String()
}

// Legacy returns the state in the form of the testing library's Check functions.
func (c *Core) Legacy() *terraform.State {
	module := &terraform.ModuleState{Path: []string{"root"}, Resources: map[string]*terraform.ResourceState{}}
	for address, o := range c.state {
		module.Resources[address] = &terraform.ResourceState{
			Type:     o.typeName,
			Provider: "registry.terraform.io/hashicorp/" + c.name,
			Primary:  o.instance(),
		}
	}
	return &terraform.State{Version: 3, Modules: []*terraform.ModuleState{module}}
}

func (o object) instance() *terraform.InstanceState {
	flat := map[string]string{}
	for name, value := range o.value.AsValueMap() {
		flatten(flat, name, plain(value))
	}
	return &terraform.InstanceState{ID: flat["id"], Attributes: flat, Tainted: o.tainted}
}

func flatten(flat map[string]string, name string, value any) {
	switch value := value.(type) {
	case nil:
	case bool:
		flat[name] = strconv.FormatBool(value)
	case []any:
		flat[name+".#"] = strconv.Itoa(len(value))
		for i, element := range value {
			flatten(flat, name+"."+strconv.Itoa(i), element)
		}
	case map[string]any:
		flat[name+".%"] = strconv.Itoa(len(value))
		for key, element := range value {
			flatten(flat, name+"."+key, element)
		}
	default:
		flat[name] = fmt.Sprint(value)
	}
}
