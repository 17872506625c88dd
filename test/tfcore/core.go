// Package tfcore drives a provider through the plugin protocol like Terraform, inside the test process. It reads a
// configuration, validates, refreshes, plans, applies, and imports, and keeps a state. A test of the provider takes
// milliseconds this way, instead of seconds with the terraform command.
//
// It supports one provider, resources, data sources, references, and import and removed blocks. For everything else
// (count, lifecycle, other providers, ephemeral resources, moved blocks) it fails the test with a message to use the
// real Terraform. The package must not know the provider that it drives.
package tfcore

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Factory creates a provider server. Each Terraform command starts one.
type Factory func() tfprotov6.ProviderServer

// Core is a Terraform working directory: a state, and commands that use it.
type Core struct {
	t       testing.TB
	factory Factory
	name    string // of the provider
	state   map[string]object
}

// New returns a working directory with an empty state for the named provider.
func New(t testing.TB, name string, factory Factory) *Core {
	return &Core{
		t:       t,
		factory: factory,
		name:    name,
		state:   map[string]object{},
	}
}

// object is an instance in the state.
type object struct {
	typeName  string
	isData    bool
	value     cty.Value
	private   []byte
	identity  *tfprotov6.ResourceIdentityData
	tainted   bool
	dependsOn []string
}

// command is one run of Terraform, with its own provider process.
type command struct {
	core    *Core
	ctx     context.Context
	server  tfprotov6.ProviderServer
	schemas *tfprotov6.GetProviderSchemaResponse
	config  *config
	values  values
	diags   Diagnostics
	failed  map[string]bool // addresses whose dependents are skipped
}

// start validates the configuration and configures the provider.
func (c *Core) start(source string) *command {
	c.t.Helper()
	m := &command{
		core:   c,
		ctx:    c.t.Context(),
		server: c.factory(),
		values: values{},
		failed: map[string]bool{},
	}
	var err error
	m.schemas, err = m.server.GetProviderSchema(m.ctx, &tfprotov6.GetProviderSchemaRequest{})
	c.must(err)
	var diags Diagnostics
	m.config, diags = parse(source, m.schemas)
	m.diags = append(m.diags, diags...)
	if m.diags.HasErrors() {
		return m
	}
	if m.validate(); !m.diags.HasErrors() {
		m.configure()
	}
	return m
}

func (c *Core) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// report stores diagnostics of the provider, and reports whether none is an error.
func (m *command) report(diags []*tfprotov6.Diagnostic, address string, body *hclsyntax.Body) bool {
	converted := ofProvider(diags, address, body, m.config.source)
	m.diags = append(m.diags, converted...)
	if converted.HasErrors() {
		m.failed[address] = true
	}
	return !converted.HasErrors()
}

func (m *command) providerConfig() (cty.Value, bool) {
	body := m.config.provider
	if body == nil {
		body = &hclsyntax.Body{}
	}
	value, diags := decode(body, m.schemas.Provider.Block, m.values.context())
	m.diags = append(m.diags, ofHCL(diags, m.config.source)...)
	return value, !diags.HasErrors()
}

func (m *command) validate() {
	if value, ok := m.providerConfig(); ok {
		answer, err := m.server.ValidateProviderConfig(
			m.ctx,
			&tfprotov6.ValidateProviderConfigRequest{Config: m.pack(value)},
		)
		m.core.must(err)
		m.report(answer.Diagnostics, "", m.config.provider)
	}
	// a module does not know the values of its variables
	for name := range m.config.variables {
		m.values["var."+name] = cty.DynamicVal
	}
	for _, d := range m.config.resources {
		m.values[d.address] = cty.UnknownVal(typeOf(d.schema.ValueType()))
	}
	for _, d := range m.config.resources {
		if value, ok := m.decode(d); ok {
			m.valid(d, value)
		}
	}
	m.values = values{}
	for name, value := range m.config.variables {
		m.values["var."+name] = value
	}
}

func (m *command) pack(v cty.Value) *tfprotov6.DynamicValue { return pack(v, v.Type()) }

func (m *command) decode(d *declared) (cty.Value, bool) {
	value, diags := decode(d.body, d.schema.Block, m.values.context())
	converted := ofHCL(diags, m.config.source)
	m.diags = append(m.diags, converted...)
	if converted.HasErrors() {
		m.failed[d.address] = true
	}
	return value, !converted.HasErrors()
}

func (m *command) valid(d *declared, value cty.Value) bool {
	var diags []*tfprotov6.Diagnostic
	if d.isData {
		answer, err := m.server.ValidateDataResourceConfig(m.ctx, &tfprotov6.ValidateDataResourceConfigRequest{
			TypeName: d.typeName,
			Config:   m.pack(value),
		})
		m.core.must(err)
		diags = answer.Diagnostics
	} else {
		answer, err := m.server.ValidateResourceConfig(m.ctx, &tfprotov6.ValidateResourceConfigRequest{
			TypeName: d.typeName, Config: m.pack(value),
			ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
		})
		m.core.must(err)
		diags = answer.Diagnostics
	}
	return m.report(diags, d.address, d.body)
}

func (m *command) configure() {
	value, ok := m.providerConfig()
	if !ok {
		return
	}
	answer, err := m.server.ConfigureProvider(m.ctx, &tfprotov6.ConfigureProviderRequest{
		TerraformVersion: "1.14.0",
		Config:           m.pack(value),
	})
	m.core.must(err)
	m.report(answer.Diagnostics, "", m.config.provider)
}

// load returns the state, upgraded by the provider.
func (m *command) load() map[string]object {
	loaded := map[string]object{}
	for address, o := range m.core.state {
		if o.isData {
			continue
		}
		raw, err := ctyjson.Marshal(o.value, o.value.Type())
		m.core.must(err)
		schema := m.schemas.ResourceSchemas[o.typeName]
		answer, err := m.server.UpgradeResourceState(m.ctx, &tfprotov6.UpgradeResourceStateRequest{
			TypeName: o.typeName, Version: schema.Version, RawState: &tfprotov6.RawState{JSON: raw},
		})
		m.core.must(err)
		if m.report(answer.Diagnostics, address, nil) {
			o.value = unpack(answer.UpgradedState, typeOf(schema.ValueType()))
			loaded[address] = o
		}
	}
	return loaded
}

// refresh reads a resource, and removes it from the state if it does not exist any more.
func (m *command) refresh(state map[string]object, address string) bool {
	o := state[address]
	answer, err := m.server.ReadResource(m.ctx, &tfprotov6.ReadResourceRequest{
		TypeName:        o.typeName,
		CurrentState:    m.pack(o.value),
		Private:         o.private,
		CurrentIdentity: o.identity,
	})
	m.core.must(err)
	if !m.report(answer.Diagnostics, address, m.bodyOf(address)) {
		return false
	}
	if o.value = unpack(answer.NewState, o.value.Type()); o.value.IsNull() {
		delete(state, address)
		return true
	}
	if !o.value.IsWhollyKnown() {
		return m.bug(address, "Provider produced invalid object", "an unknown value that was read")
	}
	o.private = answer.Private
	if answer.NewIdentity != nil {
		o.identity = answer.NewIdentity
	}
	state[address] = o
	return true
}

func (m *command) bodyOf(address string) *hclsyntax.Body {
	if d := m.config.find(address); d != nil {
		return d.body
	}
	return nil
}

// read reads a data source.
func (m *command) read(d *declared, config cty.Value) (cty.Value, bool) {
	answer, err := m.server.ReadDataSource(m.ctx, &tfprotov6.ReadDataSourceRequest{
		TypeName: d.typeName,
		Config:   m.pack(config),
	})
	m.core.must(err)
	if !m.report(answer.Diagnostics, d.address, d.body) {
		return cty.NilVal, false
	}
	value := unpack(answer.State, config.Type())
	if value.IsNull() || !value.IsWhollyKnown() {
		return cty.NilVal, m.bug(
			d.address,
			"Provider produced invalid object",
			"what was read, which is null or not known",
		)
	}
	return value, true
}

// blocked reports whether a resource depends on one that failed.
func (m *command) blocked(d *declared) bool {
	for _, address := range m.config.references(d) {
		if m.failed[address] {
			m.failed[d.address] = true
			return true
		}
	}
	return false
}

// unsupported fails the test when the configuration needs the real Terraform.
func (c *Core) unsupported() {
	c.t.Helper()
	if cause := recover(); cause != nil {
		if err, ok := cause.(unsupportedError); ok {
			c.t.Fatal(err)
		}
		panic(cause)
	}
}

// importInto imports a resource into the state, and reads it.
func (m *command) importInto(state map[string]object, address, id string) bool {
	d := m.config.find(address)
	answer, err := m.server.ImportResourceState(
		m.ctx,
		&tfprotov6.ImportResourceStateRequest{TypeName: d.typeName, ID: id},
	)
	m.core.must(err)
	if !m.report(answer.Diagnostics, address, nil) {
		return false
	}
	if len(answer.ImportedResources) != 1 {
		return m.bug(address, "Provider returned an invalid import", "the number of imported resources")
	}
	imported := answer.ImportedResources[0]
	state[address] = object{
		typeName: d.typeName,
		value:    unpack(imported.State, typeOf(d.schema.ValueType())),
		private:  imported.Private,
		identity: imported.Identity,
	}
	if !m.refresh(state, address) {
		delete(state, address)
		return false
	}
	if _, exists := state[address]; !exists {
		m.failed[address] = true
		m.diags = append(m.diags, Diagnostic{
			IsError: true,
			Summary: "Cannot import non-existent remote object",
			Address: address,
			Detail: "While attempting to import an existing object, the provider detected that no object exists " +
				"with the given id.",
		})
		return false
	}
	return true
}

// Refresh runs terraform refresh.
func (c *Core) Refresh(source string) Diagnostics {
	c.t.Helper()
	defer c.unsupported()
	m := c.start(source)
	if m.diags.HasErrors() {
		return m.diags
	}
	state := m.load()
	for _, address := range slices.Sorted(maps.Keys(state)) {
		m.refresh(state, address)
	}
	if !m.diags.HasErrors() {
		c.state = state
	}
	return m.diags
}

// Import runs terraform import.
func (c *Core) Import(source, address, id string) Diagnostics {
	c.t.Helper()
	defer c.unsupported()
	m := c.start(source)
	if m.diags.HasErrors() {
		return m.diags
	}
	if m.config.find(address) == nil {
		c.t.Fatalf("the configuration has no %s to import into", address)
	}
	if state := m.load(); m.importInto(state, address, id) {
		c.state = state
	}
	return m.diags
}
