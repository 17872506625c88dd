package operator

import (
	"context"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// AddInvitation gives an operator a link, and returns its token.
func (s *Service) AddInvitation(ctx context.Context, id uuid.UUID) (token string, err error) {
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		token, err = s.addLink(ctx, tx, &id, Invitation)
		return err
	})
	return token, err
}

// Hashes returns how many passwords were hashed.
func (s *Service) Hashes() int64 { return s.passwords.count.Load() }

// UseIssuer replaces the provider, as a restart with another setting does.
func (s *Service) UseIssuer(url string) {
	s.provider.mu.Lock()
	defer s.provider.mu.Unlock()
	s.opt.OIDC.Issuer, s.provider.known = url, nil
}
