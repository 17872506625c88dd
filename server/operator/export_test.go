package operator

// Hashes returns how many passwords were hashed.
func (s *Service) Hashes() int64 { return s.passwords.count.Load() }
