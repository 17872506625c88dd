package tfcore

import (
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
)

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
	declared      *declared // nil for deleted and forgotten resources
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

// hasChanges reports whether there is anything to apply, such as an import that changes nothing else.
func (p *Plan) hasChanges() bool {
	return !p.IsEmpty() || slices.ContainsFunc(p.changes, func(c *change) bool { return c.importing != "" })
}

// ExitCode returns the exit code of terraform plan -detailed-exitcode: 0 if there is nothing to apply, otherwise 2.
func (p *Plan) ExitCode() int {
	if p.hasChanges() {
		return 2
	}
	return 0
}

// Action returns what the plan does with an address, and NoOp if it is not in the plan.
func (p *Plan) Action(address string) Action {
	for _, c := range p.changes {
		if c.address == address {
			return c.action
		}
	}
	return NoOp
}

// Options configures Plan.
type Options struct {
	// Destroy plans the deletion of all resources.
	Destroy bool
	// SkipRefresh plans with the state as it was stored.
	SkipRefresh bool
}

// Plan runs terraform plan. The plan is nil if there are errors.
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
			p.changes = append(p.changes, &change{
				address: address,
				action:  Forget,
				before:  p.state[address].value,
				after:   cty.NullVal(p.state[address].value.Type()),
			})
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
		p.changes = append(p.changes, &change{
			address:  d.address,
			declared: d,
			action:   Read,
			before:   cty.NullVal(config.Type()),
			after:    m.values[d.address],
		})
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

// planned requests the provider's plan for a resource, and a second one, as for a new resource, if it must be replaced.
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
		// Terraform shows the warnings of only one of the two plans
		if ok {
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

// ask calls PlanResourceChange and checks its response like Terraform.
func (m *command) ask(
	c *change,
	prior cty.Value,
	private []byte,
	identity *tfprotov6.ResourceIdentityData,
	config cty.Value,
	replace *bool,
) bool {
	d := c.declared
	answer, err := m.server.PlanResourceChange(m.ctx, &tfprotov6.PlanResourceChangeRequest{
		TypeName:         d.typeName,
		PriorState:       m.pack(prior),
		ProposedNewState: m.pack(proposedNew(d.schema.Block, prior, config)),
		Config:           m.pack(config),
		PriorPrivate:     private,
		PriorIdentity:    identity,
	})
	m.core.must(err)
	if !m.report(answer.Diagnostics, d.address, d.body) {
		return false
	}
	c.after, c.private, c.identity = unpack(
		answer.PlannedState,
		config.Type(),
	), answer.PlannedPrivate, answer.PlannedIdentity
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
	m.diags = append(m.diags, Diagnostic{
		IsError: true,
		Summary: summary,
		Detail:  "The provider is wrong about " + at + ". This is a bug in the provider.",
		Address: address,
	})
	return false
}

func (m *command) planDelete(p *Plan, address string) {
	o, exists := p.state[address]
	if !exists || o.isData || m.failed[address] {
		return
	}
	answer, err := m.server.PlanResourceChange(m.ctx, &tfprotov6.PlanResourceChangeRequest{
		TypeName:         o.typeName,
		PriorState:       m.pack(o.value),
		ProposedNewState: m.pack(cty.NullVal(o.value.Type())),
		Config:           m.pack(cty.NullVal(o.value.Type())),
		PriorPrivate:     o.private,
		PriorIdentity:    o.identity,
	})
	m.core.must(err)
	if m.report(answer.Diagnostics, address, m.bodyOf(address)) {
		p.changes = append(p.changes, &change{
			address:  address,
			action:   Delete,
			before:   o.value,
			after:    cty.NullVal(o.value.Type()),
			private:  answer.PlannedPrivate,
			identity: answer.PlannedIdentity,
		})
	}
}
