package device

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Status is the state of a code on its device.
type Status = lockstate.Status

// Code states.
const (
	StatusUnset    = lockstate.StatusUnset
	StatusSetting  = lockstate.StatusSetting
	StatusSet      = lockstate.StatusSet
	StatusRemoving = lockstate.StatusRemoving
	StatusUnknown  = lockstate.StatusUnknown
)

// Code is an access code: managed by the workspace, or found on a device and unmanaged.
type Code struct {
	ID                          uuid.UUID
	WorkspaceID                 uuid.UUID
	DeviceID                    uuid.UUID
	Managed                     bool
	Name                        *string
	VendorName                  *string // the name that the device has; nil: none, or not sent yet
	VendorRef                   string  // identifies the code on the device; empty: not known yet
	PIN                         *string // nil: hidden, or not chosen yet
	PINMasked                   bool    // PIN is nil because the caller may not read it
	CommonCodeKey               *string // shared by codes with the same PIN
	StartsAt, EndsAt            *time.Time
	Status                      Status
	ExternalModificationAllowed bool
	Backup                      bool        // created ahead of time and pulled to replace another
	OfflineKind                 OfflineKind // empty: an online code
	BackupAvailable             bool        // a backup code can be pulled for it
	PulledBackup                uuid.UUID   // the backup code that was pulled for it; zero: none
	OnDevice                    bool        // on the device, open or scheduled
	WaitingForPIN               bool        // the vendor has not chosen it yet
	CannotBeManaged             bool        // unmanaged: the device does not support a conversion
	CannotBeDeleted             bool        // unmanaged: the device does not support a deletion
	Errors, Warnings            []domain.Problem
	Mutations                   []Mutation
	CreatedAt                   time.Time
}

// TimeBound reports whether the code has a start or an end. Some vendors list codes with only one of them.
func (c Code) TimeBound() bool { return c.StartsAt != nil || c.EndsAt != nil }

// WithoutPINs returns the code without its PIN, and its mutations without PINs.
func (c Code) WithoutPINs() Code {
	c.PIN, c.PINMasked, c.Mutations = nil, c.PIN != nil, slices.Clone(c.Mutations)
	for i, m := range c.Mutations {
		c.Mutations[i].From, c.Mutations[i].To = withoutPIN(m.From), withoutPIN(m.To)
	}
	return c
}

// shownTo returns the code as a caller may see it.
func (c Code) shownTo(p domain.Principal) Code {
	if p.CanReadPINs() {
		return c
	}
	return c.WithoutPINs()
}

// withoutPIN returns the fields of a mutation. The PIN among them is null.
func withoutPIN(fields map[string]any) map[string]any {
	if _, has := fields[lockstate.CodeField]; !has {
		return fields
	}
	fields = maps.Clone(fields)
	fields[lockstate.CodeField] = nil
	return fields
}

// Mutation is a change that the device has not confirmed: a mutation_code of the API.
type Mutation struct {
	Code        string
	Message     string
	At          time.Time
	ScheduledAt *time.Time     // deferring_creation
	From, To    map[string]any // updating_name, updating_code, updating_time_frame; may contain PINs
}

func pinPlace(code uuid.UUID) string { return "access_codes.pin/" + code.String() }

func pinScope(device uuid.UUID) string { return "access_codes.pin/device/" + device.String() }

// setPIN sets the PIN of a row. An empty PIN clears it. A changed PIN clears the common code key.
func (s *Service) setPIN(r *dbsqlc.AccessCode, pin string) {
	was := r.PinMac
	r.PinSealed, r.PinMac = nil, nil
	if pin != "" {
		r.PinSealed = s.keys.Seal(pinPlace(r.AccessCodeID), []byte(pin))
		r.PinMac = s.keys.MAC(pinScope(r.DeviceID), []byte(pin))
	}
	if was != nil && !s.keys.Match(was, r.PinMac) {
		r.CommonCodeKey = nil
	}
}

// pinOf returns the PIN of a row, or "".
func (s *Service) pinOf(r dbsqlc.AccessCode) (string, error) {
	if r.PinSealed == nil {
		return "", nil
	}
	b, err := s.keys.Open(pinPlace(r.AccessCodeID), r.PinSealed)
	if err != nil {
		return "", fmt.Errorf("open the PIN of access code %s: %w", r.AccessCodeID, err)
	}
	return string(b), nil
}

func (s *Service) toCode(r dbsqlc.AccessCode, d dbsqlc.CodeDevice) (Code, error) {
	pin, err := s.pinOf(r)
	if err != nil {
		return Code{}, err
	}
	caps := toCapabilities(d.Capabilities, d.ReportedCodeLengths)
	c := Code{
		ID:                          r.AccessCodeID,
		WorkspaceID:                 r.WorkspaceID,
		DeviceID:                    r.DeviceID,
		Managed:                     r.IsManaged,
		Name:                        r.Name,
		VendorName:                  r.VendorName,
		VendorRef:                   domain.Value(r.VendorRef),
		PIN:                         domain.NonEmpty(pin),
		StartsAt:                    r.StartsAt,
		EndsAt:                      r.EndsAt,
		Status:                      Status(r.Status),
		ExternalModificationAllowed: r.ExternalModificationAllowed,
		CommonCodeKey:               r.CommonCodeKey,
		OnDevice:                    r.AppliedGen > 0 && !offline(r),
		WaitingForPIN:               r.IsManaged && (caps.ProviderPIN || offline(r)) && pin == "",
		OfflineKind:                 OfflineKind(domain.Value(r.OfflineKind)),
		CreatedAt:                   r.CreatedAt,
	}
	if !r.IsManaged {
		c.CannotBeManaged, c.CannotBeDeleted = !caps.Convertible(), !caps.DeleteUnmanaged
	}
	lockCode := toLockCode(r)
	c.Backup, c.PulledBackup = r.IsBackup, lockCode.PulledBackup
	c.BackupAvailable = toPool(d.BackupPool).BackupAvailable(&lockCode, s.opt.Now())
	if r.ErrorCode != nil {
		c.Errors = append(c.Errors, domain.Problem{
			Code:    *r.ErrorCode,
			Message: domain.Value(r.ErrorMessage),
			Scope:   domain.OfCode,
			At:      domain.Value(r.ErrorAt),
			Other:   domain.Value(r.ErrorCodeID),
			Change:  externalChange(r, r.ErrorCode),
		})
	}
	if r.IsManaged {
		device := partialDevice(d)
		if offline(r) { // independent of the device's connection
			c.Errors = append(c.Errors, device.AccountErrors...)
			c.Warnings = append(c.Warnings, offlineWarnings(r)...)
		} else {
			c.Errors = append(c.Errors, device.Errors()...)
		}
		if r.RemovingSince == nil && (!offline(r) || r.AppliedGen == 0) &&
			slices.ContainsFunc(
				device.AccountErrors,
				func(p domain.Problem) bool { return p.Code == account.AccountDisconnected },
			) {
			c.Status = StatusUnknown // the vendor rejects our credentials
		}
		if c.Mutations, err = s.mutations(r, caps); err != nil {
			return c, err
		}
	}
	unframed, err := s.pendingTimeFrame(r)
	if err != nil {
		return c, err
	}
	c.Warnings = append(c.Warnings, unframed...)
	if r.WarningCode != nil && unframed == nil { // otherwise it is the delay warning, which says less
		c.Warnings = append(c.Warnings, domain.Problem{
			Code:    *r.WarningCode,
			Message: domain.Value(r.WarningMessage),
			Scope:   domain.OfCode,
			At:      domain.Value(r.WarningAt),
			Change:  externalChange(r, r.WarningCode),
		})
	}
	if r.PulledBackupCodeID != nil {
		c.Warnings = append(c.Warnings, domain.Problem{
			Code:    "using_backup_access_code",
			Message: "A backup access code was pulled and replaces this one.",
			Scope:   domain.OfCode,
			At:      r.DesiredAt,
		})
	}
	if r.RemovingSince != nil {
		c.Warnings = append(c.Warnings, domain.Problem{
			Code:    "being_deleted",
			Message: "The code is being removed from its device.",
			Scope:   domain.OfCode,
			At:      *r.RemovingSince,
		})
	}
	return c, nil
}

// externalChange returns what happened to a code on its device, for the error and the warning about that.
func externalChange(r dbsqlc.AccessCode, problem *string) string {
	if p := domain.Value(problem); p != domain.ErrExternal && p != domain.WarnExternal {
		return ""
	}
	return domain.Value(r.ExternalChange)
}

// mutations returns the changes of a managed code that its device has not confirmed.
func (s *Service) mutations(r dbsqlc.AccessCode, caps capability.Set) ([]Mutation, error) {
	switch {
	case r.RemovingSince != nil:
		return []Mutation{
			{Code: "deleting", Message: "The code is being removed from its device.", At: *r.RemovingSince},
		}, nil
	case r.AppliedGen >= r.DesiredGen:
		return nil, nil
	case r.AppliedGen > 0:
		return s.pendingUpdates(r)
	}
	code := toLockCode(r)
	if when := lockstate.ProgramAt(&code, caps); when != nil && r.WriteGen == 0 && r.Status == string(StatusUnset) {
		message := "The server programs the code shortly before its time frame."
		if !when.After(s.opt.Now()) { // it waits for its turn
			message = "The server programs the code when the earlier code with the same PIN has left the device."
		}
		return []Mutation{{
			Code:        "deferring_creation",
			Message:     message,
			At:          r.DesiredAt,
			ScheduledAt: when,
		}}, nil
	}
	return []Mutation{{Code: "creating", Message: "The code is on its way to the device.", At: r.DesiredAt}}, nil
}

// pendingUpdates returns the changes of a code that is on its device. A change that was reverted before the
// device confirmed still counts, because the device has not confirmed the revert.
func (s *Service) pendingUpdates(r dbsqlc.AccessCode) (out []Mutation, err error) {
	const message = "The change is on its way to the device."
	pins := s.pinsOn(r.DeviceID, r.PinMac, r.WritePinMac)
	c, err := pins.load(r)
	if err != nil {
		return nil, err
	}
	applied, changes := domain.Value(c.Applied), []lockstate.FieldChange(nil)
	if c.Applied != nil {
		changes = applied.ChangesTo(c.State())
	}
	if changes == nil { // an update always carries from and to, even if they are equal
		changes = []lockstate.FieldChange{{Field: lockstate.CodeField, From: applied, To: c.State()}}
	}
	for _, change := range changes {
		fields, err := pins.changeFields(change)
		if err != nil {
			return nil, err
		}
		out = append(out, Mutation{
			Code:    "updating_" + fields.what,
			Message: message,
			At:      r.DesiredAt,
			From:    fields.from,
			To:      fields.to,
		})
	}
	return out, nil
}

// pendingTimeFrame returns a warning for a pulled code whose device does not have its time frame yet: it opens
// at any time.
func (s *Service) pendingTimeFrame(c dbsqlc.AccessCode) ([]domain.Problem, error) {
	if !c.IsBackup || c.InPool || c.EndsAt == nil || c.AppliedGen == 0 || c.AppliedGen >= c.DesiredGen {
		return nil, nil
	}
	applied, err := s.appliedOf(c)
	if err != nil || applied == nil || applied.EndsAt != nil {
		return nil, err
	}
	if c.RemovingSince != nil {
		return []domain.Problem{
			{
				Code:  lockstate.WarnDelayRemoving,
				Scope: domain.OfCode,
				At:    *c.RemovingSince,
				Message: "The device never accepted the time frame of the code, so the code opens until it is " +
					"removed. The server keeps retrying.",
			},
		}, nil
	}
	return []domain.Problem{
		{
			Code:  lockstate.WarnDelaySetting,
			Scope: domain.OfCode,
			At:    c.DesiredAt,
			Message: "The code opens, but the device does not have its time frame yet. Until then the code " +
				"also opens after ends_at. The server keeps retrying.",
		},
	}, nil
}

func codeNotFound(id string) *domain.Error {
	e := &domain.Error{
		Kind:    domain.NotFound,
		Type:    "access_code_not_found",
		Message: "Could not find an access_code with device_id or access_code_id",
	}
	if id != "" {
		e.Data = map[string]any{"access_code_id": id}
	}
	return e
}

// GetCode reads a managed or an unmanaged code by its identifier, or by its device and PIN. Of several codes with
// the PIN, it returns the one whose time frame contains now, else the next one, else the last one. A viewer gets it
// without PINs. It fails with Invalid unless exactly one of the two is given, and with NotFound, also for a code of the
// other kind.
func (s *Service) GetCode(
	ctx context.Context,
	p domain.Principal,
	managed bool,
	id, deviceID, pin string,
) (Code, error) {
	if (id != "") == (pin != "") || (id == "" && deviceID == "") {
		return Code{}, domain.Invalidf("", "Must specify either access_code_id or both device_id and code")
	}
	if id != "" {
		parsed, err := uuid.Parse(id)
		if err != nil {
			return Code{}, codeNotFound(id)
		}
		r, err := s.db.GetAccessCode(
			ctx,
			dbsqlc.GetAccessCodeParams{WorkspaceID: p.WorkspaceID, AccessCodeID: parsed, IsManaged: managed},
		)
		if store.IsNoRows(err) ||
			(err == nil && (!p.CanSeeDevice(r.CodeDevice.ConnectedAccountID, r.CodeDevice.DeviceID) || deviceID != "" && !domain.IsID(deviceID, r.AccessCode.DeviceID))) {
			return Code{}, codeNotFound(id)
		}
		if err != nil {
			return Code{}, fmt.Errorf("read the access code: %w", err)
		}
		c, err := s.toCodeWithErrors(ctx, r.AccessCode, r.CodeDevice)
		return c.shownTo(p), err
	}
	device, err := uuid.Parse(deviceID)
	if err != nil {
		return Code{}, codeNotFound("")
	}
	r, err := s.db.GetAccessCodeByPIN(ctx, dbsqlc.GetAccessCodeByPINParams{
		WorkspaceID: p.WorkspaceID,
		DeviceID:    device,
		IsManaged:   managed,
		PinMacs:     s.keys.MACs(pinScope(device), []byte(pin)),
		Now:         s.opt.Now(),
	})
	if store.IsNoRows(err) || (err == nil && !p.CanSeeDevice(r.CodeDevice.ConnectedAccountID, r.CodeDevice.DeviceID)) {
		return Code{}, codeNotFound("")
	}
	if err != nil {
		return Code{}, fmt.Errorf("read the access code: %w", err)
	}
	c, err := s.toCodeWithErrors(ctx, r.AccessCode, r.CodeDevice)
	return c.shownTo(p), err
}

// CodeFilter is a set of conditions that must all hold.
type CodeFilter struct {
	Managed     bool
	DeviceID    string    // must exist
	IDs         *[]string // without a device, managed codes only
	CustomerKey string    // of the account; without a device, managed codes only
	Search      string
	Nothing     bool // matches no code, such as a condition on an access grant
}

// ListCodes lists codes, oldest first, and reports whether more follow the page. A viewer gets them without PINs. It
// fails with Invalid where the filter names no device, codes, or customer, and with NotFound for the device.
func (s *Service) ListCodes(
	ctx context.Context,
	p domain.Principal,
	f CodeFilter,
	page domain.Page,
) ([]Code, bool, error) {
	if f.Nothing {
		return nil, false, nil
	}
	pairs, err := s.findCodes(ctx, p, f, page)
	if e, ok := domain.AsError(err); ok {
		return nil, false, e
	}
	if err != nil {
		return nil, false, fmt.Errorf("list the access codes: %w", err)
	}
	pairs, more := domain.Cut(page, pairs)
	out, err := s.toCodesWithErrors(ctx, pairs)
	for i := range out {
		out[i] = out[i].shownTo(p)
	}
	return out, more, err
}

func (s *Service) findCodes(
	ctx context.Context,
	p domain.Principal,
	f CodeFilter,
	page domain.Page,
) (pairs []dbsqlc.ListAccessCodesOfDeviceRow, err error) {
	accounts := p.Scope // nil: all
	if f.CustomerKey != "" {
		if accounts, err = s.accountsOfCustomer(ctx, p, f.CustomerKey); err != nil {
			return nil, err
		}
	}
	switch {
	case f.DeviceID != "":
		d, err := s.findDevice(ctx, p, f.DeviceID)
		if err != nil || f.CustomerKey != "" && !slices.Contains(accounts, d.ConnectedAccountID) {
			return nil, err
		}
		return s.db.ListAccessCodesOfDevice(ctx, dbsqlc.ListAccessCodesOfDeviceParams{
			WorkspaceID:   p.WorkspaceID,
			DeviceID:      d.DeviceID,
			IsManaged:     f.Managed,
			AfterAt:       page.After.At,
			AfterID:       page.After.ID,
			AccessCodeIds: domain.ParseIDs(f.IDs),
			Pattern:       store.SearchPattern(f.Search),
			MaxRows:       page.Rows(),
		})
	case f.CustomerKey != "" && f.Managed:
		rows, err := s.db.UnpreparedQueries.ListAccessCodesOfAccounts(ctx, dbsqlc.ListAccessCodesOfAccountsParams{
			WorkspaceID:   p.WorkspaceID,
			AccountIds:    accounts,
			AfterAt:       page.After.At,
			AfterID:       page.After.ID,
			AccessCodeIds: domain.ParseIDs(f.IDs),
			Pattern:       store.SearchPattern(f.Search),
			MaxRows:       page.Rows(),
		})
		for _, r := range rows {
			pairs = append(pairs, dbsqlc.ListAccessCodesOfDeviceRow(r))
		}
		return pairs, err
	case f.IDs != nil && f.Managed:
		rows, err := s.db.ListAccessCodes(ctx, dbsqlc.ListAccessCodesParams{
			WorkspaceID:   p.WorkspaceID,
			AfterAt:       page.After.At,
			AfterID:       page.After.ID,
			AccessCodeIds: domain.ParseIDs(f.IDs),
			Pattern:       store.SearchPattern(f.Search),
			MaxRows:       page.Rows(),
			Scope:         accounts,
		})
		for _, r := range rows {
			pairs = append(pairs, dbsqlc.ListAccessCodesOfDeviceRow(r))
		}
		return pairs, err
	default:
		return nil, domain.Invalidf(
			"",
			"Must specify at least one of device_id, access_code_ids, access_grant_id, access_grant_key, "+
				"access_method_id or customer_key",
		)
	}
}

// accountsOfCustomer returns the customer's accounts in scope. It is never nil, which would mean all accounts.
func (s *Service) accountsOfCustomer(ctx context.Context, p domain.Principal, key string) ([]uuid.UUID, error) {
	all, err := s.db.AccountsOfCustomer(
		ctx,
		dbsqlc.AccountsOfCustomerParams{WorkspaceID: p.WorkspaceID, CustomerKey: key},
	)
	reached := []uuid.UUID{}
	for _, id := range all {
		if p.CanSee(id) {
			reached = append(reached, id)
		}
	}
	return reached, err
}

// CodeByRef reads the code with the vendor reference ref, if it has been read from the device.
func (s *Service) CodeByRef(ctx context.Context, device uuid.UUID, ref string) (c Code, found bool, err error) {
	r, err := s.db.GetAccessCodeByRef(ctx, dbsqlc.GetAccessCodeByRefParams{DeviceID: device, VendorRef: &ref})
	if store.IsNoRows(err) {
		return c, false, nil
	}
	if err != nil {
		return c, false, fmt.Errorf("read the access code: %w", err)
	}
	c, err = s.toCodeWithErrors(ctx, r.AccessCode, r.CodeDevice)
	return c, err == nil, err
}

// toCodeWithErrors is toCode with the details of the conflicting codes in the errors.
func (s *Service) toCodeWithErrors(ctx context.Context, r dbsqlc.AccessCode, d dbsqlc.CodeDevice) (Code, error) {
	codes, err := s.toCodesWithErrors(ctx, []dbsqlc.ListAccessCodesOfDeviceRow{{AccessCode: r, CodeDevice: d}})
	if err != nil {
		return Code{}, err
	}
	return codes[0], nil
}

// toCodesWithErrors is toCodeWithErrors for codes of one workspace.
func (s *Service) toCodesWithErrors(ctx context.Context, rows []dbsqlc.ListAccessCodesOfDeviceRow) ([]Code, error) {
	out := make([]Code, len(rows))
	var others []uuid.UUID
	for i, r := range rows {
		c, err := s.toCode(r.AccessCode, r.CodeDevice)
		if err != nil {
			return nil, err
		}
		if out[i] = c; r.AccessCode.ErrorCodeID != nil {
			others = append(others, *r.AccessCode.ErrorCodeID)
		}
	}
	if others == nil {
		return out, nil
	}
	found, err := s.db.ListConflictingCodes(ctx, dbsqlc.ListConflictingCodesParams{
		WorkspaceID:   out[0].WorkspaceID,
		AccessCodeIds: others,
	})
	if err != nil {
		return nil, fmt.Errorf("read the conflicting codes: %w", err)
	}
	managed := make(map[uuid.UUID]bool, len(found))
	for _, r := range found {
		managed[r.AccessCodeID] = r.IsManaged
	}
	for _, c := range out {
		for i, p := range c.Errors {
			is, there := managed[p.Other]
			// A conflicting code that has been deleted has no identifier to show.
			if c.Errors[i].Managed = is; !there {
				c.Errors[i].Other = uuid.Nil
			}
		}
	}
	return out, nil
}
