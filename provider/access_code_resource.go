package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/planmodifiers"
)

var (
	_ resource.ResourceWithIdentity       = (*accessCodeResource)(nil)
	_ resource.ResourceWithImportState    = (*accessCodeResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*accessCodeResource)(nil)
	_ resource.ResourceWithValidateConfig = (*accessCodeResource)(nil)
)

type accessCodeResource struct{ connectedResource }

func newAccessCodeResource() resource.Resource { return &accessCodeResource{} }

func (r *accessCodeResource) Metadata(
	_ context.Context,
	req resource.MetadataRequest,
	resp *resource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_access_code"
}

func (r *accessCodeResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	const action = "create access code"
	var plan accessCodeModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(plan.readWriteOnly(ctx, req.Config)...)
	timeout, diags := plan.Timeouts.Create(ctx, r.defaults().create)
	resp.Diagnostics.Append(diags...)
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	answer, err := createRetryingDuplicates(ctx, client, plan.createRequest())
	if err != nil {
		reportCreate(&resp.Diagnostics, action, err)
		return
	}
	// The code exists now: Terraform must store it, so that it can delete the code if anything fails.
	created := plan.applied(&answer.AccessCode)
	resp.Diagnostics.Append(r.rememberWorkspace(ctx, resp.Private, answer.AccessCode.WorkspaceID)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, created)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, created.identity())...)

	if !r.waitsForSet(&plan) {
		return
	}
	code, err := awaitLock(ctx, client, answer.AccessCode.AccessCodeID, answer.ActionAttempt)
	if code != nil {
		created = plan.applied(code)
		resp.Diagnostics.Append(resp.State.Set(ctx, created)...)
	}
	err = redacted(err, created.Code.ValueString(), plan.pin())
	switch {
	case isRefusal(err):
		reportNext(&resp.Diagnostics, action, err, creationAdvice(created.AccessCodeID.ValueString()))
	case err != nil: // an error would taint the code, and the next apply would take a working PIN off the lock
		created.warnOfWait(&resp.Diagnostics, err)
	}
}

func (r *accessCodeResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	const action = "read access code"
	var model accessCodeModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	// The framework requires an identity even for a deleted resource, and Terraform before 1.12 stores none.
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
	imported := model.Type.IsNull()
	if !imported && r.skipsRefresh(&resp.Diagnostics) {
		return
	}
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	deviceID := model.DeviceID.ValueString()
	managed, unmanaged, err := r.refreshCode(ctx, client, deviceID, model.AccessCodeID.ValueString())
	switch {
	case err != nil && imported:
		id := model.AccessCodeID.ValueString()
		reportImport(&resp.Diagnostics, actionImport, "access code", id, whereIdentifiersAre, err)
		return
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
		diagnostics.Failure(
			&resp.Diagnostics,
			actionImport,
			nothingToImport(ctx, client, deviceID, model.AccessCodeID.ValueString()),
		)
		return
	default:
		if r.isDeleted(ctx, req.Private, action, &resp.Diagnostics) {
			resp.State.RemoveResource(ctx)
		}
		return
	}
	if model.DeviceID.ValueString() != deviceID {
		diagnostics.Failure(&resp.Diagnostics, action, fmt.Sprintf("The code %s is on the device %s, not on %s. "+
			"Import it as %[2]s/%[1]s.",
			model.AccessCodeID.ValueString(), model.DeviceID.ValueString(), deviceID))
		return
	}
	if imported {
		resp.Diagnostics.Append(planmodifiers.MarkImported(ctx, resp.Private)...)
	}
	if managed != nil {
		r.warnOfTrouble(ctx, &resp.Diagnostics, managed, pinsOf(managed.Code, &model)...)
		doubted := hasUncertainChange(ctx, req.Private, &resp.Diagnostics)
		resp.Diagnostics.Append(recordUncertainChange(ctx, resp.Private, model.isUncertain(managed, doubted))...)
	}
	refusal := convertible
	if unmanaged != nil && unmanaged.CannotBeManaged {
		refusal = refused
		if imported {
			refusal = announced
			r.warnOfRefusal(ctx, &model, &resp.Diagnostics)
		}
	}
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, cannotBeManagedKey, []byte(refusal))...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

func (r *accessCodeResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	const action = "update access code"
	var plan, state accessCodeModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, state.identity())...)
	resp.Diagnostics.Append(plan.readWriteOnly(ctx, req.Config)...)
	timeout, diags := plan.Timeouts.Update(ctx, r.defaults().update)
	resp.Diagnostics.Append(diags...)
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	if !plan.DeviceID.Equal(state.DeviceID) {
		diagnostics.ErrorAt(&resp.Diagnostics, path.Root("device_id"), unplannedReplacement, planAgain("device_id"))
		return
	}
	// Store these now, in case the rest fails: the next destroy uses the timeouts, and the next plan the keepers.
	state.Timeouts, state.Keepers = plan.Timeouts, plan.Keepers
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	if !state.IsManaged.ValueBool() {
		code, err := convertPlanned(ctx, client, &plan, &state)
		err = redacted(err, plan.pin(), state.Code.ValueString())
		if isAccepted(err) {
			// The next plan shows what has not happened, and the next apply sends the PIN again.
			resp.Diagnostics.Append(recordUncertainChange(ctx, resp.Private, true)...)
			resp.Diagnostics.Append(resp.State.Set(ctx, plan.unconverted(&state))...)
			plan.warnOfConversion(&resp.Diagnostics, err)
			return
		}
		if err != nil {
			reportNext(&resp.Diagnostics, "convert access code to managed", err, conversionAdvice(err))
			return
		}
		// If the rest fails, the next apply must neither convert again nor replace the code for its lost key.
		state.CommonCodeKey = plan.CommonCodeKey
		state.fill(code)
		resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	}
	unseen, former := plan.writesOnly() ||
		state.writesOnly(), state.Code.ValueString() // unseen: the state will not show the server's PIN
	doubted := hasUncertainChange(ctx, req.Private, &resp.Diagnostics)
	if doubted {
		var configured types.String
		resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("code"), &configured)...)
		state.resend(plan.writesOnly() || !configured.IsNull())
	}
	code, err := changePlanned(ctx, client, &plan, &state, r.waitsForSet(&plan))
	resp.Diagnostics.Append(
		recordUncertainChange(ctx, resp.Private, attemptFailed(err) || (unseen || doubted) && err != nil)...)
	if err != nil {
		reportNext(&resp.Diagnostics, action, redacted(err, plan.pin(), former), changeAdvice(err))
		return
	}
	if code.Code != nil && isSet(plan.Code) && *code.Code != plan.Code.ValueString() {
		diagnostics.WarningAt(&resp.Diagnostics, path.Root("code"), "The access code has another PIN than planned",
			"This vendor chooses the PINs and cannot change a code on a lock, so a changed code gets another PIN. "+
				"The state, and everything that depends on it, has the former PIN until the next refresh: run "+
				"`terraform apply -refresh-only`.")
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, plan.applied(code))...)
}

func (r *accessCodeResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var model accessCodeModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	timeout, diags := model.Timeouts.Delete(ctx, r.defaults().delete)
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
		r.isDeleted(ctx, req.Private, "delete access code", &resp.Diagnostics)
	case err != nil:
		// Terraform does not name the resource in an error of a destroy.
		text := fmt.Sprintf("the access code %s %q on the device %s: %v", id, model.Name.ValueString(), deviceID, err)
		reportNext(
			&resp.Diagnostics,
			"delete access code",
			redacted(&explainedError{text, err}, model.Code.ValueString()),
			deletionAdvice(err),
		)
	}
}

// waitsForSet reports whether to wait until the lock has the code.
func (r *accessCodeResource) waitsForSet(plan *accessCodeModel) bool {
	if plan.WaitUntilOnLock.IsNull() {
		return r.waitUntilOnLock
	}
	return plan.WaitUntilOnLock.ValueBool()
}

// creationAdvice says what to do if the lock has refused a new code.
func creationAdvice(id string) string {
	return "The access code " + id + " exists and is marked as tainted: the next apply deletes it and creates " +
		"another one. First correct the problem in the message."
}

// warnOfWait warns that apply ends before the lock has an accepted code.
func (m *accessCodeModel) warnOfWait(diags *diag.Diagnostics, err error) {
	reason, next := err.Error(), nextStep(err)
	switch {
	case errors.Is(err, context.Canceled):
		reason, next = "Terraform was interrupted while it waited for the lock", ""
	case accountIsDisconnected(err):
		next = strings.TrimSpace(logInAgain)
	case errors.Is(err, context.DeadlineExceeded):
		next = "For a lock that always takes longer, raise `timeouts { create }`; for a server whose codes never " +
			"reach `set`, set `wait_until_on_lock = false`."
	}
	then := "keeps trying to set it"
	if attemptFailed(err) {
		then = "sets it when this problem is solved"
	}
	lines := []string{sentence(reason), fmt.Sprintf(
		"The server has accepted the access code %s and %s. The code is in the state with the status %q; the next "+
			"plan shows its status. To let such a run fail, add a postcondition on `status`: see the page of the "+
			"resource.",
		m.AccessCodeID.ValueString(), then, m.Status.ValueString())}
	if next != "" {
		lines = append(lines, next)
	}
	diagnostics.Warning(diags, "Access code may not be on its lock yet", strings.Join(lines, "\n\n"))
}

// warnOfConversion warns that apply ends before the server has converted the code.
func (m *accessCodeModel) warnOfConversion(diags *diag.Diagnostics, err error) {
	text := sentence(err.Error())
	if errors.Is(err, context.Canceled) {
		text = "Terraform was interrupted while it waited for the conversion."
	}
	text += fmt.Sprintf("\n\nThe server has accepted the conversion of the access code %s. The code is in the state. "+
		"Run `terraform apply` again: if the code is still unmanaged, the plan shows the conversion.",
		m.AccessCodeID.ValueString())
	if next := nextStep(err); next != "" && !errors.Is(err, context.Canceled) {
		text += "\n\n" + next
	}
	diagnostics.Warning(diags, "Access code may not be managed yet", text)
}

// unconverted returns the planned state, with the values of state for what the conversion decides.
func (m *accessCodeModel) unconverted(state *accessCodeModel) *accessCodeModel {
	kept := *m
	kept.CodeWO = types.StringNull() // write-only values are never stored
	for _, text := range []struct{ planned, known *types.String }{
		{&kept.Name, &state.Name},
		{&kept.Code, &state.Code},
		{&kept.Type, &state.Type},
		{&kept.Status, &state.Status},
		{&kept.CreatedAt, &state.CreatedAt},
		{&kept.CommonCodeKey, &state.CommonCodeKey},
	} {
		if text.planned.IsUnknown() {
			*text.planned = *text.known
		}
	}
	if kept.IsExternalModificationAllowed.IsUnknown() {
		kept.IsExternalModificationAllowed = state.IsExternalModificationAllowed
	}
	if kept.Errors.IsUnknown() {
		kept.Errors = state.Errors
	}
	if known := state.backup(); kept.Backup.IsUnknown() {
		kept.Backup = state.Backup
	} else if kept.backup().IsAvailable.IsUnknown() {
		kept.Backup = backup{kept.backup().UsePool, known.IsAvailable, known.PulledAccessCodeID}.object()
	}
	return &kept
}

// changeAdvice says what to do if the lock has not accepted a change.
func changeAdvice(err error) string {
	if accountIsDisconnected(err) {
		return logInAgain + "Then the server makes the change; you need not repeat it."
	}
	if keepsTrying(err) {
		return "The server keeps trying to make the change; you need not repeat it when the lock is online. For a " +
			"lock that always takes longer, raise `timeouts { update }`; for a server whose codes never reach " +
			"`set`, set `wait_until_on_lock = false`."
	}
	if attemptFailed(err) {
		return stillOpens + " First correct the problem in the message; the next apply sends the change again."
	}
	return nextStep(err)
}

// stillOpens says what a failed change means for a door.
const stillOpens = "The lock may have the previous version of the code: the former PIN may still open the door."

// deletionAdvice says what to do if a deletion failed.
func deletionAdvice(err error) string {
	switch {
	case isOfType(err, cannotDeleteOffline):
		return removeFromStateHelp + "\n\nIf the plan replaces the code only because it is tainted, run `terraform untaint` on " +
			"the resource instead."
	case errors.Is(err, errCannotBeDeleted):
		return "Delete it in the lock's app, or remove it from the state with a removed block and `destroy = false`."
	case accountIsDisconnected(err):
		return logInAgain + "Until then, the PIN opens the door. The server keeps trying; run Terraform again " +
			"afterwards."
	case keepsTrying(err):
		return mayStillOpen + raiseDelete
	default:
		return nextStep(err)
	}
}

// These texts say what to do if a deletion timed out.
const (
	mayStillOpen = "The PIN may still open the door. The server keeps trying; run Terraform again when the lock is " +
		"online. "
	raiseDelete = "For a lock that always takes longer, raise `timeouts { delete }` and apply that first: a " +
		"destroy uses the timeouts in the state."
)

// accessCodeIdentity identifies a code in Terraform 1.12 and newer. It has both identifiers, because servers list
// unmanaged codes by device only.
type accessCodeIdentity struct {
	AccessCodeID types.String `tfsdk:"access_code_id"`
	DeviceID     types.String `tfsdk:"device_id"`
}

// IdentitySchema describes accessCodeIdentity.
func (r *accessCodeResource) IdentitySchema(
	_ context.Context,
	_ resource.IdentitySchemaRequest,
	resp *resource.IdentitySchemaResponse,
) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"access_code_id": identityschema.StringAttribute{RequiredForImport: true, Description: "The identifier of " +
			"the access code."},
		"device_id": identityschema.StringAttribute{RequiredForImport: true, Description: "The lock that the " +
			"code is on."},
	}}
}

func (m *accessCodeModel) identity() accessCodeIdentity {
	return accessCodeIdentity{AccessCodeID: m.AccessCodeID, DeviceID: m.DeviceID}
}

// importIdentity imports by identity. It never writes to the server.
func (r *accessCodeResource) importIdentity(
	ctx context.Context,
	req resource.ImportStateRequest,
	resp *resource.ImportStateResponse,
) {
	var identity accessCodeIdentity
	resp.Diagnostics.Append(req.Identity.Get(ctx, &identity)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if identity.AccessCodeID.ValueString() == "" || identity.DeviceID.ValueString() == "" {
		diagnostics.Failure(&resp.Diagnostics, actionImport, "The identity needs both `access_code_id` and "+
			"`device_id`. The data sources deviceaccess_devices and deviceaccess_unmanaged_access_codes list them.")
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("access_code_id"), identity.AccessCodeID)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("device_id"), identity.DeviceID)...)
}

const actionImport = "import access code"

// ImportState accepts three forms. <device_id>/<access_code_id> and an identity change nothing: Read reads the code,
// and apply converts an unmanaged one. A bare <access_code_id> converts an unmanaged code immediately, while
// Terraform plans an import block. The setting convert_on_import can forbid that.
func (r *accessCodeResource) ImportState(
	ctx context.Context,
	req resource.ImportStateRequest,
	resp *resource.ImportStateResponse,
) {
	if r.cannotImport(req, resp) {
		return
	}
	if req.ID == "" {
		r.importIdentity(ctx, req, resp)
		return
	}
	deviceID, id, hasDevice := strings.Cut(req.ID, "/")
	if !hasDevice {
		id = req.ID
	}
	if id == "" || hasDevice && deviceID == "" || strings.Contains(id, "/") {
		diagnostics.Failure(
			&resp.Diagnostics,
			actionImport,
			fmt.Sprintf(
				"%q is neither `<access_code_id>` nor `<device_id>/<access_code_id>`. %s",
				req.ID,
				whereIdentifiersAre,
			),
		)
		return
	}
	if !hasDevice {
		if deviceID = r.importBare(ctx, id, &resp.Diagnostics); deviceID == "" {
			return
		}
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("access_code_id"), id)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("device_id"), deviceID)...)
}

// whereIdentifiersAre says where to find identifiers.
const whereIdentifiersAre = "Write `<device_id>/<access_code_id>`: the data source deviceaccess_devices lists " +
	"devices, and deviceaccess_unmanaged_access_codes and deviceaccess_access_codes list the codes on one."

// nothingToImport says that the lock has no such code. Terraform's own message would mention regions.
func nothingToImport(ctx context.Context, client *api.Client, deviceID, id string) string {
	if _, err := deviceByID(ctx, client, id); err == nil {
		return fmt.Sprintf("%s is a device, not an access code. Check the order. Write "+
			"`<device_id>/<access_code_id>`, here %[1]s/%[2]s.", id, deviceID)
	}
	return fmt.Sprintf("The device %[2]s has no access code %[1]s, neither managed nor unmanaged. Check the order. "+
		"%[3]s", id, deviceID, whereIdentifiersAre)
}

// importBare converts the code if necessary and returns its device, or "" and an error in diags.
func (r *accessCodeResource) importBare(ctx context.Context, id string, diags *diag.Diagnostics) (deviceID string) {
	client := r.client(diags)
	if client == nil {
		return ""
	}
	managed, err := managedCode(ctx, client, id)
	if err == nil {
		return managed.DeviceID
	}
	if !api.IsNotFound(err) {
		reportImport(diags, actionImport, "access code", id, whereIdentifiersAre, err)
		return ""
	}
	unmanaged, err := unmanagedCode(ctx, client, "", id)
	switch {
	case api.IsNoRoute(err): // the server reads unmanaged codes by device only, so try the conversion
	case err != nil:
		reportImport(diags, actionImport, "access code", id, whereIdentifiersAre, err)
		return ""
	case unmanaged == nil:
		diagnostics.Failure(diags, actionImport, "The workspace of the API key has no access code "+id+", neither "+
			"managed nor unmanaged.")
		return ""
	case unmanaged.CannotBeManaged:
		reportNext(diags, actionImport, errCannotBeManaged, notImported)
		return ""
	}
	if !r.convertOnImport {
		diagnostics.Failure(diags, actionImport, fmt.Sprintf("The workspace does not manage the code %s, and "+
			"convert_on_import is false. Import %s/%s instead: that changes nothing, the plan shows the "+
			"conversion, and apply converts the code.", id, deviceOf(unmanaged), id))
		return ""
	}
	return r.convertNow(ctx, client, id, diags)
}

func (r *accessCodeResource) convertNow(
	ctx context.Context,
	client *api.Client,
	id string,
	diags *diag.Diagnostics,
) (deviceID string) {
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout) // an import has no configuration
	defer cancel()
	code, err := convertCode(ctx, client, api.ConvertAccessCodeRequest{AccessCodeID: id})
	if err != nil {
		next := conversionAdvice(err)
		switch next {
		case stayUnmanaged:
			next = notImported
		case makesAnother:
			next = noneToImport
		}
		reportNext(diags, "convert access code to managed", err, next)
		return ""
	}
	diagnostics.Warning(diags, "Access code converted to managed during import",
		fmt.Sprintf("The workspace now manages the code %s. To see a conversion in the plan first, import %s/%s.",
			id, code.DeviceID, id))
	return code.DeviceID
}

// conversionAdvice says what to do if a conversion failed.
func conversionAdvice(err error) string {
	const again = "The code is still unmanaged. Run Terraform again when the lock is online; it detects a " +
		"conversion that has succeeded in the meantime."
	switch {
	case isOfType(err, "access_code_being_deleted"):
		return makesAnother
	case errors.Is(err, errCannotBeManaged), api.StatusOf(err) == 400, api.StatusOf(err) == 409:
		return stayUnmanaged
	case nextStep(err) != "":
		return nextStep(err)
	default:
		return again
	}
}

func deviceOf(code *api.UnmanagedAccessCode) string {
	if code == nil {
		return "<device_id>"
	}
	return code.DeviceID
}

type accessCodeModel struct {
	AccessCodeID                  types.String   `tfsdk:"access_code_id"`
	DeviceID                      types.String   `tfsdk:"device_id"`
	Name                          types.String   `tfsdk:"name"`
	Code                          types.String   `tfsdk:"code"`
	CodeWO                        types.String   `tfsdk:"code_wo"`
	CodeWOVersion                 types.Int64    `tfsdk:"code_wo_version"`
	StartsAt                      instant        `tfsdk:"starts_at"`
	EndsAt                        instant        `tfsdk:"ends_at"`
	IsExternalModificationAllowed types.Bool     `tfsdk:"is_external_modification_allowed"`
	PreferredCodeLength           types.Int64    `tfsdk:"preferred_code_length"`
	CommonCodeKey                 types.String   `tfsdk:"common_code_key"`
	PreferNativeScheduling        types.Bool     `tfsdk:"prefer_native_scheduling"`
	AttemptForOfflineDevice       types.Bool     `tfsdk:"attempt_for_offline_device"`
	Backup                        types.Object   `tfsdk:"backup"`
	Offline                       types.Object   `tfsdk:"offline"`
	Type                          types.String   `tfsdk:"type"`
	Status                        types.String   `tfsdk:"status"`
	Errors                        types.List     `tfsdk:"errors"`
	IsManaged                     types.Bool     `tfsdk:"is_managed"`
	CreatedAt                     types.String   `tfsdk:"created_at"`
	WaitUntilOnLock               types.Bool     `tfsdk:"wait_until_on_lock"`
	Keepers                       types.Map      `tfsdk:"keepers"`
	Timeouts                      timeouts.Value `tfsdk:"timeouts"`
}

// backup is the attribute backup: spare codes of the code.
type backup struct {
	UsePool            types.Bool
	IsAvailable        types.Bool
	PulledAccessCodeID types.String
}

var backupTypes = map[string]attr.Type{
	"use_pool":              types.BoolType,
	"is_available":          types.BoolType,
	"pulled_access_code_id": types.StringType,
}

// object returns the value of the attribute.
func (b backup) object() types.Object {
	return types.ObjectValueMust(backupTypes, map[string]attr.Value{
		"use_pool":              b.UsePool,
		"is_available":          b.IsAvailable,
		"pulled_access_code_id": b.PulledAccessCodeID,
	})
}

// backup returns the attribute backup. Without it, all fields are null.
func (m *accessCodeModel) backup() (b backup) {
	if m.Backup.IsUnknown() {
		return backup{types.BoolUnknown(), types.BoolUnknown(), types.StringUnknown()}
	}
	all := m.Backup.Attributes()
	b.UsePool, _ = all["use_pool"].(types.Bool)
	b.IsAvailable, _ = all["is_available"].(types.Bool)
	b.PulledAccessCodeID, _ = all["pulled_access_code_id"].(types.String)
	return b
}

// fillBackup updates the attribute backup, if it is configured. Servers do not return use_pool.
func (m *accessCodeModel) fillBackup(available types.Bool, pulledID *string) {
	if m.Backup.IsNull() {
		m.Backup = types.ObjectNull(backupTypes)
		return
	}
	m.Backup = backup{m.backup().UsePool, available, types.StringPointerValue(pulledID)}.object()
}

// offline is the attribute offline, which only offline codes have.
type offline struct {
	IsOneTimeUse    types.Bool
	MaxTimeRounding types.String
}

var offlineTypes = map[string]attr.Type{"is_one_time_use": types.BoolType, "max_time_rounding": types.StringType}

// object returns the value of the attribute.
func (o offline) object() types.Object {
	return types.ObjectValueMust(offlineTypes, map[string]attr.Value{
		"is_one_time_use":   o.IsOneTimeUse,
		"max_time_rounding": o.MaxTimeRounding,
	})
}

// isOffline reports whether this is an offline code, as far as that is known.
func (m *accessCodeModel) isOffline() bool { return isSet(m.Offline) }

// offline returns the attribute offline. Without it, all fields are null.
func (m *accessCodeModel) offline() (o offline) {
	if m.Offline.IsUnknown() {
		return offline{types.BoolUnknown(), types.StringUnknown()}
	}
	all := m.Offline.Attributes()
	o.IsOneTimeUse, _ = all["is_one_time_use"].(types.Bool)
	o.MaxTimeRounding, _ = all["max_time_rounding"].(types.String)
	return o
}

// fillOffline sets the attribute offline. Servers do not return max_time_rounding.
func (m *accessCodeModel) fillOffline(isOffline, isOneTimeUse bool) {
	if !isOffline {
		m.Offline = types.ObjectNull(offlineTypes)
		return
	}
	m.Offline = offline{types.BoolValue(isOneTimeUse), m.offline().MaxTimeRounding}.object()
}

// fill copies a managed code.
func (m *accessCodeModel) fill(code *api.AccessCode) {
	m.AccessCodeID = types.StringValue(code.AccessCodeID)
	m.DeviceID = types.StringValue(code.DeviceID)
	m.Name = types.StringPointerValue(code.Name)
	m.fillPIN(code.Code)
	m.fillFrame(code)
	m.IsExternalModificationAllowed = types.BoolValue(code.IsExternalModificationAllowed)
	m.fillKey(code.CommonCodeKey)
	m.fillBackup(types.BoolValue(code.IsBackupAccessCodeAvailable), code.PulledBackupAccessCodeID)
	m.fillOffline(code.IsOfflineAccessCode, code.IsOneTimeUse)
	m.Type = types.StringValue(string(code.Type))
	m.Status = types.StringValue(string(code.Status))
	m.Errors = problemList(code.Errors, pinsOf(code.Code, m)...)
	m.IsManaged = types.BoolValue(true)
	m.CreatedAt = timestamp(code.CreatedAt)
}

// fillUnmanaged copies an unmanaged code.
func (m *accessCodeModel) fillUnmanaged(code *api.UnmanagedAccessCode) {
	m.AccessCodeID = types.StringValue(code.AccessCodeID)
	m.DeviceID = types.StringValue(code.DeviceID)
	m.Name = types.StringPointerValue(code.Name)
	m.fillPIN(code.Code)
	m.StartsAt, m.EndsAt = instantOf(code.StartsAt), instantOf(code.EndsAt)
	m.IsExternalModificationAllowed = types.BoolNull()
	m.fillKey(nil)
	m.fillBackup(types.BoolValue(false), nil)
	m.fillOffline(false, false)
	m.Type = types.StringValue(string(code.Type))
	m.Status, m.Errors = types.StringValue(code.Status), problemList(code.Errors, pinsOf(code.Code, m)...)
	m.IsManaged = types.BoolValue(false)
	m.CreatedAt = timestamp(code.CreatedAt)
}

// fillPIN keeps the known PIN if the server does not return one: a hidden PIN has not changed. A write-only PIN is
// never stored in the state.
func (m *accessCodeModel) fillPIN(pin *string) {
	if m.writesOnly() {
		m.Code = types.StringNull()
	} else if pin != nil || m.Code.IsUnknown() {
		m.Code = types.StringPointerValue(pin)
	}
}

// fillKey keeps the known key if the server returns none. A code loses its key when it becomes unmanaged, and a
// conversion does not restore it. Replacing the code for that would remove the PIN from the lock.
func (m *accessCodeModel) fillKey(key *string) {
	if key != nil || m.CommonCodeKey.IsUnknown() {
		m.CommonCodeKey = types.StringPointerValue(key)
	}
}

// pinsOf returns the PINs that a text about a code must not contain: the server's PIN and those in the model.
func pinsOf(returned *string, m *accessCodeModel) []string {
	pins := []string{m.Code.ValueString(), m.CodeWO.ValueString()}
	if returned != nil {
		pins = append(pins, *returned)
	}
	return pins
}

// writesOnly reports whether the PIN comes from code_wo.
func (m *accessCodeModel) writesOnly() bool { return !m.CodeWOVersion.IsNull() }

// pin returns the configured PIN, or "" if the server chooses one.
func (m *accessCodeModel) pin() string {
	if m.writesOnly() {
		return m.CodeWO.ValueString()
	}
	return m.Code.ValueString()
}

// applied returns the state after an apply. Terraform requires the planned values; if the server returns others, the
// next refresh shows them.
func (m *accessCodeModel) applied(code *api.AccessCode) *accessCodeModel {
	state := *m
	state.CodeWO = types.StringNull() // write-only values are never stored
	state.fill(code)
	for _, text := range []struct{ planned, filled *types.String }{
		{&m.Name, &state.Name},
		{&m.Code, &state.Code},
		{&m.Type, &state.Type},
		{&m.Status, &state.Status},
		{&m.CreatedAt, &state.CreatedAt},
		{&m.CommonCodeKey, &state.CommonCodeKey},
	} {
		if !text.planned.IsUnknown() {
			*text.filled = *text.planned
		}
	}
	if !m.IsExternalModificationAllowed.IsUnknown() {
		state.IsExternalModificationAllowed = m.IsExternalModificationAllowed
	}
	if !m.Errors.IsUnknown() {
		state.Errors = m.Errors
	}
	state.Offline = m.Offline
	if !m.backup().IsAvailable.IsUnknown() {
		state.Backup = m.Backup
	}
	state.StartsAt, state.EndsAt = m.StartsAt, m.EndsAt
	return &state
}

// createRequest returns the request that creates the planned code. The server decides what is not configured.
func (m *accessCodeModel) createRequest() api.CreateAccessCodeRequest {
	return api.CreateAccessCodeRequest{
		DeviceID:                      m.DeviceID.ValueString(),
		Name:                          m.Name.ValueString(),
		Code:                          m.pin(),
		StartsAt:                      m.StartsAt.ValueString(),
		EndsAt:                        m.EndsAt.ValueString(),
		IsExternalModificationAllowed: knownBool(m.IsExternalModificationAllowed),
		PreferredCodeLength:           int(m.PreferredCodeLength.ValueInt64()),
		CommonCodeKey:                 m.CommonCodeKey.ValueString(),
		PreferNativeScheduling:        knownBool(m.PreferNativeScheduling),
		AttemptForOfflineDevice:       knownBool(m.AttemptForOfflineDevice),
		UseBackupAccessCodePool:       m.backup().UsePool.ValueBool(),
		IsOfflineAccessCode:           m.isOffline(),
		IsOneTimeUse:                  m.offline().IsOneTimeUse.ValueBool(),
		MaxTimeRounding: api.CreateAccessCodeRequestMaxTimeRounding(
			m.offline().MaxTimeRounding.ValueString(),
		),
	}
}

func (m *accessCodeModel) convertRequest() api.ConvertAccessCodeRequest {
	return api.ConvertAccessCodeRequest{
		AccessCodeID:                  m.AccessCodeID.ValueString(),
		IsExternalModificationAllowed: knownBool(m.IsExternalModificationAllowed),
	}
}

// updateRequest returns the request for the changes of the plan, and whether there are any. An offline code cannot be
// changed.
func (m *accessCodeModel) updateRequest(state *accessCodeModel) (request api.UpdateAccessCodeRequest, changes bool) {
	request.AccessCodeID, request.AttemptForOfflineDevice = state.AccessCodeID.ValueString(), knownBool(
		m.AttemptForOfflineDevice,
	)
	if state.isOffline() {
		return request, false
	}
	if isPlannedChange(m.Name, state.Name) {
		request.Name, changes = m.Name.ValueStringPointer(), true
	}
	if isPlannedChange(m.Code, state.Code) || m.writesOnly() && !m.CodeWOVersion.Equal(state.CodeWOVersion) {
		request.Code, changes = m.pin(), true
	}
	if isPlannedChange(m.IsExternalModificationAllowed, state.IsExternalModificationAllowed) {
		request.IsExternalModificationAllowed, changes = knownBool(m.IsExternalModificationAllowed), true
	}
	if !m.hasSameFrame(state) {
		request.Type, changes = m.plannedType(), true
		request.StartsAt, request.EndsAt = m.StartsAt.ValueString(), m.EndsAt.ValueString()
	}
	return request, changes
}

// hasSameFrame reports whether both have the same time frame.
func (m *accessCodeModel) hasSameFrame(other *accessCodeModel) bool {
	return m.StartsAt.same(other.StartsAt) && m.EndsAt.same(other.EndsAt)
}

// plannedType returns the type of a code with this time frame.
func (m *accessCodeModel) plannedType() api.AccessCodeType {
	if m.StartsAt.IsNull() && m.EndsAt.IsNull() && !m.isOffline() {
		return api.Ongoing
	}
	return api.TimeBound
}

// isPlannedChange reports whether the plan has a known value that differs from the state.
func isPlannedChange(plan, state attr.Value) bool {
	return isSet(plan) && !plan.Equal(state)
}

func isSet(value attr.Value) bool { return !value.IsNull() && !value.IsUnknown() }

func knownBool(value types.Bool) *bool {
	if value.IsUnknown() {
		return nil
	}
	return value.ValueBoolPointer()
}

func timestamp(t time.Time) types.String { return instantOf(&t).StringValue }
