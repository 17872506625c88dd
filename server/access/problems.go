package access

import (
	"time"

	"github.com/google/uuid"
)

// Scope is the kind of resource that has a Problem.
type Scope string

// Scopes of problems.
const (
	OfCode    Scope = "access_code"
	OfDevice  Scope = "device"
	OfAccount Scope = "connected_account"
)

// Problem is an error or a warning that a resource carries until the cause is resolved.
type Problem struct {
	// Code is the error_code or warning_code of the API.
	Code    string
	Message string
	Scope   Scope
	At      time.Time
	// Other is the code that has the PIN, for duplicate_code_on_device. It is zero where that code is unknown
	// or deleted.
	Other   uuid.UUID
	Managed bool // whether Other is managed
	// Change is what happened to the code on its device: modified or removed. It is empty where that is
	// unknown.
	Change string
}

// External changes of a code on its device.
const (
	changeModified = "modified"
	changeRemoved  = "removed"
)

// Error and warning codes of access codes (spec/contract.md section 8).
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
