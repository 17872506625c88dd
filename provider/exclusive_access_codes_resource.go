package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

var (
	_ resource.ResourceWithIdentity       = (*exclusiveAccessCodesResource)(nil)
	_ resource.ResourceWithImportState    = (*exclusiveAccessCodesResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*exclusiveAccessCodesResource)(nil)
	_ resource.ResourceWithValidateConfig = (*exclusiveAccessCodesResource)(nil)
)

type exclusiveAccessCodesResource struct{ connectedResource }

func newExclusiveAccessCodesResource() resource.Resource { return &exclusiveAccessCodesResource{} }

func (r *exclusiveAccessCodesResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_exclusive_access_codes"
}

const (
	actionStock     = "Read the codes on the lock"
	actionExclusive = "Delete other access codes"
)

// Create takes stock of the lock, and deletes nothing: no plan has shown what would go.
func (r *exclusiveAccessCodesResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan exclusiveAccessCodesModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if _, err := deviceByID(ctx, client, plan.DeviceID.ValueString()); err != nil {
		report(&resp.Diagnostics, "Read the lock", err)
		return
	}
	onLock, err := codesOn(ctx, client, plan.DeviceID.ValueString())
	if err != nil {
		report(&resp.Diagnostics, actionStock, err)
		return
	}
	foreign, diags := plan.setForeign(ctx, onLock)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(r.rememberWorkspace(ctx, resp.Private, "")...)
	takeStock(foreign, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, plan.identity())...)
}

func (r *exclusiveAccessCodesResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var model exclusiveAccessCodesModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	// Also for what turns out to be gone: the framework insists, and Terraform before 1.12 stores no identity.
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
	imported := model.AccessCodeIDs.IsNull()
	if !imported && r.readsLater(&resp.Diagnostics) {
		return
	}
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	_, err := deviceByID(ctx, client, model.DeviceID.ValueString())
	if api.IsNotFound(err) {
		if imported || r.mayForget(ctx, req.Private, actionStock, &resp.Diagnostics) {
			resp.State.RemoveResource(ctx)
		}
		return
	}
	var onLock map[string]foreignCode
	if err == nil {
		onLock, err = r.refreshCodesOn(ctx, client, model.DeviceID.ValueString())
	}
	if err != nil {
		report(&resp.Diagnostics, actionStock, err)
		return
	}
	resp.Diagnostics.Append(r.rememberWorkspace(ctx, resp.Private, "")...)
	_, diags := model.setForeign(ctx, onLock)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

// Update deletes what the plan has shown, if it is still there.
func (r *exclusiveAccessCodesResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state exclusiveAccessCodesModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	timeout, diags := plan.Timeouts.Update(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	state.Timeouts = plan.Timeouts // is true also if the rest fails
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	deviceID := plan.DeviceID.ValueString()
	onLock, err := codesOn(ctx, client, deviceID)
	if err != nil {
		report(&resp.Diagnostics, actionStock, err)
		return
	}
	foreign, allowed := state.foreign(ctx), plan.allowed()
	var shown []string // of what is there still
	for id := range plan.DeletedAccessCodes.Elements() {
		_, planned := foreign[id]
		code, there := onLock[id]
		if planned && there && !allowed.has(id, code) {
			shown = append(shown, id)
		}
	}
	left := maps.Clone(onLock)
	for id, err := range onEach(shown, func(id string) error { return deleteCode(ctx, client, deviceID, id) }) {
		if err != nil && !errors.Is(err, errGone) {
			r.reportDeletion(ctx, client, resp, id, foreign[id], deviceID, err)
		}
		delete(left, id)
	}
	if resp.Diagnostics.HasError() {
		return // the state stays, so that the next plan shows what is left
	}
	left, diags = plan.setForeign(ctx, left)
	resp.Diagnostics.Append(diags...)
	still := released(&plan, &state, left)
	warnOfReleased(still, &resp.Diagnostics)
	maps.Copy(foreign, still)
	warnOfNew(left, foreign, resp)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, plan.identity())...)
}

// warnOfNew warns of codes that are on the lock now but were not when it was planned.
func warnOfNew(left, foreign map[string]foreignCode, resp *resource.UpdateResponse) {
	appeared := maps.Clone(left)
	maps.DeleteFunc(appeared, func(id string, _ foreignCode) bool { _, known := foreign[id]; return known })
	if len(appeared) > 0 {
		warnAt(&resp.Diagnostics, path.Root("foreign_access_codes"), "Access codes have appeared since the plan",
			"These codes were not shown by the plan, so they were not deleted:"+listed(appeared)+"\n\nThe next plan shows them.")
	}
}

func (r *exclusiveAccessCodesResource) reportDeletion(ctx context.Context, client *api.Client, resp *resource.UpdateResponse, id string, code foreignCode, deviceID string, err error) {
	next := deletionAdvice(err)
	switch {
	case isOfType(err, cannotDeleteOffline): // it was issued since the last refresh
		next = "It stays on the lock until it ends. The next plan knows that, and leaves it there."
	case keepsTrying(err):
		ctx, cancel := lastLook(ctx)
		defer cancel()
		next = offline(ctx, client, deviceID) + "The PIN may still open the door. The server keeps trying; the next plan shows the code if it is still there. " +
			"For a lock that always takes longer, raise `timeouts { update }`."
	}
	refuseAt(&resp.Diagnostics, path.Root("deleted_access_codes").AtMapKey(id), actionExclusive,
		sentence(fmt.Sprintf("the access code %s %q on the device %s: %v", id, code.Name.ValueString(), deviceID, err))+"\n\n"+next)
}

// Delete deletes no code, as the plan has said.
func (r *exclusiveAccessCodesResource) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {
}
