package access

import (
	"fmt"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// Kind sorts errors by whose turn it is.
type Kind int

const (
	Invalid       Kind = iota + 1 // the request has to be changed
	NotFound                      // the workspace has no such thing
	Conflict                      // it collides with what is there
	Unauthorized                  // the credential is missing or not good
	Forbidden                     // the credential may not do this
	Unavailable                   // try again later
	TooMany                       // as many are being worked on as there may be
	Contradiction                 // it is not what was asked before under the same name
)

// Error is what every operation of this package fails with, unless something inside is broken.
// It carries no PIN, secret or credential.
type Error struct {
	Kind    Kind
	Type    string         // stable name, the error.type of the API, such as "device_not_found"
	Message string         // for people: what is wrong and what to do next
	Field   string         // the parameter it is about, dotted; empty when it is about the whole request
	Data    map[string]any // what it refers to; may be nil
	Also    []*Error       // what else of the request is Invalid
}

func (e *Error) Error() string { return e.Type + ": " + e.Message }

// WaitedTooLong says whether an operation failed because somebody else had locked what it needs in the database. Nothing of it
// has happened, and it may be tried again.
func WaitedTooLong(err error) bool { return store.GaveUp(err) }

// all is every violation that a request is refused for; what is no violation of a parameter is reported alone.
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

// invalid is an error about one parameter; field may be empty.
func Invalidf(field, format string, args ...any) *Error {
	return &Error{Kind: Invalid, Type: invalidInput, Field: field, Message: fmt.Sprintf(format, args...)}
}
