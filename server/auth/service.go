// Package auth decides which credential is valid and what it can see: API keys, personal access tokens, publishable keys, console
// sessions and client sessions. It knows no devices and no codes.
package auth

import (
	"cmp"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/keyrotation"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// Options of a Service. The zero value is for production.
type Options struct {
	UnclaimedSessions int              // client sessions of a workspace that were created with a publishable key and reach nothing; 0: 10,000
	Now               func() time.Time // the clock; nil: the system's
}

// Service issues and checks credentials.
type Service struct {
	db         *store.DB
	keys       *encryption.Keys
	events     *event.Service
	serverKeys *keyrotation.Service
	opt        Options
	unclaimed  domain.Headroom // of client sessions
}

// New creates a Service. db must be migrated.
func New(
	db *store.DB,
	keys *encryption.Keys,
	events *event.Service,
	serverKeys *keyrotation.Service,
	opt Options,
) *Service {
	opt.UnclaimedSessions = cmp.Or(opt.UnclaimedSessions, unclaimedSessions)
	if opt.Now == nil {
		opt.Now = time.Now
	}
	return &Service{
		db:         db,
		keys:       keys,
		events:     events,
		serverKeys: serverKeys,
		opt:        opt,
	}
}
