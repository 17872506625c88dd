package provider

import (
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

const (
	setType       = "deviceaccess_access_code_set"
	exclusiveType = "deviceaccess_exclusive_access_codes"
)

// codesIdentity is the identity of a set.
func (p *plugin) codesIdentity(codes ...string) *tfprotov6.ResourceIdentityData {
	p.t.Helper()
	list := []tftypes.Value{}
	for _, code := range codes {
		list = append(list, text(code))
	}
	return &tfprotov6.ResourceIdentityData{IdentityData: p.pack(object(p.identities[setType].ValueType(), map[string]tftypes.Value{
		"access_codes": tftypes.NewValue(tftypes.List{ElementType: tftypes.String}, list),
	}))}
}

// codesOf are the codes that the identity of a set names.
func (p *plugin) codesOf(identity *tfprotov6.ResourceIdentityData) (codes []string) {
	p.t.Helper()
	value, err := identity.IdentityData.Unmarshal(p.identities[setType].ValueType())
	var attributes map[string]tftypes.Value
	var list []tftypes.Value
	if err == nil {
		err = value.As(&attributes)
	}
	if err == nil {
		err = attributes["access_codes"].As(&list)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	for _, one := range list {
		var code string
		if err := one.As(&code); err != nil {
			p.t.Fatal(err)
		}
		codes = append(codes, code)
	}
	return codes
}

func TestImportOfASetByIdentityWritesNothingAndItsIdentityFollowsItsLocks(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	f.codes[keeper] = &fakeCode{device: lockA, name: "Nanny", code: "905173846251", managed: true, status: "set"}
	p := f.plugin(t)
	one := lockA + "/" + keeper
	read := p.imports(&tfprotov6.ImportResourceStateRequest{TypeName: setType, Identity: p.codesIdentity(one)})
	if got := p.codesOf(read.NewIdentity); !slices.Equal(got, []string{one}) {
		t.Errorf("the identity names %q", got)
	}
	if state := p.state(setType, read.NewState); state["name"] != "Nanny" || state["code"] != "905173846251" {
		t.Error("the set was not read whole")
	}
	f.expectWrites(t, "after the import")

	locks := tftypes.NewValue(tftypes.Set{ElementType: tftypes.String}, []tftypes.Value{text(lockA), text(lockB)})
	config := object(p.stateType(setType), map[string]tftypes.Value{"device_ids": locks, "name": text("Nanny"), "code": text("905173846251")})
	plan, err := p.server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: setType, PriorState: read.NewState, PriorIdentity: read.NewIdentity, PriorPrivate: read.Private, ProposedNewState: p.pack(config), Config: p.pack(config),
	})
	if err != nil {
		t.Fatal(err)
	}
	p.allow(plan.Diagnostics)
	applied, err := p.server.ApplyResourceChange(t.Context(), &tfprotov6.ApplyResourceChangeRequest{
		TypeName: setType, PriorState: read.NewState, PlannedState: plan.PlannedState, PlannedIdentity: plan.PlannedIdentity,
		PlannedPrivate: plan.PlannedPrivate, Config: p.pack(config),
	})
	if err != nil {
		t.Fatal(err)
	}
	p.allow(applied.Diagnostics)
	f.expectWrites(t, "after the apply", "/access_codes/create")
	var two string
	f.do(func() { id, _ := f.on(lockB); two = lockB + "/" + id })
	if got := p.codesOf(applied.NewIdentity); !slices.Equal(got, []string{one, two}) {
		t.Errorf("the identity names %q", got)
	}
	f.do(func() { clear(f.codes) })
	p = f.plugin(t) // another run, which remembers no list
	gone := p.reads(&tfprotov6.ReadResourceRequest{TypeName: setType, CurrentState: applied.NewState, CurrentIdentity: applied.NewIdentity, Private: applied.Private})
	if got := p.codesOf(gone.NewIdentity); !slices.Equal(got, []string{lockA, lockB}) {
		t.Errorf("when its codes are gone, the identity names %q", got)
	}
}

func TestImportOfASetGoesByTheCodeThatIsNamedFirst(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	f.codes[keeper] = &fakeCode{device: lockA, name: "Nanny", code: "905173846251", managed: true, status: "set"}
	f.codes[first] = &fakeCode{device: lockB, name: "Anna", code: "640297158306", managed: true, status: "set"}
	codes := []string{lockC + "/" + late, lockB + "/" + first, lockA + "/" + keeper} // the first is not there any more
	for form, request := range map[string]*tfprotov6.ImportResourceStateRequest{
		"an ID":       {TypeName: setType, ID: strings.Join(codes, ", ")},
		"an identity": {TypeName: setType, Identity: f.plugin(t).codesIdentity(codes...)},
	} {
		p := f.plugin(t)
		read := p.imports(request)
		if state := p.state(setType, read.NewState); state["name"] != "Anna" || state["code"] != "640297158306" {
			t.Errorf("%s: the set is called %q", form, state["name"])
		}
		if strings.Contains(string(read.Private), namedKey) {
			t.Errorf("%s: the order is kept for good", form)
		}
	}
}

func TestImportByIdentityOfExclusiveCodes(t *testing.T) {
	t.Parallel()
	f := startCrowdedFake(t)
	p := f.plugin(t)
	identity := map[string]string{"device_id": lockA}
	read := p.imports(&tfprotov6.ImportResourceStateRequest{TypeName: exclusiveType, Identity: p.identity(exclusiveType, identity)})
	expectNames(t, "the identity", p.names(exclusiveType, read.NewIdentity), identity)
	f.do(func() { f.devices = nil })
	gone := p.reads(&tfprotov6.ReadResourceRequest{TypeName: exclusiveType, CurrentState: read.NewState, Private: read.Private}) // as an older Terraform has it
	expectNames(t, "the identity of what is gone", p.names(exclusiveType, gone.NewIdentity), identity)
	f.expectWrites(t, "in the end")
}

func TestImportByIdentityThatNamesNothingSaysWhatIsNeeded(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	p := f.plugin(t)
	for want, request := range map[string]*tfprotov6.ImportResourceStateRequest{
		"names no codes":                 {TypeName: setType, Identity: p.codesIdentity()},
		`"x/" is not`:                    {TypeName: setType, Identity: p.codesIdentity("x/")},
		"names a lock again":             {TypeName: setType, Identity: p.codesIdentity("a/b", "a/c")},
		`"" is not the ` + "`device_id`": {TypeName: exclusiveType, Identity: p.identity(exclusiveType, map[string]string{"device_id": ""})},
	} {
		answer, err := p.server.ImportResourceState(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		if len(answer.Diagnostics) != 1 || !strings.Contains(answer.Diagnostics[0].Detail, want) {
			t.Errorf("%q is not said: %v", want, answer.Diagnostics)
		}
	}
}

// imported is a resource as terraform plan has it after an import.
func (p *plugin) imported(typeName, id string) *tfprotov6.ReadResourceResponse {
	p.t.Helper()
	return p.imports(&tfprotov6.ImportResourceStateRequest{TypeName: typeName, ID: id})
}

func TestSetsAndExclusiveCodesAreRefreshedByAListPerLock(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	stocked := f.stock(10, 30, true)
	byLock := map[string][]string{}
	for id, lock := range stocked {
		byLock[lock] = append(byLock[lock], id)
	}
	sets := map[string]string{} // import ID → what it is
	for i := range 30 {
		var codes []string
		for lock, ids := range byLock {
			codes = append(codes, lock+"/"+ids[i])
		}
		sets[strings.Join(codes, ",")] = setType
	}
	for lock := range byLock {
		f.devices = append(f.devices, device(lock, "august_lock", map[string]any{}))
		sets[lock] = exclusiveType
	}
	p := f.plugin(t)
	each(sets, func(id, typeName string) {
		if state := p.state(typeName, p.imported(typeName, id).NewState); state == nil {
			t.Errorf("%s %s is gone", typeName, id)
		}
	})
	if gets, lists := f.count("/access_codes/get"), f.count("/access_codes/list")+f.count("/access_codes/unmanaged/list"); gets != 0 || lists > 20 {
		t.Errorf("%d gets and %d lists", gets, lists)
	}
}
