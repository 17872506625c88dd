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
	add := diagnostics.ErrorAt
	if exists && (len(failures) < len(codes) || errors.Is(ctx.Err(), context.Canceled)) {
		add = diagnostics.WarningAt
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
		diagnostics.Error(&resp.Diagnostics, "Import access code set", strings.Join(append(wrong, "Nothing was imported."), "\n"))
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
		diagnostics.Error(&resp.Diagnostics, actionPut, "The PIN of the set is not known, because the server does not tell it. Write it into `code`.")
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
			model.reportLock(ctx, client, diags, diagnostics.ErrorAt, true, action, deviceID, result)
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

func (r *accessCodeSetResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "One person's access code on many locks: the same name, PIN and time frame on each.\n\n" +
			"Each lock is handled by itself. One that is added gets the code and the others are not touched; one that is taken out loses its " +
			"code; one whose code was changed or deleted is repaired. When a lock fails, the others keep what they got, the message names the " +
			"lock, and the next apply finishes; what waits for a lock that is offline the server finishes by itself. While the set is created, that message is a warning as long as some lock has taken the code: after an " +
			"error Terraform would replace the whole set. The example shows how to make the run fail.\n\n" +
			"Where the creation of a code was not answered, so that it may be on the lock all the same, the next apply looks there for one of that name and " +
			"PIN, and takes it over. Servers that do not tell PINs do not allow that: the message says where to look. Nor can it be told once `code_wo` is " +
			"another, or by a destroy with `code_wo`: a warning then names the codes of that name that are on the lock, and none of them is touched.",
		Attributes: map[string]schema.Attribute{
			"device_ids": schema.SetAttribute{
				Required: true, ElementType: types.StringType,
				MarkdownDescription: "The locks that the code is on.",
				Validators:          []validator.Set{validators.NotEmpty{Hint: "Name the locks; without any, leave the resource out."}, setvalidator.ValueStringsAre(validators.Identifier{Hint: "Name a lock; the data source deviceaccess_devices lists those there are."})},
			},
			"name": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "The name of the code on each lock, such as that of the person. Some locks take short names only.",
				Validators:          []validator.String{validators.NotEmpty{Hint: "Give it a name, such as that of the person."}},
			},
			"code": schema.StringAttribute{
				Optional: true, Computed: true, Sensitive: true,
				MarkdownDescription: "The PIN: 4 to 12 digits. By default one is chosen that fits all locks of `device_ids` and that none of them has " +
					"yet. It is kept in the state, so use a backend that encrypts, or `code_wo`. Null with `code_wo`.",
				Validators:    []validator.String{validators.PIN{}, validators.ConflictsWith{Attribute: "code_wo"}},
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseNonNullStateForUnknown()},
			},
			"code_wo": schema.StringAttribute{
				Optional: true, Sensitive: true, WriteOnly: true,
				MarkdownDescription: "The PIN, instead of `code`, where it must not get into the plan or the state. Needs Terraform 1.11 or newer, and " +
					"`code_wo_version`. Whether the locks still have it cannot be compared then: raise the version to write it again. A lock that is added " +
					"gets the PIN that is written here now. An import knows no configuration and reads the PIN into the state; the apply after it takes it out. Taking " +
					"`code_wo` out leaves the PIN as it is and reads it into the state, of which the plan warns.",
				Validators: []validator.String{validators.PIN{}, validators.AlsoRequires{Attribute: "code_wo_version", Hint: "Set it to 1, and raise it to write the PIN again."}},
			},
			"code_wo_version": schema.Int64Attribute{
				Optional:            true,
				MarkdownDescription: "The version of `code_wo`, a number of your own. When it changes, the PIN is written to all locks.",
				Validators:          []validator.Int64{validators.AlsoRequires{Attribute: "code_wo", Hint: "Set it to the PIN, or leave the version out."}},
			},
			"starts_at": schema.StringAttribute{
				Optional: true, CustomType: instantType{},
				MarkdownDescription: "From when the code opens, in RFC 3339 with a time zone, such as `2026-11-21T15:00:00Z`. Goes together with `ends_at`; " +
					"without both the code opens always.",
				Validators:    []validator.String{validators.AlsoRequires{Attribute: "ends_at", Hint: "Set both, or leave both out for a code that opens always."}},
				PlanModifiers: []planmodifier.String{planmodifiers.SameInstant{}},
			},
			"ends_at": schema.StringAttribute{
				Optional: true, CustomType: instantType{},
				MarkdownDescription: "Until when the code opens, in RFC 3339 with a time zone. Afterwards the server deletes the codes, and Terraform " +
					"plans to create them again: take the set out of the configuration, or move its time frame.",
				Validators:    []validator.String{validators.AlsoRequires{Attribute: "starts_at", Hint: "Set both, or leave both out for a code that opens always."}},
				PlanModifiers: []planmodifier.String{planmodifiers.SameInstant{}},
			},
			"keepers": keepersAttribute(),
			"access_codes": schema.MapNestedAttribute{
				Computed:            true,
				MarkdownDescription: "The code on each lock, by `device_id`.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"access_code_id": schema.StringAttribute{
						Computed: true, MarkdownDescription: "The identifier of the access code. Null where the lock has none, because it failed or was deleted.",
					},
					"status": schema.StringAttribute{
						Computed: true, MarkdownDescription: "How far the code is on the lock, such as `setting` or `set`; `missing` where there is none.",
					},
					"as_declared": schema.BoolAttribute{
						Computed: true, MarkdownDescription: "Whether the server has the code as it is declared, the lock has not refused that, and it is not being deleted. Where it is `false`, the next apply repairs it.",
					},
					"errors": schema.ListAttribute{
						Computed: true, ElementType: types.StringType, MarkdownDescription: "What keeps the code from working, in words.",
					},
				}},
			},
		},
		Blocks: map[string]schema.Block{
			"timeouts": timeoutsBlock(ctx, timeouts.Opts{
				Create: true, Update: true, Delete: true,
				CreateDescription: "How long to wait for the locks to take the code, such as `30s` or `10m`. By default `5m`.",
				UpdateDescription: "How long to wait for changes, such as `30s` or `10m`. By default `5m`.",
				DeleteDescription: "How long to wait for the code to be off the locks, such as `30s` or `10m`. By default `5m`.",
			}),
		},
	}
}

// accessCodeSetIdentity is what Terraform 1.12 and newer know a set by. No server knows of sets, so a set is its codes, and
// its identity changes with them.
type accessCodeSetIdentity struct {
	AccessCodes []string `tfsdk:"access_codes"` // <device_id>/<access_code_id>, or <device_id> where there is no code; in order
}

// IdentitySchema describes accessCodeSetIdentity.
func (r *accessCodeSetResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"access_codes": identityschema.ListAttribute{
			RequiredForImport: true, ElementType: types.StringType, Description: "The codes of the set, each as `<device_id>/<access_code_id>`, or as `<device_id>` where the lock has none yet.",
		},
	}}
}

func (m *accessCodeSetModel) identity(ctx context.Context) accessCodeSetIdentity {
	codes := m.codes(ctx)
	identity := accessCodeSetIdentity{AccessCodes: []string{}}
	for _, deviceID := range slices.Sorted(maps.Keys(codes)) {
		one := deviceID
		if id := codes[deviceID].AccessCodeID.ValueString(); id != "" {
			one += "/" + id
		}
		identity.AccessCodes = append(identity.AccessCodes, one)
	}
	return identity
}

// namedKey is where the private state of a set keeps, from the import to the read that follows it, its locks as they were named: maps and
// sets forget the order.
const namedKey = "named"

func rememberNamed(ctx context.Context, private privateState, locks []string) diag.Diagnostics {
	encoded, _ := json.Marshal(locks) // strings always encode
	return private.SetKey(ctx, namedKey, encoded)
}

// named are the locks of codes, those that an import has named in that order first.
func named(ctx context.Context, private privateState, codes map[string]lockCode, diags *diag.Diagnostics) (locks []string) {
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

// ImportState takes the codes of the set as <device_id>/<access_code_id>, with commas between them or in an identity. It
// changes nothing: Read looks the codes up, and apply makes those alike that differ from the first.
func (r *accessCodeSetResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	if r.cannotImport(req, resp) {
		return
	}
	given, byIdentity := accessCodeSetIdentity{AccessCodes: strings.Split(req.ID, ",")}, req.ID == ""
	if byIdentity {
		resp.Diagnostics.Append(req.Identity.Get(ctx, &given)...)
	}
	codes, locks := map[string]lockCode{}, []string{}
	for _, one := range given.AccessCodes {
		deviceID, id, hasCode := strings.Cut(strings.TrimSpace(one), "/")
		if _, twice := codes[deviceID]; twice || deviceID == "" || id == "" && (hasCode || !byIdentity) || strings.ContainsAny(id, "/ ") {
			diagnostics.Error(&resp.Diagnostics, "Import access code set", fmt.Sprintf("%q is not `<device_id>/<access_code_id>` of a lock, or names a lock again. "+
				"An identity is a list of these; an ID has them with commas between them.", one))
			return
		}
		code := noCode()
		if hasCode {
			code.AccessCodeID = types.StringValue(id)
		}
		codes[deviceID], locks = code, append(locks, deviceID)
	}
	if len(codes) == 0 {
		diagnostics.Error(&resp.Diagnostics, "Import access code set", "The identity names no codes. Give `access_codes` one `<device_id>/<access_code_id>` for each lock.")
		return
	}
	resp.Diagnostics.Append(rememberNamed(ctx, resp.Private, locks)...)
	var model accessCodeSetModel
	resp.Diagnostics.Append(model.setCodes(ctx, codes)...)
	resp.Diagnostics.Append(model.setDevices(ctx, codes)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("access_codes"), model.AccessCodes)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("device_ids"), model.DeviceIDs)...)
}

// ValidateConfig checks what one attribute alone cannot tell.
func (r *accessCodeSetResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config accessCodeSetModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	checkTimeFrame(config.StartsAt, config.EndsAt, &resp.Diagnostics)
}

// ModifyPlan plans lock by lock: what is as declared stays as it is known, and only the locks to work on become
// unknown.
func (r *accessCodeSetResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return
	}
	var plan, state accessCodeSetModel
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
		warnOfLostFrame(&resp.Diagnostics, plan.StartsAt, plan.EndsAt, state.on("", ""))
		if !planmodifiers.KeepersDiffer(state.Keepers, plan.Keepers) {
			plan.warnOfReading(ctx, req.Config, &state, &resp.Diagnostics)
		}
	}
	plan.AccessCodes = types.MapUnknown(lockCodeType)
	if known, _ := plan.DeviceIDs.ToTerraformValue(ctx); known.IsFullyKnown() {
		codes := map[string]attr.Value{}
		for _, deviceID := range plan.devices(ctx) {
			if exists && !plan.todo(&state, before, deviceID) {
				codes[deviceID] = state.AccessCodes.Elements()[deviceID]
			} else {
				codes[deviceID] = types.ObjectUnknown(lockCodeType.AttrTypes)
			}
		}
		plan.AccessCodes = types.MapValueMust(lockCodeType, codes)
		plan.warnOfDeletions(ctx, &resp.Diagnostics, before)
		if plan.creates(ctx, &state, before) {
			warnOfEnd(&resp.Diagnostics, plan.EndsAt)
		}
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

// creates says whether the plan makes a code on any lock: what there is of the set before may be nothing.
func (m *accessCodeSetModel) creates(ctx context.Context, state *accessCodeSetModel, before map[string]lockCode) bool {
	return before == nil || planmodifiers.KeepersDiffer(state.Keepers, m.Keepers) || slices.ContainsFunc(m.devices(ctx), func(deviceID string) bool {
		code, known := before[deviceID]
		return !known || code.AccessCodeID.IsNull() || isBeingDeleted(code.Status)
	})
}

type accessCodeSetModel struct {
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

// lockCode is the code of a set on one lock.
type lockCode struct {
	AccessCodeID types.String `tfsdk:"access_code_id"`
	Status       types.String `tfsdk:"status"`
	AsDeclared   types.Bool   `tfsdk:"as_declared"`
	Errors       []string     `tfsdk:"errors"`
}

var lockCodeType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"access_code_id": types.StringType, "status": types.StringType, "as_declared": types.BoolType,
	"errors": types.ListType{ElemType: types.StringType},
}}

// missing is the status of a lock that has no code of the set.
const missing = "missing"

func noCode(errors ...string) lockCode {
	return lockCode{Status: types.StringValue(missing), AsDeclared: types.BoolValue(false), Errors: append([]string{}, errors...)}
}

// unless is the code, as it is not declared if that is so.
func (c lockCode) unless(so bool) lockCode {
	if so {
		c.AsDeclared = types.BoolValue(false)
	}
	return c
}

// devices are the locks of the set, in order. They must be known.
func (m *accessCodeSetModel) devices(ctx context.Context) []string {
	var ids []string
	m.DeviceIDs.ElementsAs(ctx, &ids, false)
	slices.Sort(ids)
	return ids
}

// codes are the codes of the set by lock; nil when they are not known.
func (m *accessCodeSetModel) codes(ctx context.Context) map[string]lockCode {
	var codes map[string]lockCode
	m.AccessCodes.ElementsAs(ctx, &codes, false)
	return codes
}

// setCodes takes over the codes of all locks.
func (m *accessCodeSetModel) setCodes(ctx context.Context, codes map[string]lockCode) (diags diag.Diagnostics) {
	m.AccessCodes, diags = types.MapValueFrom(ctx, lockCodeType, codes)
	return diags
}

// setDevices takes over the locks.
func (m *accessCodeSetModel) setDevices(ctx context.Context, codes map[string]lockCode) (diags diag.Diagnostics) {
	m.DeviceIDs, diags = types.SetValueFrom(ctx, types.StringType, slices.Collect(maps.Keys(codes)))
	return diags
}

// on is the code that the set wants on a lock.
func (m *accessCodeSetModel) on(deviceID, id string) *accessCodeModel {
	return &accessCodeModel{
		AccessCodeID: types.StringValue(id), DeviceID: types.StringValue(deviceID),
		Name: m.Name, Code: m.Code, CodeWO: m.CodeWO, CodeWOVersion: m.CodeWOVersion, StartsAt: m.StartsAt, EndsAt: m.EndsAt,
	}
}

// writesOnly says whether the PIN is given by code_wo.
func (m *accessCodeSetModel) writesOnly() bool { return !m.CodeWOVersion.IsNull() }

// hidesPIN says whether nobody can tell from a code that it has the PIN of the set: that is written only, or the server does not tell it.
func (m *accessCodeSetModel) hidesPIN(code *api.AccessCode) bool {
	return m.writesOnly() || code.Code == nil
}

// pin is the PIN of the set, "" while none is known.
func (m *accessCodeSetModel) pin() string { return m.on("", "").pin() }

// changes says whether the plan wants other codes on the locks than the state.
func (m *accessCodeSetModel) changes(state *accessCodeSetModel) bool {
	if m.Code.IsUnknown() || m.Name.IsUnknown() || m.StartsAt.IsUnknown() || m.EndsAt.IsUnknown() {
		return true
	}
	_, changes := m.on("", "").updateRequest(state.on("", ""))
	return changes
}

// managed is what the state says about a managed code. Where the server does not tell the PIN, it has not changed. One that its lock has refused is
// not as declared, whatever the server wants it to be, nor is one that is being deleted.
func (m *accessCodeSetModel) managed(code *api.AccessCode) lockCode {
	actual := m.on(code.DeviceID, code.AccessCodeID)
	actual.fill(code)
	_, changes := m.on(code.DeviceID, code.AccessCodeID).updateRequest(actual)
	return lockCode{
		AccessCodeID: types.StringValue(code.AccessCodeID), Status: types.StringValue(string(code.Status)),
		AsDeclared: types.BoolValue(!changes && !refused(code) && code.Status != api.Removing), Errors: m.texts(code.Errors, code.Code),
	}
}

// unmanaged is what the state says about a code that somebody has given up: apply converts it.
func (m *accessCodeSetModel) unmanaged(code *api.UnmanagedAccessCode) lockCode {
	return lockCode{
		AccessCodeID: types.StringValue(code.AccessCodeID), Status: types.StringValue(code.Status),
		AsDeclared: types.BoolValue(false), Errors: m.texts(code.Errors, code.Code),
	}
}

// texts are the errors of a code in words, without the PIN that the set wants and the one that the server tells.
func (m *accessCodeSetModel) texts(problems []api.Problem, told *string) []string {
	return problemTexts(problems, pinsOf(told, m.on("", ""))...)
}

func (m *accessCodeSetModel) hide(text string) string {
	return api.Redact(text, m.pin())
}

// adopt takes over name, PIN and time frame from a code, after an import.
func (m *accessCodeSetModel) adopt(found foundCode) {
	var code accessCodeModel
	if found.managed != nil {
		code.fill(found.managed)
	} else {
		code.fillUnmanaged(found.unmanaged)
	}
	m.Name, m.Code, m.StartsAt, m.EndsAt = code.Name, code.Code, code.StartsAt, code.EndsAt
}

// onEach does something with several locks or codes at once, and answers what came of it by identifier. None waits for
// another, so that locks which never answer keep no other from being asked: the client limits the requests.
func onEach[T any](ids []string, do func(id string) T) map[string]T {
	var (
		all     sync.WaitGroup
		mu      sync.Mutex
		results = map[string]T{}
	)
	for _, id := range ids {
		all.Go(func() {
			result := do(id)
			mu.Lock()
			defer mu.Unlock()
			results[id] = result
		})
	}
	all.Wait()
	return results
}

// foundCode is what there is of a set on a lock: a code, managed or not, nothing, or an error.
type foundCode struct {
	managed   *api.AccessCode
	unmanaged *api.UnmanagedAccessCode
	err       error
}

type codeFinder = func(ctx context.Context, client *api.Client, deviceID, id string) (*api.AccessCode, *api.UnmanagedAccessCode, error)

func (f foundCode) nothing() bool { return f.managed == nil && f.unmanaged == nil }

// look reads the code with the identifier on a lock, by findCode or refreshCode. It fails when the code is on another
// lock.
func look(ctx context.Context, find codeFinder, client *api.Client, deviceID, id string) (found foundCode) {
	if id == "" {
		return found
	}
	found.managed, found.unmanaged, found.err = find(ctx, client, deviceID, id)
	actual := deviceID
	switch {
	case found.err != nil:
	case found.managed != nil:
		actual = found.managed.DeviceID
	case found.unmanaged != nil:
		actual = found.unmanaged.DeviceID
	}
	if actual != deviceID {
		found.err = fmt.Errorf("the code %[1]s is on the lock %[2]s, not on %[3]s. Name it as %[2]s/%[1]s where it is imported", id, actual, deviceID)
	}
	return found
}

// done is what came of the work on one lock.
type done struct {
	code  lockCode
	gone  bool
	err   error
	doubt *doubt // whether a code is on the lock that is not known
	left  *doubt // the one that the lock was in before, and that nothing more is done about
}

// put creates the code on a lock that has none.
func (m *accessCodeSetModel) put(ctx context.Context, conn *connection, deviceID string) done {
	if m.pin() == "" {
		err := errors.New("the PIN of the set is not known, because the server does not tell it. Write it into `code`")
		return done{code: noCode(err.Error()), err: err}
	}
	answer, err := api.Call[api.AccessCodeCreatedResponse](ctx, conn.api.CreateAccessCode, m.on(deviceID, "").createRequest())
	if err == nil {
		err = hasID("access code", answer.AccessCode.AccessCodeID)
	}
	if err == nil {
		return m.arrived(ctx, conn, answer.AccessCode.AccessCodeID, answer.ActionAttempt)
	}
	failed := done{code: noCode(m.hide(sentence(err.Error()))), err: err}
	if api.MayHaveHappened(err) {
		failed.doubt = m.doubtOf()
		last, cancel := lastLook(ctx)
		defer cancel()
		if code, _, _ := m.lost(last, conn.api, deviceID, failed.doubt, m); code != nil {
			return m.arrived(ctx, conn, code.AccessCodeID, api.ActionAttempt{})
		}
	}
	return failed
}

// arrived waits until a code is on its lock, if that is to be waited for.
func (m *accessCodeSetModel) arrived(ctx context.Context, conn *connection, id string, attempt api.ActionAttempt) done {
	var code *api.AccessCode
	var err error
	if conn.waitForSet {
		code, err = awaitLock(ctx, conn.api, id, attempt)
	} else {
		code, err = managedCode(ctx, conn.api, id)
	}
	if err != nil {
		return m.failed(ctx, conn.api, id, err)
	}
	return done{code: m.managed(code)}
}

// failed is what came of work that failed on a code that exists: what the code itself says by now.
func (m *accessCodeSetModel) failed(ctx context.Context, client *api.Client, id string, err error) done {
	ctx, cancel := lastLook(ctx)
	defer cancel()
	code, readErr := managedCode(ctx, client, id)
	if readErr == nil {
		return done{code: m.managed(code).unless(m.hidesPIN(code) || wasTried(err)), err: err}
	}
	return done{code: lockCode{
		AccessCodeID: types.StringValue(id), Status: types.StringValue(string(api.Unknown)),
		AsDeclared: types.BoolValue(false), Errors: []string{m.hide(sentence(err.Error()))},
	}, err: err}
}

// bring makes the code on a lock what the set wants.
func (m *accessCodeSetModel) bring(ctx context.Context, conn *connection, deviceID, id string) done {
	found := look(ctx, findCode, conn.api, deviceID, id)
	switch {
	case found.err != nil:
		return m.failed(ctx, conn.api, id, untried(found.err))
	case found.nothing():
		return m.put(ctx, conn, deviceID)
	}
	if found.managed != nil && found.managed.Status == api.Removing {
		return m.replace(ctx, conn, deviceID, id)
	}
	plan, actual := m.on(deviceID, id), m.on(deviceID, id)
	actual.Code = types.StringNull() // so that the PIN is written also where the server does not tell the one there is
	if found.unmanaged != nil {
		actual.fillUnmanaged(found.unmanaged)
		code, err := convertPlanned(ctx, conn.api, plan, actual)
		if err != nil {
			return done{code: m.unmanaged(found.unmanaged), err: err}
		}
		found.managed = code
	}
	actual.fill(found.managed)
	actual.CodeWOVersion = types.Int64Null() // so that such a PIN is written whatever is there
	if plan.staysInDoubt(found.managed, true) {
		actual.askAgain(m.pin() != "")
	}
	code, err := changePlanned(ctx, conn.api, plan, actual, conn.waitForSet)
	if err != nil {
		return m.failed(ctx, conn.api, id, err)
	}
	return done{code: m.managed(code)}
}

// remove takes the code off a lock.
func (m *accessCodeSetModel) remove(ctx context.Context, conn *connection, deviceID string, code lockCode, doubt *doubt) done {
	id := code.AccessCodeID.ValueString()
	if id == "" {
		return done{gone: true, left: doubt}
	}
	err := deleteCode(ctx, conn.api, deviceID, id)
	return done{code: code, gone: err == nil, err: err}
}

// reportLock adds what went wrong on one lock of a set, as an error or as a warning. Where kept is false, nothing of the set gets into the
// state.
func (m *accessCodeSetModel) reportLock(ctx context.Context, client *api.Client, diags *diag.Diagnostics, add func(*diag.Diagnostics, path.Path, string, string), kept bool, action, deviceID string, failed done) {
	ctx, cancel := lastLook(ctx)
	defer cancel()
	err := failed.err
	const untouched = "The other locks of the set are not affected by this."
	others := untouched + " The next apply tries this one again."
	if action == actionPut && failed.code.AsDeclared.ValueBool() {
		others = untouched // and there is nothing to apply
	}
	next := nextStep(err)
	switch {
	case failed.doubt != nil && kept:
		look := "The next apply looks on this lock for a code of this name and PIN, before it creates another. Where the server does not tell PINs, look there yourself first."
		if m.writesOnly() {
			look += " Leave `code_wo` as it is until then: it alone tells which PIN to look for."
		}
		next = inDoubt(err, look)
		others = untouched
	case failed.doubt != nil:
		next = inDoubt(err, "Nothing of the set is in the state: look on this lock before running Terraform again, which would create a second access code.")
		others = ""
	case isStillThere(err) && keepsTrying(err):
		next, others = putsItOnAgain, untouched
	case keepsTrying(err) && action == actionRemove:
		next, others = mayStillOpen+raiseDelete+" Where a lock is taken out of the set, `timeouts { update }` counts.", untouched
	case keepsTrying(err):
		next = "The server keeps trying; nothing has to be repeated when the lock is back. For locks that always take longer, raise `timeouts`."
	case errors.Is(err, errCannotBeDeleted):
		next = deletionAdvice(err)
	case errors.Is(err, errCannotBeManaged):
		next = "The code stays on the lock as it is, unmanaged. Take the lock out of `device_ids`, or delete the code in the app of the lock."
	}
	add(diags, path.Root("access_codes").AtMapKey(deviceID), action, m.hide(sentence(lockName(ctx, client, deviceID)+": "+err.Error()))+"\n\n"+joined(next, others))
}

// joined puts sentences behind each other.
func joined(first, second string) string {
	return strings.TrimSpace(first + " " + second)
}

// A creation that was not answered may have put the code on its lock, where it opens the door under an identifier that nobody knows. The set
// keeps in mind which locks that goes for, and looks there before it creates another code or lets go of the lock. It does not look on
// other locks: a code of the same name and PIN is somebody else's there.

// locksInDoubtKey is where the private state of a set keeps them.
const locksInDoubtKey = "locks_in_doubt"

// doubt is a creation that was not answered.
type doubt struct {
	WrittenOnly bool `json:"written_only"` // the PIN, which nothing has kept then

	likely []string // codes on the lock that may have been made by it: nobody can tell
}

// doubtOf is the doubt about a creation of a code of this set.
func (m *accessCodeSetModel) doubtOf() *doubt { return &doubt{WrittenOnly: m.writesOnly()} }

// pin is the PIN to look for. Where that was written only, it is the one of the configuration, which may be another by now; "" where there is none.
func (d *doubt) pin(state, config *accessCodeSetModel) string {
	if d.WrittenOnly {
		return config.pin()
	}
	return state.Code.ValueString()
}

func rememberDoubts(ctx context.Context, private privateState, results map[string]done) diag.Diagnostics {
	doubts := map[string]*doubt{}
	for deviceID, result := range results {
		if result.doubt != nil {
			doubts[deviceID] = result.doubt
		}
	}
	encoded, _ := json.Marshal(doubts) // truth values always encode
	return private.SetKey(ctx, locksInDoubtKey, encoded)
}

// doubts are those that are kept in mind, by lock. Earlier versions of the provider have kept the locks alone.
func (m *accessCodeSetModel) doubts(ctx context.Context, private privateState, diags *diag.Diagnostics) (doubts map[string]*doubt) {
	stored, problems := private.GetKey(ctx, locksInDoubtKey)
	diags.Append(problems...)
	var locks []string
	if json.Unmarshal(stored, &locks) == nil {
		doubts = map[string]*doubt{}
		for _, deviceID := range locks {
			doubts[deviceID] = m.doubtOf()
		}
		return doubts
	}
	_ = json.Unmarshal(stored, &doubts) // none, where nothing was stored
	return doubts
}

// find takes the codes on locks in doubt into those of the set, as far as they are there. It answers what became of the work on
// those where they are not, or where it could not look: then nothing may be done.
func (m *accessCodeSetModel) find(ctx context.Context, client *api.Client, codes map[string]lockCode, doubts map[string]*doubt, config *accessCodeSetModel) map[string]done {
	locks := slices.DeleteFunc(slices.Collect(maps.Keys(doubts)), func(deviceID string) bool {
		code, known := codes[deviceID]
		return !known || !code.AccessCodeID.IsNull()
	})
	type found struct {
		code   *api.AccessCode
		likely []string
		err    error
	}
	unsettled := map[string]done{}
	for deviceID, found := range onEach(locks, func(deviceID string) (f found) {
		f.code, f.likely, f.err = m.lost(ctx, client, deviceID, doubts[deviceID], config)
		return f
	}) {
		code := codes[deviceID]
		if found.code == nil {
			doubt := doubts[deviceID]
			doubt.likely = found.likely
			unsettled[deviceID] = done{code: code, err: untried(found.err), doubt: doubt}
			continue
		}
		code.AccessCodeID = types.StringValue(found.code.AccessCodeID)
		codes[deviceID] = code
	}
	return unsettled
}

// lost finds the code of a creation that was not answered. Without it every further attempt would be refused, because the PIN is
// taken, or make a second one. Where there is none of its name and PIN, it answers the codes of its name that may be it all the same: the
// server does not tell their PINs, or the one of the creation is not known.
func (m *accessCodeSetModel) lost(ctx context.Context, client *api.Client, deviceID string, doubt *doubt, config *accessCodeSetModel) (found *api.AccessCode, likely []string, err error) {
	codes, err := managedCodes(ctx, client, deviceID)
	if err != nil {
		return nil, nil, err
	}
	pin := doubt.pin(m, config)
	for i, code := range codes {
		switch {
		case code.Name == nil || *code.Name != m.Name.ValueString():
		case pin != "" && code.Code != nil && *code.Code == pin:
			return &codes[i], nil, nil
		case doubt.WrittenOnly || pin == "" || code.Code == nil:
			likely = append(likely, code.AccessCodeID)
		}
	}
	return nil, likely, nil
}

// isSoughtOtherwise says whether the code of a lost creation could not be looked for any more by the name and the PIN that the state would have then.
func (m *accessCodeSetModel) isSoughtOtherwise(state *accessCodeSetModel) bool {
	return !m.Name.Equal(state.Name) || !m.Code.Equal(state.Code) || !m.CodeWOVersion.Equal(state.CodeWOVersion)
}

// refuseUnsought reports the locks on which it could not be looked for the code of a creation, and says whether there are any.
func (m *accessCodeSetModel) refuseUnsought(ctx context.Context, client *api.Client, unsettled map[string]done, diags *diag.Diagnostics) (refused bool) {
	ctx, cancel := lastLook(ctx)
	defer cancel()
	for _, deviceID := range slices.Sorted(maps.Keys(unsettled)) {
		err := unsettled[deviceID].err
		if err == nil {
			continue
		}
		refused = true
		diagnostics.ErrorAt(diags, path.Root("access_codes").AtMapKey(deviceID), actionPut, m.hide(sentence(lockName(ctx, client, deviceID)+": "+err.Error()))+"\n\n"+
			joined(nextStep(err), "Nothing of the set was changed: a creation of its code on this lock was not answered, and the code is found by the name and the PIN that it has. "+
				"Run Terraform again: it looks there first."))
	}
	return refused
}

// warnOfLost says of a lock that a code which was not found may be on it, where it is let go of or gets another one.
func (m *accessCodeSetModel) warnOfLost(ctx context.Context, client *api.Client, diags *diag.Diagnostics, deviceID string, result done) {
	said, next := "there is none of this name and PIN on the lock now", "Where the server does not tell PINs, look there for a code of this name, and delete it."
	switch likely := result.left.likely; {
	case len(likely) > 0:
		said = "without its PIN it cannot be told whether it made what is there of this name: " + strings.Join(likely, ", ")
		next = "Look there whether somebody needs that code besides this set. If not, delete it: it may open the door."
	case !result.gone:
		return
	}
	diagnostics.WarningAt(diags, path.Root("device_ids"), "An access code may be left on a lock", sentence(lockName(ctx, client, deviceID)+
		": a creation of the code was not answered, and "+said)+"\n\n"+next)
}
