package access

import (
	"fmt"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// Kind sorts errors by who must act on them.
type Kind int

const (
	Invalid       Kind = iota + 1 // the caller must change the request
	NotFound                      // the workspace has no such resource
	Conflict                      // the request collides with existing state
	Unauthorized                  // the credential is missing or not valid
	Forbidden                     // the credential may not do this
	Unavailable                   // try again later
	TooMany                       // the maximum number is already in progress
	Contradiction                 // another request with the same idempotency key had other content
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

// WaitedTooLong reports whether an operation timed out on a database lock. It had no effect and can be retried.
func WaitedTooLong(err error) bool { return store.IsLockTimeout(err) }

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
