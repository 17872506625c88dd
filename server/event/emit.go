package event

import (
	"context"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// EmitFields writes an event in the transaction of the change that it reports. Its type must be one of
// EmittedEvents. fields are those of the type, in addition to the account.
func (s *Service) EmitFields(
	ctx context.Context,
	tx store.Tx,
	eventType string,
	workspace, account uuid.UUID,
	fields map[string]any,
) error {
	return s.Emit(ctx, tx, eventType, About{Workspace: workspace, Account: account, Fields: fields})
}

// EmitEach is EmitFields for n events of a type, each with its own fields.
func (s *Service) EmitEach(
	ctx context.Context,
	tx store.Tx,
	eventType string,
	workspace, account uuid.UUID,
	n int,
	fields func(int) map[string]any,
) error {
	all := make([]Occurrence, n)
	for i := range all {
		all[i] = Occurrence{Type: eventType, About: About{Workspace: workspace, Account: account, Fields: fields(i)}}
	}
	return s.EmitAll(ctx, tx, all)
}
