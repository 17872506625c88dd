package access

import (
	"time"

	"github.com/google/uuid"
)

// Scope says what a Problem is a problem of.
type Scope string

const (
	OfCode    Scope = "access_code"
	OfDevice  Scope = "device"
	OfAccount Scope = "connected_account"
)

// Problem is an error or a warning that a resource carries until it is gone.
type Problem struct {
	Code    string // error_code or warning_code of the API
	Message string
	Scope   Scope
	At      time.Time
	Other   uuid.UUID // duplicate_code_on_device: the code that has the PIN, where it is known and still there
	Managed bool      // Other is
	Change  string    // what was done to the code at its device: modified or removed; empty where that is unknown
}

// What may be done to a code at its device.
const (
	changeModified = "modified"
	changeRemoved  = "removed"
)

// The error codes of access codes that this package gives (spec/contract.md section 8).
const (
	errDuplicate     = "duplicate_code_on_device"
	errNoSpace       = "no_space_for_access_code_on_device"
	errConstraints   = "code_constraints_violated"
	errFailedToSet   = "failed_to_set_on_device"
	errFailedToUpd   = "failed_to_update"
	errFailedToRem   = "failed_to_remove_from_device"
	errFailedToIssue = "failed_to_issue"
	errInactive      = "access_code_inactive"
	errFailedToExp   = "failed_to_expire"
	errExternal      = "conflicting_external_modification"
	warnExternal     = "external_modification_in_effect"
)
