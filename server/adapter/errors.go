package adapter

import (
	"errors"
	"fmt"
	"time"
)

// Class sorts vendors' errors by what can be done about them.
type Class string

const (
	Transient    Class = "transient"     // try again; also everything that is not understood
	Offline      Class = "offline"       // the device cannot be reached
	GatewayDown  Class = "gateway_down"  // nothing of the account can be reached
	AuthRevoked  Class = "auth_revoked"  // the account's credentials are no longer accepted
	Duplicate    Class = "duplicate"     // the PIN is already on the device
	Full         Class = "full"          // the device has no room for another code
	Invalid      Class = "invalid"       // the device refuses this PIN, name or time frame
	NotSupported Class = "not_supported" // the device cannot do this at all
	NotFound     Class = "not_found"     // the account has no such device or code
	Unconfirmed  Class = "unconfirmed"   // nobody knows whether it took effect: read, then decide
)

// Retryable says whether the same call may succeed later without anything else being changed.
func (c Class) Retryable() bool {
	switch c {
	case Transient, Offline, GatewayDown, Unconfirmed:
		return true
	default:
		return false
	}
}

// Error is what an adapter fails with.
type Error struct {
	Class      Class
	Message    string        // for people; carries no PIN and no credential
	RetryAfter time.Duration // not before then; 0 where the vendor does not say
	Conflict   CodeRef       // Duplicate: the code that has the PIN, where known
	Gone       bool          // NotFound: the device has left for good, and its reference may be given to another
}

func (e *Error) Error() string { return string(e.Class) + ": " + e.Message }

// Errorf makes an *Error. Its arguments must hold no PIN and no credential.
func Errorf(class Class, format string, args ...any) *Error {
	return &Error{Class: class, Message: fmt.Sprintf(format, args...)}
}

// ClassOf is the class of err; what is not an *Error is Transient, because wrongly giving up is worse
// than one more try.
func ClassOf(err error) Class {
	if e := AsError(err); e != nil {
		return e.Class
	}
	return Transient
}

// AsError is the *Error that err is or wraps; nil when it is neither.
func AsError(err error) *Error {
	e, _ := errors.AsType[*Error](err)
	return e
}
