package provider

import (
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// managed is one resource as Terraform manages it: each call continues from the state of the one before.
type managed struct {
	*plugin
	typeName string
	state    *tfprotov6.DynamicValue
	identity *tfprotov6.ResourceIdentityData
	private  []byte
	tainted  bool
}

// manage returns a resource that does not exist yet.
func (p *plugin) manage(typeName string) *managed {
	m := &managed{plugin: p, typeName: typeName}
	m.state = p.pack(tftypes.NewValue(p.stateType(typeName), nil))
	return m
}

// adopt returns a resource after terraform import.
func (p *plugin) adopt(typeName, id string) *managed {
	p.t.Helper()
	m := p.manage(typeName)
	m.take(p.imported(typeName, id))
	return m
}

// in continues with another process of the provider.
func (m *managed) in(p *plugin) *managed {
	other := *m
	other.plugin = p
	return &other
}

func (m *managed) take(read *tfprotov6.ReadResourceResponse) []*tfprotov6.Diagnostic {
	m.state, m.private = read.NewState, read.Private
	m.identity = read.NewIdentity
	return read.Diagnostics
}

// refresh reads the resource, as each plan does first.
func (m *managed) refresh() []*tfprotov6.Diagnostic {
	m.t.Helper()
	return m.take(m.reads(&tfprotov6.ReadResourceRequest{
		TypeName:        m.typeName,
		CurrentState:    m.state,
		CurrentIdentity: m.identity,
		Private:         m.private,
	}))
}

// plan plans this configuration. A nil configuration is a destroy.
func (m *managed) plan(config map[string]tftypes.Value) *tfprotov6.PlanResourceChangeResponse {
	m.t.Helper()
	of := m.stateType(m.typeName)
	configured, proposed := tftypes.NewValue(of, nil), tftypes.NewValue(of, nil)
	if config != nil {
		configured, proposed = object(of, config), object(of, m.proposed(config))
	}
	plan, err := m.server.PlanResourceChange(m.t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName:         m.typeName,
		PriorState:       m.state,
		PriorIdentity:    m.identity,
		PriorPrivate:     m.private,
		ProposedNewState: m.pack(proposed),
		Config:           m.pack(configured),
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return plan
}

// proposed is the configuration with the present values of what the provider computes, as Terraform proposes it.
func (m *managed) proposed(config map[string]tftypes.Value) map[string]tftypes.Value {
	m.t.Helper()
	proposed := map[string]tftypes.Value{}
	var prior map[string]tftypes.Value
	if value, err := m.state.Unmarshal(m.stateType(m.typeName)); err != nil || value.As(&prior) != nil {
		m.t.Fatal("the state cannot be read")
	}
	for _, attribute := range m.schemas.ResourceSchemas[m.typeName].Block.Attributes {
		if value, ok := config[attribute.Name]; ok && !attribute.WriteOnly {
			proposed[attribute.Name] = value
		} else if value, ok := prior[attribute.Name]; ok && attribute.Computed {
			proposed[attribute.Name] = value
		}
	}
	if value, ok := config["timeouts"]; ok {
		proposed["timeouts"] = value
	}
	return proposed
}

// apply plans and applies this configuration, and returns what was said while it was applied.
func (m *managed) apply(config map[string]tftypes.Value) []*tfprotov6.Diagnostic {
	m.t.Helper()
	plan := m.plan(config)
	m.allow(plan.Diagnostics)
	configured := tftypes.NewValue(m.stateType(m.typeName), nil)
	if config != nil {
		configured = object(m.stateType(m.typeName), config)
	}
	applied, err := m.server.ApplyResourceChange(m.t.Context(), &tfprotov6.ApplyResourceChangeRequest{
		TypeName:        m.typeName,
		PriorState:      m.state,
		PlannedState:    plan.PlannedState,
		PlannedIdentity: plan.PlannedIdentity,
		PlannedPrivate:  plan.PlannedPrivate,
		Config:          m.pack(configured),
	})
	if err != nil {
		m.t.Fatal(err)
	}
	created := m.isGone()
	m.state, m.private = applied.NewState, applied.Private
	m.identity = applied.NewIdentity
	m.tainted = created && hasErrors(applied.Diagnostics) && !m.isGone()
	return applied.Diagnostics
}

// isGone reports whether the resource is in no state.
func (m *managed) isGone() bool { return m.now().IsNull() }

func (m *managed) now() tftypes.Value {
	m.t.Helper()
	value, err := m.state.Unmarshal(m.stateType(m.typeName))
	if err != nil {
		m.t.Fatal(err)
	}
	return value
}

// at is a value inside of an object, by the names of attributes and keys.
func (p *plugin) at(value tftypes.Value, names ...string) tftypes.Value {
	p.t.Helper()
	for _, name := range names {
		var elements map[string]tftypes.Value
		if err := value.As(&elements); err != nil {
			p.t.Fatal(err)
		}
		value = elements[name]
	}
	return value
}

// isNoop reports whether a plan changes nothing.
func (m *managed) isNoop(plan *tfprotov6.PlanResourceChangeResponse) bool {
	m.t.Helper()
	m.allow(plan.Diagnostics)
	planned, err := plan.PlannedState.Unmarshal(m.stateType(m.typeName))
	if err != nil {
		m.t.Fatal(err)
	}
	return planned.Equal(m.now())
}

func hasErrors(diagnostics []*tfprotov6.Diagnostic) bool {
	return slices.ContainsFunc(diagnostics, func(d *tfprotov6.Diagnostic) bool {
		return d.Severity == tfprotov6.DiagnosticSeverityError
	})
}

// saidIn is the text of diagnostics, for expectSaid.
func saidIn(diagnostics []*tfprotov6.Diagnostic) string {
	var lines []string
	for _, d := range diagnostics {
		kind := "Warning: "
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			kind = "Error: "
		}
		lines = append(lines, kind+d.Summary, d.Detail)
	}
	return strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
}

func texts(values ...string) tftypes.Value {
	set := []tftypes.Value{}
	for _, value := range values {
		set = append(set, text(value))
	}
	return tftypes.NewValue(tftypes.Set{ElementType: tftypes.String}, set)
}

// timeouts is that block, with the same time for all.
func (p *plugin) timeouts(typeName, within string) tftypes.Value {
	p.t.Helper()
	of := p.stateType(typeName).(tftypes.Object).AttributeTypes["timeouts"]
	times := map[string]tftypes.Value{}
	for name := range of.(tftypes.Object).AttributeTypes {
		times[name] = text(within)
	}
	return tftypes.NewValue(of, times)
}
