// Package audit reads the audit log and puts the actor of an operation into its context. Package store writes the entries: one for each act that has
// changed something, in the transaction of the change.
package audit

import (
	"cmp"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// PublicEntries is the default of Options.PublicEntries.
const PublicEntries = 1000

// publicWindow is the time for which Options.PublicEntries applies.
const publicWindow = 24 * time.Hour

// Options of a Service. The zero value is for production.
type Options struct {
	// PublicEntries is the maximum number of entries that public callers cause in a workspace in a day; 0: PublicEntries.
	PublicEntries int
	Now           func() time.Time // the clock; nil: the system's
	Log           *slog.Logger
}

// Service reads the audit log.
type Service struct {
	db  *store.DB
	opt Options

	mu     sync.Mutex
	since  time.Time         // when the current window began
	public map[uuid.UUID]int // entries of public callers in it, by workspace
}

// New creates a Service. db must be migrated.
func New(db *store.DB, opt Options) *Service {
	opt.PublicEntries = cmp.Or(opt.PublicEntries, PublicEntries)
	if opt.Now == nil {
		opt.Now = time.Now
	}
	opt.Log = cmp.Or(opt.Log, slog.New(slog.DiscardHandler))
	return &Service{db: db, opt: opt}
}

// AdmitPublic reports whether another act of a public caller in a workspace gets an entry, and counts it. Anyone can be
// such a caller (see domain.Principal.IsPublic), and entries are kept for long.
func (s *Service) AdmitPublic(workspace uuid.UUID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.opt.Now(); s.public == nil || now.Sub(s.since) >= publicWindow {
		s.since, s.public = now, map[uuid.UUID]int{}
	}
	s.public[workspace]++
	if s.public[workspace] == s.opt.PublicEntries+1 {
		s.opt.Log.Warn(
			"publishable keys and their unused client sessions cause too many audit entries; the rest of the day has none",
			"workspace_id",
			workspace,
			"entries",
			s.opt.PublicEntries,
		)
	}
	return s.public[workspace] <= s.opt.PublicEntries
}
