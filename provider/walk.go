package provider

import (
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Terraform plans twice: first in the plan, and again during apply, when all values are known. A value that was not
// known in the plan may then require a replacement that the plan has not shown. Terraform rejects it as a bug of the
// provider, so the provider rejects it first and says what to do. The protocol does not name the two plans. Terraform
// configures the provider for each of them, and applies changes only after the second one.

// walk is what Terraform has requested since it configured the provider.
type walk struct {
	read    atomic.Bool // any resource: this is the first plan
	applied atomic.Bool // any change: this is an apply
	loaded  atomic.Bool // any resource of the state

	mu    sync.Mutex
	codes map[string]bool // access codes in the state, or imported into it
}

func (w *walk) begin() {
	w.read.Store(false)
	w.applied.Store(false)
	w.loaded.Store(false)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.codes = nil
}

// know records that a resource of the state has these access codes.
func (w *walk) know(ids ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.codes == nil {
		w.codes = map[string]bool{}
	}
	for _, id := range ids {
		w.codes[id] = true
	}
}

// knows reports whether a resource of the state has an access code, as far as Terraform has read the state.
func (w *walk) knows(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.codes[id]
}

// namesLostCodes reports whether this is a plan, whose creations may be of codes that the lock has already. An apply
// does not load the resources that it leaves as they are or has deposed, so it does not know their codes. Before its
// first change it looks like the plan of an empty state. A code with keepers then counts as a rotation in an apply.
func (w *walk) namesLostCodes(hasKeepers bool) bool {
	return !w.applied.Load() && (w.read.Load() || !w.loaded.Load() && !hasKeepers)
}

// knowState records the access codes of a resource in the state.
func (w *walk) knowState(state *tfprotov6.RawState) {
	w.loaded.Store(true)
	var attributes any
	if state != nil && json.Unmarshal(state.JSON, &attributes) == nil {
		w.know(codesIn(attributes)...)
	}
}

// codesIn returns the identifiers of access codes at any depth.
func codesIn(value any) (ids []string) {
	switch value := value.(type) {
	case map[string]any:
		if id, ok := value["access_code_id"].(string); ok {
			ids = append(ids, id)
		}
		for _, nested := range value {
			ids = append(ids, codesIn(nested)...)
		}
	case []any:
		for _, nested := range value {
			ids = append(ids, codesIn(nested)...)
		}
	}
	return ids
}

// unplannedReplacement is the summary of an error about a replacement that the plan has not shown.
const unplannedReplacement = "Replacement that the plan did not show"

// planAgain says what to do if an attribute has turned out to require a replacement.
func planAgain(attribute string) string {
	fact := "`" + attribute + "` turned out to have another value than in the state."
	if attribute == "device_id" {
		fact = "The lock of this code turned out to be another one."
	}
	return fact + " This resource was not changed. Run `terraform apply` again: the next plan shows the replacement."
}

// checkReplacement rejects a replacement that is planned during apply. Before the first change of an apply that
// follows no refresh, it cannot tell the two plans apart, and only warns.
func (w *walk) checkReplacement(r *tfprotov6.PlanResourceChangeRequest, resp *tfprotov6.PlanResourceChangeResponse) {
	if isNew, err := r.PriorState.IsNull(); err != nil || isNew || len(resp.RequiresReplace) == 0 || w.read.Load() {
		return
	}
	at := resp.RequiresReplace[0]
	name, _ := at.Steps()[0].(tftypes.AttributeName)
	d := &tfprotov6.Diagnostic{
		Severity:  tfprotov6.DiagnosticSeverityError,
		Summary:   unplannedReplacement,
		Detail:    planAgain(string(name)),
		Attribute: at,
	}
	if !w.applied.Load() {
		d.Severity, d.Summary = tfprotov6.DiagnosticSeverityWarning, "Replacement without a refresh"
		d.Detail = "This plan replaces the resource because of a new value of `" + string(
			name,
		) + "`. If an apply then " +
			"reports an inconsistent final plan, run `terraform apply` again: the next plan shows the replacement."
	}
	resp.Diagnostics = append(resp.Diagnostics, d)
}
