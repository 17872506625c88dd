package adapter

import (
	"context"
	"time"
)

// SystemRef names an access system within its account, as its vendor does.
type SystemRef string

// UserRef names a user within its system, as the vendor does.
type UserRef string

// AccessSystems accesses the access control systems of one account: users, the groups they belong to, and the
// entrances that open for groups and for single users. Methods fail with an *Error, joined to the context's error when the context has
// ended. Reads may also fail with ErrSaturated.
type AccessSystems interface {
	// Systems lists the systems of the account. It fails with AuthRevoked when the vendor rejects the account's
	// credentials.
	Systems(ctx context.Context) ([]AccessSystem, error)
	// ReadSystem reads the users, groups, and entrances of a system. It fails with Offline, and with NotFound when
	// the system does not exist.
	ReadSystem(ctx context.Context, system SystemRef) (SystemContent, error)
	// PutUser creates a user or, when u.Ref is set, replaces that user; fields that are unset in u are cleared.
	// Repeated creations with the same Key return the same user. It fails with NotFound when u.Ref does not exist,
	// with Full, and with Invalid. A system that opens entrances for groups only fails with NotSupported if u has
	// Entrances. It fails with Unconfirmed when the outcome is unknown.
	PutUser(ctx context.Context, system SystemRef, u AccessUser) (UserRef, error)
	// DeleteUser deletes a user. Deleting an absent user is not an error.
	DeleteUser(ctx context.Context, system SystemRef, user UserRef) error
	// DeleteGroup deletes a group. Its users stay. Deleting an absent group is not an error. It fails with NotSupported
	// when the vendor does not let programs delete groups.
	DeleteGroup(ctx context.Context, system SystemRef, group string) error
	// UnlockEntrance unlocks an entrance once, and returns when the system has confirmed. It fails with Offline, with
	// NotFound when the entrance does not exist, with NotSupported when the entrance cannot be unlocked remotely, with
	// Invalid when the system refuses, and with Unconfirmed when the outcome is unknown.
	UnlockEntrance(ctx context.Context, system SystemRef, entrance string) error
	// Close releases the connections of the adapter.
	Close() error
}

// AccessSystem is one system in the list of its account.
type AccessSystem struct {
	Ref  SystemRef
	Name string
	// TimeZone is an IANA name; empty when unknown.
	TimeZone string
	Online   bool
}

// SystemContent is everything stored on a system.
type SystemContent struct {
	Users     []AccessUser
	Groups    []AccessGroup
	Entrances []Entrance
}

// AccessUser is a person on a system.
type AccessUser struct {
	Ref UserRef
	// Key is the AccessUser.Key of the creation through the API; empty for a user added at the system.
	Key      string
	FullName string
	Email    string
	Phone    string
	// StartsAt is nil when the access has no start.
	StartsAt *time.Time
	// EndsAt is nil when the access has no end.
	EndsAt    *time.Time
	Suspended bool
	// Groups holds the vendor's group identifiers.
	Groups []string
	// Entrances holds the vendor's identifiers of the entrances that open for the user in addition to those of the
	// groups.
	Entrances []string
}

// AccessGroup is a set of users and the entrances that open for them.
type AccessGroup struct {
	Ref, Name string
	// Entrances holds the vendor's entrance identifiers.
	Entrances []string
}

// Entrance is a door, gate, or elevator of a system.
type Entrance struct{ Ref, Name string }

// AccessSimulator is implemented by adapters of simulated access systems.
type AccessSimulator interface {
	// Disconnect revokes the account's credentials at the vendor.
	Disconnect(ctx context.Context) error
}
