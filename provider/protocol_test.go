package provider

import (
	"context"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// plugin talks the plugin protocol with the provider inside this process, as every version of Terraform does: also
// the newer ones, whose features the terraform on this machine may lack.
type plugin struct {
	t          *testing.T
	server     tfprotov6.ProviderServer
	schemas    *tfprotov6.GetProviderSchemaResponse
	identities map[string]*tfprotov6.ResourceIdentitySchema
}

func startPlugin(t *testing.T, settings map[string]string) *plugin {
	t.Helper()
	config := map[string]tftypes.Value{}
	for name, value := range settings {
		config[name] = text(value)
	}
	return startPluginWith(t, config)
}

// startPluginWith is startPlugin for settings that need not be known.
func startPluginWith(t *testing.T, config map[string]tftypes.Value) *plugin {
	t.Helper()
	p := &plugin{t: t, server: NewServer("test")()}
	var err error
	if p.schemas, err = p.server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{}); err != nil {
		t.Fatal(err)
	}
	p.allow(p.schemas.Diagnostics)
	identities, err := p.server.GetResourceIdentitySchemas(t.Context(), &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err != nil {
		t.Fatal(err)
	}
	p.allow(identities.Diagnostics)
	p.identities = identities.IdentitySchemas
	answer, err := p.server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{
		TerraformVersion: "1.14.0", Config: p.pack(object(p.schemas.Provider.ValueType(), config)),
	})
	if err != nil {
		t.Fatal(err)
	}
	p.allow(answer.Diagnostics)
	return p
}

// plugin is the provider, connected to the fake.
func (f *fake) plugin(t *testing.T) *plugin {
	t.Helper()
	return startPlugin(t, map[string]string{"endpoint": f.URL, "api_key": fakeKey})
}

func text(value string) tftypes.Value { return tftypes.NewValue(tftypes.String, value) }

// object is an object with these attributes, and null for the others.
func object(of tftypes.Type, attributes map[string]tftypes.Value) tftypes.Value {
	types := of.(tftypes.Object).AttributeTypes
	all := map[string]tftypes.Value{}
	for name, attributeType := range types {
		all[name] = tftypes.NewValue(attributeType, nil)
	}
	for name, value := range attributes {
		all[name] = value
	}
	return tftypes.NewValue(of, all)
}

func (p *plugin) pack(value tftypes.Value) *tfprotov6.DynamicValue {
	p.t.Helper()
	packed, err := tfprotov6.NewDynamicValue(value.Type(), value)
	if err != nil {
		p.t.Fatal(err)
	}
	return &packed
}

// allow fails the test when there are errors.
func (p *plugin) allow(diagnostics []*tfprotov6.Diagnostic) {
	p.t.Helper()
	for _, d := range diagnostics {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			p.t.Fatalf("%s: %s", d.Summary, d.Detail)
		}
	}
}

func (p *plugin) identity(typeName string, names map[string]string) *tfprotov6.ResourceIdentityData {
	p.t.Helper()
	attributes := map[string]tftypes.Value{}
	for name, value := range names {
		attributes[name] = text(value)
	}
	return &tfprotov6.ResourceIdentityData{IdentityData: p.pack(object(p.identities[typeName].ValueType(), attributes))}
}

// names are what an identity says; nil where there is none.
func (p *plugin) names(typeName string, identity *tfprotov6.ResourceIdentityData) map[string]string {
	p.t.Helper()
	if identity == nil {
		return nil
	}
	return p.texts(p.identities[typeName].ValueType(), identity.IdentityData)
}

// texts are the known attributes of an object that are strings.
func (p *plugin) texts(of tftypes.Type, packed *tfprotov6.DynamicValue) map[string]string {
	p.t.Helper()
	value, err := packed.Unmarshal(of)
	if err != nil {
		p.t.Fatal(err)
	}
	if value.IsNull() {
		return nil
	}
	var attributes map[string]tftypes.Value
	if err := value.As(&attributes); err != nil {
		p.t.Fatal(err)
	}
	found := map[string]string{}
	for name, attribute := range attributes {
		var value string
		if attribute.Type().Is(tftypes.String) && attribute.IsKnown() && !attribute.IsNull() &&
			attribute.As(&value) == nil {
			found[name] = value
		}
	}
	return found
}

func (p *plugin) stateType(typeName string) tftypes.Type {
	return p.schemas.ResourceSchemas[typeName].ValueType()
}

// state is what a resource looks like to Terraform.
func (p *plugin) state(typeName string, state *tfprotov6.DynamicValue) map[string]string {
	p.t.Helper()
	return p.texts(p.stateType(typeName), state)
}

// imports is how terraform plan imports: ImportResourceState and then ReadResource.
func (p *plugin) imports(request *tfprotov6.ImportResourceStateRequest) *tfprotov6.ReadResourceResponse {
	p.t.Helper()
	answer, err := p.server.ImportResourceState(p.t.Context(), request)
	if err != nil {
		p.t.Fatal(err)
	}
	p.allow(answer.Diagnostics)
	imported := answer.ImportedResources[0]
	return p.reads(&tfprotov6.ReadResourceRequest{
		TypeName:        request.TypeName,
		CurrentState:    imported.State,
		CurrentIdentity: imported.Identity,
		Private:         imported.Private,
	})
}

func (p *plugin) reads(request *tfprotov6.ReadResourceRequest) *tfprotov6.ReadResourceResponse {
	p.t.Helper()
	answer, err := p.server.ReadResource(p.t.Context(), request)
	if err != nil {
		p.t.Fatal(err)
	}
	p.allow(answer.Diagnostics)
	return answer
}

// lists is terraform query.
func (p *plugin) lists(request *tfprotov6.ListResourceRequest) []tfprotov6.ListResourceResult {
	p.t.Helper()
	if request.Config == nil {
		request.Config = p.listConfig(request.TypeName, nil)
	}
	validated, err := p.server.(tfprotov6.ListResourceServer).ValidateListResourceConfig(p.t.Context(),
		&tfprotov6.ValidateListResourceConfigRequest{TypeName: request.TypeName, Config: request.Config})
	if err != nil {
		p.t.Fatal(err)
	}
	p.allow(validated.Diagnostics)
	stream, err := p.server.(tfprotov6.ListResourceServer).ListResource(p.t.Context(), request)
	if err != nil {
		p.t.Fatal(err)
	}
	var results []tfprotov6.ListResourceResult
	for result := range stream.Results {
		results = append(results, result)
	}
	return results
}

func (p *plugin) listConfig(typeName string, attributes map[string]tftypes.Value) *tfprotov6.DynamicValue {
	p.t.Helper()
	return p.pack(object(p.schemas.ListResourceSchemas[typeName].ValueType(), attributes))
}

// invokes is how terraform apply invokes an action: it validates, plans, and reads the progress until the end.
func (p *plugin) invokes(
	typeName string,
	attributes map[string]tftypes.Value,
) (progress []string, diagnostics []*tfprotov6.Diagnostic) {
	p.t.Helper()
	return p.invokesWith(p.t.Context(), typeName, attributes)
}

// invokesWith is invokes with a context, which may log.
func (p *plugin) invokesWith(
	ctx context.Context,
	typeName string,
	attributes map[string]tftypes.Value,
) (progress []string, diagnostics []*tfprotov6.Diagnostic) {
	p.t.Helper()
	server := p.server.(tfprotov6.ActionServer)
	config := p.pack(object(p.schemas.ActionSchemas[typeName].Schema.ValueType(), attributes))
	validated, err := server.ValidateActionConfig(ctx, &tfprotov6.ValidateActionConfigRequest{
		ActionType: typeName, Config: config,
	})
	if err != nil || len(validated.Diagnostics) > 0 {
		return nil, validated.Diagnostics
	}
	planned, err := server.PlanAction(ctx, &tfprotov6.PlanActionRequest{ActionType: typeName, Config: config})
	if err != nil {
		p.t.Fatal(err)
	}
	p.allow(planned.Diagnostics)
	stream, err := server.InvokeAction(ctx, &tfprotov6.InvokeActionRequest{ActionType: typeName, Config: config})
	if err != nil {
		p.t.Fatal(err)
	}
	ended := false
	for event := range stream.Events {
		switch event := event.Type.(type) {
		case tfprotov6.ProgressInvokeActionEventType:
			progress = append(progress, event.Message)
		case tfprotov6.CompletedInvokeActionEventType:
			ended, diagnostics = true, event.Diagnostics
		}
	}
	if !ended {
		p.t.Errorf("%s has not completed", typeName)
	}
	return progress, diagnostics
}

// generates is the configuration that terraform generates for a listed or imported resource, attribute by attribute.
func (p *plugin) generates(typeName string, state *tfprotov6.DynamicValue) (attributes map[string]tftypes.Value) {
	p.t.Helper()
	generated, err := p.server.GenerateResourceConfig(p.t.Context(), &tfprotov6.GenerateResourceConfigRequest{
		TypeName: typeName, State: state,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.allow(generated.Diagnostics)
	config, err := generated.Config.Unmarshal(p.stateType(typeName))
	if err == nil {
		err = config.As(&attributes)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return attributes
}

// providerSchemas are the schemas of all types.
func providerSchemas(t *testing.T) *tfprotov6.GetProviderSchemaResponse {
	t.Helper()
	schemas, err := NewServer("test")().GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return schemas
}

// expectRowForEachResource checks that a test has a row for each type of resource.
func expectRowForEachResource[R any](t *testing.T, rows map[string]R) {
	t.Helper()
	for typeName := range providerSchemas(t).ResourceSchemas {
		if _, exists := rows[typeName]; !exists {
			t.Errorf("add a row for %s", typeName)
		}
	}
}
