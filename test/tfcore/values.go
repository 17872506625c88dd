package tfcore

import (
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"github.com/zclconf/go-cty/cty/msgpack"
)

// typeOf converts a type of the plugin protocol.
func typeOf(t tftypes.Type) cty.Type {
	raw, err := t.MarshalJSON() //nolint:staticcheck // the one encoding that both libraries share
	if err != nil {
		panic(err)
	}
	converted, err := ctyjson.UnmarshalType(raw)
	if err != nil {
		panic(err)
	}
	return converted
}

// configType returns the type of an attribute in configuration, where attributes of nested objects are optional.
func configType(a *tfprotov6.SchemaAttribute) cty.Type {
	if a.NestedType == nil {
		return typeOf(a.Type)
	}
	types, optional := map[string]cty.Type{}, []string(nil)
	for _, nested := range a.NestedType.Attributes {
		types[nested.Name] = configType(nested)
		if !nested.Required {
			optional = append(optional, nested.Name)
		}
	}
	object := cty.ObjectWithOptionalAttrs(types, optional)
	switch a.NestedType.Nesting {
	case tfprotov6.SchemaObjectNestingModeList:
		return cty.List(object)
	case tfprotov6.SchemaObjectNestingModeSet:
		return cty.Set(object)
	case tfprotov6.SchemaObjectNestingModeMap:
		return cty.Map(object)
	default:
		return object
	}
}

func pack(v cty.Value, t cty.Type) *tfprotov6.DynamicValue {
	raw, err := msgpack.Marshal(v, t)
	if err != nil {
		panic(err)
	}
	return &tfprotov6.DynamicValue{MsgPack: raw}
}

func unpack(v *tfprotov6.DynamicValue, t cty.Type) cty.Value {
	if v == nil || (len(v.MsgPack) == 0 && len(v.JSON) == 0) {
		return cty.NullVal(t)
	}
	if len(v.MsgPack) == 0 {
		unpacked, err := ctyjson.Unmarshal(v.JSON, t)
		if err != nil {
			panic(err)
		}
		return unpacked
	}
	unpacked, err := msgpack.Unmarshal(v.MsgPack, t)
	if err != nil {
		panic(err)
	}
	return unpacked
}

// proposedNew returns the state that Terraform proposes to the provider: the configuration, with the prior value of
// computed attributes that are not configured. It follows Terraform's objchange.ProposedNew.
func proposedNew(b *tfprotov6.SchemaBlock, prior, config cty.Value) cty.Value {
	if config.IsNull() || !config.IsKnown() {
		return config
	}
	values := proposedAttributes(b.Attributes, prior, config)
	for _, nested := range b.BlockTypes {
		p, c := attribute(prior, nested.TypeName, config), config.GetAttr(nested.TypeName)
		if nested.Nesting == tfprotov6.SchemaNestedBlockNestingModeSingle && !c.IsNull() && c.IsKnown() {
			c = proposedNew(nested.Block, p, c)
		}
		values[nested.TypeName] = c
	}
	return cty.ObjectVal(values)
}

func proposedAttributes(attributes []*tfprotov6.SchemaAttribute, prior, config cty.Value) map[string]cty.Value {
	values := map[string]cty.Value{}
	for _, a := range attributes {
		p, c := attribute(prior, a.Name, config), config.GetAttr(a.Name)
		switch {
		case a.WriteOnly:
			values[a.Name] = cty.NullVal(c.Type())
		case a.Computed && c.IsNull():
			values[a.Name] = p
		case a.NestedType != nil && c.IsKnown() && !c.IsNull():
			values[a.Name] = proposedNested(a.NestedType, p, c)
		default:
			values[a.Name] = c
		}
	}
	return values
}

// attribute returns an attribute of an object that may be null; like has the same type and is not null.
func attribute(object cty.Value, name string, like cty.Value) cty.Value {
	if object.IsNull() || !object.IsKnown() {
		return cty.NullVal(like.GetAttr(name).Type())
	}
	return object.GetAttr(name)
}

func proposedNested(o *tfprotov6.SchemaObject, prior, config cty.Value) cty.Value {
	one := func(p, c cty.Value) cty.Value {
		if c.IsNull() || !c.IsKnown() {
			return c
		}
		return cty.ObjectVal(proposedAttributes(o.Attributes, p, c))
	}
	if o.Nesting == tfprotov6.SchemaObjectNestingModeSingle {
		return one(prior, config)
	}
	if config.LengthInt() == 0 {
		return config
	}
	none := cty.NullVal(config.Type().ElementType())
	known := !prior.IsNull() && prior.IsKnown()
	switch o.Nesting {
	case tfprotov6.SchemaObjectNestingModeMap:
		values := map[string]cty.Value{}
		for key, c := range config.AsValueMap() {
			p := none
			if known && prior.HasIndex(cty.StringVal(key)).True() {
				p = prior.Index(cty.StringVal(key))
			}
			values[key] = one(p, c)
		}
		return cty.MapVal(values)
	case tfprotov6.SchemaObjectNestingModeList:
		var values []cty.Value
		for i, c := range config.AsValueSlice() {
			p := none
			if known && i < prior.LengthInt() {
				p = prior.Index(cty.NumberIntVal(int64(i)))
			}
			values = append(values, one(p, c))
		}
		return cty.ListVal(values)
	default:
		var values []cty.Value
		for _, c := range config.AsValueSlice() {
			values = append(values, one(matching(o, prior, c, none), c))
		}
		return cty.SetVal(values)
	}
}

// matching returns the prior element of a set that differs from a configured one only in computed attributes.
func matching(o *tfprotov6.SchemaObject, prior, config, none cty.Value) cty.Value {
	if prior.IsNull() || !prior.IsKnown() {
		return none
	}
	for _, p := range prior.AsValueSlice() {
		same := !slices.ContainsFunc(o.Attributes, func(a *tfprotov6.SchemaAttribute) bool {
			c := config.GetAttr(a.Name)
			return (!a.Computed || !c.IsNull()) && !c.RawEquals(p.GetAttr(a.Name))
		})
		if same {
			return p
		}
	}
	return none
}

// incompatible returns where an actual value differs from a known part of the planned one, or "". Terraform calls that
// a bug of the provider.
func incompatible(path string, planned, actual cty.Value) string {
	if !planned.IsKnown() {
		return ""
	}
	if planned.IsNull() || actual.IsNull() || !actual.IsKnown() {
		if planned.IsNull() && actual.IsNull() && actual.IsKnown() {
			return ""
		}
		return path
	}
	switch t := planned.Type(); {
	case t.IsObjectType():
		for name := range t.AttributeTypes() {
			if at := incompatible(path+"."+name, planned.GetAttr(name), actual.GetAttr(name)); at != "" {
				return at
			}
		}
		return ""
	case t.IsSetType():
		if planned.IsWhollyKnown() && !planned.RawEquals(actual) {
			return path
		}
		return ""
	case t.IsListType(), t.IsMapType():
		if planned.LengthInt() != actual.LengthInt() {
			return path
		}
		for it := planned.ElementIterator(); it.Next(); {
			key, value := it.Element()
			if !actual.HasIndex(key).True() {
				return path
			}
			if at := incompatible(fmt.Sprintf("%s[%s]", path, keyText(key)), value, actual.Index(key)); at != "" {
				return at
			}
		}
		return ""
	case !planned.RawEquals(actual):
		return path
	}
	return ""
}

// invalidPlan returns where a planned value is neither the configured value nor a semantically equal prior value, or
// "".
func invalidPlan(attributes []*tfprotov6.SchemaAttribute, prior, config, planned cty.Value) string {
	for _, a := range attributes {
		c, p := config.GetAttr(a.Name), planned.GetAttr(a.Name)
		switch {
		case a.WriteOnly && !p.IsNull():
			return a.Name
		case a.WriteOnly, a.NestedType != nil, a.Computed && c.IsNull(), !c.IsKnown() && !p.IsKnown():
		case c.RawEquals(p):
		case c.IsNull() || p.IsNull() || !attribute(prior, a.Name, config).RawEquals(p):
			return a.Name
		}
	}
	return ""
}

func keyText(key cty.Value) string {
	if key.Type() == cty.String {
		return key.AsString()
	}
	return key.AsBigFloat().String()
}

// at follows a path of the plugin protocol. It returns an untyped null if there is nothing.
func at(v cty.Value, path *tftypes.AttributePath) cty.Value {
	for _, step := range path.Steps() {
		if v.IsNull() || !v.IsKnown() {
			return v
		}
		switch step := step.(type) {
		case tftypes.AttributeName:
			v = v.GetAttr(string(step))
		case tftypes.ElementKeyString:
			if !v.HasIndex(cty.StringVal(string(step))).True() {
				return cty.NullVal(cty.DynamicPseudoType)
			}
			v = v.Index(cty.StringVal(string(step)))
		case tftypes.ElementKeyInt:
			if !v.HasIndex(cty.NumberIntVal(int64(step))).True() {
				return cty.NullVal(cty.DynamicPseudoType)
			}
			v = v.Index(cty.NumberIntVal(int64(step)))
		default:
			return v
		}
	}
	return v
}
