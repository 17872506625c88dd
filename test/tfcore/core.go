// Package tfcore drives a provider through the plugin protocol as Terraform does, inside the process of the test: it reads
// a configuration, validates, refreshes, plans, applies and imports, and keeps a state. A test of what the provider does
// takes milliseconds this way; with the terraform command it takes seconds.
//
// It knows one provider, resources, data sources, references between them, import and removed blocks. For everything else
// (count, lifecycle, variables, other providers, ephemeral resources, moved blocks) a test needs the real Terraform, and
// tfcore fails it with a message that says so. It must not know the provider that it drives.
package tfcore

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Factory makes a provider server. Each command of Terraform starts one.
type Factory func() tfprotov6.ProviderServer

// Core is a working directory of Terraform: a state, and commands that use it.
type Core struct {
	t       testing.TB
	factory Factory
	name    string // of the provider
	state   map[string]object
}

// New returns a working directory with an empty state for the provider of this name.
func New(t testing.TB, name string, factory Factory) *Core {
	return &Core{t: t, factory: factory, name: name, state: map[string]object{}}
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

// Action is what a plan does with a resource.
type Action string

// The actions of a plan.
const (
	NoOp    Action = "no-op"
	Create  Action = "create"
	Read    Action = "read"
	Update  Action = "update"
	Delete  Action = "delete"
	Replace Action = "replace"
	Forget  Action = "forget"
)

type change struct {
	address       string
	declared      *declared // nil for what is deleted or forgotten
	action        Action
	before, after cty.Value
	private       []byte
	identity      *tfprotov6.ResourceIdentityData
	importing     string
	replacedFor   []string // attributes
}

// Plan is a plan that Apply can carry out.
type Plan struct {
	config  *config
	changes []*change
	state   map[string]object // after the refresh
}

// IsEmpty reports whether the plan changes nothing.
func (p *Plan) IsEmpty() bool {
	return !slices.ContainsFunc(p.changes, func(c *change) bool { return c.action != NoOp })
}

// Action is what the plan does with an address; NoOp also where it says nothing about it.
func (p *Plan) Action(address string) Action {
	for _, c := range p.changes {
		if c.address == address {
			return c.action
		}
	}
	return NoOp
}

// command is one run of Terraform, with a provider of its own.
type command struct {
	core    *Core
	ctx     context.Context
	server  tfprotov6.ProviderServer
	schemas *tfprotov6.GetProviderSchemaResponse
	config  *config
	values  values
	diags   Diagnostics
	failed  map[string]bool // addresses whose dependents are left out
}

// start validates the configuration and configures the provider.
func (c *Core) start(source string) *command {
	c.t.Helper()
	m := &command{core: c, ctx: c.t.Context(), server: c.factory(), values: values{}, failed: map[string]bool{}}
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

// report keeps diagnostics of the provider and returns whether there is no error among them.
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
		answer, err := m.server.ValidateProviderConfig(m.ctx, &tfprotov6.ValidateProviderConfigRequest{Config: m.pack(value)})
		m.core.must(err)
		m.report(answer.Diagnostics, "", m.config.provider)
	}
	for name := range m.config.variables { // a module does not know the values that it is called with
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
		answer, err := m.server.ValidateDataResourceConfig(m.ctx, &tfprotov6.ValidateDataResourceConfigRequest{TypeName: d.typeName, Config: m.pack(value)})
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
	answer, err := m.server.ConfigureProvider(m.ctx, &tfprotov6.ConfigureProviderRequest{TerraformVersion: "1.14.0", Config: m.pack(value)})
	m.core.must(err)
	m.report(answer.Diagnostics, "", m.config.provider)
}

// load is the state, upgraded by the provider.
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

// refresh reads a resource; it is deleted from the state where it does not exist any more.
func (m *command) refresh(state map[string]object, address string) bool {
	o := state[address]
	answer, err := m.server.ReadResource(m.ctx, &tfprotov6.ReadResourceRequest{
		TypeName: o.typeName, CurrentState: m.pack(o.value), Private: o.private, CurrentIdentity: o.identity,
	})
	m.core.must(err)
	if !m.report(answer.Diagnostics, address, m.bodyOf(address)) {
		return false
	}
	if o.value = unpack(answer.NewState, o.value.Type()); o.value.IsNull() {
		delete(state, address)
		return true
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
	answer, err := m.server.ReadDataSource(m.ctx, &tfprotov6.ReadDataSourceRequest{TypeName: d.typeName, Config: m.pack(config)})
	m.core.must(err)
	if !m.report(answer.Diagnostics, d.address, d.body) {
		return cty.NilVal, false
	}
	return unpack(answer.State, config.Type()), true
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

// Options change what Plan does.
type Options struct {
	Destroy     bool
	SkipRefresh bool
}

// Plan is terraform plan. The plan is nil if there are errors.
func (c *Core) Plan(source string, o Options) (plan *Plan, diags Diagnostics) {
	c.t.Helper()
	defer c.unsupported()
	m := c.start(source)
	if !m.diags.HasErrors() {
		plan = m.plan(o)
	}
	if m.diags.HasErrors() {
		return nil, m.diags
	}
	return plan, m.diags
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

func (m *command) plan(o Options) *Plan {
	p := &Plan{config: m.config, state: m.load()}
	if !o.SkipRefresh {
		for _, address := range slices.Sorted(maps.Keys(p.state)) {
			m.refresh(p.state, address)
		}
	}
	if o.Destroy {
		for _, address := range slices.Sorted(maps.Keys(p.state)) {
			m.planDelete(p, address)
		}
		return p
	}
	for _, d := range m.config.resources {
		if m.failed[d.address] || m.blocked(d) {
			continue
		}
		if d.isData {
			m.planData(p, d)
		} else {
			m.planManaged(p, d)
		}
	}
	for _, address := range slices.Sorted(maps.Keys(p.state)) {
		switch {
		case m.config.find(address) != nil || p.state[address].isData:
		case slices.Contains(m.config.forgotten, address):
			p.changes = append(p.changes, &change{address: address, action: Forget, before: p.state[address].value, after: cty.NullVal(p.state[address].value.Type())})
		default:
			m.planDelete(p, address)
		}
	}
	return p
}

func (m *command) planData(p *Plan, d *declared) {
	config, ok := m.decode(d)
	if !ok || !m.valid(d, config) {
		return
	}
	pending := slices.ContainsFunc(d.dependsOn, func(address string) bool { return p.Action(address) != NoOp })
	if pending || !config.IsWhollyKnown() {
		m.values[d.address] = cty.UnknownVal(config.Type())
		p.changes = append(p.changes, &change{address: d.address, declared: d, action: Read, before: cty.NullVal(config.Type()), after: m.values[d.address]})
		return
	}
	if value, ok := m.read(d, config); ok {
		m.values[d.address] = value
		p.state[d.address] = object{typeName: d.typeName, isData: true, value: value}
	}
}

func (m *command) planManaged(p *Plan, d *declared) {
	c := &change{address: d.address, declared: d}
	if _, exists := p.state[d.address]; !exists {
		for _, i := range m.config.imports {
			if i.to == d.address {
				id, diags := i.id.Value(m.values.context())
				if diags.HasErrors() || !id.IsKnown() || id.Type() != cty.String {
					panic(unsupportedError{"an import block whose id is not a known text"})
				}
				if !m.importInto(p.state, d.address, id.AsString()) {
					return
				}
				c.importing = id.AsString()
			}
		}
	}
	config, ok := m.decode(d)
	if !ok || !m.valid(d, config) {
		return
	}
	prior, exists := p.state[d.address]
	c.before = cty.NullVal(config.Type())
	if exists {
		c.before = prior.value
	}
	if !m.planned(c, prior, config) {
		return
	}
	m.values[d.address] = c.after
	p.changes = append(p.changes, c)
}

// planned asks the provider what it plans for a resource, a second time as for a new one where it must be replaced.
func (m *command) planned(c *change, prior object, config cty.Value) bool {
	if prior.tainted {
		if !m.ask(c, cty.NullVal(config.Type()), nil, nil, config, nil) {
			return false
		}
		c.action = Replace
		return true
	}
	var replace bool
	if !m.ask(c, c.before, prior.private, prior.identity, config, &replace) {
		return false
	}
	switch {
	case c.before.IsNull():
		c.action = Create
	case replace:
		c.action = Replace
		said := m.diags
		ok := m.ask(c, cty.NullVal(config.Type()), nil, nil, config, nil)
		if ok { // Terraform shows the warnings of one of the two plans only
			m.diags = said
		}
		return ok
	case c.after.RawEquals(c.before):
		c.action = NoOp
	default:
		c.action = Update
	}
	return true
}

// ask calls PlanResourceChange and checks its answer as Terraform does.
func (m *command) ask(c *change, prior cty.Value, private []byte, identity *tfprotov6.ResourceIdentityData, config cty.Value, replace *bool) bool {
	d := c.declared
	answer, err := m.server.PlanResourceChange(m.ctx, &tfprotov6.PlanResourceChangeRequest{
		TypeName: d.typeName, PriorState: m.pack(prior), ProposedNewState: m.pack(proposedNew(d.schema.Block, prior, config)),
		Config: m.pack(config), PriorPrivate: private, PriorIdentity: identity,
	})
	m.core.must(err)
	if !m.report(answer.Diagnostics, d.address, d.body) {
		return false
	}
	c.after, c.private, c.identity = unpack(answer.PlannedState, config.Type()), answer.PlannedPrivate, answer.PlannedIdentity
	if at := invalidPlan(d.schema.Block.Attributes, prior, config, c.after); at != "" {
		return m.bug(d.address, "Provider produced invalid plan", at)
	}
	for _, path := range answer.RequiresReplace {
		was, is := at(prior, path), at(c.after, path)
		if replace != nil && !prior.IsNull() && (!is.IsWhollyKnown() || !was.RawEquals(is)) {
			*replace = true
			c.replacedFor = append(c.replacedFor, string(path.Steps()[0].(tftypes.AttributeName)))
		}
	}
	return true
}

// bug reports what Terraform calls a bug of the provider.
func (m *command) bug(address, summary, at string) bool {
	m.failed[address] = true
	m.diags = append(m.diags, Diagnostic{IsError: true, Summary: summary, Detail: "The provider is wrong about " + at + ". This is a bug in the provider.", Address: address})
	return false
}

func (m *command) planDelete(p *Plan, address string) {
	o, exists := p.state[address]
	if !exists || o.isData || m.failed[address] {
		return
	}
	answer, err := m.server.PlanResourceChange(m.ctx, &tfprotov6.PlanResourceChangeRequest{
		TypeName: o.typeName, PriorState: m.pack(o.value), ProposedNewState: m.pack(cty.NullVal(o.value.Type())), Config: m.pack(cty.NullVal(o.value.Type())),
		PriorPrivate: o.private, PriorIdentity: o.identity,
	})
	m.core.must(err)
	if m.report(answer.Diagnostics, address, m.bodyOf(address)) {
		p.changes = append(p.changes, &change{
			address: address, action: Delete, before: o.value, after: cty.NullVal(o.value.Type()), private: answer.PlannedPrivate, identity: answer.PlannedIdentity,
		})
	}
}

// importInto imports a resource, and reads it, into the state.
func (m *command) importInto(state map[string]object, address, id string) bool {
	d := m.config.find(address)
	answer, err := m.server.ImportResourceState(m.ctx, &tfprotov6.ImportResourceStateRequest{TypeName: d.typeName, ID: id})
	m.core.must(err)
	if !m.report(answer.Diagnostics, address, nil) {
		return false
	}
	imported := answer.ImportedResources[0]
	state[address] = object{
		typeName: d.typeName, value: unpack(imported.State, typeOf(d.schema.ValueType())), private: imported.Private, identity: imported.Identity,
	}
	if !m.refresh(state, address) {
		delete(state, address)
		return false
	}
	if _, exists := state[address]; !exists {
		m.failed[address] = true
		m.diags = append(m.diags, Diagnostic{IsError: true, Summary: "Cannot import non-existent remote object", Address: address,
			Detail: "While attempting to import an existing object, the provider detected that no object exists with the given id."})
		return false
	}
	return true
}

// Refresh is terraform refresh.
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

// Import is terraform import.
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
