package provider

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// toBeDone is what a journey has to do with each type of a kind, as the log of the framework names it.
var toBeDone = map[string][]string{
	"Resource":          {"ImportState", "Read", "Create", "Update", "Delete"},
	"DataSource":        {"Read"},
	"EphemeralResource": {"Open"},
}

var (
	doing   = regexp.MustCompile(`Calling provider defined (Resource|DataSource|EphemeralResource) (\w+)\b`)
	ofAType = regexp.MustCompile(`\btf_(?:resource|data_source|ephemeral_resource)_type=(\w+)`)
)

// undone is what a log at TRACE does not say was done, of all that there is to do with what a provider has.
func undone(schemas *tfprotov6.GetProviderSchemaResponse, log string, lists map[string]string) (missing []string) {
	done := map[string]bool{}
	for line := range strings.Lines(log) {
		what, of := doing.FindStringSubmatch(line), ofAType.FindStringSubmatch(line)
		if what != nil && of != nil {
			done[what[1]+" "+of[1]+" "+what[2]] = true
		}
	}
	for kind, types := range map[string]map[string]*tfprotov6.Schema{
		"Resource": schemas.ResourceSchemas, "DataSource": schemas.DataSourceSchemas, "EphemeralResource": schemas.EphemeralResourceSchemas,
	} {
		for typeName := range types {
			for _, act := range toBeDone[kind] {
				if one := kind + " " + typeName + " " + act; !done[one] {
					missing = append(missing, one)
				}
			}
		}
	}
	for typeName := range schemas.ListResourceSchemas {
		if !strings.Contains(lists[typeName], "Calling provider defined ListResource") {
			missing = append(missing, "ListResource "+typeName)
		}
	}
	for name := range schemas.Functions {
		missing = append(missing, "Function "+name)
	}
	for name := range schemas.ActionSchemas {
		missing = append(missing, "Action "+name)
	}
	for name := range schemas.StateStoreSchemas {
		missing = append(missing, "StateStore "+name)
	}
	slices.Sort(missing)
	return missing
}

// judgeCoverage fails the test when the provider has something that the journey has not been to.
func (j *journey) judgeCoverage() {
	j.t.Helper()
	lists := map[string]string{}
	for typeName, log := range j.lists {
		lists[typeName] = log.String()
	}
	schemas, err := NewServer("test")().GetProviderSchema(j.t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		j.t.Fatal(err)
	}
	for _, one := range undone(schemas, j.seen.String(), lists) {
		j.t.Errorf("the log does not tell of %s, so nothing is known of what is told then: add it to the journey", one)
	}
}

func TestWhatAJourneyLeavesOutIsNoticed(t *testing.T) {
	t.Parallel()
	schema := map[string]*tfprotov6.Schema{"deviceaccess_lock": {}}
	schemas := &tfprotov6.GetProviderSchemaResponse{ResourceSchemas: schema, DataSourceSchemas: schema, EphemeralResourceSchemas: schema, ListResourceSchemas: schema,
		Functions: map[string]*tfprotov6.Function{"pin": {}}, ActionSchemas: map[string]*tfprotov6.ActionSchema{"open": {}}}
	log := "provider: Calling provider defined Resource Create: @module=sdk.framework tf_resource_type=deviceaccess_lock tf_rpc=ApplyResourceChange\n" +
		"provider: Calling provider defined Resource Delete: tf_resource_type=deviceaccess_lock_of_another_kind\n" +
		"provider: Calling provider defined DataSource Read: tf_data_source_type=deviceaccess_lock\n" +
		"provider: Calling provider defined EphemeralResource Close: tf_ephemeral_resource_type=deviceaccess_lock\n"
	want := []string{"Action open", "EphemeralResource deviceaccess_lock Open", "Function pin", "ListResource deviceaccess_lock", "Resource deviceaccess_lock Delete",
		"Resource deviceaccess_lock ImportState", "Resource deviceaccess_lock Read", "Resource deviceaccess_lock Update"}
	if got := undone(schemas, log, nil); !slices.Equal(got, want) {
		t.Errorf("left out: %q, want %q", got, want)
	}
}

// sensitive are the names of the attributes that are, also of those inside others.
func sensitive(attributes []*tfprotov6.SchemaAttribute) (names []string) {
	for _, a := range attributes {
		if a.Sensitive {
			names = append(names, a.Name)
		}
		if a.NestedType != nil {
			names = append(names, sensitive(a.NestedType.Attributes)...)
		}
	}
	return names
}

// What is sensitive is in the table that says where it is kept.
func TestTableOfSecretsIsWhole(t *testing.T) {
	t.Parallel()
	_, page, _ := strings.Cut(read(t, "../docs/index.md"), "## Secrets\n")
	page, _, _ = strings.Cut(page, "\n## ")
	rows := slices.DeleteFunc(strings.Split(page, "\n"), func(line string) bool { return !strings.HasPrefix(line, "| `") })
	schemas, err := NewServer("test")().GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, kind := range []map[string]*tfprotov6.Schema{schemas.ResourceSchemas, schemas.DataSourceSchemas, schemas.EphemeralResourceSchemas, {"api_key": schemas.Provider}} {
		for typeName, schema := range kind {
			for _, name := range sensitive(schema.Block.Attributes) {
				n++
				if !slices.ContainsFunc(rows, func(row string) bool {
					return strings.Contains(row, "`"+name+"`") && strings.Contains(row, "`"+typeName+"`")
				}) {
					t.Errorf("%s of %s is sensitive, and the table of secrets in docs/index.md does not say so", name, typeName)
				}
			}
		}
	}
	if n < 8 {
		t.Errorf("%d attributes are sensitive, so this test looks at the wrong thing", n)
	}
}
