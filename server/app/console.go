package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/operator"
)

// ConsoleOptions configures the console, the pages for operators. The zero value serves it on the address of the API.
type ConsoleOptions struct {
	// Disabled turns the console off.
	Disabled bool
	// Listen is the host:port of the console. If empty, the console is on the address of the API.
	Listen string
	// NoReveal hides PINs from everyone.
	NoReveal bool
	// NoLocalSignIn turns passwords and passkeys off.
	NoLocalSignIn bool
	// OIDC configures sign-in at an OpenID Connect provider.
	OIDC operator.OIDC
	// AdminEmail and AdminPassword create the first operator if there is none. Empty: a link creates it.
	AdminEmail, AdminPassword string
}

// operators returns the options of package operator.
func (o ConsoleOptions) operators() operator.Options {
	if o.OIDC.WithClient == nil {
		client := &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()} // ends with the context
		o.OIDC.WithClient = func(ctx context.Context) context.Context { return oidc.ClientContext(ctx, client) }
	}
	return operator.Options{OIDC: o.OIDC, NoLocalSignIn: o.NoLocalSignIn}
}

// createFirst creates the first operator if the options have one and there is none.
func (o ConsoleOptions) createFirst(ctx context.Context, s *operator.Service, log *slog.Logger) error {
	if o.Disabled || o.AdminEmail == "" {
		return nil
	}
	created, err := s.CreateFirst(ctx, o.AdminEmail, o.AdminPassword)
	if err != nil {
		return fmt.Errorf("create the operator of --admin-email: %w", err)
	}
	if created {
		log.Info("created the first operator of the console", "email", o.AdminEmail)
	}
	return nil
}
