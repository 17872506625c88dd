package domain

import (
	"time"

	"github.com/google/uuid"
)

// ProblemFields returns errors or warnings in the form of event fields; field is "error_code" or "warning_code".
func ProblemFields(field string, list []Problem) []map[string]any {
	out := []map[string]any{}
	for _, p := range list {
		shown := map[string]any{field: p.Code, "message": p.Message, "created_at": p.At.UTC()}
		if field == "error_code" {
			shown["is_"+string(p.Scope)+"_error"] = true
		}
		out = append(out, shown)
	}
	return out
}

// ProblemSubject is the kind of resource that has a Problem.
type ProblemSubject string

// Scopes of problems.
const (
	OfCode    ProblemSubject = "access_code"
	OfDevice  ProblemSubject = "device"
	OfAccount ProblemSubject = "connected_account"
)

// Problem is an error or a warning that a resource carries until the cause is resolved.
type Problem struct {
	// Code is the error_code or warning_code of the API.
	Code    string
	Message string
	Scope   ProblemSubject
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
	ChangeModified = "modified"
	ChangeRemoved  = "removed"
)

// Error and warning codes of access codes (api/openapi.yaml).
const (
	ErrDuplicate      = "duplicate_code_on_device"
	ErrNoSpace        = "no_space_for_access_code_on_device"
	ErrConstraints    = "code_constraints_violated"
	ErrFailedToSet    = "failed_to_set_on_device"
	ErrFailedToUpdate = "failed_to_update"
	ErrFailedToRemove = "failed_to_remove_from_device"
	ErrFailedToIssue  = "failed_to_issue"
	ErrInactive       = "access_code_inactive"
	ErrFailedToExpire = "failed_to_expire"
	ErrExternal       = "conflicting_external_modification"
	WarnExternal      = "external_modification_in_effect"
)

// RetriedSuffix ends the message of an error of a code that the server retries. The Terraform provider recognizes it.
const RetriedSuffix = " It is tried again."
