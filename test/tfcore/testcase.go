package tfcore

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	tfjson "github.com/hashicorp/terraform-json"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
)

// Test runs a test case of the testing library in the order in which that library runs the terraform command: for a
// configuration a plan, an apply, and two plans that must be empty; at the end a destroy.
func Test(t *testing.T, name string, factory Factory, test resource.TestCase) {
	t.Helper()
	c := New(t, name, factory)
	r := &runner{Core: c, t: t}
	defer r.finish(test)
	for i, step := range test.Steps {
		if step.PreConfig != nil {
			step.PreConfig()
		}
		err := r.step(step)
		switch {
		case step.ExpectError == nil && err != nil:
			t.Fatalf("step %d of %d: %v", i+1, len(test.Steps), err)
		case step.ExpectError != nil && err == nil:
			t.Fatalf("step %d of %d: an error was expected, but there was none", i+1, len(test.Steps))
		case step.ExpectError != nil && !step.ExpectError.MatchString(err.Error()):
			t.Fatalf("step %d of %d: expected an error with pattern %s, and it says:\n%v", i+
				1, len(test.Steps), step.ExpectError, err)
		}
	}
}

type runner struct {
	*Core
	t      *testing.T
	config string // of the last step that had one
}

func (r *runner) finish(test resource.TestCase) {
	r.t.Helper()
	last := r.Legacy()
	if len(r.state) > 0 {
		plan, diags := r.Plan(r.config, Options{Destroy: true})
		if err := diags.err(); err != nil {
			r.t.Errorf("plan the destroy after the test: %v", err)
			return
		}
		if err := r.Apply(r.config, plan).err(); err != nil {
			r.t.Errorf("destroy after the test: %v", err)
		}
	}
	if test.CheckDestroy != nil {
		if err := test.CheckDestroy(last); err != nil {
			r.t.Errorf("after the destroy: %v", err)
		}
	}
}

func (r *runner) step(s resource.TestStep) error {
	r.t.Helper()
	if field := unknownField(s); field != "" {
		r.t.Fatal(unsupportedError{"the field " + field + " of a step"})
	}
	switch {
	case s.ImportState:
		return r.imports(s)
	case s.RefreshState:
		return r.refreshes(s)
	}
	r.config = s.Config
	if !s.PlanOnly {
		if err := r.applies(s); err != nil {
			return err
		}
	}
	plan, err := r.plans(Options{Destroy: s.Destroy, SkipRefresh: true}, s.ConfigPlanChecks.PostApplyPreRefresh)
	if err != nil {
		return err
	}
	if !plan.IsEmpty() && !s.ExpectNonEmptyPlan {
		return fmt.Errorf("the plan without refresh is not empty:\n%v", plan)
	}
	if plan, err = r.plans(Options{
		Destroy:     s.Destroy,
		SkipRefresh: s.Destroy && s.PreventPostDestroyRefresh,
	}, s.ConfigPlanChecks.PostApplyPostRefresh); err != nil {
		return err
	}
	if plan.IsEmpty() == s.ExpectNonEmptyPlan {
		return fmt.Errorf("the plan with refresh is not as expected (empty: %t):\n%v", !s.ExpectNonEmptyPlan, plan)
	}
	return nil
}

// unknownField is a field of a step that is set and would have no effect here; "" if there is none.
func unknownField(s resource.TestStep) string {
	known := []string{
		"Config",
		"PreConfig",
		"ExpectError",
		"Destroy",
		"PlanOnly",
		"ExpectNonEmptyPlan",
		"PreventPostDestroyRefresh",
		"Check",
		"ConfigPlanChecks",
		"ConfigStateChecks",
		"RefreshState",
		"RefreshPlanChecks",
		"ResourceName",
		"ImportState",
		"ImportStateKind",
		"ImportStateId",
		"ImportStateIdFunc",
		"ImportStatePersist",
	}
	if s.ImportStateKind == resource.ImportBlockWithID {
		known = append(known, "ImportPlanChecks")
	} else {
		known = append(
			known,
			"ImportStateCheck",
			"ImportStateVerify",
			"ImportStateVerifyIgnore",
			"ImportStateVerifyIdentifierAttribute",
		)
	}
	if s.ImportStateKind == resource.ImportBlockWithResourceIdentity {
		return "ImportStateKind"
	}
	fields := reflect.ValueOf(s)
	for i := range fields.NumField() {
		if name := fields.Type().Field(i).Name; !fields.Field(i).IsZero() && !slices.Contains(known, name) {
			return name
		}
	}
	return ""
}

func (r *runner) plans(o Options, checks []plancheck.PlanCheck) (*Plan, error) {
	plan, diags := r.Plan(r.config, o)
	if err := diags.err(); err != nil {
		return nil, err
	}
	var failures []error
	for _, check := range checks {
		var answer plancheck.CheckPlanResponse
		check.CheckPlan(r.t.Context(), plancheck.CheckPlanRequest{Plan: plan.JSON()}, &answer)
		failures = append(failures, answer.Error)
	}
	return plan, errors.Join(failures...)
}

func (r *runner) applies(s resource.TestStep) error {
	plan, err := r.plans(Options{Destroy: s.Destroy}, s.ConfigPlanChecks.PreApply)
	if err != nil {
		return err
	}
	before := r.Legacy()
	if err := r.Apply(r.config, plan).err(); err != nil {
		return err
	}
	if s.Check != nil {
		state := r.Legacy()
		if s.Destroy {
			state = before
		}
		if err := s.Check(state); err != nil {
			return err
		}
	}
	return r.checkState(r.State(), s.ConfigStateChecks)
}

func (r *runner) checkState(state *tfjson.State, checks []statecheck.StateCheck) error {
	var failures []error
	for _, check := range checks {
		var answer statecheck.CheckStateResponse
		check.CheckState(r.t.Context(), statecheck.CheckStateRequest{State: state}, &answer)
		failures = append(failures, answer.Error)
	}
	return errors.Join(failures...)
}

func (r *runner) refreshes(s resource.TestStep) error {
	if err := r.Refresh(r.config).err(); err != nil {
		return err
	}
	if s.Check != nil {
		if err := s.Check(r.Legacy()); err != nil {
			return err
		}
	}
	plan, err := r.plans(Options{}, s.RefreshPlanChecks.PostRefresh)
	if err == nil && !plan.IsEmpty() && !s.ExpectNonEmptyPlan {
		return fmt.Errorf("the plan after the refresh is not empty:\n%v", plan)
	}
	return err
}

func (r *runner) imports(s resource.TestStep) error {
	config := cmp.Or(s.Config, r.config)
	id := s.ImportStateId
	if s.ImportStateIdFunc != nil {
		var err error
		if id, err = s.ImportStateIdFunc(r.Legacy()); err != nil {
			return err
		}
	}
	into := r.Core
	if !s.ImportStatePersist {
		into = New(r.t, r.name, r.factory)
	} else {
		r.config = config
	}
	if s.ImportStateKind == resource.ImportBlockWithID {
		return r.importsByBlock(into, s, config, id)
	}
	if err := into.Import(config, s.ResourceName, id).err(); err != nil {
		return err
	}
	if s.ImportStateCheck != nil {
		var states []*terraform.InstanceState
		for _, o := range into.state {
			states = append(states, o.instance())
		}
		if err := s.ImportStateCheck(states); err != nil {
			return err
		}
	}
	if s.ImportStateVerify {
		return verify(s, r.state[s.ResourceName].instance(), into.state[s.ResourceName].instance())
	}
	return nil
}

func (r *runner) importsByBlock(into *Core, s resource.TestStep, config, id string) error {
	before := r.config
	defer func() { r.config = before }()
	other := &runner{
		Core:   into,
		t:      r.t,
		config: config + fmt.Sprintf("\nimport {\n  to = %s\n  id = %q\n}\n", s.ResourceName, id),
	}
	plan, err := other.plans(Options{}, s.ImportPlanChecks.PreApply)
	if err == nil && !plan.IsEmpty() && !s.ExpectNonEmptyPlan {
		return fmt.Errorf("importing %s would change it:\n%v", s.ResourceName, plan)
	}
	return err
}

// verify compares the imported and the original state, without timeouts.
func verify(s resource.TestStep, before, imported *terraform.InstanceState) error {
	leftOut := func(name string) bool {
		for _, ignored := range s.ImportStateVerifyIgnore {
			if name == ignored || strings.HasPrefix(name, ignored+".") {
				return true
			}
		}
		return name == "timeouts" || strings.HasPrefix(name, "timeouts.") || strings.HasSuffix(name, ".%")
	}
	was, is := maps.Clone(before.Attributes), maps.Clone(imported.Attributes)
	maps.DeleteFunc(was, func(name, _ string) bool { return leftOut(name) })
	maps.DeleteFunc(is, func(name, _ string) bool { return leftOut(name) })
	if maps.Equal(was, is) {
		return nil
	}
	var differ []string
	for name := range was {
		if was[name] != is[name] {
			differ = append(differ, name)
		}
	}
	for name := range is {
		if _, there := was[name]; !there {
			differ = append(differ, name)
		}
	}
	return fmt.Errorf("the imported state differs in %v", differ)
}
