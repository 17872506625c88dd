package phone

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// GetPhone returns a phone. It fails with NotFound.
func (s *Service) GetPhone(ctx context.Context, p domain.Principal, id string) (Phone, error) {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return Phone{}, notFound(id)
	}
	r, err := s.db.GetPhone(ctx, dbsqlc.GetPhoneParams{WorkspaceID: p.WorkspaceID, DeviceID: parsed})
	if store.IsNoRows(err) {
		return Phone{}, notFound(id)
	}
	if err != nil {
		return Phone{}, fmt.Errorf("read the phone %s: %w", id, err)
	}
	return toPhone(r), nil
}

// Filter is a set of conditions that must all hold. Zero values match everything.
type Filter struct {
	IdentityID string
	Nothing    bool // true matches no phone
}

// ListPhones lists phones, oldest first, and reports whether more follow the page.
func (s *Service) ListPhones(
	ctx context.Context,
	p domain.Principal,
	f Filter,
	page domain.Page,
) ([]Phone, bool, error) {
	if f.Nothing {
		return nil, false, nil
	}
	arg := dbsqlc.FindPhonesParams{
		WorkspaceID: p.WorkspaceID,
		AfterAt:     page.After.At,
		AfterID:     page.After.ID,
		MaxRows:     page.Rows(),
	}
	if f.IdentityID != "" {
		ids := domain.ParseIDs(&[]string{f.IdentityID})
		if len(ids) == 0 {
			return nil, false, nil // not an identifier, so no identity has it
		}
		arg.UserIdentityID = &ids[0]
	}
	rows, err := s.db.UnpreparedQueries.FindPhones(ctx, arg)
	if err != nil {
		return nil, false, fmt.Errorf("list the phones: %w", err)
	}
	rows, more := domain.Cut(page, rows)
	out := make([]Phone, len(rows))
	for i, r := range rows {
		out[i] = toPhone(r)
	}
	return out, more, nil
}
