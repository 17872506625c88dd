package operator

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/audit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// Options of a Service. The zero value is for production.
type Options struct {
	// OIDC configures sign-in at an OpenID Connect provider. The zero value turns it off.
	OIDC OIDC
	// NoLocalSignIn turns passwords, passkeys, and links off.
	NoLocalSignIn bool
	Now           func() time.Time // the clock; nil: the system's
	Log           *slog.Logger
}

// Service keeps operators, and signs them in.
type Service struct {
	db        *store.DB
	keys      *encryption.Keys
	opt       Options
	passwords *hasher
	provider  provider
}

// New creates a Service. db must be migrated.
func New(db *store.DB, keys *encryption.Keys, opt Options) *Service {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	opt.Log = cmp.Or(opt.Log, slog.New(slog.DiscardHandler))
	return &Service{
		db:        db,
		keys:      keys,
		opt:       opt,
		passwords: newHasher(),
	}
}

// LocalSignIn reports whether operators can sign in with passwords and passkeys, and use links.
func (s *Service) LocalSignIn() bool { return !s.opt.NoLocalSignIn }

// Client is the browser of a person.
type Client struct {
	Agent     string    // the User-Agent header
	Address   string    // the address
	RequestID uuid.UUID // of the request, for the audit log; zero: unknown
}

// acting returns the context of changes that an operator makes to itself by signing in.
func acting(ctx context.Context, o Operator, c Client, operation string) context.Context {
	return audit.Acting(ctx, audit.Act{
		Principal: domain.Principal{CredentialID: o.ID, Kind: domain.OperatorAccount, Name: o.Email},
		RequestID: c.RequestID,
		Operation: operation,
	})
}

// Operations of the audit log.
const (
	signInOperation  = "/console/sign-in"
	linkOperation    = "/console/link"
	confirmOperation = "/console/confirm"
)

func unauthorized(kind, message string) *domain.Error {
	return &domain.Error{Kind: domain.Unauthorized, Type: kind, Message: message}
}

// localOff returns the error for local sign-in where only the provider signs people in, or nil.
func (s *Service) localOff() error {
	if !s.opt.NoLocalSignIn {
		return nil
	}
	return &domain.Error{
		Kind:    domain.Forbidden,
		Type:    "local_sign_in_disabled",
		Message: "This server lets people sign in only with their organization's account.",
	}
}

// operatorNotFound returns the error for an operator that does not exist.
func operatorNotFound() *domain.Error {
	return &domain.Error{Kind: domain.NotFound, Type: "operator_not_found", Message: "There is no such operator."}
}
