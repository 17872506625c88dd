// Package acs is the domain of access systems, the people who have an account on them, and the identities that join a
// person's accounts. It stands beside package access and shares with it workspaces, connected accounts, events and
// the way errors and pages are told, but no rule of access codes. Each operation is one transaction and says which
// errors it returns; besides those, any may fail because the database does.
//
// What should be on a system is decided here; how to get it there is the business of package acs/reconcile, which reports
// back what it has found and done. The package knows neither HTTP nor any vendor.
package acs

import (
	"encoding/json"
	"errors"
	"regexp"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// SystemLane is the kind of keys that changes of users wake: the systems they are on.
const SystemLane = "acs_system"

// Service carries the operations.
type Service struct {
	db     *store.DB
	access *access.Service
	waker  *worker.Waker
	strays strays
}

// New makes a Service on the database that a is on.
func New(db *store.DB, a *access.Service, waker *worker.Waker) *Service {
	return &Service{db: db, access: a, waker: waker}
}

// Problem is an error or a warning that a resource carries until it is gone.
type Problem struct {
	Code     string // error_code or warning_code of the API
	Message  string
	At       time.Time
	SystemID uuid.UUID // of identities: the system of the user that has it; else zero
	UserID   uuid.UUID // of identities: the user that has it; else zero
}

// Change is what becomes of a text that may be absent; the zero Change leaves it.
type Change struct {
	Given bool
	To    *string // nil: it is taken away
}

// on is the text after the change.
func (c Change) on(text *string) *string {
	if !c.Given {
		return text
	}
	return c.To
}

var e164 = regexp.MustCompile(`^\+[1-9][0-9]{1,14}$`)

// CheckPhone says what is wrong with a phone number, nil when nothing is.
func CheckPhone(number string) *access.Error {
	if e164.MatchString(number) {
		return nil
	}
	return access.Invalidf("phone_number", "Invalid phone number; write it in E.164 format, such as +15555550100")
}

// asError finds the *access.Error that a transaction was ended with.
func asError(err error) (*access.Error, bool) { return errors.AsType[*access.Error](err) }

func notFound(kind, field string, id any) *access.Error {
	return &access.Error{Kind: access.NotFound, Type: kind + "_not_found", Data: map[string]any{field: id},
		Message: "There is no " + kind + " with this " + field + "."}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func nonEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // of our own types only
	}
	return b
}
