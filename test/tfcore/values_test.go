package tfcore

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
)

var block = &tfprotov6.SchemaBlock{
	Attributes: []*tfprotov6.SchemaAttribute{
		{Name: "name", Type: tftypes.String, Optional: true},
		{
			Name:     "pin",
			Type:     tftypes.String,
			Optional: true,
			Computed: true,
		},
		{Name: "id", Type: tftypes.String, Computed: true},
		{
			Name:      "pin_wo",
			Type:      tftypes.String,
			Optional:  true,
			WriteOnly: true,
		},
	},
	BlockTypes: []*tfprotov6.SchemaNestedBlock{{
		TypeName: "timeouts", Nesting: tfprotov6.SchemaNestedBlockNestingModeSingle,
		Block: &tfprotov6.SchemaBlock{
			Attributes: []*tfprotov6.SchemaAttribute{{Name: "create", Type: tftypes.String, Optional: true}},
		},
	}},
}

// instance returns a value of the block; "" is null and "?" is unknown.
func instance(name, pin, id, writeOnly string) cty.Value {
	text := func(s string) cty.Value {
		switch s {
		case "":
			return cty.NullVal(cty.String)
		case "?":
			return cty.UnknownVal(cty.String)
		}
		return cty.StringVal(s)
	}
	return cty.ObjectVal(map[string]cty.Value{
		"name": text(name), "pin": text(pin), "id": text(id), "pin_wo": text(writeOnly),
		"timeouts": cty.NullVal(cty.Object(map[string]cty.Type{"create": cty.String})),
	})
}

func TestProposedNew(t *testing.T) {
	t.Parallel()
	none := cty.NullVal(instance("", "", "", "").Type())
	for name, c := range map[string]struct{ prior, config, want cty.Value }{
		"a creation leaves computed attributes null": {none, instance("a", "", "", ""), instance("a", "", "", "")},
		"computed attributes keep the prior value": {
			instance("a", "1234", "x", ""),
			instance("b", "", "", ""),
			instance("b", "1234", "x", ""),
		},
		"configuration comes before the prior value": {
			instance("a", "1234", "x", ""),
			instance("a", "5678", "", ""),
			instance("a", "5678", "x", ""),
		},
		"optional attributes can be removed": {
			instance("a", "1234", "x", ""),
			instance("", "", "", ""),
			instance("", "1234", "x", ""),
		},
		"write-only attributes are never proposed": {none, instance("a", "", "", "9999"), instance("a", "", "", "")},
		"unknown configuration stays unknown": {
			instance("a", "1234", "x", ""),
			instance("?", "", "", ""),
			instance("?", "1234", "x", ""),
		},
	} {
		if got := proposedNew(block, c.prior, c.config); !got.RawEquals(c.want) {
			t.Errorf("%s: %#v", name, got)
		}
	}
}

func TestIncompatible(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		planned, actual cty.Value
		want            string
	}{
		"the same":                 {instance("a", "1", "x", ""), instance("a", "1", "x", ""), ""},
		"an unknown that is known": {instance("a", "?", "?", ""), instance("a", "1", "x", ""), ""},
		"another value":            {instance("a", "1", "x", ""), instance("a", "2", "x", ""), ".pin"},
		"a null that has a value":  {instance("a", "", "x", ""), instance("a", "2", "x", ""), ".pin"},
		"another element": {
			cty.ListVal([]cty.Value{cty.True}),
			cty.ListVal([]cty.Value{cty.False}),
			"list[0]",
		},
		"a missing element": {cty.ListVal([]cty.Value{cty.True}), cty.ListValEmpty(cty.Bool), "list"},
	} {
		path := ""
		if c.planned.Type().IsListType() {
			path = "list"
		}
		if got := incompatible(path, c.planned, c.actual); got != c.want {
			t.Errorf("%s: differs at %q, want %q", name, got, c.want)
		}
	}
}

func TestInvalidPlan(t *testing.T) {
	t.Parallel()
	prior, config := instance("a", "1", "x", ""), instance("b", "", "", "9")
	for name, c := range map[string]struct {
		planned cty.Value
		want    string
	}{
		"as configured":              {instance("b", "1", "x", ""), ""},
		"the prior value":            {instance("a", "1", "x", ""), ""},
		"removed, and still planned": {instance("", "1", "x", ""), "name"},
		"neither":                    {instance("c", "1", "x", ""), "name"},
		"a write-only value is kept": {instance("b", "1", "x", "9"), "pin_wo"},
	} {
		if got := invalidPlan(block.Attributes, prior, config, c.planned); got != c.want {
			t.Errorf("%s: invalid at %q, want %q", name, got, c.want)
		}
	}
}
