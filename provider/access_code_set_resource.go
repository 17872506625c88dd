package provider

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

var (
	_ resource.ResourceWithIdentity       = (*accessCodeSetResource)(nil)
	_ resource.ResourceWithImportState    = (*accessCodeSetResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*accessCodeSetResource)(nil)
	_ resource.ResourceWithValidateConfig = (*accessCodeSetResource)(nil)
)

type accessCodeSetResource struct{ connectedResource }

func newAccessCodeSetResource() resource.Resource { return &accessCodeSetResource{} }

func (r *accessCodeSetResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_access_code_set"
	resp.ResourceBehavior.MutableIdentity = true // locks come and go
}

const (
	actionRead   = "Read access code"
	actionPut    = "Set the access code on a lock"
	actionRemove = "Take the access code off a lock"
)

// Create puts the code on every lock. Where some take it and others do not, that is a warning: an error would
// taint the resource, and the next apply would take the code off the locks that have it.
func (r *accessCodeSetResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan accessCodeSetModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(plan.readWriteOnly(ctx, req.Config)...)
	timeout, diags := plan.Timeouts.Create(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	if plan.Code.IsUnknown() {
		pin, err := sharedPIN(ctx, client, plan.devices(ctx))
		if err != nil {
			report(&resp.Diagnostics, "Choose a PIN for all locks", err)
			return
		}
		plan.Code = types.StringValue(pin)
	}
	results := onEach(plan.devices(ctx), func(deviceID string) done { return plan.put(ctx, r.connection, deviceID) })
	codes, failures := map[string]lockCode{}, map[string]done{}
	exists := false
	for deviceID, result := range results {
		codes[deviceID] = result.code
		exists = exists || !result.code.AccessCodeID.IsNull()
		if result.err != nil {
			failures[deviceID] = result
		}
	}
	add := refuseAt
	if exists && (len(failures) < len(codes) || errors.Is(ctx.Err(), context.Canceled)) {
		add = warnAt
	}
	for _, deviceID := range slices.Sorted(maps.Keys(failures)) {
		plan.reportLock(ctx, client, &resp.Diagnostics, add, exists, actionPut, deviceID, failures[deviceID])
	}
	if exists {
		resp.Diagnostics.Append(r.rememberWorkspace(ctx, resp.Private, "")...)
		resp.Diagnostics.Append(rememberDoubts(ctx, resp.Private, results)...)
		resp.Diagnostics.Append(plan.setCodes(ctx, codes)...)
		plan.CodeWO = types.StringNull() // what is written only is never kept
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
		resp.Diagnostics.Append(resp.Identity.Set(ctx, plan.identity(ctx))...)
	}
}

func (r *accessCodeSetResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var model accessCodeSetModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	// Also for what turns out to be gone: the framework insists, and Terraform before 1.12 stores no identity.
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity(ctx))...)
	imported := model.Name.IsNull()
	if !imported && r.readsLater(&resp.Diagnostics) {
		return
	}
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	codes := model.codes(ctx)
	found := onEach(slices.Sorted(maps.Keys(codes)), func(deviceID string) foundCode {
		return look(ctx, r.refreshCode, client, deviceID, codes[deviceID].AccessCodeID.ValueString())
	})
	nothing := imported
	for _, deviceID := range named(ctx, req.Private, codes, &resp.Diagnostics) {
		one := found[deviceID]
		if one.err != nil {
			report(&resp.Diagnostics, actionRead, one.err)
			return
		}
		if nothing && !one.nothing() {
			model.adopt(one)
			nothing = false
		}
	}
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, namedKey, nil)...)
	if nothing { // to import
		var wrong []string
		for _, deviceID := range slices.Sorted(maps.Keys(codes)) {
			if id := codes[deviceID].AccessCodeID.ValueString(); id != "" {
				wrong = append(wrong, nothingToImport(ctx, client, deviceID, id))
			}
		}
		refuse(&resp.Diagnostics, "Import access code set", strings.Join(append(wrong, "Nothing was imported."), "\n"))
		return
	}
	for deviceID, one := range found {
		switch {
		case one.managed != nil:
			was := codes[deviceID].AsDeclared // null during an import
			doubted := was.Equal(types.BoolValue(false)) && model.on("", "").staysInDoubt(one.managed, true)
			codes[deviceID] = model.managed(one.managed).unless(doubted)
		case one.unmanaged != nil:
			codes[deviceID] = model.unmanaged(one.unmanaged)
		case !codes[deviceID].AccessCodeID.IsNull():
			if !imported && !r.mayForget(ctx, req.Private, actionRead, &resp.Diagnostics) {
				return
			}
			codes[deviceID] = noCode()
		}
	}
	resp.Diagnostics.Append(r.rememberWorkspace(ctx, resp.Private, "")...)
	r.warnOfTroubles(ctx, &resp.Diagnostics, &model, found)
	resp.Diagnostics.Append(model.setCodes(ctx, codes)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity(ctx))...)
}

// Update works on the locks that are new, gone or not as declared, and leaves the others alone.
func (r *accessCodeSetResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state accessCodeSetModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(plan.readWriteOnly(ctx, req.Config)...)
	timeout, diags := plan.Timeouts.Update(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	state.Timeouts, state.Keepers = plan.Timeouts, plan.Keepers // are true also if the rest fails
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, state.identity(ctx))...)
	codes, wanted := state.codes(ctx), plan.devices(ctx)
	if plan.Code.IsUnknown() && !plan.learn(ctx, client, &state, codes) {
		refuse(&resp.Diagnostics, actionPut, "The PIN of the set is not known, because the server does not tell it. Write it into `code`.")
		return
	}
	unsettled := state.find(ctx, client, codes, state.doubts(ctx, req.Private, &resp.Diagnostics), &plan)
	r.giveUpOn(ctx, req.Private, unsettled, &resp.Diagnostics)
	if plan.isSoughtOtherwise(&state) && plan.refuseUnsought(ctx, client, unsettled, &resp.Diagnostics) {
		return
	}
	work := slices.DeleteFunc(slices.Clone(wanted), func(deviceID string) bool { return !plan.todo(&state, codes, deviceID) })
	for deviceID := range codes {
		if !slices.Contains(wanted, deviceID) {
			work = append(work, deviceID)
		}
	}
	results := onEach(work, func(deviceID string) done {
		code, known := codes[deviceID]
		switch {
		case unsettled[deviceID].err != nil:
			return unsettled[deviceID]
		case !slices.Contains(wanted, deviceID):
			return plan.remove(ctx, r.connection, deviceID, code, unsettled[deviceID].doubt)
		case known && !code.AccessCodeID.IsNull():
			return plan.bring(ctx, r.connection, deviceID, code.AccessCodeID.ValueString())
		default:
			result := plan.put(ctx, r.connection, deviceID)
			result.left = unsettled[deviceID].doubt
			if unsettled[deviceID].gone && result.err != nil { // the lock may come back
				result.left, result.doubt = nil, unsettled[deviceID].doubt
			}
			return result
		}
	})
	r.forget(ctx, req.Private, results, &resp.Diagnostics)
	r.settle(ctx, client, &plan, codes, results, &resp.Diagnostics)
	resp.Diagnostics.Append(rememberDoubts(ctx, resp.Private, results)...)
	plan.CodeWO = types.StringNull() // what is written only is never kept
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, plan.identity(ctx))...)
}

// learn takes over the PIN that the set has, from the state or from the codes on the locks.
func (m *accessCodeSetModel) learn(ctx context.Context, client *api.Client, state *accessCodeSetModel, codes map[string]lockCode) bool {
	m.Code = state.Code
	for _, deviceID := range slices.Sorted(maps.Keys(codes)) {
		if m.Code.ValueString() != "" {
			break
		}
		if found := look(ctx, findCode, client, deviceID, codes[deviceID].AccessCodeID.ValueString()); found.managed != nil {
			m.Code = types.StringPointerValue(found.managed.Code)
		}
	}
	return m.Code.ValueString() != ""
}

// todo says whether there is work on a lock of the plan.
func (m *accessCodeSetModel) todo(state *accessCodeSetModel, codes map[string]lockCode, deviceID string) bool {
	code, known := codes[deviceID]
	return !known || !code.AsDeclared.ValueBool() || isBeingDeleted(code.Status) || m.changes(state)
}

// forget takes codes that the server did not know for removed, unless the key belongs to another workspace, which it
// reports: then they stay in the set. The time may be up by then.
func (r *accessCodeSetResource) forget(ctx context.Context, private privateState, results map[string]done, diags *diag.Diagnostics) {
	ctx, cancel := lastLook(ctx)
	defer cancel()
	may := sync.OnceValue(func() bool { return r.mayForget(ctx, private, actionRemove, diags) })
	for deviceID, result := range results {
		if errors.Is(result.err, errGone) {
			results[deviceID] = done{code: result.code, gone: may()}
		}
	}
}

// giveUpOn has the code of a lost creation not be looked for where the server does not know the lock, unless the key belongs to another
// workspace: others are not to wait for a lock that has left.
func (r *accessCodeSetResource) giveUpOn(ctx context.Context, private privateState, unsettled map[string]done, diags *diag.Diagnostics) {
	ctx, cancel := lastLook(ctx)
	defer cancel()
	may := sync.OnceValue(func() bool { return r.mayForget(ctx, private, actionRemove, diags) })
	for deviceID, result := range unsettled {
		if api.IsNotFound(result.err) && may() {
			result.err, result.gone = nil, true
			unsettled[deviceID] = result
		}
	}
}

// settle takes what came of the work on locks into the model, and reports what failed. A lock whose code could not be
// removed stays in the set, so that the next plan removes it.
func (r *accessCodeSetResource) settle(ctx context.Context, client *api.Client, model *accessCodeSetModel, codes map[string]lockCode, results map[string]done, diags *diag.Diagnostics) {
	wanted := model.devices(ctx)
	for _, deviceID := range slices.Sorted(maps.Keys(results)) {
		result := results[deviceID]
		if result.left != nil {
			model.warnOfLost(ctx, client, diags, deviceID, result)
		}
		if result.gone {
			delete(codes, deviceID)
			continue
		}
		codes[deviceID] = result.code
		if result.err != nil {
			action := actionPut
			if !slices.Contains(wanted, deviceID) {
				action = actionRemove
			}
			model.reportLock(ctx, client, diags, refuseAt, true, action, deviceID, result)
		}
	}
	diags.Append(model.setCodes(ctx, codes)...)
	diags.Append(model.setDevices(ctx, codes)...)
}

func (r *accessCodeSetResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var model accessCodeSetModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	timeout, diags := model.Timeouts.Delete(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	codes := model.codes(ctx)
	unsettled := model.find(ctx, client, codes, model.doubts(ctx, req.Private, &resp.Diagnostics), &model)
	r.giveUpOn(ctx, req.Private, unsettled, &resp.Diagnostics)
	results := onEach(slices.Sorted(maps.Keys(codes)), func(deviceID string) done {
		if unsettled[deviceID].err != nil {
			return unsettled[deviceID]
		}
		return model.remove(ctx, r.connection, deviceID, codes[deviceID], unsettled[deviceID].doubt)
	})
	r.forget(ctx, req.Private, results, &resp.Diagnostics)
	model.DeviceIDs = types.SetValueMust(types.StringType, nil)
	r.settle(ctx, client, &model, codes, results, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
	}
}
