package domain

import (
	"errors"
	"fmt"
)

// AsError returns the *Error in err's chain.
func AsError(err error) (*Error, bool) { return errors.AsType[*Error](err) }

// Wrap adds what was being done to an internal error. It returns an *Error for the caller unchanged.
func Wrap(err error, doing string) error {
	if _, ok := AsError(err); err != nil && !ok {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return err
}

// WebviewNotFound returns the error for a webview that does not exist or is not visible.
func WebviewNotFound(id string) *Error {
	return &Error{
		Kind:    NotFound,
		Type:    "connect_webview_not_found",
		Message: "Could not find a connect webview with this connect_webview_id.",
		Data:    map[string]any{"connect_webview_id": id},
	}
}

// AccountNotFound returns the error for an account that does not exist or is not visible.
func AccountNotFound(what, value string) *Error {
	return &Error{
		Kind:    NotFound,
		Type:    "connected_account_not_found",
		Message: "Could not find a connected account with this " + what + ".",
		Data:    map[string]any{what: value},
	}
}

// Kind sorts errors by who must act on them.
type Kind int

// The kinds of errors.
const (
	Invalid      Kind = iota + 1 // the caller must change the request
	NotFound                     // the workspace has no such resource
	Conflict                     // the request collides with existing state
	Unauthorized                 // the credential is missing or not valid
	Forbidden                    // the credential may not do this
	Unavailable                  // try again later
	TooMany                      // the maximum number is already in progress
	Mismatch                     // another request with the same idempotency key had other content
)

// Error is the error of every operation of this package, unless something inside is broken. It carries no PIN,
// secret, or credential.
type Error struct {
	Kind Kind
	// Type is the stable name, the error.type of the API, such as "device_not_found".
	Type string
	// Message says what is wrong and what to do next.
	Message string
	// Field is the dotted name of the parameter. It is empty for an error about the whole request.
	Field string
	// Data identifies the resources of the error. It may be nil.
	Data map[string]any
	// Also are further violations of the request, all Invalid.
	Also []*Error
}

// Error returns the type and the message.
func (e *Error) Error() string { return e.Type + ": " + e.Message }

// All combines violations of parameters into one error. It returns any other error alone. All ignores nil.
func All(errs ...error) error {
	var first *Error
	for _, err := range errs {
		if err == nil {
			continue
		}
		e, ok := AsError(err)
		if !ok || e.Type != invalidInput {
			return err
		}
		if first == nil {
			c := *e
			first = &c
		} else {
			first.Also = append(first.Also, e)
		}
	}
	if first == nil {
		return nil
	}
	return first
}

const invalidInput = "invalid_input"

// Invalidf returns an error about one parameter. field may be empty.
func Invalidf(field, format string, args ...any) *Error {
	return &Error{
		Kind:    Invalid,
		Type:    invalidInput,
		Field:   field,
		Message: fmt.Sprintf(format, args...),
	}
}
