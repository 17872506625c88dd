package access

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Status says how far a code is on its device.
type Status string

const (
	StatusUnset    Status = "unset"    // not on the device, or there and not open yet
	StatusSetting  Status = "setting"  // on its way
	StatusSet      Status = "set"      // opens
	StatusRemoving Status = "removing" // on its way off
	StatusUnknown  Status = "unknown"  // the device is gone
)

// Code is an access code: managed by the workspace, or found on a device and unmanaged.
type Code struct {
	ID                          uuid.UUID
	WorkspaceID                 uuid.UUID
	DeviceID                    uuid.UUID
	Managed                     bool
	Name                        *string
	PIN                         *string // nil where hidden, or not invented yet
	CommonCodeKey               *string // shared by codes that have the same PIN
	StartsAt, EndsAt            *time.Time
	Status                      Status
	ExternalModificationAllowed bool
	Backup                      bool        // made ahead of time, and pulled in place of another
	OfflineKind                 OfflineKind // empty: its device is told of it
	BackupAvailable             bool        // one can be pulled in its place
	PulledBackup                uuid.UUID   // the one that was; zero: none
	OnDevice                    bool        // the device holds it, open or scheduled
	WaitingForPIN               bool        // the vendor has yet to invent it
	CannotBeManaged             bool        // unmanaged: its device does not let it be taken over
	CannotBeDeleted             bool        // unmanaged: its device does not let it be deleted
	Errors, Warnings            []Problem
	Mutations                   []Mutation
	CreatedAt                   time.Time
}

// TimeBound says whether the code has a time frame, or half of one, as some vendors list codes.
func (c Code) TimeBound() bool { return c.StartsAt != nil || c.EndsAt != nil }

// Mutation is a change on its way to the device; a mutation_code of the API.
type Mutation struct {
	Code        string
	Message     string
	At          time.Time
	ScheduledAt *time.Time     // deferring_creation
	From, To    map[string]any // updating_name, updating_code, updating_time_frame; these may have PINs in them
}

func pinPlace(code uuid.UUID) string   { return "access_codes.pin/" + code.String() }
func pinScope(device uuid.UUID) string { return "access_codes.pin/device/" + device.String() }

// setPIN puts a PIN into a row; an empty one takes it out. Another one than before shares no key any more.
func (s *Service) setPIN(r *dbsqlc.AccessCode, pin string) {
	was := r.PinMac
	r.PinSealed, r.PinMac = nil, nil
	if pin != "" {
		r.PinSealed = s.keys.Seal(pinPlace(r.AccessCodeID), []byte(pin))
		r.PinMac = s.keys.MAC(pinScope(r.DeviceID), []byte(pin))
	}
	if was != nil && !encryption.Equal(was, r.PinMac) {
		r.CommonCodeKey = nil
	}
}

// pinOf reads the PIN of a row; empty where it has none.
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
	c := Code{ID: r.AccessCodeID, WorkspaceID: r.WorkspaceID, DeviceID: r.DeviceID, Managed: r.IsManaged, Name: r.Name, PIN: nonEmpty(pin),
		StartsAt: r.StartsAt, EndsAt: r.EndsAt, Status: Status(r.Status), ExternalModificationAllowed: r.ExternalModificationAllowed,
		CommonCodeKey: r.CommonCodeKey, OnDevice: r.AppliedGen > 0 && !offline(r), WaitingForPIN: r.IsManaged && (caps.ProviderPIN || offline(r)) && pin == "", OfflineKind: OfflineKind(text(r.OfflineKind)), CreatedAt: r.CreatedAt}
	if !r.IsManaged {
		c.CannotBeManaged, c.CannotBeDeleted = !caps.Convertible, !caps.DeleteUnmanaged
	}
	c.Backup, c.PulledBackup, c.BackupAvailable = r.IsBackup, idOf(r.PulledBackupCodeID), backupAvailable(r, d.BackupPool, s.opt.Now())
	if r.ErrorCode != nil {
		c.Errors = append(c.Errors, Problem{Code: *r.ErrorCode, Message: text(r.ErrorMessage), Scope: OfCode, At: at(r.ErrorAt), Other: idOf(r.ErrorCodeID), Change: changeAt(r, r.ErrorCode)})
	}
	if r.IsManaged {
		device := standing(d)
		if offline(r) { // which does not mind whether the device can be reached
			c.Errors = append(c.Errors, device.AccountErrors...)
			c.Warnings = append(c.Warnings, offlineWarnings(r)...)
		} else {
			c.Errors = append(c.Errors, device.Errors()...)
		}
		if r.RemovingSince == nil && (!offline(r) || r.AppliedGen == 0) && slices.ContainsFunc(device.AccountErrors, func(p Problem) bool { return p.Code == accountDisconnected }) {
			c.Status = StatusUnknown // nobody lets us look
		}
		if c.Mutations, err = s.mutations(r, caps); err != nil {
			return c, err
		}
	}
	unframed, err := s.unframed(r)
	if err != nil {
		return c, err
	}
	c.Warnings = append(c.Warnings, unframed...)
	if r.WarningCode != nil && unframed == nil { // which is that of the delay, and says less
		c.Warnings = append(c.Warnings, Problem{Code: *r.WarningCode, Message: text(r.WarningMessage), Scope: OfCode, At: at(r.WarningAt), Change: changeAt(r, r.WarningCode)})
	}
	if r.PulledBackupCodeID != nil {
		c.Warnings = append(c.Warnings, Problem{Code: "using_backup_access_code", Message: "A backup access code was pulled, and is used in place of this one.", Scope: OfCode, At: r.DesiredAt})
	}
	if r.RemovingSince != nil {
		c.Warnings = append(c.Warnings, Problem{Code: "being_deleted", Message: "The code is being removed from its device.", Scope: OfCode, At: *r.RemovingSince})
	}
	return c, nil
}

// changeAt is what was done to a code at its device, for the error and the warning that are about that.
func changeAt(r dbsqlc.AccessCode, problem *string) string {
	if p := text(problem); p != errExternal && p != warnExternal {
		return ""
	}
	return text(r.ExternalChange)
}

// mutations are the changes of a managed code that its device has not confirmed.
func (s *Service) mutations(r dbsqlc.AccessCode, caps Capabilities) ([]Mutation, error) {
	switch {
	case r.RemovingSince != nil:
		return []Mutation{{Code: "deleting", Message: "The code is being removed from its device.", At: *r.RemovingSince}}, nil
	case r.AppliedGen >= r.DesiredGen:
		return nil, nil
	case r.AppliedGen > 0:
		return s.updates(r)
	}
	if when := programAt(r, caps); when != nil && r.WriteGen == 0 && r.Status == string(StatusUnset) {
		return []Mutation{{Code: "deferring_creation", Message: "The code is put on its device ahead of its time frame.", At: r.DesiredAt, ScheduledAt: when}}, nil
	}
	return []Mutation{{Code: "creating", Message: "The code is on its way to the device.", At: r.DesiredAt}}, nil
}

// updates are the changes of a code that is on its device. One that was taken back on its way is none, but the device
// has still to say so.
func (s *Service) updates(r dbsqlc.AccessCode) (out []Mutation, err error) {
	const message = "The change is on its way to the device."
	wanted, err := s.stateOf(r)
	if err != nil {
		return nil, err
	}
	applied, err := s.appliedOf(r)
	if err != nil {
		return nil, err
	}
	if applied != nil {
		for _, c := range applied.changes(wanted) {
			out = append(out, Mutation{Code: "updating_" + c.what, Message: message, At: r.DesiredAt, From: c.from, To: c.to})
		}
	} else {
		applied = &codeState{}
	}
	if out == nil { // every update says from what to what, also where that is the same
		out = []Mutation{{Code: "updating_code", Message: message, At: r.DesiredAt, From: map[string]any{"code": applied.PIN}, To: map[string]any{"code": wanted.PIN}}}
	}
	return out, nil
}

const (
	nativeAhead  = 72 * time.Hour   // a device that keeps time frames is given a code this long before
	programAhead = 60 * time.Minute // any other this long
)

// programAt is when a time-bound code is to be on its device; nil for an ongoing one.
func programAt(r dbsqlc.AccessCode, caps Capabilities) *time.Time {
	if r.StartsAt == nil || offline(r) {
		return nil
	}
	ahead := programAhead
	if nativeSchedule(r, caps) {
		ahead = nativeAhead
	}
	t := r.StartsAt.Add(-ahead)
	return &t
}

// nativeSchedule says whether the device is to keep the code's time frame. A backup code that was pulled is not put anew for that: it
// opens at once, and is taken off when its time ends.
func nativeSchedule(r dbsqlc.AccessCode, caps Capabilities) bool {
	return caps.NativeSchedule && r.PreferNativeScheduling && (!caps.PutAnew || !r.IsBackup)
}

func text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

func at(p *time.Time) time.Time {
	if p == nil {
		return time.Time{}
	}
	return *p
}

func idOf(p *uuid.UUID) uuid.UUID {
	if p == nil {
		return uuid.Nil
	}
	return *p
}

func codeNotFound(id string) *Error {
	e := &Error{Kind: NotFound, Type: "access_code_not_found", Message: "Could not find an access_code with device_id or access_code_id"}
	if id != "" {
		e.Data = map[string]any{"access_code_id": id}
	}
	return e
}

// GetCode reads a managed or an unmanaged code by its identifier, or by its device and PIN.
// It fails with Invalid unless exactly one of the two is given, and with NotFound, also when the code is
// there but of the other kind.
func (s *Service) GetCode(ctx context.Context, p Principal, managed bool, id, deviceID, pin string) (Code, error) {
	if (id != "") == (pin != "") || (id == "" && deviceID == "") {
		return Code{}, invalid("", "Must specify either access_code_id or both device_id and code")
	}
	if id != "" {
		parsed, err := uuid.Parse(id)
		if err != nil {
			return Code{}, codeNotFound(id)
		}
		r, err := s.db.GetAccessCode(ctx, dbsqlc.GetAccessCodeParams{WorkspaceID: p.WorkspaceID, AccessCodeID: parsed, IsManaged: managed})
		if store.IsNoRows(err) || (err == nil && (!p.reaches(r.CodeDevice.ConnectedAccountID) || deviceID != "" && !names(deviceID, r.AccessCode.DeviceID))) {
			return Code{}, codeNotFound(id)
		}
		if err != nil {
			return Code{}, fmt.Errorf("read the access code: %w", err)
		}
		return s.shown(ctx, r.AccessCode, r.CodeDevice)
	}
	device, err := uuid.Parse(deviceID)
	if err != nil {
		return Code{}, codeNotFound("")
	}
	r, err := s.db.GetAccessCodeByPIN(ctx, dbsqlc.GetAccessCodeByPINParams{WorkspaceID: p.WorkspaceID, DeviceID: device, IsManaged: managed,
		PinMac: s.keys.MAC(pinScope(device), []byte(pin))})
	if store.IsNoRows(err) || (err == nil && !p.reaches(r.CodeDevice.ConnectedAccountID)) {
		return Code{}, codeNotFound("")
	}
	if err != nil {
		return Code{}, fmt.Errorf("read the access code: %w", err)
	}
	return s.shown(ctx, r.AccessCode, r.CodeDevice)
}

// CodeFilter is a set of conditions that must all hold.
type CodeFilter struct {
	Managed     bool
	DeviceID    string    // a device, which must be there
	IDs         *[]string // only these; without a device, managed codes only
	CustomerKey string    // of the account; without a device, managed codes only
	Search      string
	Nothing     bool // a condition that no code meets, such as on access grants, which do not exist
}

// ListCodes lists codes, oldest first, and says whether more follow the page.
// It fails with Invalid when the filter names neither device, codes nor customer, and with NotFound for the device.
func (s *Service) ListCodes(ctx context.Context, p Principal, f CodeFilter, page Page) ([]Code, bool, error) {
	if f.Nothing {
		return nil, false, nil
	}
	pairs, err := s.findCodes(ctx, p, f, page)
	if e, ok := asError(err); ok {
		return nil, false, e
	}
	if err != nil {
		return nil, false, fmt.Errorf("list the access codes: %w", err)
	}
	pairs, more := cut(page, pairs)
	out, err := s.allShown(ctx, pairs)
	return out, more, err
}

func (s *Service) findCodes(ctx context.Context, p Principal, f CodeFilter, page Page) (pairs []dbsqlc.ListAccessCodesOfDeviceRow, err error) {
	accounts := p.Reach // nil: all
	if f.CustomerKey != "" {
		if accounts, err = s.accountsOfCustomer(ctx, p, f.CustomerKey); err != nil {
			return nil, err
		}
	}
	switch {
	case f.DeviceID != "":
		d, err := s.findDevice(ctx, p, f.DeviceID)
		if err != nil || accounts != nil && !slices.Contains(accounts, d.ConnectedAccountID) {
			return nil, err
		}
		return s.db.ListAccessCodesOfDevice(ctx, dbsqlc.ListAccessCodesOfDeviceParams{WorkspaceID: p.WorkspaceID, DeviceID: d.DeviceID, IsManaged: f.Managed,
			AfterAt: page.After.At, AfterID: page.After.ID, AccessCodeIds: parseIDs(f.IDs), Search: nonEmpty(f.Search), MaxRows: page.rows()})
	case f.CustomerKey != "" && f.Managed:
		rows, err := s.db.PlannedAnew.ListAccessCodesOfAccounts(ctx, dbsqlc.ListAccessCodesOfAccountsParams{WorkspaceID: p.WorkspaceID, AccountIds: accounts,
			AfterAt: page.After.At, AfterID: page.After.ID, AccessCodeIds: parseIDs(f.IDs), Search: nonEmpty(f.Search), MaxRows: page.rows()})
		for _, r := range rows {
			pairs = append(pairs, dbsqlc.ListAccessCodesOfDeviceRow(r))
		}
		return pairs, err
	case f.IDs != nil && f.Managed:
		rows, err := s.db.ListAccessCodes(ctx, dbsqlc.ListAccessCodesParams{WorkspaceID: p.WorkspaceID, AfterAt: page.After.At, AfterID: page.After.ID,
			AccessCodeIds: parseIDs(f.IDs), Search: nonEmpty(f.Search), MaxRows: page.rows(), Scope: accounts})
		for _, r := range rows {
			pairs = append(pairs, dbsqlc.ListAccessCodesOfDeviceRow(r))
		}
		return pairs, err
	default:
		return nil, invalid("", "Must specify at least one of device_id, access_code_ids, access_grant_id, access_grant_key, access_method_id or customer_key")
	}
}

// accountsOfCustomer are those in reach; never nil, which would be all.
func (s *Service) accountsOfCustomer(ctx context.Context, p Principal, key string) ([]uuid.UUID, error) {
	all, err := s.db.AccountsOfCustomer(ctx, dbsqlc.AccountsOfCustomerParams{WorkspaceID: p.WorkspaceID, CustomerKey: key})
	reached := []uuid.UUID{}
	for _, id := range all {
		if p.reaches(id) {
			reached = append(reached, id)
		}
	}
	return reached, err
}

// CodeByRef reads the code that the vendor calls ref, if it has been read from the device.
func (s *Service) CodeByRef(ctx context.Context, device uuid.UUID, ref string) (c Code, found bool, err error) {
	r, err := s.db.GetAccessCodeByRef(ctx, dbsqlc.GetAccessCodeByRefParams{DeviceID: device, VendorRef: &ref})
	if store.IsNoRows(err) {
		return c, false, nil
	}
	if err != nil {
		return c, false, fmt.Errorf("read the access code: %w", err)
	}
	c, err = s.shown(ctx, r.AccessCode, r.CodeDevice)
	return c, err == nil, err
}
