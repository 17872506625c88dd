package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

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
		diagnostics.WarningAt(&resp.Diagnostics, path.Root("foreign_access_codes"), "Access codes have appeared since the plan",
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
	diagnostics.ErrorAt(&resp.Diagnostics, path.Root("deleted_access_codes").AtMapKey(id), actionExclusive,
		sentence(fmt.Sprintf("the access code %s %q on the device %s: %v", id, code.Name.ValueString(), deviceID, err))+"\n\n"+next)
}

// Delete deletes no code, as the plan has said.
func (r *exclusiveAccessCodesResource) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {
}

func (r *exclusiveAccessCodesResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The only access codes that may be on a lock: apply deletes all others, managed or not, that the plan has shown.\n\n" +
			"**This takes PINs off a door.** It acts on the lock of `device_id` only, and deletes only what a plan has shown in " +
			"`deleted_access_codes`. Creating the resource deletes nothing: it takes stock, and the next plan shows what is to go. After an import " +
			"the first plan shows it. A code that appears between plan and apply is left on the lock, with a warning; so is one that is taken " +
			"out of `access_code_ids`, which the plan after that shows; and so are codes that their vendor does not let be deleted, such as offline codes that were issued. Destroying the resource deletes nothing.",
		Attributes: map[string]schema.Attribute{
			"device_id": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "The lock. Changing it ends the watch over one lock and begins it over another, and deletes nothing.",
				Validators:          []validator.String{validators.Identifier{Hint: "Name a lock; the data source deviceaccess_devices lists those there are."}},
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"access_code_ids": schema.SetAttribute{
				Required: true, ElementType: types.StringType,
				MarkdownDescription: "The codes that may be on the lock, and with them the backup codes that were pulled in their place. With none, all codes are to go.",
				Validators:          []validator.Set{setvalidator.ValueStringsAre(validators.Identifier{Hint: "Name an access code."})},
			},
			"foreign_access_codes": schema.MapNestedAttribute{
				Computed:            true,
				MarkdownDescription: "The codes on the lock that are not in `access_code_ids`, by `access_code_id`, as of the last refresh.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"name":           schema.StringAttribute{Computed: true, MarkdownDescription: "The name of the code. Null where the lock keeps none."},
					"is_managed":     schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the workspace manages it."},
					"can_be_deleted": schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether its vendor lets it be deleted. Where not, it stays; so does an offline code that was issued, until it ends."},
					"backup_of":      schema.StringAttribute{Computed: true, MarkdownDescription: "The code in whose place it was pulled, if it is a backup code. It may be on the lock while that one may."},
				}},
			},
			"deleted_access_codes": schema.MapAttribute{
				Computed: true, ElementType: types.StringType,
				MarkdownDescription: "In a plan, the codes that apply will delete: the name by `access_code_id`. In the state, those that the last apply has deleted.",
			},
		},
		Blocks: map[string]schema.Block{
			"timeouts": timeoutsBlock(ctx, timeouts.Opts{
				Update:            true,
				UpdateDescription: "How long to wait for the codes to be off the lock, such as `30s` or `10m`. By default `5m`.",
			}),
		},
	}
}

// exclusiveAccessCodesIdentity is what Terraform 1.12 and newer know the only codes of a lock by.
type exclusiveAccessCodesIdentity struct {
	DeviceID types.String `tfsdk:"device_id"`
}

// IdentitySchema describes exclusiveAccessCodesIdentity.
func (r *exclusiveAccessCodesResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"device_id": identityschema.StringAttribute{RequiredForImport: true, Description: "The lock."},
	}}
}

func (m *exclusiveAccessCodesModel) identity() exclusiveAccessCodesIdentity {
	return exclusiveAccessCodesIdentity{m.DeviceID}
}

// ImportState takes the lock, by its identifier or an identity. Read looks up its codes.
func (r *exclusiveAccessCodesResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	if r.cannotImport(req, resp) {
		return
	}
	identity := exclusiveAccessCodesIdentity{types.StringValue(req.ID)}
	if req.ID == "" {
		resp.Diagnostics.Append(req.Identity.Get(ctx, &identity)...)
	}
	if id := identity.DeviceID.ValueString(); id == "" || strings.ContainsAny(id, "/ ,") {
		diagnostics.Error(&resp.Diagnostics, "Import exclusive access codes", fmt.Sprintf("%q is not the `device_id` of one lock.", id))
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("device_id"), identity.DeviceID)...)
}

// ModifyPlan shows the codes that apply will delete. They come from the state alone: Terraform plans once more during
// apply, and what the lock has by then must not change what was shown. For the same reason a creation, which has no
// state, deletes nothing.
func (r *exclusiveAccessCodesResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		diagnostics.Warning(&resp.Diagnostics, "Exclusive access codes end",
			"Destroying deviceaccess_exclusive_access_codes deletes no access code: what is on the lock stays, and is no longer watched.")
		return
	}
	var plan exclusiveAccessCodesModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if req.State.Raw.IsNull() {
		plan.DeletedAccessCodes = types.MapValueMust(types.StringType, map[string]attr.Value{})
		r.announce(ctx, &plan, &resp.Diagnostics)
	} else {
		var state exclusiveAccessCodesModel
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
		planDeletions(ctx, &plan, &state, &resp.Diagnostics)
		r.lookForStrays(ctx, &plan, &state, &resp.Diagnostics)
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

// planDeletions plans to delete what the state knows to be on the lock and the plan does not allow. While not all of that is
// known, nothing is promised: during apply it may turn out that nothing changes at all.
func planDeletions(ctx context.Context, plan, state *exclusiveAccessCodesModel, diags *diag.Diagnostics) {
	foreign, allowed := state.foreign(ctx), plan.allowed()
	maps.DeleteFunc(foreign, allowed.has)
	deletable, stuck := split(foreign)
	warnOfStuck(stuck, diags)
	ids, _ := plan.AccessCodeIDs.ToTerraformValue(ctx)
	switch {
	case !ids.IsFullyKnown():
		plan.DeletedAccessCodes, plan.ForeignAccessCodes = types.MapUnknown(types.StringType), types.MapUnknown(foreignCodeType)
		if len(deletable) > 0 {
			diagnostics.WarningAt(diags, path.Root("deleted_access_codes"), "Access codes may be deleted",
				"Not all of `access_code_ids` is known yet. Applying this plan deletes those of these codes that are not among them:"+listed(deletable))
		}
	case len(deletable) > 0:
		plan.DeletedAccessCodes, plan.ForeignAccessCodes = names(deletable), types.MapUnknown(foreignCodeType)
		diagnostics.WarningAt(diags, path.Root("deleted_access_codes"), "Access codes will be deleted",
			"Applying this plan takes these codes off the lock "+plan.DeviceID.ValueString()+":"+listed(deletable))
	case plan.AccessCodeIDs.Equal(state.AccessCodeIDs) && plan.Timeouts.Equal(state.Timeouts):
		plan.DeletedAccessCodes, plan.ForeignAccessCodes = state.DeletedAccessCodes, state.ForeignAccessCodes
	default:
		plan.DeletedAccessCodes, plan.ForeignAccessCodes = names(nil), types.MapUnknown(foreignCodeType)
	}
}

// warnOfStuck warns of codes that should go and cannot be deleted.
func warnOfStuck(stuck map[string]foreignCode, diags *diag.Diagnostics) {
	if len(stuck) == 0 {
		return
	}
	next := "Delete them in the app of the lock."
	for _, code := range stuck {
		if code.IsManaged.ValueBool() {
			next = "Offline codes open the lock until they end, and are gone then; to be rid of one before, block it at the lock with the vendor's app. Delete others in that app."
		}
	}
	diagnostics.WarningAt(diags, path.Root("foreign_access_codes"), "Access codes that cannot be deleted",
		"The vendor of this lock does not let these codes be deleted, so they stay on it:"+listed(stuck)+"\n\n"+next)
}

// announce says what the plan after the creation will delete, as far as that can be told by now.
func (r *exclusiveAccessCodesResource) announce(ctx context.Context, plan *exclusiveAccessCodesModel, diags *diag.Diagnostics) {
	if r.connection == nil || r.api == nil || plan.DeviceID.IsUnknown() || plan.AccessCodeIDs.IsUnknown() {
		return
	}
	onLock, err := codesOn(ctx, r.api, plan.DeviceID.ValueString())
	if err != nil {
		report(diags, actionStock, err)
		return
	}
	foreign, _ := plan.setForeign(ctx, onLock)
	plan.ForeignAccessCodes = types.MapUnknown(foreignCodeType)
	takeStock(foreign, diags)
	plan.warnOfStrays(onLock, diags)
}

// takeStock warns of the codes that the next plan will delete.
func takeStock(foreign map[string]foreignCode, diags *diag.Diagnostics) {
	if deletable, _ := split(foreign); len(deletable) > 0 {
		diagnostics.WarningAt(diags, path.Root("access_code_ids"), "There are other access codes on the lock",
			"These codes are not in `access_code_ids`:"+listed(deletable)+"\n\nThis apply deletes none of them. The plan after it shows them in "+
				"`deleted_access_codes`, and applying that plan takes them off the lock.")
	}
}

// offline warns that deletions will wait.
func offline(ctx context.Context, client *api.Client, deviceID string) string {
	device, err := deviceByID(ctx, client, deviceID)
	if err != nil || device.Properties.Online {
		return ""
	}
	return "The lock is offline, so that its codes are those it had when it was last heard of. "
}

// ValidateConfig refuses what is no identifier of an access code: a code that is mistyped here is a code that is deleted. What
// identifiers look like servers decide, each for all of its own: where that of the lock is a UUID, those of its codes are.
func (r *exclusiveAccessCodesResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config exclusiveAccessCodesModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	uuids := uuid.Validate(config.DeviceID.ValueString()) == nil
	for _, id := range slices.Sorted(maps.Keys(config.allowed())) {
		like := ""
		switch {
		case strings.ContainsAny(id, "/ ,"):
			like = "it has a slash, a comma or a blank"
		case uuids && uuid.Validate(id) != nil:
			like = "it is no UUID, as the `device_id` is"
		default:
			continue
		}
		diagnostics.ErrorAt(&resp.Diagnostics, path.Root("access_code_ids").AtSetValue(types.StringValue(id)), "Check the access code",
			fmt.Sprintf("%q is not the `access_code_id` of a code: %s. The code that is meant would be deleted. The data sources deviceaccess_access_codes and "+
				"deviceaccess_unmanaged_access_codes list those there are.", id, like))
	}
}

// warnOfStrays warns of what may be on the lock, but is not there: maybe another code is meant, which is to go then.
func (m *exclusiveAccessCodesModel) warnOfStrays(onLock map[string]foreignCode, diags *diag.Diagnostics) {
	strays := m.allowed()
	maps.DeleteFunc(strays, func(id string, _ bool) bool { _, there := onLock[id]; return there || id == "" })
	if len(strays) == 0 {
		return
	}
	diagnostics.WarningAt(diags, path.Root("access_code_ids"), "No such access codes on the lock",
		"These are in `access_code_ids`, but are no codes on the lock "+m.DeviceID.ValueString()+":\n  "+strings.Join(slices.Sorted(maps.Keys(strays)), "\n  ")+
			"\n\nIf one is mistyped, or of a code on another lock, the code that was meant is deleted with all others that are not in `access_code_ids`: correct it before "+
			"applying a plan that deletes codes. If its code has ended or was deleted, take it out.")
}

// lookForStrays is warnOfStrays for a lock that is watched already, and warns of codes that no longer may be there.
func (r *exclusiveAccessCodesResource) lookForStrays(ctx context.Context, plan, state *exclusiveAccessCodesModel, diags *diag.Diagnostics) {
	if !r.isConnected() || !plan.DeviceID.Equal(state.DeviceID) {
		return
	}
	if onLock, err := r.refreshCodesOn(ctx, r.api, plan.DeviceID.ValueString()); err == nil { // else the refresh has said so
		plan.warnOfStrays(onLock, diags)
		if ids, _ := plan.AccessCodeIDs.ToTerraformValue(ctx); ids.IsFullyKnown() {
			warnOfReleased(released(plan, state, onLock), diags)
		}
	}
}

// warnOfReleased warns, in plan and apply, of codes that no longer may be on the lock and are not deleted yet.
func warnOfReleased(codes map[string]foreignCode, diags *diag.Diagnostics) {
	deletable, stuck := split(codes)
	warnOfStuck(stuck, diags)
	if len(deletable) > 0 {
		diagnostics.WarningAt(diags, path.Root("access_code_ids"), "Access codes stay on the lock until the next plan",
			"These codes are no longer in `access_code_ids`:"+listed(deletable)+"\n\nThis resource deletes none of them in this apply, so that their PINs go on opening the door, unless "+
				"another resource deletes them. The plan after it shows what is left of them in `deleted_access_codes`, and applying that plan takes it off the lock.")
	}
}

type exclusiveAccessCodesModel struct {
	DeviceID           types.String   `tfsdk:"device_id"`
	AccessCodeIDs      types.Set      `tfsdk:"access_code_ids"`
	ForeignAccessCodes types.Map      `tfsdk:"foreign_access_codes"`
	DeletedAccessCodes types.Map      `tfsdk:"deleted_access_codes"`
	Timeouts           timeouts.Value `tfsdk:"timeouts"`
}

// foreignCode is a code on the lock that is not one of those that may be.
type foreignCode struct {
	Name         types.String `tfsdk:"name"`
	IsManaged    types.Bool   `tfsdk:"is_managed"`
	CanBeDeleted types.Bool   `tfsdk:"can_be_deleted"`
	BackupOf     types.String `tfsdk:"backup_of"`
}

var foreignCodeType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"name": types.StringType, "is_managed": types.BoolType, "can_be_deleted": types.BoolType, "backup_of": types.StringType,
}}

// codesOn lists all codes on a lock by identifier. A name holds no PIN, whatever somebody has called the code.
func codesOn(ctx context.Context, client *api.Client, deviceID string) (map[string]foreignCode, error) {
	managed, err := managedCodes(ctx, client, deviceID)
	if err != nil {
		return nil, err
	}
	unmanaged, err := unmanagedCodes(ctx, client, deviceID)
	if err != nil {
		return nil, err
	}
	return stock(managed, unmanaged), nil
}

// refreshCodesOn is codesOn for reading many locks: lists that others wait for, too, answer it.
func (c *connection) refreshCodesOn(ctx context.Context, client *api.Client, deviceID string) (map[string]foreignCode, error) {
	managed, known := c.reads.AccessCodesOn(ctx, deviceID)
	unmanaged, knownToo := c.reads.UnmanagedAccessCodesOn(ctx, deviceID)
	if !known || !knownToo {
		return codesOn(ctx, client, deviceID)
	}
	return stock(managed, unmanaged), nil
}

// stock are codes by identifier.
func stock(managed []api.AccessCode, unmanaged []api.UnmanagedAccessCode) map[string]foreignCode {
	codes := map[string]foreignCode{}
	pulledFor := map[string]types.String{}
	for _, code := range managed {
		if code.PulledBackupAccessCodeID != nil {
			pulledFor[*code.PulledBackupAccessCodeID] = types.StringValue(code.AccessCodeID)
		}
	}
	for _, code := range managed {
		codes[code.AccessCodeID] = foreignCode{
			nameWithoutPIN(code.Name, code.Code), types.BoolValue(true), types.BoolValue(!wasIssued(&code)), pulledFor[code.AccessCodeID],
		}
	}
	for _, code := range unmanaged {
		codes[code.AccessCodeID] = foreignCode{
			nameWithoutPIN(code.Name, code.Code), types.BoolValue(false), types.BoolValue(!code.CannotDeleteUnmanagedAccessCode), types.StringNull(),
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

// allowedCodes are the identifiers of codes that may be on a lock.
type allowedCodes map[string]bool

// has says whether a code may be on the lock: also one that was pulled in place of one that may.
func (a allowedCodes) has(id string, code foreignCode) bool {
	return a[id] || a[code.BackupOf.ValueString()]
}

// allowed are the codes that may be on the lock, as far as they are known; after an import there are none.
func (m *exclusiveAccessCodesModel) allowed() allowedCodes {
	allowed := allowedCodes{}
	for _, id := range m.AccessCodeIDs.Elements() {
		if text, ok := id.(types.String); ok && text.ValueString() != "" {
			allowed[text.ValueString()] = true
		}
	}
	return allowed
}

// released are the codes on the lock that the state allows and the plan no longer does. The state has no names of them, so a plan cannot show
// that they go before the next refresh counts them among the others.
func released(plan, state *exclusiveAccessCodesModel, onLock map[string]foreignCode) map[string]foreignCode {
	were, may, codes := state.allowed(), plan.allowed(), maps.Clone(onLock)
	maps.DeleteFunc(codes, func(id string, code foreignCode) bool { return !were.has(id, code) || may.has(id, code) })
	return codes
}

// foreign are the codes of the state that were not allowed when it was read.
func (m *exclusiveAccessCodesModel) foreign(ctx context.Context) map[string]foreignCode {
	foreign := map[string]foreignCode{}
	m.ForeignAccessCodes.ElementsAs(ctx, &foreign, false)
	return foreign
}

// setForeign takes over those of the codes on the lock that are not allowed.
func (m *exclusiveAccessCodesModel) setForeign(ctx context.Context, onLock map[string]foreignCode) (foreign map[string]foreignCode, diags diag.Diagnostics) {
	foreign, allowed := maps.Clone(onLock), m.allowed()
	maps.DeleteFunc(foreign, allowed.has)
	m.ForeignAccessCodes, diags = types.MapValueFrom(ctx, foreignCodeType, foreign)
	return foreign, diags
}

// split tells the codes that can be deleted from those that cannot.
func split(codes map[string]foreignCode) (deletable, stuck map[string]foreignCode) {
	deletable, stuck = maps.Clone(codes), maps.Clone(codes)
	maps.DeleteFunc(deletable, func(_ string, code foreignCode) bool { return !code.CanBeDeleted.ValueBool() })
	maps.DeleteFunc(stuck, func(_ string, code foreignCode) bool { return code.CanBeDeleted.ValueBool() })
	return deletable, stuck
}

// names are the codes' names by identifier.
func names(codes map[string]foreignCode) types.Map {
	named := map[string]attr.Value{}
	for id, code := range codes {
		named[id] = types.StringValue(code.Name.ValueString())
	}
	return types.MapValueMust(types.StringType, named)
}

// listed writes codes down for people, one a line.
func listed(codes map[string]foreignCode) string {
	var lines strings.Builder
	for _, id := range slices.Sorted(maps.Keys(codes)) {
		kind := "managed"
		switch {
		case !codes[id].IsManaged.ValueBool():
			kind = "unmanaged"
		case !codes[id].CanBeDeleted.ValueBool(): // nothing else keeps a server from it
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
