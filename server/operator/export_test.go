package operator

// Hashes returns how many passwords were hashed.
func (s *Service) Hashes() int64 { return s.passwords.count.Load() }

// UseIssuer replaces the provider, as a restart with another setting does.
func (s *Service) UseIssuer(url string) {
	s.provider.mu.Lock()
	defer s.provider.mu.Unlock()
	s.opt.OIDC.Issuer, s.provider.known = url, nil
}
