package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
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
		Name:      code.Name,
		PIN:       code.PIN,
		IsManaged: true,
		IsPlanned: true,
		StartsAt:  code.StartsAt,
		EndsAt:    code.EndsAt,
	})
	return before
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

// checkContext returns a context for checks, or false if there is no server to ask, an apply has begun, whose changes
// would count as other codes, or a resource of the state is planned with -refresh=false. The caller must call end.
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
	code.Waits = r.waitsForSet(&plan) && !startsLater(code.StartsAt)
	code.OnlineOnly = isSet(plan.AttemptForOfflineDevice) && !plan.AttemptForOfflineDevice.ValueBool()
	device, missing := r.planDevice(ctx, deviceID)
	switch {
	case missing != nil && code.IsNew:
		missing.report(&resp.Diagnostics, path.Root("device_id"))
	case device != nil:
		lock := r.lockWith(ctx, device, code, plan.AccessCodeID.ValueString())
		for _, problem := range lockrules.Check(lock, code) {
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
		changes:     !exists || plan.changes(&state),
		waits:       r.waitUntilOnLock,
		starts:      plan.StartsAt.time(),
		ends:        plan.EndsAt.time(),
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
	waits                            bool
	starts, ends                     *time.Time
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
	}
	if !code.IsNew && !change.changes {
		return lockFinding{}
	}
	if code.IsNew || change.changesPIN {
		code.PIN = change.pin
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
		lock := c.lockWith(ctx, found.device, code, has.AccessCodeID.ValueString())
		found.problems = lockrules.Check(lock, code)
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

// lockWith returns what is known about a lock for the check of a code. The code self does not count as another code.
func (c *connection) lockWith(
	ctx context.Context,
	device *api.Device,
	code lockrules.Code,
	self string,
) lockrules.Lock {
	lock := lockOf(device)
	if needsCodes := code.PIN != "" || code.IsNew && lock.MaxCodes > 0 ||
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
			StartsAt:  held.StartsAt,
			EndsAt:    held.EndsAt,
		})
	}
	// The order of the lists varies, but the messages of a plan must not.
	slices.SortFunc(lock.Codes, func(a, b lockrules.HeldCode) int { return strings.Compare(a.ID, b.ID) })
	if code.IsNew {
		lock.Codes = append(lock.Codes, c.checks.planCode(device.DeviceID, code)...)
	}
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

// planDevice returns a device from the list of all devices, or why it is missing. Both are nil if that is not known.
func (c *connection) planDevice(ctx context.Context, id string) (*api.Device, *missingDevice) {
	if device := c.reads.Device(ctx, id); device != nil {
		return device, nil
	}
	devices, ok := c.reads.Devices(ctx)
	if !ok {
		tflog.Debug(ctx, "the plan is not checked against the lock, because the devices cannot be listed",
			map[string]any{"device_id": id})
		return nil, nil
	}
	c.checks.searches.Lock()
	defer c.checks.searches.Unlock()
	missing, known := c.checks.missing[id]
	if !known {
		if c.checks.missing == nil {
			c.checks.missing = map[string]missingDevice{}
		}
		missing = c.findMissing(ctx, id, devices)
		c.checks.missing[id] = missing
	}
	if missing.isUncertain || missing.device != nil {
		return missing.device, nil
	}
	return nil, &missing
}

// missingDevice is a device_id that is not on the list of devices.
type missingDevice struct {
	id          string
	device      *api.Device // the list lacks a device that the server has
	isUncertain bool        // the server's answer does not say that there is no such device
	isUnmanaged bool
	isMalformed bool     // the server takes identifiers of another form
	named       []string // identifiers of the devices with that name
}

// findMissing asks the server for a device that is not on its list.
func (c *connection) findMissing(ctx context.Context, id string, devices []api.Device) missingDevice {
	missing := missingDevice{id: id}
	for _, device := range devices {
		if id == device.DisplayName || id == device.Nickname || id == device.Properties.Name {
			missing.named = append(missing.named, device.DeviceID)
		}
	}
	slices.Sort(missing.named)
	if missing.named != nil {
		return missing
	}
	device, err := deviceByID(ctx, c.api, id)
	switch {
	case err == nil:
		missing.device = device
	case hasWrongID(err):
		missing.isMalformed = true
	case !api.IsNotFound(err):
		missing.isUncertain = true
	default:
		_, err := api.Call[api.UnmanagedDeviceResponse](
			ctx,
			c.api.GetUnmanagedDevice,
			api.GetDeviceRequest{DeviceID: id},
		)
		missing.isUnmanaged = err == nil
	}
	return missing
}

// isMistake reports whether the text cannot be the identifier of a device. Any other missing device may have been
// removed by its owner, which must not block the plan of everything else.
func (m *missingDevice) isMistake() bool { return m.named != nil || m.isMalformed }

// report adds an error at the attribute if the text is no identifier, and a warning otherwise.
func (m *missingDevice) report(diags *diag.Diagnostics, at path.Path) {
	add := diagnostics.WarningAt
	if m.isMistake() {
		add = diagnostics.ErrorAt
	}
	attribute := at.Steps()[0].String()
	switch {
	case len(m.named) == 1:
		add(diags, at, "Name instead of an identifier", fmt.Sprintf("%q is the name of a device, and `%s` takes "+
			"identifiers. Write %q, or use the data source deviceaccess_device with `name = %[1]q`.",
			m.id, attribute, m.named[0]))
	case len(m.named) > 1:
		add(diags, at, "Name instead of an identifier", fmt.Sprintf("%q is the name of %d devices, and `%s` takes "+
			"identifiers. Write the identifier of one of them: %s.",
			m.id, len(m.named), attribute, strings.Join(m.named, ", ")))
	case m.isUnmanaged:
		add(diags, at, "Device is not managed", fmt.Sprintf("The workspace of the API key does not manage the "+
			"device %q. Applying this plan fails unless the device is managed by then.", m.id))
	case m.isMalformed:
		add(diags, at, "Invalid identifier", fmt.Sprintf("%q is neither the identifier nor the name of a device. "+
			"The data source deviceaccess_devices lists the devices.", m.id))
	default:
		add(diags, at, "Device not found", fmt.Sprintf("The workspace of the API key has no device %q. Applying "+
			"this plan fails for it. Check the identifier, and that the API key belongs to the right workspace. If "+
			"the lock was removed, remove its code from the configuration.", m.id))
	}
}

// codeKind is a resource whose codes are checked. It says what its attributes are called.
type codeKind struct {
	isShared   bool
	attributes map[lockrules.Subject]string
	// otherLock is the advice for a lock that cannot have the code.
	otherLock string
}

var (
	singleCode = codeKind{
		attributes: map[lockrules.Subject]string{
			lockrules.SubjectPIN:       "code",
			lockrules.SubjectName:      "name",
			lockrules.SubjectLock:      "device_id",
			lockrules.SubjectSharedPIN: "common_code_key",
			lockrules.SubjectOffline:   "offline",
		},
		otherLock: "Set `device_id` to another lock.",
	}
	sharedCode = codeKind{
		isShared: true,
		attributes: map[lockrules.Subject]string{
			lockrules.SubjectPIN:  "code",
			lockrules.SubjectName: "name",
			lockrules.SubjectLock: "device_ids",
		},
		otherLock: "Remove the lock from `device_ids`.",
	}
)

// lockFault is a problem that some locks have with a code.
type lockFault struct {
	problem lockrules.Problem
	devices []*api.Device
}

// report adds the diagnostic of a fault.
func (f *lockFault) report(diags *diag.Diagnostics, kind codeKind, code lockrules.Code) {
	add := diagnostics.ErrorAt
	if f.problem.IsWarning {
		add = diagnostics.WarningAt
	}
	subject := f.problem.Subject
	if kind.isShared && f.problem.Kind == lockrules.KindVendorPIN {
		subject = lockrules.SubjectLock // a shared code always has a PIN
	}
	fact := f.problem.Fact
	if f.problem.Holder != nil {
		fact += ": " + f.holder(code)
	}
	add(diags, path.Root(kind.attributes[subject]), f.problem.Summary,
		fmt.Sprintf("On %s, %s. %s", lockNames(f.devices), fact, f.advice(kind, code)))
}

// holder names the code that has the PIN or the name, without a PIN.
func (f *lockFault) holder(code lockrules.Code) string {
	holder, named := f.problem.Holder, ""
	if name := api.Redact(holder.Name, code.PIN, holder.PIN); name != "" {
		named = fmt.Sprintf(" %q", name)
	}
	switch {
	case holder.IsPlanned:
		return fmt.Sprintf("the new code%s of this plan", named)
	case holder.IsManaged:
		return fmt.Sprintf("the managed code %s%s", holder.ID, named)
	}
	return fmt.Sprintf("the unmanaged code %s%s", holder.ID, named)
}

// lockNames lists locks by their names and identifiers.
func lockNames(devices []*api.Device) string {
	var names []string
	for _, device := range devices {
		names = append(names, fmt.Sprintf("%q (%s)", device.DisplayName, device.DeviceID))
	}
	if len(names) == 1 {
		return "the lock " + names[0]
	}
	return "the locks " + strings.Join(names, ", ")
}

// advice says what to do about a fault.
func (f *lockFault) advice(kind codeKind, code lockrules.Code) string {
	switch f.problem.Kind {
	case lockrules.KindPINRule:
		return "Choose another PIN."
	case lockrules.KindVendorPIN:
		switch {
		case kind.isShared:
			return kind.otherLock + " Declare its code with deviceaccess_access_code, without a PIN."
		case f.problem.Subject == lockrules.SubjectSharedPIN:
			return "Leave `common_code_key` out."
		}
		return "Leave `code` and `code_wo` out."
	case lockrules.KindNoCodes:
		if f.problem.Subject == lockrules.SubjectOffline {
			return "Leave `offline` out, or set `device_id` to another lock."
		}
		return "Applying this plan fails for it. " + kind.otherLock
	case lockrules.KindPINTaken:
		if f.problem.Holder.IsPlanned {
			return "Choose another PIN for one of them."
		}
		return f.takenAdvice()
	case lockrules.KindNameTaken:
		return "The server may add a number to the name on the lock, or reject the name. Choose another name to " +
			"avoid that."
	case lockrules.KindFull:
		return "Applying this plan fails unless a code leaves the lock first. The data sources " +
			"deviceaccess_access_codes and deviceaccess_unmanaged_access_codes list the codes."
	case lockrules.KindUnreachable, lockrules.KindDisconnected:
		return f.waitAdvice(code)
	}
	return ""
}

// takenAdvice says what to do about a PIN that another code has.
func (f *lockFault) takenAdvice() string {
	holder := f.problem.Holder
	importLine := f.devices[0].DeviceID + "/" + holder.ID
	if holder.IsManaged {
		return "Applying this plan fails unless that code leaves the lock first. If it is this code under another " +
			"address, use a moved block. If it is in no state, import it as `" + importLine + "`. Otherwise " +
			"choose another PIN."
	}
	return "Applying this plan fails while that code is on the lock. To adopt it, import it as `" + importLine +
		"`. Otherwise delete it in the lock's app, or choose another PIN."
}

// waitAdvice says what happens while a lock cannot be reached.
func (f *lockFault) waitAdvice(code lockrules.Code) string {
	if code.OnlineOnly {
		return "With `attempt_for_offline_device = false`, the server rejects the code until the lock is online."
	}
	const waits = "Applying this plan waits until the lock is reachable, or `timeouts` ends. "
	if f.problem.Kind == lockrules.KindDisconnected {
		return waits + "Its owner must log in again, on the page of a new deviceaccess_connect_webview."
	}
	return waits + "Bring the lock online first, or expect the wait."
}

// checkPlan checks the event types of a planned webhook against those of the server.
func (r *webhookResource) checkPlan(
	ctx context.Context,
	req resource.ModifyPlanRequest,
	resp *resource.ModifyPlanResponse,
) {
	var planned, stored types.Set
	if resp.Plan.GetAttribute(ctx, path.Root("event_types"), &planned).HasError() ||
		!req.State.Raw.IsNull() && req.State.GetAttribute(ctx, path.Root("event_types"), &stored).HasError() {
		return
	}
	eventTypes := knownTexts(planned)
	if planned.Equal(stored) || len(eventTypes) == 0 || slices.Equal(eventTypes, []string{allEventTypes}) {
		return
	}
	ctx, end, ok := r.checkContext(ctx, !req.State.Raw.IsNull())
	defer end()
	if !ok {
		return
	}
	if err := r.checkEventTypes(ctx, eventTypes); isOfType(err, "invalid_event_types") {
		diagnostics.ErrorAt(&resp.Diagnostics, path.Root("event_types"), "Unknown event type", sentence(err.Error()))
	}
}

// checkEventTypes returns the server's answer to a change of a webhook that does not exist. Such a change has no
// effect, and the server checks the event types first.
func (c *connection) checkEventTypes(ctx context.Context, eventTypes []string) error {
	c.checks.trials.Lock()
	defer c.checks.trials.Unlock()
	key := strings.Join(eventTypes, ",")
	if err, known := c.checks.eventTypes[key]; known {
		return err
	}
	_, err := api.Call[api.OkResponse](
		ctx,
		c.api.UpdateWebhook,
		api.UpdateWebhookRequest{WebhookID: uuid.Nil.String(), EventTypes: eventTypes},
	)
	if c.checks.eventTypes == nil {
		c.checks.eventTypes = map[string]error{}
	}
	c.checks.eventTypes[key] = err
	return err
}
