package adaptertest

import (
	"context"
	"sync"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Secrets is an adapter.Secrets of one instance, in memory.
type Secrets struct {
	// Values are the first secrets by name. They must not be used after the first call.
	Values map[string][]byte

	mu sync.Mutex
}

// Load implements adapter.Secrets.
func (s *Secrets) Load(_ context.Context, name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Values[name], nil
}

// Store implements adapter.Secrets.
func (s *Secrets) Store(_ context.Context, name string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Values == nil {
		s.Values = map[string][]byte{}
	}
	s.Values[name] = value
	return nil
}

// Rotate implements adapter.Secrets.
func (s *Secrets) Rotate(ctx context.Context, name string, seen []byte, renew adapter.Renew) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if string(s.Values[name]) != string(seen) {
		return s.Values[name], nil
	}
	value, err := renew(ctx, seen)
	if err == nil {
		s.Values[name] = value
	}
	return value, err
}
