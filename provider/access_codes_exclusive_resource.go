package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
)

var (
	_ resource.ResourceWithIdentity       = (*accessCodesExclusiveResource)(nil)
	_ resource.ResourceWithImportState    = (*accessCodesExclusiveResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*accessCodesExclusiveResource)(nil)
	_ resource.ResourceWithValidateConfig = (*accessCodesExclusiveResource)(nil)
)

type accessCodesExclusiveResource struct{ connectedResource }

func newAccessCodesExclusiveResource() resource.Resource { return &accessCodesExclusiveResource{} }

func (r *accessCodesExclusiveResource) Metadata(
	_ context.Context,
	req resource.MetadataRequest,
	resp *resource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_access_codes_exclusive"
}

const (
	actionStock     = "read the codes on the lock"
	actionExclusive = "delete other access codes"
	actionWatch     = "import exclusive access codes"
)

// Create reads the codes on the lock and deletes nothing, because no plan has shown what it would delete.
func (r *accessCodesExclusiveResource) Create(
	ctx context.Context,
	req resource.CreateRequest,
	resp *resource.CreateResponse,
) {
	var plan accessCodesExclusiveModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if _, err := deviceByID(ctx, client, plan.DeviceID.ValueString()); err != nil {
		report(&resp.Diagnostics, "read the lock", err)
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
	warnOfNextDeletions(foreign, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, plan.identity())...)
}

func (r *accessCodesExclusiveResource) Read(
	ctx context.Context,
	req resource.ReadRequest,
	resp *resource.ReadResponse,
) {
	var model accessCodesExclusiveModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	// The framework requires an identity even for a deleted resource, and Terraform before 1.12 stores none.
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
	imported := model.ForeignAccessCodes.IsNull()
	if !imported && r.skipsRefresh(&resp.Diagnostics) {
		return
	}
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	var onLock map[string]foreignCode
	_, err := deviceByID(ctx, client, model.DeviceID.ValueString())
	if err == nil {
		onLock, err = r.refreshCodesOn(ctx, client, model.DeviceID.ValueString())
	}
	if err != nil && imported {
		reportImport(&resp.Diagnostics, actionWatch, "device", model.DeviceID.ValueString(), whereLocksAre, err)
		return
	}
	if api.IsNotFound(err) {
		if r.isDeleted(ctx, req.Private, actionStock, &resp.Diagnostics) {
			resp.State.RemoveResource(ctx)
		}
		return
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

// Update deletes the codes that the plan has shown and that are still on the lock.
func (r *accessCodesExclusiveResource) Update(
	ctx context.Context,
	req resource.UpdateRequest,
	resp *resource.UpdateResponse,
) {
	var plan, state accessCodesExclusiveModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	timeout, diags := plan.Timeouts.Update(ctx, r.defaults().update)
	resp.Diagnostics.Append(diags...)
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	state.Timeouts = plan.Timeouts // store this even if the rest fails
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	deviceID := plan.DeviceID.ValueString()
	onLock, err := codesOn(ctx, client, deviceID)
	if err != nil {
		report(&resp.Diagnostics, actionStock, err)
		return
	}
	foreign, allowed := state.foreign(ctx), plan.allowed()
	deletable, _ := partitionByDeletable(foreign)
	var shown []string // codes to delete that are still on the lock
	for id := range plan.DeletedAccessCodes.Elements() {
		_, planned := deletable[id]
		code, there := onLock[id]
		if planned && there && !allowed.allows(id, code) {
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
		return // keep the state, so that the next plan shows the rest
	}
	planned := plan.ForeignAccessCodes
	left, diags = plan.setForeign(ctx, left)
	resp.Diagnostics.Append(diags...)
	if !planned.IsUnknown() {
		plan.ForeignAccessCodes = planned // the next refresh shows codes that have appeared since the plan
	}
	still := released(&plan, &state, left)
	warnOfReleased(still, &resp.Diagnostics)
	maps.Copy(foreign, still)
	warnOfNew(left, foreign, resp)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, plan.identity())...)
}

// warnOfNew warns about codes that appeared on the lock after the plan.
func warnOfNew(left, foreign map[string]foreignCode, resp *resource.UpdateResponse) {
	appeared := maps.Clone(left)
	maps.DeleteFunc(appeared, func(id string, _ foreignCode) bool { _, known := foreign[id]; return known })
	if len(appeared) > 0 {
		diagnostics.WarningAt(&resp.Diagnostics, path.Root("foreign_access_codes"), "Access codes have appeared "+
			"since the plan",
			"The plan did not show these codes, so they were not deleted:"+formatCodes(appeared)+"\n\nThe next plan "+
				"shows them.")
	}
}

func (r *accessCodesExclusiveResource) reportDeletion(
	ctx context.Context,
	client *api.Client,
	resp *resource.UpdateResponse,
	id string,
	code foreignCode,
	deviceID string,
	err error,
) {
	next := deletionAdvice(err)
	switch {
	case isOfType(err, cannotDeleteOffline): // issued after the last refresh
		next = "The code stays on the lock until it ends. The next plan leaves it there."
	case keepsTrying(err):
		ctx, cancel := finalReadContext(ctx)
		defer cancel()
		next = offlineNote(ctx, client, deviceID) + "The PIN may still open the door. The server keeps trying; the " +
			"next plan shows the code if it is still on the lock. For a lock that always takes longer, raise " +
			"`timeouts { update }`."
	}
	diagnostics.FailureAt(
		&resp.Diagnostics,
		path.Root("deleted_access_codes").AtMapKey(id),
		actionExclusive,
		sentence(
			fmt.Sprintf("the access code %s %q on the device %s: %v", id, code.Name.ValueString(), deviceID, err),
		)+"\n\n"+next,
	)
}

// Delete deletes no code, as the plan has warned.
func (r *accessCodesExclusiveResource) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {
}

func (r *accessCodesExclusiveResource) Schema(
	ctx context.Context,
	_ resource.SchemaRequest,
	resp *resource.SchemaResponse,
) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The complete list of the access codes that may be on a lock. Apply deletes all " +
			"others, managed or unmanaged, that the plan has shown.\n\n**This deletes PINs from a door.** The " +
			"resource acts on the lock `device_id` only, and deletes only what a plan has listed in " +
			"`deleted_access_codes`. Creating the resource deletes nothing, and a plan that " +
			"does not know all of `access_code_ids` deletes nothing: the next plan lists what to delete. After an " +
			"import, the first plan lists it. Declare one resource for each lock: two would delete each " +
			"other's codes.\n\nThese codes stay on the lock, with a warning: codes that " +
			"appear between plan and apply, codes that you remove from `access_code_ids` until the plan after " +
			"that, and codes that the vendor does not allow to be deleted, such as issued offline codes. " +
			"Destroying the resource deletes nothing.",
		Attributes: map[string]schema.Attribute{
			"device_id": schema.StringAttribute{
				Required: true,
				MarkdownDescription: "The lock. A change stops watching one lock and starts watching another, and " +
					"deletes nothing.",
				Validators: []validator.String{validators.Identifier{Hint: "Name a lock; the data source " +
					"deviceaccess_devices lists them."}},
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"access_code_ids": schema.SetAttribute{
				Required:    true,
				ElementType: types.StringType,
				MarkdownDescription: "The codes that may be on the lock, together with the backup codes that " +
					"replace them. An empty list deletes all codes.",
				Validators: []validator.Set{
					setvalidator.ValueStringsAre(validators.Identifier{Hint: "Name an access code."}),
				},
			},
			"foreign_access_codes": schema.MapNestedAttribute{
				Computed: true,
				MarkdownDescription: "The codes on the lock that are not in `access_code_ids`, by " +
					"`access_code_id`, as of the last refresh.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"name": schema.StringAttribute{Computed: true, MarkdownDescription: "The name of the " +
						"code. Null if the lock stores none."},
					"is_managed": schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the " +
						"workspace manages the code."},
					"can_be_deleted": schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the " +
						"vendor allows the code to be deleted. An issued offline code cannot be deleted until it " +
						"ends."},
					"backup_of": schema.StringAttribute{Computed: true, MarkdownDescription: "The code that " +
						"this backup code replaces. It may be on the lock while that code may."},
				}},
			},
			"deleted_access_codes": schema.MapAttribute{
				Computed:    true,
				ElementType: types.StringType,
				MarkdownDescription: "In a plan, the codes that apply will delete: the name by `access_code_id`. " +
					"In the state, the codes that the last apply has deleted.",
			},
		},
		Blocks: map[string]schema.Block{
			"timeouts": timeoutsBlock(ctx, timeouts.Opts{
				Update: true,
				UpdateDescription: "How long to wait for the codes to be off the lock, such as `30s` or `10m`. By " +
					"default `5m`.",
			}),
		},
	}
}

// accessCodesExclusiveIdentity identifies the resource in Terraform 1.12 and newer.
type accessCodesExclusiveIdentity struct {
	DeviceID types.String `tfsdk:"device_id"`
}

// IdentitySchema describes accessCodesExclusiveIdentity.
func (r *accessCodesExclusiveResource) IdentitySchema(
	_ context.Context,
	_ resource.IdentitySchemaRequest,
	resp *resource.IdentitySchemaResponse,
) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"device_id": identityschema.StringAttribute{RequiredForImport: true, Description: "The lock."},
	}}
}

func (m *accessCodesExclusiveModel) identity() accessCodesExclusiveIdentity {
	return accessCodesExclusiveIdentity{m.DeviceID}
}

// ImportState accepts the identifier of the lock, or an identity. Read reads its codes.
func (r *accessCodesExclusiveResource) ImportState(
	ctx context.Context,
	req resource.ImportStateRequest,
	resp *resource.ImportStateResponse,
) {
	if r.cannotImport(req, resp) {
		return
	}
	identity := accessCodesExclusiveIdentity{types.StringValue(req.ID)}
	if req.ID == "" {
		resp.Diagnostics.Append(req.Identity.Get(ctx, &identity)...)
	}
	if id := identity.DeviceID.ValueString(); id == "" || strings.ContainsAny(id, "/,") {
		diagnostics.Failure(&resp.Diagnostics, actionWatch, fmt.Sprintf("%q is not the `device_id` of one lock. "+
			whereLocksAre, id))
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("device_id"), identity.DeviceID)...)
}

// whereLocksAre says where to find the identifiers of locks.
const whereLocksAre = "The data source deviceaccess_devices lists the locks."

// ModifyPlan shows the codes that apply will delete. They come from the state only: Terraform plans again during
// apply, and new codes on the lock must not change the result. For the same reason a creation, which has no state,
// deletes nothing.
func (r *accessCodesExclusiveResource) ModifyPlan(
	ctx context.Context,
	req resource.ModifyPlanRequest,
	resp *resource.ModifyPlanResponse,
) {
	if req.Plan.Raw.IsNull() {
		diagnostics.Warning(&resp.Diagnostics, "Other access codes will no longer be deleted",
			"Destroying deviceaccess_access_codes_exclusive deletes no access code: all codes stay on the lock, "+
				"and Terraform stops watching it.")
		return
	}
	var plan accessCodesExclusiveModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	r.warnOfSecond(ctx, &plan, &resp.Diagnostics)
	if req.State.Raw.IsNull() {
		plan.DeletedAccessCodes = types.MapValueMust(types.StringType, map[string]attr.Value{})
		r.announce(ctx, &plan, &resp.Diagnostics)
	} else {
		var state accessCodesExclusiveModel
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
		planDeletions(ctx, &plan, &state, &resp.Diagnostics)
		r.lookForStrays(ctx, &plan, &state, &resp.Diagnostics)
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

// planDeletions plans to delete the codes in the state that the plan does not allow. If the plan may not know all of
// access_code_ids, it deletes nothing: a plan with known values must show each deletion. Terraform plans again during
// apply, when an identifier that was not known has turned out to be one that the state does not have.
func planDeletions(ctx context.Context, plan, state *accessCodesExclusiveModel, diags *diag.Diagnostics) {
	foreign, allowed := state.foreign(ctx), plan.allowed()
	maps.DeleteFunc(foreign, allowed.allows)
	deletable, stuck := partitionByDeletable(foreign)
	warnOfStuck(stuck, diags)
	ids, _ := plan.AccessCodeIDs.ToTerraformValue(ctx)
	switch {
	case len(deletable) > 0 && (!ids.IsFullyKnown() || plan.allowsNewCodes(ctx, state)):
		plan.DeletedAccessCodes, plan.ForeignAccessCodes = codeNames(nil), types.MapUnknown(foreignCodeType)
		diagnostics.WarningAt(diags, path.Root("deleted_access_codes"), "Access codes will be deleted later",
			"Some of `access_code_ids` are not known yet, or were not on the lock at the last refresh, so this plan "+
				"deletes nothing. After this apply, the next plan deletes these codes, except those in "+
				"`access_code_ids`:"+formatCodes(deletable)+"\n\nIf Terraform reports an inconsistent final plan, "+
				"nothing was deleted: run `terraform apply` again.")
	case !ids.IsFullyKnown():
		plan.DeletedAccessCodes = types.MapUnknown(types.StringType)
		plan.ForeignAccessCodes = types.MapUnknown(foreignCodeType)
	case len(deletable) > 0:
		plan.DeletedAccessCodes, plan.ForeignAccessCodes = codeNames(deletable), types.MapUnknown(foreignCodeType)
		diagnostics.WarningAt(
			diags,
			path.Root("deleted_access_codes"),
			"Access codes will be deleted",
			"Applying this plan deletes these codes from the lock "+plan.DeviceID.ValueString()+":"+formatCodes(
				deletable,
			),
		)
	case plan.AccessCodeIDs.Equal(state.AccessCodeIDs):
		plan.DeletedAccessCodes, plan.ForeignAccessCodes = state.DeletedAccessCodes, state.ForeignAccessCodes
	default:
		plan.DeletedAccessCodes, plan.ForeignAccessCodes = codeNames(nil), types.MapUnknown(foreignCodeType)
	}
}

// allowsNewCodes reports whether access_code_ids has a code that the state neither allows nor has found on the lock.
func (m *accessCodesExclusiveModel) allowsNewCodes(ctx context.Context, state *accessCodesExclusiveModel) bool {
	were, foreign := state.allowed(), state.foreign(ctx)
	for id := range m.allowed() {
		if _, onLock := foreign[id]; !onLock && !were[id] {
			return true
		}
	}
	return false
}

// warnOfStuck warns about codes that should be deleted and cannot be.
func warnOfStuck(stuck map[string]foreignCode, diags *diag.Diagnostics) {
	if len(stuck) == 0 {
		return
	}
	next := "Delete them in the lock's app."
	for _, code := range stuck {
		if code.IsManaged.ValueBool() {
			next = "Offline codes open the lock until they end. To disable one earlier, block it with the vendor's " +
				"app. Delete other codes in that app."
		}
	}
	diagnostics.WarningAt(diags, path.Root("foreign_access_codes"), "Access codes that cannot be deleted",
		"The vendor of this lock does not allow these codes to be deleted, so they stay on the "+
			"lock:"+formatCodes(stuck)+"\n\n"+next)
}

// announce warns about the codes that the plan after the creation will delete, if they are known.
func (r *accessCodesExclusiveResource) announce(
	ctx context.Context,
	plan *accessCodesExclusiveModel,
	diags *diag.Diagnostics,
) {
	if r.connection == nil || r.api == nil || plan.DeviceID.IsUnknown() || plan.AccessCodeIDs.IsUnknown() {
		return
	}
	onLock, err := codesOn(ctx, r.api, plan.DeviceID.ValueString())
	if err != nil {
		warnOfUnreadable(diags, err)
		return
	}
	foreign, _ := plan.setForeign(ctx, onLock)
	plan.ForeignAccessCodes = types.MapUnknown(foreignCodeType)
	warnOfNextDeletions(foreign, diags)
	plan.warnOfStrays(onLock, diags)
}

// warnOfUnreadable warns that the codes on a lock cannot be read. The creation fails for the same reason. An error
// would also fail plans that only destroy: Terraform makes this plan on the way to a destroy.
func warnOfUnreadable(diags *diag.Diagnostics, err error) {
	next := nextStep(err)
	if api.IsNotFound(err) {
		next = "If the lock was removed from its account, remove this resource from the configuration. Otherwise " +
			"check `device_id`, and that the API key belongs to the right workspace."
	}
	diagnostics.WarningAt(diags, path.Root("device_id"), "The codes on the lock cannot be read",
		sentence(err.Error())+" Applying this plan will fail.\n\n"+next)
}

// exclusiveLists records the allowed codes that a run plans, by lock.
type exclusiveLists struct {
	mu     sync.Mutex
	byLock map[string]string
}

// conflicts reports whether the run has planned other codes for the lock. Terraform plans a resource several times
// in a run, always with the same codes.
func (e *exclusiveLists) conflicts(deviceID string, ids []string) bool {
	slices.Sort(ids)
	list := strings.Join(ids, ",")
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byLock == nil {
		e.byLock = map[string]string{}
	}
	other, planned := e.byLock[deviceID]
	e.byLock[deviceID] = list
	return planned && other != list
}

// warnOfSecond warns that another resource lists other codes for the same lock.
func (r *accessCodesExclusiveResource) warnOfSecond(
	ctx context.Context,
	plan *accessCodesExclusiveModel,
	diags *diag.Diagnostics,
) {
	ids, _ := plan.AccessCodeIDs.ToTerraformValue(ctx)
	if r.connection == nil || plan.DeviceID.IsUnknown() || !ids.IsFullyKnown() {
		return
	}
	if r.exclusives.conflicts(plan.DeviceID.ValueString(), slices.Collect(maps.Keys(plan.allowed()))) {
		diagnostics.WarningAt(diags, path.Root("device_id"), "Two resources list the access codes of one lock",
			"Another deviceaccess_access_codes_exclusive lists other codes for the lock "+
				plan.DeviceID.ValueString()+". Each of the two deletes the codes that only the other one "+
				"lists.\n\nDeclare one resource for the lock, with all codes in its `access_code_ids`.")
	}
}

// warnOfNextDeletions warns about the codes that the next plan will delete.
func warnOfNextDeletions(foreign map[string]foreignCode, diags *diag.Diagnostics) {
	if deletable, _ := partitionByDeletable(foreign); len(deletable) > 0 {
		diagnostics.WarningAt(diags, path.Root("access_code_ids"), "Other access codes are on the lock",
			"These codes are not in `access_code_ids`:"+formatCodes(deletable)+"\n\nThis apply deletes none of them. "+
				"The next plan lists them in `deleted_access_codes`, and applying that plan deletes them from the "+
				"lock.")
	}
}

// offlineNote returns a sentence if the lock is offline.
func offlineNote(ctx context.Context, client *api.Client, deviceID string) string {
	device, err := deviceByID(ctx, client, deviceID)
	if err != nil || device.Properties.Online {
		return ""
	}
	return "The lock is offline, so this list of its codes may be outdated. "
}

// ValidateConfig rejects values that are not identifiers of access codes, because apply would delete the mistyped
// code. Servers choose the format of identifiers: if that of the lock is a UUID, those of its codes are UUIDs, too.
func (r *accessCodesExclusiveResource) ValidateConfig(
	ctx context.Context,
	req resource.ValidateConfigRequest,
	resp *resource.ValidateConfigResponse,
) {
	var config accessCodesExclusiveModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	uuids := uuid.Validate(config.DeviceID.ValueString()) == nil
	for _, id := range slices.Sorted(maps.Keys(config.allowed())) {
		like := ""
		switch {
		case strings.ContainsAny(id, "/ ,"):
			like = "it contains a slash, a comma, or a space"
		case uuids && uuid.Validate(id) != nil:
			like = "it is not a UUID, unlike the `device_id`"
		default:
			continue
		}
		diagnostics.ErrorAt(
			&resp.Diagnostics,
			path.Root("access_code_ids").AtSetValue(types.StringValue(id)),
			"Invalid identifier",
			fmt.Sprintf("%q is not the `access_code_id` of a code: %s. Apply would delete the code that you mean. "+
				"The data sources deviceaccess_access_codes and deviceaccess_unmanaged_access_codes list "+
				"identifiers.", id, like),
		)
	}
}

// warnOfStrays warns about allowed codes that are not on the lock: if an identifier is wrong, apply deletes the code
// that the user means.
func (m *accessCodesExclusiveModel) warnOfStrays(onLock map[string]foreignCode, diags *diag.Diagnostics) {
	strays := m.allowed()
	maps.DeleteFunc(strays, func(id string, _ bool) bool { _, there := onLock[id]; return there || id == "" })
	if len(strays) == 0 {
		return
	}
	diagnostics.WarningAt(
		diags,
		path.Root("access_code_ids"),
		"Access codes are not on the lock",
		"The lock "+m.DeviceID.ValueString()+" has no codes with these identifiers in `access_code_ids`:\n  "+
			strings.Join(slices.Sorted(maps.Keys(strays)), "\n  ")+
			"\n\nIf an identifier is mistyped, or belongs to a code on another lock, apply deletes the code that "+
			"you mean: correct it before you apply a plan that deletes codes. If the code has ended or was "+
			"deleted, remove its identifier.",
	)
}

// lookForStrays is warnOfStrays for an existing resource. It also warns about released codes.
func (r *accessCodesExclusiveResource) lookForStrays(
	ctx context.Context,
	plan, state *accessCodesExclusiveModel,
	diags *diag.Diagnostics,
) {
	if !r.isConnected() || !plan.DeviceID.Equal(state.DeviceID) {
		return
	}
	if onLock, err := r.refreshCodesOn(
		ctx,
		r.api,
		plan.DeviceID.ValueString(),
	); err == nil { // otherwise the refresh has reported the error
		plan.warnOfStrays(onLock, diags)
		if ids, _ := plan.AccessCodeIDs.ToTerraformValue(ctx); ids.IsFullyKnown() {
			warnOfReleased(released(plan, state, onLock), diags)
		}
	}
}

// warnOfReleased warns, in plan and apply, about codes that were removed from access_code_ids and are not deleted yet.
func warnOfReleased(codes map[string]foreignCode, diags *diag.Diagnostics) {
	deletable, stuck := partitionByDeletable(codes)
	warnOfStuck(stuck, diags)
	if len(deletable) > 0 {
		diagnostics.WarningAt(diags, path.Root("access_code_ids"), "Access codes stay on the lock until the next "+
			"plan",
			"These codes were removed from `access_code_ids`:"+formatCodes(deletable)+"\n\nThis apply does not delete "+
				"them, so their PINs still open the door, unless another resource deletes them. The next plan lists "+
				"the remaining codes in `deleted_access_codes`, and applying that plan deletes them from the lock.")
	}
}

type accessCodesExclusiveModel struct {
	DeviceID           types.String   `tfsdk:"device_id"`
	AccessCodeIDs      types.Set      `tfsdk:"access_code_ids"`
	ForeignAccessCodes types.Map      `tfsdk:"foreign_access_codes"`
	DeletedAccessCodes types.Map      `tfsdk:"deleted_access_codes"`
	Timeouts           timeouts.Value `tfsdk:"timeouts"`
}

// foreignCode is a code on the lock that is not allowed.
type foreignCode struct {
	Name         types.String `tfsdk:"name"`
	IsManaged    types.Bool   `tfsdk:"is_managed"`
	CanBeDeleted types.Bool   `tfsdk:"can_be_deleted"`
	BackupOf     types.String `tfsdk:"backup_of"`
}

var foreignCodeType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"name":           types.StringType,
	"is_managed":     types.BoolType,
	"can_be_deleted": types.BoolType,
	"backup_of":      types.StringType,
}}

// codesOn lists all codes on a lock by identifier. It removes PINs from names.
func codesOn(ctx context.Context, client *api.Client, deviceID string) (map[string]foreignCode, error) {
	managed, err := managedCodes(ctx, client, deviceID)
	if err != nil {
		return nil, err
	}
	unmanaged, err := unmanagedCodes(ctx, client, deviceID)
	if err != nil {
		return nil, err
	}
	return inventory(managed, unmanaged), nil
}

// refreshCodesOn is codesOn for many locks: it uses lists that concurrent reads share.
func (c *connection) refreshCodesOn(
	ctx context.Context,
	client *api.Client,
	deviceID string,
) (map[string]foreignCode, error) {
	managed, known := c.reads.AccessCodesOn(ctx, deviceID)
	unmanaged, knownToo := c.reads.UnmanagedAccessCodesOn(ctx, deviceID)
	if !known || !knownToo {
		return codesOn(ctx, client, deviceID)
	}
	return inventory(managed, unmanaged), nil
}

// inventory returns the codes by identifier.
func inventory(managed []api.AccessCode, unmanaged []api.UnmanagedAccessCode) map[string]foreignCode {
	codes := map[string]foreignCode{}
	pulledFor := map[string]types.String{}
	for _, code := range managed {
		if code.PulledBackupAccessCodeID != nil {
			pulledFor[*code.PulledBackupAccessCodeID] = types.StringValue(code.AccessCodeID)
		}
	}
	for _, code := range managed {
		codes[code.AccessCodeID] = foreignCode{
			nameWithoutPIN(
				code.Name,
				code.Code,
			),
			types.BoolValue(true),
			types.BoolValue(!wasIssued(&code)),
			pulledFor[code.AccessCodeID],
		}
	}
	for _, code := range unmanaged {
		codes[code.AccessCodeID] = foreignCode{
			nameWithoutPIN(
				code.Name,
				code.Code,
			),
			types.BoolValue(false),
			types.BoolValue(!code.CannotDeleteUnmanagedAccessCode),
			types.StringNull(),
		}
	}
	return codes
}

func nameWithoutPIN(name, pin *string) types.String {
	if name == nil || pin == nil || *pin == "" {
		return types.StringPointerValue(name)
	}
	return types.StringValue(api.Redact(*name, *pin))
}

// allowedCodes is the set of identifiers of codes that may be on a lock.
type allowedCodes map[string]bool

// allows reports whether a code may be on the lock. A backup code may be there if its original may.
func (a allowedCodes) allows(id string, code foreignCode) bool {
	return a[id] || a[code.BackupOf.ValueString()]
}

// allowed returns the known codes that may be on the lock. After an import there are none.
func (m *accessCodesExclusiveModel) allowed() allowedCodes {
	allowed := allowedCodes{}
	for _, id := range m.AccessCodeIDs.Elements() {
		if text, ok := id.(types.String); ok && text.ValueString() != "" {
			allowed[text.ValueString()] = true
		}
	}
	return allowed
}

// released returns the codes on the lock that the state allows and the plan does not. The state does not have their
// names, so a plan cannot show their deletion before the next refresh.
func released(plan, state *accessCodesExclusiveModel, onLock map[string]foreignCode) map[string]foreignCode {
	were, may, codes := state.allowed(), plan.allowed(), maps.Clone(onLock)
	maps.DeleteFunc(
		codes,
		func(id string, code foreignCode) bool { return !were.allows(id, code) || may.allows(id, code) },
	)
	return codes
}

// foreign returns the codes in the state that were not allowed.
func (m *accessCodesExclusiveModel) foreign(ctx context.Context) map[string]foreignCode {
	foreign := map[string]foreignCode{}
	m.ForeignAccessCodes.ElementsAs(ctx, &foreign, false)
	return foreign
}

// setForeign stores and returns the codes on the lock that are not allowed.
func (m *accessCodesExclusiveModel) setForeign(
	ctx context.Context,
	onLock map[string]foreignCode,
) (foreign map[string]foreignCode, diags diag.Diagnostics) {
	foreign, allowed := maps.Clone(onLock), m.allowed()
	maps.DeleteFunc(foreign, allowed.allows)
	m.ForeignAccessCodes, diags = types.MapValueFrom(ctx, foreignCodeType, foreign)
	return foreign, diags
}

// partitionByDeletable separates the codes that can be deleted from those that cannot.
func partitionByDeletable(codes map[string]foreignCode) (deletable, stuck map[string]foreignCode) {
	deletable, stuck = maps.Clone(codes), maps.Clone(codes)
	maps.DeleteFunc(deletable, func(_ string, code foreignCode) bool { return !code.CanBeDeleted.ValueBool() })
	maps.DeleteFunc(stuck, func(_ string, code foreignCode) bool { return code.CanBeDeleted.ValueBool() })
	return deletable, stuck
}

// codeNames returns the codes' names by identifier.
func codeNames(codes map[string]foreignCode) types.Map {
	named := map[string]attr.Value{}
	for id, code := range codes {
		named[id] = types.StringValue(code.Name.ValueString())
	}
	return types.MapValueMust(types.StringType, named)
}

// formatCodes formats codes for messages, one per line.
func formatCodes(codes map[string]foreignCode) string {
	var lines strings.Builder
	for _, id := range slices.Sorted(maps.Keys(codes)) {
		kind := "managed"
		switch {
		case !codes[id].IsManaged.ValueBool():
			kind = "unmanaged"
		case !codes[id].CanBeDeleted.ValueBool(): // the only managed codes that cannot be deleted
			kind = "offline code"
		}
		if original := codes[id].BackupOf.ValueString(); original != "" {
			kind = "backup code of " + original
		}
		name := "without a name"
		if text := codes[id].Name.ValueString(); text != "" {
			name = fmt.Sprintf("%q", text)
		}
		fmt.Fprintf(&lines, "\n  %s %s (%s)", id, name, kind)
	}
	return lines.String()
}
