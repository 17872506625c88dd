// Package acs is the domain of access systems, their users, and the identities that join one
// person's users. It shares workspaces, connected accounts, events, and the form of errors and
// pages with package device, but none of the rules of access codes. Each operation is one
// transaction and documents the errors it returns. In addition, any operation may fail because the
// database does.
//
// The package decides the desired state of an access system. Package acs/reconcile applies it and
// reports what it has found and done. The package must not know HTTP or any vendor.
package acs

import (
	"encoding/json"
	"errors"
	"regexp"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/phone"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// SystemLane names the lane whose keys are access systems. Changes of users wake the systems that
// have them.
const SystemLane = "acs_system"

// Service runs the operations of the domain.
type Service struct {
	db       *store.DB
	accounts *account.Service
	devices  *device.Service
	events   *event.Service
	auth     *auth.Service
	phones   *phone.Service
	waker    *worker.Waker
	strays   strays
}

// Services are the services that a Service calls.
type Services struct {
	Accounts *account.Service
	Devices  *device.Service
	Events   *event.Service
	Auth     *auth.Service
	Phones   *phone.Service
}

// New creates a Service on the database of the services.
func New(db *store.DB, s Services, waker *worker.Waker) *Service {
	return &Service{
		db:       db,
		accounts: s.Accounts,
		devices:  s.Devices,
		events:   s.Events,
		auth:     s.Auth,
		phones:   s.Phones,
		waker:    waker,
	}
}

// Problem is an error or a warning that a resource carries until its cause is resolved.
type Problem struct {
	Code     string // error_code or warning_code of the API
	Message  string
	At       time.Time
	SystemID uuid.UUID // for identities, the system of the affected user; zero otherwise
	UserID   uuid.UUID // for identities, the affected user; zero otherwise
}

// Change is the change of an optional text. The zero Change keeps the text.
type Change struct {
	Given bool
	To    *string // nil removes the text
}

// applyTo returns the text after the change.
func (c Change) applyTo(text *string) *string {
	if !c.Given {
		return text
	}
	return c.To
}

var e164 = regexp.MustCompile(`^\+[1-9][0-9]{1,14}$`)

// CheckPhone returns what is wrong with a phone number, or nil if it is valid.
func CheckPhone(number string) *domain.Error {
	if e164.MatchString(number) {
		return nil
	}
	return domain.Invalidf("phone_number", "Invalid phone number. Use the E.164 format, such as +15555550100.")
}

// asError returns the *domain.Error that ended a transaction.
func asError(err error) (*domain.Error, bool) { return errors.AsType[*domain.Error](err) }

func notFound(kind, field string, id any) *domain.Error {
	return &domain.Error{
		Kind:    domain.NotFound,
		Type:    kind + "_not_found",
		Data:    map[string]any{field: id},
		Message: "There is no " + kind + " with this " + field + ".",
	}
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
		panic(err) // only our own types
	}
	return b
}
