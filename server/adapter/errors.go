package adapter

import (
	"errors"
	"fmt"
	"time"
)

// Class classifies vendor errors by the possible reaction.
type Class string

const (
	// Transient means that a retry may succeed. Unknown errors are Transient.
	Transient Class = "transient"
	// Offline means that the device is unreachable.
	Offline Class = "offline"
	// GatewayDown means that the whole account is unreachable.
	GatewayDown Class = "gateway_down"
	// AuthRevoked means that the vendor rejects the account's credentials.
	AuthRevoked Class = "auth_revoked"
	// Duplicate means that the PIN is already on the device.
	Duplicate Class = "duplicate"
	// Full means that the device cannot store another code.
	Full Class = "full"
	// Invalid means that the device rejects this PIN, name, or time frame.
	Invalid Class = "invalid"
	// NotSupported means that the device lacks the capability.
	NotSupported Class = "not_supported"
	// NotFound means that the account has no such device or code.
	NotFound Class = "not_found"
	// Unconfirmed means that the outcome is unknown: read, then decide.
	Unconfirmed Class = "unconfirmed"
)

// Retryable reports whether the same call may succeed later without another change.
func (c Class) Retryable() bool {
	switch c {
	case Transient, Offline, GatewayDown, Unconfirmed:
		return true
	default:
		return false
	}
}

// Error is the error type of adapters.
type Error struct {
	Class Class
	// Message is for people. It contains no PIN and no credential.
	Message string
	// ForPerson is what a person reads on a connect page instead of Message, which is for the operator of the server. It
	// names no settings. Empty: Message.
	ForPerson string
	// RetryAfter is the minimum wait before a retry; 0 when the vendor gives none.
	RetryAfter time.Duration
	// Conflict is the code that has the PIN of a Duplicate, if known.
	Conflict CodeRef
	// Gone means that the device of a NotFound was removed permanently and another device may reuse its Ref.
	Gone bool
}

// Error implements error.
func (e *Error) Error() string { return string(e.Class) + ": " + e.Message }

// Errorf returns an *Error. The arguments must contain no PIN and no credential.
func Errorf(class Class, format string, args ...any) *Error {
	return &Error{Class: class, Message: fmt.Sprintf(format, args...)}
}

// ClassOf returns the class of err. It returns Transient for an err that is not an *Error, because a superfluous
// retry costs less than giving up wrongly.
func ClassOf(err error) Class {
	if e := AsError(err); e != nil {
		return e.Class
	}
	return Transient
}

// AsError returns the *Error in the chain of err, or nil.
func AsError(err error) *Error {
	e, _ := errors.AsType[*Error](err)
	return e
}
