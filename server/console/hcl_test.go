package console

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/deviceaccess/terraform-provider-deviceaccess/provider"
)

func TestHCLLabel(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Gardener":              "gardener",
		"Ana Gómez, June 2030":  "ana_g_mez_june_2030",
		"12 Main Street":        "code_12_main_street",
		"  --  ":                "code",
		"清洁工":                   "code",
		`"} resource "x" "y" {`: "resource_x_y",
	} {
		if got := hclLabel(name); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}

func TestHCLLabels_AreUnique(t *testing.T) {
	t.Parallel()
	codes := make([]codeView, 4)
	for i := range codes {
		codes[i] = codeView{id: uuid.MustParse("0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11"), name: "Guest"}
	}
	labels := hclLabels(codes)
	slices.Sort(labels)
	if len(slices.Compact(labels)) != len(codes) {
		t.Errorf("labels %q", labels)
	}
}

// Each resource parses, keeps the values of its code, and uses arguments of the provider only.
func TestHCLResource(t *testing.T) {
	t.Parallel()
	schemas, err := provider.NewServer("test")().GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	schema := schemas.ResourceSchemas["deviceaccess_access_code"]
	starts, ends := time.Date(2030, 6, 7, 15, 0, 0, 0, time.UTC), time.Date(2030, 6, 9, 11, 0, 0, 500, time.UTC)
	for _, c := range []struct {
		name      string
		code      codeView
		vendorPIN bool
		has       []string // arguments besides device_id and name
	}{
		{"always", codeView{kind: kindAlways, managed: true}, false, []string{"code"}},
		{"chosen by the vendor", codeView{kind: kindAlways, managed: true}, true, nil},
		{"unmanaged", codeView{kind: kindAlways}, false, nil},
		{
			"from–to",
			codeView{kind: kindTimed, managed: true, starts: &starts, ends: &ends, zone: "Europe/Berlin"},
			false,
			[]string{"code", "starts_at", "ends_at"},
		},
		{"offline", codeView{kind: kindOffline, managed: true, starts: &starts, ends: &ends}, false, []string{"starts_at", "ends_at", "offline"}},
		{"once", codeView{kind: kindOnce, managed: true, starts: &starts, ends: &ends}, false, []string{"starts_at", "ends_at", "offline"}},
		{"shared", codeView{kind: kindAlways, managed: true, commonKey: "house"}, false, []string{"common_code_key"}},
		{"changes stay", codeView{kind: kindAlways, externalAllowed: true}, false, []string{"is_external_modification_allowed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, name := range []string{
				"Gardener", `Ana "Gómez" ${var.x} %{if} $${y} \ 清`, "line\nbreak\ttab\u0007", "", "$", "%",
			} {
				c.code.name, c.code.id, c.code.device = name, uuid.New(), uuid.New()
				text := hclResource(c.code, "x", c.vendorPIN) + hclImport(c.code, "x")
				blocks := parse(t, text)
				resource := blocks["resource"]
				var got []string
				for argument := range resource.Body.Attributes {
					i := slices.IndexFunc(schema.Block.Attributes, func(a *tfprotov6.SchemaAttribute) bool {
						return a.Name == argument && (a.Optional || a.Required)
					})
					if i < 0 {
						t.Errorf("the provider has no argument %s", argument)
					}
					if argument != "device_id" && argument != "name" {
						got = append(got, argument)
					}
				}
				slices.Sort(got)
				slices.Sort(c.has)
				if !slices.Equal(got, c.has) {
					t.Errorf("arguments %v, want %v", got, c.has)
				}
				if got := value(t, resource, "name"); got != name {
					t.Errorf("the name is %q, want %q", got, name)
				}
				if c.code.ends != nil {
					at, err := time.Parse(time.RFC3339, value(t, resource, "ends_at"))
					if err != nil || !at.Equal(ends) {
						t.Errorf("the end is %v, %v", at, err)
					}
				}
				if got := value(t, blocks["import"], "id"); got != c.code.device.String()+"/"+c.code.id.String() {
					t.Errorf("imports %q", got)
				}
				if _, has := blocks["variable"]; has != slices.Contains(c.has, "code") {
					t.Errorf("a variable for the PIN: %t", has)
				}
			}
		})
	}
}

// parse returns the blocks of a configuration by type.
func parse(t *testing.T, text string) map[string]*hclsyntax.Block {
	t.Helper()
	file, diags := hclsyntax.ParseConfig([]byte(text), "main.tf", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatalf("%v:\n%s", diags, text)
	}
	blocks := map[string]*hclsyntax.Block{}
	for _, b := range file.Body.(*hclsyntax.Body).Blocks {
		if blocks[b.Type] != nil {
			t.Fatalf("two blocks %s:\n%s", b.Type, text)
		}
		blocks[b.Type] = b
	}
	return blocks
}

// value returns the text of an argument.
func value(t *testing.T, b *hclsyntax.Block, name string) string {
	t.Helper()
	v, diags := b.Body.Attributes[name].Expr.Value(nil)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return v.AsString()
}

// hclAdoption leaves a blank line between blocks, as terraform fmt does.
func TestHCLAdoption(t *testing.T) {
	t.Parallel()
	text := hclAdoption([]codeView{{name: "A", kind: kindAlways}, {name: "A", kind: kindAlways}})
	if n := strings.Count(text, "}\n\n"); n != 3 || strings.Contains(text, "variable") {
		t.Errorf("%d blank lines:\n%s", n, text)
	}
	if _, diags := hclsyntax.ParseConfig([]byte(text), "main.tf", hcl.InitialPos); diags.HasErrors() {
		t.Errorf("%v:\n%s", diags, text)
	}
}
