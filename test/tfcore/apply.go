package tfcore

import (
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
)

// Apply runs terraform apply of a plan for this configuration.
func (c *Core) Apply(source string, p *Plan) Diagnostics {
	c.t.Helper()
	defer c.unsupported()
	m := c.start(source)
	if m.diags.HasErrors() {
		return m.diags
	}
	c.state = maps.Clone(p.state)
	for _, planned := range p.changes {
		if planned.importing == "" && (planned.action == Create || planned.action == Read) {
			delete(c.state, planned.address)
		}
	}
	m.destroys(p)
	for _, d := range m.config.resources {
		if m.failed[d.address] || m.blocked(d) {
			continue
		}
		m.applies(p, d)
	}
	return m.diags
}

// destroys deletes resources that are not declared or are replaced, dependents first.
func (m *command) destroys(p *Plan) {
	var going []*change
	for _, c := range p.changes {
		switch c.action {
		case Forget:
			delete(m.core.state, c.address)
		case Delete, Replace:
			going = append(going, c)
		}
	}
	done := map[string]bool{}
	var destroy func(c *change)
	destroy = func(c *change) {
		if done[c.address] {
			return
		}
		done[c.address] = true
		for _, other := range going {
			if slices.Contains(m.core.state[other.address].dependsOn, c.address) {
				destroy(other)
				// Terraform keeps the dependencies of an existing resource
				if m.failed[other.address] {
					m.failed[c.address] = true
					return
				}
			}
		}
		m.destroy(c)
	}
	for _, c := range going {
		destroy(c)
	}
}

func (m *command) destroy(c *change) {
	o := m.core.state[c.address]
	private := c.private
	if c.action == Replace {
		private = o.private
	}
	nothing := m.pack(cty.NullVal(o.value.Type()))
	answer, err := m.server.ApplyResourceChange(m.ctx, &tfprotov6.ApplyResourceChangeRequest{
		TypeName:        o.typeName,
		PriorState:      m.pack(o.value),
		PlannedState:    nothing,
		Config:          nothing,
		PlannedPrivate:  private,
		PlannedIdentity: o.identity,
	})
	m.core.must(err)
	m.report(answer.Diagnostics, c.address, m.bodyOf(c.address))
	if left := unpack(answer.NewState, o.value.Type()); !left.IsNull() {
		o.value, o.private = left, answer.Private
		m.core.state[c.address] = o
		return
	}
	delete(m.core.state, c.address)
}

func (m *command) applies(p *Plan, d *declared) {
	i := slices.IndexFunc(p.changes, func(c *change) bool { return c.address == d.address })
	// a data source that was read during the plan, or a plan to destroy
	if i < 0 {
		if o, ok := m.core.state[d.address]; ok {
			m.values[d.address] = o.value
		}
		return
	}
	c := p.changes[i]
	switch c.action {
	case NoOp:
		m.values[d.address] = m.core.state[d.address].value
	case Read:
		config, ok := m.decode(d)
		if !ok || !m.valid(d, config) {
			return
		}
		if value, ok := m.read(d, config); ok {
			m.values[d.address] = value
			m.core.state[d.address] = object{typeName: d.typeName, isData: true, value: value}
		}
	case Create, Update, Replace:
		m.write(c)
	}
}

// write plans a change again with all values known, and applies it.
func (m *command) write(c *change) {
	d := c.declared
	config, ok := m.decode(d)
	if !ok {
		return
	}
	prior := object{value: cty.NullVal(config.Type())}
	if c.action == Update {
		prior = m.core.state[d.address]
	}
	final := &change{address: c.address, declared: d}
	var replace bool
	if !m.ask(final, prior.value, prior.private, prior.identity, config, &replace) {
		return
	}
	if replace {
		m.bug(d.address, "Provider produced inconsistent final plan", "the action")
		return
	}
	if at := incompatible("", c.after, final.after); at != "" {
		m.bug(d.address, "Provider produced inconsistent final plan", at)
		return
	}
	answer, err := m.server.ApplyResourceChange(m.ctx, &tfprotov6.ApplyResourceChangeRequest{
		TypeName:        d.typeName,
		PriorState:      m.pack(prior.value),
		PlannedState:    m.pack(final.after),
		Config:          m.pack(config),
		PlannedPrivate:  final.private,
		PlannedIdentity: final.identity,
	})
	m.core.must(err)
	ok = m.report(answer.Diagnostics, d.address, d.body)
	value := unpack(answer.NewState, config.Type())
	if value.IsNull() {
		delete(m.core.state, d.address)
		if ok {
			m.bug(d.address, "Provider produced inconsistent result after apply", "root object")
		}
		return
	}
	m.core.state[d.address] = object{
		typeName:  d.typeName,
		value:     value,
		private:   answer.Private,
		identity:  answer.NewIdentity,
		dependsOn: m.config.references(d),
		tainted:   !ok && c.action != Update,
	}
	m.values[d.address] = value
	if at := incompatible("", final.after, value); at != "" && ok {
		m.bug(d.address, "Provider produced inconsistent result after apply", at)
	}
	if ok && !value.IsWhollyKnown() {
		m.bug(d.address, "Provider returned invalid result object after apply", "an unknown value")
	}
}
