package provider

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/lockrules"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/planmodifiers"
)

// A plan is checked against its locks, so that an apply does not fail halfway. The checks cover what the plan
// introduces: new codes, and new PINs and names of existing codes. A state that another resource of the same run can
// still change, such as a full lock, is a warning. A failing request skips a check, because apply reports the failure.

// planCheckTimeout bounds the requests for the checks of one resource.
const planCheckTimeout = 20 * time.Second

// nativeScheduleLead is the time before its start at which a server programs a code at the earliest.
const nativeScheduleLead = 72 * time.Hour

// planChecks is what the checks of a run share.
type planChecks struct {
	// disabled is set if the server did not answer in time.
	disabled atomic.Bool

	mu sync.Mutex // of leaving and planned
	// leaving has the codes that this plan replaces.
	leaving map[string]bool
	// planned has the new codes of this plan, by device.
	planned map[string][]lockrules.HeldCode

	presets sync.Map // the climate presets of this plan, by device_id/climate_preset_key

	searches sync.Mutex // of missing; it is held during a request
	// missing has the devices that are not on the list of devices.
	missing map[string]missingDevice

	trials sync.Mutex // of eventTypes; it is held during a request
	// eventTypes has the server's answers about event types.
	eventTypes map[string]error
}

// planCode records a new code of the plan, and returns the earlier ones on the same lock.
func (p *planChecks) planCode(deviceID string, code lockrules.Code) []lockrules.HeldCode {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.planned == nil {
		p.planned = map[string][]lockrules.HeldCode{}
	}
	before := p.planned[deviceID]
	p.planned[deviceID] = append(slices.Clip(before), lockrules.HeldCode{
		Name:           code.Name,
		PIN:            code.PIN,
		IsManaged:      true,
		IsPlanned:      true,
		StartsAt:       code.StartsAt,
		EndsAt:         code.EndsAt,
		FrameIsUnknown: code.FrameIsUnknown,
	})
	return before
}

// planPreset records a climate preset that is planned, or stays.
func (p *planChecks) planPreset(deviceID, key string) { p.presets.Store(deviceID+"/"+key, true) }

// hasPreset reports whether this plan has a climate preset, as far as Terraform has planned it.
func (p *planChecks) hasPreset(deviceID, key string) bool {
	_, ok := p.presets.Load(deviceID + "/" + key)
	return ok
}

// recordLeaving records that the plan replaces codes, so that their PINs, names, and slots count as free.
func (p *planChecks) recordLeaving(ids ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leaving == nil {
		p.leaving = map[string]bool{}
	}
	for _, id := range ids {
		p.leaving[id] = true
	}
}

func (p *planChecks) isLeaving(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leaving[id]
}

// checkContext returns a context for checks. It returns false for ok if there is no server to ask, and for a resource
// of the state that is planned with -refresh=false. It also does so after the first change of an apply, because codes
// of the same run would count as other codes. The caller must call end.
func (c *connection) checkContext(ctx context.Context, exists bool) (bounded context.Context, end func(), ok bool) {
	if !c.isConnected() || c.checks.disabled.Load() || c.walk.applied.Load() ||
		exists && c.walk.loaded.Load() && !c.walk.read.Load() {
		return ctx, func() {}, false
	}
	bounded, cancel := context.WithTimeout(ctx, planCheckTimeout)
	return bounded, func() {
		if bounded.Err() != nil {
			c.checks.disabled.Store(true)
			tflog.Debug(ctx, "plans are not checked against locks, because the server did not answer in time")
		}
		cancel()
	}, true
}

// checkPlan checks the planned code against its lock.
func (r *accessCodeResource) checkPlan(
	ctx context.Context,
	req resource.ModifyPlanRequest,
	resp *resource.ModifyPlanResponse,
) {
	ctx, end, ok := r.checkContext(ctx, !req.State.Raw.IsNull())
	defer end()
	var plan accessCodeModel
	if !ok || resp.Plan.Get(ctx, &plan).HasError() || plan.DeviceID.IsUnknown() || plan.Offline.IsUnknown() {
		return
	}
	deviceID := plan.DeviceID.ValueString()
	code, isPlanned := lockrules.Code{IsNew: true}, true
	if !req.State.Raw.IsNull() {
		var state accessCodeModel
		if req.State.Get(ctx, &state).HasError() {
			return
		}
		if len(resp.RequiresReplace)+len(plan.replacingAttributes(ctx, &state, req.Private, &diag.Diagnostics{})) > 0 {
			r.checks.recordLeaving(state.AccessCodeID.ValueString()) // Terraform plans the new code separately
			return
		}
		code.IsNew = false
		_, isPlanned = plan.updateRequest(&state)
		isPlanned = isPlanned || !state.IsManaged.ValueBool() // the conversion waits for the lock
		if isPlannedChange(plan.Code, state.Code) || !plan.CodeWOVersion.Equal(state.CodeWOVersion) {
			code.PIN = plan.plannedPIN(ctx, req.Config)
		} else if !plan.hasSameFrame(&state) {
			code.KeptPIN = plan.plannedPIN(ctx, req.Config)
		}
		if isPlannedChange(plan.Name, state.Name) {
			code.Name = plan.Name.ValueString()
		}
	} else {
		code.PIN, code.Name = plan.plannedPIN(ctx, req.Config), plan.Name.ValueString()
	}
	if !isPlanned {
		return
	}
	code.SharesPIN, code.IsOffline = isSet(plan.CommonCodeKey), plan.isOffline()
	code.StartsAt, code.EndsAt = plan.StartsAt.time(), plan.EndsAt.time()
	code.FrameIsUnknown = plan.StartsAt.IsUnknown() || plan.EndsAt.IsUnknown()
	code.Waits = r.waitsForSet(&plan) && !startsLater(code.StartsAt)
	code.OnlineOnly = isSet(plan.AttemptForOfflineDevice) && !plan.AttemptForOfflineDevice.ValueBool()
	device, missing := r.planDevice(ctx, deviceID)
	switch {
	case missing != nil && code.IsNew:
		missing.report(&resp.Diagnostics, path.Root("device_id"))
	case device != nil:
		for _, problem := range r.checkCode(ctx, device, code, plan.AccessCodeID.ValueString()) {
			(&lockFault{problem, []*api.Device{device}}).report(&resp.Diagnostics, singleCode, code)
		}
	}
}

// plannedPIN returns the configured PIN, or "" if the server chooses it or it is not known yet.
func (m *accessCodeModel) plannedPIN(ctx context.Context, config tfsdk.Config) string {
	return plannedPIN(ctx, config, m.Code, m.writesOnly())
}

func plannedPIN(ctx context.Context, config tfsdk.Config, pin types.String, isWriteOnly bool) string {
	if isWriteOnly && config.GetAttribute(ctx, path.Root("code_wo"), &pin).HasError() {
		return ""
	}
	return pin.ValueString()
}

// startsLater reports whether apply does not wait for a code, because the server sets it later.
func startsLater(starts *time.Time) bool {
	return starts != nil && time.Until(*starts) > nativeScheduleLead
}

// checkPlan checks the planned code against the locks on which the plan creates or changes it.
func (r *sharedAccessCodeResource) checkPlan(
	ctx context.Context,
	req resource.ModifyPlanRequest,
	resp *resource.ModifyPlanResponse,
) {
	ctx, end, ok := r.checkContext(ctx, !req.State.Raw.IsNull())
	defer end()
	var plan, state sharedAccessCodeModel
	exists := !req.State.Raw.IsNull()
	if !ok || resp.Plan.Get(ctx, &plan).HasError() || exists && req.State.Get(ctx, &state).HasError() {
		return
	}
	before := map[string]lockCode{}
	if exists {
		before = state.codes(ctx)
	}
	if exists && planmodifiers.KeepersDiffer(state.Keepers, plan.Keepers) {
		for _, code := range before {
			r.checks.recordLeaving(code.AccessCodeID.ValueString())
		}
		return // Terraform plans the new codes separately
	}
	change := sharedChange{
		pin:  plannedPIN(ctx, req.Config, plan.Code, plan.writesOnly()),
		name: plan.Name.ValueString(),
		changesPIN: !exists || isPlannedChange(plan.Code, state.Code) ||
			!plan.CodeWOVersion.Equal(state.CodeWOVersion),
		changesName: !exists || isPlannedChange(plan.Name, state.Name),
		moves:       exists && !plan.codeOn("", "").hasSameFrame(state.codeOn("", "")),
		changes:     !exists || plan.changes(&state),
		waits:       r.waitUntilOnLock,
		starts:      plan.StartsAt.time(),
		ends:        plan.EndsAt.time(),
		isUnknown:   plan.StartsAt.IsUnknown() || plan.EndsAt.IsUnknown(),
	}
	found := onEach(knownTexts(plan.DeviceIDs), func(deviceID string) lockFinding {
		code, known := before[deviceID]
		return r.checkLock(ctx, change, deviceID, code, known)
	})
	isRefused := reportFindings(found, &resp.Diagnostics)
	if !exists && plan.Code.IsUnknown() && !isRefused {
		checkCommonPIN(ctx, found, req.Config, &resp.Diagnostics)
	}
}

// sharedChange is what the plan of a shared code changes.
type sharedChange struct {
	pin, name                        string
	changesPIN, changesName, changes bool
	moves                            bool // to another time frame
	waits                            bool
	starts, ends                     *time.Time
	isUnknown                        bool // the time frame
}

// lockFinding is what the check of one lock of a shared code has found.
type lockFinding struct {
	device   *api.Device
	missing  *missingDevice
	code     lockrules.Code
	problems []lockrules.Problem
}

// checkLock checks the shared code on one lock.
func (c *connection) checkLock(
	ctx context.Context,
	change sharedChange,
	deviceID string,
	has lockCode,
	known bool,
) lockFinding {
	code := lockrules.Code{
		IsNew:    !known || has.AccessCodeID.IsNull() || isBeingDeleted(has.Status),
		StartsAt: change.starts,
		EndsAt:   change.ends,
		Waits:    change.waits && !startsLater(change.starts),

		FrameIsUnknown: change.isUnknown,
	}
	if !code.IsNew && !change.changes {
		return lockFinding{}
	}
	switch {
	case code.IsNew || change.changesPIN:
		code.PIN = change.pin
	case change.moves:
		code.KeptPIN = change.pin
	}
	if code.IsNew || change.changesName {
		code.Name = change.name
	}
	found := lockFinding{code: code}
	found.device, found.missing = c.planDevice(ctx, deviceID)
	if found.missing != nil && !code.IsNew {
		found.missing = nil
	}
	if found.device != nil {
		found.problems = c.checkCode(ctx, found.device, code, has.AccessCodeID.ValueString())
	}
	return found
}

// reportFindings reports what the checks of a shared code have found, one diagnostic for each fault. It returns
// whether one of them is an error.
func reportFindings(found map[string]lockFinding, diags *diag.Diagnostics) (isRefused bool) {
	var faults []*lockFault
	var codes []lockrules.Code
	for _, deviceID := range slices.Sorted(maps.Keys(found)) {
		one := found[deviceID]
		if one.missing != nil {
			one.missing.report(diags, path.Root("device_ids").AtSetValue(types.StringValue(deviceID)))
			isRefused = isRefused || one.missing.isMistake()
		}
		for _, problem := range one.problems {
			isRefused = isRefused || !problem.IsWarning
			i := slices.IndexFunc(faults, func(f *lockFault) bool { return f.problem == problem })
			if i >= 0 {
				faults[i].devices = append(faults[i].devices, one.device)
				continue
			}
			faults, codes = append(faults, &lockFault{problem, []*api.Device{one.device}}), append(codes, one.code)
		}
	}
	for i, fault := range faults {
		fault.report(diags, sharedCode, codes[i])
	}
	return isRefused
}

// checkCommonPIN reports that no PIN fits all locks of a new shared code without a configured PIN.
func checkCommonPIN(
	ctx context.Context,
	found map[string]lockFinding,
	config tfsdk.Config,
	diags *diag.Diagnostics,
) {
	var configured types.String
	if config.GetAttribute(ctx, path.Root("code"), &configured).HasError() || !configured.IsNull() {
		return // unknown until apply
	}
	rules := pinRules{digits: "0123456789"}
	for _, deviceID := range slices.Sorted(maps.Keys(found)) {
		if found[deviceID].device == nil {
			continue
		}
		if err := rules.add(found[deviceID].device); err != nil {
			diagnostics.ErrorAt(diags, path.Root("device_ids"), "No PIN fits all locks", sentence(err.Error()))
			return
		}
	}
}

// knownTexts returns the known elements of a set, sorted.
func knownTexts(set types.Set) []string {
	var known []string
	for _, element := range set.Elements() {
		if text, ok := element.(types.String); ok && isSet(text) {
			known = append(known, text.ValueString())
		}
	}
	return slices.Sorted(slices.Values(known))
}

// checkCode returns the problems of a code on a lock, and counts a new code among the codes of the lock from now on.
// The code self does not count as another code.
func (c *connection) checkCode(
	ctx context.Context,
	device *api.Device,
	code lockrules.Code,
	self string,
) []lockrules.Problem {
	lock := c.lockWith(ctx, device, code, self)
	if code.IsNew && !code.IsOffline {
		lock.Codes = append(lock.Codes, c.checks.planCode(device.DeviceID, code)...)
	}
	return lockrules.Check(lock, code)
}

// lockWith returns what is known about a lock for the check of a code. The code self does not count as another code.
func (c *connection) lockWith(
	ctx context.Context,
	device *api.Device,
	code lockrules.Code,
	self string,
) lockrules.Lock {
	lock := lockOf(device)
	if needsCodes := code.PIN+code.KeptPIN != "" || code.IsNew && lock.MaxCodes > 0 ||
		code.Name != "" && len(lock.Constraints) > 0; !needsCodes || code.IsOffline {
		return lock
	}
	known := map[string]bool{self: true} // some servers list an unmanaged code twice
	add := func(held lockrules.HeldCode) {
		if !known[held.ID] && !c.checks.isLeaving(held.ID) {
			known[held.ID] = true
			lock.Codes = append(lock.Codes, held)
		}
	}
	unmanaged, _ := c.reads.UnmanagedAccessCodesOn(ctx, device.DeviceID)
	for _, held := range unmanaged {
		// Whether the lock removes an unmanaged code at its end is not known.
		add(lockrules.HeldCode{ID: held.AccessCodeID, Name: textOf(held.Name), PIN: textOf(held.Code)})
	}
	managed, _ := c.reads.AccessCodesOn(ctx, device.DeviceID)
	for _, held := range managed {
		if held.Status == api.Removing {
			continue
		}
		add(lockrules.HeldCode{
			ID:        held.AccessCodeID,
			Name:      textOf(held.Name),
			PIN:       textOf(held.Code),
			IsManaged: true,
			IsOffline: held.IsOfflineAccessCode,
			IsOnLock:  held.Status == api.Set || held.IsScheduledOnDevice,
			StartsAt:  held.StartsAt,
			EndsAt:    held.EndsAt,
		})
	}
	// The order of the lists varies, but the messages of a plan must not.
	slices.SortFunc(lock.Codes, func(a, b lockrules.HeldCode) int { return strings.Compare(a.ID, b.ID) })
	return lock
}

func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// lockOf returns what a device says about itself, without its codes.
func lockOf(device *api.Device) lockrules.Lock {
	lock := lockrules.Lock{
		RejectsCodes:        isFalse(device.CanProgramOnlineAccessCodes),
		RejectsOfflineCodes: isFalse(device.CanProgramOfflineAccessCodes),
		CodeLengths:         device.Properties.SupportedCodeLengths,
		MaxCodes:            device.Properties.MaxActiveCodesSupported,
	}
	for _, constraint := range device.Properties.CodeConstraints {
		lock.Constraints = append(lock.Constraints, constraint.ConstraintType)
	}
	if !device.Properties.Online {
		lock.Obstacle = lockrules.Offline
	}
	for _, problem := range device.Errors {
		switch problem.ErrorCode {
		case "account_disconnected":
			lock.Obstacle = lockrules.Disconnected
		case "device_removed":
			lock.Obstacle = lockrules.Removed
		}
	}
	return lock
}

func isFalse(flag *bool) bool { return flag != nil && !*flag }
