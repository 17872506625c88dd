// Package audit reads the audit log and puts the actor of an operation into its context. Package store writes the entries: one for each act that has
// changed something, in the transaction of the change.
package audit

import "github.com/deviceaccess/terraform-provider-deviceaccess/server/store"

// Service reads the audit log.
type Service struct{ db *store.DB }

// New creates a Service. db must be migrated.
func New(db *store.DB) *Service { return &Service{db: db} }
