package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

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
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/planmodifiers"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
)

var (
	_ resource.ResourceWithIdentity       = (*sharedAccessCodeResource)(nil)
	_ resource.ResourceWithImportState    = (*sharedAccessCodeResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*sharedAccessCodeResource)(nil)
	_ resource.ResourceWithValidateConfig = (*sharedAccessCodeResource)(nil)
)

type sharedAccessCodeResource struct{ connectedResource }

func newSharedAccessCodeResource() resource.Resource { return &sharedAccessCodeResource{} }

func (r *sharedAccessCodeResource) Metadata(
	_ context.Context,
	req resource.MetadataRequest,
	resp *resource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_shared_access_code"
	resp.ResourceBehavior.MutableIdentity = true // adding and removing locks changes the identity
}

const (
	actionRead   = "read access code"
	actionAdopt  = "import shared access code"
	actionPut    = "set the access code on a lock"
	actionRemove = "remove the access code from a lock"
)

// Create creates the code on every lock. Only if every lock has refused it, Create fails: an error taints the
// resource, and the next apply removes the code from the locks that have it.
func (r *sharedAccessCodeResource) Create(
	ctx context.Context,
	req resource.CreateRequest,
	resp *resource.CreateResponse,
) {
	var plan sharedAccessCodeModel
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

	if plan.Code.IsUnknown() {
		pin, err := sharedPIN(ctx, client, plan.devices(ctx))
		if err != nil {
			report(&resp.Diagnostics, "choose a PIN for all locks", err)
			return
		}
		plan.Code = types.StringValue(pin)
	}
	results := onEach(
		plan.devices(ctx),
		func(deviceID string) lockResult { return plan.createOn(ctx, r.connection, deviceID) },
	)
	codes := map[string]lockCode{}
	exists, everyLockRefused := false, true
	for deviceID, result := range results {
		codes[deviceID] = result.code
		exists = exists || !result.code.AccessCodeID.IsNull()
		everyLockRefused = everyLockRefused && result.isRefused()
	}
	add := diagnostics.WarningAt
	if !exists || everyLockRefused {
		add = diagnostics.ErrorAt
	}
	for _, deviceID := range slices.Sorted(maps.Keys(results)) {
		if result := results[deviceID]; result.err != nil {
			plan.reportLock(ctx, client, &resp.Diagnostics, add, exists, actionPut, deviceID, result)
		}
	}
	if exists {
		resp.Diagnostics.Append(r.rememberWorkspace(ctx, resp.Private, "")...)
		resp.Diagnostics.Append(recordUncertain(ctx, resp.Private, results)...)
		resp.Diagnostics.Append(plan.setCodes(ctx, codes)...)
		plan.CodeWO = types.StringNull() // write-only values are never stored
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
		resp.Diagnostics.Append(resp.Identity.Set(ctx, plan.identity(ctx))...)
	}
}

func (r *sharedAccessCodeResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var model sharedAccessCodeModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	// The framework requires an identity even for a deleted resource, and Terraform before 1.12 stores none.
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity(ctx))...)
	imported := model.Name.IsNull()
	if !imported && r.skipsRefresh(&resp.Diagnostics) {
		return
	}
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	codes := model.codes(ctx)
	found := onEach(slices.Sorted(maps.Keys(codes)), func(deviceID string) foundCode {
		return readOnLock(ctx, r.refreshCode, client, deviceID, codes[deviceID].AccessCodeID.ValueString())
	})
	nothing := imported
	for _, deviceID := range named(ctx, req.Private, codes, &resp.Diagnostics) {
		one := found[deviceID]
		if one.err != nil && imported {
			id := codes[deviceID].AccessCodeID.ValueString()
			reportImport(&resp.Diagnostics, actionAdopt, "access code", id, whereIdentifiersAre, one.err)
			return
		}
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
	if nothing { // nothing to import
		var wrong []string
		for _, deviceID := range slices.Sorted(maps.Keys(codes)) {
			if id := codes[deviceID].AccessCodeID.ValueString(); id != "" {
				wrong = append(wrong, nothingToImport(ctx, client, deviceID, id))
			}
		}
		diagnostics.Failure(
			&resp.Diagnostics,
			actionAdopt,
			strings.Join(append(wrong, "Nothing was imported."), "\n"),
		)
		return
	}
	for deviceID, one := range found {
		switch {
		case one.managed != nil:
			was := codes[deviceID].AsDeclared // null during an import
			doubted := was.Equal(types.BoolValue(false)) && model.codeOn("", "").isUncertain(one.managed, true)
			codes[deviceID] = model.managed(one.managed).undeclaredIf(doubted)
		case one.unmanaged != nil:
			codes[deviceID] = model.unmanaged(one.unmanaged)
		case !codes[deviceID].AccessCodeID.IsNull():
			if !imported && !r.isDeleted(ctx, req.Private, actionRead, &resp.Diagnostics) {
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

// Update changes only the locks that are new, removed, or not as declared.
func (r *sharedAccessCodeResource) Update(
	ctx context.Context,
	req resource.UpdateRequest,
	resp *resource.UpdateResponse,
) {
	var plan, state sharedAccessCodeModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(plan.readWriteOnly(ctx, req.Config)...)
	timeout, diags := plan.Timeouts.Update(ctx, r.defaults().update)
	resp.Diagnostics.Append(diags...)
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	state.Timeouts, state.Keepers = plan.Timeouts, plan.Keepers // store these even if the rest fails
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, state.identity(ctx))...)
	codes, wanted := state.codes(ctx), plan.devices(ctx)
	if plan.Code.IsUnknown() && !plan.learnPIN(ctx, client, &state, codes) {
		diagnostics.Failure(
			&resp.Diagnostics,
			actionPut,
			"The PIN of the shared code is not known, because the server does "+
				"not return it. Set `code`.",
		)
		return
	}
	unsettled := state.findUnanswered(
		ctx,
		client,
		codes,
		state.uncertainLocks(ctx, req.Private, &resp.Diagnostics),
		&plan,
	)
	r.dropUnknownLocks(ctx, req.Private, unsettled, &resp.Diagnostics)
	if plan.changesSearch(&state) && plan.reportUnsearched(ctx, client, unsettled, &resp.Diagnostics) {
		return
	}
	work := slices.DeleteFunc(
		slices.Clone(wanted),
		func(deviceID string) bool { return !plan.needsChange(&state, codes, deviceID) },
	)
	for deviceID := range codes {
		if !slices.Contains(wanted, deviceID) {
			work = append(work, deviceID)
		}
	}
	results := onEach(work, func(deviceID string) lockResult {
		code, known := codes[deviceID]
		switch {
		case unsettled[deviceID].err != nil:
			return unsettled[deviceID]
		case !slices.Contains(wanted, deviceID):
			return plan.removeFrom(ctx, r.connection, deviceID, code, unsettled[deviceID].uncertain)
		case known && !code.AccessCodeID.IsNull():
			return plan.updateOn(ctx, r.connection, deviceID, code.AccessCodeID.ValueString())
		default:
			result := plan.createOn(ctx, r.connection, deviceID)
			result.unresolved = unsettled[deviceID].uncertain
			if unsettled[deviceID].removed && result.err != nil { // the lock may return
				result.unresolved, result.uncertain = nil, unsettled[deviceID].uncertain
			}
			return result
		}
	})
	r.resolveUnknownCodes(ctx, req.Private, results, &resp.Diagnostics)
	r.storeResults(ctx, client, &plan, codes, results, &resp.Diagnostics)
	resp.Diagnostics.Append(recordUncertain(ctx, resp.Private, results)...)
	plan.CodeWO = types.StringNull() // write-only values are never stored
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, plan.identity(ctx))...)
}

// learnPIN copies the PIN of the shared code from the state or from the codes on the locks. It returns false if
// neither has it.
func (m *sharedAccessCodeModel) learnPIN(
	ctx context.Context,
	client *api.Client,
	state *sharedAccessCodeModel,
	codes map[string]lockCode,
) bool {
	m.Code = state.Code
	for _, deviceID := range slices.Sorted(maps.Keys(codes)) {
		if m.Code.ValueString() != "" {
			break
		}
		if found := readOnLock(
			ctx,
			findCode,
			client,
			deviceID,
			codes[deviceID].AccessCodeID.ValueString(),
		); found.managed != nil {
			m.Code = types.StringPointerValue(found.managed.Code)
		}
	}
	return m.Code.ValueString() != ""
}

// needsChange reports whether a lock of the plan needs a change.
func (m *sharedAccessCodeModel) needsChange(
	state *sharedAccessCodeModel,
	codes map[string]lockCode,
	deviceID string,
) bool {
	code, known := codes[deviceID]
	return !known || !code.AsDeclared.ValueBool() || isBeingDeleted(code.Status) || m.changes(state)
}

// resolveUnknownCodes marks codes that the server does not know as removed. If the key belongs to another workspace,
// it adds an error and the codes stay in the shared code. The timeout may have ended by then.
func (r *sharedAccessCodeResource) resolveUnknownCodes(
	ctx context.Context,
	private privateState,
	results map[string]lockResult,
	diags *diag.Diagnostics,
) {
	ctx, cancel := finalReadContext(ctx)
	defer cancel()
	may := sync.OnceValue(func() bool { return r.isDeleted(ctx, private, actionRemove, diags) })
	for deviceID, result := range results {
		if errors.Is(result.err, errGone) {
			results[deviceID] = lockResult{code: result.code, removed: may()}
		}
	}
}

// dropUnknownLocks ends the search for the code of an unanswered creation if the server does not know the lock, so
// that other locks need not wait. If the key belongs to another workspace, it adds an error instead.
func (r *sharedAccessCodeResource) dropUnknownLocks(
	ctx context.Context,
	private privateState,
	unsettled map[string]lockResult,
	diags *diag.Diagnostics,
) {
	ctx, cancel := finalReadContext(ctx)
	defer cancel()
	may := sync.OnceValue(func() bool { return r.isDeleted(ctx, private, actionRemove, diags) })
	for deviceID, result := range unsettled {
		if api.IsNotFound(result.err) && may() {
			result.err, result.removed = nil, true
			unsettled[deviceID] = result
		}
	}
}

// storeResults stores the results of the work on locks in the model, and adds errors. A lock whose code could not be
// removed stays in the shared code, so that the next plan removes it.
func (r *sharedAccessCodeResource) storeResults(
	ctx context.Context,
	client *api.Client,
	model *sharedAccessCodeModel,
	codes map[string]lockCode,
	results map[string]lockResult,
	diags *diag.Diagnostics,
) {
	wanted := model.devices(ctx)
	for _, deviceID := range slices.Sorted(maps.Keys(results)) {
		result := results[deviceID]
		if result.unresolved != nil {
			model.warnOfLost(ctx, client, diags, deviceID, result)
		}
		if result.removed {
			delete(codes, deviceID)
			continue
		}
		codes[deviceID] = result.code
		if result.err != nil {
			action := actionPut
			if !slices.Contains(wanted, deviceID) {
				action = actionRemove
			}
			add := diagnostics.ErrorAt
			if isAccepted(result.err) {
				add = diagnostics.WarningAt
			}
			model.reportLock(ctx, client, diags, add, true, action, deviceID, result)
		}
	}
	diags.Append(model.setCodes(ctx, codes)...)
	diags.Append(model.setDevices(ctx, codes)...)
}

func (r *sharedAccessCodeResource) Delete(
	ctx context.Context,
	req resource.DeleteRequest,
	resp *resource.DeleteResponse,
) {
	var model sharedAccessCodeModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	timeout, diags := model.Timeouts.Delete(ctx, r.defaults().delete)
	resp.Diagnostics.Append(diags...)
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	codes := model.codes(ctx)
	unsettled := model.findUnanswered(
		ctx,
		client,
		codes,
		model.uncertainLocks(ctx, req.Private, &resp.Diagnostics),
		&model,
	)
	r.dropUnknownLocks(ctx, req.Private, unsettled, &resp.Diagnostics)
	results := onEach(slices.Sorted(maps.Keys(codes)), func(deviceID string) lockResult {
		if unsettled[deviceID].err != nil {
			return unsettled[deviceID]
		}
		return model.removeFrom(ctx, r.connection, deviceID, codes[deviceID], unsettled[deviceID].uncertain)
	})
	r.resolveUnknownCodes(ctx, req.Private, results, &resp.Diagnostics)
	model.DeviceIDs = types.SetValueMust(types.StringType, nil)
	r.storeResults(ctx, client, &model, codes, results, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
	}
}

func (r *sharedAccessCodeResource) Schema(
	ctx context.Context,
	_ resource.SchemaRequest,
	resp *resource.SchemaResponse,
) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "One person's access code on many locks: the same name, PIN, and time frame on " +
			"each.\n\nThe provider handles each lock separately. A lock that you add gets the code, and a lock that " +
			"you remove loses it; other locks are not touched. Apply repairs a code that was changed or deleted. " +
			"When a lock fails, the others keep their code, the message names the lock, and the next apply retries " +
			"it. The server itself finishes work that waits for an offline lock. While the shared code is created, " +
			"the message is a warning, unless every lock has refused the code: after an error, Terraform would " +
			"replace the whole shared code. The example shows how to fail the run.\n\nIf the server did not answer a creation, " +
			"the code may be on the lock. The next apply looks for a code of that name and PIN and adopts it. That " +
			"is not possible on servers that hide PINs, after `code_wo` has changed, or in a destroy with " +
			"`code_wo`. A warning then names the codes of that name on the lock, and the provider does not touch " +
			"them.\n\nA lock that you add gets the configured `code_wo`. For what an import, a removal of " +
			"`code_wo`, and a change of `keepers` do, see `deviceaccess_access_code`. A new `name` alone keeps the " +
			"PIN on the doors.",
		Attributes: map[string]schema.Attribute{
			"device_ids": schema.SetAttribute{
				Required:    true,
				ElementType: types.StringType,
				MarkdownDescription: "The locks that hold the code. While it is not known and may leave out a lock, an " +
					"existing code stays on its locks until the next apply.",
				Validators: []validator.Set{validators.NotEmpty{Hint: "Name the locks; without any, leave " +
					"the resource out."}, setvalidator.ValueStringsAre(validators.Identifier{Hint: "Name a lock; " +
					"the data source deviceaccess_devices lists them."})},
			},
			"name": schema.StringAttribute{
				Required: true,
				MarkdownDescription: "The name of the code on each lock, such as the person's name, up to 255 " +
					"characters. A lock that limits the names of codes gets a shortened form.",
				Validators: []validator.String{validators.NotEmpty{Hint: "Give it a name, such as that of " +
					"the person."}},
			},
			"code": schema.StringAttribute{
				Optional:  true,
				Computed:  true,
				Sensitive: true,
				MarkdownDescription: "The PIN: 4 to 12 digits. By default the provider chooses one that fits all " +
					"locks and that none of them has; the state contains it.",
				Validators:    []validator.String{validators.PIN{}, validators.ConflictsWith{Attribute: "code_wo"}},
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseNonNullStateForUnknown()},
			},
			"code_wo": schema.StringAttribute{
				Optional:  true,
				Sensitive: true,
				WriteOnly: true,
				MarkdownDescription: "The PIN, write-only: neither the plan nor the state contains it. Requires " +
					"Terraform 1.11 or newer, and `code_wo_version`.",
				Validators: []validator.String{
					validators.PIN{},
					validators.AlsoRequires{
						Attribute: "code_wo_version",
						Hint:      "Set it to 1, and raise it to write the PIN again.",
					},
				},
			},
			"code_wo_version": schema.Int64Attribute{
				Optional: true,
				MarkdownDescription: "The version of `code_wo`, a number that you choose. When it changes, the " +
					"provider writes the PIN to all locks.",
				Validators: []validator.Int64{
					validators.AlsoRequires{Attribute: "code_wo", Hint: "Set it to the PIN, or leave the version " +
						"out."},
				},
			},
			"starts_at": schema.StringAttribute{
				Optional:   true,
				CustomType: instantType{},
				MarkdownDescription: "From when the code opens the locks, in RFC 3339 with a time zone, such as " +
					"`2026-11-21T15:00:00Z`. Requires `ends_at`; without both, the code opens always.",
				Validators: []validator.String{
					validators.AlsoRequires{
						Attribute: "ends_at",
						Hint:      "Set both, or leave both out for a code that opens always.",
					},
				},
				PlanModifiers: []planmodifier.String{planmodifiers.SameInstant{}},
			},
			"ends_at": schema.StringAttribute{
				Optional:   true,
				CustomType: instantType{},
				MarkdownDescription: "Until when the code opens the locks, in RFC 3339 with a time zone. Then the " +
					"server deletes the codes, and Terraform plans to create them again.",
				Validators: []validator.String{
					validators.AlsoRequires{
						Attribute: "starts_at",
						Hint:      "Set both, or leave both out for a code that opens always.",
					},
				},
				PlanModifiers: []planmodifier.String{planmodifiers.SameInstant{}},
			},
			"keepers": keepersAttribute(),
			"access_codes": schema.MapNestedAttribute{
				Computed:            true,
				MarkdownDescription: "The code on each lock, by `device_id`.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"access_code_id": schema.StringAttribute{
						Computed: true,
						MarkdownDescription: "The identifier of the access code. Null if the lock has none, " +
							"because the creation failed or the code was deleted.",
					},
					"status": schema.StringAttribute{
						Computed: true,
						MarkdownDescription: "The state of the code on the lock, such as `setting` or `set`; " +
							"`missing` if there is none.",
					},
					"as_declared": schema.BoolAttribute{
						Computed: true,
						MarkdownDescription: "Whether the server has the code as configured, the lock has not " +
							"rejected it, and it is not being deleted. If `false`, the next apply repairs the code.",
					},
					"errors": problemsAttribute("Why the code does not work. Empty if it works."),
				}},
			},
		},
		Blocks: map[string]schema.Block{
			"timeouts": timeoutsBlock(ctx, timeouts.Opts{
				Create: true,
				Update: true,
				Delete: true,
				CreateDescription: "How long to wait for the locks to take the code, such as `30s` or `10m`. By " +
					"default `5m`.",
				UpdateDescription: "How long to wait for changes, such as `30s` or `10m`. By default `5m`.",
				DeleteDescription: "How long to wait for the code to be off the locks, such as `30s` or `10m`. By " +
					"default `5m`.",
			}),
		},
	}
}

// sharedAccessCodeIdentity identifies a shared code in Terraform 1.12 and newer. Servers have no shared codes, so the
// identity lists the codes and changes with them. It is one text, because Terraform prints no lists in identities.
type sharedAccessCodeIdentity struct {
	// AccessCodes has <device_id>/<access_code_id>, or <device_id> for a lock without a code, sorted and separated by
	// commas.
	AccessCodes types.String `tfsdk:"access_codes"`
}

// IdentitySchema describes sharedAccessCodeIdentity.
func (r *sharedAccessCodeResource) IdentitySchema(
	_ context.Context,
	_ resource.IdentitySchemaRequest,
	resp *resource.IdentitySchemaResponse,
) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"access_codes": identityschema.StringAttribute{
			RequiredForImport: true,
			Description: "The codes of the shared code, separated by commas, each as " +
				"`<device_id>/<access_code_id>`, or as `<device_id>` if the lock has none yet.",
		},
	}}
}

func (m *sharedAccessCodeModel) identity(ctx context.Context) sharedAccessCodeIdentity {
	codes := m.codes(ctx)
	var named []string
	for _, deviceID := range slices.Sorted(maps.Keys(codes)) {
		one := deviceID
		if id := codes[deviceID].AccessCodeID.ValueString(); id != "" {
			one += "/" + id
		}
		named = append(named, one)
	}
	return sharedAccessCodeIdentity{types.StringValue(strings.Join(named, ","))}
}

// namedKey is the key of the private state for the locks in the order of the import. The read after the import needs
// it, because maps and sets have no order.
const namedKey = "named"

func rememberNamed(ctx context.Context, private privateState, locks []string) diag.Diagnostics {
	encoded, _ := json.Marshal(locks) // strings always encode
	return private.SetKey(ctx, namedKey, encoded)
}

// named returns the locks of codes. Those that an import has named come first, in that order.
func named(
	ctx context.Context,
	private privateState,
	codes map[string]lockCode,
	diags *diag.Diagnostics,
) (locks []string) {
	stored, problems := private.GetKey(ctx, namedKey)
	diags.Append(problems...)
	_ = json.Unmarshal(stored, &locks) // none, where nothing was stored
	for _, deviceID := range slices.Sorted(maps.Keys(codes)) {
		if !slices.Contains(locks, deviceID) {
			locks = append(locks, deviceID)
		}
	}
	return locks
}

// ImportState accepts the codes of the shared code as <device_id>/<access_code_id>, separated by commas, as an ID or in
// an identity. It changes nothing: Read reads the codes, and apply changes those that differ from the first.
func (r *sharedAccessCodeResource) ImportState(
	ctx context.Context,
	req resource.ImportStateRequest,
	resp *resource.ImportStateResponse,
) {
	if r.cannotImport(req, resp) {
		return
	}
	given, byIdentity := sharedAccessCodeIdentity{types.StringValue(req.ID)}, req.ID == ""
	if byIdentity {
		resp.Diagnostics.Append(req.Identity.Get(ctx, &given)...)
	}
	if given.AccessCodes.ValueString() == "" {
		diagnostics.Failure(&resp.Diagnostics, actionAdopt, "The identity contains no codes. Set "+
			"`access_codes` to `<device_id>/<access_code_id>` for each lock, separated by commas.")
		return
	}
	codes, locks := map[string]lockCode{}, []string{}
	for one := range strings.SplitSeq(given.AccessCodes.ValueString(), ",") {
		deviceID, id, hasCode := strings.Cut(strings.TrimSpace(one), "/")
		if _, twice := codes[deviceID]; twice || deviceID == "" || id == "" && (hasCode || !byIdentity) ||
			strings.Contains(id, "/") {
			diagnostics.Failure(&resp.Diagnostics, actionAdopt, fmt.Sprintf("%q is not "+
				"`<device_id>/<access_code_id>` of a lock, or repeats a lock. Commas separate the locks.", one))
			return
		}
		code := noCode()
		if hasCode {
			code.AccessCodeID = types.StringValue(id)
		}
		codes[deviceID], locks = code, append(locks, deviceID)
	}
	resp.Diagnostics.Append(rememberNamed(ctx, resp.Private, locks)...)
	var model sharedAccessCodeModel
	resp.Diagnostics.Append(model.setCodes(ctx, codes)...)
	resp.Diagnostics.Append(model.setDevices(ctx, codes)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("access_codes"), model.AccessCodes)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("device_ids"), model.DeviceIDs)...)
}

// ValidateConfig checks rules that involve several attributes.
func (r *sharedAccessCodeResource) ValidateConfig(
	ctx context.Context,
	req resource.ValidateConfigRequest,
	resp *resource.ValidateConfigResponse,
) {
	var config sharedAccessCodeModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	checkTimeFrame(config.StartsAt, config.EndsAt, &resp.Diagnostics)
}

// ModifyPlan plans each lock separately: codes as declared keep their state, and only locks that need a change become
// unknown.
func (r *sharedAccessCodeResource) ModifyPlan(
	ctx context.Context,
	req resource.ModifyPlanRequest,
	resp *resource.ModifyPlanResponse,
) {
	if req.Plan.Raw.IsNull() {
		return
	}
	var plan, state sharedAccessCodeModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	exists := !req.State.Raw.IsNull()
	var before map[string]lockCode
	if exists {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
		before = state.codes(ctx)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	if plan.writesOnly() {
		plan.Code = types.StringNull()
	}
	if exists {
		warnOfLostFrame(&resp.Diagnostics, plan.StartsAt, plan.EndsAt, state.codeOn("", ""))
		if !planmodifiers.KeepersDiffer(state.Keepers, plan.Keepers) {
			plan.keepLocks(ctx, &state, &resp.Diagnostics)
			plan.warnOfReading(ctx, req.Config, &state, &resp.Diagnostics)
		}
	} else {
		r.warnOfLostSharedCode(ctx, &resp.Diagnostics, &plan)
	}
	plan.AccessCodes = types.MapUnknown(lockCodeType)
	if known, _ := plan.DeviceIDs.ToTerraformValue(ctx); known.IsFullyKnown() {
		codes := map[string]attr.Value{}
		for _, deviceID := range plan.devices(ctx) {
			if exists && !plan.needsChange(&state, before, deviceID) {
				codes[deviceID] = state.AccessCodes.Elements()[deviceID]
			} else {
				codes[deviceID] = types.ObjectUnknown(lockCodeType.AttrTypes)
			}
		}
		plan.AccessCodes = types.MapValueMust(lockCodeType, codes)
		plan.warnOfDeletions(ctx, &resp.Diagnostics, before)
		if exists && !planmodifiers.KeepersDiffer(state.Keepers, plan.Keepers) {
			r.warnOfDifferences(ctx, req.Config, plan, before, &resp.Diagnostics)
		}
		if plan.creates(ctx, &state, before) {
			warnOfEnd(&resp.Diagnostics, plan.EndsAt)
		}
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	r.checkPlan(ctx, req, resp)
}

// creates reports whether the plan creates a code on any lock. The map before is nil if the shared code does not exist
// yet.
func (m *sharedAccessCodeModel) creates(
	ctx context.Context,
	state *sharedAccessCodeModel,
	before map[string]lockCode,
) bool {
	return before == nil || planmodifiers.KeepersDiffer(state.Keepers, m.Keepers) ||
		slices.ContainsFunc(m.devices(ctx), func(deviceID string) bool {
			code, known := before[deviceID]
			return !known || code.AccessCodeID.IsNull() || isBeingDeleted(code.Status)
		})
}

type sharedAccessCodeModel struct {
	DeviceIDs     types.Set      `tfsdk:"device_ids"`
	Name          types.String   `tfsdk:"name"`
	Code          types.String   `tfsdk:"code"`
	CodeWO        types.String   `tfsdk:"code_wo"`
	CodeWOVersion types.Int64    `tfsdk:"code_wo_version"`
	StartsAt      instant        `tfsdk:"starts_at"`
	EndsAt        instant        `tfsdk:"ends_at"`
	Keepers       types.Map      `tfsdk:"keepers"`
	AccessCodes   types.Map      `tfsdk:"access_codes"`
	Timeouts      timeouts.Value `tfsdk:"timeouts"`
}

// lockCode is the code of a shared code on one lock.
type lockCode struct {
	AccessCodeID types.String `tfsdk:"access_code_id"`
	Status       types.String `tfsdk:"status"`
	AsDeclared   types.Bool   `tfsdk:"as_declared"`
	Errors       []problem    `tfsdk:"errors"`
}

var lockCodeType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"access_code_id": types.StringType, "status": types.StringType, "as_declared": types.BoolType,
	"errors": types.ListType{ElemType: problemType},
}}

// statusMissing is the status of a lock without a code of the shared code.
const statusMissing = "missing"

func noCode(errors ...problem) lockCode {
	return lockCode{
		Status:     types.StringValue(statusMissing),
		AsDeclared: types.BoolValue(false),
		Errors:     append([]problem{}, errors...),
	}
}

// undeclaredIf returns the code, with as_declared false if so is true.
func (c lockCode) undeclaredIf(so bool) lockCode {
	if so {
		c.AsDeclared = types.BoolValue(false)
	}
	return c
}

// devices returns the locks of the shared code, sorted. They must be known.
func (m *sharedAccessCodeModel) devices(ctx context.Context) []string {
	var ids []string
	m.DeviceIDs.ElementsAs(ctx, &ids, false)
	slices.Sort(ids)
	return ids
}

// codes returns the codes of the shared code by lock, or nil if they are not known.
func (m *sharedAccessCodeModel) codes(ctx context.Context) map[string]lockCode {
	var codes map[string]lockCode
	m.AccessCodes.ElementsAs(ctx, &codes, false)
	return codes
}

// setCodes stores the codes of all locks.
func (m *sharedAccessCodeModel) setCodes(ctx context.Context, codes map[string]lockCode) (diags diag.Diagnostics) {
	m.AccessCodes, diags = types.MapValueFrom(ctx, lockCodeType, codes)
	return diags
}

// setDevices stores the locks.
func (m *sharedAccessCodeModel) setDevices(ctx context.Context, codes map[string]lockCode) (diags diag.Diagnostics) {
	m.DeviceIDs, diags = types.SetValueFrom(ctx, types.StringType, slices.Collect(maps.Keys(codes)))
	return diags
}

// codeOn returns the desired code on a lock.
func (m *sharedAccessCodeModel) codeOn(deviceID, id string) *accessCodeModel {
	return &accessCodeModel{
		AccessCodeID:  types.StringValue(id),
		DeviceID:      types.StringValue(deviceID),
		Name:          m.Name,
		Code:          m.Code,
		CodeWO:        m.CodeWO,
		CodeWOVersion: m.CodeWOVersion,
		StartsAt:      m.StartsAt,
		EndsAt:        m.EndsAt,
	}
}

// writesOnly reports whether the PIN comes from code_wo.
func (m *sharedAccessCodeModel) writesOnly() bool { return !m.CodeWOVersion.IsNull() }

// hidesPIN reports whether a code cannot be compared with the PIN of the shared code: the PIN is write-only or the
// server hides it.
func (m *sharedAccessCodeModel) hidesPIN(code *api.AccessCode) bool {
	return m.writesOnly() || code.Code == nil
}

// pin returns the PIN of the shared code, or "" if it is not known.
func (m *sharedAccessCodeModel) pin() string { return m.codeOn("", "").pin() }

// changes reports whether the plan has other codes than the state.
func (m *sharedAccessCodeModel) changes(state *sharedAccessCodeModel) bool {
	if m.Code.IsUnknown() || m.Name.IsUnknown() || m.StartsAt.IsUnknown() || m.EndsAt.IsUnknown() {
		return true
	}
	_, changes := m.codeOn("", "").updateRequest(state.codeOn("", ""))
	return changes
}

// managed converts a managed code. A PIN that the server hides counts as unchanged. A code that its lock has rejected
// or that is being deleted is not as declared.
func (m *sharedAccessCodeModel) managed(code *api.AccessCode) lockCode {
	actual := m.codeOn(code.DeviceID, code.AccessCodeID)
	actual.fill(code)
	_, changes := m.codeOn(code.DeviceID, code.AccessCodeID).updateRequest(actual)
	return lockCode{
		AccessCodeID: types.StringValue(code.AccessCodeID),
		Status:       types.StringValue(string(code.Status)),
		AsDeclared:   types.BoolValue(!changes && !isRejected(code) && code.Status != api.Removing),
		Errors:       m.problems(code.Errors, code.Code),
	}
}

// unmanaged converts a code that has become unmanaged. Apply converts it to managed.
func (m *sharedAccessCodeModel) unmanaged(code *api.UnmanagedAccessCode) lockCode {
	return lockCode{
		AccessCodeID: types.StringValue(code.AccessCodeID),
		Status:       types.StringValue(code.Status),
		AsDeclared:   types.BoolValue(false),
		Errors:       m.problems(code.Errors, code.Code),
	}
}

// problems converts the errors of a code. It removes the PINs of the shared code and the server.
func (m *sharedAccessCodeModel) problems(problems []api.Problem, returned *string) []problem {
	return problemsOf(problems, pinsOf(returned, m.codeOn("", ""))...)
}

func (m *sharedAccessCodeModel) hide(text string) string {
	return api.Redact(text, m.pin())
}

// adopt copies the name, PIN, and time frame of a code, after an import.
func (m *sharedAccessCodeModel) adopt(found foundCode) {
	var code accessCodeModel
	if found.managed != nil {
		code.fill(found.managed)
	} else {
		code.fillUnmanaged(found.unmanaged)
	}
	m.Name, m.Code, m.StartsAt, m.EndsAt = code.Name, code.Code, code.StartsAt, code.EndsAt
}
