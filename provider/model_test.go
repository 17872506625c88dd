package provider

import (
	"context"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// models are the models of all resources and data sources, by type name.
var models = map[string]any{
	"deviceaccess_access_code":                 accessCodeModel{},
	"deviceaccess_webhook":                     webhookModel{},
	"deviceaccess_shared_access_code":          sharedAccessCodeModel{},
	"deviceaccess_access_codes_exclusive":      accessCodesExclusiveModel{},
	"deviceaccess_connect_webview":             connectWebviewModel{},
	"data deviceaccess_devices":                devicesModel{},
	"data deviceaccess_unmanaged_access_codes": unmanagedAccessCodesModel{},
	"data deviceaccess_workspace":              workspaceModel{},
	"data deviceaccess_device":                 namedDeviceModel{},
	"data deviceaccess_device_providers":       deviceProvidersModel{},
	"data deviceaccess_access_codes":           accessCodesModel{},
	"data deviceaccess_webhooks":               webhooksModel{},
	"data deviceaccess_connected_accounts":     connectedAccountsModel{},
	"data deviceaccess_acs_users":              acsUsersModel{},
	"deviceaccess_device":                      deviceResourceModel{},
	"deviceaccess_acs_user":                    acsUserResourceModel{},
	"deviceaccess_user_identity":               userIdentityModel{},
	"deviceaccess_climate_preset":              climatePresetModel{},
	"deviceaccess_thermostat_schedule":         thermostatScheduleModel{},
	"deviceaccess_noise_threshold":             noiseThresholdModel{},
	"data deviceaccess_thermostats":            thermostatsModel{},
	"data deviceaccess_noise_sensors":          noiseSensorsModel{},
	"data deviceaccess_access_code":            accessCodeDataModel{},
	"data deviceaccess_webhook":                listedWebhookModel{},
	"data deviceaccess_connected_account":      connectedAccountDataModel{},
	"ephemeral deviceaccess_access_code":       ephemeralAccessCodeModel{},
	"ephemeral deviceaccess_webhook":           ephemeralWebhookModel{},

	"action deviceaccess_lock_door":               doorActionModel{},
	"action deviceaccess_unlock_door":             doorActionModel{},
	"action deviceaccess_pull_backup_access_code": pullBackupAccessCodeModel{},
	"action deviceaccess_webhook_test":            webhookTestModel{},
	"action deviceaccess_webhook_rotate_secret":   webhookRotateSecretModel{},
}

// schemas are the types that the schemas of all resources, data sources and of the provider demand.
func schemas(t *testing.T) map[string]attr.TypeWithAttributeTypes {
	t.Helper()
	p := New("test")()
	found := map[string]attr.TypeWithAttributeTypes{}
	var settingsSchema provider.SchemaResponse
	p.Schema(t.Context(), provider.SchemaRequest{}, &settingsSchema)
	found["settings"] = settingsSchema.Schema.Type().(attr.TypeWithAttributeTypes)
	for _, create := range p.Resources(t.Context()) {
		var name resource.MetadataResponse
		var schema resource.SchemaResponse
		made := create()
		made.Metadata(t.Context(), resource.MetadataRequest{ProviderTypeName: "deviceaccess"}, &name)
		made.Schema(t.Context(), resource.SchemaRequest{}, &schema)
		if diags := schema.Schema.ValidateImplementation(t.Context()); diags.HasError() {
			t.Errorf("%s: %v", name.TypeName, diags)
		}
		found[name.TypeName] = schema.Schema.Type().(attr.TypeWithAttributeTypes)
	}
	for _, create := range p.DataSources(t.Context()) {
		var name datasource.MetadataResponse
		var schema datasource.SchemaResponse
		made := create()
		made.Metadata(t.Context(), datasource.MetadataRequest{ProviderTypeName: "deviceaccess"}, &name)
		made.Schema(t.Context(), datasource.SchemaRequest{}, &schema)
		if diags := schema.Schema.ValidateImplementation(t.Context()); diags.HasError() {
			t.Errorf("%s: %v", name.TypeName, diags)
		}
		found["data "+name.TypeName] = schema.Schema.Type().(attr.TypeWithAttributeTypes)
	}
	for _, create := range p.(provider.ProviderWithEphemeralResources).EphemeralResources(t.Context()) {
		var name ephemeral.MetadataResponse
		var schema ephemeral.SchemaResponse
		made := create()
		made.Metadata(t.Context(), ephemeral.MetadataRequest{ProviderTypeName: "deviceaccess"}, &name)
		made.Schema(t.Context(), ephemeral.SchemaRequest{}, &schema)
		if diags := schema.Schema.ValidateImplementation(t.Context()); diags.HasError() {
			t.Errorf("%s: %v", name.TypeName, diags)
		}
		found["ephemeral "+name.TypeName] = schema.Schema.Type().(attr.TypeWithAttributeTypes)
	}
	for _, create := range p.(provider.ProviderWithActions).Actions(t.Context()) {
		var name action.MetadataResponse
		var schema action.SchemaResponse
		made := create()
		made.Metadata(t.Context(), action.MetadataRequest{ProviderTypeName: "deviceaccess"}, &name)
		made.Schema(t.Context(), action.SchemaRequest{}, &schema)
		if diags := schema.Schema.ValidateImplementation(t.Context()); diags.HasError() {
			t.Errorf("%s: %v", name.TypeName, diags)
		}
		found["action "+name.TypeName] = schema.Schema.Type().(attr.TypeWithAttributeTypes)
	}
	return found
}

func TestModelsAndSchemasAgree(t *testing.T) {
	found := schemas(t)
	all := maps.Clone(models)
	all["settings"] = settings{}
	if got, want := slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(all)); !slices.Equal(got, want) {
		t.Fatalf("the provider has %q, the models are of %q", got, want)
	}
	for name, model := range all {
		agree(t, name, reflect.TypeOf(model), found[name])
	}
}

// agree compares a model with the type that a schema demands, field by field.
func agree(t *testing.T, where string, model reflect.Type, schema attr.TypeWithAttributeTypes) {
	t.Helper()
	attributes := schema.AttributeTypes()
	for _, field := range reflect.VisibleFields(model) {
		if field.Anonymous {
			continue // its fields are visited by themselves
		}
		name := field.Tag.Get("tfsdk")
		wanted, ok := attributes[name]
		if !ok {
			t.Errorf("%s: the model's field %s is no attribute of the schema", where, field.Name)
			continue
		}
		delete(attributes, name)
		if list, ok := wanted.(attr.TypeWithElementType); ok && field.Type.Kind() == reflect.Slice {
			if nested, ok := list.ElementType().(attr.TypeWithAttributeTypes); ok {
				agree(t, where+"."+name, field.Type.Elem(), nested)
			}
			continue
		}
		if got := reflect.TypeOf(wanted.ValueType(context.Background())); got != field.Type {
			t.Errorf("%s: the attribute %s is a %s in the schema and a %s in the model", where, name, got, field.Type)
		}
	}
	for name := range attributes {
		t.Errorf("%s: the attribute %s is not in the model", where, name)
	}
}

func TestEverythingIsDescribed(t *testing.T) {
	p := New("test")()
	var settingsSchema provider.SchemaResponse
	p.Schema(t.Context(), provider.SchemaRequest{}, &settingsSchema)
	for name, attribute := range settingsSchema.Schema.Attributes {
		described(t, name, attribute.GetMarkdownDescription())
	}
	for _, create := range p.Resources(t.Context()) {
		var schema resource.SchemaResponse
		create().Schema(t.Context(), resource.SchemaRequest{}, &schema)
		described(t, "resource", schema.Schema.MarkdownDescription)
		for name, attribute := range schema.Schema.Attributes {
			described(t, name, attribute.GetMarkdownDescription())
		}
	}
	for _, create := range p.(provider.ProviderWithEphemeralResources).EphemeralResources(t.Context()) {
		var schema ephemeral.SchemaResponse
		create().Schema(t.Context(), ephemeral.SchemaRequest{}, &schema)
		described(t, "ephemeral resource", schema.Schema.MarkdownDescription)
		for name, attribute := range schema.Schema.Attributes {
			described(t, name, attribute.GetMarkdownDescription())
		}
	}
	for _, create := range p.DataSources(t.Context()) {
		var schema datasource.SchemaResponse
		create().Schema(t.Context(), datasource.SchemaRequest{}, &schema)
		described(t, "data source", schema.Schema.MarkdownDescription)
		for name, attribute := range schema.Schema.Attributes {
			described(t, name, attribute.GetMarkdownDescription())
		}
	}
}

func described(t *testing.T, name, description string) {
	t.Helper()
	if len(description) < 10 || !strings.HasSuffix(strings.TrimSpace(description), ".") {
		t.Errorf("%s is described as %q", name, description)
	}
}

// Longer explanations belong on the page of the resource or in a guide.
func TestDescriptionsAreShort(t *testing.T) {
	t.Parallel()
	p := New("test")()
	server := NewServer("test")()
	all, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	schemas := map[string]*tfprotov6.Schema{"provider": all.Provider}
	for kind, some := range map[string]map[string]*tfprotov6.Schema{
		"resource": all.ResourceSchemas, "data": all.DataSourceSchemas,
		"ephemeral": all.EphemeralResourceSchemas, "list": all.ListResourceSchemas,
	} {
		for name, schema := range some {
			schemas[kind+" "+name] = schema
		}
	}
	for name, schema := range all.ActionSchemas {
		schemas["action "+name] = schema.Schema
	}
	if want := 1 + len(
		models,
	) + len(
		p.(provider.ProviderWithListResources).ListResources(t.Context()),
	); len(
		schemas,
	) != want {
		t.Fatalf("%d schemas, want %d", len(schemas), want)
	}
	for name, schema := range schemas {
		checkDescriptions(t, name, schema.Block.Attributes)
		for _, block := range schema.Block.BlockTypes {
			checkDescriptions(t, name+"."+block.TypeName, block.Block.Attributes)
		}
	}
}

func checkDescriptions(t *testing.T, where string, attributes []*tfprotov6.SchemaAttribute) {
	t.Helper()
	for _, a := range attributes {
		at := where + "." + a.Name
		described(t, at, a.Description)
		if n := len(sentenceEnds.FindAllString(a.Description, -1)); n > 2 || len([]rune(a.Description)) > 200 {
			t.Errorf("%s has %d sentences and %d characters: %s", at, n, len([]rune(a.Description)), a.Description)
		}
		if a.NestedType != nil {
			checkDescriptions(t, at, a.NestedType.Attributes)
		}
	}
}

var sentenceEnds = regexp.MustCompile(`[.!?](\s|$)`)
