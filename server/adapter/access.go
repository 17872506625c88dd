package adapter

import (
	"context"
	"time"
)

// SystemRef names an access system within its account, as its vendor does.
type SystemRef string

// UserRef names a user within its system, as the vendor does.
type UserRef string

// AccessSystems reaches the access systems of one account: what keeps people, the groups they are in, and the
// entrances that these open. Its calls fail with an *Error, or with one joined to the context's error; reads may fail with ErrCrowded, too.
type AccessSystems interface {
	// Systems lists the systems of the account. It fails with AuthRevoked where the account's credentials are refused.
	Systems(ctx context.Context) ([]AccessSystem, error)
	// Look reads all that is on a system. It fails with Offline, and with NotFound for one that is gone.
	Look(ctx context.Context, system SystemRef) (SystemContent, error)
	// PutUser makes the user, or with a Ref has it be as it says; what it does not say is taken away. With the same Key
	// it is the same user, however often it is made. It fails with NotFound where Ref is gone, with Full and with
	// Invalid; with Unconfirmed nobody knows whether it took effect.
	PutUser(ctx context.Context, system SystemRef, u AccessUser) (UserRef, error)
	// DeleteUser takes a user away; one that is not there is no error.
	DeleteUser(ctx context.Context, system SystemRef, user UserRef) error
	// Close ends what the adapter keeps open.
	Close() error
}

// AccessSystem is a system as the list of its account shows it.
type AccessSystem struct {
	Ref      SystemRef
	Name     string
	TimeZone string // IANA name; empty: not known
	Online   bool
}

// SystemContent is all that is on a system.
type SystemContent struct {
	Users     []AccessUser
	Groups    []AccessGroup
	Entrances []Entrance
}

// AccessUser is a person on a system.
type AccessUser struct {
	Ref       UserRef
	Key       string // of whoever made it over the API; empty: somebody at the system did
	FullName  string
	Email     string
	Phone     string
	StartsAt  *time.Time // nil: since ever
	EndsAt    *time.Time // nil: for ever
	Suspended bool
	Groups    []string // the groups it is in, as the vendor names them
}

// AccessGroup is a set of users with the entrances that open for them.
type AccessGroup struct {
	Ref, Name string
	Entrances []string // as the vendor names them
}

// Entrance is a door, a gate or a lift of a system.
type Entrance struct{ Ref, Name string }

// AccessSimulator is what the adapters of simulated access systems can do beside.
type AccessSimulator interface {
	// Disconnect has the vendor refuse the account's credentials.
	Disconnect(ctx context.Context) error
}
