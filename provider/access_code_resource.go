package provider

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

var (
	_ resource.ResourceWithIdentity       = (*accessCodeResource)(nil)
	_ resource.ResourceWithImportState    = (*accessCodeResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*accessCodeResource)(nil)
	_ resource.ResourceWithValidateConfig = (*accessCodeResource)(nil)
)

type accessCodeResource struct{ connectedResource }

func newAccessCodeResource() resource.Resource { return &accessCodeResource{} }

func (r *accessCodeResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_access_code"
}

func (r *accessCodeResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	const action = "Create access code"
	var plan accessCodeModel
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

	answer, err := api.Call[api.AccessCodeCreatedResponse](ctx, client.CreateAccessCode, plan.createRequest())
	if err == nil {
		err = hasID("access code", answer.AccessCode.AccessCodeID)
	}
	if err != nil {
		reportCreate(&resp.Diagnostics, action, err)
		return
	}
	// From here on there is a code: should anything fail, Terraform must know of it to delete it.
	created := plan.applied(&answer.AccessCode)
	resp.Diagnostics.Append(r.rememberWorkspace(ctx, resp.Private, answer.AccessCode.WorkspaceID)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, created)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, created.identity())...)

	if !r.waitsForSet(&plan) {
		return
	}
	code, err := awaitLock(ctx, client, answer.AccessCode.AccessCodeID, answer.ActionAttempt)
	if errors.Is(err, context.Canceled) {
		warnInterrupted(&resp.Diagnostics, action, answer.AccessCode.AccessCodeID)
		return
	}
	if err != nil {
		reportNext(&resp.Diagnostics, action, hiding(err, created.Code.ValueString(), plan.pin()), creationAdvice(err, answer.AccessCode.AccessCodeID))
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, plan.applied(code))...)
}

func (r *accessCodeResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	const action = "Read access code"
	var model accessCodeModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	// Also for what turns out to be gone: the framework insists, and Terraform before 1.12 stores no identity.
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
	imported := model.Type.IsNull()
	if !imported && r.readsLater(&resp.Diagnostics) {
		return
	}
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	deviceID := model.DeviceID.ValueString()
	managed, unmanaged, err := r.refreshCode(ctx, client, deviceID, model.AccessCodeID.ValueString())
	switch {
	case err != nil:
		report(&resp.Diagnostics, action, err)
		return
	case managed != nil:
		model.fill(managed)
		resp.Diagnostics.Append(r.rememberWorkspace(ctx, resp.Private, managed.WorkspaceID)...)
	case unmanaged != nil:
		model.fillUnmanaged(unmanaged)
		resp.Diagnostics.Append(r.rememberWorkspace(ctx, resp.Private, unmanaged.WorkspaceID)...)
	case imported:
		refuse(&resp.Diagnostics, actionImport, nothingToImport(ctx, client, deviceID, model.AccessCodeID.ValueString()))
		return
	default:
		if r.mayForget(ctx, req.Private, action, &resp.Diagnostics) {
			resp.State.RemoveResource(ctx)
		}
		return
	}
	if model.DeviceID.ValueString() != deviceID {
		refuse(&resp.Diagnostics, action, fmt.Sprintf("The code %s is on the device %s, not on %s. Import it as %[2]s/%[1]s.",
			model.AccessCodeID.ValueString(), model.DeviceID.ValueString(), deviceID))
		return
	}
	if imported {
		resp.Diagnostics.Append(noteImport(ctx, resp.Private)...)
	}
	if managed != nil {
		r.warnOfTrouble(ctx, &resp.Diagnostics, managed, pinsOf(managed.Code, &model)...)
		doubted := doubtsChange(ctx, req.Private, &resp.Diagnostics)
		resp.Diagnostics.Append(doubtChange(ctx, resp.Private, model.staysInDoubt(managed, doubted))...)
	}
	refused := unmanaged != nil && unmanaged.CannotBeManaged
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, cannotBeManagedKey, fmt.Append(nil, refused))...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

func (r *accessCodeResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	const action = "Update access code"
	var plan, state accessCodeModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, state.identity())...)
	resp.Diagnostics.Append(plan.readWriteOnly(ctx, req.Config)...)
	timeout, diags := plan.Timeouts.Update(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	// These are true at once, should the rest fail: the next destroy goes by the one, and the next plan by the others.
	state.Timeouts, state.Keepers = plan.Timeouts, plan.Keepers
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	if !state.IsManaged.ValueBool() {
		code, err := convertPlanned(ctx, client, &plan, &state)
		if err != nil {
			reportNext(&resp.Diagnostics, "Convert access code to managed", hiding(err, plan.pin(), state.Code.ValueString()), conversionAdvice(err))
			return
		}
		// Should the rest fail, the next apply must not convert again, nor replace the code for the key that it has lost.
		state.CommonCodeKey = plan.CommonCodeKey
		state.fill(code)
		resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	}
	unseen, former := plan.writesOnly() || state.writesOnly(), state.Code.ValueString() // whether the state will not show which PIN the server has
	doubted := doubtsChange(ctx, req.Private, &resp.Diagnostics)
	if doubted {
		var configured types.String
		resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("code"), &configured)...)
		state.askAgain(plan.writesOnly() || !configured.IsNull())
	}
	code, err := changePlanned(ctx, client, &plan, &state, r.waitsForSet(&plan))
	resp.Diagnostics.Append(doubtChange(ctx, resp.Private, wasTried(err) || (unseen || doubted) && err != nil)...)
	if err != nil {
		reportNext(&resp.Diagnostics, action, hiding(err, plan.pin(), former), changeAdvice(err))
		return
	}
	if code.Code != nil && isSet(plan.Code) && *code.Code != plan.Code.ValueString() {
		warnAt(&resp.Diagnostics, path.Root("code"), "The access code has another PIN than was planned",
			"Where its vendor chooses the PINs, and changes no code that is on a lock, a code that is changed gets another one. The state, and what depends on it, has the former PIN "+
				"until the next refresh: run `terraform apply -refresh-only`.")
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, plan.applied(code))...)
}

func (r *accessCodeResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var model accessCodeModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	timeout, diags := model.Timeouts.Delete(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	deviceID, id := model.DeviceID.ValueString(), model.AccessCodeID.ValueString()
	switch err := deleteCode(ctx, client, deviceID, id); {
	case errors.Is(err, errGone):
		r.mayForget(ctx, req.Private, "Delete access code", &resp.Diagnostics)
	case err != nil:
		// Terraform does not say which resource an error of a destroy is about.
		text := fmt.Sprintf("the access code %s %q on the device %s: %v", id, model.Name.ValueString(), deviceID, err)
		reportNext(&resp.Diagnostics, "Delete access code", hiding(&explained{text, err}, model.Code.ValueString()), deletionAdvice(err))
	}
}

// waitsForSet says whether to wait until the lock has the code.
func (r *accessCodeResource) waitsForSet(plan *accessCodeModel) bool {
	if plan.WaitForSet.IsNull() {
		return r.waitForSet
	}
	return plan.WaitForSet.ValueBool()
}

// creationAdvice is what can be done when the lock has not taken a new code.
func creationAdvice(err error, id string) string {
	advice := "The access code " + id + " exists and is marked as tainted: the next apply deletes it and creates another. "
	if accountIsDisconnected(err) {
		return logInAgain + "Then the server sets the code. " + advice + "To keep it, run `terraform untaint` on the resource."
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return advice + "If the lock is offline or slow, the server keeps trying: to keep the code, run `terraform untaint` on the resource " +
			"when it is set. For a lock that always takes longer, raise `timeouts { create }`; for a server whose codes never get to `set`, " +
			"set `wait_for_set = false`."
	}
	return advice + "Correct what the message names first."
}

// changeAdvice is what can be done when the lock has not taken a change.
func changeAdvice(err error) string {
	if accountIsDisconnected(err) {
		return logInAgain + "The change stays with the server, which then makes it: nothing has to be repeated."
	}
	if keepsTrying(err) {
		return "The change stays with the server, which keeps trying: nothing has to be repeated when the lock is back. " +
			"For a lock that always takes longer, raise `timeouts { update }`; for a server whose codes never get to `set`, set `wait_for_set = false`."
	}
	if wasTried(err) {
		return stillOpens + " Correct what the message names first; the next apply sends the change again."
	}
	return nextStep(err)
}

// stillOpens is what a change that was not made means for a door.
const stillOpens = "The lock may have the code as it was before: a PIN that was to be replaced may still open the door."

// deletionAdvice is what can be done when a code has not gone.
func deletionAdvice(err error) string {
	switch {
	case isOfType(err, cannotDeleteOffline):
		return letGo + "\n\nIf it is to be replaced only because it is marked as tainted, run `terraform untaint` on the resource instead."
	case errors.Is(err, errCannotBeDeleted):
		return "Delete it in the app of the lock, or take it out of Terraform with a removed block and `destroy = false`."
	case accountIsDisconnected(err):
		return logInAgain + "Until then the PIN opens the door. The server keeps trying; run Terraform again afterwards."
	case keepsTrying(err):
		return mayStillOpen + raiseDelete
	default:
		return nextStep(err)
	}
}

// What can be done about a deletion that has not ended in time.
const (
	mayStillOpen = "The PIN may still open the door. The server keeps trying; run Terraform again when the lock is online. "
	raiseDelete  = "For a lock that always takes longer, raise `timeouts { delete }`: a destroy goes by the state, so that counts only once it is applied."
)
